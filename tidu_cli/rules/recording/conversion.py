"""Conversions of tangents and cotangents between the types that one primal type admits (`tidu_cli.rules.tangents`).

Among these are types by properties of a record, of which a view has the maps (`tidu_cli.graph.types.View`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tidu_cli.frozen import Frozen
from tidu_cli.frozen import field as frozen_field
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import CaseTable, Graph
from tidu_cli.graph.types import RecordType, TensorType, Type, View, tangent_type
from tidu_cli.rules.contract import TransposeRule, Transposition
from tidu_cli.rules.recording.trace import Template, Trace, emitted
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
        properties = part(x, given.tangents(natural_properties(given.view)))
        return part(to_fields(properties, given.view, pulled=pulled), wanted)
    if wanted.view is not None and wanted.view != given.view:
        by_fields = part(x, given.tangents(maps_of(wanted.view).fields))
        return part(from_fields(by_fields, wanted.view, pulled=pulled), wanted)
    return fieldwise(wanted, lambda name, due: part(field(x, name), due) if name in given.names else None)


# The maps of views: tangents of a record by its fields, and by properties of it.


Fields = tuple[tuple[str, Type], ...]


class Maps(Frozen, slots=False):
    """Linear maps between the tangents of the fields that move, whose natural types are `fields`, and those of the properties.

    The inputs and outputs of the graphs have the names and the natural types of these. `pulled_from` and `pulled_to` are the
    transposes of `from_fields` and `to_fields`; there an output may be null.
    """

    fields: Fields
    from_fields: ClosedGraph
    to_fields: ClosedGraph
    pulled_from: Graph = frozen_field(compare=False, repr=False)
    pulled_to: Graph = frozen_field(compare=False, repr=False)


def maps_of(view: View) -> Maps:
    """The maps of a view."""
    return cast(Maps, view.maps)


def by_properties(type_: Type) -> bool:
    """Whether a type of tangents, or one in it, has the properties of a view."""
    return isinstance(type_, RecordType) and (type_.view is not None or any(by_properties(field) for _, field in type_.fields))


def natural_properties(view: View) -> Fields:
    """The properties of a view, with the natural types of their tangents."""
    return tuple((name, tangent_type(type_)) for name, type_ in view.properties)


def view_data(view: View) -> dict[str, object]:
    """The file form of a view."""
    maps = maps_of(view)
    return {
        "properties": {name: str(type_) for name, type_ in view.properties},
        "from_fields": maps.from_fields.to_data(binary=False),
        "to_fields": maps.to_fields.to_data(binary=False),
    }


def to_fields(tangent: Term, view: View, *, pulled: bool) -> Term:
    """The tangent by fields, all of natural types, of one by the properties of a view; with `pulled` the same of cotangents."""
    maps = maps_of(view)
    return _mapped(tangent, maps.pulled_from if pulled else maps.to_fields.graph, maps.fields)


def from_fields(tangent: Term, view: View, *, pulled: bool) -> Term:
    """The other way."""
    maps = maps_of(view)
    return _mapped(tangent, maps.pulled_to if pulled else maps.from_fields.graph, natural_properties(view))


def _mapped(x: Term, graph: Graph, due: Fields) -> Term:
    known = {k: field(x, i.key.name) for k, i in enumerate(graph.inputs)}
    values = {o.key.name: o.value for o in graph.outputs if o.value is not None}
    terms = emitted(x.trace, graph, known, list(values.values()))
    return record(cast(RecordType, x.value_type).tangents(due), dict(zip(values, terms, strict=True)))
