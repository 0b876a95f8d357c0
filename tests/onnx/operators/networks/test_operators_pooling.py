"""Poolings of ONNX over random attributes, against onnxruntime, and their derivatives."""

import numpy as np
import pytest

from tests.onnx.operators.families import require_derivatives, require_dtypes, require_values
from tests.onnx.operators.networks.test_operators_convolution import ints
from tests.onnx.operators.one_node import One, by_runtime, by_tidu
from tidu_cli.errors import TiduError

SINCE = {"MaxPool": [7, 8, 10, 11, 12, 22], "AveragePool": [7, 10, 11, 19, 22], "LpPool": [7, 11, 18, 22]}
DILATED = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}
CEILED = {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}


def pool(op, floats=False):
    """Models of a pooling. Those with dilations have no automatic padding, where onnxruntime forgets them."""

    def draw(rng):
        rank, version = int(rng.integers(1, 4)), int(rng.choice(SINCE[op]))
        kernel, attrs = ints(rng, 1, 4, rank), {}
        if rng.random() < 0.6:
            attrs["strides"] = ints(rng, 1, 4, rank)
        if rng.random() < 0.4:
            attrs["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"]))
        else:
            attrs["pads"] = [int(rng.integers(0, k)) for k in kernel * 2]
            if rng.random() < 0.5 and version >= DILATED[op]:
                attrs["dilations"] = ints(rng, 1, 3, rank)
        if rng.random() < 0.5 and version >= CEILED[op]:
            attrs["ceil_mode"] = 1
        if op == "AveragePool" and rng.random() < 0.5:
            attrs["count_include_pad"] = 1
        if op == "LpPool":
            attrs["p"] = int(rng.choice([1, 2, 3]))
        outputs = 1 if op != "MaxPool" or rng.random() < 0.5 else 2
        if outputs == 2 and version >= 8:
            attrs["storage_order"] = int(rng.integers(0, 2))
        dtype = rng.choice(["i1", "u1", "f8"]) if op == "MaxPool" and version >= 12 and not floats and rng.random() < 0.5 else "f4"
        x = rng.standard_normal((*ints(rng, 1, 3, 2), *ints(rng, 5, 9, rank))) * (1 if dtype in "f4 f8" else 20)
        return One(
            op, [np.abs(x).astype(dtype) if dtype == "u1" else x.astype(dtype)], attrs | {"kernel_shape": kernel}, version, outputs
        )

    return draw


def whole(op):
    def draw(rng):
        x = rng.standard_normal((*ints(rng, 1, 3, 2), *ints(rng, 1, 5, int(rng.integers(1, 4))))).astype("f4")
        return One(op, [x], {"p": int(rng.integers(1, 4))} if op == "GlobalLpPool" else {}, int(rng.choice([7, 22])))

    return draw


def max_unpool(rng):
    rank = int(rng.integers(1, 4))
    kernel = ints(rng, 1, 3, rank)
    x = rng.standard_normal((*ints(rng, 1, 3, 2), *[k * int(rng.integers(2, 4)) for k in kernel])).astype("f4")
    attrs = {"kernel_shape": kernel, "strides": kernel}
    y, places = by_runtime(One("MaxPool", [x], attrs, outputs=2))
    shape = [np.array(x.shape)] * int(rng.integers(0, 2))
    return One("MaxUnpool", [y, places, *shape], attrs, int(rng.choice([9, 11, 22])))


GLOBAL = ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
KINDS = {op: pool(op, floats=True) for op in SINCE} | {op: whole(op) for op in GLOBAL} | {"MaxUnpool": max_unpool}


@pytest.mark.parametrize("op", [*SINCE, *GLOBAL, "MaxUnpool"])
def test_they_agree_with_onnxruntime(op):
    """The reference evaluator has other places of maxima, other counts with ceil_mode, and other shapes of global maxima."""
    require_values(pool(op) if op in SINCE else KINDS[op], lambda one: [by_runtime], 80)


@pytest.mark.parametrize("op", KINDS)
def test_results_have_the_dtype_of_operands(op):
    require_dtypes(KINDS[op])


@pytest.mark.check
@pytest.mark.parametrize("op", KINDS)
def test_derivatives(op):
    require_derivatives(KINDS[op])


def test_maxima_have_the_first_of_equal_places():
    values, places = by_tidu(One("MaxPool", [np.zeros((1, 2, 4), np.float32)], {"kernel_shape": [2], "strides": [2]}, outputs=2))
    assert not values.any()
    assert places.tolist() == [[[0, 2], [4, 6]]]


X = np.ones((1, 2, 5, 5), np.float32)


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (One("MaxPool", [X], {"kernel_shape": [3]}), "windows"),
        (One("MaxPool", [X], {"kernel_shape": [0, 3]}), "windows"),
        (One("MaxPool", [X], {"kernel_shape": [6, 3]}), "windows of 6 elements along an axis of 5"),
        (One("MaxPool", [X], {}), "'kernel_shape' is missing"),
        (One("LpPool", [X], {"kernel_shape": [2, 2], "p": 0}), "p 0"),
        (One("GlobalLpPool", [X], {"p": 0}), "p 0"),
        (One("AveragePool", [X], {"kernel_shape": [2, 2], "auto_pad": "ALL"}), "auto_pad"),
        (One("AveragePool", [X], {"kernel_shape": [2, 2], "pads": [10**12] * 4}), "more than the limit"),
        (One("MaxUnpool", [X, X.astype("i8")], {"kernel_shape": [2]}), "kernel_shape"),
        (One("MaxUnpool", [X, X.astype("i8"), np.array([1, 2, 9, 9])], {"kernel_shape": [2, 2]}), "output_shape"),
    ],
)
def test_what_does_not_fit_is_refused(one, told):
    with pytest.raises(TiduError, match=told):
        by_tidu(one)
