"""Functions of jax.numpy.linalg, jax.numpy.fft, jax.scipy.linalg and jax.scipy.special, fed as jaxprs: value, JVP, VJP and HVP.

What is refused is listed with the reason, and a test says when it no longer is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax
js, jl, jsp = jax.scipy.linalg, jnp.linalg, jax.scipy.special

from tests.jax.functions.agreement import compared  # noqa: E402
from tests.tiers import few  # noqa: E402
from tidu_cli.adapters.numpy.errors import BuildError  # noqa: E402
from tidu_cli.errors import MissingRuleError  # noqa: E402

pytestmark = pytest.mark.jax

RNG = np.random.default_rng(11)
A = RNG.standard_normal((3, 3)) + 3 * np.eye(3)
B = RNG.standard_normal((3, 2))
W = RNG.standard_normal((2, 4))
T = RNG.standard_normal((4, 2))
V = RNG.standard_normal(3)
S = A @ A.T
Z = A + 1j * RNG.standard_normal((3, 3))
H = Z @ Z.conj().T
U = RNG.standard_normal(8)
C = RNG.standard_normal(8) + 1j * RNG.standard_normal(8)
G = RNG.standard_normal((4, 6))
P, Q, R = np.array([0.3, 1.7, 4.2]), np.array([0.9, 2.4, 1.1]), np.array([0.2, 0.55, 0.8])


def symmetric(a: Any) -> Any:
    """Of factors of one triangle derivatives are by that alone here, and by both in JAX."""
    return (a + a.T) / 2


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "linalg.cholesky": (jl.cholesky, (S,)),
    "linalg.cholesky complex": (jl.cholesky, (H,)),
    "linalg.cond": (jl.cond, (A,)),
    "linalg.cross": (jl.cross, (V, B[:, 0])),
    "linalg.det": (jl.det, (A,)),
    "linalg.det 4": (jl.det, (np.kron(A[:2, :2], A[:2, :2]),)),
    "linalg.diagonal": (jl.diagonal, (A,)),
    "linalg.eig values": (lambda a: jl.eig(a)[0], (A,)),
    "linalg.eigh values": (lambda a: jl.eigh(a)[0], (S,)),
    "linalg.eigh projectors": (lambda a: (lambda w, v: v[:, :1] @ v[:, :1].T * w)(*jl.eigh(a)), (S,)),
    "linalg.eigvals": (jl.eigvals, (A,)),
    "linalg.eigvalsh": (jl.eigvalsh, (S,)),
    "linalg.inv": (jl.inv, (A,)),
    "linalg.inv complex": (jl.inv, (Z,)),
    "linalg.lstsq": (lambda a, b: jl.lstsq(a, b)[0], (T, np.arange(4.0))),
    "linalg.matmul": (jl.matmul, (A, B)),
    "linalg.matrix_norm": (jl.matrix_norm, (A,)),
    "linalg.matrix_power": (lambda a: jl.matrix_power(a, 5), (A,)),
    "linalg.matrix_power -2": (lambda a: jl.matrix_power(a, -2), (A,)),
    "linalg.matrix_rank": (jl.matrix_rank, (A,)),
    "linalg.matrix_transpose": (jl.matrix_transpose, (A,)),
    "linalg.multi_dot": (lambda *x: jl.multi_dot(x), (A, B, W)),
    "linalg.norm": (jl.norm, (A,)),
    "linalg.norm nuc": (lambda a: jl.norm(a, "nuc"), (A,)),
    "linalg.norm 2": (lambda a: jl.norm(a, 2), (A,)),
    "linalg.norm 1": (lambda a: jl.norm(a, 1), (A,)),
    "linalg.outer": (jl.outer, (V, V)),
    "linalg.pinv": (jl.pinv, (T,)),
    "linalg.qr": (lambda a: tuple(jl.qr(a)), (T,)),
    "linalg.qr complex": (lambda a: tuple(jl.qr(a)), (Z,)),
    "linalg.slogdet": (lambda a: tuple(jl.slogdet(a)), (A,)),
    "linalg.slogdet complex": (lambda a: jl.slogdet(a)[1], (Z,)),
    "linalg.solve": (jl.solve, (A, B)),
    "linalg.solve vector": (jl.solve, (A, V)),
    "linalg.solve complex": (jl.solve, (Z, B + 0j)),
    "linalg.solve batched": (jax.vmap(jl.solve), (np.stack([A, S]), np.stack([B, -B]))),
    "linalg.svd values": (lambda a: jl.svd(a, compute_uv=False), (T,)),
    "linalg.svd product": (lambda a: (lambda u, s, v: (u * s**2) @ v)(*jl.svd(a, full_matrices=False)), (T,)),
    "linalg.svdvals": (jl.svdvals, (A,)),
    "linalg.tensordot": (jl.tensordot, (A, A)),
    "linalg.tensorinv": (lambda a: jl.tensorinv(a, 1), (A,)),
    "linalg.tensorsolve": (jl.tensorsolve, (A, V)),
    "linalg.trace": (jl.trace, (A,)),
    "linalg.vecdot": (jl.vecdot, (V, V)),
    "linalg.vector_norm": (jl.vector_norm, (V,)),
    "fft.fft": (jnp.fft.fft, (C,)),
    "fft.ifft": (jnp.fft.ifft, (C,)),
    "fft.rfft": (jnp.fft.rfft, (U,)),
    "fft.irfft": (jnp.fft.irfft, (C[:5],)),
    "fft.irfft odd": (lambda x: jnp.fft.irfft(x, 7), (C[:4],)),
    "fft.hfft": (jnp.fft.hfft, (C[:5],)),
    "fft.ihfft": (jnp.fft.ihfft, (U,)),
    "fft.fft2": (jnp.fft.fft2, (G + 1j * G[::-1],)),
    "fft.ifft2": (jnp.fft.ifft2, (G + 1j * G[::-1],)),
    "fft.rfft2": (jnp.fft.rfft2, (G,)),
    "fft.irfft2": (jnp.fft.irfft2, (G + 1j * G[::-1],)),
    "fft.fftn": (jnp.fft.fftn, (G + 1j * G[::-1],)),
    "fft.ifftn": (jnp.fft.ifftn, (G + 1j * G[::-1],)),
    "fft.rfftn ortho": (lambda x: jnp.fft.rfftn(x, norm="ortho"), (G,)),
    "fft.irfftn": (jnp.fft.irfftn, (G + 1j * G[::-1],)),
    "fft.fftshift": (jnp.fft.fftshift, (U,)),
    "fft.ifftshift": (jnp.fft.ifftshift, (U,)),
    "fft.fft padded": (lambda x: jnp.fft.fft(x, 11), (C,)),
    "scipy.linalg.block_diag": (js.block_diag, (A, B)),
    "scipy.linalg.cho_factor": (lambda a: jnp.tril(js.cho_factor(symmetric(a), lower=True)[0]), (S,)),
    "scipy.linalg.cho_solve": (lambda a, b: js.cho_solve(js.cho_factor(symmetric(a)), b), (S, V)),
    "scipy.linalg.cholesky": (lambda a: js.cholesky(symmetric(a)), (S,)),
    "scipy.linalg.det": (js.det, (A,)),
    "scipy.linalg.eigh": (lambda a: js.eigh(a, eigvals_only=True), (S,)),
    "scipy.linalg.expm": (js.expm, (A / 3,)),
    "scipy.linalg.expm_frechet": (lambda a, e: js.expm_frechet(a, e, compute_expm=False), (A / 3, S / 9)),
    "scipy.linalg.hessenberg": (js.hessenberg, (A,)),
    "scipy.linalg.inv": (js.inv, (A,)),
    "scipy.linalg.lu": (js.lu, (A,)),
    "scipy.linalg.lu_factor": (lambda a: js.lu_factor(a)[0], (A,)),
    "scipy.linalg.lu_solve": (lambda a, b: js.lu_solve(js.lu_factor(a), b), (A, V)),
    "scipy.linalg.polar": (js.polar, (A,)),
    "scipy.linalg.qr": (js.qr, (A,)),
    "scipy.linalg.schur": (js.schur, (A,)),
    "scipy.linalg.solve": (js.solve, (A, V)),
    "scipy.linalg.solve pos": (lambda a, b: js.solve(symmetric(a), b, assume_a="pos"), (S, V)),
    "scipy.linalg.solve_triangular": (js.solve_triangular, (A, B)),
    "scipy.linalg.solve_triangular lower": (lambda a, b: js.solve_triangular(a, b, lower=True, trans=1), (A, B)),
    "scipy.linalg.sqrtm": (js.sqrtm, (S,)),
    "scipy.linalg.svd": (lambda a: js.svd(a, compute_uv=False), (T,)),
    "scipy.linalg.toeplitz": (js.toeplitz, (V, V)),
    "scipy.special.bernoulli": (lambda x: x * jsp.bernoulli(4), (P[0],)),
    "scipy.special.beta": (jsp.beta, (P, Q)),
    "scipy.special.betainc": (jsp.betainc, (P, Q, R)),
    "scipy.special.betaln": (jsp.betaln, (P, Q)),
    "scipy.special.digamma": (jsp.digamma, (P,)),
    "scipy.special.entr": (jsp.entr, (P,)),
    "scipy.special.erf": (jsp.erf, (P,)),
    "scipy.special.erfc": (jsp.erfc, (P,)),
    "scipy.special.erfinv": (jsp.erfinv, (R,)),
    "scipy.special.exp1": (jsp.exp1, (P,)),
    "scipy.special.expi": (jsp.expi, (P,)),
    "scipy.special.expit": (jsp.expit, (P,)),
    "scipy.special.factorial": (jsp.factorial, (P,)),
    "scipy.special.gamma": (jsp.gamma, (P,)),
    "scipy.special.gammainc": (jsp.gammainc, (P, Q)),
    "scipy.special.gammaincc": (jsp.gammaincc, (P, Q)),
    "scipy.special.gammaln": (jsp.gammaln, (P,)),
    "scipy.special.gammasgn": (jsp.gammasgn, (P,)),
    "scipy.special.hyp1f1": (jsp.hyp1f1, (P, Q, R)),
    "scipy.special.hyp2f1": (jsp.hyp2f1, (P, Q, R, R)),
    "scipy.special.i0": (jsp.i0, (P,)),
    "scipy.special.i0e": (jsp.i0e, (P,)),
    "scipy.special.i1": (jsp.i1, (P,)),
    "scipy.special.i1e": (jsp.i1e, (P,)),
    "scipy.special.kl_div": (jsp.kl_div, (P, Q)),
    "scipy.special.log_ndtr": (jsp.log_ndtr, (P - 1,)),
    "scipy.special.log_softmax": (jsp.log_softmax, (P,)),
    "scipy.special.logit": (jsp.logit, (R,)),
    "scipy.special.logsumexp": (jsp.logsumexp, (P,)),
    "scipy.special.multigammaln": (lambda x: jsp.multigammaln(x, 3), (P + 1,)),
    "scipy.special.ndtr": (jsp.ndtr, (P,)),
    "scipy.special.ndtri": (jsp.ndtri, (R,)),
    "scipy.special.poch": (jsp.poch, (P, Q)),
    "scipy.special.polygamma": (lambda x: jsp.polygamma(2, x), (P,)),
    "scipy.special.rel_entr": (jsp.rel_entr, (P, Q)),
    "scipy.special.sici": (jsp.sici, (P,)),
    "scipy.special.softmax": (jsp.softmax, (P,)),
    "scipy.special.spence": (jsp.spence, (P,)),
    "scipy.special.xlog1py": (jsp.xlog1py, (P, Q)),
    "scipy.special.xlogy": (jsp.xlogy, (P, Q)),
    "scipy.special.zeta": (lambda x: jsp.zeta(x, 1.5), (P + 2,)),
}

WHOLE, TO_VJP, TO_JVP, VALUE = {}, {"second": False}, {"reverse": False}, {"forward": False}

OF_JAX = "JAX has no such derivative"
LOOPS = "its while has no reverse mode, in JAX neither"
LESS: dict[str, tuple[dict[str, bool], str]] = {
    "linalg.eig values": (VALUE, OF_JAX),
    "linalg.eigvals": (TO_VJP, OF_JAX),
    "scipy.linalg.polar": (TO_JVP, LOOPS),
    "scipy.linalg.schur": (VALUE, OF_JAX),
    "scipy.linalg.sqrtm": (VALUE, OF_JAX),
    "scipy.special.betainc": (VALUE, OF_JAX),
    "scipy.special.exp1": (TO_VJP, OF_JAX),
    "scipy.special.gammainc": (TO_VJP, OF_JAX),
    "scipy.special.gammaincc": (TO_VJP, OF_JAX),
}
"""What is compared of functions of which not all can be, and why."""

REFUSED = {"scipy.linalg.hessenberg": "hessenberg"}
"""Functions that have an equation which is no operation here: a factorization that LAPACK keeps to itself."""


@pytest.mark.parametrize("name", few([name for name in CASES if name not in REFUSED], 4))
def test_agrees_with_jax(name: str) -> None:
    function, args = CASES[name]
    extent, _ = LESS.get(name, (WHOLE, ""))
    with np.errstate(all="ignore"):
        distances = compared(function, *args, **extent)
    for kind, distance in distances.items():
        assert distance < 1e-10, f"{kind}: {distance}"


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_for_an_equation(name: str) -> None:
    with pytest.raises(BuildError, match=REFUSED[name]):
        compared(CASES[name][0], *CASES[name][1])


@pytest.mark.parametrize("name", [name for name, (_, why) in LESS.items() if why is LOOPS])
def test_has_no_reverse_mode(name: str) -> None:
    with pytest.raises(MissingRuleError, match="use scan"):
        compared(CASES[name][0], *CASES[name][1])
