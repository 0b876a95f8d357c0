"""Norms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import real_of
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.primitives import floating, normal_axes, resized
from tidu_cli.build.numpy.reductions.reducing import max as max_
from tidu_cli.build.numpy.reductions.reducing import min as min_
from tidu_cli.build.numpy.reductions.reducing import sum as sum_


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Of vectors every order, of matrices the Frobenius norm and those of orders 1, -1, inf and -inf."""
    axes = normal_axes(axis, x.ndim)
    if ord is None:
        return _vector_norm(x, 2, axes, keepdims)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"the norm of order {ord!r} is for matrices, not for {x.type} along one axis")
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) != 2:
        raise ValueError(f"a norm of order {ord} is over one axis or two; {x.type} has {len(axes)}")
    return _matrix_norm(x, ord, axes, keepdims)


def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    return _vector_norm(x, ord, normal_axes(axis, x.ndim), keepdims)


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    if x.ndim < 2:
        raise ValueError(f"matrix_norm takes matrices, got {x.type}")
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


def _vector_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    x = floating(x)
    if ord == 2:
        # Of squares and not of magnitudes, which have no derivative at 0.
        squares = (x.real * x.real + x.imag * x.imag) if x.type.complex else x * x
        return sum_(squares, axes, keepdims=keepdims).emit("sqrt")
    size = abs(x)
    if ord == math.inf:
        return max_(size, axes, keepdims=keepdims)
    if ord == -math.inf:
        return min_(size, axes, keepdims=keepdims)
    if ord == 0:
        return sum_((x != 0).astype(real_of(x)), axes, keepdims=keepdims)
    if ord == 1:
        return sum_(size, axes, keepdims=keepdims)
    found: Array = sum_(size**ord, axes, keepdims=keepdims) ** (1 / ord)
    return found


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord == "fro":
        return _vector_norm(x, 2, axes, keepdims)
    if ord not in (1, -1, math.inf, -math.inf):
        raise UntraceableError(f"the matrix norm of order {ord} takes singular values, which graphs do not have; write 'fro'")
    x = floating(x)
    rows, columns = axes
    sums = sum_(abs(x), rows if abs(ord) == 1 else columns, keepdims=True)
    found = (max_ if ord > 0 else min_)(sums, axes)
    return found.reshaped(resized(x.shape, axes)) if keepdims else found
