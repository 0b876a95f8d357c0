"""Linear systems, determinants and factors as NumPy functions, against jax.numpy's of the same names.

JAX has rules of its own for solve and slogdet; tidu differentiates through the LU factors. A Cholesky factor is compared of the
Hermitian part, which JAX takes by default (see `tests.jax.differences`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidu_cli.build.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.lax.builtin import BUILTIN
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
    "cholesky, upper": (lambda np, a: np.linalg.cholesky((a + a.mT.conj()) / 2, upper=True), HERMITIAN),
}


def directions(like: Any) -> Any:
    drawn = np.asarray(RNG.normal(size=like.shape))
    return drawn + 1j * RNG.normal(size=like.shape) if like.dtype.kind == "c" else drawn


def run(document: Any, values: dict[Key, Any]) -> list[Any]:
    program = compile_graph(materialize(document).head, BUILTIN)
    return program.run({i.key: values[i.key] for i in program.inputs})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_jax(name: str, jax: Any) -> None:
    function, *operands = FUNCTIONS[name]
    document = trace(lambda x: function(np, *x), operands)
    keys = [Key(f"x.{k}") for k in range(len(operands))]
    x, v = dict(zip(keys, operands, strict=True)), [directions(x) for x in operands]
    (y,) = run(document, x)
    u = directions(np.asarray(y))

    theirs, tangent = jax.jvp(lambda *xs: function(jax.numpy, *xs), tuple(operands), tuple(v))
    np.testing.assert_allclose(y, theirs, 1e-12, 1e-12)
    forward = linearize(document, keys)
    (found,) = run(forward, x | {key.tangent(1): t for key, t in zip(keys, v, strict=True)})
    np.testing.assert_allclose(found, tangent, 1e-11, 1e-11)

    _, pull = jax.vjp(lambda *xs: function(jax.numpy, *xs), *operands)
    output = document.head.outputs[0].key
    reverse = transpose(forward)
    found = dict(zip((o.key for o in reverse.head.outputs), run(reverse, x | {output.cotangent(1): u}), strict=True))
    for key, expected in zip(keys, pull(u.conj()), strict=True):
        np.testing.assert_allclose(found[key.cotangent(1)], np.conj(expected), 1e-11, 1e-11)
