"""Documents with loops and branches, for the conformance samples: valid ones, and what is wrong with others."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from defects import Defect
from documents import document, graph, node, role
from own_ops import definition, op_graph


def closed(inputs: dict[str, str], nodes: object, outputs: dict[str, int], **fields: object) -> dict[str, Any]:
    """A graph within a node."""
    data = graph("", inputs, nodes, outputs, **fields)
    del data["name"]
    return data


def step() -> dict[str, Any]:
    """s ← sin(k) s + x, which also gives sin(k) s."""
    types = {"k": "f64[]", "s": "f64[]", "x": "f64[]"}
    return closed(types, [node("sin", 0), node("mul", 3, 1), node("add", 4, 2)], {"s": 5, "y": 4})


def loop(body: object, **attrs: object) -> dict[str, Any]:
    """A document with a loop of four steps."""
    given = {"length": 4, "num_consts": 1, "num_carry": 1, "body": body, **attrs}
    nodes = [node("scan", 0, 1, 2, attrs=given)]
    return document(graph("f", {"k": "f64[]", "s": "f64[]", "xs": "f64[4]"}, nodes, {"s": 3, "ys": 4}))


def nested() -> dict[str, Any]:
    """A loop as long as a condition holds in a branch in a loop; with an op of the document, names, meta, and packed nodes."""
    halve = closed({"h": "f64[]", "a": "f64[]"}, [node("mul", 1, 0, meta={"line": 7})], {"a": 2})
    above = closed({"h": "f64[]", "a": "f64[]"}, [node("gt", 1, 0)], {"go": 2}, meta={"by": "hand"})
    until = node("while", 1, 1, 0, attrs={"cond_consts": 1, "body_consts": 1, "condition": above, "body": halve})
    packed = {"table": [{"op": "twofold", "inputs": 1, "outputs": 1}], "code": [0, 0], "args": [0, 2]}
    branches = [
        closed({"a": "f64[]", "h": "f64[]"}, [until], {"a": 2}) | {"name": "halving"},
        closed({"a": "f64[]", "h": "f64[]"}, packed, {"a": 3}),
    ]
    body = closed(
        {"h": "f64[]", "a": "f64[]", "which": "i32[]"}, [node("cond", 2, 1, 0, attrs={"branches": branches})], {"a": 3, "as": 3}
    )
    attrs = {"length": 2, "num_consts": 1, "num_carry": 1, "reverse": True, "body": body}
    ops = {"twofold": definition({"x": "f64[]"}, {"y": "f64[]"}, op_graph(["x"], [node("add", 0, 0)], [("y", 1)]))}
    types = {"h": "f64[]", "a": "f64[]", "which": "i32[2]"}
    return document(graph("f", types, [node("scan", 0, 1, 2, attrs=attrs)], {"a": 3, "as": 4}), ops=ops)


def own_loop() -> dict[str, Any]:
    """An op that is a loop of as many steps as its attr says."""
    body = closed({"x": "f64[]", "a": "f64[]"}, [node("mul", 0, 1)], {"x": 2, "a": 1})
    attrs = {"length": {"attr": "steps"}, "num_consts": 0, "num_carry": 2, "body": body}
    forward = op_graph(["x", "a"], [node("scan", 0, 1, attrs=attrs)], [("y", 2)])
    ops = {"times": definition({"x": "f64[]", "a": "f64[]"}, {"y": "f64[]"}, forward, attrs={"steps": 2})}
    return document(graph("f", {"x": "f64[]"}, [node("times", 0, 0, attrs={"steps": 3})], {"y": 1}), ops=ops)


def square(x: str = "f64[]") -> dict[str, Any]:
    """x² − a."""
    return closed({"a": x, "x": x}, [node("mul", 1, 1), node("sub", 2, 0)], {"y": 3})


def product() -> dict[str, Any]:
    """a t."""
    return closed({"a": "f64[]", "t": "f64[]"}, [node("mul", 0, 1)], {"y": 2})


def equation(**graphs: object) -> dict[str, Any]:
    """A document with the root of an equation, from a first guess."""
    nodes = [node("root", 0, 1, attrs={"num_consts": 1, **graphs})]
    return document(graph("f", {"a": "f64[]", "x0": "f64[]"}, nodes, {"x": 2}))


def solved() -> dict[str, Any]:
    """One whose tangents are solutions of a linear system, by graphs of both."""
    solver = closed({"a": "f64[]", "x": "f64[]"}, [node("sqrt", 0)], {"x": 2})
    quotient = closed({"a": "f64[]", "b": "f64[]"}, [node("div", 1, 0)], {"t": 2})
    system = node(
        "linear_solve", 3, 2, attrs={"num_consts": 1, "matvec": product(), "solve": quotient, "transpose_solve": quotient}
    )
    tangents = closed({"a": "f64[]", "x": "f64[]", "b": "f64[]"}, [node("add", 1, 1), system], {"t": 4})
    return equation(f=square(), solve=solver, tangent_solve=tangents)


def heron() -> dict[str, Any]:
    """(x + a / x) / 2."""
    half = node("constant", attrs={"value": {"type": "f64[]", "data": [0.5]}})
    return closed({"a": "f64[]", "x": "f64[]"}, [node("div", 0, 1), node("add", 1, 2), half, node("mul", 3, 4)], {"y": 5})


def repeated(**graphs: object) -> dict[str, Any]:
    """A document with a fixed point, from a first guess."""
    nodes = [node("fixed_point", 0, 1, attrs={"num_consts": 1, **graphs})]
    return document(graph("f", {"a": "f64[]", "x0": "f64[]"}, nodes, {"x": 2}))


def system(matvec: object) -> dict[str, Any]:
    """A document with the solution of a linear system."""
    nodes = [node("linear_solve", 0, 1, attrs={"num_consts": 1, "matvec": matvec})]
    return document(graph("f", {"a": "f64[]", "b": "f64[]"}, nodes, {"x": 2}))


VALID = {
    "root": ("the root of an equation, which the reader solves", equation(f=square())),
    "root_solved": ("the root of an equation, with graphs that solve it and its derivative, a linear system", solved()),
    "fixed_point": ("the fixed point of a function, which the reader solves", repeated(f=heron())),
    "linear_solve": ("the solution of a linear system, which the reader solves", system(product())),
    "loop": ("a loop whose body is a graph within its node", loop(step())),
    "loops_nested": ("a while in a branch in a loop, with an op of the document, names, meta and packed nodes in them", nested()),
    "own_loop": ("an op of the document that is a loop", own_loop()),
}


def _broken(purpose: str, *words: str, body: object, **attrs: object) -> Defect:
    return Defect(purpose, json.dumps(loop(body, **attrs)).encode(), words, "f", 0)


def _with(part: str, number: int, **fields: object) -> dict[str, Any]:
    body = deepcopy(step())
    body[part][number] |= fields
    return body


def _wrong(purpose: str, *words: str, data: object) -> Defect:
    return Defect(purpose, json.dumps(data).encode(), words, "f", 0)


INVALID = {
    "root_missing.json": _wrong("a root without an equation", "'f'", data=equation(solve=product())),
    "root_null.json": _wrong("null for a solver", "solve", "is a graph", data=equation(f=square(), solve=None)),
    "root_type.json": _wrong("an equation of another type", "input 0", "f32[]", data=equation(f=square("f32[]"))),
    "root_solver.json": _wrong(
        "a solver of fewer inputs", "tangent_solve", "2 inputs", data=equation(f=square(), tangent_solve=product())
    ),
    "fixed_point_outputs.json": _wrong(
        "a function that does not give what it takes", "its f gives", data=repeated(f={**heron(), "outputs": []})
    ),
    "linear_solve_square.json": _wrong("a map that is not linear", "matvec", "linear in the unknowns", data=system(square())),
    "loop_number.json": _broken("a number for a body", "body", body=1),
    "loop_op.json": _broken("an unknown op in a body", "body", "node 1", "'mull'", body=_with("nodes", 1, op="mull")),
    "loop_reference.json": _broken("a value that comes later", "body", "node 1", "value 5", body=_with("nodes", 1, inputs=[0, 5])),
    "loop_outside.json": _broken("a body that reads another graph", "body", "node 1", body=_with("nodes", 1, inputs=[[0, 0], 1])),
    "loop_detached.json": _broken(
        "a body that reads a detached value", "body", "node 1", body=_with("nodes", 1, inputs=["sha256:" + "0" * 64, 1])
    ),
    "loop_role.json": _broken("a role in a body", "body", "node 1", "role", body=_with("nodes", 1, role=role(True, False))),
    "loop_null.json": _broken("a null output of a body", "body", "'s'", body=_with("outputs", 0, value=None, type="f64[]")),
    "loop_linear.json": _broken("a linear body", "body", "'linear'", body={**step(), "linear": {"pass": 1}}),
    "loop_type.json": _broken("a body of other types", "body", "node 1", "f32[]", body=_with("inputs", 0, type="f32[]")),
    "loop_length.json": _broken("slices of more steps", "input 2", "f64[4]", "f64[3]", body=step(), length=3),
    "loop_missing.json": _broken("a body without outputs", "body", "'outputs'", body={"inputs": [], "nodes": []}),
}
