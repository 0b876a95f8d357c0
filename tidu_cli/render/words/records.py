"""Words for records, their fields, and conversions of times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import DATETIMES, DURATIONS, TIMES, UNITS, RecordType, TensorType, unit_of
from tidu_cli.render.text import field_pieces, record_pieces, short
from tidu_cli.render.words.phrasing import Attributes, Phrase

_FIELDS = 4
"""How many fields of a record are named."""

_UNIT_NAMES = {
    "D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds",
}  # fmt: skip


def record_phrase(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    """`{x: a, y: 0}`, put together as a record."""
    formula = "".join(piece if isinstance(piece, str) else operands[piece] for piece in record_pieces(case))
    return Phrase(formula, f"put together as {_record_words(case)}")


def _record_words(case: Case) -> str:
    """`Point`, `a record of x and y`, `Segment, zero but for a`."""
    attrs: Any = case.attrs
    type_, names = attrs.type, attrs.names
    shown = [*names[:_FIELDS], *([f"{len(names) - _FIELDS} more"] if len(names) > _FIELDS else [])]
    fields = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    if type_.is_tuple:
        fields = f"{'item' if len(names) == 1 else 'items'} {fields}"
    rest = f", zero but for {fields}" if len(names) < len(type_.fields) else ""
    if type_.is_tuple:
        return "a tuple" + rest
    return f"{type_.name or 'a record'}{rest}" if type_.name or rest else f"a record of {fields}"


def record_label(case: Case) -> str:
    """`Point{x, y}`, of the fields that the operands are; which others are zero."""
    attrs: Any = case.attrs
    type_, names = attrs.type, attrs.names
    listed = ", ".join([*names[:_FIELDS], *(["…"] if len(names) > _FIELDS else [])])
    opening, closing = "()" if type_.is_tuple else "{}"
    return f"{short(type_.name)}{opening}{listed}{closing}{', else 0' if len(names) < len(type_.fields) else ''}"


def field_phrase(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    """`p.x`, x of p; of a tuple `p.0`, item 0 of p."""
    formula = "".join(piece if isinstance(piece, str) else operands[piece] for piece in field_pieces(case))
    (type_,), name = case.operands, attrs["name"]
    if isinstance(type_, RecordType) and type_.is_tuple:
        return Phrase(formula, f"item {name} of {operands[0]}", noun=True, way=f"to its item {name}")
    return Phrase(formula, f"{name} of {operands[0]}", noun=True, way=f"to its field {name}")


def difference_phrase(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    """`difference(x, y)`, the tangent from y to x."""
    x, y = operands
    as_type = f", of type {short(attrs['tangent'])}" if "tangent" in attrs else ""
    return Phrase(f"difference({x}, {y})", f"tangent from {y} to {x}{as_type}", noun=True)


def retract_phrase(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    """`x moved by d`."""
    x, d = operands
    return Phrase(f"{x} moved by {d}", f"moved along the tangent {d}")


def conversion_phrase(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    """`a as f64`, converted to f64; of times in the words for their units."""
    given, new = case.operands[0], str(attrs["new_dtype"])
    old = given.dtype if isinstance(given, TensorType) else ""
    formula = f"{operands[0]} as {new}"
    if old in DURATIONS and new in DURATIONS:
        return Phrase(f"{operands[0]} in {_UNIT_NAMES[unit_of(new)]}", f"converted to {_UNIT_NAMES[unit_of(new)]}")
    if old in DATETIMES and new in DATETIMES:
        coarser = UNITS.index(unit_of(new)) < UNITS.index(unit_of(old))
        return Phrase(formula, f"{'rounded down' if coarser else 'converted'} to {_UNIT_NAMES[unit_of(new)]}")
    if old in DATETIMES:
        return Phrase(formula, f"counted in {_UNIT_NAMES[unit_of(old)]} since 1970")
    if old in DURATIONS:
        return Phrase(formula, f"counted in {_UNIT_NAMES[unit_of(old)]}")
    if new in TIMES:
        return Phrase(formula, f"taken as {_UNIT_NAMES[unit_of(new)]}{' since 1970' if new in DATETIMES else ''}")
    return Phrase(formula, f"converted to {new}")
