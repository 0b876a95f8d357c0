"""Regions of reductions, sorts and scatters: read by what they compute, or refused where they stand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tidu_cli
from tests.stablehlo.claims.written import by_xla
from tests.stablehlo.modules import main, of_function, of_text, operations, values
from tests.tiers import few
from tidu_cli.errors import DocumentError

X = np.array([[3.0, -1.0, 2.0, 2.0], [0.0, 5.0, -2.0, 5.0], [1.0, 1.0, 4.0, -3.0]])


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


def reduction(body: str, start: str = "0.0") -> str:
    return main(
        "%x: tensor<3x4xf64>",
        "tensor<3xf64>",
        f"""  %start = stablehlo.constant dense<{start}> : tensor<f64>
  %r = "stablehlo.reduce"(%x, %start) <{{dimensions = array<i64: 1>}}> ({{
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
{body}
    stablehlo.return %c : tensor<f64>
  }}) : (tensor<3x4xf64>, tensor<f64>) -> tensor<3xf64>
  return %r : tensor<3xf64>""",
    )


@pytest.mark.parametrize(
    ("operation", "start"),
    [("add", "0.0"), ("add", "2.5"), ("multiply", "1.0"), ("multiply", "-3.0"), ("maximum", "0xFFF0000000000000"),
     ("maximum", "2.5"), ("minimum", "0x7FF0000000000000"), ("minimum", "0.5")],
)  # fmt: skip
@pytest.mark.parametrize("order", ["%a, %b", "%b, %a"])
def test_reductions_with_any_start(operation: str, start: str, order: str) -> None:
    text = reduction(f"    %c = stablehlo.{operation} {order} : tensor<f64>", start)
    np.testing.assert_array_equal(values(of_text(text), X)[0], by_xla(text, [X])[0])


def test_other_reducers_are_refused_where_they_stand() -> None:
    text = reduction("    %d = stablehlo.multiply %a, %b : tensor<f64>\n    %c = stablehlo.add %a, %d : tensor<f64>")
    with pytest.raises(DocumentError, match=r"^3:8: stablehlo.reduce: its reducer is none of sum, product, maximum"):
        of_text(text)


def test_a_reducer_that_reads_values_around_it_is_refused() -> None:
    text = reduction("    %c = stablehlo.add %s, %b : tensor<f64>").replace(
        "  %start =", "  %s = stablehlo.slice %x [0:1, 0:1] : (tensor<3x4xf64>) -> tensor<1x1xf64>\n  %start ="
    )
    text = text.replace("stablehlo.add %s, %b", "stablehlo.add %v, %b").replace(
        "  %start =", "  %v = stablehlo.reshape %s : (tensor<1x1xf64>) -> tensor<f64>\n  %start ="
    )
    with pytest.raises(DocumentError, match="reads values from around it"):
        of_text(text)


REDUCTIONS = {
    "sum of several arrays": lambda x: lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)),
    "argmin": lambda x: jnp.argmin(x, 1),
    "argmax with NaN": lambda x: jnp.argmax(x.at[1, 2].set(jnp.nan), 1),
    "argmax of integers": lambda x: jnp.argmax(x.astype(int), 0),
    "argmax of bools": lambda x: jnp.argmax(x > 2, 0),
    "all": lambda x: jnp.all(x > -5, 1),
    "or of bits": lambda x: lax.reduce_or(x.astype(int), (1,)),
    "xor of bits": lambda x: lax.reduce_xor(x.astype(int), (1,)),
    "cumulative product backwards": lambda x: lax.cumprod(x, 1, reverse=True),
    "cumulative maximum": lambda x: lax.cummax(x, 0),
    "cumulative log-sum-exp": lambda x: lax.cumlogsumexp(x, 1),
    "sums of windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 2), ((1, 0), (0, 1)), (2, 1), (1, 2)),
    "greatest of windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"),
    "tangents of windows": lambda x: jax.jvp(lambda y: lax.reduce_window(y, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME"), (x,), (x,)),
    "cotangents of windows": jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID") ** 2).sum()),
    "sort downwards": lambda x: lax.sort(-x, dimension=0),
    "sort by two keys": lambda x: lax.sort((jnp.round(x / 3), x, x * 2), num_keys=2),
    "stable, descending": lambda x: jnp.argsort(x, axis=1, descending=True, stable=True),
    "sort of complex numbers": lambda x: jnp.sort(jnp.round(x / 3) + 1j * x),
    "sort with NaN and -0": lambda x: jnp.sort(jnp.where(x > 3, jnp.nan, jnp.where(x == 0, -0.0, x)), axis=None),
    "greatest elements": lambda x: lax.top_k(x, 3),
    "scatter of rows": lambda x: x.at[jnp.array([2, 0])].set(x[:2] + 1),
    "scatter-max": lambda x: x.at[jnp.array([2, 0, 2]), jnp.array([1, 1, 1])].max(jnp.array([4.0, -9.0, 6.0])),
    "scatter out of bounds": lambda x: x.at[jnp.array([2, 7])].add(x[:2], mode="drop"),
    "scatter in batches": lambda x: jax.vmap(lambda row, i: row.at[i].multiply(3.0))(x, jnp.array([3, 0, 1])),
    "a branch of three": lambda x: lax.switch(jnp.argmax(x[0]), [jnp.sin, jnp.cos, jnp.exp], x),
    "a branch by a condition": lambda x: lax.cond(x[0, 0] > 0, lambda y: y * x[1, 1], lambda y: y - 1, x),
    "bits in order": lambda x: lax.sort(lax.bitcast_convert_type(x, jnp.int64), dimension=1),
}


@pytest.mark.parametrize("name", few(REDUCTIONS, 14))
def test_what_jax_writes(name: str) -> None:
    function = REDUCTIONS[name]
    results = values(of_function(function, X), X)
    due = jax.tree_util.tree_leaves(jax.jit(function)(X))
    for y, z in zip(results, due, strict=True):
        assert y.dtype == z.dtype
        np.testing.assert_allclose(y, z, rtol=1e-13, atol=1e-300)
        if y.dtype.kind == "f":
            np.testing.assert_array_equal(np.isnan(y), np.isnan(z))


SORT = """
  %r:2 = "stablehlo.sort"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%a: tensor<f64>, %b: tensor<f64>, %c: tensor<f64>, %d: tensor<f64>):
{body}
    stablehlo.return %t : tensor<i1>
  }}) : (tensor<6xf64>, tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>)
  return %r#0, %r#1 : tensor<6xf64>, tensor<6xf64>"""


def sort(body: str) -> str:
    return main("%x: tensor<6xf64>, %y: tensor<6xf64>", "tensor<6xf64>, tensor<6xf64>", SORT.format(body=body))


def compare(name: str, direction: str, operands: str) -> str:
    return f"    %{name} = stablehlo.compare {direction}, {operands}, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>\n"


@pytest.mark.parametrize(
    "body",
    [
        compare("t", "LT", "%a, %b"),
        compare("t", "GT", "%b, %a"),
        compare("t", "GT", "%a, %b"),
        compare("t", "LT", "%d, %c"),
        compare("l", "LT", "%c, %d")
        + compare("e", "EQ", "%d, %c")
        + compare("m", "LT", "%a, %b")
        + "    %t = stablehlo.select %e, %m, %l : tensor<i1>, tensor<i1>",
    ],
)
def test_comparators(body: str) -> None:
    x, y = np.array([2.0, 1, 2, 3, 1, 2]), np.array([1.0, 5, 0, 1, 4, 0])
    text = sort(body)
    for array, due in zip(values(of_text(text), x, y), by_xla(text, [x, y]), strict=True):
        np.testing.assert_array_equal(array, due)


@pytest.mark.parametrize("body", [compare("t", "LT", "%a, %d"), compare("t", "LE", "%a, %b"), compare("t", "LT", "%a, %a")])
def test_what_is_no_order_is_refused(body: str) -> None:
    with pytest.raises(DocumentError, match=r"^3:10: stablehlo.sort: its comparator is not less or greater"):
        of_text(sort(body))


@pytest.mark.parametrize("index", [-2, 0, 1, 2, 3, 9])
def test_a_case_that_is_not_there_is_the_last(index: int) -> None:
    regions = ", ".join(f"{{ %y{k} = stablehlo.{name} %x : tensor<f64> stablehlo.return %y{k} : tensor<f64> }}"
                        for k, name in enumerate(("sine", "cosine", "tanh")))  # fmt: skip
    body = f'  %r = "stablehlo.case"(%i) ({regions}) : (tensor<i32>) -> tensor<f64>\n  return %r : tensor<f64>'
    text = main("%i: tensor<i32>, %x: tensor<f64>", "tensor<f64>", body)
    given = np.int32(index), np.float64(0.7)
    np.testing.assert_allclose(values(of_text(text), *given)[0], by_xla(text, given)[0], rtol=1e-15)


def test_total_order_of_floats() -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5])
    x, y = (a.ravel() for a in np.meshgrid(x, x))
    ends = "tensor<64xf64>, tensor<64xf64>) -> tensor<64xi1>"
    for direction in ("LT", "LE", "EQ", "NE", "GT", "GE"):
        body = f"  %r = stablehlo.compare {direction}, %x, %y, TOTALORDER : ({ends}\n  return %r : tensor<64xi1>"
        text = main("%x: tensor<64xf64>, %y: tensor<64xf64>", "tensor<64xi1>", body)
        np.testing.assert_array_equal(values(of_text(text), x, y)[0], by_xla(text, [x, y])[0])


def test_a_module_that_calls_itself_is_refused() -> None:
    text = main(
        "%x: tensor<f64>", "tensor<f64>", "  %y = func.call @main(%x) : (tensor<f64>) -> tensor<f64>\n  return %y : tensor<f64>"
    )
    with pytest.raises(DocumentError, match="calls itself"):
        of_text(text)


def test_cumulative_sums_are_read_as_such() -> None:
    assert operations(of_function(lambda x: jnp.cumsum(x, 1), X)) == {"cumsum"}


def test_gradients_of_what_is_sorted_and_scattered() -> None:
    def function(x: Any) -> Any:
        y = jnp.sort(x.ravel())
        return jnp.sum(x.at[jnp.array([2, 0])].add(y[:4]) ** 2) + y[3] * y[7]

    gradient = tidu_cli.evaluate(tidu_cli.grad(of_function(function, X), "0"), {"0": X})["0@-1"]
    np.testing.assert_allclose(gradient, jax.grad(function)(X), rtol=1e-12)


def test_a_map_over_elements() -> None:
    body = """  %r = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %two = stablehlo.constant dense<2.0> : tensor<f64>
    %c = stablehlo.multiply %a, %two : tensor<f64>
    %d = stablehlo.compare GT, %c, %b, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %e = stablehlo.select %d, %c, %b : tensor<i1>, tensor<f64>
    stablehlo.return %e : tensor<f64>
  }) : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>"""
    text = main("%x: tensor<3x4xf64>, %y: tensor<3x4xf64>", "tensor<3x4xf64>", body)
    np.testing.assert_array_equal(values(of_text(text), X, X + 1)[0], by_xla(text, [X, X + 1])[0])
