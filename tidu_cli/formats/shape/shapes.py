"""The shape of a document, checked in plain Python: what the models of `schema` take is taken here, and comes out as plain tuples.

The models define the shape and say what is wrong. But to import pydantic and build them takes longer than all else that a command
does with a small document, so they are asked about those documents only that are refused here (see `complaints`).

Of nodes there may be millions: kinds of values and sets of fields are gathered by functions that loop in C, and each that differs
is then looked at once.
"""

from __future__ import annotations

import marshal
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

from tidu_cli.errors import TiduError, TypeTextError
from tidu_cli.formats.json.listed import Listed
from tidu_cli.formats.nodes.columns import TYPECODES, Pairs
from tidu_cli.graph.keys import Key, checked_pass, key_from_json, passes_from_json
from tidu_cli.graph.types import Type, parse_type

VERSION = 1
"""The version of the format that is read and written."""

MAX_META_NESTING = 200
"""How deep objects and lists may nest under `meta`: well within what every reader's stack holds."""

Meta = dict[str, Any]
TypeReader = Callable[[str], Type]
"""Reads a type, which may name record types of the document. Raises TypeTextError."""

Node = Mapping[str, Any]
"""A listed node, or a row of a table, as the file has it."""


class DeclaredInput(NamedTuple):
    """An input of a graph."""

    key: Key
    type: Type
    meta: Meta | None


class DeclaredOutput(NamedTuple):
    """An output of a graph. Its value, a reference, is None for a structural zero; its type, where it is left out."""

    key: Key
    value: object
    type: Type | None
    meta: Meta | None


class Packed(NamedTuple):
    """Nodes as columns, each as the file has it, or compact (see `columns`)."""

    table: Sequence[Node]
    code: list[object] | dict[str, Any]
    args: list[object] | dict[str, Any]
    external: Sequence[object]


class GraphShape(NamedTuple):
    """A graph; `linear` is its pass."""

    name: str
    linear: int | None
    meta: Meta | None
    inputs: Sequence[DeclaredInput]
    nodes: Sequence[Node] | Listed | Packed
    outputs: Sequence[DeclaredOutput]


class BoundInput(NamedTuple):
    """The graph input of this key is a value, `[g, v]`."""

    key: Key
    value: Sequence[Any]


class DocumentShape(NamedTuple):
    """A document, but for its record types, which are read before."""

    meta: Meta | None
    ops: Mapping[str, Any]
    passes: Mapping[int, str]
    graphs: Sequence[GraphShape]
    bindings: Sequence[BoundInput]


def accepted(plain: object, read_type: TypeReader) -> DocumentShape | None:
    """The shape of a document; None if there is anything that only the models can judge."""
    try:
        return _document(plain, read_type)
    except (_DoubtError, TiduError):
        return None


def type_without_names(text: str) -> Type:
    """Read a type in a document that declares no record types; records may be spelled out. Raises TypeTextError."""
    if not text.startswith(("{", "(")):
        with suppress(TypeTextError):
            return parse_type(text)
    from tidu_cli.graph.text.types import parse_value_type  # which most documents do without

    return parse_value_type(text)


def fault_of_meta(meta: Mapping[str, object]) -> str | None:
    """Why `meta` is not what both JSON and msgpack can hold, so that it survives every conversion; None if it is."""
    level: list[object] = [meta]
    for _ in range(MAX_META_NESTING):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
            elif fault := _fault_of_scalar(value):
                return fault
        if not inner:
            return None
        level = inner
    return f"nests deeper than {MAX_META_NESTING} levels"


def _fault_of_scalar(value: object) -> str | None:
    if isinstance(value, float) and not math.isfinite(value):
        return "holds a number that is not finite, which JSON cannot; write it as a string"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return "holds an integer beyond 64 bits, which msgpack cannot; write it as a string"
    if value is not None and not isinstance(value, bool | int | float | str):
        return "holds binary data, which JSON cannot; write it as text, such as base64"
    return None


class _DoubtError(Exception):
    """Something is not as it should be, or might not be."""


def _sure(condition: object) -> None:
    if not condition:
        raise _DoubtError


def _is_of(value: object, required: frozenset[str], optional: frozenset[str] = frozenset()) -> bool:
    return type(value) is dict and required <= value.keys() and value.keys() <= required | optional


_DOCUMENT = frozenset({"tidu", "graphs"}), frozenset({"meta", "types", "ops", "passes", "bindings"})
_GRAPH = frozenset({"name", "inputs", "nodes", "outputs"}), frozenset({"linear", "meta"})
_INPUT = frozenset({"key", "type"}), frozenset({"meta"})
_OUTPUT = frozenset({"key", "value"}), frozenset({"type", "meta"})
_NODE = frozenset({"op", "inputs"}), frozenset({"attrs", "role", "types", "meta"})
_PACKED = frozenset({"table", "code", "args"}), frozenset({"external"})
_ROW = frozenset({"op", "inputs", "outputs"}), frozenset({"attrs", "role"})


def _document(plain: Any, read_type: TypeReader) -> DocumentShape:
    _sure(_is_of(plain, *_DOCUMENT) and type(plain["tidu"]) is int and plain["tidu"] == VERSION)
    _sure(type(plain.get("types", {})) is dict and type(plain.get("ops", {})) is dict)
    _sure(type(plain["graphs"]) is list and plain["graphs"])
    graphs = [_graph(graph, read_type) for graph in plain["graphs"]]
    passes = passes_from_json(plain.get("passes", {}))
    return DocumentShape(_meta(plain), plain.get("ops", {}), passes, graphs, list(_bindings(plain.get("bindings", []))))


def _graph(graph: Any, read_type: TypeReader) -> GraphShape:
    _sure(_is_of(graph, *_GRAPH) and type(graph["name"]) is str and type(graph["inputs"]) is type(graph["outputs"]) is list)
    linear = None
    if "linear" in graph:
        _sure(_is_of(graph["linear"], frozenset({"pass"})))
        linear = checked_pass(graph["linear"]["pass"])
    nodes = graph["nodes"]
    if type(nodes) is list:
        _check_listed(nodes, read_type)
    elif type(nodes) is Listed:
        _check_listed([{**row, "inputs": []} for row in nodes.table], read_type)
        for meta in nodes.meta.values():
            _meta({"meta": meta})
    else:
        nodes = _packed(nodes)
    inputs = [_input(declaration, read_type) for declaration in graph["inputs"]]
    outputs = [_output(declaration, read_type) for declaration in graph["outputs"]]
    return GraphShape(graph["name"], linear, _meta(graph), inputs, nodes, outputs)


def _input(declaration: Any, read_type: TypeReader) -> DeclaredInput:
    _sure(_is_of(declaration, *_INPUT))
    return DeclaredInput(key_from_json(declaration["key"]), _type(declaration["type"], read_type), _meta(declaration))


def _output(declaration: Any, read_type: TypeReader) -> DeclaredOutput:
    _sure(_is_of(declaration, *_OUTPUT))
    type_ = _type(declaration["type"], read_type) if "type" in declaration else None
    return DeclaredOutput(key_from_json(declaration["key"]), declaration["value"], type_, _meta(declaration))


def _bindings(bindings: Any) -> Iterator[BoundInput]:
    _sure(type(bindings) is list)
    for binding in bindings:
        _sure(_is_of(binding, frozenset({"input", "value"})) and type(binding["value"]) is list)
        yield BoundInput(key_from_json(binding["input"]), binding["value"])


def _type(text: object, read_type: TypeReader) -> Type:
    if type(text) is not str:
        raise _DoubtError
    return read_type(text)


def _meta(owner: Mapping[str, Any]) -> Meta | None:
    if "meta" not in owner:
        return None
    meta = owner["meta"]
    _sure(type(meta) is dict and fault_of_meta(meta) is None)
    return meta  # type: ignore[no-any-return]


def _packed(nodes: Any) -> Packed:
    _sure(_is_of(nodes, *_PACKED) and type(nodes["table"]) is list and type(nodes.get("external", [])) in (list, Pairs))
    for row in nodes["table"]:
        _sure(_is_of(row, *_ROW) and type(row["op"]) is str and type(row.get("attrs", {})) is dict)
        _sure(all(type(row[count]) is int and 0 <= row[count] < 2**31 for count in ("inputs", "outputs")))
        if "role" in row:
            _check_role(row["role"])
    for column in (nodes["code"], nodes["args"]):
        if type(column) is not list:
            _sure(_is_of(column, frozenset({"dtype", "data"})) and type(column["data"]) in (bytes, array))
            _sure(type(column["dtype"]) is str and column["dtype"] in TYPECODES)
    return Packed(nodes["table"], nodes["code"], nodes["args"], nodes.get("external", []))


def _check_listed(nodes: list[Any], read_type: TypeReader) -> None:
    if not nodes:
        return
    _sure({dict}.issuperset(map(type, nodes)))
    required, optional = _NODE
    fields: set[str] = set()
    for found in set(map(tuple, nodes)):
        _sure(required.issubset(found) and (required | optional).issuperset(found))
        fields.update(found)
    _sure({str}.issuperset(map(type, map(itemgetter("op"), nodes))))
    _sure({list}.issuperset(map(type, map(itemgetter("inputs"), nodes))))
    if "attrs" in fields:
        _sure({dict}.issuperset(type(node["attrs"]) for node in nodes if "attrs" in node))
    if "role" in fields:
        for role in _distinct(node["role"] for node in nodes if "role" in node):
            _check_role(role)
    if "types" in fields:
        for types in _distinct(node["types"] for node in nodes if "types" in node):
            _sure(type(types) is list)
            for text in types:
                _type(text, read_type)
    if "meta" in fields:
        for node in nodes:
            _meta(node)


def _check_role(role: Any) -> None:
    _sure(_is_of(role, frozenset({"linearized"})) and _is_of(role["linearized"], frozenset({"active_mask"})))
    mask = role["linearized"]["active_mask"]
    _sure(type(mask) is list and {bool}.issuperset(map(type, mask)))


def _distinct(values: Iterable[Any]) -> Iterator[Any]:
    # Bytes hash, and lists and objects do not.
    try:
        return map(marshal.loads, set(map(marshal.dumps, values)))
    except ValueError:  # it nests too deeply, or holds what is no JSON value
        raise _DoubtError from None
