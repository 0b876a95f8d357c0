"""What np.linalg has beside linear systems: orthogonal factors, singular values, eigenvalues, and least squares.

Values are NumPy's, but for the phases of complex vectors. Eigenvalues and eigenvectors of general matrices are complex whatever
the values are, and where LAPACK fails they are NaN.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, arrays_in, lift, lifted_as_arrays
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import filled, is_given, select
from tidu_cli.adapters.numpy.numpy.linear_algebra.matrices import adjoint, inexact, matrices, singular_values, square
from tidu_cli.adapters.numpy.numpy.linear_algebra.products import matmul
from tidu_cli.adapters.numpy.numpy.linear_algebra.systems import inv, matrix_norm
from tidu_cli.adapters.numpy.numpy.reductions.reducing import count_nonzero
from tidu_cli.adapters.numpy.numpy.reductions.reducing import sum as sum_


class QRResult(NamedTuple):
    """What np.linalg.qr gives."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What np.linalg.svd gives."""

    U: Array
    S: Array
    Vh: Array


class EigResult(NamedTuple):
    """What np.linalg.eig gives."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What np.linalg.eigh gives."""

    eigenvalues: Array
    eigenvectors: Array


def qr(a: Array, mode: str = "reduced") -> Any:
    a = matrices(a, "qr")
    if mode not in ("reduced", "complete", "r"):
        raise UntraceableError(f"np.linalg.qr with mode '{mode}' gives LAPACK's reflections; write 'reduced', 'complete' or 'r'")
    q, r = a.recorder.emit_all("qr", (a,), full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Of matrices said to be Hermitian, too, all elements are read."""
    a = matrices(a, "svd")
    if not compute_uv:
        return singular_values(a)
    s, u, vh = a.recorder.emit_all("svd", (a,), full_matrices=bool(full_matrices))
    return SVDResult(u, s, vh)


def svdvals(x: Array, /) -> Array:
    return singular_values(matrices(x, "svdvals"))


def eigh(a: Array, UPLO: str = "L") -> EighResult:  # noqa: N803
    v, w = _hermitian(a, UPLO, "eigh")
    return EighResult(w, v)


def eigvalsh(a: Array, UPLO: str = "L") -> Array:  # noqa: N803
    return _hermitian(a, UPLO, "eigvalsh")[1]


def _hermitian(a: Array, triangle: str, name: str) -> tuple[Array, ...]:
    if triangle.upper() not in ("L", "U"):
        raise ValueError(f"UPLO is 'L' or 'U', got '{triangle}'")
    a = square(a, name)
    return a.recorder.emit_all("eigh", (a,), lower=triangle.upper() == "L")


def eig(a: Array) -> EigResult:
    a = square(a, "eig")
    return EigResult(*a.recorder.emit_all("eig", (a,), compute_left_eigenvectors=False))


def eigvals(a: Array) -> Array:
    return square(a, "eigvals").emit("eig", compute_left_eigenvectors=False, compute_right_eigenvectors=False)


def pinv(a: Array, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Array:
    """With one tolerance for all matrices, which is a number. Of matrices said to be Hermitian all elements are read."""
    a = matrices(a, "pinv")
    tolerance = rcond if rcond is not None else rtol if is_given(rtol) else _epsilon(a) if rtol is None else 1e-15
    return _pseudoinverse(a, _number(tolerance, "pinv"))


def _pseudoinverse(a: Array, tolerance: float) -> Array:
    """The primitive takes for rounding what is less than the tolerance. Where that may be more, it is taken away step by step."""
    if tolerance <= math.sqrt(np.finfo(a.dtype).eps):
        return a.emit("pinv", rtol=tolerance)
    s, u, vh = a.recorder.emit_all("svd", (a,), full_matrices=False)
    kept = s > s[..., :1] * tolerance
    inverse = select(kept, filled(s, 1) / select(kept, s, filled(s, 1)), filled(s, 0))
    return matmul(adjoint(vh), inverse[..., None] * adjoint(u))


def _epsilon(a: Array) -> float:
    """The least part of the greatest singular value that is not rounding."""
    return max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)


def _number(x: Any, name: str) -> float:
    if isinstance(x, Array) or np.ndim(x):
        raise UntraceableError(f"{name} takes one tolerance, a number that is not traced")
    return float(x)


def lstsq(a: Operand, b: Operand, rcond: Any = None) -> tuple[Array, Array, Array, Array]:
    """Of one matrix. There are residuals where it has more rows than columns, also if its columns are linearly dependent.

    A matrix that is not traced is inverted now, and its rank is known.
    """
    like, design = arrays_in([a, b])[0], None if arrays_in([a]) else a
    a, b = lifted_as_arrays(matrices(lift(a, like), "lstsq"), inexact(b, like, "lstsq"))
    m, n = a.shape[-2:]
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != m:
        raise ValueError(f"lstsq takes a matrix, and a vector or a matrix with as many rows, got {a.type} and {b.type}")
    tolerance = _epsilon(a) if rcond is None else _number(rcond, "lstsq")
    if tolerance < 0:
        tolerance = float(np.finfo(a.dtype).eps)
    if design is None:
        inverse, s, full = _pseudoinverse(a, tolerance), singular_values(a), True
    else:
        solution, _, rank, singular = np.linalg.lstsq(np.asarray(design, a.dtype), np.eye(m, dtype=a.dtype), tolerance)
        inverse, s, full = a.constant(solution), a.constant(singular), rank == n
    x = matmul(inverse, b)
    rest = b - matmul(a, x)
    columns = rest.reshaped((m, b.size // m if m else 1))
    size = sum_((columns.conj() * columns).real, 0) if m > n and full else columns.real[:0, 0]
    return x, size, _rank(s, tolerance).convert("i32"), s


def matrix_rank(A: Array, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:  # noqa: N803
    """An integer, whose derivative is zero."""
    if A.ndim < 2:
        return (A != 0).any().astype(np.int64)
    a = matrices(A, "matrix_rank")
    s = singular_values(a)
    if tol is None:
        return _rank(s, _epsilon(a) if rtol is None else rtol)
    limit = lift(tol, A)
    return count_nonzero(s > limit.reshaped((*limit.shape, 1)), -1)


def _rank(s: Array, tolerance: Any) -> Array:
    if not s.shape[-1]:
        return count_nonzero(s, -1)
    return count_nonzero(s > s[..., :1] * tolerance, -1)


def cond(x: Array, p: Any = None) -> Array:
    """By singular values, or norms of the matrix and its inverse."""
    if p in (None, 2, -2):
        s = singular_values(matrices(x, "cond"))
        if not s.shape[-1]:
            raise ValueError("cond is not defined for empty matrices")
        greatest, least = s[..., 0], s[..., -1]
        return least / greatest if p == -2 else greatest / least
    a = square(x, "cond")
    return matrix_norm(a, ord=p) * matrix_norm(inv(a), ord=p)
