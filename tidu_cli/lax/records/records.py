"""Records: putting values together under names, and taking one of them.

At run time a record is a tuple of its fields' values, in order. None stands for a field that is structurally zero, which only
tangents have: a record of tangents, any of them zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, cast

from tidu_cli.errors import TypeRuleError, TypeTextError, did_you_mean
from tidu_cli.graph.graph import Case
from tidu_cli.graph.text import RECORD_TYPE, parse_value_type
from tidu_cli.graph.types import ANY, RecordType, Type, moves, of_batch, tangent_type
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.rules.analysis import free
from tidu_cli.rules.batching import stacked
from tidu_cli.rules.catalogue import Caption, short
from tidu_cli.rules.contract import JVP, TOGETHER, Attrs, Batching, Example, Kernel, Transposition, ValueTypes
from tidu_cli.rules.families import linear_transpose, primitive
from tidu_cli.rules.fields import After, Parsed, Records, Sized
from tidu_cli.rules.terms import Term, field, record


def _record_type(value: object, records: Records) -> RecordType:
    if isinstance(value, str):
        value = parse_value_type(value, records)
    if not isinstance(value, RecordType):
        raise TypeTextError(f"the type of a record is due, such as {{x: f64[]}}, not {value}")
    return value


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"fields repeat: {', '.join(names)}")
    return names


_TEXT = {"type": "string", "pattern": RECORD_TYPE}
RecordTypeText = Annotated[RecordType, Parsed(_record_type, _TEXT)]


class RecordAttrs(Attrs):
    """`type`: that of the record; `fields`: the names of the operands, if these are not all of its fields, in order."""

    type: RecordTypeText
    fields: Annotated[tuple[str, ...], Sized(1), After(_distinct, {"uniqueItems": True})] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the operands."""
        return self.type.names if self.fields is None else self.fields


class FieldAttrs(Attrs):
    """`name`: that of the field; of a tuple, its position."""

    name: str


def field_type(type_: Type, name: str) -> Type:
    """The type of a field. Raises TypeRuleError if there is none, or the type is no record."""
    if not isinstance(type_, RecordType):
        raise TypeRuleError(f"input 0 has type {type_}, but it takes a record")
    part = type_.get(name)
    if part is None:
        raise TypeRuleError(
            f"{type_} has no field '{name}'{did_you_mean(name, list(type_.names)) or ': ' + ', '.join(type_.names)}"
        )
    return part


def _record_types(attrs: RecordAttrs, operands: ValueTypes) -> ValueTypes:
    type_, names = attrs.type, attrs.names
    if len(operands) != len(names):
        raise TypeRuleError(f"takes {len(names)} fields of {type_} ({', '.join(names)}), got {len(operands)} inputs")
    for k, (name, operand) in enumerate(zip(names, operands, strict=True)):
        due = field_type(type_, name)
        if operand != due:
            raise TypeRuleError(f"input {k} has type {operand}, but field '{name}' of {type_} is {due}")
    missing = [name for name in type_.names if name not in names]
    if missing and not type_.inexact:
        raise TypeRuleError(f"field '{missing[0]}' of {type_} is missing; only records of tangents may leave fields out, as zero")
    return (type_,)


def _record_kernel(np: Any, attrs: RecordAttrs, operands: ValueTypes, results: ValueTypes) -> Kernel:
    names = attrs.names
    if names == attrs.type.names:
        return lambda *values: values
    places = [names.index(name) if name in names else None for name in attrs.type.names]
    return lambda *values: tuple(None if k is None else values[k] for k in places)


def _record_jvp(node: JVP) -> Sequence[Term | None]:
    tangents = {name: t for name, t in zip(node.attrs.names, node.tangents, strict=True) if t is not None}
    return [record(tangent_type(node.attrs.type), tangents)]


def _record_transpose(node: Transposition) -> Sequence[Term | None]:
    return [field(node.cotangent, name) if active else None for name, active in zip(node.attrs.names, node.active, strict=True)]


def _record_batch(node: Batching) -> Sequence[Term]:
    return [record(of_batch(node.attrs.type, node.size), {name: stacked(node, k) for k, name in enumerate(node.attrs.names)})]


def _field_kernel(np: Any, attrs: FieldAttrs, operands: ValueTypes, results: ValueTypes) -> Kernel:
    (type_,), (result,) = operands, results
    assert isinstance(type_, RecordType)
    k = type_.names.index(attrs.name)
    return lambda value: zeros(np, result) if value[k] is None else value[k]


def zeros(np: Any, type_: Type) -> Any:
    """The zero of a type of tangents: an array of zeros, or a record whose fields are structurally zero."""
    if isinstance(type_, RecordType):
        return (None,) * len(type_.fields)
    return np.zeros(type_.shape, numpy_dtype(np, type_.dtype))[()]


_FIELDS = 4
"""How many fields of a record are named."""


def _record_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`{x: a, y: 0}`, put together as `Point`, `a record of x and y` or `Segment, zero but for a`; `Point{x, y}`."""
    attrs = cast(RecordAttrs, case.attrs)
    type_, names, partly = attrs.type, attrs.names, len(attrs.names) < len(attrs.type.fields)
    shown = [*names[:_FIELDS], *([f"{len(names) - _FIELDS} more"] if len(names) > _FIELDS else [])]
    fields = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    if type_.is_tuple:
        fields, whole = f"{'item' if len(names) == 1 else 'items'} {fields}", "a tuple"
    else:
        whole = type_.name or ("a record" if partly else f"a record of {fields}")
    opening, closing = "()" if type_.is_tuple else "{}"
    listed = ", ".join([*names[:_FIELDS], *(["…"] if len(names) > _FIELDS else [])])
    return Caption(
        "".join(piece if isinstance(piece, str) else operands[piece] for piece in record_pieces(attrs)),
        f"put together as {whole}{f', zero but for {fields}' if partly else ''}",
        label=f"{short(type_.name)}{opening}{listed}{closing}{', else 0' if partly else ''}",
    )


def record_pieces(attrs: RecordAttrs, most: int = 6) -> Iterator[str | int]:
    """`{x: a, y: 0}` in pieces, with numbers in the places of operands; of a long record the first fields."""
    type_, names = attrs.type, attrs.names
    yield "(" if type_.is_tuple else f"{type_.name}{{"
    for k, name in enumerate(type_.names):
        if k == most:
            yield ", …"
            break
        yield f"{', ' if k else ''}{'' if type_.is_tuple else f'{name}: '}"
        yield names.index(name) if name in names else "0"
    yield ("}" if not type_.is_tuple else ",)" if len(type_.names) == 1 else ")")


def _field_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`p.x`, x of p; of a tuple `p.0`, item 0 of p."""
    (type_,), name = case.operands, cast(FieldAttrs, case.attrs).name
    kind = "item" if isinstance(type_, RecordType) and type_.is_tuple else "field"
    what = f"the {'item ' if kind == 'item' else ''}{name} of {operands[0]}"
    return Caption(f"{operands[0]}.{name}", what, way=f"to its {kind} {name}", label=name)


PRIMITIVES = (
    primitive(
        "record",
        None,
        _record_types,  # type: ignore[arg-type]
        _record_kernel,
        jvp=_record_jvp,
        transpose=_record_transpose,
        batch=_record_batch,
        attrs=RecordAttrs,
        dtypes=ANY,
        records=True,
        makes=lambda attrs: attrs.names,
        examples=(
            Example(("T[2,3]", "f64[]"), {"type": "{x: T[2,3], y: f64[]}"}),
            Example(("T[2]", "f64[3]"), {"type": "(T[2], f64[3])"}),
        ),
        linear=TOGETHER,
        flops=free,
        formula="{x: .., y: ..}",
        summary="a record of the operands",
        caption=_record_caption,
    ),
    primitive(
        "field",
        1,
        lambda attrs, operands: (field_type(operands[0], attrs.name),),  # type: ignore[arg-type,return-value]
        _field_kernel,
        jvp=lambda node: [field(node.tangent, node.attrs.name) if moves(node.results[0].value_type) else None],
        transpose=linear_transpose(lambda node, ct, type_: record(type_, {node.attrs.name: ct})),
        batch=lambda node: [field(node.operands[0], node.attrs.name)],
        attrs=FieldAttrs,
        dtypes=ANY,
        records=True,
        takes=lambda attrs: attrs.name,
        examples=(Example(("{x: T[2,3], y: f64[2]}",), {"name": "x"}), Example(("(f64[], T[2])",), {"name": "1"})),
        flops=free,
        formula="r.name",
        summary="a field of a record",
        caption=_field_caption,
    ),
)
