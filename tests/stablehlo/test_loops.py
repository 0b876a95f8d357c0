"""Loops that count are scans, with the slices that they take and put; others are whiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import tidu_cli
from tests.stablehlo.claims.written import by_xla
from tests.stablehlo.modules import cases_within, of_function, of_text, operations, values
from tests.tiers import examples, few
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import TensorType

X = np.random.default_rng(5).uniform(0.5, 1.5, 7)


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


def _put_back(x: Any) -> Any:
    """Each row is read, changed and put back, as reverse passes do with what they add up."""

    first = x[0]

    def step(i: Any, y: Any) -> Any:
        return lax.dynamic_update_index_in_dim(y, jnp.sin(lax.dynamic_index_in_dim(y, i, 0)) * first, i, 0)

    return jnp.sum(lax.fori_loop(0, 7, step, x) ** 2)


def _some_rows(x: Any) -> Any:
    """The rows 2 to 5 alone are put."""
    step = lambda i, y: lax.dynamic_update_index_in_dim(y, x[i] ** 2, i, 0)  # noqa: E731
    return jnp.sum(lax.fori_loop(2, 5, step, x) * jnp.arange(7.0))


def _columns(x: Any) -> Any:
    """Slices along axis 1."""
    a = jnp.outer(x[:3], x)

    def step(total: Any, i: Any) -> tuple[Any, Any]:
        return total + lax.dynamic_index_in_dim(a, i, 1, keepdims=False) ** 2, None

    return jnp.sum(jnp.sin(lax.fori_loop(0, 7, lambda i, total: step(total, i)[0], jnp.zeros(3))))


COUNTED: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c + a), x[0], x)[1].sum(),
    "reverse": lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c + a), x[0], x, reverse=True)[1] @ x,
    "nested": lambda x: lax.scan(lambda c, a: (lax.scan(lambda d, b: (d * a + b, d), c, x)[0], c), x[0], x)[0],
    "no carry": lambda x: lax.map(lambda a: jnp.exp(-a * a), x) @ x,
    "count": lambda x: lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) * (i + 1), x).sum(),
    "downwards": lambda x: lax.while_loop(lambda c: c[0] >= 2, lambda c: (c[0] - 1, c[1] * jnp.sin(x[c[0]])), (6, x[0]))[1],
    "by two": lambda x: lax.while_loop(lambda c: c[0] != 6, lambda c: (c[0] + 2, c[1] * jnp.sin(x[c[0]])), (0, x[0]))[1],
    "bound carried": lambda x: lax.while_loop(lambda c: c[0] < c[2], lambda c: (c[0] + 1, c[1] * x[1], c[2]), (0, x[0], 4))[1],
    "no steps": lambda x: lax.fori_loop(3, 3, lambda i, y: jnp.sin(y), x).sum(),
    "many steps": lambda x: lax.fori_loop(0, 100, lambda i, y: jnp.sin(y) + i * 1e-3, x).sum(),
    "put back": _put_back,
    "some rows": _some_rows,
    "columns": _columns,
    "derivative": jax.grad(lambda x: lax.scan(lambda c, a: (jnp.sin(c * a), c + a), x[0], x)[1].sum() ** 2),
    "batch": lambda x: jax.vmap(lambda y: lax.scan(lambda c, a: (jnp.sin(c * a), c), y, x)[0])(x).sum(),
}  # fmt: skip
"""Functions of 7 numbers whose loops count."""


@pytest.mark.parametrize("name", few(COUNTED, 3))
def test_a_loop_that_counts_is_a_scan(name: str) -> None:
    function = COUNTED[name]
    document = of_function(function, X)
    assert "while" not in operations(document)
    assert "scan" in operations(document) or name == "no steps"
    np.testing.assert_allclose(values(document, X)[0], function(jnp.asarray(X)), rtol=1e-12)
    wrapped = function if name != "derivative" else lambda x: function(x) @ x
    document = of_function(wrapped, X)
    gradient = tidu_cli.evaluate(tidu_cli.grad(document, "0"), {"0": X})["0@-1"]
    np.testing.assert_allclose(gradient, jax.jacfwd(wrapped)(X), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["scan", "reverse", "put back", "derivative"])
def test_steps_see_no_whole_arrays(name: str) -> None:
    """Else a step would take as long as the loop is."""
    function, long = COUNTED[name], np.linspace(0.5, 1.5, 50)
    if name == "put back":
        function = lambda x: _put_back(x[:7]) + lax.scan(lambda c, a: (c * a, c), x[0], x)[0]  # noqa: E731
    for document in (of_function(function, long), tidu_cli.vjp(of_function(function, long), "0")):
        for case in cases_within(document):
            if case.op == "scan":
                inner: Any = case.attrs
                types = [t for c in cases_of(inner.body.graph) for t in c.results]
                assert all(isinstance(t, TensorType) and t.size < 7 for t in types)


def cases_of(graph: Any) -> list[Any]:
    return [case for case, _ in graph.nodes()]


def test_a_loop_that_converges_is_a_while() -> None:
    function = lambda x: lax.while_loop(lambda y: y.sum() < 50, lambda y: y * y + y, x)  # noqa: E731
    document = of_function(function, X)
    assert "while" in operations(document)
    np.testing.assert_allclose(values(document, X)[0], function(X), rtol=1e-12)
    tangent = tidu_cli.evaluate(tidu_cli.jvp(document, "0"), {"0": X, "0@1": X})["y@1"]
    np.testing.assert_allclose(tangent, jax.jvp(function, (X,), (X,))[1], rtol=1e-12)
    with pytest.raises(TiduError, match="how often it runs is not known"):
        tidu_cli.vjp(document, "0")


WHILE = """
func.func public @main(%x: tensor<9xf64>) -> (tensor<i32>, tensor<f64>, tensor<9xf64>) {{
  %start = stablehlo.constant dense<{start}> : tensor<i32>
  %one = stablehlo.constant dense<1.0> : tensor<f64>
  %r:3 = stablehlo.while(%i = %start, %c = %one, %y = %x) : tensor<i32>, tensor<f64>, tensor<9xf64>
  cond {{
    %bound = stablehlo.constant dense<{bound}> : tensor<i32>
    %t = stablehlo.compare {compare}, {operands}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  }} do {{
    %step = stablehlo.constant dense<{step}> : tensor<i32>
    %off = stablehlo.constant dense<{offset}> : tensor<i32>
    %at = stablehlo.add %i, %off : tensor<i32>
    %s = stablehlo.dynamic_slice %x, %at, sizes = [1] : (tensor<9xf64>, tensor<i32>) -> tensor<1xf64>
    %q = stablehlo.reshape %s : (tensor<1xf64>) -> tensor<f64>
    %d = stablehlo.multiply %c, %q : tensor<f64>
    %e = stablehlo.cosine %d : tensor<f64>
    %u = stablehlo.reshape %e : (tensor<f64>) -> tensor<1xf64>
    %z = stablehlo.dynamic_update_slice %y, %u, %at : (tensor<9xf64>, tensor<1xf64>, tensor<i32>) -> tensor<9xf64>
    %j = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %j, %e, %z : tensor<i32>, tensor<f64>, tensor<9xf64>
  }}
  return %r#0, %r#1, %r#2 : tensor<i32>, tensor<f64>, tensor<9xf64>
}}
"""
"""A loop over places that may be out of bounds, where slices are brought within."""


@settings(deadline=None, max_examples=examples(40))
@given(
    st.integers(-3, 9),
    st.integers(1, 3),
    st.integers(0, 5),
    st.sampled_from(["LT", "LE", "NE", "GT", "GE"]),
    st.integers(-4, 4),
    st.booleans(),
)
def test_any_count_gives_what_xla_gives(start: int, step: int, length: int, compare: str, offset: int, turned: bool) -> None:
    step = -step if compare in ("GT", "GE") else step
    bound = start + step * length
    operands = "%bound, %i" if turned else "%i, %bound"
    written = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}[compare] if turned else compare
    text = WHILE.format(start=start, bound=bound, compare=written, operands=operands, step=step, offset=offset)
    x = np.linspace(0.1, 0.9, 9)
    document = of_text(text)
    assert "while" not in operations(document)
    for array, due in zip(values(document, x), by_xla(text, [x]), strict=True):
        np.testing.assert_allclose(array, due, rtol=1e-13)


@pytest.mark.parametrize(("start", "bound", "compare", "step"), [(0, 5, "LT", -1), (0, 5, "NE", 2), (0, 5, "LT", 0)])
def test_a_loop_without_end_is_no_scan(start: int, bound: int, compare: str, step: int) -> None:
    text = WHILE.format(start=start, bound=bound, compare=compare, operands="%i, %bound", step=step, offset=0)
    assert "while" in operations(of_text(text))
