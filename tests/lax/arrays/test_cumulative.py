"""Cumulative reductions: zeros, ties, infinities, long and short axes, and derivatives of second and third order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.graphs.templates import inner, jvp, make_case, type_of
from tests.lax.arrays.test_reductions import derivative_of_product
from tests.lax.orders import Orders
from tests.lax.sampling.sample import draw
from tests.lax.test_edges import tangent, value
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize

NAN, INF = math.nan, math.inf
CUMULATIVE = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", ["f64", "c128"])
@pytest.mark.parametrize("zeros", [[], [2], [0], [1, 3], [0, 4], [1, 2, 3]])
def test_products_with_zeros(dtype, zeros, reverse):
    x = draw(dtype, (5,), 1)
    x[zeros] = 0
    directions = [draw(dtype, (5,), 2 + k) for k in range(3)]
    product = Orders("cumprod", [x], axis=0, reverse=reverse)
    for order in (1, 2, 3):
        derivative = product.jvp(*([t] for t in directions[:order]))
        parts = [slice(k, None) if reverse else slice(k + 1) for k in range(5)]
        expected = [derivative_of_product(x[part], *(t[part] for t in directions[:order])) for part in parts]
        np.testing.assert_allclose(derivative, expected, 1e-13, 1e-13)


@pytest.mark.parametrize("op", CUMULATIVE)
@pytest.mark.parametrize("dtype", ["f64", "c128"])
def test_laws_at_every_length(op, dtype):
    if dtype not in BUILTIN[op].domain.dtypes:
        return
    for n in [*range(1, 10), 16, 17]:
        for reverse in (False, True):
            shape, axis = ((n,), 0) if n % 3 else ((2, n), 1)
            case = make_case(op, {"axis": axis, "reverse": reverse}, [parse_type(f"{dtype}[{','.join(map(str, shape))}]")])
            document = one_node_document(case)
            # Of extrema elements are far apart, so that no step of a difference quotient comes upon a kink.
            intervals = {i.key: (0.2, 30.0 if op in ("cummax", "cummin") else 1.2) for i in document.head.inputs}
            for verdict in check_numerically(document, BUILTIN, intervals=intervals, seed=n):
                assert verdict.error is not None and verdict.ok, (case, verdict)


@pytest.mark.parametrize("op", CUMULATIVE)
def test_reverse_over_reverse_is_forward_over_forward(op):
    x, ct, t, s = (draw("f64", (2, 5), k) for k in range(4))
    orders = Orders(op, [x], axis=1)
    expected = inner(orders.jvp([t], [s]), ct)
    np.testing.assert_allclose(inner(orders.ror(ct, [t])[0], s), expected, 1e-12, 1e-12)
    np.testing.assert_allclose(inner(orders.hvp(ct, [s])[0], t), expected, 1e-12, 1e-12)


@pytest.mark.parametrize("op", CUMULATIVE)
def test_an_axis_without_elements(op):
    x = np.ones((2, 0))
    assert value(op, x, axis=1).shape == (2, 0)
    assert tangent(op, [x], [x], axis=1).shape == (2, 0)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("op", "sign"), [("cummax", 1), ("cummin", -1)])
def test_extrema_share_among_ties_so_far(op, sign, reverse):
    x = sign * np.array([0.0, 2.0, 2.0, 1.0, 2.0, 3.0, 1.0])
    t = np.array([1.0, 2.0, 4.0, 64.0, 9.0, 16.0, 32.0])
    expected = [1.0, 2.0, 3.0, 3.0, 5.0, 16.0, 16.0]
    if reverse:
        x, t, expected = x[::-1], t[::-1], expected[::-1]
    assert tangent(op, [x], [t], axis=0, reverse=reverse).tolist() == expected


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_at_the_end_a_cumulative_maximum_is_the_maximum(dtype):
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = np.asarray(rng.integers(0, 4, (3, 9))).astype(draw(dtype, ()).dtype)
        t = draw(dtype, (3, 9), 1)
        running, whole = tangent("cummax", [x], [t], axis=1), tangent("reduce_max", [x], [t], axes=[1])
        np.testing.assert_allclose(
            running[:, -1].astype(float), whole.astype(float), rtol={"f16": 4e-3, "bf16": 4e-2}.get(dtype, 1e-6), atol=1e-2
        )


def test_nan_wins_cumulative_extrema_and_does_not_reach_back():
    x, t = [1.0, 2.0, NAN, 3.0], np.ones(4)
    np.testing.assert_equal(value("cummax", x, axis=0), [1, 2, NAN, NAN])
    np.testing.assert_equal(value("cummin", x, axis=0, reverse=True), [NAN, NAN, NAN, 3])
    np.testing.assert_equal(tangent("cummax", [x], [t], axis=0), [1, 1, NAN, NAN])
    np.testing.assert_equal(tangent("cummax", [[1.0, 2.0, 0.0]], [[NAN, 1.0, INF]], axis=0), [NAN, 1, 1])


def test_extrema_keep_infinities():
    assert value("cummax", [-INF, 1.0, INF, 2.0], axis=0).tolist() == [-INF, 1, INF, INF]
    assert tangent("cummax", [[-INF, 1.0, INF, 2.0]], [[1.0, 2.0, 3.0, 4.0]], axis=0).tolist() == [1, 2, 3, 3]


def test_logsumexp_does_not_overflow():
    x = [1000.0, 1000.0, -1000.0, 999.0]
    np.testing.assert_allclose(value("cumlogsumexp", x, axis=0)[:2], [1000, 1000 + math.log(2)], 1e-15)
    tangents = [tangent("cumlogsumexp", [x], [t], axis=0) for t in np.eye(4)]
    half, e = 0.5, math.exp(-1)
    np.testing.assert_allclose(tangents[0], [1, half, half, 1 / (2 + e)], 1e-13)
    np.testing.assert_allclose(tangents[3], [0, 0, 0, e / (2 + e)], 1e-13)
    tiny = tangent("cumlogsumexp", [[-1000.0, -1001.0]], [[1.0, 0.0]], axis=0)
    np.testing.assert_allclose(tiny, [1, 1 / (1 + e)], 1e-13)


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "c128"])
def test_logsumexp_of_masked_elements(dtype):
    x = value("convert_element_type", [-INF, 0.0, -INF, 0.0], new_dtype=dtype)
    assert np.round(value("cumlogsumexp", x, axis=0).real.astype(float), 1).tolist() == [-INF, 0, 0, 0.7]
    jacobian = [tangent("cumlogsumexp", [x], [e], axis=0).real.astype(float).tolist() for e in np.eye(4).astype(x.dtype)]
    assert np.round(jacobian, 2).T.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0.5, 0, 0.5]]
    (gradient,) = Orders("cumlogsumexp", [x], axis=0).hvp(np.ones(4, x.dtype), [np.ones(4, x.dtype)])
    assert np.isfinite(gradient.real.astype(float)).all()


def test_logsumexp_at_infinity():
    np.testing.assert_equal(value("cumlogsumexp", [INF, 1.0, NAN], axis=0), [INF, INF, NAN])
    np.testing.assert_equal(tangent("cumlogsumexp", [[0.0, INF, 1.0]], [[5.0, 3.0, 7.0]], axis=0), [5, 3, 3])
    np.testing.assert_equal(tangent("cumlogsumexp", [[-INF, -INF]], [[5.0, 3.0]], axis=0)[0], 5)


def test_complex_logsumexp_stays_on_its_sheet():
    x = np.array([1 + 3j, 1 + 3.2j, 2 + 40j, -5 - 9j, complex(-INF, 0)])
    expected = np.log(np.cumsum(np.exp(x)))
    np.testing.assert_allclose(value("cumlogsumexp", x, axis=0), expected, 1e-14)
    assert value("cumlogsumexp", np.array([complex(-INF, 0)] * 3), axis=0).real.tolist() == [-INF] * 3


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_of_half_precision_accumulate_in_single(dtype):
    x = np.ones(5000).astype(draw(dtype, ()).dtype)
    assert value("cumsum", x, axis=0)[-1] == np.float64(5000).astype(x.dtype)
    assert value("cumsum", x, axis=0, reverse=True)[0] == np.float64(5000).astype(x.dtype)


def test_derivatives_of_long_axes_are_short_graphs():
    for op in ("cumprod", "cummax", "cumlogsumexp"):
        document = one_node_document(make_case(op, {"axis": 0}, [parse_type("f64[100000]")]))
        derived = linearize(document, [i.key for i in document.head.inputs])
        assert sum(graph.n_nodes for graph in derived.graphs) < 10 * math.log2(100000)


def test_derivatives_of_long_axes_are_accurate():
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0.9, 1.1, 5000), rng.uniform(-1, 1, 5000)
    y = np.cumprod(x)
    np.testing.assert_allclose(tangent("cumprod", [x], [t], axis=0), y * np.cumsum(t / x), 1e-9, 1e-9 * np.abs(y).max())
    y = np.logaddexp.accumulate(x)
    np.testing.assert_allclose(tangent("cumlogsumexp", [x], [t], axis=0), np.cumsum(np.exp(x) * t) * np.exp(-y), 1e-9, 1e-12)
    best = np.maximum.accumulate(np.where(x == np.maximum.accumulate(x), np.arange(5000), 0))
    assert tangent("cummax", [x], [t], axis=0).tolist() == t[best].tolist()


@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 1e-5), ("f16", 1e-2), ("bf16", 1e-1), ("c64", 1e-5)])
@pytest.mark.parametrize("op", CUMULATIVE)
def test_tangents_keep_the_dtype_and_its_precision(op, dtype, tolerance):
    if dtype not in BUILTIN[op].domain.dtypes:
        return
    x, t = draw(dtype, (7,), 1, 0.5), draw(dtype, (7,), 2)
    wide = "c16" if dtype == "c64" else "f8"
    (narrow,) = jvp(make_case(op, {"axis": 0}, [type_of(x)]), [x], [t])
    (expected,) = jvp(make_case(op, {"axis": 0}, [type_of(x.astype(wide))]), [x.astype(wide)], [t.astype(wide)])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(narrow.astype(wide), expected, tolerance, tolerance * scale)


@pytest.mark.parametrize(
    ("op", "attrs", "operand", "message"),
    [
        ("cumsum", {"axis": 1}, "f64[3]", r"axis 1: the operand f64\[3\] has no such axis"),
        ("cumsum", {"axis": 0}, "f64[]", r"axis 0: the operand f64\[\] has no such axis"),
        ("cumsum", {"axis": -1}, "f64[3]", "attr 'axis'"),
        ("cumprod", {"axis": 0}, "bool[3]", "it takes numbers"),
        ("cummax", {"axis": 0}, "c64[3]", "it takes integers, floats and times"),
        ("cumlogsumexp", {"axis": 0}, "i32[3]", "it takes floats and complex numbers"),
        ("cumsum", {"axis": 0, "reversed": True}, "f64[3]", "unknown attr 'reversed'; did you mean 'reverse'"),
    ],
)
def test_messages(op, attrs, operand, message):
    with pytest.raises(TypeRuleError, match=message):
        make_case(op, attrs, [parse_type(operand)])
