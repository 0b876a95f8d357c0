"""The shape of a document: classes of annotated fields, by which it is read, judged and published as JSON Schema.

They say what is where, and the reading layer gives it meaning: whether a reference exists, whether types fit. Of nodes there may be
millions, so that references and what else occurs once a node are left to the loops over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from tidu_cli.errors import TypeTextError
from tidu_cli.graph.keys import MAX_PASS, checked_pass, key_from_json, passes_from_json
from tidu_cli.graph.keys import Key as GraphKey
from tidu_cli.graph.text import END, NAME, parse_value_type
from tidu_cli.graph.types import RecordType, parse_type
from tidu_cli.graph.types import Type as ValueType
from tidu_cli.rules.fields import DOUBT, After, Bounded, Data, Described, Parsed, Sized, made, read_quickly

D = TypeVar("D", bound=Data)

VERSION = 1
"""The version of the format that is read and written."""

MAX_META_NESTING = 200
"""How deep objects and lists may nest under `meta`: well within what every reader's stack holds."""

TypeReader = Callable[[str], ValueType]
"""Reads a type, which may name record types of the document. Raises TypeTextError."""

LEFT_OUT: Any = None  # of a field that may be left out, but may not be null


def type_reader(records: Mapping[str, RecordType]) -> TypeReader:
    """What reads the types of a document with these record types: each text once, since every node may give types."""

    @lru_cache(maxsize=4096)
    def read(text: str) -> ValueType:
        if not records and not text.startswith(("{", "(")):
            with suppress(TypeTextError):
                return parse_type(text)
        return parse_value_type(text, records)

    return read


def _type(text: object, read_type: TypeReader) -> ValueType:
    if not isinstance(text, str):
        raise TypeTextError(f'a type is text such as "f64[3,4]", not {kind_of(text)}')
    return read_type(text)


def kind_of(value: object) -> str:
    """What messages call a value of the wrong kind."""
    kinds = {dict: "an object", list: "a list", bool: "a bool", int: "a number", float: "a number", bytes: "binary data"}
    return "null" if value is None else kinds.get(type(value), "that")


def _checked_meta(meta: Mapping[str, object]) -> Mapping[str, object]:
    """Raises ValueError unless both JSON and msgpack can hold it, so that it survives every conversion."""
    level: list[object] = [meta]
    for _ in range(MAX_META_NESTING):
        inner: list[object] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
            else:
                _check_scalar(value)
        if not inner:
            return meta
        level = inner
    raise ValueError(f"nests deeper than {MAX_META_NESTING} levels")


def _check_scalar(value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("holds a number that is not finite, which JSON cannot; write it as a string")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError("holds an integer beyond 64 bits, which msgpack cannot; write it as a string")
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ValueError("holds binary data, which JSON cannot; write it as text, such as base64")


def shaped(data: type[D], plain: object, context: object, place: tuple[str, ...] = (), within: object = None) -> D:
    """What plain data, which stands at a place of a document, means by its annotations. Raises DocumentError."""
    fields = read_quickly(data, plain, context) if isinstance(plain, dict) else DOUBT
    if fields is not DOUBT:
        return made(data, fields)
    from tidu_cli.formats.complaints import judged_as

    return judged_as(data, plain, context, place, within)


def _positive(largest: int) -> str:
    """A pattern of the integers from 1 to this one, which has several digits: its beginnings with a lesser digit after them."""
    digits = str(largest)
    lesser = [
        f"{digits[:k]}[{min(k, 1) ^ 1}-{int(d) - 1}][0-9]{{{len(digits) - k - 1}}}"
        for k, d in enumerate(digits)
        if int(d) > (k == 0)
    ]
    return f"([1-9][0-9]{{0,{len(digits) - 2}}}|{'|'.join(lesser)}|{digits})"


# {"define": NAME} is a reference to a definition of `schema`, which pydantic must not see.
INDEX: dict[str, Any] = {"type": "integer", "minimum": 0}
VALUE: dict[str, Any] = {"type": "array", "prefixItems": [INDEX, INDEX], "minItems": 2, "maxItems": 2}
DIGEST: dict[str, Any] = {"type": "string", "pattern": rf"^sha256:[0-9a-f]{{64}}{END}"}
PASS: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": MAX_PASS}
_ENTRY: dict[str, Any] = {"type": "integer", "minimum": -(2**31), "exclusiveMaximum": 2**31}
_REFERENCE: dict[str, Any] = {"define": "Reference"}
_PASSES = {"type": "object", "propertyNames": {"pattern": rf"^{_positive(MAX_PASS)}$"}, "additionalProperties": DIGEST}
_TYPES = {"type": "object", "propertyNames": {"pattern": f"^{NAME}{END}"}, "additionalProperties": {"define": "RecordType"}}
_OPS = {"type": "object", "propertyNames": {"define": "OwnName"}, "additionalProperties": {"define": "OpData"}}


def _by(parse: Callable[[Any], Any], schema: Mapping[str, Any]) -> Parsed:
    return Parsed(lambda value, context: parse(value), schema)


Key = Annotated[GraphKey, _by(key_from_json, {"define": "Key"})]
Pass = Annotated[int, _by(checked_pass, PASS)]
Passes = Annotated[dict[int, str], _by(passes_from_json, _PASSES)]
Type = Annotated[ValueType, Parsed(_type, {"define": "Type"})]
Meta = Annotated[dict[str, Any], After(_checked_meta), Described({"type": "object"})]
Count = Annotated[int, Bounded(ge=0, lt=2**31)]
# References are left to the loop over the nodes, which looks at each anyway.
References = Annotated[list[Any], Described({"type": "array", "items": _REFERENCE})]
ReferenceOrNull = Annotated[Any, Described({"oneOf": [_REFERENCE, {"type": "null"}]})]
Value = Annotated[list[Any], Described(VALUE)]
Externals = Annotated[list[Any], Described({"type": "array", "items": {"oneOf": [VALUE, DIGEST]}})]
# Read before all that may name a record type.
Types = Annotated[dict[str, Any], Described(_TYPES)]
# Likewise, before all that may have open sizes.
Sizes = Annotated[dict[str, Any], Described({"define": "Sizes"})]
# Read where there are any, after record types.
Ops = Annotated[dict[str, Any], Described(_OPS)]


class Mask(Data):
    """`active_mask`: for each input of the node, whether it carries the tangent."""

    active_mask: list[bool]


class Role(Data):
    """The role of a linearized node. A node without a role is primary."""

    linearized: Mask


class ListedNode(Data):
    """A node of a list of nodes."""

    op: str
    inputs: References
    attrs: dict[str, Any] = LEFT_OUT
    role: Role = LEFT_OUT
    types: list[Type] = LEFT_OUT
    meta: Meta = LEFT_OUT


class TableRow(Data):
    """What nodes of packed nodes have in common; `inputs` and `outputs` count theirs."""

    op: str
    attrs: dict[str, Any] = LEFT_OUT
    role: Role = LEFT_OUT
    inputs: Count
    outputs: Count


class BinaryIntegers(Data):
    """A column of integers in msgpack: little-endian bytes."""

    dtype: Literal["i8", "i16", "i32", "i64", "u8", "u16", "u32"]
    data: bytes


Codes = Annotated[list[Any] | BinaryIntegers, Described({"type": "array", "items": _ENTRY | {"minimum": 0}})]
Arguments = Annotated[list[Any] | BinaryIntegers, Described({"type": "array", "items": _ENTRY})]


class PackedNodes(Data):
    """Nodes as columns: `code[i]` is node i's row of `table`; `args` all inputs in order, -1-k meaning `external[k]`."""

    table: list[TableRow]
    code: Codes
    args: Arguments
    external: Externals = LEFT_OUT


class InputDeclaration(Data):
    """An input of a graph."""

    key: Key
    type: Type
    meta: Meta = LEFT_OUT


class OutputDeclaration(Data):
    """An output of a graph. A null `value` is a structural zero, and then `type` must be there."""

    model_config = {"json_schema_extra": {"if": {"properties": {"value": {"type": "null"}}}, "then": {"required": ["type"]}}}  # noqa: RUF012
    key: Key
    value: ReferenceOrNull
    type: Type = LEFT_OUT
    meta: Meta = LEFT_OUT


class Linear(Data):
    """`pass`: the pass whose tangents the linear graph maps."""

    __annotations__ = {"pass": Pass}


class GraphData(Data):
    """A graph fragment."""

    model_config = {  # noqa: RUF012
        "json_schema_extra": {
            "if": {"required": ["linear"], "properties": {"nodes": {"type": "array"}}},
            "then": {"properties": {"nodes": {"items": {"define": "LinearNode"}}}},
        }
    }
    name: str
    linear: Linear = LEFT_OUT
    meta: Meta = LEFT_OUT
    inputs: list[InputDeclaration]
    nodes: list[ListedNode] | PackedNodes
    outputs: list[OutputDeclaration]


class ClosedGraphData(Data):
    """A graph within the attrs of a node: closed, what it reads are its inputs. Its nodes have no roles; no output is null."""

    model_config = {"json_schema_extra": {"allOf": [{"define": "Closed"}]}}  # noqa: RUF012
    name: str = ""
    meta: Meta = LEFT_OUT
    inputs: list[InputDeclaration]
    nodes: list[ListedNode] | PackedNodes
    outputs: list[OutputDeclaration]


WithinView = Annotated[dict[str, Any], Described({"define": "ClosedGraph"})]


class ViewData(Data):
    """A view of a record type: properties, and linear graphs between the tangents of the fields and theirs, by name."""

    properties: Annotated[dict[str, Type], Described({"define": "Fields"})]
    from_fields: WithinView
    to_fields: WithinView


class BindingData(Data):
    """The graph input `input` is value `[g, v]`."""

    input: Key
    value: Value


class DocumentData(Data):
    """A tidu document: a list of graphs, of which the last is the head."""

    tidu: Literal[1]
    meta: Meta = LEFT_OUT
    sizes: Sizes = LEFT_OUT
    types: Types = LEFT_OUT
    ops: Ops = LEFT_OUT
    passes: Passes = LEFT_OUT
    graphs: Annotated[list[GraphData], Sized(1)]
    bindings: list[BindingData] = LEFT_OUT


class LibraryData(Data):
    """A library: a document of which the record types and ops are wanted only."""

    tidu: Literal[1]
    meta: Meta = LEFT_OUT
    types: Types = LEFT_OUT
    ops: Ops = LEFT_OUT
    graphs: Any = None
    bindings: Any = None
