"""Small models for tests, as exporters write them. `python -m tests.onnx.models` writes those that are files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def model(nodes: list[Any], inputs: Any, outputs: Any, opset: int = 17, **more: Any) -> ModelProto:
    """A model of these nodes; inputs and outputs are (name, shape) of f32, or of another type (name, shape, type)."""
    made = [
        [helper.make_tensor_value_info(n, rest[0] if rest else FLOAT, shape) for n, shape, *rest in ports]
        for ports in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, more.pop("name", "g"), *made, more.pop("initializer", []))
    opsets = [helper.make_opsetid("", opset), *more.pop("opsets", [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="tests", **more)


def network() -> ModelProto:
    """tanh(x W + b) V, summed: `score` of x, f32[batch,3]."""
    rng = np.random.default_rng(0)
    shapes = {"fc1.weight": (3, 4), "fc1.bias": (4,), "fc2.weight": (4, 1)}
    nodes = [
        helper.make_node("MatMul", ["x", "fc1.weight"], ["h0"], name="mm1"),
        helper.make_node("Add", ["h0", "fc1.bias"], ["h1"], name="add1"),
        helper.make_node("Tanh", ["h1"], ["h2"], name="act"),
        helper.make_node("MatMul", ["h2", "fc2.weight"], ["s"], name="mm2"),
        helper.make_node("ReduceSum", ["s"], ["score"], name="sum", keepdims=0),
    ]
    weights = [numpy_helper.from_array(rng.integers(-4, 5, shape).astype("f4") / 4, name) for name, shape in shapes.items()]
    return model(nodes, [("x", ["batch", 3])], [("score", [])], initializer=weights, name="mlp")


def unread() -> ModelProto:
    """A model with operators that are not read: of strings, of random numbers, and of a domain that nobody knows."""
    nodes = [
        helper.make_node("Tanh", ["x"], ["h"]),
        helper.make_node("RandomNormalLike", ["h"], ["r"], name="noise"),
        helper.make_node("Fancy", ["r"], ["s"], domain="vendor", name="fancy"),
        helper.make_node("Fancy", ["s"], ["t"], domain="vendor"),
        helper.make_node("NonZero", ["t"], ["n"]),
        helper.make_node("Unique", ["t"], ["y"]),
    ]
    return model(nodes, [("x", [4])], [("y", [4])], opsets=[helper.make_opsetid("vendor", 1)])


def rounding() -> ModelProto:
    """A model beyond whose rounding no derivative goes."""
    nodes = [
        helper.make_node("Floor", ["x"], ["f"], name="floor"),
        helper.make_node("Mul", ["f", "x"], ["p"]),
        helper.make_node("ArgMax", ["p"], ["i"], name="place", keepdims=0),
        helper.make_node("Cast", ["i"], ["y"], to=FLOAT),
        helper.make_node("Greater", ["x", "p"], ["g"]),
        helper.make_node("Where", ["g", "x", "p"], ["z"]),
    ]
    return model(nodes, [("x", [4])], [("y", []), ("z", [4])])


def tied() -> ModelProto:
    """tanh(table[tokens] W) Wᵀ, summed to [1,1], where folding made the second weight, `val_14`, as torch's exporter names it."""
    nodes = [
        helper.make_node("Gather", ["g.table", "tokens"], ["embedded"], name="embed"),
        helper.make_node("MatMul", ["embedded", "g.head.weight"], ["h"], name="in"),
        helper.make_node("Tanh", ["h"], ["t"], name="act"),
        helper.make_node("MatMul", ["t", "val_14"], ["s"], name="out"),
        helper.make_node("ReduceSum", ["s"], ["score"], name="sum", keepdims=1),
    ]
    weight = np.arange(6, dtype="f4").reshape(2, 3) / 8
    weights = {"g.table": np.eye(3, 2, dtype="f4"), "g.head.weight": weight, "val_14": weight.T.copy()}
    initializer = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    inputs = [("tokens", [4], TensorProto.INT64)]
    return model(nodes, inputs, [("score", [1, 1])], initializer=initializer, name="tied")


STORED = {"mlp": network, "unread": unread, "rounding": rounding, "tied": tied}
"""The models that are files among the cases of the command line, by name."""

if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "cli" / "cases" / "onnx"
    for name, make in STORED.items():
        (folder / f"{name}.onnx").write_bytes(make().SerializeToString(deterministic=True))
