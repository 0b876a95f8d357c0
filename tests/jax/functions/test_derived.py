"""tidu.grad(f) and its like give what JAX's functions give: values, structures, shapes and dtypes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tidu
from tests.cli.running import invoke, succeed
from tests.tiers import few

pytestmark = pytest.mark.jax

RNG = np.random.default_rng(7)
PARAMS = {"w": RNG.normal(size=(2, 3)), "b": (RNG.normal(size=2), 0.3)}
X = RNG.normal(size=3)


def loss(xp: ModuleType) -> Callable[..., Any]:
    return lambda p, x, n=2: xp.sum(xp.tanh(p["w"] @ x + p["b"][0]) ** n) * xp.exp(p["b"][1])


def several(xp: ModuleType) -> Callable[..., Any]:
    return lambda p, x: {"a": xp.sin(p["w"] @ x), "b": [p["b"][1] * x]}


def nested(xp: ModuleType, grad: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: xp.sum(grad(lambda z: xp.sum(z**3 * x) * y)(x) * xp.sin(x))


def looped(xp: ModuleType, scan: Callable[..., Any], grad: Callable[..., Any]) -> Callable[..., Any]:
    def run(w: Any) -> Any:
        def step(c: Any, t: Any) -> Any:
            return c - 0.1 * grad(lambda c: xp.sum((c * t - w) ** 2))(c), None

        return xp.sum(scan(step, w * 0.0 + 1.0, np.arange(1.0, 4.0))[0])

    return run


def require_same(ours: Any, theirs: Any) -> None:
    leaves, tree = jax.tree.flatten(ours)
    due, due_tree = jax.tree.flatten(theirs)
    assert tree == due_tree
    for x, y in zip(leaves, due, strict=True):
        assert (np.shape(x), np.asarray(x).dtype) == (np.shape(y), y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("wrt", few([0, (1, 0), 1, (0, 1)], 2))
def test_derivatives_by_arguments(wrt: Any) -> None:
    with jax.enable_x64(True):
        require_same(tidu.grad(loss(np), wrt)(PARAMS, X), jax.jit(jax.grad(loss(jnp), wrt))(PARAMS, X))
        require_same(
            tidu.value_and_grad(loss(np), wrt)(PARAMS, X, 3),
            jax.jit(jax.value_and_grad(loss(jnp), wrt), static_argnums=2)(PARAMS, X, 3),
        )
        require_same(tidu.hessian(loss(np), wrt)(PARAMS, X), jax.jit(jax.hessian(loss(jnp), wrt))(PARAMS, X))
        require_same(tidu.jacobian(several(np), wrt)(PARAMS, X), jax.jit(jax.jacrev(several(jnp), wrt))(PARAMS, X))
        require_same(tidu.jacobian(several(np), wrt, forward=True)(PARAMS, X), jax.jit(jax.jacfwd(several(jnp), wrt))(PARAMS, X))


def test_products() -> None:
    tangents = ({"w": RNG.normal(size=(2, 3)), "b": (RNG.normal(size=2), 0.7)}, RNG.normal(size=3))
    with jax.enable_x64(True):
        require_same(
            tidu.jvp(several(np))((PARAMS, X), tangents), jax.jit(lambda *x: jax.jvp(several(jnp), *x))((PARAMS, X), tangents)
        )
        value, pullback = tidu.vjp(several(np))(PARAMS, X)
        due, their_pullback = jax.vjp(several(jnp), PARAMS, X)
        require_same(value, due)
        cotangents = jax.tree.map(lambda y: np.asarray(y) * 0.5 + 1, due)
        require_same(pullback(cotangents), their_pullback(cotangents))
        due = jax.jit(lambda *x: jax.jvp(jax.grad(loss(jnp), (0, 1)), *x)[1])((PARAMS, X), tangents)
        require_same(tidu.hvp(loss(np))((PARAMS, X), tangents), due)


def test_derivatives_of_derivatives() -> None:
    with jax.enable_x64(True):
        require_same(tidu.grad(nested(np, tidu.grad), (0, 1))(X, 2.0), jax.jit(jax.grad(nested(jnp, jax.grad), (0, 1)))(X, 2.0))
        require_same(tidu.hessian(nested(np, tidu.grad))(X, 2.0), jax.jit(jax.hessian(nested(jnp, jax.grad)))(X, 2.0))
        require_same(tidu.grad(looped(np, tidu.scan, tidu.grad))(X), jax.jit(jax.grad(looped(jnp, jax.lax.scan, jax.grad)))(X))
        require_same(tidu.grad(tidu.grad(tidu.grad(np.sin)))(0.4), jax.jit(jax.grad(jax.grad(jax.grad(jnp.sin))))(0.4))
    require_same(tidu.grad(lambda x: np.sum(x**2))(X.astype("f4")), jax.grad(lambda x: jnp.sum(x**2))(X.astype("f4")))


def test_every_command_that_takes_a_function_takes_one_of_jax(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("import jax.numpy as jnp\n\n\ndef loss(p, x):\n    return jnp.sum(jnp.tanh(p['w'] * x))\n")
    (tmp_path / "data.json").write_text('{"p": {"w": [0.5, 1]}, "x": [1, 2]}')
    source, data = f"{tmp_path}/f.py:loss", str(tmp_path / "data.json")
    values = json.loads(succeed("grad", source, "--jax", "--inputs", data, "--wrt", "p"))
    np.testing.assert_allclose(values["p.w@-1"], np.array([1, 2]) / np.cosh([0.5, 2]) ** 2)
    built = succeed("build", source, "--jax", "--types", data)
    gradient = succeed("grad", source, "--jax", "--types", data)
    assert (
        succeed("grad", input=built) == gradient
        and "tanh" in succeed("show", source, "--jax", "-i", "p.w:f64[2]", "-i", "x:f64[2]").decode()
    )
    assert invoke("grad", source, "--inputs", data).stderr.endswith("of a function of JAX say so, with --jax\n")
    refused = invoke("grad", "x**2", "--jax", "--set", "x=1")
    assert refused.exit_code == 2 and refused.stderr.endswith("--jax takes FILE.py:FUNCTION, not 'x**2'\n")
