"""Views of record types that documents declare: found to be linear maps between fields and properties, and transposed."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.errors import TiduError, TypeRuleError
from tidu_cli.graph.closed import ClosedGraph, cases_within
from tidu_cli.graph.graph import CaseTable, Graph, Input, Output
from tidu_cli.graph.types import RecordType, Type, View, moves, tangent_type
from tidu_cli.rules.recording.graphs import recorded
from tidu_cli.rules.recording.linearity import require_linear
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.tangents.views import Fields, Maps, by_properties
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms import nested
from tidu_cli.transforms.dead import drop_dead_nodes


def view_of(
    name: str,
    record: RecordType,
    properties: Mapping[str, Type],
    graphs: tuple[ClosedGraph, ClosedGraph],
    primitives: PrimitiveSet,
) -> View:
    """A view of a record type, whose graphs, from the fields and to them, are of these primitives.

    Raises TypeRuleError where a property does not move, or is called as a field is; where a graph does not take and give the
    natural tangents of fields and properties, by name; where it is not linear in them, or is zero; and where it has tangents by
    properties of other types, for views that convert by views would be written out again and again.
    """
    for part, type_ in properties.items():
        if record.get(part) is not None:
            raise TypeRuleError(f"a field is called '{part}', too; properties have names of their own")
        if not moves(type_):
            raise TypeRuleError(f"the property '{part}' has type {type_}, whose only tangent is zero; leave it out")
    from_fields, to_fields = graphs
    fields = {part: tangent_type(type_) for part, type_ in record.fields if moves(type_)}
    natural = {part: tangent_type(type_) for part, type_ in properties.items()}
    pulled_from = _transposed("from_fields", from_fields.graph, fields, natural, primitives)
    pulled_to = _transposed("to_fields", to_fields.graph, natural, fields, primitives)
    due: Fields = tuple(fields.items())
    return View(name, tuple(properties.items()), Maps(due, from_fields, to_fields, pulled_from, pulled_to))


def _transposed(kind: str, graph: Graph, takes: Mapping[str, Type], gives: Mapping[str, Type], primitives: PrimitiveSet) -> Graph:
    """The transpose of a graph of a view. Raises TypeRuleError."""
    for what, ports, due in (("takes", graph.inputs, takes), ("gives", graph.outputs, gives)):
        if {str(port.key): port.type for port in ports} != due:
            found, told = ("; ".join(f"{key}: {type_}" for key, type_ in some) for some in (_typed(ports), due.items()))
            raise TypeRuleError(f"its {kind} {what} {found or 'nothing'}, where {told or 'nothing'} is due")
    for case in cases_within(graph.cases[code] for code in sorted(set(graph.code))):
        if any(type_ is not None and by_properties(type_) for type_ in (*case.operands, *case.results)):
            raise TypeRuleError(
                f"its {kind}: {case.op} has tangents by properties; a view's graphs are of tangents by fields alone"
            )
    trace = Trace(primitives, CaseTable(primitives))
    cotangents = [trace.source(o.type, linear=False) for o in graph.outputs]
    n = len(graph.inputs)
    try:
        require_linear(primitives, graph, [True] * n, "tangents")
        found_terms = nested.pull_back(trace, graph, [None] * n, [True] * n, cotangents)
    except TiduError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None
    if not any(found_terms):
        raise TypeRuleError(f"its {kind} gives zeros only")
    outputs = [Output(i.key, None if t is None else t.slot, i.type) for i, t in zip(graph.inputs, found_terms, strict=True)]
    made = recorded(trace, f"transpose of {kind}", [Input(o.key, o.type) for o in graph.outputs], outputs)
    return drop_dead_nodes([made], 0)[0]


def _typed(ports: tuple[Input, ...] | tuple[Output, ...]) -> list[tuple[str, Type]]:
    return [(str(port.key), port.type) for port in ports]
