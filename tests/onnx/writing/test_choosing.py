"""Nodes in other operators for what is beside or before them: the same values, and the same document when they are read."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest

from tests.formats.plain import read
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import One
from tests.onnx.writing.written import by_reference, by_runtime, checked_model, require_round_trip
from tidu_cli import api, formula
from tidu_cli.adapters.onnx.writing.arrays import MANY_ROWS, SHORT
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


def written(nodes: list[dict[str, Any]], inputs: dict[str, str], outputs: dict[int, str]) -> tuple[Any, list[str], Any]:
    """A document of these nodes; the operators that its model is written with, which has its values; and the model."""
    document = read(
        {
            "tidu": 1,
            "graphs": [
                {
                    "name": "f",
                    "inputs": [{"key": key, "type": kind} for key, kind in inputs.items()],
                    "nodes": nodes,
                    "outputs": [{"key": f"y{v}", "type": kind, "value": v} for v, kind in outputs.items()],
                }
            ],
        }
    )
    model, rng = checked_model(document), np.random.default_rng(6)
    values = {
        str(i.key): rng.integers(-1, 5, i.type.shape)
        if i.type.dtype == "i64"
        else (rng.standard_normal(i.type.shape) * 40).astype("f4")
        for i in document.free_inputs
    }
    due = api.evaluate(document, values)
    for output, y in zip(model.graph.output, by_runtime(model, values), strict=True):
        np.testing.assert_allclose(y, due[output.name], rtol=1e-5, atol=1e-4)
    require_round_trip(document, model)
    nodes_of = {f.name: [n.op_type for n in f.node if n.op_type != "Constant"] for f in model.functions}
    return document, [op for n in model.graph.node for op in nodes_of.get(n.op_type, [n.op_type])], model


ZEROS = [
    {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f32[]", "data": [0.0]}}},
    {"op": "broadcast_in_dim", "attrs": {"shape": [4, 3], "broadcast_dimensions": []}},
]


def scattered(zeros: int, places: int, updates: int) -> dict[str, Any]:
    numbers = {
        "update_window_dims": [1],
        "inserted_window_dims": [0],
        "scatter_dims_to_operand_dims": [0],
        "operand_batching_dims": [],
        "scatter_indices_batching_dims": [],
    }
    attrs = {"dimension_numbers": numbers, "mode": "clip"}
    return {"op": "scatter-add", "inputs": [zeros, places, updates], "attrs": attrs}


@pytest.mark.parametrize("swapped", [False, True])
def test_what_is_scattered_is_added_to_other_scattered_values_in_place(swapped: bool) -> None:
    kinds = {"i": "i64[5,1]", "j": "i64[5,1]", "k": "i64[5,1]", "u": "f32[5,3]", "v": "f32[5,3]", "x": "f32[4,3]"}
    zeros = [ZEROS[0], ZEROS[1] | {"inputs": [6]}]
    first = [*zeros, scattered(7, 0, 3), scattered(7, 1, 4), {"op": "add", "inputs": [9, 8] if swapped else [8, 9]}]
    more = [scattered(7, 2, 3), {"op": "add", "inputs": [11, 10] if swapped else [10, 11]}, {"op": "add", "inputs": [12, 5]}]
    _, ops, _ = written([*first, *more], kinds, {13: "f32[4,3]"})
    assert ops.count("ScatterND") == 3
    assert ops.count("Add") == 1  # x, which nothing scatters
    for outputs, n_sums in (({10: "f32[4,3]"}, 0), ({9: "f32[4,3]", 10: "f32[4,3]"}, 1)):  # what else is read stays itself
        assert written(first, kinds, outputs)[1].count("Add") == n_sums


def test_what_is_scattered_to_other_than_zeros_is_added() -> None:
    kinds = {"i": "i64[5,1]", "u": "f32[5,3]", "x": "f32[4,3]"}
    _, ops, _ = written([scattered(2, 0, 1), {"op": "add", "inputs": [2, 3]}], kinds, {4: "f32[4,3]"})
    assert "Add" in ops


@pytest.mark.parametrize(("low", "high", "n_compared"), [(-9.0, 2.0**30, 0), (-9.0, 2.0**33, 2), (-(2.0**33), 9.0, 2)])
def test_floats_that_bounds_make_fit_become_integers_without_comparisons(low: float, high: float, n_compared: int) -> None:
    bounds = [{"op": "constant", "inputs": [], "attrs": {"value": {"type": "f32[]", "data": [x]}}} for x in (low, high)]
    wide = [{"op": "broadcast_in_dim", "inputs": [k], "attrs": {"shape": [9], "broadcast_dimensions": []}} for k in (1, 2)]
    clipped = [{"op": "max", "inputs": [0, 3]}, {"op": "min", "inputs": [5, 4]}]
    converted = {"op": "convert_element_type", "inputs": [6], "attrs": {"new_dtype": "i32"}}
    document, ops, model = written([*bounds, *wide, *clipped, converted], {"x": "f32[9]"}, {7: "i32[9]"})
    assert ops.count("Less") == n_compared
    np.testing.assert_array_equal(by_runtime(model, {"x": ODD})[0], api.evaluate(document, {"x": ODD})["y7"])


@pytest.mark.parametrize(
    ("shape", "wide"),
    [([MANY_ROWS, 4], True), ([2, MANY_ROWS // 2, SHORT], True), ([MANY_ROWS, SHORT + 1], False), ([9, 4], False)],
)
def test_short_rows_of_equal_elements_are_columns_turned(shape: list[int], wide: bool) -> None:
    axes = [*range(len(shape) - 1)]
    nodes = [
        {"op": "broadcast_in_dim", "inputs": [0], "attrs": {"shape": shape, "broadcast_dimensions": axes}},
        {"op": "mul", "inputs": [1, 2]},
    ]
    kinds = {"w": f"f32{shape[:-1]}".replace(" ", ""), "x": f"f32{shape}".replace(" ", "")}
    _, ops, _ = written(nodes, kinds, {3: kinds["x"]})
    assert ("Transpose" in ops, "Expand" in ops) == (wide, wide)


def test_broadcasts_that_have_all_of_the_shape_together_are_left_to_operators() -> None:
    nodes = [
        {"op": "broadcast_in_dim", "inputs": [0], "attrs": {"shape": [3, 4], "broadcast_dimensions": [0]}},
        {"op": "broadcast_in_dim", "inputs": [1], "attrs": {"shape": [3, 4], "broadcast_dimensions": [1]}},
        {"op": "mul", "inputs": [2, 3]},
    ]
    kinds = {"x": "f32[3]", "y": "f32[4]"}
    assert "Expand" not in written(nodes, kinds, {4: "f32[3,4]"})[1]
    both = [nodes[0], nodes[0], nodes[2]]
    both[1] = both[1] | {"inputs": [1]}
    assert "Expand" in written(both, {"x": "f32[3]", "y": "f32[3]"}, {4: "f32[3,4]"})[1]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_places_of_samples_are_clipped_once(mode: str, padding: str) -> None:
    rng = np.random.default_rng(8)
    x, grid = rng.standard_normal((2, 3, 4, 5)).astype("f4"), (rng.standard_normal((2, 3, 4, 2)) * 1.5).astype("f4")
    document = imported(One("GridSample", [x, grid], {"mode": mode, "padding_mode": padding}, 20).model, {}).document
    gradient = api.vjp(document, ["x0"], ["y0"])
    model = checked_model(gradient)
    reads = [f for f in model.functions if {"Gather", "ScatterND"} & {n.op_type for n in f.node}]
    assert not {"Clip", "Max", "Min"} & {n.op_type for f in reads for n in f.node}
    grid[0, 0, :, 0] = [np.nan, np.inf, -np.inf, 1e30]
    given = {"x0": x, "x1": grid, "y0@-1": rng.standard_normal((2, 3, 3, 4)).astype("f4")}
    given = {i.name: given[i.name] for i in model.graph.input}
    due = api.evaluate(gradient, given)
    for output, y in zip(model.graph.output, by_runtime(model, given), strict=True):
        np.testing.assert_allclose(y, due[output.name], rtol=1e-5, atol=1e-5)


def layers(n: int, gate: str) -> Any:
    """The gradient of layers that multiply what they take by a gate of it."""
    text = "x"
    for _ in range(3):
        taken = f"({text} @ a)"
        text = f"({taken} * {gate.replace('z', taken)})"
    return api.grad(formula(f"sum({text})", {"x": f"f32[{n},128]", "a": "f32[128,128]"}), ["x"])


def test_what_is_held_for_the_way_back_is_computed_again() -> None:
    document = layers(LEAST // 128, "(1 + erf(z / 1.5))")
    model = checked_model(document)
    require_round_trip(document, model)
    assert [node.op_type for node in model.graph.node if not node.metadata_props].count("Erf") == 2  # the last layer's is at hand
    rng = np.random.default_rng(3)
    values = {"x": rng.standard_normal((LEAST // 128, 128)), "a": rng.standard_normal((128, 128)) / 9}
    given = {name: value.astype("f4") for name, value in values.items()}
    due = next(iter(api.evaluate(document, given).values()))
    for other in (by_reference, by_runtime):
        np.testing.assert_allclose(other(model, given)[0], due, rtol=0, atol=2e-5 * np.abs(due).max())
    ran = "".join("E" if op == "Erf" else "m" for op in in_order(model, given) if op == "Erf" or "MatMul" in op or op == "Gemm")
    assert ran == "mEmEmE" + "mEmEm"  # copies are not merged, nor computed before what they wait for


def in_order(model: Any, given: dict[str, Any]) -> list[str]:
    """The operators that onnxruntime executes, in its order."""
    import onnxruntime

    with TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.enable_profiling, options.profile_file_prefix, options.intra_op_num_threads = True, f"{folder}/p", 1
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, given)
        events = json.loads(Path(session.end_profiling()).read_text())
    return [e["args"]["op_name"] for e in events if e.get("cat") == "Node" and e["name"].endswith("_kernel_time")]


@pytest.mark.parametrize(("n", "gate"), [(64, "(1 + erf(z / 1.5))"), (128, "tanh(z / 2)")])
def test_small_arrays_and_what_takes_long_are_computed_once(n: int, gate: str) -> None:
    assert all(node.metadata_props for node in checked_model(layers(n, gate)).graph.node)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("sum(sin(x[0:2])) + sum(x[2:5]**3) + sum(exp(x[5:6]))", 2),
        ("sum(sin(x[4:6])) + sum(x[2:4]**3) + sum(exp(x[0:2]))", 2),
        ("sum(sin(x[:, 3:])) + sum(x[:, :3]**3)", 1),
        ("sum(sin(x[0:2])) + sum(x[2:5]**3)", 0),  # a row that is not read
        ("sum(sin(x[0:4])) + sum(x[3:6]**3)", 0),  # a row that is read twice
        ("sum(exp(x[2:4])) + sum(sin(x[0:2])) + sum(x[4:6]**3)", 0),  # the first sum has a gap
        ("sum(sin(x[0:3])) + sum(x[:, 3:]**3)", 0),
    ],
)
def test_cotangents_of_parts_are_joined(text: str, joined: int) -> None:
    document = api.grad(formula(text, {"x": "f32[6,6]"}), ["x"])
    model = checked_model(document)
    require_round_trip(document, model)
    ops = [node.op_type for node in model.graph.node]
    assert (ops.count("Concat"), "Pad" in ops) == (joined, not joined)
    x = np.random.default_rng(3).standard_normal((6, 6)).astype("f4")
    due = next(iter(api.evaluate(document, {"x": x}).values()))
    for other in (by_reference, by_runtime):
        np.testing.assert_allclose(other(model, {"x": x})[0], due, rtol=1e-5)
