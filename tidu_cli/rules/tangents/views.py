"""The maps of views (`tidu_cli.graph.types.View`): tangents of a record by its fields, and by properties of it."""

from __future__ import annotations

from typing import cast

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.types import RecordType, Type, View, tangent_type
from tidu_cli.rules.recording.trace import emitted
from tidu_cli.rules.terms import Term, record
from tidu_cli.rules.terms import field as field_of

Fields = tuple[tuple[str, Type], ...]


class Maps(Frozen, slots=False):
    """Linear maps between the tangents of the fields that move, whose natural types are `fields`, and those of the properties.

    The inputs and outputs of the graphs have the names and the natural types of these. `pulled_from` and `pulled_to` are the
    transposes of `from_fields` and `to_fields`; there an output may be null.
    """

    fields: Fields
    from_fields: ClosedGraph
    to_fields: ClosedGraph
    pulled_from: Graph = field(compare=False, repr=False)
    pulled_to: Graph = field(compare=False, repr=False)


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
    known = {k: field_of(x, i.key.name) for k, i in enumerate(graph.inputs)}
    values = {o.key.name: o.value for o in graph.outputs if o.value is not None}
    terms = emitted(x.trace, graph, known, list(values.values()))
    return record(cast(RecordType, x.value_type).tangents(due), dict(zip(values, terms, strict=True)))
