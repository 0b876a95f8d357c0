"""One limit on the axes and the size of arrays, wherever they come from: read, inferred, made by a rule, or by a batch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.formats.plain import read
from tests.fuzz.inputs.attr_values import one_node
from tests.fuzz.trying import with_outputs
from tidu_cli.api import compile as compiled
from tidu_cli.api import evaluate, jacobian, linearize, transpose
from tidu_cli.errors import DocumentError, EvaluationError, MissingRuleError, TransformError, TypeTextError
from tidu_cli.graph.types import MAX_RANK, parse_type

ONES = ",".join(["1"] * MAX_RANK)
MOST = with_outputs(one_node("mul", [f"f64[{ONES}]", f"f64[{ONES}]"], {}))


def test_as_many_axes_as_numpy_has_work():
    one = np.full((1,) * MAX_RANK, 3.0)
    assert evaluate(MOST, {"x0": one, "x1": one})["y0"].shape == one.shape
    assert compiled(MOST)({"x0": one, "x1": one})["y0"].item() == 9
    back = transpose(linearize(MOST, ["x0"]))
    assert evaluate(back, {"x1": one, "y0@-1": one})["x0@-1"].item() == 9


def test_that_is_numpys_limit():
    with pytest.raises(ValueError, match="dimension"):
        np.zeros((1,) * (MAX_RANK + 1))


@pytest.mark.parametrize("text", [f"f64[{ONES},1]", "f64[2305843009213693952]", "f64[0,9223372036854775808]", f"i8[{'9' * 5000}]"])
def test_types_past_the_limit(text):
    with pytest.raises(TypeTextError, match=r"65 axes; the most are 64|larger than any memory"):
        parse_type(text)
    with pytest.raises(DocumentError, match="graph 'f', input 'x0': type: "):
        read(one_node("sin", [text], {}))


@pytest.mark.parametrize(
    ("op", "types", "attrs"),
    [
        ("broadcast_in_dim", ["f64[]"], {"shape": [1] * 65, "broadcast_dimensions": []}),
        ("broadcast_in_dim", ["f64[]"], {"shape": [2**60], "broadcast_dimensions": []}),
        ("broadcast_in_dim", ["f64[]"], {"shape": [0, 2**62], "broadcast_dimensions": []}),
        ("reshape", ["f64[]"], {"new_sizes": [1] * 65}),
        ("iota", [], {"dtype": "f64", "shape": [2**62], "dimension": 0}),
        ("pad", ["f64[1]", "f64[]"], {"padding_config": [[2**61, 2**61, 0]]}),
        ("concatenate", ["i8[3074457345618258602]", "i8[3074457345618258602]"], {"dimension": 0}),
    ],
)
def test_results_past_the_limit(op, types, attrs):
    with pytest.raises(
        DocumentError, match=rf"graph 'f', node 0 \({op}\): an array of (65 axes|type .* is larger than any memory)"
    ):
        read(one_node(op, types, attrs))


def test_a_batch_past_the_limit():
    message = r"input x0: a batch of f64\[1,1,.* would be an array of 65 axes; the most are 64"
    one = np.full((1,) * MAX_RANK, 3.0)
    with pytest.raises(EvaluationError, match=message):
        evaluate(MOST, {"x0": [one.tolist()], "x1": one}, batch={"x0": 0})
    wide = with_outputs(one_node("broadcast_in_dim", ["f64[]"], {"shape": [1] * MAX_RANK, "broadcast_dimensions": []}))
    with pytest.raises(EvaluationError, match=message.replace("input x0", "output y0")):
        evaluate(wide, {"x0": [1.0, 2.0]}, batch={"x0": 0})


def test_a_batch_that_no_memory_holds():
    wide = with_outputs(one_node("broadcast_in_dim", ["f64[]"], {"shape": [2**58], "broadcast_dimensions": []}))
    message = r"output y0: 4 values of f64\[288230376151711744\] are larger than any memory; take fewer at a time$"
    with pytest.raises(EvaluationError, match=message):
        evaluate(wide, {"x0": [1.0, 2.0, 3.0, 4.0]}, batch={"x0": 0})


def test_a_rule_past_the_limit_names_the_node():
    # Inside, 64 axes; a batch of them is one too many.
    nodes = [
        {"op": "broadcast_in_dim", "inputs": [0], "attrs": {"shape": [1] * MAX_RANK, "broadcast_dimensions": []}},
        {"op": "reduce_sum", "inputs": [1], "attrs": {"axes": list(range(MAX_RANK))}},
    ]
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": nodes, "outputs": [{"key": "y", "value": 2}]}
    with pytest.raises(MissingRuleError, match=r"graph 'f', node 0 \(broadcast_in_dim\): its rule does not apply: an? .*65 axes"):
        evaluate(read({"tidu": 1, "graphs": [graph]}), {"x": [1.0, 2.0]}, batch={"x": 0})


def test_a_matrix_past_the_limit():
    with pytest.raises(TransformError, match=r"graph 'f@-?1': its matrix would need more than an array holds: .*65 axes"):
        jacobian(MOST, ["x0"])


def test_sizes_that_no_machine_integer_holds_are_told():
    # Eight arrays of 2**61 bytes each are more bytes than 64 bits count.
    shape = {"dtype": "f64", "shape": [2**58], "dimension": 0}
    nodes = [{"op": "iota", "inputs": [], "attrs": shape}, {"op": "optimization_barrier", "inputs": [0] * 8}]
    nodes.append({"op": "reduce_sum", "inputs": [8], "attrs": {"axes": [0]}})
    document = read({"tidu": 1, "graphs": [{"name": "f", "inputs": [], "nodes": nodes, "outputs": [{"key": "y", "value": 9}]}]})
    assert compiled(document).outputs == {"y": "f64[]"}
    with pytest.raises(EvaluationError, match="more than the limit of"):
        evaluate(document)
