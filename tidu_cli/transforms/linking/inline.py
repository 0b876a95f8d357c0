"""inline: put what custom operations stand for in their place."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.frozen import replace
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.closed import ClosedGraph, closed_graphs
from tidu_cli.graph.columns.large import no_collection
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, column
from tidu_cli.graph.walk import forwards
from tidu_cli.lax.builtin import BUILTIN, vocabulary
from tidu_cli.rules.attrs.attrs import Attrs
from tidu_cli.rules.recording.templates import Templates
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import listening, watch


def inline(document: Document, *, primitives: PrimitiveSet | None = None) -> Document:
    """A document of one self-contained graph, without custom operations: their nodes are those of their graphs.

    Roles follow: what reads a tangent is linear in it. Nodes that are then equal stay two: materialize makes them one. Raises
    MissingRuleError naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    (graph,) = document.graphs
    primitives.require_written_out([graph])
    # What is put in may have custom operations in it, but no one twice: definitions do not recurse.
    while any(primitives[graph.cases[code].op].rules.inlined for code in set(graph.code)):
        graph = _once(graph, primitives)
    cases = CaseTable(replace(primitives, primitives=BUILTIN.primitives, definitions=()))
    number = {c: cases.intern(_inlined_within(graph.cases[c], primitives)) for c in dict.fromkeys(graph.code)}
    code = column(map(number.__getitem__, graph.code))
    return replace(document, graphs=(replace(graph, cases=cases, code=code),), cases=cases)


def _inlined_within(case: Case, primitives: PrimitiveSet) -> Case:
    """The case with graphs without custom operations in its attrs."""
    if not closed_graphs(case.attrs):
        return case

    def changed(closed: ClosedGraph) -> ClosedGraph:
        with listening(None):
            return ClosedGraph.of(inline(closed.document, primitives=primitives).head)

    assert isinstance(case.attrs, Attrs)
    return replace(case, attrs=case.attrs.with_graphs(changed))


def _once(graph: Graph, primitives: PrimitiveSet) -> Graph:
    cases = graph.cases
    builder = GraphBuilder(cases, graph.inputs)
    stamper, templates = Stamper.alone(builder), Templates(lambda code, _: _template(primitives, cases, code))
    new = column(range(len(graph.inputs)))
    node_meta = {}
    nodes = watch("inline", graph.n_nodes)(forwards(graph, graph.args))
    for node, (code, reads, _, _) in enumerate(nodes):
        arguments = [new[a] for a in reads]
        if primitives[cases[code].op].rules.inlined is None:
            if node in graph.node_meta:
                node_meta[len(builder.code)] = graph.node_meta[node]
            new.extend(stamper.linear.append(code, arguments))
        else:
            template = templates.get(code) or templates.record(graph, node, code, ())
            new.extend(stamper.stamp(template, arguments))
    outputs = [o if o.value is None else replace(o, value=new[o.value]) for o in graph.outputs]
    return builder.build(graph.name, outputs, linear=graph.linear, meta=graph.meta, node_meta=node_meta)


@no_collection()
def _template(primitives: PrimitiveSet, cases: CaseTable, code: int) -> Template:
    case = cases[code]
    rule = primitives[case.op].rules.inlined
    assert rule is not None
    trace = Trace(primitives, cases)
    mask: Sequence[bool] = case.mask or (False,) * len(case.operands)
    operands = [trace.source(t, linear=linear) for t, linear in zip(case.operands, mask, strict=True)]
    return trace.template(len(operands), rule(case.attrs, operands))
