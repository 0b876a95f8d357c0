"""Functions of `jax.custom_jvp` and `jax.custom_vjp` as operations of a document, with the derivatives that they define."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax

import tidu_cli  # noqa: E402
from tests.tiers import few  # noqa: E402
from tidu_cli.adapters.jax.functions.function import from_jax  # noqa: E402
from tidu_cli.adapters.numpy.errors import BuildError  # noqa: E402

pytestmark = pytest.mark.jax

V = np.random.default_rng(8).standard_normal(4)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def scaled(x: Any, c: float) -> Any:
    """x, whose cotangent is scaled."""
    return x


scaled.defvjp(lambda x, c: (x, None), lambda c, _, ct: (c * ct,))


@jax.custom_vjp
def rounded(x: Any) -> Any:
    """The integer next to x, as if it were x."""
    return jnp.round(x)


rounded.defvjp(lambda x: (jnp.round(x), None), lambda _, ct: (ct,))


@jax.custom_jvp
def steep(x: Any, y: Any) -> Any:
    """sin(x) y with another derivative by x, in which it occurs itself."""
    return jnp.sin(x) * y


@steep.defjvp
def _steep_jvp(primals: Any, tangents: Any) -> Any:
    return steep(*primals), 3 * tangents[0] * steep(*primals) + jnp.cos(primals[0]) * tangents[1]


@jax.custom_vjp
def picked(x: Any, i: Any) -> Any:
    """Of an operand of integers, and with a result of integers."""
    return x[i], i + 1


picked.defvjp(lambda x, i: (picked(x, i), (x, i)), lambda kept, ct: (jnp.zeros_like(kept[0]).at[kept[1]].add(2 * ct[0]), None))


@jax.custom_vjp
def second(x: Any, y: Any) -> Any:
    """y, whose rule is told which operands move."""
    return y


def _second_fwd(x: Any, y: Any) -> Any:
    assert x.perturbed or y.perturbed
    return y.value, x.value


second.defvjp(_second_fwd, lambda x, ct: (jnp.zeros_like(x), 3 * ct), symbolic_zeros=True)


@jax.custom_jvp
def turned(z: Any) -> Any:
    """A complex number with half of its derivative."""
    return 1j * z


@turned.defjvp
def _turned_jvp(primals: Any, tangents: Any) -> Any:
    return turned(*primals), 0.5j * tangents[0]


@jax.custom_vjp
def turned_back(z: Any) -> Any:
    """The same by its VJP."""
    return 1j * z


turned_back.defvjp(lambda z: (1j * z, None), lambda _, ct: (0.5j * ct,))


@jax.custom_vjp
def clipped(x: Any) -> Any:
    """x, whose cotangents are clipped: no derivative of anything."""
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.clip(ct, -1, 1),))


def closing(table: Any) -> Callable[[Any], Any]:
    """A function whose rule closes over an array."""

    @jax.custom_jvp
    def weighted(v: Any) -> Any:
        return v * table

    @weighted.defjvp
    def _jvp(primals: Any, tangents: Any) -> Any:
        return weighted(*primals), tangents[0] * table / 2

    return weighted


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "two static arguments": lambda x: jnp.sum(scaled(jnp.sin(x), 0.5) ** 2) + jnp.sum(scaled(x, 0.25)),
    "straight through": lambda x: jnp.sum(rounded(3 * x) ** 2 * x),
    "by itself": lambda x: jnp.sum(steep(x, 2 * x)),
    "integers": lambda x: picked(x, jnp.array(2))[0] ** 2 * x[0],
    "symbolic zeros": lambda x: jnp.sum(second(x, jnp.sin(x))),
    "what it closes over": lambda x: jnp.sum(closing(np.arange(4.0))(x)),
    "in a loop": lambda x: lax.scan(lambda c, y: (scaled(jnp.sin(c), 0.7) * y, c), x[0], x)[0],
    "in a branch": lambda x: lax.cond(x[0] > 0, lambda y: jnp.sum(scaled(y, 0.3)), lambda y: jnp.sum(steep(y, y)), x),
    "in a batch": lambda x: jnp.sum(jax.vmap(lambda y: steep(y, y))(x)),
    "complex JVP": lambda x: jnp.sum(jnp.real(turned(x * (2 + 1j)) ** 2)),
    "complex VJP": lambda x: jnp.sum(jnp.real(turned_back(x * (2 + 1j)) ** 2)),
    "of JAX": lambda x: jnp.sum(jax.nn.silu(jax.nn.relu(x)) + jax.nn.softplus(x)) + jax.nn.logsumexp(x),
}


@pytest.mark.parametrize("name", few(FUNCTIONS, 5))
def test_the_gradient_is_that_of_the_rule(name: str) -> None:
    function = FUNCTIONS[name]
    document = from_jax(function, V, names=["x"])
    results = tidu_cli.evaluate(tidu_cli.grad(document, "x", value=True), x=V)
    np.testing.assert_allclose(results["x@-1"], jax.grad(function)(V), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(results["y"], function(V), rtol=1e-12)
    assert bool(getattr(document.cases.vocabulary, "definitions", ())) == (name != "of JAX")


@pytest.mark.parametrize("name", ["in a loop", "by itself", "straight through"])
def test_the_document_goes_to_a_file_and_back(name: str, tmp_path: Path) -> None:
    document = from_jax(FUNCTIONS[name], V, names=["x"])
    for suffix in ("json", "msgpack"):
        tidu_cli.save(document, tmp_path / f"f.{suffix}")
        again = tidu_cli.load(tmp_path / f"f.{suffix}")
        assert tidu_cli.evaluate(tidu_cli.grad(again, "x"), x=V)["x@-1"].tolist() == pytest.approx(
            jax.grad(FUNCTIONS[name])(V).tolist(), rel=1e-12
        )


def test_one_function_at_one_type_is_one_operation() -> None:
    document = from_jax(lambda x: scaled(scaled(x, 0.5) * 2, 0.5) + scaled(x, 0.25), V)
    names = [d.name for d in document.cases.vocabulary.definitions]  # type: ignore[union-attr]
    assert names == ["scaled", "scaled_2"]
    document = from_jax(lambda x: steep(steep(x, x), steep(x, x)), V)
    assert [d.name for d in document.cases.vocabulary.definitions] == ["steep"]  # type: ignore[union-attr]


def test_without_rules_a_function_is_what_it_computes() -> None:
    document = from_jax(lambda x: jnp.sum(scaled(x, 0.5)), V, rules=False)
    assert tidu_cli.evaluate(tidu_cli.grad(document, "x"), x=V)["x@-1"].tolist() == [1.0] * 4


def test_where_the_derivative_is_lost_the_rule_is_taken() -> None:
    document = from_jax(lambda x: jnp.sum(jnp.frexp(x)[0]), V)
    expected = jax.grad(lambda x: jnp.sum(jnp.frexp(x)[0]))(V)
    np.testing.assert_allclose(tidu_cli.evaluate(tidu_cli.grad(document, "x"), x=V)["x@-1"], expected, rtol=1e-12)


def test_a_rule_that_is_not_linear_is_refused() -> None:
    with pytest.raises(
        BuildError, match=r"test_rules.py:\d+: equation 'custom_vjp_call' .* not known to be linear.*; rules=False .*"
    ):
        from_jax(lambda x: jnp.sum(clipped(x) ** 2), V)


def test_a_rule_that_closes_over_what_is_computed_is_refused() -> None:
    with pytest.raises(BuildError, match="closes over a value that is computed; make this an argument"):
        from_jax(lambda x: jnp.sum(closing(jnp.cos(x))(x)), V)


def test_a_rule_that_raises_keeps_no_one_from_reading_what_is_computed() -> None:
    @jax.custom_jvp
    def guarded(x: Any) -> Any:
        return x * x

    @guarded.defjvp
    def _raises(primals: Any, tangents: Any) -> Any:
        raise RuntimeError("not to be differentiated")

    document = from_jax(lambda x: jnp.sum(x * guarded(lax.stop_gradient(x))), V, names=["x"])
    np.testing.assert_allclose(tidu_cli.evaluate(tidu_cli.grad(document, "x"), x=V)["x@-1"], V * V)
