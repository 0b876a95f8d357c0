"""JAX's own functions that define derivatives, as plain nodes with these, of all orders; and those of users by the same names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import mpmath
import numpy as np
import pytest
from jax.scipy import special

jax.config.update("jax_enable_x64", True)
jnp, nn = jax.numpy, jax.nn

import tidu_cli  # noqa: E402
from tests.cli.running import succeed  # noqa: E402
from tests.tiers import few  # noqa: E402
from tidu_cli.adapters.jax.functions.function import from_jax  # noqa: E402
from tidu_cli.formats.read import parse_document  # noqa: E402

pytestmark = pytest.mark.jax

Points = tuple[float, ...]
AROUND = (0.0, 1e-9, -1e-9, 0.7, -1.3, 3.0, 6.0, 40.0, -40.0, 800.0)
ABOVE = (1e-9, 0.7, 3.0, 6.0, 40.0)

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Points]] = {
    **{f.__name__: (f, AROUND) for f in (
        nn.relu, nn.relu6, nn.softplus, nn.silu, nn.log_sigmoid, nn.mish, nn.gelu, nn.elu, nn.selu, nn.celu, nn.hard_swish,
        nn.squareplus, nn.sparse_plus, nn.leaky_relu)},
    "logaddexp": (lambda x: jnp.logaddexp(x, 0.5 * x), AROUND),
    "logaddexp2": (lambda x: jnp.logaddexp2(x, 2 * x), AROUND),
    "logsumexp": (lambda x: nn.logsumexp(jnp.stack([x, 2 * x])), AROUND),
    "softmax": (lambda x: nn.softmax(jnp.stack([x, x * x, 0 * x]))[0], AROUND[:-1]),
    "log1mexp": (nn.log1mexp, ABOVE),
    "xlogy": (lambda x: special.xlogy(x, x + 1), (0.0, 1e-9, *ABOVE)),
    "xlog1py": (lambda x: special.xlog1py(x, x), (0.0, 1e-9, *ABOVE)),
    "logit": (special.logit, (1e-9, 0.3, 0.9)),
    "log_ndtr": (special.log_ndtr, (0.0, 1e-9, 0.7, -1.3, 6.0)),
    "zeta": (lambda x: special.zeta(x, 1.5), (3.0, 6.0)),
    "expi": (special.expi, ABOVE),
    "sici": (lambda x: sum(special.sici(x)), ABOVE[1:]),
    "poch": (lambda x: special.poch(x, 2.5), (0.7, 3.0)),
    "owens_t": (lambda x: special.owens_t(x, 0.4), (0.0, 0.7, -1.3, 6.0)),
    "fresnel": (lambda x: sum(special.fresnel(x)), (0.7, -1.3, 2.9)),
    "dawsn": (special.dawsn, (0.0, 0.7, -1.3, 6.0)),
    "erfcx": (special.erfcx, (0.0, 0.7, -1.3, 6.0)),
}  # fmt: skip
"""With the points where JAX is right up to the second order; elsewhere see below."""


def orders(function: Callable[[Any], Any], most: int) -> tuple[Any, list[Any]]:
    """The document of a function of a number, and those of its derivatives up to this order."""
    document = from_jax(function, "f64[]", names=["x"])
    return document, [document, *[tidu_cli.derivative(document, "x", order=k) for k in range(1, most + 1)]]


def at(document: Any, x: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(list(tidu_cli.evaluate(document, x=x).values())[-1])


def defined(document: Any) -> list[str]:
    return [d.name for d in getattr(document.cases.vocabulary, "definitions", ())]


@pytest.mark.parametrize("name", few(FUNCTIONS, 4))
def test_derivatives_are_those_of_jax_without_operations_of_the_document(name: str) -> None:
    function, points = FUNCTIONS[name]
    document, derivatives = orders(function, 2)
    assert defined(document) == []
    expected = jax.jit(jax.vmap(lambda x: (function(x), jax.grad(function)(x), jax.grad(jax.grad(function))(x))))
    values = np.array(expected(np.array(points)))
    ours = [[at(derivative, x) for x in points] for derivative in derivatives]
    np.testing.assert_allclose(ours, values, rtol=1e-9, atol=1e-12)


def test_sinc_is_right_near_zero_where_that_of_jax_loses_its_digits() -> None:
    document, derivatives = orders(jnp.sinc, 4)
    assert defined(document) == []
    for x in (0.0, 1e-9, 0.2, 1.7):
        for k, derivative in enumerate(derivatives):
            with mpmath.workdps(40):
                expected = float(mpmath.diff(mpmath.sincpi, x, k))
            assert at(derivative, x) == pytest.approx(expected, rel=1e-9, abs=1e-9), (x, k)


def test_sinc_that_jax_has_differentiated_is_right_at_zero() -> None:
    document, derivatives = orders(jax.grad(jnp.sinc), 1)
    assert defined(document) == []
    assert at(derivatives[1], 0.0) == pytest.approx(-(np.pi**2) / 3)


def test_where_jax_is_wrong() -> None:
    """I0 has the second derivative 1/2 at 0, where JAX has 0; and so on."""
    assert at(orders(jnp.i0, 2)[1][2], 0.0) == pytest.approx(0.5)
    assert at(orders(lambda x: special.sici(x)[0], 3)[1][3], 1e-9) == pytest.approx(-1 / 3)
    assert at(orders(lambda x: special.fresnel(x)[1], 2)[1][2], 3.0) == pytest.approx(-3 * np.pi)
    document, derivatives = orders(lambda x: special.expn(3, x), 2)  # of which JAX traces no second derivative
    assert defined(document) == []
    assert at(derivatives[2], 0.7) == pytest.approx(float(mpmath.expint(1, 0.7)))


SQUARE = np.linspace(0.0, 1.6, 9).reshape(3, 3)
MAPPED: dict[str, Callable[[Any], Any]] = {
    "relu": lambda x: jax.vmap(nn.relu, 1)(x - 0.8),
    "a column with a number": lambda x: jax.vmap(lambda y, z: jnp.logaddexp(y, z), (1, 0))(x, x[0]),
    "one of two axes": lambda x: jax.vmap(lambda y: special.xlogy(y, x[1] + 1), 1)(x),
    "both axes, turned": lambda x: jax.vmap(special.xlogy, (0, 1))(x, x + 1),
    "a scan": lambda x: jax.vmap(lambda y: jax.lax.scan(lambda c, z: (nn.softplus(c - z), nn.relu(c)), y[0], y)[1], 1)(x),
    "special": lambda x: jax.vmap(jax.vmap(special.expi, 1), 0)(x[None] + 0.1),
}


@pytest.mark.parametrize("name", few(MAPPED, 3))
def test_vmap(name: str) -> None:
    def function(x: Any) -> Any:
        return jnp.sum(jnp.cos(MAPPED[name](x)) * jnp.arange(3.0))

    document = from_jax(function, SQUARE, names=["x"])
    gradient = tidu_cli.evaluate(tidu_cli.grad(document, "x"), x=SQUARE)["x@-1"]
    np.testing.assert_allclose(gradient, jax.grad(function)(SQUARE), rtol=1e-12, atol=1e-14)


def test_a_function_of_users_keeps_its_rule_whatever_it_is_called() -> None:
    @jax.custom_jvp
    def relu(x: Any) -> Any:
        return jnp.maximum(x, 0)

    relu.defjvps(lambda t, y, x: 7 * t)
    again = jax.custom_jvp(nn.relu)  # the same code under another rule
    again.defjvp(lambda primals, tangents: (nn.relu(*primals), 5 * tangents[0]))
    for function, slope in ((relu, 7.0), (again, 5.0)):
        document, derivatives = orders(function, 1)
        assert defined(document) == ["relu"] and at(derivatives[1], -1.0) == slope


def test_without_rules_relu_is_a_maximum() -> None:
    document = from_jax(nn.relu, "f64[]", names=["x"], rules=False)
    assert at(tidu_cli.derivative(document, "x"), 0.0) == 0.5


@pytest.mark.parametrize(("options", "slope"), [((), 0.0), (("--no-rules",), 0.5)])
def test_the_command_keeps_rules_unless_told_otherwise(tmp_path: Path, options: tuple[str, ...], slope: float) -> None:
    (tmp_path / "model.py").write_text("import jax\n\nf = jax.nn.relu\n")
    document, _ = parse_document(succeed("build", "--jax", f"{tmp_path}/model.py:f", "-i", "x:f32[]", *options), "built")
    assert at(tidu_cli.derivative(document, "x"), 0.0) == slope
