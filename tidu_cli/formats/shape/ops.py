"""The field `ops` of documents: custom operations, their shape, and from that their definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Any

from tidu_cli.custom.definitions import KINDS, REQUIRED, AttrsReader, OpDefinition, SourceGraph, SourceNode
from tidu_cli.custom.patterns import Pattern, parse_pattern
from tidu_cli.errors import DocumentError, TypeTextError
from tidu_cli.formats.files import repeated
from tidu_cli.formats.shape.document import LEFT_OUT, Count, Key, Meta, kind_of, shaped
from tidu_cli.graph.keys import Key as GraphKey
from tidu_cli.graph.text import PATTERN
from tidu_cli.graph.types import RecordType
from tidu_cli.rules.attrs.fields import Data, Described, Parsed, Sized

OP_NAME = "[A-Za-z_][A-Za-z0-9_-]*"
"""The name of a custom operation."""

_NAME = re.compile(OP_NAME)
_RESERVED = "active"


def _pattern(text: object, records: Mapping[str, RecordType]) -> Pattern:
    if not isinstance(text, str):
        raise TypeTextError(f'a type is text such as "f64[3,4]" or "f64[...]", not {kind_of(text)}')
    return parse_pattern(text, records)


TypePattern = Annotated[Pattern, Parsed(_pattern, {"type": "string", "pattern": PATTERN})]


class OpPort(Data):
    """An input or output of a custom operation: its name, and its type, in which variables may stand."""

    key: Annotated[str, Sized(1)]
    type: TypePattern


class OpNode(Data):
    """A node of a custom operation's graph. `{"attr": NAME}` within its attrs stands for the value of the op's attr."""

    op: str
    inputs: list[Count]
    attrs: Meta = LEFT_OUT  # kept like meta: they get their meaning where the op is used


class OpGraphInput(Data):
    """An input of a custom operation's graph. Its type is the op's."""

    key: Key


class OpGraphOutput(Data):
    """An output of a custom operation's graph; null is a structural zero."""

    key: Key
    value: Count | None


class OpGraph(Data):
    """A graph of a custom operation, whose types are inferred where the op is used."""

    inputs: list[OpGraphInput]
    nodes: list[OpNode]
    outputs: list[OpGraphOutput]


class OpData(Data):
    """A custom operation.

    `forward` takes the inputs and gives the outputs. In the other graphs x@1 is the tangent of x, and x@-1 its cotangent: `jvp`
    takes inputs, outputs and tangents of inputs, and gives those of the outputs; `backward` takes inputs, outputs and cotangents of
    outputs, and gives those of the inputs; `transpose` takes the inputs that the op is not linear in and cotangents of outputs, and
    gives the cotangents of the others. Of `attrs` there is the default, or null for those that must be given.
    """

    model_config = {  # noqa: RUF012
        "json_schema_extra": {
            "not": {"anyOf": [{"required": [*pair]} for pair in combinations(("jvp", "backward", "transpose"), 2)]}
        }
    }
    inputs: Annotated[list[OpPort], Sized(1)]
    outputs: Annotated[list[OpPort], Sized(1)]
    attrs: Annotated[Meta, Described({"type": "object", "propertyNames": {"not": {"const": "active"}}})] = LEFT_OUT
    forward: OpGraph
    jvp: OpGraph = LEFT_OUT
    backward: OpGraph = LEFT_OUT
    transpose: OpGraph = LEFT_OUT
    meta: Meta = LEFT_OUT


def definitions(
    ops: Mapping[str, Any], records: Mapping[str, RecordType], read_attrs: AttrsReader, origin: str = ""
) -> list[OpDefinition]:
    """The definitions of a document, in order; of a library, with its name as `origin`. Raises DocumentError."""
    data = {name: shaped(OpData, op, records, ("ops", name), {"ops": ops}) for name, op in ops.items()}
    return [_definition(name, op, origin, read_attrs) for name, op in data.items()]


def _definition(name: str, data: OpData, origin: str, read_attrs: AttrsReader) -> OpDefinition:
    place = f"op '{name}'"
    if not _NAME.fullmatch(name):
        raise DocumentError(f"{place}: a name is of letters, digits, _ and -, and begins with a letter")
    ports = [p.key for p in (*data.inputs, *data.outputs)]
    if (twice := repeated(ports)) is not None:
        raise DocumentError(f"{place}: '{twice}' names two of its inputs and outputs")
    attrs = data.attrs or {}
    if _RESERVED in attrs:
        raise DocumentError(f"{place}: the attr name '{_RESERVED}' is taken; choose another")
    given = [kind for kind in KINDS if getattr(data, kind) is not None]
    if len(given) > 2:
        raise DocumentError(f"{place}: has {', '.join(given[1:])}; one of them says what its derivative is")
    return OpDefinition(
        name,
        {GraphKey(p.key): p.type for p in data.inputs},
        {GraphKey(p.key): p.type for p in data.outputs},
        {k: REQUIRED if v is None else v for k, v in attrs.items()},
        {kind: _graph(getattr(data, kind), f"{place}: its {kind}") for kind in given},
        read_attrs,
        data.meta,
        origin,
    )


def _graph(data: OpGraph, place: str) -> SourceGraph:
    for kind, keys in (("input", [i.key for i in data.inputs]), ("output", [o.key for o in data.outputs])):
        if (twice := repeated(keys)) is not None:
            raise DocumentError(f"{place} declares the {kind} '{twice}' twice")
    nodes = (SourceNode(n.op, n.attrs or {}, tuple(n.inputs)) for n in data.nodes)
    return SourceGraph(tuple(i.key for i in data.inputs), tuple(nodes), tuple((o.key, o.value) for o in data.outputs))
