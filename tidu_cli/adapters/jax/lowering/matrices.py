"""Determinants, logarithms and square roots of matrices, Sylvester's equation and polar factors, by factors and singular values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from tidu_cli.lax.linear_algebra.determinants import gradient, of_factors

Attrs = dict[str, Any]

_ROOTS = 60
_NODES, _WEIGHTS = (x / 2 for x in np.polynomial.legendre.leggauss(12))
_NODES = _NODES + 0.5
"""Gauss-Legendre quadrature between 0 and 1."""


def _schur(x: Any) -> tuple[Any, Any]:
    """T, Z, where x = Z T Zᴴ, T upper triangular and complex."""
    wide = jnp.result_type(x.dtype, jnp.complex64)
    return tuple(lax.linalg.schur(x.astype(wide)))  # type: ignore[return-value]


def _each(function: Callable[..., Any], attrs: Attrs, *operands: Any) -> Any:
    """A function of matrices that returns one or two of them, of batches of matrices."""
    for _ in range(operands[0].ndim - 2):
        function = jax.vmap(function)
    return function(*operands)


def _root(t: Any) -> Any:
    """The square root of a triangular matrix, by superdiagonals (Å. Björck, S. Hammarling, 1983)."""
    n = t.shape[-1]
    diagonal = jnp.sqrt(jnp.diag(t))
    rows, columns = jnp.arange(n)[:, None], jnp.arange(n)
    sums = diagonal[:, None] + diagonal
    sums = jnp.where(sums == 0, 1, sums)

    def step(k: Any, u: Any) -> Any:
        # Of u nothing is there yet but what is nearer the diagonal, so that its square lacks no more than the two ends.
        return jnp.where(columns - rows == k, (t - u @ u) / sums, u)

    return lax.fori_loop(1, n, step, jnp.diag(diagonal))


def _as_of(x: Any, result: Any, known: Any) -> Any:
    """A complex result as one of x's dtype; NaN unless it is known, and real if x is."""
    if x.dtype.kind != "c":
        size = jnp.max(jnp.abs(result), initial=0)
        known = known & (jnp.max(jnp.abs(result.imag), initial=0) <= 1e3 * jnp.finfo(x.dtype).eps * size)  # type: ignore[no-untyped-call]
        result = result.real
    return jnp.where(known, result, jnp.nan).astype(x.dtype)


def _sqrtm(x: Any) -> Any:
    t, z = _schur(x)
    root = z @ _root(t) @ jnp.conj(z.T)
    error = jnp.max(jnp.abs(root @ root - x), initial=0)
    return _as_of(x, root, error <= 1e4 * jnp.finfo(x.dtype).eps * jnp.max(jnp.abs(x), initial=0))  # type: ignore[no-untyped-call]


def _logm(x: Any) -> Any:
    """Inverse scaling and squaring (N. J. Higham, "Functions of Matrices" (2008), section 11.5)."""
    n = x.shape[-1]
    t, z = _schur(x)
    one = jnp.eye(n, dtype=t.dtype)

    def far(state: Any) -> Any:
        t, k = state
        return (jnp.max(jnp.sum(jnp.abs(t - one), 0), initial=0) > 0.25) & (k < _ROOTS)

    near, k = lax.while_loop(far, lambda state: (_root(state[0]), state[1] + 1), (t, 0))
    moved = near - one
    logarithm = jnp.zeros_like(t)
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):  # ln(1 + x) = ∫ x / (1 + s x) ds from 0 to 1
        logarithm = logarithm + weight * lax.linalg.triangular_solve(one + node * moved, moved, left_side=True)
    logarithm = logarithm * 2.0 ** k.astype(x.real.dtype)  # type: ignore[attr-defined]
    # As good as can be on the diagonal.
    logarithm = jnp.where(one == 1, jnp.diag(jnp.log(jnp.diag(t))), logarithm)
    s = jnp.linalg.svd(x, compute_uv=False)
    known = jnp.all(s > jnp.finfo(x.dtype).eps * jnp.max(s, initial=0)) & (k < _ROOTS)  # type: ignore[no-untyped-call]
    return _as_of(x, z @ logarithm @ jnp.conj(z.T), known)


def _logm_frechet(a: Any, e: Any) -> Any:
    """What the logarithm of [[a, e], [0, a]] has above its diagonal, with e made about as great as a."""
    n = a.shape[-1]
    if not n:
        return e
    size = jnp.max(jnp.abs(e))
    scale = jnp.where(size > 0, jnp.max(jnp.abs(a)) / jnp.where(size > 0, size, 1), 1)
    scale = jnp.where(scale > 0, scale, 1)
    derivative = _logm(jnp.block([[a, e * scale], [jnp.zeros_like(a), a]]))[:n, n:] / scale
    return jnp.where(size == 0, e, derivative)


def _solve_sylvester(a: Any, b: Any, c: Any) -> Any:
    """R. H. Bartels, G. W. Stewart, "Solution of the matrix equation AX + XB = C" (1972)."""
    m, n = c.shape
    if not c.size:
        return c
    (r, u), (s, v) = _schur(a), _schur(b)
    due = jnp.conj(u.T) @ c @ v
    one = jnp.eye(m, dtype=r.dtype)

    def step(k: Any, y: Any) -> Any:
        # Columns of y from k on are 0.
        column = due[:, k] - y @ s[:, k]
        solved = lax.linalg.triangular_solve(r + s[k, k] * one, column[:, None], left_side=True)
        return y.at[:, k].set(solved[:, 0])

    solution = u @ lax.fori_loop(0, n, step, jnp.zeros_like(due)) @ jnp.conj(v.T)
    apart = jnp.min(jnp.abs(jnp.diag(r)[:, None] + jnp.diag(s)))
    known = apart > jnp.finfo(c.dtype).eps * jnp.maximum(jnp.max(jnp.abs(r)), jnp.max(jnp.abs(s)))  # type: ignore[no-untyped-call]
    return jnp.where(known, solution if c.dtype.kind == "c" else solution.real, jnp.nan).astype(c.dtype)


def _polar(attrs: Attrs, x: Any) -> tuple[Any, Any]:
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    return u @ vh, jnp.conj(vh.mT) @ (s[..., :, None] * vh)


MATRICES: dict[str, Callable[..., Any]] = {
    "det": lambda attrs, x: of_factors(jnp, *lax.linalg.lu(x)[:2]),
    "cofactors": lambda attrs, *operands: gradient(jnp, *operands),
    "sqrtm": partial(_each, _sqrtm),
    "logm": partial(_each, _logm),
    "logm_frechet": partial(_each, _logm_frechet),
    "solve_sylvester": partial(_each, _solve_sylvester),
    "polar": _polar,
}
"""By op, of attrs and arrays."""
