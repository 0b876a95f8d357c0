"""Linear algebra: all products onto dot_general. NumPy's ufuncs among them let numbers give way, the others make arrays of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, an_array, lifted_as_arrays, lifted_weak
from tidu_cli.build.errors import BuildError
from tidu_cli.build.numpy.linear_algebra.matrices import diagonal
from tidu_cli.build.numpy.primitives import common_shape, normal_axes, product
from tidu_cli.build.numpy.shaping import moveaxis, squeeze


def matmul(x: Operand, y: Operand, **options: Any) -> Array:
    a, b = lifted_weak(x, y)
    if not (a.ndim and b.ndim):
        raise ValueError(f"@ takes arrays with axes, got {a.type} and {b.type}; write * for scalars")
    if b.ndim <= 2:
        return product(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))
    if a.ndim == 1:
        return product(b, a, ((b.ndim - 2,), (0,)))
    batch = common_shape(a.shape[:-2], b.shape[:-2])
    a, b = a.broadcast((*batch, *a.shape[-2:])), b.broadcast((*batch, *b.shape[-2:]))
    axes = tuple(range(len(batch)))
    return product(a, b, ((a.ndim - 1,), (b.ndim - 2,)), (axes, axes))


def dot(x: Operand, y: Operand, out: object = None) -> Array:
    a, b = lifted_as_arrays(x, y)
    if not (a.ndim and b.ndim):
        return a * b
    return product(a, b, ((a.ndim - 1,), (max(b.ndim - 2, 0),)))


def inner(x: Operand, y: Operand) -> Array:
    a, b = lifted_as_arrays(x, y)
    return product(a, b, ((a.ndim - 1,), (b.ndim - 1,))) if a.ndim and b.ndim else a * b


def outer(x: Operand, y: Operand, out: object = None) -> Array:
    a, b = lifted_as_arrays(x, y)
    return a.reshaped((a.size, 1)) * b.reshaped((1, b.size))


def vdot(x: Operand, y: Operand) -> Array:
    a, b = lifted_as_arrays(x, y)
    return product(a.reshaped((a.size,)).conj(), b.reshaped((b.size,)), ((0,), (0,)))


def vecdot(x: Operand, y: Operand, axis: int = -1, **options: Any) -> Array:
    """Products summed over an axis, of the first operand's conjugate."""
    a, b = lifted_weak(x, y)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    shape = common_shape(a.shape, b.shape)
    axes = tuple(range(len(shape) - 1))
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot takes axes of one size, got {a.type} and {b.type}")
    return product(a.broadcast(shape).conj(), b.broadcast(shape), ((len(axes),), (len(axes),)), (axes, axes))


def matvec(x: Operand, y: Operand, **options: Any) -> Array:
    a, b = lifted_weak(x, y)
    return squeeze(matmul(a, b.reshaped((*b.shape, 1))), -1)


def vecmat(x: Operand, y: Operand, **options: Any) -> Array:
    a, b = lifted_weak(x, y)
    return squeeze(matmul(a.conj().reshaped((*a.shape[:-1], 1, a.shape[-1])), b), -2)


def tensordot(x: Operand, y: Operand, axes: Any = 2) -> Array:
    a, b = lifted_as_arrays(x, y)
    if isinstance(axes, int | np.integer):
        n = int(axes)
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise ValueError(f"{n} axes of {a.type} and {b.type}")
        return product(a, b, (range(a.ndim - n, a.ndim), range(n)))
    left, right = axes
    mine, others = normal_axes(left, a.ndim), normal_axes(right, b.ndim)
    if len(mine) != len(others):
        raise ValueError("axes must name as many axes of both operands")
    return product(a, b, (mine, others))


def _trace(x: Array, offset: int, axis1: int, axis2: int, dtype: Any) -> Array:
    return diagonal(x, offset, axis1, axis2).sum(axis=-1, dtype=dtype)


def cross(x: Operand, y: Operand, axis: int = -1) -> Array:
    """Of vectors of three elements."""
    a, b = lifted_as_arrays(x, y)
    a, b = moveaxis(a, axis, -1), moveaxis(b, axis, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise BuildError(f"cross takes vectors of 3 elements, got {a.type} and {b.type}")
    after, before = [1, 2, 0], [2, 0, 1]
    found = a.take(after, axis=-1) * b.take(before, axis=-1) - a.take(before, axis=-1) * b.take(after, axis=-1)
    return moveaxis(found, -1, axis)


def kron(x: Operand, y: Operand) -> Array:
    a, b = lifted_as_arrays(x, y)
    rank = max(a.ndim, b.ndim)
    one, other = (1,) * (rank - a.ndim) + a.shape, (1,) * (rank - b.ndim) + b.shape
    paired = a.reshaped(tuple(k for n in one for k in (n, 1))) * b.reshaped(tuple(k for n in other for k in (1, n)))
    return paired.reshaped(tuple(n * m for n, m in zip(one, other, strict=True)))


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "trace": lambda x, offset=0, axis1=0, axis2=1, dtype=None, out=None: _trace(an_array(x), offset, axis1, axis2, dtype),
    "linalg.trace": lambda x, /, *, offset=0, dtype=None: _trace(an_array(x), offset, -2, -1, dtype),
    "linalg.multi_dot": lambda arrays, *, out=None: reduce(dot, lifted_as_arrays(*arrays)),
    "linalg.matmul": matmul,
    "linalg.outer": outer,
    "linalg.tensordot": lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes),
    "linalg.vecdot": lambda x1, x2, /, *, axis=-1: vecdot(x1, x2, axis),
    "linalg.cross": lambda x1, x2, /, *, axis=-1: cross(x1, x2, axis),
}
