"""The field `types` of documents: record types by name, declared in any order, and views of them, which are graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from tidu_cli.errors import DocumentError, TypeTextError
from tidu_cli.formats.files import naming
from tidu_cli.formats.nodes.numbering import GraphReader, Numbering
from tidu_cli.formats.shape.document import ViewData, shaped, type_reader
from tidu_cli.frozen import replace
from tidu_cli.graph.sizes.open import OpenSize, are_there_open_sizes
from tidu_cli.graph.text import check_extent, check_field, check_name, names_in, parse_value_type
from tidu_cli.graph.types import RecordType, View, leaves
from tidu_cli.lax.vocabulary import BUILTIN

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
    from tidu_cli.custom.definitions import view_of  # which few documents need

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
