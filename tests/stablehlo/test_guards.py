"""Reverse mode through functions of JAX that a module has as branches, both of which are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import special

import tidu_cli
from tests.stablehlo.modules import main, of_function, of_text
from tests.tiers import few
from tidu_cli.adapters.stablehlo.reading import importer
from tidu_cli.formats.write import format_document

X = np.array([-30.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 30.0])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "erf_inv": special.erfinv,
    "log": lambda x: jnp.where(x > 0, jnp.log(x), 0),
    "sinc": lambda x: jnp.where(x == 0, 1, jnp.sin(x) / x),
    "nested": lambda x: jnp.where(x > 0, jnp.where(x < 1, jnp.log(x) * jnp.sqrt(1 - x), 2 * x), jnp.exp(1 / x)),
    "two branches": lambda x: jnp.where(x > 0, jnp.log(x), 0) + jnp.where(x > 0, x * jnp.log(x), 1),
    "norm": lambda x: jnp.where(x == 0, 0.0, jnp.sqrt(x * x)),
    "a constant with zeros": lambda x: jnp.where(jnp.arange(11) > 5, x / jnp.maximum(jnp.arange(11) - 5, 0), x),
    "root beyond": lambda x: jnp.where(x > 1, jnp.sqrt(x - 0.9), x),
    "xlogy": lambda x: special.xlogy(x, x),
    "entr": special.entr,
    "logaddexp": lambda x: jnp.logaddexp(x, 0.0),
    "spence": special.spence,
    "asinh": jnp.arcsinh,
}


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


def test_functions_of_jax() -> None:
    """Their VJPs are JAX's where these are finite, and their JVPs elsewhere; values keep their bits."""
    ones = np.ones_like(X)
    for name in few(FUNCTIONS, 4):
        function = FUNCTIONS[name]
        f, exact = of_function(function, X), np.asarray(jax.vjp(function, X)[1](ones)[0])
        jvp, vjp = tidu_cli.jvp(f, "0"), tidu_cli.vjp(f, "0")
        for engine in ("numpy", "native")[: 1 + (name in ("erf_inv", "nested"))]:
            forward = tidu_cli.evaluate(jvp, {"0": X, "0@1": ones}, engine=engine)["y@1"]
            reverse = tidu_cli.evaluate(vjp, {"0": X, "y@-1": ones}, engine=engine)["0@-1"]
            expected = np.where(np.isfinite(exact), exact, forward)
            finite = np.isfinite(expected)
            np.testing.assert_allclose(reverse[finite], expected[finite], rtol=1e-9, atol=1e-14, err_msg=name)


BRANCH = """%zero = stablehlo.constant dense<0.0> : tensor<f64>
  %positive = stablehlo.compare GT, {x}, %zero, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
  %log = stablehlo.log {x} : tensor<f64>
  %y = stablehlo.select %positive, %log, %zero : tensor<i1>, tensor<f64>
"""


def test_regions_of_branches_and_loops() -> None:
    """The function is where(x > 0, log(x), 0) in a region."""
    inner = BRANCH.format(x="%x") + "  stablehlo.return %y : tensor<f64>"
    case = (
        f'  %r = "stablehlo.case"(%i) ({{\n{inner}\n}}, {{\n{inner}\n}}) : (tensor<i32>) -> tensor<f64>\n  return %r : tensor<f64>'
    )
    for x, slope in ((0.0, 0.0), (2.0, 0.5)):
        f = of_text(main("%i: tensor<i32>, %x: tensor<f64>", "tensor<f64>", case))
        assert tidu_cli.evaluate(tidu_cli.grad(f, "1"), {"0": np.int32(1), "1": x}) == {"1@-1": slope}

        def loop(x: Any) -> Any:
            return jax.lax.fori_loop(0, 2, lambda k, y: jnp.where(y > 0, jnp.log(y), y), x)

        f = of_function(loop, x)
        np.testing.assert_allclose(tidu_cli.evaluate(tidu_cli.grad(f, "0"), {"0": x})["0@-1"], 1.0 if x == 0 else 0.5 / np.log(x))


def test_a_module_that_tidu_wrote_is_read_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    text = main("%x: tensor<f64>", "tensor<f64>", BRANCH.format(x="%x") + "  return %y : tensor<f64>")
    plain = format_document(tidu_cli.formula("where(x > 0, log(x), 0)", inputs={"x": "f64[]"}), "mlir").decode()
    documents = [format_document(of_text(t), "json") for t in (text, plain)]
    monkeypatch.setattr(importer, "guarded", lambda graph, primitives: graph)
    unguarded = [format_document(of_text(t), "json") for t in (text, plain)]
    assert documents[0] != unguarded[0]
    assert documents[1] == unguarded[1]
