"""Choices by comparisons of floats, in other operators than Where: the same values, and the same document when they are read."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.formats.plain import read
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import One
from tests.onnx.writing.written import by_reference, by_runtime, checked_model, require_round_trip
from tidu_cli import api, formula
from tidu_cli.adapters.onnx.writing.choosing import LEAST

ODD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 3e38, -3e38], "f4")

CHOICES = {
    "by products": "where(x < y, x, y * 2)",
    "kept": "where(x > y, x, 0)",
    "others kept": "where(x > y, 0, x)",
}


@pytest.mark.parametrize("form", CHOICES)
@pytest.mark.parametrize("odd", [[], [np.nan], [np.inf], [-np.inf], ODD], ids=str)
def test_choices_are_products_where_all_is_finite(form: str, odd: list[float]) -> None:
    document = formula(CHOICES[form], {"x": f"f32[{LEAST}]", "y": f"f32[{LEAST}]"})
    model = checked_model(document)
    assert "If" in [node.op_type for function in model.functions for node in function.node]
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(LEAST).astype("f4") for _ in "xy")
    x[: len(odd) ** 2], y[: len(odd) ** 2] = np.repeat(odd, len(odd)), np.tile(odd, len(odd))
    x[100 : 100 + len(odd)], y[200 : 200 + len(odd)] = odd, odd
    due = next(iter(api.evaluate(document, {"x": x, "y": y}).values()))
    for other in (by_reference, by_runtime):
        np.testing.assert_array_equal(other(model, {"x": x, "y": y})[0], due)
    require_round_trip(document, model)


@pytest.mark.parametrize("text", ["where(x < y, x, y * 2)", "where(x <= 1, 0, x)", "where(x <= 0, 1, x)", "where(i < j, x, y)"])
def test_few_choices_and_those_by_integers_are_where(text: str) -> None:
    kinds = {"x": "f32[8]", "y": "f32[8]"} if "x <" in text else dict.fromkeys("xy", f"f32[{LEAST}]")
    kinds |= {name: f"i32[{LEAST}]" for name in "ij" if "i < j" in text}
    model = checked_model(formula(text, {name: kind for name, kind in kinds.items() if name in text}))
    assert not model.functions
    assert "Where" in [node.op_type for node in model.graph.node]


def test_relu_is_relu() -> None:
    document = imported(One("Relu", [ODD]).model, {"x0": ODD}).document
    gradient = api.vjp(document, ["x0"], ["y0"])
    for written, due in ((document, np.where(ODD <= 0, 0, ODD)), (gradient, np.where(ODD <= 0, 0, 1))):
        model = checked_model(written)
        require_round_trip(written, model)
        given = {"x0": ODD, "y0@-1": np.ones_like(ODD)}
        inputs = {i.name: given[i.name] for i in model.graph.input}
        np.testing.assert_array_equal(by_runtime(model, inputs)[0], due)
    assert "Relu" in [node.op_type for node in checked_model(document).graph.node]


def test_what_relu_gives_is_compared_and_not_what_it_takes() -> None:
    """So convolutions have one reader, and runtimes make Relu a part of them."""
    x = np.random.default_rng(1).standard_normal((1, 2, 6, 6)).astype("f4")
    w = np.random.default_rng(2).standard_normal((3, 2, 3, 3)).astype("f4")
    convolved = onnx.helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1])
    squared = onnx.helper.make_node("ReduceSumSquare", ["r"], ["y"], keepdims=0)
    nodes = [convolved, onnx.helper.make_node("Relu", ["c"], ["r"]), squared]
    value = [onnx.helper.make_tensor_value_info(k, 1, s) for k, s in (("x", x.shape), ("w", w.shape), ("y", []))]
    graph = onnx.helper.make_graph(nodes, "g", value[:2], value[2:])
    given = {"x": x, "w": w}
    document = imported(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)]), given).document
    for gradient in (api.grad(document, "x", "y"), api.grad(document, ["x", "w"], "y")):
        model = checked_model(gradient)
        require_round_trip(gradient, model)
        (conv,) = [node for node in model.graph.node if node.op_type == "Conv" and node.input[0] == "x" and node.input[1] == "w"]
        assert [node.op_type for node in model.graph.node if conv.output[0] in node.input] == ["Relu"]
        values = {i.name: given[i.name] for i in model.graph.input}
        due = api.evaluate(gradient, values)
        for name, y in zip([o.name for o in model.graph.output], by_runtime(model, values), strict=True):
            np.testing.assert_allclose(y, due[name], rtol=1e-5, atol=1e-5)


def test_comparisons_that_are_read_before_relu_stay_where_they_are() -> None:
    """And those of an input, whose number is 0, which claims do not tell from none."""
    x, y, f32 = "f32[8]", "f32[8]", "f32[8]"
    zero = {"op": "constant", "inputs": [], "attrs": {"value": {"type": f32, "data": [0.0] * 8}}}
    below = {"op": "le", "inputs": [3, 2]}
    early = {"op": "select_n", "inputs": [4, 1, 0]}
    relu = {"op": "select_n", "inputs": [4, 3, 2]}
    outputs = [{"key": "a", "type": f32, "value": 5}, {"key": "b", "type": f32, "value": 6}]
    inputs = [{"key": "x", "type": x}, {"key": "y", "type": y}]
    nodes = [zero, {"op": "sub", "inputs": [0, 1]}, below, early, relu]
    document = read({"tidu": 1, "graphs": [{"name": "f", "inputs": inputs, "nodes": nodes, "outputs": outputs}]})
    model = checked_model(document)
    require_round_trip(document, model)
    assert [node.op_type for node in model.graph.node] == ["Sub", "LessOrEqual", "Where", "Relu"]
