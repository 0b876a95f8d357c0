"""The phases of eigenvectors and singular vectors, which are complex numbers of magnitude 1 that nothing else determines.

LAPACK's geev makes the component of greatest magnitude real and positive, so that the vectors are functions of the matrix with
derivatives, but where two components are as great. We do the same with the vectors of Hermitian matrices and singular vectors.
What does not depend on the phases has the derivatives that it has with any others, such as those of H.-Q. Wan, S.-X. Zhang,
"Automatic differentiation for complex valued SVD" (2019), and of A. Francuz, N. Schuch, B. Vanhecke, "Stable and efficient
differentiation of tensor network algorithms" (2023), where only such functions are to be differentiated. The sign of real vectors
is that of LAPACK, and locally constant.
"""

from __future__ import annotations

from typing import Any

from tidu_cli.lax.linear_algebra.matrices import at_greatest
from tidu_cli.rules.families import conj
from tidu_cli.rules.terms import Term


def phases(np: Any, v: Any) -> Any:
    """By which the columns of matrices are to be multiplied, as matrices of one row."""
    greatest = _greatest(np, v)
    size = np.abs(greatest)
    zero = size == 0
    return np.where(zero, 1, np.conj(greatest) / np.where(zero, 1, size)).astype(v.dtype)


def turned_by(np: Any, v: Any, phase: Any) -> Any:
    """The columns multiplied by their phases, the component of greatest magnitude exactly real."""
    found = np.multiply(v, phase, order="C")
    flat, rows = found.reshape(-1, *found.shape[-2:]), np.abs(v).argmax(-2).reshape(-1, v.shape[-1])
    at = np.arange(len(rows))[:, None], rows, np.arange(v.shape[-1])
    flat[at] = flat[at].real
    return found


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
