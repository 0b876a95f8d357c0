"""Reductions, cumulative sums and products, and softmax of ONNX, at all versions and dtypes, against other evaluators."""

import numpy as np
import pytest

from tests.onnx.operators.derivatives import one_node, require_right
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import (
    NEWEST,
    One,
    by_reference,
    by_runtime,
    by_tidu,
    draw,
    dtypes,
    eps,
    require_agreement,
    require_equal,
    versions,
)
from tests.tiers import few
from tidu_cli.adapters.onnx.reading.operators.reductions import REDUCTIONS
from tidu_cli.errors import TiduError

ALONG = [None, [], [0], [-1], [0, 2], [2, 0, 1]]


def reduction(op, version, x, axes, **attrs):
    """The node, whose axes are an attribute or an input, as the version has it."""
    as_input = version >= (13 if op == "ReduceSum" else 18)
    if as_input:
        return One(op, [x] if axes is None else [x, np.array(axes, "i8")], attrs, version)
    return One(op, [x], attrs | ({"axes": axes} if axes else {}), version)


def numbers(op, dtype, shape, seed=0):
    x = draw(np.random.default_rng(seed), dtype, shape, special=False)
    return np.abs(x) + x.dtype.type(1) if "Log" in op and "Exp" not in op else x


def require_reduced(one, tolerance):
    """As `require_agreement`, but that the reference evaluator may give i64 for integers."""
    (reduced,), compared = by_tidu(one), 0
    for other in (by_reference, by_runtime):
        try:
            (expected,) = other(one)
        except Exception:  # each has its own for what it does not take
            continue
        compared += 1
        expected = expected.astype(reduced.dtype) if reduced.dtype.kind in "iu" else expected
        require_equal([reduced], [expected], f"{one}, {other.__name__}", tolerance, tolerance)
    assert compared, f"{one}: nobody else takes it"
    require_equal(by_tidu(one, fold=True), [reduced], f"{one}, folded", tolerance, tolerance)


@pytest.mark.check
@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions_agree_with_other_evaluators_at_all_versions_and_dtypes(op):
    for version in versions(op):
        for k, dtype in few(enumerate(dtypes(op, version)), 3):  # float32 is the first
            if "Log" in op and dtype.kind in "iu":
                continue
            x = numbers(op, dtype, (2, 3, 4))
            for axes in ALONG if k == 0 else ALONG[3:5]:
                require_reduced(reduction(op, version, x, axes), 16 * eps(dtype))
            if dtype == np.float32:
                require_reduced(reduction(op, version, x, [1], keepdims=0), 1e-6)
                require_reduced(reduction(op, version, np.float32(2.5), None), 1e-6)


@pytest.mark.parametrize("op", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"])
def test_what_is_no_integer_is_rounded_towards_zero(op):
    """onnxruntime adds integers up on the way, so that it is less exact."""
    for dtype in ("i4", "i8", "u4"):
        x = numbers(op, dtype, (5, 4))
        (exact,) = by_tidu(reduction(op, 18, x.astype("f8"), [1]))
        for fold in (False, True):
            require_equal(by_tidu(reduction(op, 18, x, [1]), fold), [np.trunc(exact).astype(dtype)], f"{op} of {dtype}")


@pytest.mark.parametrize("op", REDUCTIONS)
def test_no_axes_may_mean_none(op):
    """What is done with each element is done all the same. onnxruntime leaves x as it is where that is not so."""
    x = numbers(op, "f4", (2, 3))
    each = {
        "ReduceL1": np.abs, "ReduceL2": np.abs, "ReduceLogSum": np.log, "ReduceLogSumExp": lambda v: v, "ReduceSumSquare": np.square
    }  # fmt: skip
    for axes in (None, []):
        for keepdims in (0, 1):
            one = reduction(op, NEWEST, x, axes, noop_with_empty_axes=1, keepdims=keepdims)
            require_equal(by_tidu(one), [each.get(op, lambda v: v)(x)], f"{one}", 1e-6, 1e-6)


NEUTRAL = {
    "ReduceMax": -np.inf,
    "ReduceMin": np.inf,
    "ReduceProd": 1.0,
    "ReduceMean": np.nan,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_of_no_elements_there_is_what_changes_nothing(op):
    one = reduction(op, NEWEST, np.zeros((2, 0, 3), "f4"), [1])
    for fold in (False, True):
        require_equal(by_tidu(one, fold), [np.full((2, 1, 3), NEUTRAL.get(op, 0.0), "f4")], f"{one}")
    one = reduction(op, NEWEST, np.zeros((2, 0, 3), "f4"), [0])
    require_equal(by_tidu(one), [np.zeros((1, 0, 3), "f4")], f"{one}")


def test_extrema_of_no_integers_and_bools():
    for op, dtype, expected in (
        ("ReduceMax", "i1", -128), ("ReduceMin", "i1", 127), ("ReduceMax", "?", False), ("ReduceMin", "?", True)
    ):  # fmt: skip
        one = reduction(op, NEWEST, np.zeros((2, 0), dtype), [1])
        require_equal(by_tidu(one), [np.full((2, 1), expected, dtype)], f"{one}")


def test_a_sum_of_powers_does_not_overflow():
    x = np.array([[1000.0, 1000.0], [-1000.0, -1000.0], [-np.inf, 0.0], [-np.inf, -np.inf], [np.inf, 0.0]])
    (sums,) = by_tidu(reduction("ReduceLogSumExp", NEWEST, x, [1], keepdims=0))
    np.testing.assert_allclose(sums, np.logaddexp(*x.T), rtol=1e-15)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_derivatives_of_reductions(op):
    x = np.abs(draw(np.random.default_rng(1), "f8", (2, 3, 4), special=False)) + 0.5
    require_right(one_node(op, {"x": x, "axes": np.array([0, 2])}, constants=["axes"]), {"x": x})


@pytest.mark.parametrize("bad", [[3], [-4], [0, 0]])
def test_axes_that_there_are_not(bad):
    with pytest.raises(TiduError, match=r"node 0 \(ReduceSum\): ax"):
        by_tidu(reduction("ReduceSum", NEWEST, np.zeros((2, 3, 4), "f4"), bad), fold=True)


@pytest.mark.check
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_cumulative_sums_and_products(op, exclusive, reverse):
    attrs = {"exclusive": exclusive, "reverse": reverse}
    for version in versions(op):
        for dtype in dtypes(op, version):
            x = draw(np.random.default_rng(2), dtype, (3, 4), special=False)
            for axis in (np.int64(0), np.array([-1], "i4")) if dtype == np.float32 else (np.int32(1),):
                require_agreement(One(op, [x, axis], attrs, version), 8 * eps(dtype), 8 * eps(dtype))
    one = One(op, [np.zeros((2, 0), "f4"), np.int64(1)], attrs)
    require_equal(by_tidu(one), [np.zeros((2, 0), "f4")], f"{one}")
    x = draw(np.random.default_rng(3), "f8", (3, 4), special=False)
    require_right(one_node(op, {"x": x, "axis": np.int64(1)}, constants=["axis"], **attrs), {"x": x})


def test_what_is_excluded_leaves_no_trace():
    x = np.array([1e30, 1.0, np.inf, 2.0], "f4")
    require_equal(by_tidu(One("CumSum", [x, np.int64(0)], {"exclusive": 1})), [np.array([0, 1e30, 1e30, np.inf], "f4")], "sum")
    x = np.array([0.0, 3.0], "f4")
    require_equal(by_tidu(One("CumProd", [x, np.int64(0)], {"exclusive": 1})), [np.array([1, 0], "f4")], "product")


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_at_all_versions(op):
    for version in versions(op):
        for dtype in dtypes(op, version):
            x = draw(np.random.default_rng(4), dtype, (2, 3, 4), special=False)
            for axis in (None, 0, 1, 2, -1, -2):
                attrs = {} if axis is None else {"axis": axis}
                one = One(op, [x], attrs, version)
                tolerance = 16 * eps(dtype)
                (softmax,) = by_tidu(one)
                other = by_reference if version >= 13 else by_runtime  # the reference knows the newest definition alone
                if other is by_reference or dtype in ("f4", "f8"):
                    require_equal([softmax], other(one), f"{one}", tolerance, tolerance)
                require_equal(by_tidu(one, fold=True), [softmax], f"{one}, folded", tolerance, tolerance)
    for axis in (-1, 1):
        x = draw(np.random.default_rng(5), "f8", (2, 3, 4), special=False)
        for version in (11, NEWEST):
            require_right(one_node(op, {"x": x}, opset=version, axis=axis), {"x": x})


def test_softmax_neither_overflows_nor_loses_what_is_small():
    x = np.array([[1e4, 0.0, -1e4], [3e38, 3e38, -3e38]], "f4")
    require_agreement(One("Softmax", [x]))
    (logs,) = by_tidu(One("LogSoftmax", [np.array([[0.0, -50.0], [1e8, 1e8]])]))
    np.testing.assert_allclose(logs, [[-np.exp(-50.0), -50.0], [-np.log(2.0)] * 2], rtol=1e-15, atol=2e-22)


def test_softmax_is_few_nodes():
    x = np.zeros((2, 3), "f4")
    document = imported(One("Softmax", [x]).model, {"x0": x}).document
    assert document.head.n_nodes <= 10


def test_the_axis_of_an_older_softmax_may_be_past_the_last():
    x = np.ones((2, 3), "f4")
    require_equal(by_tidu(One("Softmax", [x], {"axis": 2}, 11)), [x], "each alone")
    with pytest.raises(TiduError, match="its axis 3 is none of an array of 2 axes"):
        by_tidu(One("Softmax", [x], {"axis": 3}, 11))
