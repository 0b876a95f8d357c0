"""Linear systems, determinants and factors as NumPy functions, against jax.numpy's of the same names.

JAX has rules of its own for solve and slogdet; tidu differentiates through the LU factors. A Cholesky factor is compared of the
Hermitian part, which JAX takes by default (see `tests.jax.differences`).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.jax.lowering.compiled import compiled
from tests.lax.sampling.decomposition_samples import derivative
from tests.tiers import few
from tidu_cli.adapters.jax.functions.function import from_jax
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

RNG = np.random.default_rng(3)
A = RNG.normal(size=(2, 4, 4)) + 2 * np.eye(4)
C = A + 1j * RNG.normal(size=A.shape)
SPD, HERMITIAN = A @ A.mT, C @ C.mT.conj()
B = RNG.normal(size=(2, 4, 3))

REFUSED_TWICE = {"eigvals"}
"""What JAX refuses to differentiate again, since the rule has eigenvectors in it."""


def scipys(np: Any) -> Any:
    """The linalg of SciPy that goes with NumPy or jax.numpy."""
    return importlib.import_module("scipy.linalg" if np.__name__ == "numpy" else "jax.scipy.linalg")


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "solve": (lambda np, a, b: np.linalg.solve(a, b), A, B),
    "solve, complex": (lambda np, a, b: np.linalg.solve(a, b), C, B + 1j),
    "solve for a vector": (lambda np, a, b: np.linalg.solve(a, b), A[0], B[0, :, 0]),
    "inv": (lambda np, a: np.linalg.inv(a), C),
    "det": (lambda np, a: np.linalg.det(a), A),
    "det, complex": (lambda np, a: np.linalg.det(a), C),
    "slogdet": (lambda np, a: np.linalg.slogdet(a)[1], A),
    "slogdet, complex": (lambda np, a: np.linalg.slogdet(a)[1], C),
    "cholesky": (lambda np, a: np.linalg.cholesky((a + a.mT) / 2), SPD),
    "cholesky, complex": (lambda np, a: np.linalg.cholesky((a + a.mT.conj()) / 2), HERMITIAN),
    "matrix_power": (lambda np, a: np.linalg.matrix_power(a, -2), A),
    "qr": (lambda np, a: np.linalg.qr(a)[1], C),
    "qr, complete": (lambda np, a: np.linalg.qr(a, mode="complete")[0], B),
    "svdvals": (lambda np, a: np.linalg.svdvals(a), B + 1j),
    "svd's projectors": (lambda np, a: abs(np.linalg.svd(a, full_matrices=False)[0]), C),
    "eigvalsh": (lambda np, a: np.linalg.eigvalsh(a + a.mT.conj()), C),
    "eigh": (lambda np, a: abs(np.linalg.eigh(a + a.mT.conj())[1]), C),
    "eigvals": (lambda np, a: np.linalg.eigvals(a), C),
    "pinv": (lambda np, a: np.linalg.pinv(a), B),
    "pinv, complex": (lambda np, a: np.linalg.pinv(a), B.mT + 1j),
    "lstsq": (lambda np, a, b: np.linalg.lstsq(a, b)[0], B[0], A[0, 0]),
    "lstsq's residuals": (lambda np, a, b: np.linalg.lstsq(a, b)[1], B[0], A[0, 0]),
    "norm, 2": (lambda np, a: np.linalg.norm(a, 2, axis=(-2, -1)), B),
    "norm, nuc": (lambda np, a: np.linalg.norm(a, "nuc", axis=(-2, -1)), C),
    "cond": (lambda np, a: np.linalg.cond(a), A),
    "multi_dot": (lambda np, a, b: np.linalg.multi_dot([a, a, b]), A[0], B[0]),
    "tensorsolve": (lambda np, a, b: np.linalg.tensorsolve(a, b), A[0].reshape(2, 2, 4), B[0, :, 0].reshape(2, 2)),
    "expm": (lambda np, a: scipys(np).expm(a), C),
    "expm_frechet": (lambda np, a, e: scipys(np).expm_frechet(a, e, compute_expm=False), A[0], A[1]),
    "lu": (lambda np, a: scipys(np).lu(a)[1] @ scipys(np).lu(a)[2] ** 2, A[0]),
    "lu_solve": (lambda np, a, b: scipys(np).lu_solve(scipys(np).lu_factor(a), b, trans=1), A[0], B[0]),
    "cho_solve": (lambda np, a, b: scipys(np).cho_solve(scipys(np).cho_factor((a + a.mT) / 2), b), SPD[0], B[0]),
    "solve_triangular": (lambda np, a, b: scipys(np).solve_triangular(a, b, trans=1), A[0], B[0]),
    "polar": (lambda np, a: scipys(np).polar(a, **({} if np.__name__ == "numpy" else {"method": "svd"}))[0], A[0]),
    "block_diag": (lambda np, a, b: scipys(np).block_diag(a, b) ** 2, A[0], B[0]),
    "toeplitz": (lambda np, a, b: scipys(np).toeplitz(a, b) ** 2, A[0, 0], B[0, :, 0]),
    "cholesky, upper": (lambda np, a: np.linalg.cholesky((a + a.mT.conj()) / 2, upper=True), HERMITIAN),
}


def directions(like: Any) -> Any:
    drawn = np.asarray(RNG.normal(size=like.shape))
    return drawn + 1j * RNG.normal(size=like.shape) if like.dtype.kind == "c" else drawn


def run(document: Any, values: dict[Key, Any]) -> list[Any]:
    program = compile_graph(materialize(document).head, BUILTIN)
    return program.run({i.key: values[i.key] for i in program.inputs})


@pytest.mark.parametrize("name", few(FUNCTIONS, 2))
def test_agrees_with_jax(name: str, jax: Any) -> None:
    function, *operands = FUNCTIONS[name]
    document = trace(lambda x: function(np, *x), operands)
    keys = [Key(f"x.{k}") for k in range(len(operands))]
    x, v = dict(zip(keys, operands, strict=True)), [directions(x) for x in operands]
    (y,) = run(document, x)
    u = directions(np.asarray(y))

    def of_jax(*xs: Any) -> Any:
        return function(jax.numpy, *xs)

    def pulled(*xs: Any) -> Any:
        return jax.vjp(of_jax, *xs)[1](u.conj())

    theirs, tangent = compiled(lambda xs, vs: jax.jvp(of_jax, xs, vs))(tuple(operands), tuple(v))
    np.testing.assert_allclose(y, theirs, 1e-12, 1e-12)
    forward = linearize(document, keys)
    (moved,) = run(forward, x | {key.tangent(1): t for key, t in zip(keys, v, strict=True)})
    np.testing.assert_allclose(moved, tangent, 1e-11, 1e-11)

    output = document.head.outputs[0].key
    reverse = transpose(forward)
    cotangents = dict(zip((o.key for o in reverse.head.outputs), run(reverse, x | {output.cotangent(1): u}), strict=True))
    for key, expected in zip(keys, compiled(pulled)(*operands), strict=True):
        np.testing.assert_allclose(cotangents[key.cotangent(1)], np.conj(expected), 1e-11, 1e-11)

    # Forward over reverse, the cotangent held fixed.
    if name in REFUSED_TWICE:
        with pytest.raises(NotImplementedError):
            jax.jvp(pulled, tuple(operands), tuple(v))
        return
    _, expected = compiled(lambda xs, vs: jax.jvp(pulled, xs, vs))(tuple(operands), tuple(v))
    second = linearize(reverse, keys)
    given = x | {output.cotangent(1): u} | {key.tangent(2): t for key, t in zip(keys, v, strict=True)}
    cotangents = dict(zip((o.key for o in second.head.outputs), run(second, given), strict=True))
    for key, theirs in zip(keys, expected, strict=True):
        ours = cotangents.get(key.cotangent(1).tangent(2), np.zeros(theirs.shape))
        np.testing.assert_allclose(ours, np.conj(theirs), 1e-10, 1e-10 * max(1, abs(theirs).max(initial=0)))


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_determinants_of_jax_at_singular_matrices(rank: int) -> None:
    """JAX's own rule has other derivatives there."""
    import jax.numpy as jnp

    x = np.random.default_rng(0).normal(size=(2, 5, 5))
    x[..., rank:, :] = x[..., :1, :]
    tangents = [np.random.default_rng(k).normal(size=x.shape) for k in (1, 2, 3)]
    for order in (1, 2, 3):
        document, values = from_jax(lambda x: jnp.linalg.det(x), x), {Key("x"): x}
        for k, t in enumerate(tangents[:order], 1):
            document = linearize(document, [Key("x")])
            values[Key("x").tangent(k)] = t
        (ours,) = run(document, values)
        np.testing.assert_allclose(ours, derivative(x, *tangents[:order]), 1e-11, 1e-11)
