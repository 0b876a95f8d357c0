"""Scans as ONNX: what is the same in all steps is computed before them, and elementwise results of stored values behind them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.plain import read
from tests.onnx.operators.one_node import One
from tests.onnx.writing.written import by_runtime, checked_model, require_round_trip
from tests.tiers import examples
from tidu_cli import api
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.formats.write import format_document


def scan(nodes: list[tuple[str, list[int]]], carried: list[int], rows: list[int], *, reverse: bool = False) -> Any:
    """A scan of four steps whose body takes a constant, what is carried, and two slices; the values after these are nodes'."""
    body = {
        "inputs": [{"key": f"i{k}", "type": "f32[3]"} for k in range(3 + len(carried))],
        "nodes": [
            {"op": op, "inputs": args, **({"attrs": {"axis": 0, "reverse": False}} if op == "cumsum" else {})} for op, args in nodes
        ],
        "outputs": [{"key": f"o{k}", "value": v} for k, v in enumerate([*carried, *rows])],
    }
    attrs = {"body": body, "length": 4, "num_consts": 1, "num_carry": len(carried), "reverse": reverse}
    kinds = ["f32[3]"] * (1 + len(carried)) + ["f32[4,3]"] * 2
    inputs = [{"key": f"x{k}", "type": kind} for k, kind in enumerate(kinds)]
    bools = [k for k, v in enumerate(rows) if v >= len(kinds) and nodes[v - len(kinds)][0] in ("lt", "eq")]
    types = ["f32[3]"] * len(carried) + [f"{'bool' if k in bools else 'f32'}[4,3]" for k in range(len(rows))]
    outputs = [{"key": f"y{k}", "type": kind, "value": len(kinds) + k} for k, kind in enumerate(types)]
    node = {"op": "scan", "attrs": attrs, "inputs": list(range(len(kinds)))}
    return read({"tidu": 1, "graphs": [{"name": "f", "inputs": inputs, "nodes": [node], "outputs": outputs}]})


def small_slices(document: Any, small: list[bool]) -> Any:
    """A scan, of whose slices those that are `small` are made so before it."""
    data = json.loads(format_document(document, "json"))
    graph = data["graphs"][0]
    node, n = graph["nodes"][0], len(graph["inputs"])
    made = [k for k, one in zip((n - 2, n - 1), small, strict=True) if one]
    node["inputs"] = [n + made.index(k) if k in made else k for k in node["inputs"]]
    graph["nodes"] = [*[{"op": "logistic", "inputs": [k]} for k in made], node]
    for output in graph["outputs"]:
        output["value"] += len(made)
    return read(data)


def loops(model: Any) -> list[Counter[str]]:
    """How many nodes of each operator steps of each Scan have."""
    nodes = [node for function in model.functions for node in function.node if node.op_type == "Scan"]
    graphs = [a.g for node in nodes for a in node.attribute if a.name == "body"]
    return [Counter(node.op_type for node in graph.node) for graph in graphs]


def operators_of(function: Any) -> Counter[str]:
    """How many nodes of each operator a function has beside its loops' steps, without constants."""
    return Counter(node.op_type for node in function.node if node.op_type != "Constant")


def require_same(document: Any) -> Any:
    """Raises AssertionError unless onnxruntime computes of the model what tidu does. Gives the model."""
    model, rng = checked_model(document), np.random.default_rng(0)
    values = {str(i.key): rng.uniform(-1, 1, i.type.shape).astype("f4") for i in document.free_inputs}
    due = api.evaluate(document, values)
    for name, y in zip([o.name for o in model.graph.output], by_runtime(model, values), strict=True):
        np.testing.assert_allclose(y, due[name], rtol=2e-5, atol=2e-5)
    require_round_trip(document, model)
    return model


@st.composite
def scans(draw: Any) -> Any:
    n_carried = draw(st.integers(0, 2))
    n = first = 3 + n_carried
    nodes: list[tuple[str, list[int]]] = []
    floats = list(range(first))
    for _ in range(draw(st.integers(1, 7))):
        op = draw(st.sampled_from(["add", "mul", "sub", "sin", "tanh", "max", "atan2", "cumsum", "lt"]))
        args = [draw(st.sampled_from(floats)) for _ in range(1 if op in ("sin", "tanh", "cumsum") else 2)]
        nodes.append((op, args))
        if op != "lt":
            floats.append(n)
        n += 1
    carried = [draw(st.sampled_from(floats)) for _ in range(n_carried)]
    rows = draw(st.lists(st.integers(0, n - 1), min_size=0 if carried else 1, max_size=4))
    return scan(nodes, carried, rows, reverse=draw(st.booleans()))


@settings(max_examples=examples(100, check=25), deadline=None)
@given(document=scans())
def test_stages_of_any_scan_give_its_results(document: Any) -> None:
    require_same(document)


@settings(max_examples=examples(100, check=25), deadline=None)
@given(document=scans(), small=st.lists(st.booleans(), min_size=2, max_size=2))
def test_products_by_small_slices_give_their_results(document: Any, small: list[bool]) -> None:
    require_same(small_slices(document, small))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("small", "n_products"), [([True, False], 1), ([True, True], 1), ([False, False], 2)])
def test_products_by_small_slices_are_one(small: list[bool], n_products: int, reverse: bool) -> None:
    """In another order others may overflow."""
    step = [("mul", [1, 2]), ("mul", [3, 4]), ("add", [5, 0])]
    model = require_same(small_slices(scan(step, [6], [], reverse=reverse), small))
    assert loops(model)[0]["Mul"] == n_products


def test_products_that_are_read_elsewhere_too_stay() -> None:
    model = require_same(small_slices(scan([("mul", [1, 2]), ("mul", [3, 4]), ("add", [5, 4])], [6], []), [True, True]))
    assert loops(model)[0]["Mul"] == 2


def test_slices_far_beyond_one_are_multiplied_by_one_after_the_other() -> None:
    """The product of the first two slices is infinite, and not what they make of 2e-38."""
    document = scan([("mul", [1, 2]), ("mul", [4, 3])], [5], [])
    values = {"x0": np.zeros(3, "f4"), "x1": np.full(3, 2e-38, "f4"), "x2": np.ones((4, 3), "f4"), "x3": np.ones((4, 3), "f4")}
    values["x2"][:2], values["x3"][0] = [[1e30], [1e-30]], 1e30
    due = api.evaluate(document, values)["y0"]
    np.testing.assert_array_equal(by_runtime(checked_model(document), values)[0], due)
    assert np.isfinite(due).all()


def test_results_of_what_is_stored_are_computed_behind_the_loop() -> None:
    step = [("mul", [0, 1]), ("add", [4, 2]), ("sin", [5]), ("mul", [6, 6]), ("sub", [7, 0])]
    model = require_same(scan(step, [5], [6, 8, 5]))  # sin(carry) is no result that the carry needs, nor what is made of it
    assert loops(model) == [Counter({"Mul": 1, "Add": 1, "Identity": 1})]


def test_results_that_take_less_memory_than_what_they_are_made_of_are_computed_in_steps() -> None:
    model = require_same(scan([("add", [1, 2]), ("mul", [1, 2]), ("lt", [5, 4])], [4], [6]))
    assert loops(model) == [Counter({"Add": 1, "Mul": 1, "Less": 1})]


def test_loops_that_carry_nothing_and_store_nothing_are_none() -> None:
    model = require_same(scan([("mul", [1, 2]), ("sub", [3, 0]), ("sin", [0])], [], [4, 1, 0, 5]))
    assert not loops(model)


def test_what_is_the_same_in_all_steps_is_computed_once() -> None:
    model = require_same(scan([("cumsum", [0]), ("mul", [1, 4])], [5], []))
    assert loops(model) == [Counter({"Mul": 1})]


def recurrent(op: str, direction: str = "forward", size: float = 0.5) -> Any:
    """The transposed derivative of a recurrent network by its input. Its weights are constants, of about this size."""
    gates, n = {"LSTM": 4, "GRU": 3, "RNN": 1}[op], 1 + (direction == "bidirectional")
    rng = np.random.default_rng(5)
    shapes = ((6, 2, 3), (n, gates * 4, 3), (n, gates * 4, 4), (n, gates * 8))
    operands = [(rng.standard_normal(s) * size).astype("f4") for s in shapes]
    one = One(op, operands, {"hidden_size": 4, "direction": direction})
    weights = {f"x{k}": x for k, x in enumerate(operands) if k}
    document = import_model(loaded(one.model.SerializeToString()), Choices(values=weights)).document
    return api.vjp(document, ["x0"], ["y0"])


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_gradients_of_recurrent_networks_store_what_slopes_are_made_of(op: str, direction: str) -> None:
    model = require_same(recurrent(op, direction))
    forward, *_, back = loops(model)
    assert (back["Mul"], back["Concat"]) == {"LSTM": (3, 1), "GRU": (7, 1), "RNN": (1, 0)}[op]
    assert forward["Sub"] == (op == "GRU")  # 1 - z in its state; those of slopes are behind the loop
    assert forward["Add"] == {"LSTM": 2, "GRU": 3, "RNN": 1}[op]  # biases are added before it
    assert forward["Identity"] == (op != "LSTM")  # which stores f c instead of c, which would be copied


def test_slopes_of_gates_take_few_operations_behind_the_loop() -> None:
    """1 - t² of two tangents, 1 - i and 1 - f beside (i g) and (f c) that steps compute, and o (1 - o)."""
    forward, back = checked_model(recurrent("LSTM")).functions
    assert operators_of(forward) == {"Sub": 5, "Mul": 3, "Scan": 1}
    assert operators_of(back) == {"Mul": 5, "Concat": 1, "Scan": 1}


@pytest.mark.parametrize(("op", "n_sums"), [("tanh", 0), ("sin", 1), ("max", 1)])
def test_differences_of_squares_stay_where_rounding_of_them_might_show(op: str, n_sums: int) -> None:
    """(1 - t) (1 + t) is 1 - t² for a tanh, which is rounded itself."""
    step = [(op, [1, 1][: 1 + (op == "max")]), ("sub", [0, 4]), ("add", [0, 4]), ("mul", [5, 6])]
    data = json.loads(format_document(scan(step, [4], [7]), "json"))
    one = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f32[3]", "data": [1.0, 1.0, 1.0]}}}
    body = data["graphs"][0]["nodes"][0]["attrs"]["body"]
    body["nodes"] = [one, *body["nodes"]]
    for node in body["nodes"]:
        node["inputs"] = [4 if v == 0 else v + (v >= 4) for v in node["inputs"]]
    for output in body["outputs"]:
        output["value"] += 1
    model = require_same(read(data))
    assert operators_of(model.functions[0])["Add"] == n_sums


@pytest.mark.parametrize("size", [5.0, 100.0])
@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_gradients_of_gates_that_are_nearly_open_or_shut(op: str, size: float) -> None:
    require_same(recurrent(op, size=size))


@pytest.mark.parametrize(("read_by_others", "n_copies"), [((), 0), ((5,), 1), ((6,), 1)])
def test_no_copy_is_stored_of_what_is_only_multiplied(read_by_others: tuple[int, ...], n_copies: int) -> None:
    """Steps compute u c, of c that is carried. Instead of u tanh(u) and c they give tanh(u) and u c, whose product is the same."""
    data = json.loads(
        format_document(scan([("sin", [2]), ("tanh", [4]), ("mul", [4, 5]), ("mul", [4, 1]), ("add", [7, 3])], [8], [6, 1]), "json")
    )
    back = json.loads(format_document(scan([("mul", [1, 2]), ("mul", [4, 3])], [5], []), "json"))["graphs"][0]["nodes"][0]
    graph = data["graphs"][0]
    graph["nodes"].append({**back, "inputs": [0, 1, 5, 6]})
    others = [{"key": f"z{v}", "type": "f32[4,3]", "value": v} for v in read_by_others]
    graph["outputs"] = [{"key": "y", "type": "f32[3]", "value": 7}, *others]
    assert loops(require_same(read(data)))[0]["Identity"] == n_copies


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_what_is_zero_in_all_steps_but_the_first_is_added_before_them(reverse: bool, place: int) -> None:
    document = scan([("add", [1, 2]), ("sin", [4]), ("add", [5, 3])], [6], [5], reverse=reverse)
    data = json.loads(format_document(document, "json"))
    graph = data["graphs"][0]
    (node,) = graph["nodes"]
    graph["inputs"][2]["type"] = "f32[3,1]"
    before = [
        {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f32[]", "data": [0.0]}}},
        {"op": "pad", "inputs": [2, 4], "attrs": {"padding_config": [[0, 0, 0], [place, 3 - place, 0]]}},
        {"op": "transpose", "inputs": [5], "attrs": {"permutation": [1, 0]}},
        {"op": "reshape", "inputs": [6], "attrs": {"new_sizes": [4, 1, 3]}},
        {"op": "reshape", "inputs": [7], "attrs": {"new_sizes": [4, 3]}},
    ]
    graph["nodes"] = [*before, {**node, "inputs": [0, 1, 8, 3]}]
    for output in graph["outputs"]:
        output["value"] += len(before)
    assert loops(require_same(read(data)))[0]["Add"] == (1 if place == (3 if reverse else 0) else 2)


def test_operands_that_are_the_same_in_all_steps_are_turned_once() -> None:
    body = {
        "inputs": [{"key": "w", "type": "f32[3,3]"}, {"key": "h", "type": "f32[3]"}, {"key": "x", "type": "f32[3]"}],
        "nodes": [
            {"op": "dot_general", "inputs": [1, 0], "attrs": {"dimension_numbers": [[[0], [1]], [[], []]]}},
            {"op": "add", "inputs": [3, 2]},
        ],
        "outputs": [{"key": "h", "value": 4}],
    }
    inputs = [{"key": k, "type": kind} for k, kind in (("w", "f32[3,3]"), ("h", "f32[3]"), ("x", "f32[4,3]"))]
    node = {"op": "scan", "inputs": [0, 1, 2], "attrs": {"body": body, "length": 4, "num_consts": 1, "num_carry": 1}}
    outputs = [{"key": "y", "type": "f32[3]", "value": 3}]
    model = require_same(read({"tidu": 1, "graphs": [{"name": "f", "inputs": inputs, "nodes": [node], "outputs": outputs}]}))
    assert "Transpose" in [n.op_type for n in model.functions[0].node]
    assert "Transpose" not in loops(model)[0]
