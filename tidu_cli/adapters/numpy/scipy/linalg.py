"""What `scipy.linalg` has of linear systems and factors. Options that say how, and not what, are taken and mean nothing.

Where SciPy raises, or goes over from real to complex results for the values that there are, results are NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, lift, lifted_as_arrays
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import places
from tidu_cli.adapters.numpy.numpy.linear_algebra import decompositions, systems
from tidu_cli.adapters.numpy.numpy.linear_algebra.matrices import adjoint, inexact, matrices, singular_values, square, system
from tidu_cli.adapters.numpy.numpy.linear_algebra.products import matmul

_HOW = frozenset({"overwrite_a", "overwrite_b", "check_finite", "lapack_driver", "driver", "lwork"})


def _require_how(name: str, options: dict[str, Any]) -> None:
    """Raises UntraceableError for an option that says more than how something is computed."""
    for option, value in options.items():
        if option not in _HOW and value is not None:
            raise UntraceableError(f"scipy.linalg.{name} with {option}= cannot be traced; leave it out")


def _numpys(name: str, x: Array, *args: Any, **options: Any) -> Array:
    result: Array = x.recorder.numpy[name](x, *args, **options)
    return result


def solve(
    a: Operand, b: Operand, lower: bool = False, *how: Any, assume_a: Any = None, transposed: bool = False, **options: Any
) -> Array:
    """By Cholesky factors where a is said to be positive definite, and by LU factors else, for which all of a is read."""
    _require_how("solve", options)
    if assume_a in ("pos", "positive definite"):
        return cho_solve(cho_factor(lift(a, arrays_in([a, b])[0]), lower), b)
    a = lift(a, arrays_in([a, b])[0])
    return systems.solve(a.mT if transposed else a, b)


def inv(a: Operand, *how: Any, **options: Any) -> Array:
    options.pop("assume_a", None), options.pop("lower", None)
    _require_how("inv", options)
    return systems.inv(an_array(a))


def det(a: Operand, *how: Any, **options: Any) -> Array:
    _require_how("det", options)
    return systems.det(an_array(a))


def solve_triangular(
    a: Operand, b: Operand, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, *how: Any, **options: Any
) -> Array:
    _require_how("solve_triangular", options)
    return systems.solve_triangular(a, b, trans, lower, unit_diagonal)


def cholesky(a: Operand, lower: bool = False, *how: Any, **options: Any) -> Array:
    _require_how("cholesky", options)
    return systems.cholesky(an_array(a), upper=not lower)


def cho_factor(a: Operand, lower: bool = False, *how: Any, **options: Any) -> tuple[Array, bool]:
    """The other triangle, which SciPy leaves as it was, is 0."""
    return cholesky(a, lower, *how, **options), lower


def cho_solve(c_and_lower: tuple[Operand, bool], b: Operand, *how: Any, **options: Any) -> Array:
    _require_how("cho_solve", options)
    (c, lower), like = c_and_lower, arrays_in([c_and_lower, b])[0]
    c, b = system(lift(c, like), b, "cho_solve")
    columns = b if b.ndim > 1 else b.reshaped((*b.shape, 1))
    c, columns = _together(c, columns)
    for turned in (not lower, lower):
        options = {"transpose_a": turned, "conjugate_a": turned and c.type.complex}
        columns = c.emit("triangular_solve", columns, left_side=True, lower=bool(lower), **options)
    return columns if b.ndim > 1 else columns.reshaped(columns.shape[:-1])


def _together(a: Array, b: Array) -> tuple[Array, Array]:
    """Matrices and right-hand sides, with the batch of both."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.broadcast((*batch, *a.shape[-2:])), b.broadcast((*batch, *b.shape[-2:]))


def lu(a: Operand, permute_l: bool = False, *how: Any, p_indices: bool = False, **options: Any) -> tuple[Array, ...]:
    _require_how("lu", options)
    a = matrices(an_array(a), "lu")
    factors, _, order = a.recorder.emit_all("lu", (a,))
    m, n = a.shape[-2:]
    k = min(m, n)
    left, right = factors[..., :, :k], factors[..., :k, :]
    lower = (_numpys("tril", left, -1) + left.constant(np.eye(m, k), left.dtype)).astype(a.dtype)
    upper = _numpys("triu", right)
    back = _numpys("argsort", order, axis=-1).convert("i32")
    if permute_l:
        return _numpys("take_along_axis", lower, back[..., None].broadcast((*back.shape, k)), axis=-2), upper
    if p_indices:
        return back, lower, upper
    columns = places(back, (*back.shape, m), -1, "i32")
    return (back[..., None].broadcast(columns.shape) == columns).convert(a.real.dtype), lower, upper


def lu_factor(a: Operand, *how: Any, **options: Any) -> tuple[Array, Array]:
    _require_how("lu_factor", options)
    a = matrices(an_array(a), "lu_factor")
    factors, pivots, _ = a.recorder.emit_all("lu", (a,))
    return factors, pivots


def lu_solve(lu_and_piv: tuple[Operand, Operand], b: Operand, trans: int = 0, *how: Any, **options: Any) -> Array:
    _require_how("lu_solve", options)
    like = arrays_in([lu_and_piv, b])[0]
    factors, b = system(lift(lu_and_piv[0], like), b, "lu_solve")
    pivots = lift(lu_and_piv[1], like).convert("i32")
    columns = b if b.ndim > 1 else b.reshaped((*b.shape, 1))
    factors, columns = _together(factors, columns)
    order = pivots.emit("lu_pivots_to_permutation", permutation_size=factors.shape[-1])
    order = order.broadcast((*factors.shape[:-2], factors.shape[-1]))
    turned = {"transpose_a": trans > 0, "conjugate_a": trans == 2 and factors.type.complex}
    triangles = [{"lower": True, "unit_diagonal": True}, {"lower": False}]
    order = order if not trans else _numpys("argsort", order, axis=-1)
    rows = order[..., None].broadcast(columns.shape)
    columns = columns if trans else _numpys("take_along_axis", columns, rows, axis=-2)
    for options in reversed(triangles) if trans else triangles:
        columns = factors.emit("triangular_solve", columns, left_side=True, **options, **turned)
    columns = _numpys("take_along_axis", columns, rows, axis=-2) if trans else columns
    return columns if b.ndim > 1 else columns.reshaped(columns.shape[:-1])


MAX_BANDED = 2_000
"""Equations that a banded system may have: they are solved with a matrix of all elements."""


def solve_banded(l_and_u: Any, ab: Any, b: Any, *how: Any, **options: Any) -> Any:
    _require_how("solve_banded", options)
    lower, upper = l_and_u
    return _banded(
        "solve_banded", ab, b, lower, upper, lambda *operands: _scipys("solve_banded")(l_and_u, *operands), systems.solve
    )


def solveh_banded(ab: Any, b: Any, overwrite_ab: Any = False, overwrite_b: Any = False, lower: bool = False, *how: Any,
                  **options: Any) -> Any:  # fmt: skip
    """By the Cholesky factor of the matrix, of which one triangle is given."""
    _require_how("solveh_banded", options)

    def solved(triangle: Any, b: Any) -> Any:
        strict = _numpys("tril", triangle, -1) if lower else _numpys("triu", triangle, 1)
        return cho_solve(cho_factor(triangle + adjoint(strict), lower), b)

    n = np.shape(ab)[0] - 1
    constants = lambda *operands: _scipys("solveh_banded")(*operands, lower=lower)  # noqa: E731
    return _banded("solveh_banded", ab, b, n * bool(lower), n * (not lower), constants, solved)


def _scipys(name: str) -> Any:
    import scipy.linalg  # type: ignore[import-untyped]

    return getattr(scipy.linalg, name)


def _banded(name: str, ab: Any, b: Any, lower: int, upper: int, constants: Any, solved: Any) -> Any:
    """The solution for a matrix whose diagonals are the rows of ab. A matrix that is not traced is inverted now."""
    like, shape = arrays_in([ab, b])[0], np.shape(ab)
    if len(shape) != 2 or shape[0] != lower + upper + 1 or np.shape(b)[:1] != shape[1:]:
        raise ValueError(
            f"{name} takes {lower + upper + 1} diagonals and as many equations as they are long, got {shape} and {np.shape(b)}"
        )
    if shape[1] > MAX_BANDED:
        raise UntraceableError(f"{name} is traced for {MAX_BANDED:,} equations at most; write the elimination as tidu.scan")
    right = inexact(b, like, name)
    if not arrays_in([ab]):
        inverse = right.constant(constants(ab, np.eye(shape[1])))
        return matmul(inverse, right)
    row, column = np.indices((shape[1], shape[1]))
    inside = (row - column <= lower) & (column - row <= upper)
    diagonals = inexact(ab, like, name)
    matrix = diagonals[np.where(inside, upper + row - column, 0), column]
    return solved(np.where(inside, matrix, matrix.dtype.type(0)), right)


def qr(
    a: Operand, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False, *how: Any, **options: Any
) -> tuple[Array, ...]:
    _require_how("qr", options)
    a = matrices(an_array(a), "qr")
    if mode not in ("full", "economic", "r"):
        raise UntraceableError(f"scipy.linalg.qr with mode '{mode}' gives LAPACK's reflections; write 'full', 'economic' or 'r'")
    factors = a.recorder.emit_all("qr", (a,), full_matrices=mode != "economic", pivoting=bool(pivoting))
    return factors[1:] if mode == "r" else factors


def svd(a: Operand, full_matrices: bool = True, compute_uv: bool = True, *how: Any, **options: Any) -> Any:
    _require_how("svd", options)
    factors = decompositions.svd(an_array(a), full_matrices, compute_uv)
    return tuple(factors) if compute_uv else factors


def svdvals(a: Operand, *how: Any, **options: Any) -> Array:
    _require_how("svdvals", options)
    return singular_values(matrices(an_array(a), "svdvals"))


def eigh(a: Operand, b: Operand = None, *, lower: bool = True, eigvals_only: bool = False, type: int = 1, **options: Any) -> Any:
    """For two matrices by Cholesky factors of the second one, as LAPACK has it."""
    _require_how("eigh", options)
    if type != 1:
        raise UntraceableError("scipy.linalg.eigh is traced of type 1, a v = w b v; write eigh of the product for the others")
    if b is None:
        v, w = (x := square(an_array(a), "eigh")).recorder.emit_all("eigh", (x,), lower=bool(lower))
        return w if eigvals_only else (w, v)
    like = arrays_in([a, b])[0]
    a, b = lifted_as_arrays(square(lift(a, like), "eigh"), square(lift(b, like), "eigh"))
    a, b = _together(a, b)
    factor = b.emit("cholesky") if lower else adjoint(b).emit("cholesky")
    whole = a if lower else adjoint(a)
    below = _numpys("tril", whole, -1)
    whole = below + adjoint(below) + _numpys("triu", _numpys("tril", whole)).real
    side = {"left_side": True, "lower": True}
    half = factor.emit("triangular_solve", whole.astype(a.dtype), **side)
    inner = factor.emit("triangular_solve", adjoint(half), **side)
    v, w = inner.recorder.emit_all("eigh", (inner,))
    back = factor.emit("triangular_solve", v, **side, transpose_a=True, conjugate_a=a.type.complex)
    return w if eigvals_only else (w, back)


def eigvalsh(a: Operand, b: Operand = None, **options: Any) -> Array:
    values: Array = eigh(a, b, eigvals_only=True, **options)
    return values


def eig(a: Operand, b: None = None, left: bool = False, right: bool = True, *how: Any, **options: Any) -> Any:
    _require_how("eig", options | {"b": b})
    a = square(an_array(a), "eig")
    results = a.recorder.emit_all("eig", (a,), compute_left_eigenvectors=bool(left), compute_right_eigenvectors=bool(right))
    return results if left or right else results[0]


def eigvals(a: Operand, b: None = None, *how: Any, **options: Any) -> Array:
    values: Array = eig(a, b, left=False, right=False, **options)
    return values


def schur(a: Operand, output: str = "real", *how: Any, sort: None = None, **options: Any) -> tuple[Array, ...]:
    _require_how("schur", options | {"sort": sort})
    a = square(an_array(a), "schur")
    if output in ("complex", "c") and not a.type.complex:
        a = a.convert("c64" if a.type.dtype == "f32" else "c128")
    return a.recorder.emit_all("schur", (a,))


def pinv(a: Operand, *, atol: None = None, rtol: Any = None, return_rank: bool = False, **options: Any) -> Any:
    _require_how("pinv", options | {"atol": atol})
    a = matrices(an_array(a), "pinv")
    inverse = decompositions.pinv(a, rtol=rtol)
    return (inverse, decompositions.matrix_rank(a, rtol=rtol)) if return_rank else inverse


def lstsq(a: Operand, b: Operand, cond: Any = None, *how: Any, **options: Any) -> tuple[Array, ...]:
    _require_how("lstsq", options)
    like = arrays_in([a, b])[0]
    a, b = lifted_as_arrays(inexact(lift(a, like), like, "lstsq"), inexact(b, like, "lstsq"))
    x, rest, rank, s = decompositions.lstsq(a, b, -1 if cond is None else cond)
    return x, rest if b.ndim > 1 or not rest.size else rest[0], rank, s


def norm(a: Operand, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Array:
    return systems.norm(an_array(a), ord, axis, keepdims)


def polar(a: Operand, side: str = "right") -> tuple[Array, Array]:
    if side not in ("right", "left"):
        raise ValueError("side is 'right' or 'left'")
    a = matrices(an_array(a), "polar")
    tall = a.shape[-2] >= a.shape[-1]
    u, p = a.recorder.emit_all("polar", (a if tall else adjoint(a),))
    u = u if tall else adjoint(u)
    if tall == (side == "right"):
        return u, p
    factor = matmul(a, adjoint(u)) if side == "left" else matmul(adjoint(u), a)
    return u, (factor + adjoint(factor)) * 0.5
