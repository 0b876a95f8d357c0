"""Linear graphs of the conformance samples: with structural zeros of every kind, and those that are not linear in their inputs."""

from __future__ import annotations

import json
from typing import Any

import msgpack
from defects import Defect
from documents import document, graph, node, role, tangent

X, ZERO, MINUS_ZERO, ZEROS, INTEGER, FROM_INTEGER, SOME, DIFFERENCE, TWICE, CHOICE = range(10)
"""The values of the graph that linear graphs read."""


def _constant(type_: str, *data: float) -> dict[str, Any]:
    return node("constant", attrs={"value": {"type": type_, "data": list(data)}})


def _f() -> dict[str, Any]:
    nodes = [
        _constant("f64[]", 0),
        node("neg", ZERO),
        node("broadcast_in_dim", MINUS_ZERO, attrs={"shape": [2], "broadcast_dimensions": []}),
        _constant("i32[]", 0),
        node("convert_element_type", INTEGER, attrs={"new_dtype": "f64"}),
        _constant("f64[]", 1),
        node("sub", X, X),
        node("concatenate", ZEROS, ZEROS, attrs={"dimension": 0}),
        node("gt", X, ZERO),
    ]
    return graph("f", {"x": "f64[]"}, nodes, {"y": X})


def _linear(*nodes: dict[str, Any], value: object = None, type_: str | None = None) -> dict[str, Any]:
    output = {"key": tangent("y"), "value": len(nodes) if value is None else value} | ({"type": type_} if type_ else {})
    return {
        "name": "f@1",
        "linear": {"pass": 1},
        "inputs": [{"key": tangent("x"), "type": "f64[]"}],
        "nodes": list(nodes),
        "outputs": [output],
    }


def _of(*inputs: object, op: str, mask: tuple[bool, ...], **attrs: object) -> dict[str, Any]:
    return node(op, *inputs, role=role(*mask), **({"attrs": attrs} if attrs else {}))


_READ = {
    name: [0, value]
    for name, value in zip(["x", "zero", "minus", "zeros", "i", "from_i", "one", "diff", "twice", "choice"], range(10), strict=True)
}

VALID = {
    "structural_zeros": (
        "inactive operands that are structural zeros: a constant, and what is made of constants; an input that is bound to one",
        document(
            _f(),
            graph("g", {"u": "f64[]"}, [], {}),
            _linear(
                _of(0, _READ["zero"], op="add", mask=(True, False)),
                _of(_READ["minus"], 1, op="sub", mask=(False, True)),
                _of(_READ["choice"], 2, _READ["from_i"], op="select_n", mask=(False, True, False)),
                _of(3, [1, 0], op="complex", mask=(True, False)),
                _of(4, op="real", mask=(True,)),
                _of(5, op="broadcast_in_dim", mask=(True,), shape=[2], broadcast_dimensions=[]),
                _of(_READ["twice"], 6, _READ["zeros"], op="concatenate", mask=(False, True, False), dimension=0),
            ),
            bindings=[{"input": "u", "value": _READ["zero"]}],
        ),
    ),
}


def _not_linear(purpose: str, *words: str, of: list[dict[str, Any]], at: int | None = 0, **output: Any) -> Defect:
    return Defect(purpose, _json(document(_f(), _linear(*of, **output))), words, "f@1", at)


def _json(data: object) -> bytes:
    return json.dumps(data).encode()


def _added(purpose: str, *inputs: object, op: str, mask: tuple[bool, ...], **attrs: object) -> Defect:
    return _not_linear(purpose, "structural zero", of=[_of(*inputs, op=op, mask=mask, **attrs)])


def _packed() -> Defect:
    table = [{"op": "add", "role": role(True, False), "inputs": 2, "outputs": 1}]
    nodes = {"table": table, "code": [0], "args": [0, -1], "external": [_READ["one"]]}
    broken = {**_linear(), "nodes": nodes, "outputs": []}
    return Defect("packed: a sum with something else", msgpack.packb(document(_f(), broken)), ("structural zero",), "f@1", 0)


INVALID = {
    "linear_affine.json": _added("x@1 + x: affine, not linear", 0, _READ["x"], op="add", mask=(True, False)),
    "linear_affine.msgpack": _packed(),
    "linear_constant.json": _added("x@1 + 1", _READ["one"], 0, op="add", mask=(False, True)),
    "linear_seen.json": _added("a zero that has to be computed: x - x", 0, _READ["diff"], op="sub", mask=(True, False)),
    "linear_select.json": _added(
        "a selection whose other case is not zero", _READ["choice"], 0, _READ["one"], op="select_n", mask=(False, True, False)
    ),
    "linear_pad.json": _not_linear(
        "padding with something else than zero",
        "structural zero",
        of=[
            _of(0, op="broadcast_in_dim", mask=(True,), shape=[2], broadcast_dimensions=[]),
            _of(1, _READ["one"], op="pad", mask=(True, False), padding_config=[[1, 0, 0]]),
        ],
        at=1,
    ),
    "linear_detached.json": _added("a sum with a detached value", 0, "sha256:" + "00" * 32, op="add", mask=(True, False)),
    "linear_product.json": _not_linear("a product of two tangents", "not linear", of=[_of(0, 0, op="mul", mask=(True, True))]),
    "linear_divisor.json": _not_linear("a tangent as divisor", "not linear", of=[_of(_READ["x"], 0, op="div", mask=(False, True))]),
    "linear_sine.json": _not_linear("a sine of a tangent", "not linear", of=[_of(0, op="sin", mask=(True,))]),
    "linear_integer.json": _not_linear(
        "a tangent as an integer", "i32[]", of=[_of(0, op="convert_element_type", mask=(True,), new_dtype="i32")], type_="i32[]"
    ),
    "linear_hidden.json": _not_linear(
        "a tangent as an inactive operand", "input 1", "depends on the tangents", of=[_of(0, 0, op="mul", mask=(True, False))]
    ),
    "linear_outside.json": _not_linear(
        "an active operand of another graph", "input 0", "no tangent reaches it", of=[_of(_READ["x"], op="neg", mask=(True,))]
    ),
    "linear_output.json": _not_linear(
        "an output that is a value of another graph", "output 'y@1'", of=[], at=None, value=_READ["x"]
    ),
    "role_product.json": Defect(
        "a product of two active operands, in a graph that is not linear",
        _json(document(graph("f", {"x": "f64[]"}, [_of(0, 0, op="mul", mask=(True, True))], {"y": 1}))),
        ("not linear",),
        "f",
        0,
    ),
    "role_affine.json": Defect(
        "a sum with what is not zero, in a graph that is not linear",
        _json(document(graph("f", {"x": "f64[]"}, [_of(0, 0, op="add", mask=(True, False))], {"y": 1}))),
        ("structural zero",),
        "f",
        0,
    ),
}
"""Every invalid file by name."""
