"""Conversions of tangents and cotangents between the types that one primal type admits (`tidu_cli.rules.tangents.types`)."""

from __future__ import annotations

from collections.abc import Callable

from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import RecordType, TensorType, Type
from tidu_cli.rules.contract import TransposeRule, Transposition
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.tangents.views import from_fields, maps_of, natural_properties, to_fields
from tidu_cli.rules.terms import Term, field, fieldwise, record
from tidu_cli.rules.vocabulary import PrimitiveSet


def conversion(primitives: PrimitiveSet, cases: CaseTable, given: Type, wanted: Type) -> Template:
    """What makes of a tangent of the type `given`, its one source, one of the type `wanted`, its one result."""
    trace = Trace(primitives, cases)
    tangent = trace.source(given, linear=True)
    return trace.template(1, [converted(tangent, wanted)])


def converted(tangent: Term, wanted: Type) -> Term:
    """A tangent in another type that the same primal type admits; fields that it lacks are structurally zero.

    Between an array of durations and the record of a count of units, the units are those of the array.
    """
    return _converted(tangent, wanted, lambda x, dtype: x.trace.emit("convert_element_type", x, new_dtype=dtype), pulled=False)


def converted_cotangent(cotangent: Term, wanted: Type) -> Term:
    """The transpose of what makes of a tangent of the type `wanted` one of the cotangent's type."""

    def transposed(ct: Term, dtype: str) -> Term:
        trace, op = ct.trace, "convert_element_type"
        attrs = trace.primitives.parse_attrs(op, {"new_dtype": ct.type.dtype})
        rule: TransposeRule = trace.primitives.transpose_rule(op)
        (back,) = rule(Transposition(attrs, [None], (ct.type.with_dtype(dtype),), (True,), [ct]))
        assert back is not None
        return back

    return _converted(cotangent, wanted, transposed, pulled=True)


def _converted(x: Term, wanted: Type, convert: Callable[[Term, str], Term], *, pulled: bool) -> Term:
    """Fields are taken and put together alike in both directions; `convert` gives arrays another dtype.

    Of views it takes the maps, or those that are `pulled` back.
    """

    def part(x: Term, wanted: Type) -> Term:
        return _converted(x, wanted, convert, pulled=pulled)

    given = x.value_type
    if given == wanted:
        return x
    if isinstance(wanted, TensorType):
        while isinstance(x.value_type, RecordType):
            (name,) = x.value_type.names
            x = field(x, name)
        return x if x.type == wanted else convert(x, wanted.dtype)
    if isinstance(given, TensorType):
        ((name, inner),) = wanted.fields
        return record(wanted, {name: part(x, inner)})
    if given.view is not None and given.view != wanted.view:
        by_properties = part(x, given.tangents(natural_properties(given.view)))
        return part(to_fields(by_properties, given.view, pulled=pulled), wanted)
    if wanted.view is not None and wanted.view != given.view:
        by_fields = part(x, given.tangents(maps_of(wanted.view).fields))
        return part(from_fields(by_fields, wanted.view, pulled=pulled), wanted)
    return fieldwise(wanted, lambda name, due: part(field(x, name), due) if name in given.names else None)
