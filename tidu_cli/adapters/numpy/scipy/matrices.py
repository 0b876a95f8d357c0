"""What `scipy.linalg` has of functions of matrices, of matrix equations, and of matrices with a structure."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, lifted_as_arrays
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import filled, indexed
from tidu_cli.adapters.numpy.numpy.linear_algebra.matrices import adjoint, square
from tidu_cli.adapters.numpy.numpy.linear_algebra.products import kron, matmul
from tidu_cli.adapters.numpy.numpy.linear_algebra.systems import inv, solve
from tidu_cli.adapters.numpy.numpy.shaping import concatenate, pad

# Functions of matrices.


def expm(A: Operand) -> Array:  # noqa: N803
    return square(an_array(A), "expm").emit("expm")


def logm(A: Operand, disp: Any = None) -> Array:  # noqa: N803
    """NaN where the logarithm of a real matrix is not real; convert the matrix first where it may not be."""
    return square(an_array(A), "logm").emit("logm")


def sqrtm(A: Operand, disp: Any = None, blocksize: Any = None) -> Array:  # noqa: N803
    """NaN where the root of a real matrix is not real; convert the matrix first where it may not be."""
    return square(an_array(A), "sqrtm").emit("sqrtm")


def expm_frechet(A: Operand, E: Operand, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:  # noqa: N803
    a, e = lifted_as_arrays(square(an_array(A, E), "expm_frechet"), square(an_array(E, A), "expm_frechet"))
    derivative = a.emit("expm_frechet", e)
    return (a.emit("expm"), derivative) if compute_expm else derivative


def _of_exponentials(A: Operand, name: str) -> tuple[Array, Array]:  # noqa: N803
    """Even and odd parts of the exponential; for trigonometric functions of i times the matrix."""
    a = square(an_array(A), name)
    return (a.emit("expm") + (-a).emit("expm")) * 0.5, (a.emit("expm") - (-a).emit("expm")) * 0.5


def cosm(A: Operand) -> Array:  # noqa: N803
    a = square(an_array(A), "cosm")
    return _of_exponentials(a * 1j, "cosm")[0] if a.type.complex else (a * 1j).emit("expm").real


def sinm(A: Operand) -> Array:  # noqa: N803
    a = square(an_array(A), "sinm")
    return _of_exponentials(a * 1j, "sinm")[1] * -1j if a.type.complex else (a * 1j).emit("expm").imag


def tanm(A: Operand) -> Array:  # noqa: N803
    return solve(cosm(A), sinm(A))


def coshm(A: Operand) -> Array:  # noqa: N803
    return _of_exponentials(A, "coshm")[0]


def sinhm(A: Operand) -> Array:  # noqa: N803
    return _of_exponentials(A, "sinhm")[1]


def tanhm(A: Operand) -> Array:  # noqa: N803
    return solve(*_of_exponentials(A, "tanhm"))


# Matrix equations.


def solve_sylvester(a: Operand, b: Operand, q: Operand) -> Array:
    """Of one matrix each."""
    a, b, q = lifted_as_arrays(square(an_array(a, b, q), "solve_sylvester"), square(an_array(b, a, q), "solve_sylvester"), q)
    if a.ndim != 2 or b.ndim != 2 or q.shape != (a.shape[0], b.shape[0]):
        raise ValueError(f"solve_sylvester solves a x + x b = q, which {a.type}, {b.type} and {q.type} do not fit")
    return a.emit("solve_sylvester", b, q)


def solve_continuous_lyapunov(a: Operand, q: Operand) -> Array:
    """a x + x aᴴ = q."""
    a = an_array(a, q)
    return solve_sylvester(a, adjoint(a), q)


def solve_discrete_lyapunov(a: Operand, q: Operand, method: Any = None) -> Array:
    """a x aᴴ - x + q = 0, as one linear system for up to 9 rows, and else by the bilinear transformation, as in SciPy."""
    a, q = lifted_as_arrays(square(an_array(a, q), "solve_discrete_lyapunov"), square(an_array(q, a), "solve_discrete_lyapunov"))
    n = a.shape[-1]
    one = a.constant(np.eye(n), a.dtype)
    if method == "direct" or (method is None and n < 10):
        system = a.constant(np.eye(n * n), a.dtype) - kron(a, a.conj())
        return solve(system, q.reshaped((n * n,))).reshaped((n, n))
    inverse = inv(adjoint(a) + one)
    b = matmul(adjoint(a) - one, inverse)
    c = matmul(matmul(inv(a + one), q), inverse) * 2
    return solve_continuous_lyapunov(adjoint(b), -c)


# Matrices with a structure.


def _vector(x: Operand, like: Operand, name: str) -> Array:
    vector = an_array(x, like)
    if vector.ndim != 1:
        raise UntraceableError(f"scipy.linalg.{name} is traced of vectors, got {vector.type}; write it for each, and np.stack")
    return vector


def toeplitz(c: Operand, r: Operand = None) -> Array:
    c = _vector(c, r, "toeplitz")
    r = c.conj() if r is None else _vector(r, c, "toeplitz")
    c, r = lifted_as_arrays(c, r)
    m, n = c.size, r.size
    return indexed(concatenate([c[::-1], r[1:]]), m - 1 - np.arange(m)[:, None] + np.arange(n))


def hankel(c: Operand, r: Operand = None) -> Array:
    c = _vector(c, r, "hankel")
    c, r = lifted_as_arrays(c, filled(c, 0) if r is None else _vector(r, c, "hankel"))
    return indexed(concatenate([c, r[1:]]), np.arange(c.size)[:, None] + np.arange(r.size))


def circulant(c: Operand) -> Array:
    c = _vector(c, c, "circulant")
    n = c.size
    return indexed(c, (np.arange(n)[:, None] - np.arange(n)) % n) if n else c.reshaped((0, 0))


def block_diag(*arrs: Operand) -> Array:
    """Of matrices; vectors are rows."""
    blocks = lifted_as_arrays(*arrs)
    if any(x.ndim > 2 for x in blocks):
        raise UntraceableError("scipy.linalg.block_diag is traced of vectors and matrices")
    blocks = [x if x.ndim == 2 else x.reshaped((1, x.size)) for x in blocks]
    total, before, rows = sum(x.shape[1] for x in blocks), 0, []
    for x in blocks:
        rows.append(pad(x, ((0, 0), (before, total - before - x.shape[1]))))
        before += x.shape[1]
    return concatenate(rows)


def khatri_rao(a: Operand, b: Operand) -> Array:
    a, b = lifted_as_arrays(a, b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"khatri_rao takes matrices with as many columns, got {a.type} and {b.type}")
    products: Array = a[:, None, :] * b[None, :, :]
    return products.reshaped((a.shape[0] * b.shape[0], a.shape[1]))
