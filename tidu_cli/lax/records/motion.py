"""Motion: the tangent between two values, and values moved along tangents, for every pair of primal type and tangent type.

    difference(x, y) = d    is the tangent with    retract(y, d) = x

Of floats this is x - y and x + d, of integers and datetimes the same in whole units, of records field by field. Bools do not move.
The law holds for floats to rounding; for records in the fields that the tangent has; and for integers and datetimes exactly while
they are no further apart than 2^53 units, or 2^51 where the tangent counts another unit of time, or 2^24 where it is in f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

from tidu_cli.errors import TypeRuleError, TypeTextError
from tidu_cli.graph.graph import Case
from tidu_cli.graph.text import NOT_A_TIME, OPEN_TYPE, parse_value_type
from tidu_cli.graph.types import (
    ANY,
    COMPLEXES,
    DATETIMES,
    INTEGERS,
    TIMES,
    RecordType,
    TensorType,
    Type,
    moves,
    of_batch,
    storage_dtype,
    tangent_type,
    unit_of,
)
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.records.joining import conversion_kernel, converted_batch
from tidu_cli.lax.records.records import zeros
from tidu_cli.rules.batching import stacked
from tidu_cli.rules.catalogue import Caption, short
from tidu_cli.rules.contract import JVP, Attrs, Batching, Example, Kernel, ValueTypes
from tidu_cli.rules.families import minus, primitive, summed
from tidu_cli.rules.fields import Parsed, Records
from tidu_cli.rules.recording.conversion import by_properties, converted
from tidu_cli.rules.tangents import chosen
from tidu_cli.rules.terms import Term, field, fieldwise, op
from tidu_cli.rules.units import between, scaling, span

difference, retract = op("difference"), op("retract")


def _parsed(value: object, records: Records) -> Type:
    if isinstance(value, str):
        value = parse_value_type(value, records, open_shapes=True)
    if not isinstance(value, TensorType | RecordType):
        raise TypeTextError(f"the type of a tangent is due, such as duration[h], not {value}")
    return value


TangentTypeText = Annotated[Type, Parsed(_parsed, {"type": "string", "pattern": OPEN_TYPE})]
"""A tangent type as text, such as `duration[h]` or `{at: duration[h]}`: shapes that are left out are the primal's."""


class DifferenceAttrs(Attrs):
    """`tangent`: the type of the result, one that the operands' type admits, by default the natural one.

    A dtype alone stands for an array of the operands' shape; fields that are left out do not count.
    """

    tangent: TangentTypeText | None = None


# Types.


def _difference_types(attrs: DifferenceAttrs, operands: ValueTypes) -> ValueTypes:
    x, y = operands
    if x != y:
        raise TypeRuleError(f"type mismatch: input 0 is {x}, input 1 is {y}; there are differences within one type only")
    _require_moving(x)
    if attrs.tangent is None:
        return (tangent_type(x),)
    try:
        return (chosen(x, attrs.tangent),)
    except TypeRuleError as error:
        raise TypeRuleError(f"inputs are of type {x}, which {error}") from None


def _retract_types(attrs: Any, operands: ValueTypes) -> ValueTypes:
    x, d = operands
    _require_moving(x)
    try:
        chosen(x, d)
    except TypeRuleError as error:
        raise TypeRuleError(f"input 0 is {x}, which {error}") from None
    return (x,)


def _require_moving(type_: Type) -> None:
    if not moves(type_):
        raise TypeRuleError(f"input 0 is {type_}, whose only tangent is zero: it does not move")


# Evaluation.


def _difference_kernel(np: Any, attrs: DifferenceAttrs, operands: ValueTypes, results: ValueTypes) -> Kernel:
    (primal, _), (wanted,) = operands, results
    if not by_properties(wanted):
        return _difference(np, primal, wanted)
    natural = tangent_type(primal)
    by_fields, convert = _difference(np, primal, natural), conversion_kernel(np, natural, wanted)
    return lambda x, y: convert(by_fields(x, y))


def _retract_kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    primal, given = operands
    if not by_properties(given):
        return _retract(np, primal, given)
    natural = tangent_type(primal)
    by_fields, convert = _retract(np, primal, natural), conversion_kernel(np, given, natural)
    return lambda x, d: by_fields(x, convert(d))


def _difference(np: Any, primal: Type, tangent: Type) -> Kernel:
    if isinstance(primal, RecordType):
        assert isinstance(tangent, RecordType)
        types = dict(primal.fields)
        parts = [(primal.names.index(name), types[name], _difference(np, types[name], t)) for name, t in tangent.fields]
        return lambda x, y: tuple(part(_given(np, x[k], type_), _given(np, y[k], type_)) for k, type_, part in parts)
    if isinstance(tangent, RecordType):
        ((_, inner),) = tangent.fields
        periods = _difference(np, primal, inner)
        return lambda x, y: (periods(x, y),)
    held, dtype = storage_dtype(primal.dtype), numpy_dtype(np, tangent.dtype)
    scaled = _scaling(np, primal, tangent)
    if held in ("i64", "u64"):
        steps = between if primal.dtype in DATETIMES else span
        return lambda x, y: scaled(steps(np, x, y)).astype(dtype)
    wide = np.int64 if held in INTEGERS else np.complex128 if held in COMPLEXES else np.float64
    return lambda x, y: scaled(x.astype(wide) - y.astype(wide)).astype(dtype)


def _retract(np: Any, primal: Type, tangent: Type) -> Kernel:
    if isinstance(primal, RecordType):
        assert isinstance(tangent, RecordType)
        places = {name: k for k, name in enumerate(tangent.names)}
        parts = [
            (type_, places.get(name, -1), _retract(np, type_, tangent.fields[places[name]][1]) if name in places else None)
            for name, type_ in primal.fields
        ]
        return lambda x, d: tuple(
            value if part is None or d[k] is None else part(_given(np, value, type_), d[k])
            for value, (type_, k, part) in zip(x, parts, strict=True)
        )
    if isinstance(tangent, RecordType):
        moved = _retract(np, primal, tangent.fields[0][1])
        return lambda x, d: x if d[0] is None else moved(x, d[0])
    held, dtype = storage_dtype(primal.dtype), numpy_dtype(np, primal.dtype)
    scaled = _scaling(np, tangent, primal)
    if held not in INTEGERS:
        wide = np.complex128 if held in COMPLEXES else np.float64
        return lambda x, d: (x.astype(wide) + scaled(d.astype(wide))).astype(dtype)
    bounds = np.iinfo(dtype)

    def stepped(x: Any, d: Any) -> Any:
        moved, _ = _advanced(np, np.asarray(x, np.uint64 if held == "u64" else np.int64), np.rint(scaled(d.astype(np.float64))))
        return np.clip(moved, bounds.min, bounds.max).astype(dtype)

    def moved_in_time(x: Any, d: Any) -> Any:
        steps = np.rint(scaled(d.astype(np.float64)))
        moved, is_past = _advanced(np, np.asarray(x), steps)
        return np.where(is_past | np.isnan(steps) | np.equal(x, NOT_A_TIME), np.int64(NOT_A_TIME), moved)

    return moved_in_time if primal.dtype in DATETIMES else stepped


def _scaling(np: Any, old: TensorType, new: TensorType) -> Kernel:
    """The function from counts in the unit of one type to those in that of the other; of numbers, periods among them, itself."""
    if old.dtype not in TIMES or new.dtype not in TIMES:
        return lambda x: x
    return scaling(np, unit_of(old.dtype), unit_of(new.dtype))


def _given(np: Any, value: Any, type_: Type) -> Any:
    """A field of a record; one that is structurally zero, as zeros."""
    return zeros(np, type_) if value is None else value


def _advanced(np: Any, x: Any, steps: Any) -> tuple[Any, Any]:
    """x + steps for integers of 64 bits and whole floats: exact, clamped to the range; and where it was. NaN is no step."""
    # Counted from the least integer up, there is room for each step in unsigned ones.
    bias = np.uint64(2**63 if x.dtype == np.int64 else 0)
    counted, up, down = x.view(np.uint64) ^ bias, _whole(np, steps), _whole(np, -steps)
    is_past = (up > ~counted) | (down > counted)
    counted = counted + np.minimum(up, ~counted)
    counted = counted - np.minimum(down, counted)
    return (counted ^ bias).view(x.dtype), is_past


def _whole(np: Any, steps: Any) -> Any:
    """Positive whole floats as unsigned integers, of negative ones and NaN 0."""
    steps = np.where(steps > 0, steps, 0.0)
    past = steps >= 2.0**64
    return np.where(past, np.uint64(2**64 - 1), np.where(past, 0.0, steps).astype(np.uint64))


# Rules.


def _difference_jvp(node: JVP) -> Sequence[Term | None]:
    (tx, ty), wanted = node.tangents, node.results[0].value_type
    return [minus(tx and converted(tx, wanted), ty and converted(ty, wanted))]


def _retract_jvp(node: JVP) -> Sequence[Term | None]:
    tx, td = node.tangents
    return [summed([tx, td and converted(td, tangent_type(node.results[0].value_type))])]


def _difference_batch(node: Batching) -> Sequence[Term]:
    (x, y), (result,) = node.operands, _difference_types(node.attrs, node.types)

    def leafwise(x: Term, y: Term, due: Type) -> Term:
        if isinstance(x.value_type, RecordType):
            return fieldwise(due, lambda name, inner: leafwise(field(x, name), field(y, name), inner))
        return difference(stacked(node, 0, x), stacked(node, 1, y), tangent=due)

    natural = tangent_type(node.types[0]) if by_properties(result) else result
    return [converted_batch(leafwise(x, y, of_batch(natural, node.size)), natural, result, node.size)]


def _retract_batch(node: Batching) -> Sequence[Term]:
    x, d = node.operands
    if by_properties(node.types[1]):
        natural = tangent_type(node.types[0])
        d = converted_batch(d, node.types[1], natural, node.size) if node.batched[1] else converted(d, natural)

    def leafwise(x: Term, d: Term | None, due: Type) -> Term:
        if d is None:
            return stacked(node, 0, x)
        if not isinstance(due, RecordType):
            return retract(stacked(node, 0, x), stacked(node, 1, d))
        moved = cast(RecordType, d.value_type).names
        return fieldwise(due, lambda name, inner: leafwise(field(x, name), field(d, name) if name in moved else None, inner))

    return [leafwise(x, d, of_batch(node.types[0], node.size))]


def _difference_caption(case: Case, operands: Sequence[str]) -> Caption:
    (x, y), tangent = operands, cast(DifferenceAttrs, case.attrs).tangent
    as_type = "" if tangent is None else f", of type {short(str(tangent))}"
    label = "" if tangent is None else short(str(tangent), 48)
    return Caption(f"difference({x}, {y})", f"the tangent from {y} to {x}{as_type}", label=label)


_EVENT = "{at: datetime[s][2], n: i64[], w: f64[2], on: bool[]}"

PRIMITIVES = (
    primitive(
        "difference",
        2,
        _difference_types,  # type: ignore[arg-type]
        _difference_kernel,
        jvp=_difference_jvp,
        batch=_difference_batch,
        attrs=DifferenceAttrs,
        dtypes=ANY - {"bool"},
        one_type=True,
        integers="moved",
        records=True,
        examples=(
            Example(("T[2,3]", "T[2,3]")),
            Example(("f64[2]", "f64[2]"), {"tangent": "f32"}),
            Example(("datetime[ms][2]", "datetime[ms][2]"), {"tangent": "duration[h]"}),
            Example(("datetime[ms][2]", "datetime[ms][2]"), {"tangent": "{instant: {periods: f64}}"}),
            Example((_EVENT, _EVENT)),
            Example((_EVENT, _EVENT), {"tangent": "{at: duration[h], w: f64}"}),
        ),
        formula="the tangent d with retract(y, d) = x",
        summary="tangent from y to x, of the type that `tangent` says",
        caption=_difference_caption,
    ),
    primitive(
        "retract",
        2,
        _retract_types,  # type: ignore[arg-type]
        _retract_kernel,
        jvp=_retract_jvp,
        batch=_retract_batch,
        dtypes=ANY - {"bool"},
        integers="moved",
        records=True,
        examples=(
            Example(("f64[2,3]", "f64[2,3]")),
            Example(("c64[2]", "c128[2]")),
            Example(("i32[2]", "f64[2]")),
            Example(("datetime[ms][2]", "duration[h][2]")),
            Example(("datetime[ms][2]", "{instant: {periods: f64[2]}}")),
            Example(("duration[ms][2]", "duration[h][2]")),
            Example((_EVENT, "{at: duration[s][2], n: f64[], w: f64[2]}")),
            Example((_EVENT, "{at: {instant: {periods: f64[2]}}, w: f32[2]}")),
        ),
        formula="x moved along d",
        summary="a value moved along a tangent; integers and datetimes move by whole units, ties to even, bools do not move. "
        "NaN, and what is past their range, makes NaT of datetimes; integers stay for NaN, and end at the ends of theirs",
        caption=("{0} moved by {1}", "moved along the tangent {1}"),
    ),
)
