"""Own primitives that take and give records and times: all four kinds of derivatives, forwards and backwards, inlined or not."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.custom.making import body, definition, encoded
from tidu_cli.errors import DocumentError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.contract import Batching
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

TYPES = {"Point": {"x": "f64[]", "y": "f64[2]"}}
TANGENT = "Point{x: f64[], y: f64[2]}"


def field(name: str) -> dict[str, str]:
    return {"name": name}


# g(p) = (x y, x²) as a Point {x: x², y: x y}
BROADCAST = {"shape": [2], "broadcast_dimensions": []}
FORWARD = body(
    "p",
    [
        ("field", 0, field("x")),
        ("field", 0, field("y")),
        ("mul", 1, 1),
        ("broadcast_in_dim", 1, BROADCAST),
        ("mul", 4, 2),
        ("record", 3, 5, {"type": "Point"}),
    ],
    {"q": 6},
)
JVP = body(
    "p p@1",
    [
        ("field", 0, field("x")),
        ("field", 0, field("y")),
        ("field", 1, field("x")),
        ("field", 1, field("y")),
        ("add", 2, 2),
        ("mul", 6, 4),
        ("broadcast_in_dim", 2, BROADCAST),
        ("broadcast_in_dim", 4, BROADCAST),
        ("mul", 8, 5),
        ("mul", 9, 3),
        ("add", 10, 11),
        ("record", 7, 12, {"type": TANGENT}),
    ],
    {"q@1": 13},
)
BACKWARD = body(
    "p q@-1",
    [
        ("field", 0, field("x")),
        ("field", 0, field("y")),
        ("field", 1, field("x")),
        ("field", 1, field("y")),
        ("add", 2, 2),
        ("mul", 6, 4),
        ("mul", 3, 5),
        ("reduce_sum", 8, {"axes": [0]}),
        ("add", 7, 9),
        ("broadcast_in_dim", 2, BROADCAST),
        ("mul", 11, 5),
        ("record", 10, 12, {"type": TANGENT}),
    ],
    {"p@-1": 13},
)
SQUARED = {"forward": {}, "jvp": {"jvp": JVP}, "backward": {"backward": BACKWARD}}


def document(more: dict[str, object], types: dict[str, object] = TYPES) -> Document:
    op = definition({"p": "Point"}, {"q": "Point"}, FORWARD, **more)
    nodes = [{"op": "g", "inputs": [0]}, {"op": "g", "inputs": [1]}, {"op": "field", "inputs": [2], "attrs": field("y")}]
    graph = {"name": "f", "inputs": [{"key": "p", "type": "Point"}], "nodes": nodes, "outputs": [{"key": "z", "value": 3}]}
    return parse_document(encoded({"tidu": 1, "types": types, "ops": {"g": op}, "graphs": [graph]}), "d")[0]


GRAPH = {"name": "f", "inputs": [], "nodes": [], "outputs": []}
P = {"x": 1.5, "y": np.array([0.5, -2.0])}
V = {"x": 0.25, "y": np.array([1.0, 3.0])}
W = np.array([2.0, -1.0])


def z(x, y):
    """The y of g(g(p)): of q = {x², x y} that is x² · x y."""
    return x**3 * y


def values(made: Document, **inputs: object) -> dict[str, object]:
    given = {parse_key(k.replace("_", "@")): v for k, v in inputs.items()}
    return {str(k): v for k, v in evaluate(materialize(made).head, given).items()}


def pushed(dx, dy):
    return 3 * P["x"] ** 2 * P["y"] * dx + P["x"] ** 3 * dy


@pytest.mark.parametrize("kind", SQUARED)
def test_derivatives_agree_with_those_by_hand(kind):
    made = document(SQUARED[kind])
    np.testing.assert_allclose(values(made, p=P)["z"], z(P["x"], P["y"]), rtol=1e-15)
    forward = linearize(made, [parse_key("p")])
    np.testing.assert_allclose(values(forward, p=P, p_1=V)["z@1"], pushed(V["x"], V["y"]), rtol=1e-15)
    cotangent = evaluate(materialize(transpose(forward)).head, {parse_key("p"): P, parse_key("z@-1"): W})[parse_key("p@-1")]
    np.testing.assert_allclose(cotangent["x"], 3 * P["x"] ** 2 * P["y"] @ W, rtol=1e-15)
    np.testing.assert_allclose(cotangent["y"], P["x"] ** 3 * W, rtol=1e-15)


@pytest.mark.parametrize("kind", SQUARED)
@pytest.mark.parametrize("order", ["forward over reverse", "reverse over forward", "third"])
def test_higher_orders_agree_with_those_by_hand(kind, order):
    p, made = parse_key("p"), document(SQUARED[kind])
    given = {p: P, parse_key("p@1"): V, parse_key("p@2"): V, parse_key("z@-1"): W, parse_key("p@3"): V}
    if order == "reverse over forward":
        once = linearize(made, [p])
        twice = transpose(linearize(materialize(once), [p]))
        cotangent = evaluate(materialize(twice).head, given | {parse_key("z@1@-2"): W})[parse_key("p@-2")]
        dx, dy = V["x"], V["y"]
        np.testing.assert_allclose(cotangent["x"], (6 * P["x"] * P["y"] * dx + 3 * P["x"] ** 2 * dy) @ W, rtol=1e-14)
        np.testing.assert_allclose(cotangent["y"], 3 * P["x"] ** 2 * dx * W, rtol=1e-14)
        return
    gradient = materialize(transpose(linearize(made, [p])))
    second = linearize(gradient, [p])
    if order == "forward over reverse":
        cotangent = evaluate(materialize(second).head, given)[parse_key("p@-1@2")]
        np.testing.assert_allclose(cotangent["x"], (6 * P["x"] * P["y"] * V["x"] + 3 * P["x"] ** 2 * V["y"]) @ W, rtol=1e-14)
        np.testing.assert_allclose(cotangent["y"], 3 * P["x"] ** 2 * V["x"] * W, rtol=1e-14)
        return
    third = linearize(materialize(second), [p])
    cotangent = evaluate(materialize(third).head, given)[parse_key("p@-1@2@3")]
    x, y, dx, dy = P["x"], P["y"], V["x"], V["y"]
    np.testing.assert_allclose(cotangent["x"], (6 * y * dx * dx + 12 * x * dx * dy) @ W, rtol=1e-14)
    np.testing.assert_allclose(cotangent["y"], 6 * x * dx * dx * W, rtol=1e-14)


@pytest.mark.parametrize("kind", SQUARED)
def test_inlined_they_have_the_same_values(kind):
    made = document(SQUARED[kind])
    for derived in (made, linearize(made, [parse_key("p")]), transpose(linearize(made, [parse_key("p")]))):
        given = {parse_key("p"): P, parse_key("p@1"): V, parse_key("z@-1"): W}
        whole = materialize(derived)
        plain = inline(whole)
        assert not {plain.cases[c].op for c in plain.head.code} & {"g", "g.jvp"}
        for key, value in evaluate(whole.head, given).items():
            for a, b in zip(*(_arrays(v) for v in (value, evaluate(plain.head, given)[key])), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-15)


def _arrays(value: object) -> list:
    return [a for part in value.values() for a in _arrays(part)] if isinstance(value, dict) else [value]


@pytest.mark.parametrize("kind", SQUARED)
def test_they_are_kept_in_files(kind):
    made = linearize(document(SQUARED[kind]), [parse_key("p")])
    for format in ("json", "msgpack"):
        data = format_document(made, format)
        again, _ = parse_document(data, "d")
        assert format_document(again, format) == data
        np.testing.assert_array_equal(values(again, p=P, p_1=V)["z@1"], values(made, p=P, p_1=V)["z@1"])


ROTATED = definition(
    {"p": "Point"},
    {"r": "{a: f64[2], b: f64[]}"},
    body(
        "p",
        [("field", 0, field("x")), ("field", 0, field("y")), ("neg", 2), ("record", 3, 1, {"type": "{a: f64[2], b: f64[]}"})],
        {"r": 4},
    ),
    transpose=body(
        "r@-1",
        [("field", 0, field("a")), ("field", 0, field("b")), ("neg", 1), ("record", 2, 3, {"type": TANGENT})],
        {"p@-1": 4},
    ),
)


def test_a_linear_op_on_records_with_its_transpose():
    graph = {
        "name": "f",
        "inputs": [{"key": "p", "type": "Point"}],
        "nodes": [{"op": "rotated", "inputs": [0]}],
        "outputs": [{"key": "r", "value": 1}],
    }
    made, _ = parse_document(encoded({"tidu": 1, "types": TYPES, "ops": {"rotated": ROTATED}, "graphs": [graph]}), "d")
    forward = linearize(made, [parse_key("p")])
    tangent = values(forward, p_1=V)["r@1"]
    np.testing.assert_array_equal(tangent["a"], -V["y"])
    np.testing.assert_array_equal(tangent["b"], V["x"])
    cotangent = values(transpose(forward), **{"r_-1": {"a": W, "b": 5.0}})["p@-1"]
    np.testing.assert_array_equal(cotangent["x"], 5.0)
    np.testing.assert_array_equal(cotangent["y"], -W)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {
                "jvp": body(
                    "p p@1", [("field", 0, field("x")), ("field", 0, field("y")), ("record", 2, 3, {"type": TANGENT})], {"q@1": 4}
                )
            },
            "op 'g': its jvp: a result does not depend on the tangents",
        ),
        (
            {"jvp": body("p p@1", [("field", 1, field("x")), ("record", 2, {"type": "(f64[],)"})], {"q@1": 3})},
            r"op 'g': its jvp gives 'q@1' the type \(f64\[\],\), which must be Point\{x: f64\[\], y: f64\[2\]\}",
        ),
        (
            {"backward": body("p q@-1", [("field", 1, field("z"))], {"p@-1": 2})},
            r"op 'g': its backward: node 0 \(field\): Point\{x: f64\[\], y: f64\[2\]\} has no field 'z'",
        ),
    ],
)
def test_wrong_rules_are_refused(more, message):
    with pytest.raises(DocumentError, match=message):
        document(more)


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("Pont", "op 'g', input 'p': type: unknown type 'Pont'; did you mean 'Point'"),
        ("{x: f64[n]}", "op 'g', input 'p': type: unknown type"),
    ],
)
def test_wrong_types_of_ports_are_refused(type_, message):
    op = definition({"p": type_}, {"q": "Point"}, FORWARD)
    with pytest.raises(DocumentError, match=message):
        parse_document(encoded({"tidu": 1, "types": TYPES, "ops": {"g": op}, "graphs": [GRAPH]}), "d")


def test_types_without_ops_and_the_other_way_round_are_told_apart():
    made = json.loads(format_document(document({}), "json"))
    assert list(made) == ["tidu", "types", "ops", "graphs"]
    made["types"]["Point"] = {"x": "f64[]"}
    with pytest.raises(DocumentError, match=r"op 'g': its forward: node 1 \(field\): Point has no field 'y'"):
        parse_document(encoded(made), "d")


# An op on times, with variables: how long after an epoch, in days.
AGE = definition(
    {"t": "datetime[ms][n]", "epoch": "datetime[ms][n]"},
    {"days": "f64[n]"},
    body(
        "t epoch",
        [
            ("sub", 0, 1),
            ("convert_element_type", 2, {"new_dtype": "duration[D]"}),
            ("convert_element_type", 3, {"new_dtype": "f64"}),
        ],
        {"days": 4},
    ),
)
AGE_JVP = body(
    "t@1",
    [("convert_element_type", 0, {"new_dtype": "duration[D]"}), ("convert_element_type", 1, {"new_dtype": "f64"})],
    {"days@1": 2},
)


@pytest.mark.parametrize("more", [{}, {"jvp": AGE_JVP}], ids=["forward", "jvp"])
def test_ops_take_times_of_any_size(more):
    graph = {
        "name": "f",
        "inputs": [{"key": "t", "type": "datetime[ms][3]"}, {"key": "e", "type": "datetime[ms][3]"}],
        "nodes": [{"op": "age", "inputs": [0, 1]}],
        "outputs": [{"key": "days", "value": 2}],
    }
    made, _ = parse_document(encoded({"tidu": 1, "ops": {"age": {**AGE, **more}}, "graphs": [graph]}), "d")
    t, e = ["2026-01-31", "2026-02-01", "2026-02-02"], ["2026-01-30"] * 3
    assert values(made, t=t, e=e)["days"].tolist() == [1, 2, 3]
    forward = linearize(made, [parse_key("t")])
    assert values(forward, t_1=[86400000, 0, -43200000])["days@1"].tolist() == [1, 0, -0.5]
    cotangent = values(transpose(forward), **{"days_-1": [1, 2, 3]})["t@-1"]
    np.testing.assert_allclose(cotangent * 86400000, [1, 2, 3], rtol=1e-15)


def test_what_is_not_linear_in_a_record_is_refused():
    forward = body("p", [("field", 0, field("x")), ("exp", 1)], {"q": 2})
    transposed = body("q@-1", [("record", 0, {"type": TANGENT, "fields": ["x"]})], {"p@-1": 1})
    op = definition({"p": "Point"}, {"q": "f64[]"}, forward, transpose=transposed)
    with pytest.raises(DocumentError, match=r"op 'h': its forward: node 1 \(exp\): not known to be linear in the input p"):
        parse_document(encoded({"tidu": 1, "types": TYPES, "ops": {"h": op}, "graphs": [GRAPH]}), "d")


def test_a_zero_result_that_is_a_record_is_written_out():
    """Of r nothing goes back, so its tangent is zero: a record of which one field is zeros, and the others left out."""
    forward = body("x", [("mul", 0, 0), ("floor", 0), ("record", 2, 2, {"type": "(f64[], f64[])"})], {"y": 1, "r": 3})
    backward = body("x y@-1", [("add", 0, 0), ("mul", 2, 1)], {"x@-1": 3})
    op = definition({"x": "f64[]"}, {"y": "f64[]", "r": "(f64[], f64[])"}, forward, backward=backward)
    graph = {
        "name": "f",
        "inputs": [{"key": "x", "type": "f64[]"}],
        "nodes": [{"op": "h", "inputs": [0]}],
        "outputs": [{"key": "y", "value": 1}, {"key": "r", "value": 2}],
    }
    made, _ = parse_document(encoded({"tidu": 1, "ops": {"h": op}, "graphs": [graph]}), "d")
    forward_mode = linearize(made, [parse_key("x")])
    results = values(forward_mode, x=3.0, x_1=2.0)
    assert results["y@1"] == 12 and results["r@1"] == (0, 0)
    inlined = inline(materialize(forward_mode)).head
    assert evaluate(inlined, {parse_key("x"): 3.0, parse_key("x@1"): 2.0})[parse_key("r@1")] == (0, 0)


def test_of_a_batch_records_that_are_shared_are_repeated():
    forward = body("x p", [("neg", 0)], {"y": 2, "q": 1})
    op = definition({"x": "f64[]", "p": "Point"}, {"y": "f64[]", "q": "Point"}, forward)
    graph = {
        "name": "f",
        "inputs": [{"key": "x", "type": "f64[]"}, {"key": "p", "type": "Point"}],
        "nodes": [{"op": "h", "inputs": [0, 1]}],
        "outputs": [],
    }
    made, _ = parse_document(encoded({"tidu": 1, "types": TYPES, "ops": {"h": op}, "graphs": [graph]}), "d")
    primitives = vocabulary(made.cases)
    case = made.head.case(0)
    trace = Trace(primitives, made.cases)
    operands = [trace.source(parse_type("f64[5]"), linear=False), trace.source(case.operands[1], linear=False)]
    y, q = primitives.batch_rule("h")(Batching(case.attrs, operands, case.operands, (True, False), 5))
    assert (str(y.value_type), str(q.value_type)) == ("f64[5]", "{x: f64[5], y: f64[5,2]}")
