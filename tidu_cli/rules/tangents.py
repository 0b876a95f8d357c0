"""Tangent types: which types of tangents a primal type has.

Rules compute with the natural tangent type, `tidu_cli.graph.types.tangent_type`. A linear graph may take its tangents in another
type that the primal admits (`tidu_cli.rules.recording.conversion`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidu_cli.errors import TypeRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.types import (
    COMPLEXES,
    DATETIMES,
    DURATION,
    DURATIONS,
    FLOATS,
    INTEGERS,
    OPEN_SHAPE,
    TIMES,
    UNITS,
    RecordType,
    TensorType,
    Type,
    leaves,
    moves,
    tangent_type,
    tensor_tangent_type,
    unit_of,
)

_DURATIONS = tuple(f"{DURATION}[{unit}]" for unit in UNITS)


class TangentRow(Frozen):
    """A row of the table: primal dtypes, and those of the tangents that they admit, of the primal's shape.

    `structural` says that they also admit the structural tangent `{instant: {periods: f64}}`, a count of units, and those with a
    duration in the place of the count.
    """

    primals: frozenset[str]
    admitted: tuple[str, ...]
    structural: bool = False


TABLE = (
    TangentRow(FLOATS, ("f16", "bf16", "f32", "f64")),
    TangentRow(COMPLEXES, ("c64", "c128")),
    TangentRow(INTEGERS, ("f32", "f64")),
    TangentRow(DATETIMES, _DURATIONS, structural=True),
    TangentRow(DURATIONS, _DURATIONS),
    TangentRow(frozenset({"bool"}), ()),
)
"""Of every dtype, one row. A conversion in either direction is convert_element_type: linear, and it transposes.

A record admits the records of tangents that its fields admit, any of them left out, and those that the properties of one of its
views admit, all of them.
"""


def natural(primal: Type) -> Type | None:
    """The tangent type that rules compute with; None where the only tangent is zero."""
    return tangent_type(primal) if moves(primal) else None


def admitted(primal: TensorType) -> tuple[TensorType, ...]:
    """All tangent types of a primal type that are arrays, the natural one among them; none where the only tangent is zero."""
    return tuple(primal.with_dtype(dtype) for dtype in _row(primal).admitted)


def structural(shape: tuple[int, ...], dtype: str = "f64") -> RecordType:
    """The structural tangent type of datetimes of a shape: in the places where the parts of a datetime are, how many units.

    With the dtype of a duration it is semi-structural: a span of time in that place.
    """
    return RecordType("", (("instant", RecordType("", (("periods", TensorType(dtype, shape)),))),))


def _periods(type_: Type) -> TensorType | None:
    """What a tangent type with the places of a datetime has in them; None if it is no such type."""
    leaf = next((leaf for path, leaf in leaves(type_) if path == ("instant", "periods")), None)
    return leaf if leaf is not None and type_ == structural(leaf.shape, leaf.dtype) else None


def chosen(primal: Type, given: Type) -> Type:
    """The tangent type that `given`, of which shapes and names may have been left out, is for this primal type.

    Raises TypeRuleError if the primal type does not admit it, with what is to be said of the primal type.
    """
    if isinstance(primal, RecordType):
        return _chosen_record(primal, given)
    if not moves(primal):
        raise TypeRuleError("admits no tangent but zero")
    row, shape = _row(primal), primal.shape
    if isinstance(given, TensorType) and given.dtype in row.admitted and given.shape in (shape, OPEN_SHAPE):
        return given.with_shape(shape)
    periods = _periods(given) if row.structural else None
    if periods is not None and periods.dtype in ("f64", *row.admitted) and periods.shape in (shape, OPEN_SHAPE):
        return structural(shape, periods.dtype)
    raise TypeRuleError(f"admits no tangent {given}; choose {_choice(row, primal)}")


def admits(primal: Type, tangent: Type) -> bool:
    """Whether a type is, to its shapes, one of the tangent types that a primal type admits."""
    try:
        return chosen(primal, tangent) == tangent
    except TypeRuleError:
        return False


def joined(types: Sequence[Type], records: Mapping[str, RecordType]) -> Type | None:
    """The type in which tangents of these types add up: the natural one of what they are tangents of. None if there is none such.

    Of a record type that `records` has by name that is known. Of durations it is the finest unit, in whole numbers of which the
    others count; a count of units counts in the unit of the duration that it is added to. Records without a name go by field.
    """
    if all(isinstance(t, RecordType) and t.tangent for t in types):
        primal = records.get(types[0].name) if isinstance(types[0], RecordType) else None
        return tangent_type(primal) if primal is not None and all(admits(primal, t) for t in types) else None
    return _joined(types)


def _joined(types: Sequence[Type]) -> Type | None:
    first = types[0]
    if all(t == first for t in types):
        return first
    spans = [t if isinstance(t, TensorType) else _periods(t) for t in types]
    durations = [t for t in spans if t is not None and t.dtype in DURATIONS]
    if durations and (len(durations) < len(types) or any(isinstance(t, TensorType) for t in types)):
        finest = max(durations, key=lambda t: UNITS.index(unit_of(t.dtype)))
        able = {*admitted(finest), *(structural(finest.shape, dtype) for dtype in ("f64", *_DURATIONS))}
        return finest if able.issuperset(types) else None
    given = [t for t in types if isinstance(t, RecordType) and not t.name]
    if len(given) < len(types) or any(t.names != given[0].names for t in given):
        return None
    fields = [(name, _joined([part for t in given if (part := t.get(name))])) for name in given[0].names]
    parts = tuple((name, type_) for name, type_ in fields if type_ is not None)
    return RecordType("", parts) if len(parts) == len(fields) else None


def scaled_operand(types: Sequence[Type | None]) -> int | None:
    """Which of two operands is a vector that the other one scales; None if these are no vector and number."""
    for k, (vector, number) in enumerate(zip(types, types[::-1], strict=True)):
        # A vector of None is hidden by a detached reference.
        if vector is None or not isinstance(number, TensorType) or number.dtype not in FLOATS | INTEGERS:
            continue
        if isinstance(vector, RecordType):
            return k if vector.inexact and number.shape == () else None
        if vector.dtype in DURATIONS:
            return k if number.shape == vector.shape else None
    return None


def _choice(row: TangentRow, primal: TensorType) -> str:
    able = [str(t) for t in admitted(primal)]
    if primal.dtype in TIMES:
        natural_unit = unit_of(primal.dtype)
        others = [unit for unit in map(unit_of, row.admitted) if unit != natural_unit]
        able = [f"{tangent_type(primal)} (or another unit: {', '.join(others)})"]
    if row.structural:
        able += [str(structural(primal.shape)), str(structural(primal.shape, tensor_tangent_type(primal).dtype))]
    return " or ".join(able)


def _chosen_record(primal: RecordType, given: Type) -> RecordType:
    if not isinstance(given, RecordType) or given.name not in ("", primal.name):
        raise TypeRuleError(f"admits no tangent {given}; choose {tangent_type(primal)}, or fields of it")
    view = primal.view_with(given.names)
    kind, parts = ("field", primal.fields) if view is None else ("property", view.properties)
    types, due = dict(given.fields), dict(parts)
    for name in types:
        part = due.get(name)
        if part is None:
            told = ", ".join(due) if view is None else f"view '{view.name}': {', '.join(due)}"
            raise TypeRuleError(f"has no {kind} '{name}' ({'fields: ' if view is None else ''}{told})")
        try:
            types[name] = chosen(part, types[name])
        except TypeRuleError as error:
            raise TypeRuleError(f"has the {kind} '{name}' of type {part}, which {error}") from None
    if not types:
        raise TypeRuleError(f"admits no tangent without fields; choose some of {tangent_type(primal)}")
    if view is not None and (missing := [name for name in due if name not in types]):
        raise TypeRuleError(f"has the view '{view.name}', of whose tangents no property may be left out; add {', '.join(missing)}")
    return primal.tangents(tuple((name, types[name]) for name in due if name in types))


def _row(primal: TensorType) -> TangentRow:
    return next(row for row in TABLE if primal.dtype in row.primals)
