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
from tidu_cli.adapters.stablehlo.files import read_stablehlo
from tidu_cli.adapters.stablehlo.reading import equivalents
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document

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
            document, due = of_function(function, x), from_jax(function, x, names=["0"])
            assert format_document(document, "json") == format_document(due, "json")
    for dtype in (np.float64, np.float32, np.float16):
        x = X.astype(dtype)
        x = np.where(np.abs(x) == np.finfo(dtype).smallest_subnormal, 0, x).astype(dtype)  # which XLA takes for 0
        (array,) = tidu_cli.evaluate(of_function(function, x), {"0": x}).values()
        assert array.tobytes() == np.asarray(jax.jit(function)(x)).tobytes()


def test_derivatives_at_ties_are_those_of_jax() -> None:
    def network(x: Any) -> Any:
        return jax.nn.relu(x) + jax.nn.relu6(2 * x) + jax.nn.relu(x[:3]).sum() + jax.vmap(jax.nn.relu6)(x)

    x = np.array([-1.0, 0.0, 3.0, 6.0])
    given = {"0": x, "y@-1": np.ones(4)}
    (gradient,) = tidu_cli.evaluate(tidu_cli.vjp(of_function(network, x), "0"), given, output="0@-1").values()
    np.testing.assert_array_equal(gradient, jax.grad(lambda x: network(x).sum())(x))


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


@pytest.mark.parametrize(
    "function",
    [
        jax.nn.softplus,
        jax.nn.log_sigmoid,
        lambda x: jnp.logaddexp(x, 2 * x),
        lambda x: jnp.logaddexp(3 * x, jnp.sin(x)),
        lambda x: jnp.logaddexp2(x, 0.0),
        lambda x: jax.lax.fori_loop(0, 2, lambda _, y: jax.nn.softplus(y - y[0]), x),
    ],
    ids=["softplus", "log_sigmoid", "of itself", "of two", "of base 2", "in a loop"],
)
def test_logaddexp_is_as_smooth_as_its_formula(function: Callable[[Any], Any]) -> None:
    """Orders 0 to 2 are JAX's, in ties, too. Forward: jax.hessian has 0.25 in the loop, where the second difference is 0.1875."""
    for x in (np.array([-1.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0])):
        document = of_function(function, x)
        given = {"0": x}
        (value,) = tidu_cli.evaluate(document, given).values()
        np.testing.assert_allclose(value, jax.jit(function)(x), rtol=1e-14)
        jacobian = tidu_cli.evaluate(tidu_cli.jacobian(document, "0"), given)
        np.testing.assert_allclose(*jacobian.values(), jax.jacobian(function)(x), rtol=1e-14, atol=1e-15)
        second = tidu_cli.evaluate(tidu_cli.hessian(total(document), "0"), given)
        np.testing.assert_allclose(*second.values(), jax.jacfwd(jax.jacfwd(lambda x: function(x).sum()))(x), rtol=1e-13, atol=1e-15)
    wide = np.array([-np.inf, -800.0, -0.0, 0.0, 5e-324, 40.0, np.inf, np.nan])
    if function is jax.nn.softplus:
        (value,) = tidu_cli.evaluate(of_function(function, wide), {"0": wide}).values()
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(value, np.logaddexp(wide, 0))


def total(document: Document) -> Document:
    """The sum of the elements of a function of three."""
    return tidu_cli.compose(document, tidu_cli.formula("sum(x)", x="f64[3]"), by="position")


def test_what_only_resembles_logaddexp_is_read_as_written() -> None:
    """Each line in its turn is another: the distance, the bound, the test for NaN, the sum."""
    lines = [
        "%m = stablehlo.maximum %x, %c : tensor<f64>",
        "%d = stablehlo.subtract %x, %c : tensor<f64>",
        "%n = stablehlo.compare NE, %d, %d, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>",
        "%e = stablehlo.add %x, %c : tensor<f64>",
        "%a = stablehlo.abs %d : tensor<f64>",
        "%g = stablehlo.negate %a : tensor<f64>",
        "%h = stablehlo.exponential %g : tensor<f64>",
        "%l = stablehlo.log_plus_one %h : tensor<f64>",
        "%s = stablehlo.add %m, %l : tensor<f64>",
        "%y = stablehlo.select %n, %e, %s : tensor<i1>, tensor<f64>",
    ]

    def second(*changed: str) -> float:
        text = {line.split()[0]: line for line in (*lines, *changed)}
        constants = "%c = stablehlo.constant dense<0.0> : tensor<f64>\n%o = stablehlo.constant dense<1.0> : tensor<f64>\n"
        body = "\n".join((constants, *text.values(), "return %y : tensor<f64>"))
        document = of_text(f"func.func public @main(%x: tensor<f64>) -> tensor<f64> {{\n{body}\n}}\n")
        return float(next(iter(tidu_cli.evaluate(tidu_cli.hessian(document, "0"), {"0": 0.0}).values())))

    assert second() == 0.25
    for changed in (
        "%m = stablehlo.maximum %x, %o : tensor<f64>",
        "%m = stablehlo.minimum %x, %c : tensor<f64>",
        "%n = stablehlo.compare NE, %x, %d, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>",
        "%a = stablehlo.abs %x : tensor<f64>",
        "%s = stablehlo.subtract %m, %l : tensor<f64>",
    ):
        assert second(changed) == 0, changed


def test_functions_whose_rule_is_lost_are_named() -> None:
    def noted(function: Callable[[Any], Any]) -> tuple[str, ...]:
        return read_stablehlo(jax.jit(function).lower(1.0).as_text().encode(), "text", "f.mlir").notes

    (note,) = noted(lambda x: jnp.sinc(x) + jnp.i0(x) * jnp.sinc(2 * x))
    assert note == "modules do not hold the derivative that JAX defines for @i0, @sinc; it is derived as it is computed"
    assert noted(lambda x: jax.nn.relu(x) + jax.nn.softplus(x) + jnp.sin(x)) == ()


def test_looking_for_logaddexp_takes_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand selects look at a constant behind a thousand broadcasts: it is read once, and few broadcasts are followed."""
    read = []
    array_of = equivalents.array_of
    monkeypatch.setattr(equivalents, "array_of", lambda data: read.append(1) or array_of(data))
    t, n = "tensor<f64>", 1000
    lines = [f"%b0 = stablehlo.constant dense<0.0> : {t}"]
    lines += [f"%b{k + 1} = stablehlo.broadcast_in_dim %b{k}, dims = [] : ({t}) -> {t}" for k in range(n)]
    lines += [f"%d = stablehlo.subtract %x, %b3 : {t}", f"%n = stablehlo.compare NE, %d, %d, FLOAT : ({t}, {t}) -> tensor<i1>"]
    lines += [f"%m = stablehlo.maximum %x, %b{n} : {t}", f"%s = stablehlo.add %m, %b3 : {t}", f"%y0 = stablehlo.add %x, %x : {t}"]
    lines += [f"%y{k + 1} = stablehlo.select %n, %y{k}, %s : tensor<i1>, {t}" for k in range(n)]
    text = "\n".join([f"func.func public @main(%x: {t}) -> {t} {{", *lines, f"return %y{n} : {t}", "}"])
    assert tidu_cli.evaluate(of_text(text), {"0": 2.0}) == {"y": 2.0}
    assert len(read) <= 4
