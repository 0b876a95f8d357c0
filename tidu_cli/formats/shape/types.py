"""The field `types` of documents: record types by name, declared in any order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tidu_cli.errors import DocumentError, TypeTextError
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
    found: dict[str, RecordType] = {}
    for start in declared:
        path = {} if start in found else {start: iter(parts[start])}
        while path:
            name = next(reversed(path))
            part = next((part for part in path[name] if part not in found), None)
            if part is None:
                found[name] = context[name] = _record(name, declared[name], context)
                del path[name]
            elif part in path:
                names = list(path)
                between = names[names.index(part) + 1 :]
                cycle = " of ".join([*between[:_NAMED], *(["..."] if len(between) > _NAMED else []), part])
                raise DocumentError(f"type '{part}': is of {cycle}; a record type cannot be a part of itself")
            else:
                path[part] = iter(parts[part])
    return {name: found[name] for name in declared}


def _declarations(data: object) -> dict[str, Fields]:
    if not isinstance(data, dict):
        raise DocumentError("'types' must be an object: record types by name")
    for name, fields in data.items():
        with _naming(f"type '{name}'"):
            check_name(name)
        if not isinstance(fields, dict) or not fields:
            raise DocumentError(f"type '{name}': must be an object of fields, at least one, and their types")
        for field, text in fields.items():
            with _naming(f"type '{name}', field '{field}'"):
                check_field(field)
                if not isinstance(text, str):
                    raise TypeTextError('a type is text, such as "f64[3]" or the name of another')
    return data


def _record(name: str, fields: Fields, context: Mapping[str, RecordType]) -> RecordType:
    types = []
    for field, text in fields.items():
        with _naming(f"type '{name}', field '{field}'"):
            types.append((field, parse_value_type(text, context)))
    record = RecordType(name, tuple(types))
    with _naming(f"type '{name}'"):
        check_extent(record, name)
    return record


@contextmanager
def _naming(place: str) -> Iterator[None]:
    try:
        yield
    except TypeTextError as error:
        raise DocumentError(f"{place}: {error}") from None
