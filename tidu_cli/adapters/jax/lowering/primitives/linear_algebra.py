"""Matrices: factorizations, which on CPUs are LAPACK's as they are in NumPy, and what comes of them.

Phases that nothing else determines are chosen as `tidu_cli.lax.linear_algebra.lapack` has them.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp
from jax.scipy.linalg import expm

Attrs = dict[str, Any]


def _adjoint(x: Any) -> Any:
    return jnp.conj(x.mT)


def _phases(v: Any) -> Any:
    """By which columns are to be multiplied so that their greatest components are real and positive."""
    if not v.size:
        return jnp.ones((*v.shape[:-2], 1, v.shape[-1]), v.dtype)
    greatest = jnp.take_along_axis(v, jnp.argmax(abs(v), axis=-2, keepdims=True), -2)
    size = abs(greatest)
    zero = size == 0
    return jnp.where(zero, 1, jnp.conj(greatest) / jnp.where(zero, 1, size)).astype(v.dtype)


def _eigh(attrs: Attrs, x: Any) -> Any:
    v, w = lax.linalg.eigh(x, lower=attrs["lower"], symmetrize_input=False, sort_eigenvalues=attrs["sort_eigenvalues"])
    return (v * _phases(v), w) if x.dtype.kind == "c" else (v, w)


def _svd(attrs: Attrs, x: Any) -> Any:
    if not attrs["compute_uv"]:
        return (lax.linalg.svd(x, compute_uv=False),)
    u, s, vh = lax.linalg.svd(x, full_matrices=False)
    if x.dtype.kind == "c":
        phase = _phases(u)
        u, vh = u * phase, vh * _adjoint(phase)
    m, n = x.shape[-2:]
    # The columns that complete U, or V, are a function of the others.
    if attrs["full_matrices"] and m > n:
        u = jnp.concatenate([u, lax.linalg.qr(u)[0][..., n:]], -1)
    if attrs["full_matrices"] and n > m:
        vh = jnp.concatenate([vh, _adjoint(lax.linalg.qr(_adjoint(vh))[0][..., m:])], -2)
    return s, u, vh


def _expm_frechet(attrs: Attrs, a: Any, e: Any) -> Any:
    return jax.jvp(expm, (a,), (e,))[1]


FUNCTIONS = {
    # As the primitive: the function of jax.numpy takes away what is above the diagonal.
    "cholesky": lambda attrs, x: lax.linalg.cholesky(x, symmetrize_input=False),
    "triangular_solve": lambda attrs, a, b: lax.linalg.triangular_solve(a, b, **attrs),
    "lu": lambda attrs, x: lax.linalg.lu(x),
    "lu_pivots_to_permutation": lambda attrs, x: lax.linalg.lu_pivots_to_permutation(x, **attrs),
    "qr": lambda attrs, x: lax.linalg.qr(x, **attrs),
    "svd": _svd,
    "pinv": lambda attrs, x: jnp.linalg.pinv(x, rtol=attrs["rtol"]),
    "eigh": _eigh,
    "eig": lambda attrs, x: lax.linalg.eig(x, **attrs),
    "schur": lambda attrs, x: lax.linalg.schur(x, **attrs),
    "expm": lambda attrs, x: expm(x),
    "expm_frechet": _expm_frechet,
}
"""By op, of attrs and arrays."""
