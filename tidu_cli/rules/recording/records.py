"""Records within rules: fields taken, put together, and gone through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tidu_cli.graph.types import RecordType, Type
from tidu_cli.rules.terms import Term


def field(record: Term, name: str) -> Term:
    """A field of a record."""
    return record.trace.emit("field", record, name=name)


def record(type_: Type, fields: Mapping[str, Term]) -> Term:
    """A record of these fields, at least one; of tangents, others are structurally zero."""
    type_ = cast(RecordType, type_)
    given = {name: fields[name] for name in type_.names if name in fields}
    named = None if len(given) == len(type_.fields) else tuple(given)
    trace = next(iter(given.values())).trace
    return trace.emit("record", *given.values(), type=type_, fields=named)


def fieldwise(type_: Type, part: Callable[[str, Type], Term | None]) -> Term:
    """The record of this type whose fields, by name and type, `part` gives: of tangents, None where one is structurally zero."""
    parts = {name: part(name, inner) for name, inner in cast(RecordType, type_).fields}
    return record(type_, {name: term for name, term in parts.items() if term is not None})
