"""What np.linalg has: norms, linear systems, inverses and determinants by LU factors and triangular systems, Cholesky factors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, lifted, real_of
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.indexing import common_shape, filled, floating, normal_axes, places, resized, select, squares
from tidu_cli.adapters.numpy.numpy.linear_algebra.matrices import inexact, singular_values, square, system
from tidu_cli.adapters.numpy.numpy.linear_algebra.products import matmul
from tidu_cli.adapters.numpy.numpy.reductions.reducing import max as max_
from tidu_cli.adapters.numpy.numpy.reductions.reducing import min as min_
from tidu_cli.adapters.numpy.numpy.reductions.reducing import prod
from tidu_cli.adapters.numpy.numpy.reductions.reducing import sum as sum_
from tidu_cli.adapters.numpy.numpy.shaping import moveaxis
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.lax.arrays.windows import taking


def norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Of vectors and of matrices every order that NumPy has."""
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
        return sum_(squares(x), axes, keepdims=keepdims).emit("sqrt")
    size = abs(x)
    if ord in (math.inf, -math.inf):
        return (max_ if ord > 0 else min_)(size, axes, keepdims=keepdims)
    if ord == 0:
        return sum_((x != 0).astype(real_of(x)), axes, keepdims=keepdims)
    if ord == 1:
        return sum_(size, axes, keepdims=keepdims)
    p_norm: Array = sum_(size**ord, axes, keepdims=keepdims) ** (1 / ord)
    return p_norm


def _matrix_norm(x: Array, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    if ord == "fro":
        return _vector_norm(x, 2, axes, keepdims)
    rows, columns = axes
    if ord in (2, -2, "nuc"):
        values = singular_values(inexact(moveaxis(x, axes, (-2, -1)), x, "norm"))
        norms = {2: max_, -2: min_, "nuc": sum_}[ord](values, -1)
        return norms.reshaped(resized(x.shape, axes)) if keepdims else norms
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"the matrix norm of order {ord} is not defined; orders are 1, -1, 2, -2, inf, -inf, 'fro' and 'nuc'")
    x = floating(x)
    sums = sum_(abs(x), rows if abs(ord) == 1 else columns, keepdims=True)
    return (max_ if ord > 0 else min_)(sums, axes, keepdims=keepdims)


class SlogdetResult(NamedTuple):
    """What np.linalg.slogdet gives: sign times exp(logabsdet) is the determinant."""

    sign: Array
    logabsdet: Array


def solve(a: Operand, b: Operand) -> Array:
    """b is a vector if it has one axis, and else holds matrices."""
    a, b = system(a, b, "solve")
    if b.ndim == 0:
        raise ValueError("solve takes a vector or matrices as right-hand side, got a number")
    if b.shape[-2 if b.ndim > 1 else 0] != a.shape[-1]:
        raise ValueError(f"solve takes as many rows on the right as on the left, got {a.type} and {b.type}")
    if b.ndim == 1:
        return solve(a, b.reshaped((b.size, 1))).reshaped(a.shape[:-1])
    lu, _, order = a.recorder.emit_all("lu", (a,))
    if a.ndim == 2 and b.ndim > 2:
        # Right-hand sides of one matrix are columns of one system, whose matrix need not be repeated.
        columns = moveaxis(b, -2, 0)
        solutions = _solved(lu, order, columns.reshaped((b.shape[-2], math.prod(columns.shape[1:]))))
        return moveaxis(solutions.reshaped(columns.shape), 0, -2)
    batch = common_shape(a.shape[:-2], b.shape[:-2])
    lu, order, b = (x.broadcast((*batch, *x.shape[-k:])) for x, k in ((lu, 2), (order, 1), (b, 2)))
    return _solved(lu, order, b)


def _solved(lu: Array, order: Array, b: Array) -> Array:
    """From L U x = P b."""
    rows = b.emit("gather", order.reshaped((*order.shape, 1)), **taking(b.shape, order.ndim, order.ndim - 1))
    forward = lu.emit("triangular_solve", rows, left_side=True, lower=True, unit_diagonal=True)
    return lu.emit("triangular_solve", forward, left_side=True)


def inv(a: Array) -> Array:
    a = square(a, "inv")
    n = a.shape[-1]
    if isinstance(n, OpenSize):
        from tidu_cli.adapters.numpy.arrays.sizes import diagonals

        return solve(a, diagonals(a.recorder, n, None, 0, a.dtype))
    return solve(a, a.constant(np.eye(n), a.dtype))


def slogdet(a: Array) -> SlogdetResult:
    a = square(a, "slogdet")
    lu, pivots, _ = a.recorder.emit_all("lu", (a,))
    swaps = pivots.emit("ne", places(a, pivots.shape, -1, "i32")).convert("i32").emit("reduce_sum", axes=(pivots.ndim - 1,))
    is_odd = (swaps & 1) == 1
    one = filled(a, 1, is_odd.shape)
    rows, columns = places(lu, lu.shape, -2), places(lu, lu.shape, -1)
    off = filled(lu, 0)
    diagonal = select(rows.emit("eq", columns), lu, off).emit("reduce_sum", axes=(lu.ndim - 1,))
    parity, size = select(is_odd, -one, one), abs(diagonal)
    return SlogdetResult(parity * prod(diagonal.emit("sign"), -1), sum_(size.emit("log"), -1))


def det(a: Array) -> Array:
    return square(a, "det").emit("det")


def cholesky(a: Array, /, *, upper: bool = False) -> Array:
    """It reads one triangle, the lower by default."""
    a = square(a, "cholesky")
    return a.mT.conj().emit("cholesky").mT.conj() if upper else a.emit("cholesky")


def solve_triangular(a: Operand, b: Operand, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Array:
    """scipy.linalg.solve_triangular, of one matrix and a vector or a matrix."""
    a, b = system(a, b, "solve_triangular")
    turned = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}.get(trans)
    if turned is None:
        raise ValueError("trans is 0, 1 or 2")
    if a.ndim != 2 or b.ndim not in (1, 2):
        raise ValueError(f"solve_triangular takes a matrix and a vector or a matrix, got {a.type} and {b.type}")
    columns = b if b.ndim == 2 else b.reshaped((b.size, 1))
    options = {"left_side": True, "lower": lower, "unit_diagonal": unit_diagonal}
    solution = a.emit("triangular_solve", columns, **options, transpose_a=turned > 0, conjugate_a=turned == 2 and a.type.complex)
    return solution.reshaped(b.shape)


def matrix_power(x: Array, n: int) -> Array:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power takes square matrices, got {x.type}")
    if not -10_000 <= n <= 10_000:
        raise BuildError("matrix_power takes exponents from -10,000 to 10,000")
    if n == 0:
        return x.constant(np.eye(x.shape[-1]), x.dtype).broadcast(x.shape)
    if n < 0:
        x, n = inv(x), -n
    power: Array | None = None
    while n:
        if n & 1:
            power = x if power is None else matmul(power, x)
        n >>= 1
        x = matmul(x, x) if n else x
    assert power is not None
    return power


def tensorsolve(a: Operand, b: Operand, axes: Any = None) -> Array:
    a, b = lifted(a, b)
    if axes is not None:
        a = moveaxis(a, tuple(axes), tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if math.prod(shape) != b.size or a.size != b.size**2:
        raise ValueError(f"tensorsolve takes arrays that reshape to a square matrix and a vector, got {a.type} and {b.type}")
    return solve(a.reshaped((b.size, b.size)), b.reshaped((b.size,))).reshaped(shape)


def tensorinv(a: Array, ind: int = 2) -> Array:
    if not 0 < ind <= a.ndim:
        raise ValueError(f"ind is from 1 to the number of axes, got {ind} for {a.type}")
    n = math.prod(a.shape[ind:])
    if n * n != a.size:
        raise ValueError(f"tensorinv takes arrays that reshape to a square matrix, got {a.type} with ind {ind}")
    return inv(a.reshaped((n, n))).reshaped(a.shape[ind:] + a.shape[:ind])
