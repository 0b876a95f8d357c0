"""The valid documents of the conformance samples, as plain data and as bytes that no writer of ours would make."""

from __future__ import annotations

import base64
import copy
import json
import struct
from functools import reduce
from typing import Any

import msgpack


def tangent(of: object, number: int = 1) -> Any:
    """The JSON form of a tangent's key."""
    return {"tangent": {"of": of, "pass": number}}


def cotangent(of: object, number: int = 1) -> dict[str, object]:
    """The JSON form of a cotangent's key."""
    return {"cotangent": {"of": of, "pass": number}}


def role(*mask: bool) -> dict[str, object]:
    """The role of a linearized node."""
    return {"linearized": {"active_mask": list(mask)}}


def node(op: str, *inputs: object, **fields: object) -> dict[str, object]:
    """A listed node."""
    return {"op": op, "inputs": list(inputs), **fields}


def graph(name: str, inputs: dict[str, str], nodes: object, outputs: dict[str, object], **fields: object) -> dict[str, Any]:
    """A graph whose keys are plain names."""
    return {
        "name": name,
        **fields,
        "inputs": [{"key": key, "type": type_} for key, type_ in inputs.items()],
        "nodes": nodes,
        "outputs": [{"key": key, "value": value} for key, value in outputs.items()],
    }


def document(*graphs: dict[str, Any], **fields: object) -> dict[str, Any]:
    """A document of version 1."""
    return {"tidu": 1, "graphs": list(graphs), **fields}


def f() -> dict[str, Any]:
    """The graph f(x) = (x + x) x."""
    return graph("f", {"x": "f64[]"}, [node("add", 0, 0), node("mul", 1, 0)], {"y": 2})


def f_linear() -> dict[str, Any]:
    """The linearization of f."""
    return {
        "name": "f@1",
        "linear": {"pass": 1},
        "inputs": [{"key": tangent("x"), "type": "f64[]"}],
        "nodes": [
            node("add", 0, 0, role=role(True, True)),
            node("mul", [0, 1], 0, role=role(False, True)),
            node("mul", 1, [0, 0], role=role(True, False)),
            node("add", 2, 3, role=role(True, True)),
        ],
        "outputs": [{"key": tangent("y"), "value": 4}],
    }


def _constant(type_: str, *data: object) -> dict[str, object]:
    return node("constant", attrs={"value": {"type": type_, "data": list(data)}})


_CONSTANTS = graph(
    "constants",
    {},
    [
        _constant("bool[2]", True, False),
        _constant("i8[2]", -128, 127),
        _constant("i64[]", -(2**63)),
        _constant("u64[]", 2**64 - 1),
        _constant("f16[3]", 0.1, "Infinity", -0.0),
        _constant("bf16[2]", 0.1, "NaN"),
        _constant("f32[2]", 0.1, 1e-45),
        _constant("f64[4]", "NaN", "Infinity", "-Infinity", 5e-324),
        _constant("c64[1]", 1, -0.5),
        _constant("c128[2,1]", "NaN", 0, 0.1, "-Infinity"),
        _constant("f64[0,3]"),
        # A NaN with a payload has no number in JSON, so it stands as bytes there.
        node(
            "constant", attrs={"value": {"type": "f64[]", "base64": base64.b64encode(struct.pack("<Q", 0x7FF8 << 48 | 5)).decode()}}
        ),
        node("constant", attrs={"value": {"type": "u8[17]", "base64": base64.b64encode(bytes(range(17))).decode()}}),
    ],
    {f"c{k}": k for k in range(13)},
)

_META = document(
    graph(
        "kept",
        {"x": "f32[2]"},
        [node("neg", 0, meta={"line": 7}), node("exp", 1)],
        {"y": 2},
        meta={"source": "model.py", "nested": {"any": [None, True, 1, 1.5, "text", {}]}},
    ),
    meta={"author": "Ada", "unicode": "Δx → 0"},
)
_META["graphs"][0]["inputs"][0]["meta"] = {"unit": "m"}
_META["graphs"][0]["outputs"][0]["meta"] = {}

_ATTRS = graph(
    "attrs",
    {"a": "f32[3,4]", "b": "f32[4,2]", "z": "c128[2]", "k": "i32[]"},
    [
        node("dot_general", 0, 1, attrs={"dimension_numbers": [[[1], [0]], [[], []]]}),
        node("reduce_sum", 4, attrs={"axes": [0, 1]}),
        node("broadcast_in_dim", 5, attrs={"shape": [2, 3], "broadcast_dimensions": []}),
        node("integer_pow", 6, attrs={"y": -2}),
        node("convert_element_type", 7, attrs={"new_dtype": "f64"}),
        node("real", 2),
        node("select_n", 3, 9, 9, 9),
    ],
    {"p": 8, "q": 10},
)

_DIGEST_A, _DIGEST_B = "sha256:" + "0a" * 32, "sha256:" + "ff" * 32

VALID: dict[str, tuple[str, dict[str, Any]]] = {
    "worked_example": (
        "f(x) = (x+x)*x and its linearization, with references to values of another graph",
        document(f(), f_linear()),
    ),
    "passes": (
        "two passes in use, of which one has an identity",
        document(
            f(),
            f_linear(),
            {"name": "second", "inputs": [{"key": tangent("x", 12), "type": "f64[]"}], "nodes": [], "outputs": []},
            passes={"1": "sha256:" + "3d" * 32},
        ),
    ),
    "no_nodes": ("a graph without nodes whose output is its input", document(graph("id", {"x": "bool[2,3]"}, [], {"y": 0}))),
    "constants": (
        "constants of every kind of dtype: infinities, NaNs with and without payload, complex, empty, base64",
        document(_CONSTANTS),
    ),
    "attrs": ("attrs of several primitives, a variadic one, and mixed types", document(_ATTRS)),
    "meta": ("meta on document, graph, input, node and output", _META),
    "keys": (
        "keys: any Unicode text, also empty, with @, quotes and control characters; nested passes; a key as long as 64 passes",
        document(
            {
                "name": 'имя "g"\n',
                "inputs": [
                    {"key": key, "type": "f64[]"}
                    for key in ("", "a@b", 'q"\\\t\u0001', "\u2028", "𝒙", cotangent(tangent("𝒙", 3), 2**53 - 1))
                ],
                "nodes": [],
                "outputs": [{"key": tangent("a@b", 2), "value": 1}],
            },
            {
                "name": "",
                "inputs": [{"key": reduce(tangent, range(1, 65), "x"), "type": "f64[]"}],
                "nodes": [],
                "outputs": [],
            },
        ),
    ),
    "zero_output": (
        "an output that is null, a structural zero, with its type",
        document(
            {
                "name": "f@1",
                "linear": {"pass": 1},
                "inputs": [{"key": tangent("x"), "type": "f64[3]"}],
                "nodes": [],
                "outputs": [{"key": tangent("y"), "value": None, "type": "f64[3]"}],
            }
        ),
    ),
    "shared_inputs": (
        "two graphs that declare the same input: the values are one, and so are their digests",
        document(
            graph("f", {"x": "f64[]", "a": "f64[]"}, [node("mul", 0, 1)], {"y": 2}),
            graph("g", {"a": "f64[]", "x": "f64[]"}, [node("mul", 1, 0), node("sin", [0, 2])], {"y": 3}),
            graph("h", {}, [node("add", [0, 2], [0, 2]), node("neg", [1, 0])], {"y": 1}),
        ),
    ),
    "bindings": (
        "an input bound to a value of an earlier graph has that value's digest; and so on through a chain",
        document(
            graph("f", {"x": "f64[]"}, [node("sin", 0)], {"y": 1}),
            graph("g", {"u": "f64[]"}, [node("cos", 0)], {"v": 1}),
            graph("h", {"w": "f64[]", "free": "f64[]"}, [node("add", 0, 1)], {"z": 2}),
            bindings=[{"input": "u", "value": [0, 1]}, {"input": "w", "value": [1, 0]}],
        ),
    ),
    "detached": (
        "detached references: a type given by the node, adopted from a like operand, or given by the output",
        document(
            graph(
                "g",
                {"x": "f64[2]"},
                [
                    node("mul", 0, _DIGEST_A),
                    node("reduce_sum", _DIGEST_B, attrs={"axes": [0]}, types=["f32[]"]),
                    node("sin", _DIGEST_A, types=["f64[2]"]),
                ],
                {"y": 1, "s": 2, "a": _DIGEST_A},
            )
        ),
    ),
    "detached_output": (
        "an output that is a detached value, whose type the output gives",
        document(
            {
                "name": "g",
                "inputs": [],
                "nodes": [],
                "outputs": [{"key": "y", "value": _DIGEST_A, "type": "c64[5]"}],
            }
        ),
    ),
}


def _column(typecode: str, dtype: str, values: list[int]) -> dict[str, object]:
    return {"dtype": dtype, "data": struct.pack(f"<{len(values)}{typecode}", *values)}


def _packed_example(**columns: object) -> bytes:
    data = document(f(), f_linear())
    data["graphs"][1]["nodes"] = {
        "table": [
            {"op": "mul", "role": role(True, False), "inputs": 2, "outputs": 1},
            {"op": "add", "role": role(True, True), "inputs": 2, "outputs": 1},
            {"op": "exp", "inputs": 1, "outputs": 1},
            {"op": "mul", "role": role(False, True), "inputs": 2, "outputs": 1},
        ],
        "code": _CODE,
        "args": _ARGS,
        "external": [[0, 0], [0, 1]],
        **columns,
    }
    if any(isinstance(value, dict) for value in columns.values()):
        return bytes(msgpack.packb(data))
    return json.dumps(data).encode()


def _repeated_external() -> bytes:
    data = copy.deepcopy(VALID["shared_inputs"][1])
    data["graphs"][2]["nodes"] = {
        "table": [{"op": "add", "inputs": 2, "outputs": 1}, {"op": "neg", "inputs": 1, "outputs": 1}],
        "code": [0, 1],
        "args": [-1, -2, -3],
        "external": [[0, 2], [0, 2], [1, 0]],
    }
    return json.dumps(data).encode()


_CODE = [1, 3, 0, 1]
_ARGS = [0, 0, -2, 0, 1, -1, 2, 3]

OTHER_FORMS: dict[str, tuple[str, str, bytes]] = {
    "worked_example.minified.json": (
        "worked_example",
        "no white space, no output types",
        json.dumps(document(f(), f_linear()), separators=(",", ":")).encode(),
    ),
    "worked_example.reordered.json": (
        "worked_example",
        "fields in another order, white space before and after",
        b"\n\t " + json.dumps(document(f(), f_linear()), sort_keys=True, indent=1).encode() + b"\r\n \n",
    ),
    "worked_example.types.json": (
        "worked_example",
        "nodes with types",
        json.dumps(
            document(
                graph(
                    "f",
                    {"x": "f64[]"},
                    [node("add", 0, 0, types=["f64[]"]), node("mul", 1, 0, types=["f64[]"])],
                    {"y": 2},
                ),
                f_linear(),
            )
        ).encode(),
    ),
    "passes.last.json": (
        "passes",
        "the identities of passes after the graphs",
        json.dumps(dict(reversed(VALID["passes"][1].items()))).encode(),
    ),
    "worked_example.table.json": ("worked_example", "a table in another order, with a row that no node uses", _packed_example()),
    "shared_inputs.twice.json": ("shared_inputs", "an external that stands twice in the list", _repeated_external()),
    **{
        f"worked_example.{name}.msgpack": ("worked_example", f"columns of {name}", _packed_example(code=code, args=args))
        for name, code, args in (
            ("u8-i8", _column("B", "u8", _CODE), _column("b", "i8", _ARGS)),
            ("u16-i16", _column("H", "u16", _CODE), _column("h", "i16", _ARGS)),
            ("u32-i64", _column("I", "u32", _CODE), _column("q", "i64", _ARGS)),
            ("array-i32", _CODE, _column("i", "i32", _ARGS)),
        )
    },
    "keys.escaped.json": ("keys", "every character that is not ASCII escaped", json.dumps(VALID["keys"][1]).encode()),
}
"""Files that describe one of the documents above in another way: the document's name, what is special, the bytes."""
