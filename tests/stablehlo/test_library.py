"""relu and relu6 of modules have JAX's derivative, which their text does not say; what only resembles them has that of maxima."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import tidu_cli
from tests.stablehlo.modules import of_function, of_text
from tidu_cli.adapters.jax.functions.function import from_jax
from tidu_cli.formats.write import format_document

X = np.array([-1.0, -0.0, 0.0, 5e-324, 1.0, 6.0, 7.0, np.inf, -np.inf, np.nan])
BODY = "%c = stablehlo.constant dense<{c}> : {t}\n{more}%y = stablehlo.{op} {operands} : {t}\nreturn %y : {t}"


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("function", [jax.nn.relu, jax.nn.relu6])
def test_a_module_is_the_document_of_the_function(function: Callable[[Any], Any]) -> None:
    """Of whatever shape and dtype; and its values have the bits that XLA computes of the module."""
    for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64):
        for x in (np.arange(-2, 8).astype(dtype), np.zeros((), dtype), np.zeros((0, 2), dtype)):
            found, due = of_function(function, x), from_jax(function, x, names=["0"])
            assert format_document(found, "json") == format_document(due, "json")
    for dtype in (np.float64, np.float32, np.float16):
        x = X.astype(dtype)
        x = np.where(np.abs(x) == np.finfo(dtype).smallest_subnormal, 0, x).astype(dtype)  # which XLA takes for 0
        (found,) = tidu_cli.evaluate(of_function(function, x), {"0": x}).values()
        assert found.tobytes() == np.asarray(jax.jit(function)(x)).tobytes()


def test_derivatives_at_ties_are_those_of_jax() -> None:
    def network(x: Any) -> Any:
        return jax.nn.relu(x) + jax.nn.relu6(2 * x) + jax.nn.relu(x[:3]).sum() + jax.vmap(jax.nn.relu6)(x)

    x = np.array([-1.0, 0.0, 3.0, 6.0])
    given = {"0": x, "y@-1": np.ones(4)}
    (found,) = tidu_cli.evaluate(tidu_cli.vjp(of_function(network, x), "0"), given, output="0@-1").values()
    np.testing.assert_array_equal(found, jax.grad(lambda x: network(x).sum())(x))


def test_what_only_resembles_them_is_read_as_written() -> None:
    def slope(text: str) -> float:
        return float(tidu_cli.evaluate(tidu_cli.grad(of_text(text), "0"), {"0": 0.0})["0@-1"])

    def module(name: str, op: str = "maximum", operands: str = "%x, %c", c: str = "0.0", more: str = "", seen: str = "private"):
        t = "tensor<f64>"
        called = f"func.func {seen} @{name}(%x: {t}) -> {t} {{\n{BODY.format(c=c, op=op, operands=operands, more=more, t=t)}\n}}\n"
        return f"{called}func.func public @main(%x: {t}) -> {t} {{\n%0 = call @{name}(%x) : ({t}) -> {t}\nreturn %0 : {t}\n}}\n"

    assert [slope(module(name)) for name in ("relu", "relu_0", "relu_12")] == [0, 0, 0]
    assert [slope(module(name)) for name in ("relu6", "relu_a", "myrelu", "relu_0_", "elu")] == [0.5] * 5
    assert slope(module("relu", seen="public")) == 0.5
    assert slope(module("relu", operands="%c, %x")) == 0.5
    assert slope(module("relu", c="-0.0")) == 0.5
    assert slope(module("relu", op="minimum")) == 0.5
    assert slope(module("relu", c="-1.0")) == 1
    assert slope(module("relu", operands="%z, %c", more="%z = stablehlo.sine %x : tensor<f64>\n")) == 0.5


def test_a_function_of_that_name_may_have_no_or_two_arrays() -> None:
    def pair(x: Any, y: Any) -> Any:
        return jnp.maximum(x, 0.0), y

    pair.__name__ = "relu"
    document = of_function(lambda x, y: jax.jit(pair)(x, y), 1.0, 2.0)
    assert list(tidu_cli.evaluate(document, {"0": -1.0, "1": 2.0}).values()) == [0, 2]
    none = "func.func private @relu() {\nreturn\n}\nfunc.func public @main(%x: tensor<f64>) -> tensor<f64> {\n"
    document = of_text(none + "call @relu() : () -> ()\nreturn %x : tensor<f64>\n}\n")
    assert tidu_cli.evaluate(document, {"0": 3.0})["y"] == 3
