"""The field `types` of documents: record types by name, declared in any order."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from tidu_cli.errors import DocumentError, TypeTextError
from tidu_cli.formats.messages import naming
from tidu_cli.graph.text.types import check_extent, check_field, check_name, names_in, parse_value_type
from tidu_cli.graph.types import RecordType

_NAMED = 5  # as many types of a cycle are named

Fields = Mapping[str, str]
"""A declaration: the text of a type for each field."""


def record_types(data: object, known: Mapping[str, RecordType]) -> dict[str, RecordType]:
    """The record types that a document declares, in its order; they may be made of those known. Raises DocumentError."""
    declared = _declarations(data)
    parts = {
        name: [part for text in fields.values() for part in names_in(text) if part in declared] for name, fields in declared.items()
    }
    context = dict(known)
    try:
        for name in TopologicalSorter(parts).static_order():
            context[name] = _record(name, declared[name], context)
    except CycleError as error:
        *cycle, _ = reversed(error.args[1])  # each is made of the next
        at = cycle.index(next(name for name in declared if name in cycle))
        first, *between = cycle[at:] + cycle[:at]
        told = " of ".join([*between[:_NAMED], *(["..."] if len(between) > _NAMED else []), first])
        raise DocumentError(f"type '{first}': is of {told}; a record type cannot be a part of itself") from None
    return {name: context[name] for name in declared}


def _declarations(data: object) -> dict[str, Fields]:
    if not isinstance(data, dict):
        raise DocumentError("'types' must be an object: record types by name")
    for name, fields in data.items():
        with naming(f"type '{name}': "):
            check_name(name)
        if not isinstance(fields, dict) or not fields:
            raise DocumentError(f"type '{name}': must be an object of fields, at least one, and their types")
        for field, text in fields.items():
            with naming(f"type '{name}', field '{field}': "):
                check_field(field)
                if not isinstance(text, str):
                    raise TypeTextError('a type is text, such as "f64[3]" or the name of another')
    return data


def _record(name: str, fields: Fields, context: Mapping[str, RecordType]) -> RecordType:
    types = []
    for field, text in fields.items():
        with naming(f"type '{name}', field '{field}': "):
            types.append((field, parse_value_type(text, context)))
    record = RecordType(name, tuple(types))
    with naming(f"type '{name}': "):
        check_extent(record, name)
    return record
