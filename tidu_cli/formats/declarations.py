"""What documents declare before their graphs: the fields `types` and `ops`, their shape, and from that what they define.

`types` has record types by name, declared in any order, and views of them, which are graphs. `ops` has custom operations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import Annotated, Any

from tidu_cli.custom.definitions import KINDS, REQUIRED, AttrsReader, OpDefinition, SourceGraph, SourceNode, view_of
from tidu_cli.custom.patterns import Pattern, parse_pattern
from tidu_cli.errors import DocumentError, TypeTextError
from tidu_cli.formats.files import naming, repeated
from tidu_cli.formats.nodes.numbering import GraphReader, Numbering
from tidu_cli.formats.shape import LEFT_OUT, Count, Key, Meta, ViewData, kind_of, shaped, type_reader
from tidu_cli.frozen import replace
from tidu_cli.graph.keys import Key as GraphKey
from tidu_cli.graph.sizes.open import OpenSize, are_there_open_sizes
from tidu_cli.graph.text import PATTERN, check_extent, check_field, check_name, names_in, parse_value_type
from tidu_cli.graph.types import RecordType, View, leaves
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.fields import Data, Described, Parsed, Sized

_NAMED = 5  # as many types of a cycle are named

Fields = Mapping[str, str]
"""A declaration: the text of a type for each field."""


def record_types(data: object, known: Mapping[str, RecordType], read_closed: GraphReader | None = None) -> dict[str, RecordType]:
    """The record types that a document declares, in its order; they may be made of those known. Raises DocumentError.

    Without `read_closed`, which reads the graphs of views, they have none.
    """
    declared, views = _declarations(data)
    parts = {
        name: [part for text in (*fields.values(), *_texts(views.get(name))) for part in names_in(text) if part in declared]
        for name, fields in declared.items()
    }
    context = dict(known)
    try:
        for name in TopologicalSorter(parts).static_order():
            record = _record(name, declared[name], context)
            if name in views and read_closed is not None:
                record = replace(record, views=read_views(record, views[name], context, read_closed))
            context[name] = record
    except CycleError as error:
        *cycle, _ = reversed(error.args[1])  # each is made of the next
        at = cycle.index(next(name for name in declared if name in cycle))
        first, *between = cycle[at:] + cycle[:at]
        told = " of ".join([*between[:_NAMED], *(["..."] if len(between) > _NAMED else []), first])
        raise DocumentError(f"type '{first}': is of {told}; a record type cannot be a part of itself") from None
    return {name: context[name] for name in declared}


def _declarations(data: object) -> tuple[dict[str, Fields], dict[str, dict[str, Any]]]:
    """The fields of each type, and the views of those that have such."""
    if not isinstance(data, dict):
        raise DocumentError("'types' must be an object: record types by name")
    declared, views = dict[str, Fields](), dict[str, dict[str, Any]]()
    for name, fields in data.items():
        with naming(f"type '{name}': "):
            check_name(name)
            if isinstance(fields, dict) and isinstance(fields.get("fields"), dict):  # no text, as the type of a field is
                fields, views[name] = fields["fields"], _view_declarations(fields)
        if not isinstance(fields, dict) or not fields:
            raise DocumentError(f"type '{name}': must be an object of fields, at least one, and their types")
        for field, text in fields.items():
            with naming(f"type '{name}', field '{field}': "):
                check_field(field)
                if not isinstance(text, str):
                    raise TypeTextError('a type is text, such as "f64[3]" or the name of another')
        declared[name] = fields
    return declared, views


def _view_declarations(data: dict[str, Any]) -> dict[str, Any]:
    views = data.get("views")
    if data.keys() != {"fields", "views"} or not isinstance(views, dict) or not views:
        raise DocumentError("with 'fields' as an object, 'views' must stand beside it, an object of at least one")
    for view in views:
        check_field(view)
    return views


def _texts(data: object, name: str = "") -> Iterator[str]:
    """What may name a type in the declaration of views, `data`: all text but names of ops, keys and meta."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for field, inner in data.items():
            if name == "properties" or field not in ("op", "key", "meta"):
                yield from _texts(inner, field)
    elif isinstance(data, list):
        for inner in data:
            yield from _texts(inner)


def _record(name: str, fields: Fields, context: Mapping[str, RecordType]) -> RecordType:
    types = []
    for field, text in fields.items():
        with naming(f"type '{name}', field '{field}': "):
            types.append((field, parse_value_type(text, context)))
            if are_there_open_sizes() and any(isinstance(n, OpenSize) for _, leaf in leaves(types[-1][1]) for n in leaf.shape):
                raise TypeTextError(f"{text} has an open size, and those of declared types are numbers; spell the record out")
    record = RecordType(name, tuple(types))
    with naming(f"type '{name}': "):
        check_extent(record, name)
    return record


def read_views(
    record: RecordType, declarations: Mapping[str, Any], records: Mapping[str, RecordType], read_closed: GraphReader
) -> tuple[View, ...]:
    """The views of a record type, whose graphs may name these `records`. Raises DocumentError."""
    # Of built-in primitives: custom ones are made of record types, and these have their views by then.
    primitives = replace(BUILTIN, records=dict(records))
    around = Numbering(primitives, type_reader(primitives.records), iter, read_closed)
    views: list[View] = []
    owner: dict[str, str] = {}
    for name, data in declarations.items():
        with naming(f"type '{record.name}', view '{name}': "):
            shape = shaped(ViewData, data, around.read_type)
            for part in shape.properties:
                with naming(f"property '{part}': "):
                    check_field(part)
                    if owner.setdefault(part, name) != name:
                        raise TypeTextError(f"the view '{owner[part]}' has a property of this name, too; rename one of them")
            graphs = read_closed(shape.from_fields, "from_fields", around), read_closed(shape.to_fields, "to_fields", around)
            views.append(view_of(name, record, shape.properties, graphs, primitives))
    return tuple(views)


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
