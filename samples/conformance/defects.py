"""The invalid documents of the conformance samples: what is wrong, where, and which words a message about it needs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgpack
from documents import cotangent, document, f, f_linear, graph, node, role, tangent


@dataclass(frozen=True)
class Defect:
    """An invalid file. A message about it names `graph` and `node`, where there are such, and has `words` in it."""

    purpose: str
    data: bytes
    words: tuple[str, ...]
    graph: str | None = None
    node: int | None = None


def _one(purpose: str, data: object, *words: str, graph: str | None = None, node: int | None = None) -> Defect:
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    return Defect(purpose, content, words, graph, node)


def _nodes(purpose: str, *words: str, of: object, at: int | None = None) -> Defect:
    # A graph f(x: f64[], k: i32[]) with these nodes, and no outputs.
    return _one(purpose, document(graph("f", {"x": "f64[]", "k": "i32[]"}, of, {})), *words, graph="f", node=at)


def _linear(purpose: str, *words: str, of: object, at: int | None = None) -> Defect:
    broken = {**f_linear(), "nodes": of, "outputs": []}
    return _one(purpose, document(f(), broken), *words, graph="f@1", node=at)


def _head(purpose: str, *words: str, **fields: object) -> Defect:
    return _one(purpose, document({**f(), **fields}), *words, graph="f")


def _input(purpose: str, key: object, *words: str) -> Defect:
    return _head(purpose, *words, inputs=[{"key": key, "type": "f64[]"}])


def _bound(purpose: str, *words: str, bindings: list[object], type_: str = "f64[]") -> Defect:
    second = graph("g", {"u": type_}, [], {"v": 0})
    return _one(purpose, document(f(), second, bindings=bindings), *words)


def _passes(purpose: str, *words: str, passes: object) -> Defect:
    return _one(purpose, document(f(), f_linear(), passes=passes), "passes", *words)


def _packed(purpose: str, *words: str, at: int | None = None, binary: bool = False, **columns: object) -> Defect:
    nodes = {"table": [{"op": "add", "inputs": 2, "outputs": 1}], "code": [0], "args": [0, 0], "external": [], **columns}
    broken = document(f(), {**graph("g", {"x": "f64[]"}, nodes, {})})
    return _one(purpose, msgpack.packb(broken) if binary else broken, *words, graph="g", node=at)


def _text(old: str, new: str) -> bytes:
    return json.dumps(document(f())).replace(old, new, 1).encode()


def _deep_key(levels: int) -> Any:
    key: Any = "x"
    for number in range(levels):
        key = tangent(key, number + 1)
    return key


_F = json.dumps(document(f())).encode()
_BIN = bytes(msgpack.packb(document(f())))

SYNTAX = {
    "empty.json": _one("an empty file", b"", "empty"),
    "neither.json": _one("neither JSON nor msgpack", b"hello", "JSON", "msgpack"),
    "truncated.json": _one("JSON that is cut off", _F[:-20], "cut off"),
    "truncated.msgpack": _one("msgpack that is cut off", _BIN[:-20], "cut off"),
    "concatenated.json": _one("two documents, one after the other", _F + b"\n" + _F, "more data"),
    "concatenated.msgpack": _one("two documents, one after the other", _BIN + _BIN, "more data"),
    "byte_order_mark.json": _one("a UTF-8 byte order mark", b"\xef\xbb\xbf" + _F, "byte order mark"),
    "utf16.json": _one("UTF-16", b"\xff\xfe" + _F.decode().encode("utf-16-le"), "UTF-16"),
    "invalid_utf8.json": _one("a string that is not UTF-8", _F.replace(b'"f"', b'"\xc3"'), "UTF-8"),
    "invalid_utf8.msgpack": _one("a string that is not UTF-8", _BIN.replace(b"\xa1f", b"\xa1\xff"), "UTF-8"),
    "lone_surrogate.json": _one("half of a surrogate pair", _text('"f"', '"\\ud800"'), "surrogate"),
    "duplicate_key.json": _one("an object with one key twice", _text('"op": "add"', '"op": "mul", "op": "add"'), "'op'", "twice"),
    "duplicate_key.msgpack": _one("a map with one key twice", b"\x82\xa4tidu\x01\xa4tidu\x01", "'tidu'", "twice"),
    "number_key.msgpack": _one("a map key that is no string", b"\x82\xa4tidu\x01\x01\x02", "not a string"),
    "extension.msgpack": _one("an extension type", b"\x82\xa4tidu\x01\xa6graphs\xd4\x05\x00", "extension"),
    "nan.json": _one("a NaN literal", _text('"tidu": 1', '"tidu": 1, "meta": {"a": NaN}'), "NaN"),
    "infinity.json": _one("an infinity literal", _text('"tidu": 1', '"tidu": 1, "meta": {"a": -Infinity}'), "Infinity"),
    "overflow.json": _one("a number beyond every float", _text('"tidu": 1', '"tidu": 1, "meta": {"a": 1e999}'), "1e999"),
    "deep.json": _one("lists within lists, 100,000 deep", b"[" * 100_000, "too deep"),
    "deep.msgpack": _one("arrays within arrays, 2,000 deep", b"\x81\xa4tidu" + b"\x91" * 2000 + b"\x01", "too deep"),
    "deep_meta.json": _one(
        "meta that nests 1,000 deep", _text('"tidu": 1', f'"tidu": 1, "meta": {{"a": {"[" * 300}{"]" * 300}}}'), "meta"
    ),
    "nan_meta.msgpack": _one("a NaN in meta", bytes(msgpack.packb(document(f(), meta={"a": float("nan")}))), "meta", "not finite"),
    "binary_meta.msgpack": _one("bytes in meta", bytes(msgpack.packb(document(f(), meta={"a": b"\x00"}))), "meta", "binary"),
    "wide_meta.json": _one("an integer in meta beyond 64 bits", document(f(), meta={"a": 2**64}), "meta", "64 bits"),
}

SHAPE = {
    "list.json": _one("a list in place of a document", [document(f())], "list"),
    "no_version.json": _one("no version", {"graphs": [f()]}, '"tidu"', "missing"),
    "version_2.json": _one("a version that is not read", {**document(f()), "tidu": 2}, "version 2"),
    "version_true.json": _one("a version that is a bool", {**document(f()), "tidu": True}, "version"),
    "version_float.json": _one("a version that is a float", {**document(f()), "tidu": 1.0}, "version 1.0"),
    "no_graphs.json": _one("an empty list of graphs", document(), "graphs"),
    "missing_graphs.json": _one("no list of graphs", {"tidu": 1}, "missing", "'graphs'"),
    "unknown_document_field.json": _one("an unknown field of the document", document(f(), author="me"), "unknown field 'author'"),
    "unknown_graph_field.json": _head("an unknown field of a graph", "unknown field 'note'", note=1),
    "unknown_node_field.json": _nodes(
        "an unknown field of a node", "unknown field 'name'", of=[node("sin", 0), node("sin", 0, name="s")], at=1
    ),
    "missing_outputs.json": _one(
        "a graph without outputs", document({k: v for k, v in f().items() if k != "outputs"}), "missing", "'outputs'", graph="f"
    ),
    "missing_op.json": _nodes("a node without op", "missing field 'op'", of=[{"inputs": [0]}], at=0),
    "missing_type.json": _head("an input without type", "input 'x'", "missing field 'type'", inputs=[{"key": "x"}]),
    "null_meta.json": _one("meta that is null", document(f(), meta=None), "meta", "object"),
    "meta_list.json": _one("meta that is a list", document(f(), meta=[]), "meta", "object"),
    "nodes_number.json": _head("nodes that are neither a list nor columns", "nodes", nodes=3),
    "duplicate_graph.json": _one("two graphs of one name", document(f(), f()), "name", graph="f"),
    "duplicate_input.json": _head("one input twice in a graph", "input 'x'", "twice", inputs=[{"key": "x", "type": "f64[]"}] * 2),
    "duplicate_output.json": _head("one output twice in a graph", "output 'y'", "twice", outputs=[{"key": "y", "value": 2}] * 2),
    "null_output.json": _head(
        "a zero output without type", "output 'y'", "type must be given", outputs=[{"key": "y", "value": None}]
    ),
    "output_type.json": _head(
        "an output of another type than its value",
        "output 'y'",
        "f32[]",
        "f64[]",
        outputs=[{"key": "y", "value": 2, "type": "f32[]"}],
    ),
    "output_later.json": _head("an output that does not exist", "output 'y'", "value 3", outputs=[{"key": "y", "value": 3}]),
    "output_bool.json": _head("an output whose value is a bool", "output 'y'", "malformed", outputs=[{"key": "y", "value": True}]),
    "unknown_dtype.json": _head("an unknown dtype", "f63", "did you mean", inputs=[{"key": "x", "type": "f63[]"}]),
    "malformed_type.json": _head("a malformed type", "dtype[shape]", inputs=[{"key": "x", "type": "f64"}]),
    "fractional_axis.json": _head("a size that is no integer", "type", inputs=[{"key": "x", "type": "f64[1.5]"}]),
    "type_blank.json": _head("a blank before a type", "blank", inputs=[{"key": "x", "type": " {x: f64[]}"}]),
    "type_rank.json": _head("a type of 65 axes", "64", inputs=[{"key": "x", "type": f"f64[{','.join('1' * 65)}]"}]),
    "negative_axis.json": _head("a negative size", "type", inputs=[{"key": "x", "type": "f64[-1]"}]),
    "shared_input_type.json": _one(
        "a key with two types", document(f(), graph("g", {"x": "f32[]"}, [], {})), "input 'x'", "f32[]", "f64[]", graph="g"
    ),
    "key_number.json": _input("a key that is a number", 7, "key"),
    "key_null.json": _input("a key that is null", None, "key"),
    "key_kind.json": _input("a key of an unknown kind", {"gradient": {"of": "x", "pass": 1}}, "key"),
    "key_extra.json": _input("a key with a field too many", {"tangent": {"of": "x", "pass": 1, "by": 2}}, "key"),
    "key_deep.json": _input("a key that nests 65 passes", _deep_key(65), "64"),
    "pass_zero.json": _input("a pass of 0", tangent("x", 0), "pass"),
    "pass_negative.json": _input("a negative pass", cotangent("x", -1), "pass"),
    "pass_bool.json": _input("a pass that is a bool", {"tangent": {"of": "x", "pass": True}}, "pass"),
    "pass_float.json": _input("a pass that is a float", {"tangent": {"of": "x", "pass": 1.0}}, "pass"),
    "pass_huge.json": _input("a pass beyond 2**53 - 1", tangent("x", 2**53), "pass"),
    "linear_pass.json": _head("a linear graph of pass 0", "linear.pass", "pass", linear={"pass": 0}),
    "linear_bool.json": _head("a linear graph whose pass is a bool", "linear.pass", "pass", linear={"pass": True}),
    "passes_list.json": _passes("identities of passes that are a list", "an object", passes=["sha256:" + "00" * 32]),
    "passes_zero.json": _passes("an identity of pass 0", "'0'", passes={"0": "sha256:" + "00" * 32}),
    "passes_padded.json": _passes("a pass number with a leading zero", "'01'", passes={"01": "sha256:" + "00" * 32}),
    "passes_huge.json": _passes("an identity of pass 2**53", str(2**53), passes={str(2**53): "sha256:" + "00" * 32}),
    "passes_short.json": _passes("an identity that is too short", "pass 1", "64", passes={"1": "sha256:00"}),
    "passes_case.json": _passes("an identity in capitals", "pass 1", "0-9a-f", passes={"1": "sha256:" + "AB" * 32}),
    "passes_null.json": _passes("an identity that is null", "pass 1", passes={"1": None}),
    "passes_unused.json": _passes("an identity of a pass that is not in use", "pass 2", passes={"2": "sha256:" + "00" * 32}),
    "binding_unknown.json": _bound("a binding of no input", "'w'", bindings=[{"input": "w", "value": [0, 0]}]),
    "binding_twice.json": _bound("an input bound twice", "'u'", "twice", bindings=[{"input": "u", "value": [0, 0]}] * 2),
    "binding_value.json": _bound("a binding to no value", "'u'", "value 3", bindings=[{"input": "u", "value": [0, 3]}]),
    "binding_graph.json": _bound("a binding to no graph", "'u'", "graph 7", bindings=[{"input": "u", "value": [7, 0]}]),
    "binding_cycle.json": _bound(
        "a binding to a value of the graph that declares the input", "'u'", bindings=[{"input": "u", "value": [1, 0]}]
    ),
    "binding_type.json": _bound(
        "a binding to a value of another type", "'u'", "f64[2]", bindings=[{"input": "u", "value": [0, 0]}], type_="f64[2]"
    ),
    "binding_detached.json": _bound("a binding to a digest", "binding", bindings=[{"input": "u", "value": "sha256:" + "00" * 32}]),
}

NODES = {
    "unknown_op.json": _nodes("an unknown op", "mull", "did you mean 'mul'", of=[node("mull", 0, 0)], at=0),
    "arity.json": _nodes("too many inputs", "takes 2 inputs, got 3", of=[node("sin", 0), node("mul", 0, 0, 2)], at=1),
    "variadic_none.json": _nodes("a variadic op without inputs", "at least 1", of=[node("select_n")], at=0),
    "unknown_attr.json": _nodes("an unknown attr", "'axis'", of=[node("reduce_sum", 0, attrs={"axis": [0]})], at=0),
    "missing_attr.json": _nodes("a missing attr", "missing", "'y'", of=[node("integer_pow", 0)], at=0),
    "attr_bool.json": _nodes(
        "an attr that is a bool in place of an integer", "'y'", of=[node("integer_pow", 0, attrs={"y": True})], at=0
    ),
    "attr_text.json": _nodes(
        "an attr that is text in place of a bool",
        "'reverse'",
        of=[
            node("broadcast_in_dim", 0, attrs={"shape": [2], "broadcast_dimensions": []}),
            node("cumsum", 2, attrs={"axis": 0, "reverse": "yes"}),
        ],
        at=1,
    ),
    "attr_float.json": _nodes(
        "an attr that is a float in place of an integer", "'y'", of=[node("integer_pow", 0, attrs={"y": 2.0})], at=0
    ),
    "attr_huge.json": _nodes(
        "an attr of 65 bits",
        "'strides.0'",
        of=[
            node("broadcast_in_dim", 0, attrs={"shape": [2], "broadcast_dimensions": []}),
            node("slice", 2, attrs={"start_indices": [0], "limit_indices": [2], "strides": [2**64]}),
        ],
        at=1,
    ),
    "result_rank.json": _nodes(
        "a result of 65 axes", "64", of=[node("broadcast_in_dim", 0, attrs={"shape": [1] * 65, "broadcast_dimensions": []})], at=0
    ),
    "result_size.json": _nodes(
        "a result of 2**65 bytes",
        "memory",
        of=[node("broadcast_in_dim", 0, attrs={"shape": [2**62], "broadcast_dimensions": []})],
        at=0,
    ),
    "constant_bool.json": _nodes(
        "a bool whose byte is 2", "0 or 1", of=[node("constant", attrs={"value": {"type": "bool[1]", "base64": "Ag=="}})], at=0
    ),
    "constant_count.json": _nodes(
        "a constant with too few numbers", "f64[2]", of=[node("constant", attrs={"value": {"type": "f64[2]", "data": [1]}})], at=0
    ),
    "constant_base64.json": _nodes(
        "malformed base64", "base64", of=[node("constant", attrs={"value": {"type": "f64[]", "base64": "AA"}})], at=0
    ),
    "forward_reference.json": _nodes("a node that reads its own result", "input 0", "value 2", of=[node("sin", 2)], at=0),
    "negative_reference.json": _nodes("a negative reference", "input 0", "-1", of=[node("sin", -1)], at=0),
    "huge_reference.json": _nodes("a reference of 200 bits", "input 0", of=[node("sin", 2**200)], at=0),
    "bool_reference.json": _nodes("a reference that is a bool", "input 1", "malformed", of=[node("add", 0, False)], at=0),
    "float_reference.json": _nodes("a reference that is a float", "input 0", "malformed", of=[node("sin", 0.0)], at=0),
    "triple_reference.json": _nodes("a reference of three parts", "input 0", "malformed", of=[node("sin", [0, 0, 0])], at=0),
    "own_graph.json": _nodes("a reference to the graph itself by number", "input 0", "graph 0", of=[node("sin", [0, 0])], at=0),
    "other_value.json": _linear(
        "a reference past the values of another graph",
        "value 3",
        "'f'",
        of=[node("neg", 0, role=role(True)), node("mul", [0, 3], 0, role=role(False, True))],
        at=1,
    ),
    "digest_case.json": _nodes(
        "a digest in capitals", "input 0", "digest", of=[node("sin", "sha256:" + "AB" * 32, types=["f64[]"])], at=0
    ),
    "digest_short.json": _nodes(
        "a digest that is too short", "input 0", "digest", of=[node("sin", "sha256:00", types=["f64[]"])], at=0
    ),
    "detached_type.json": _nodes(
        "a detached value whose type nothing tells", "types", of=[node("sin", "sha256:" + "00" * 32)], at=0
    ),
    "detached_conflict.json": _nodes(
        "a detached value used with two types",
        "i32[]",
        "f64[]",
        of=[node("add", 0, "sha256:" + "00" * 32), node("add", 1, "sha256:" + "00" * 32)],
        at=1,
    ),
    "type_mismatch.json": _nodes("operands of different types", "f64[]", "i32[]", of=[node("add", 0, 1)], at=0),
    "declared_type.json": _nodes("types other than those inferred", "f32[]", "f64[]", of=[node("sin", 0, types=["f32[]"])], at=0),
    "mask_length.json": _linear(
        "a mask of another length than the inputs", "mask", "2", of=[node("add", 0, 0, role=role(True))], at=0
    ),
    "mask_number.json": _linear(
        "a mask of numbers", "active_mask", of=[node("neg", 0, role={"linearized": {"active_mask": [1]}})], at=0
    ),
    "linear_primary.json": _linear(
        "a primary node in a linear graph", "role", of=[node("neg", 0, role=role(True)), node("neg", 0)], at=1
    ),
    "linear_inactive.json": _linear(
        "a linearized node without active input", "active", of=[node("neg", 0, role=role(False))], at=0
    ),
    "packed_code.json": _packed("a code past the table", "table", code=[1], at=0),
    "packed_args.json": _packed("too few args", "args", args=[0]),
    "packed_external.json": _packed("an external past the list", "external", args=[0, -1]),
    "packed_later.json": _packed("a node that reads its own result", "input 1", "value 1", args=[0, 1], at=0),
    "packed_bool.json": _packed("a bool in a column", "args", args=[0, False]),
    "packed_huge.json": _packed("an integer of more than 32 bits in a column", "args", "out of range", args=[0, 2**31]),
    "packed_unused.json": _packed("an external that no node reads", "external 0", external=[[0, 0]]),
    "packed_graph.json": _packed("an external of a later graph", "external 0", "graph 1", args=[0, -1], external=[[1, 0]]),
    "packed_arity.json": _packed(
        "a table row with a wrong count of inputs",
        "table row 0",
        "takes 2 inputs, got 1",
        table=[{"op": "add", "inputs": 1, "outputs": 1}],
        args=[0],
    ),
    "packed_outputs.json": _packed(
        "a table row with a wrong count of outputs", "outputs", table=[{"op": "add", "inputs": 2, "outputs": 2}], at=0
    ),
    "packed_op.json": _packed(
        "an unknown op in the table", "table row 0", "'mull'", table=[{"op": "mull", "inputs": 2, "outputs": 1}]
    ),
    "packed_field.json": _packed(
        "an unknown field in the table", "table row 0", "'types'", table=[{"op": "add", "inputs": 2, "outputs": 1, "types": []}]
    ),
    "packed_bytes.msgpack": _packed(
        "bytes that are not a whole number of integers", "args", args={"dtype": "i32", "data": b"\0" * 6}, binary=True
    ),
    "packed_dtype.msgpack": _packed("a column of floats", "args", args={"dtype": "f32", "data": b"\0" * 8}, binary=True),
    "packed_wide.msgpack": _packed(
        "a column of 64 bits with an entry past 32",
        "args",
        "out of range",
        args={"dtype": "i64", "data": b"\0" * 8 + b"\xff" * 7 + b"\x7f"},
        binary=True,
    ),
}

INVALID = {**SYNTAX, **SHAPE, **NODES}
"""Every invalid file by name."""
