"""Documents with ops of their own, for the conformance samples: valid ones, and what is wrong with others."""

from __future__ import annotations

import json
from typing import Any

import msgpack
from defects import Defect
from documents import cotangent, document, f, graph, node, role, tangent

Ports = dict[str, str]


def op_graph(inputs: list[object], nodes: list[Any], outputs: list[tuple[object, int | None]]) -> dict[str, Any]:
    """A graph of an op's definition."""
    return {
        "inputs": [{"key": key} for key in inputs],
        "nodes": nodes,
        "outputs": [{"key": key, "value": value} for key, value in outputs],
    }


def definition(inputs: Ports, outputs: Ports, forward: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An op's definition."""
    ports = ([{"key": key, "type": type_} for key, type_ in given.items()] for given in (inputs, outputs))
    return {"inputs": next(ports), "outputs": next(ports), "forward": forward, **more}


def softplus() -> dict[str, Any]:
    """ln(1 + e^x), with a backward graph."""
    return definition(
        {"x": "f64[...]"},
        {"y": "f64[...]"},
        op_graph(["x"], [node("exp", 0), node("log1p", 1)], [("y", 2)]),
        backward=op_graph(["x", cotangent("y")], [node("logistic", 0), node("mul", 2, 1)], [(cotangent("x"), 3)]),
    )


def power() -> dict[str, Any]:
    """x to an integer that each node gives, of any dtype, by its forward graph only."""
    forward = op_graph(["x"], [node("integer_pow", 0, attrs={"y": {"attr": "n"}})], [("y", 1)])
    return definition({"x": "T[...]"}, {"y": "T[...]"}, forward, attrs={"n": None, "note": ["any", {"value": 0.5}]})


def weighted_sum() -> dict[str, Any]:
    """Σ wᵢ xᵢ, which is said to be linear in x."""
    contract = {"dimension_numbers": [[[0], [0]], [[], []]]}
    return definition(
        {"w": "f64[n]", "x": "f64[n]"},
        {"y": "f64[]"},
        op_graph(["w", "x"], [node("dot_general", 0, 1, attrs=contract)], [("y", 2)]),
        transpose=op_graph(
            [cotangent("y"), "w"],
            [node("dot_general", 0, 1, attrs={"dimension_numbers": [[[], []], [[], []]]})],
            [(cotangent("x"), 2)],
        ),
        meta={"note": "linear in x"},
    )


def soft_and_sign() -> dict[str, Any]:
    """softplus of a + b, by an op of the document, and the sign of a - b, whose derivative is zero."""
    return definition(
        {"a": "f64[n,3]", "b": "f64[n,3]"},
        {"s": "f64[n,3]", "d": "f64[n,3]"},
        op_graph(["b", "a"], [node("add", 1, 0), node("softplus", 2), node("sub", 1, 0), node("sign", 4)], [("d", 5), ("s", 3)]),
        jvp=op_graph(
            ["s", tangent("a"), tangent("b")],
            [node("neg", 0), node("expm1", 3), node("neg", 4), node("add", 1, 2), node("mul", 5, 6)],
            [(tangent("s"), 7), (tangent("d"), None)],
        ),
    )


def _uses() -> dict[str, Any]:
    ops = {"softplus": softplus(), "power": power(), "weighted_sum": weighted_sum(), "soft_and_sign": soft_and_sign()}
    vector = [node("softplus", 0), node("power", 1, attrs={"n": 3, "note": 1}), node("weighted_sum", 0, 2)]
    matrix = [node("soft_and_sign", 0, 0), node("power", 1, attrs={"n": 2, "note": ["any", {"value": 0.5}]})]
    return document(graph("f", {"x": "f64[2]"}, vector, {"y": 3}), graph("g", {"m": "f64[2,3]"}, matrix, {"d": 2, "p": 3}), ops=ops)


def _derivative() -> dict[str, Any]:
    linear = {
        "name": "f@1",
        "linear": {"pass": 1},
        "inputs": [{"key": tangent("x"), "type": "f64[2]"}],
        "nodes": [node("softplus.jvp", [0, 0], [0, 1], 0, attrs={"active": [True]}, role=role(False, False, True))],
        "outputs": [{"key": tangent("y"), "value": 1}],
    }
    return document(graph("f", {"x": "f64[2]"}, [node("softplus", 0)], {"y": 1}), linear, ops={"softplus": softplus()})


VALID = {
    "own_ops": ("ops of the document with each kind of graph, attrs, type variables, meta, and one made of another", _uses()),
    "own_derivative": ("the derivative of an op of the document that has a backward graph, as a node", _derivative()),
}
"""Documents by name: what each is for, and its data."""


def _other_form() -> bytes:
    data = _uses()
    power_data = data["ops"]["power"]
    power_data["outputs"][0]["type"] = "T[ ... ]"
    data["graphs"][1]["nodes"][1]["attrs"] = {"n": 2}
    data["ops"]["softplus"]["attrs"] = {}
    data["ops"]["softplus"]["forward"]["nodes"][0]["attrs"] = {}
    return json.dumps(data, sort_keys=False).encode()


OTHER = {"own_ops.loose.json": ("own_ops", "an attr at its default left out, white space in a type, empty attrs", _other_form())}
"""Files that describe one of these documents in another way."""


def _broken(purpose: str, *words: str, **changes: Any) -> Defect:
    """softplus with fields changed (None: left out) and used once."""
    data = {k: v for k, v in {**softplus(), **changes}.items() if v is not None}
    return _document(purpose, *words, ops={"softplus": data})


def _document(purpose: str, *words: str, ops: dict[str, Any], nodes: list[Any] | None = None, at: int | None = None) -> Defect:
    used = graph("f", {"x": "f64[2]", "k": "i32[]"}, nodes or [], {})
    return Defect(purpose, json.dumps(document(used, ops=ops)).encode(), words, "f" if nodes else None, at)


def _binary() -> dict[str, Any]:
    constant = node("constant", attrs={"value": {"type": "f64[]", "data": b"\0" * 8}})
    return {**softplus(), "forward": op_graph(["x"], [constant, node("add", 0, 1)], [("y", 2)])}


_ONE = op_graph(["x"], [node("exp", 0)], [("y", 1)])
_ITSELF = op_graph(["x"], [node("softplus", 0)], [("y", 1)])

INVALID = {
    "own_library.json": Defect("ops without graphs", json.dumps({"tidu": 1, "ops": {}}).encode(), ("library", "--ops")),
    "own_field.json": _broken("an unknown field of an op", "op 'softplus'", "unknown field 'vjp'", vjp=_ONE),
    "own_forward.json": _broken("an op without forward graph", "op 'softplus'", "missing field 'forward'", forward=None),
    "own_name.json": _document("an op whose name has a dot", "op 'soft.plus'", "name", ops={"soft.plus": softplus()}),
    "own_built_in.json": _document("an op of a built-in name", "op 'exp'", "already", ops={"exp": softplus()}),
    "own_two_rules.json": _broken(
        "two graphs that say what the derivative is", "op 'softplus'", "jvp", "backward",
        jvp=op_graph([tangent("x")], [], [(tangent("y"), 0)]),
    ),
    "own_pattern.json": _broken(
        "a malformed type", "op 'softplus'", "f64[...,...]", inputs=[{"key": "x", "type": "f64[...,...]"}]
    ),
    "own_duplicate.json": _broken(
        "an input and an output of one name", "op 'softplus'", "'x'", outputs=[{"key": "x", "type": "f64[...]"}]
    ),
    "own_recursion.json": _broken("an op made of itself", "op 'softplus'", "softplus", forward=_ITSELF),
    "own_op.json": _broken(
        "an unknown op in a graph of an op", "op 'softplus'", "forward", "node 0", "'expp'",
        forward=op_graph(["x"], [node("expp", 0)], [("y", 1)]),
    ),
    "own_input.json": _broken(
        "a graph that takes what it may not", "op 'softplus'", "backward", "'x@1'",
        backward=op_graph([tangent("x")], [], [(cotangent("x"), 0)]),
    ),
    "own_output.json": _broken(
        "a graph that does not give what it must", "op 'softplus'", "backward", "'x@-1'", backward=op_graph(["x"], [], [])
    ),
    "own_reference.json": _broken(
        "a graph with a reference to a value that is not there", "op 'softplus'", "forward", "value 2",
        forward=op_graph(["x"], [node("exp", 2)], [("y", 1)]),
    ),
    "own_null.json": _broken(
        "a forward graph that gives null", "op 'softplus'", "forward", "null",
        inputs=[{"key": "x", "type": "f64[]"}], forward=op_graph(["x"], [], [("y", None)]),
    ),
    "own_misfit.json": _document(
        "an op used at a type that does not fit", "input 'x'", "i32[]", "f64[...]",
        ops={"softplus": softplus()}, nodes=[node("softplus", 1)], at=0,
    ),
    "own_result_type.json": _document(
        "a backward graph that gives a cotangent of another type", "op 'softplus'", "backward", "f64[]",
        ops={
            "softplus": {
                **softplus(),
                "inputs": [{"key": "x", "type": "f64[3]"}],
                "backward": op_graph(
                    [cotangent("y")], [node("reduce_sum", 0, attrs={"axes": [0]})], [(cotangent("x"), 1)]
                ),
            }
        },
    ),
    "own_binary.msgpack": Defect(
        "binary data in the attrs of a definition's node, which JSON cannot hold",
        msgpack.packb(document(f(), ops={"softplus": _binary()})),
        ("op 'softplus'", "node 0", "binary data"),
    ),
    "own_missing_attr.json": _document(
        "an attr left out that must be given", "missing attr 'n'", ops={"power": power()}, nodes=[node("power", 0)], at=0
    ),
    "own_unknown_attr.json": _document(
        "an unknown attr", "unknown attr 'm'", ops={"power": power()}, nodes=[node("power", 0, attrs={"m": 1})], at=0
    ),
    "own_arity.json": _document(
        "too many inputs", "takes 1 input, got 2", ops={"softplus": softplus()}, nodes=[node("softplus", 0, 0)], at=0
    ),
    "own_active.json": _document(
        "a derivative whose `active` does not fit", "active",
        ops={"softplus": softplus()}, nodes=[node("softplus.jvp", 0, 0, 0, attrs={"active": [True, True]})], at=0,
    ),
}  # fmt: skip
"""Invalid documents by file name."""
