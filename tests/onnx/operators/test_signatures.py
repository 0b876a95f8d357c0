"""Inputs that are not as the specification declares them are refused by their names."""

import numpy as np
import pytest

from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import One, by_tidu
from tidu_cli.errors import TiduError

X = np.ones(3, "f4")


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (One("Add", [X]), "takes 2 inputs, and has 1"),
        (One("Clip", [X, X[0], X[0], X[0]]), "takes 1 to 3 inputs, and has 4"),
        (One("Add", [X, None]), "its input 'B' is left out"),
        (One("Concat", [X, None, X], {"axis": 0}), "its input 'inputs' is left out"),
        (One("Concat", [X]), "its attribute 'axis' is missing"),
        (One("Add", [X, X.astype("f8")]), "its inputs 'A' and 'B' are of f32 and f64, and take one type"),
        (One("Max", [X, X.astype("i4")]), "'data_0' and 'data_0' are of f32 and i32, and take one type"),
        (One("Sin", [X.astype("i4")]), "its input 'input' is of i32, and takes bf16, f16, f32, f64"),
        (One("Gather", [X, X]), "its input 'indices' is of f32, and takes i32, i64"),
    ],
    ids=str,
)
def test_what_is_not_as_declared_is_refused(one, reason):
    for fold in (False, True):
        with pytest.raises(TiduError, match=f"node 0 .{one.op}.: .*{reason}"):
            by_tidu(one, fold)


def test_inputs_that_may_be_left_out_are():
    np.testing.assert_array_equal(by_tidu(One("Clip", [X, None, X[0] / 2]))[0], X / 2)


def test_floats_may_be_read_as_others_than_an_operator_takes():
    one = One("DynamicQuantizeLinear", [X], outputs=3)  # which takes f32 alone
    results = imported(one.model, one.given, cast="f64").document.head.outputs
    assert [o.type.dtype for o in results] == ["u8", "f64", "u8"]
