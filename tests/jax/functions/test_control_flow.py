"""Loops and branches against JAX: values, JVP, VJP and HVP of functions, fed as jaxprs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax

import tidu_cli  # noqa: E402
from tests.jax.functions.agreement import compared  # noqa: E402
from tests.tiers import few  # noqa: E402
from tidu_cli.adapters.jax.functions.function import from_jax  # noqa: E402
from tidu_cli.adapters.numpy.errors import BuildError  # noqa: E402

pytestmark = pytest.mark.jax


def recurrence(k: Any, x: Any, u: Any) -> Any:
    def step(x: Any, u: Any) -> Any:
        x = jnp.sin(k) * x * x + u
        return x, jnp.cos(x)

    x, ys = lax.scan(step, x, u)
    return x * ys.sum(), ys


def cells(w: Any, h: Any, xs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        h, n = carry
        h = jnp.tanh(w @ h + x)
        return (h, n + 1), h * n

    (h, n), ys = lax.scan(step, (h, 0), xs, reverse=True)
    return (h**2).sum() * n + ys.sum()


def growing(a: Any, x: Any) -> Any:
    """What is carried carries a tangent only after some steps."""

    def step(carry: Any, _: Any) -> Any:
        p, q, r = carry
        return (q, r, r * a + p), None

    return lax.scan(step, (jnp.float64(1.0), jnp.float64(2.0), x), None, length=7)[0]


def branches(x: Any, y: Any) -> Any:
    def three(x: Any, y: Any) -> Any:
        return x * y, jnp.sin(x)

    return lax.switch(
        (x > 1).astype("i4") + (y > 0).astype("i4"),
        [lambda x, y: (jnp.exp(x), y), lambda x, y: (jnp.float64(3.0), x * jnp.cos(y)), three],
        x,
        y,
    )


def nested(a: Any, x: Any) -> Any:
    """A branch in a loop in a branch in a loop."""

    def outer(x: Any, k: Any) -> Any:
        def inner(y: Any, _: Any) -> Any:
            y = lax.cond(y > a, lambda y: y * jnp.sin(a), lambda y: y + a * k, y)
            return y, y * x

        y, zs = lax.scan(inner, x * k, None, length=3)
        return lax.cond(k > 2, lambda: y * y, lambda: zs.sum()), y

    return lax.scan(outer, x, jnp.arange(1.0, 5.0))


def newton(a: Any, x: Any) -> Any:
    def step(carry: Any) -> Any:
        x, n = carry
        return 0.5 * (x + a / x), n + 1

    x, n = lax.while_loop(lambda c: jnp.abs(c[0] * c[0] - a) > 1e-9, step, (x, 0))
    return x * n


def loop_in_loop(a: Any, x: Any) -> Any:
    def step(x: Any, k: Any) -> Any:
        return newton(a + k, x), a * x

    return lax.scan(step, x, jnp.arange(4.0))


def invariant(a: Any, w: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        return c + jnp.exp(a @ w) @ x, jnp.exp(a @ w)[0] * c

    return lax.scan(step, jnp.zeros(3), xs)


def counted(a: Any, x: Any) -> Any:
    """fori_loop, which is a scan where both ends are known."""
    return lax.fori_loop(0, 5, lambda k, s: jnp.sin(a * s) + k * x, x)


def pytree(params: dict[str, Any], xs: dict[str, Any]) -> Any:
    def step(carry: dict[str, Any], x: dict[str, Any]) -> Any:
        h = jnp.tanh(params["w"] @ carry["h"] + x["u"] * carry["c"])
        return {"h": h, "c": carry["c"] * x["v"] + 1}, {"out": h.sum()}

    last, ys = lax.scan(step, {"h": jnp.ones(3), "c": jnp.float64(0.5)}, xs)
    return last["h"].sum() * last["c"], ys["out"]


def associative(x: Any) -> Any:
    """Prefix products of 2 × 2 matrices, in a logarithmic number of rounds."""
    return lax.associative_scan(lambda a, b: jnp.einsum("kij,kjl->kil", b, a), x)


def mapped(x: Any) -> Any:
    return lax.map(lambda row: jnp.cumsum(row) * jnp.exp(row[0]), x)


def holding(x: Any) -> Any:
    """A while of which an item may be done before its first step, and would give NaN if it went on."""
    return lax.while_loop(lambda c: c[0] > 0.5, lambda c: (c[0] - 1.0, c[1] + jnp.log(c[0])), (x, 0.0 * x))[1]


def array(*shape: int, seed: int = 0, dtype: Any = np.float64) -> Any:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype is complex else 0)


F = np.float64
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], bool]] = {
    "recurrence": (recurrence, (F(0.7), F(0.3), array(5) * 0.3), True),
    "complex": (recurrence, (0.7 + 0.1j, 0.3 - 0.2j, array(5, dtype=complex) * 0.3), True),
    "cells": (cells, (array(3, 3), array(3), array(6, 3)), True),
    "growing": (growing, (F(0.9), F(1.3)), True),
    "first": (branches, (F(0.5), F(-1.0)), True),
    "second": (branches, (F(0.5), F(1.0)), True),
    "third": (branches, (F(1.5), F(1.0)), True),
    "nested": (nested, (F(0.8), F(0.6)), True),
    "newton": (newton, (F(2.0), F(1.0)), False),
    "loop in loop": (loop_in_loop, (F(2.0), F(1.0)), False),
    "invariant": (invariant, (array(3, 3), array(3, 3, seed=1), array(4, 3)), True),
    "batched scan": (jax.vmap(recurrence, (None, 0, 0)), (F(0.7), array(4) * 0.3, array(4, 5) * 0.3), True),
    "batched constants": (jax.vmap(recurrence, (0, None, None)), (array(4), F(0.3), array(5) * 0.3), True),
    "batched branch": (jax.vmap(branches), (array(6) * 2, array(6)), True),
    "fori_loop": (counted, (F(0.7), F(0.3)), True),
    "pytrees": (
        lambda w, u, v: pytree({"w": w}, {"u": u, "v": v}),
        (array(3, 3), array(4, 3, seed=1), array(4, seed=2)),
        True,
    ),
    "associative": (associative, (array(5, 2, 2),), True),
    "map": (mapped, (array(3, 4),), True),
    "no steps": (recurrence, (F(0.7), F(0.3), np.zeros(0)), True),
    "batched while": (jax.vmap(newton), (array(4) ** 2 + 1, np.array([1.0, 3.0, 0.5, 2.0])), False),
    "batched while of one root": (jax.vmap(newton, (None, 0)), (F(2.0), np.array([1.0, 1.4, 30.0])), False),
    "finished items": (jax.vmap(holding), (np.array([0.25, 4.0, 1.5, 2.0]),), False),
    "batched loop in loop": (jax.vmap(loop_in_loop, (0, None)), (array(3) ** 2 + 1, F(1.0)), False),
    "batched twice": (jax.vmap(jax.vmap(recurrence, (None, 0, None)), (0, None, None)), (array(2), array(3), array(5) * 0.3), True),
    "batched nested": (jax.vmap(nested, (0, None)), (array(4), F(0.6)), True),
}


@pytest.mark.parametrize("name", few(CASES, 4))
def test_agrees_with_jax(name: str) -> None:
    function, args, reverse = CASES[name]
    for kind, distance in compared(function, *args, reverse=reverse).items():
        assert distance < 1e-12, f"{kind}: {distance}"


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_agrees_with_jax_in_single_precision(dtype: Any) -> None:
    args = [np.asarray(a, dtype) for a in (0.7, 0.3, array(5) * 0.3)]
    for kind, distance in compared(recurrence, *args).items():
        assert distance < 2e-5, f"{kind}: {distance}"


def test_functions_of_jax_nest_as_deep_as_files() -> None:
    def nested(depth: int) -> Callable[[Any], Any]:
        return lambda x: lax.scan(lambda c, _: (nested(depth - 1)(c), None), x, None, length=1)[0] if depth else x * x

    assert tidu_cli.linearize(from_jax(nested(64), "f64[]", names=["x"]), "x").graphs
    with pytest.raises(BuildError, match=r"graphs within graphs nest deeper than 64 levels, .* write the inner"):
        from_jax(nested(65), "f64[]", names=["x"])
