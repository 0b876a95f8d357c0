"""Calling LAPACK, and the phases of vectors, of which it chooses some.

Of matrices for which it fails the results are NaN, and no other matrix of a batch suffers for it. It is not called for matrices
with infinities or NaN: it may iterate for ever on them, or complain on standard output.

The phases of eigenvectors and singular vectors are complex numbers of magnitude 1 that nothing else determines.
LAPACK's geev makes the component of greatest magnitude real and positive, so that the vectors are functions of the matrix with
derivatives, but where two components are as great. We do the same with the vectors of Hermitian matrices and singular vectors.
What does not depend on the phases has the derivatives that it has with any others, such as those of H.-Q. Wan, S.-X. Zhang,
"Automatic differentiation for complex valued SVD" (2019), and of A. Francuz, N. Schuch, B. Vanhecke, "Stable and efficient
differentiation of tensor network algorithms" (2023), where only such functions are to be differentiated. The sign of real vectors
is that of LAPACK, and locally constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.linear_algebra.matrices import at_greatest
from tidu_cli.rules.contract import Kernel, Types
from tidu_cli.rules.families import conj
from tidu_cli.rules.terms import Term


def of_batches(np: Any, function: Callable[..., Any], operands: Types, results: Types) -> Kernel:
    """A kernel of a function of batches of matrices, which gives a tuple of results, and raises where LAPACK fails."""
    by_one = of_each(np, function, operands, results)

    def run(*arrays: Any) -> Any:
        if not all(np.isfinite(x).all() for x in arrays):
            return by_one(*arrays)
        try:
            return _typed(np, function(*arrays), results)
        except (np.linalg.LinAlgError, ValueError):
            return by_one(*arrays)  # some have failed; NumPy does not say which

    return run


def of_each(np: Any, function: Callable[..., Any], operands: Types, results: Types) -> Kernel:
    """A kernel of a function of single matrices, which gives a tuple of results, and raises where LAPACK fails.

    Iterations that do not converge are such failures.
    """
    batch = operands[0].shape[:-2]
    nothing = [np.nan if t.inexact else 0 for t in results]

    def run(*arrays: Any) -> Any:
        outputs = [np.empty(t.shape, numpy_dtype(np, t.dtype)) for t in results]
        for k in np.ndindex(*batch):
            matrices = [x[k] for x in arrays]
            try:
                parts = function(*matrices) if all(np.isfinite(x).all() for x in matrices) else nothing
            except (np.linalg.LinAlgError, ValueError):
                parts = nothing
            for whole, one in zip(outputs, parts, strict=True):
                whole[k] = one
        return _typed(np, outputs, results)

    return run


def _typed(np: Any, outputs: Any, results: Types) -> Any:
    arrays = [np.asarray(x, numpy_dtype(np, t.dtype)) for x, t in zip(outputs, results, strict=True)]
    return arrays if len(results) > 1 else arrays[0]


def adjoint_of(np: Any, x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return np.conj(np.swapaxes(x, -1, -2))


def phases(np: Any, v: Any) -> Any:
    """By which the columns of matrices are to be multiplied, as matrices of one row."""
    greatest = _greatest(np, v)
    size = np.abs(greatest)
    zero = size == 0
    return np.where(zero, 1, np.conj(greatest) / np.where(zero, 1, size)).astype(v.dtype)


def turned_by(np: Any, v: Any, phase: Any) -> Any:
    """The columns multiplied by their phases, the component of greatest magnitude exactly real."""
    turned = np.multiply(v, phase, order="C")
    flat, rows = turned.reshape(-1, *turned.shape[-2:]), np.abs(v).argmax(-2).reshape(-1, v.shape[-1])
    at = np.arange(len(rows))[:, None], rows, np.arange(v.shape[-1])
    flat[at] = flat[at].real
    return turned


def _greatest(np: Any, v: Any) -> Any:
    """The components of greatest magnitude, as matrices of one row."""
    flat, rows = v.reshape(-1, *v.shape[-2:]), np.abs(v).argmax(-2).reshape(-1, v.shape[-1])
    return flat[np.arange(len(rows))[:, None], rows, np.arange(v.shape[-1])].reshape(*v.shape[:-2], 1, v.shape[-1])


def turning(v: Term, dv: Term) -> Term:
    """The rates of the phases, imaginary, by which tangents dv of the columns of v keep the greatest components real.

    They are a number for each column, in matrices of one row.
    """
    ratio = at_greatest(v, dv) / at_greatest(v, v)
    return (ratio - conj(ratio)) * -0.5
