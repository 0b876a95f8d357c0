"""How many operators values and gradients take: each is a pass over memory."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import One
from tidu_cli import api
from tidu_cli.adapters.onnx.writing.model import onnx_model
from tidu_cli.graph.graph import Document


def operators(document: Document) -> Counter[str]:
    """The operators of the model of a document, those of functions as often as they are called; copies and constants are none."""
    model, counted = onnx_model(document), Counter[str]()
    functions = {function.name: function for function in model.functions}
    pending = list(model.graph.node)
    while pending:
        node = pending.pop()
        if node.domain:
            pending += functions[node.op_type].node
        elif node.op_type not in ("Constant", "Identity"):
            counted[node.op_type] += 1
    return counted


GELU = """<ir_version: 10, opset_import: ["": 18]>
g (float[3] x0) => (float[3] y0) <float root = {1.4142135}, float one = {1}, float half = {0.5}>
{
  r = CastLike (root, x0) o = CastLike (one, x0) h = CastLike (half, x0)
  a = Div (x0, r) b = Erf (a) c = Add (b, o) d = Mul (x0, c) y0 = Mul (d, h)
}"""
"""As exporters without the operator write it."""


@pytest.mark.parametrize("dtype", ["float16", "float"])
@pytest.mark.parametrize(("form", "of_value", "of_gradient"), [("none", 5, 13), ("tanh", 6, 17), ("decomposed", 5, 13)])
def test_gelu_is_short(dtype: str, form: str, of_value: int, of_gradient: int) -> None:
    x = np.zeros(3, "f2" if dtype == "float16" else "f4")
    model = onnx.parser.parse_model(GELU.replace("float[", f"{dtype}["))
    document = imported(model if form == "decomposed" else One("Gelu", [x], {"approximate": form}).model, {"x0": x}).document
    value, gradient = operators(document), operators(api.vjp(document, ["x0"], ["y0"]))
    assert value.total() <= of_value, value
    assert gradient.total() <= of_gradient, gradient
    assert {"Erf", "Sigmoid"} & set(value), value
