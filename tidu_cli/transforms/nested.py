"""Graphs within nodes: derivatives and batches of the closed graph that says what a node computes, for the rules of such nodes.

The graph is differentiated, transposed and batched as any document is, and the result is spliced into the recording of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from tidu_cli.graph.closed import document_of, forwards
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.rules.batching import repeated
from tidu_cli.rules.recording.templates import Templates, along_template, jvp_template
from tidu_cli.rules.recording.trace import spliced, stamped
from tidu_cli.rules.tangents import natural
from tidu_cli.rules.terms import Recorder, Term
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose
from tidu_cli.watching import listening

Terms = Sequence[Term | None]


def apply(trace: Recorder, graph: Graph, operands: Sequence[Term]) -> Terms:
    """Emit the graph itself. Gives its outputs."""
    return spliced(trace, document_of(graph), _by_input(graph, operands))


def push_forward(trace: Recorder, graph: Graph, operands: Terms, tangents: Terms, primitives: PrimitiveSet | None = None) -> Terms:
    """Emit the derivative of a graph at these operands, along these tangents, None for zero. Gives the tangents of its outputs.

    Operands may be None where the derivative does not depend on them, since the graph is linear in them. `primitives` are those by
    whose rules it is derived, if not the recording's. Raises MissingRuleError.
    """
    active = {i.key: t for i, t in zip(graph.inputs, tangents, strict=True) if t is not None}
    if not active:
        return [None] * len(graph.outputs)
    with listening(None):
        document = linearize(document_of(graph), list(active), primitives=_rules(trace, primitives))
    seeds = {i.key: t for i, t in zip(document.head.inputs, active.values(), strict=True)}
    return spliced(trace, document, _by_input(graph, operands) | seeds)


def along(trace: Recorder, graph: Graph, operands: Sequence[Term], tangents: Terms) -> tuple[list[Term], Terms]:
    """Emit a graph and its derivative at these operands, along these tangents, None for zero. Gives outputs and their tangents.

    A node that can have no transpose, since a loop in it cannot, is one node of values and tangents. Raises MissingRuleError.
    """
    primitives, cases = _rules(trace, None), graph.cases.copy()
    joint = {
        code for code, case in enumerate(cases.cases) if primitives[case.op].rules.along and primitives.is_irreversible([case])
    }
    if not joint:
        output_tangents = push_forward(trace, graph, operands, tangents)
        return cast(list[Term], apply(trace, graph, operands)), output_tangents
    template = Templates(lambda code, flags: (along_template if code in joint else jvp_template)(primitives, cases, code, flags))
    values, moving = [*operands], [*tangents]
    for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
        reads, given = [values[a] for a in args], [moving[a] for a in args]
        active, n = tuple([t is not None for t in given]), end - first
        if code in joint and any(active):
            both = stamped(trace, cases, template.record(graph, node, (code, active), active), [*reads, *given, *[None] * n])
            values += cast(list[Term], both[:n])
            moving += both[n:]
            continue
        results = trace.append(trace.cases.intern(graph.cases[code]), reads)
        values += results
        if any(active):
            moving += stamped(trace, cases, template.record(graph, node, (code, active), active), [*reads, *results, *given])
        else:
            moving += [None] * n
    outputs = [cast(int, o.value) for o in graph.outputs]
    return [values[v] for v in outputs], [moving[v] for v in outputs]


def pull_back(
    trace: Recorder,
    graph: Graph,
    operands: Terms,
    active: Sequence[bool],
    cotangents: Terms,
    primitives: PrimitiveSet | None = None,
) -> Terms:
    """Emit the transpose of a graph that is linear in its `active` inputs, for these cotangents of its outputs, None for zero.

    Operands may be None where inputs are active. Gives a cotangent for each input, None for zero and for inactive ones. Raises
    MissingRuleError.
    """
    wrt = [i.key for i, a in zip(graph.inputs, active, strict=True) if a and natural(i.type) is not None]
    live = {o.key: t for o, t in zip(graph.outputs, cotangents, strict=True) if t is not None}
    if not (wrt and live):
        return [None] * len(graph.inputs)
    primitives = _rules(trace, primitives)
    with listening(None):
        tangents = linearize(document_of(graph), wrt, outputs=list(live), primitives=primitives)
        document = transpose(tangents, primitives=primitives)
    seeds = {i.key: t for i, t in zip(document.head.inputs, live.values(), strict=True)}
    cotangent_of = dict(zip(wrt, spliced(trace, document, _by_input(graph, operands) | seeds), strict=True))
    return [cotangent_of.get(i.key) for i in graph.inputs]


def batch(trace: Recorder, graph: Graph, operands: Sequence[Term], batched: Sequence[bool], size: int) -> Terms:
    """Emit a graph for many values of the `batched` operands at once. Gives its outputs, each with the batch as its first axis."""
    keys = {i.key for i, b in zip(graph.inputs, batched, strict=True) if b}
    with listening(None):
        made, depends = vectorized(document_of(graph).head, keys, size, trace.primitives)
    outputs = spliced(trace, document_of(made), _by_input(made, operands))
    return [t if t is None or d else repeated(t, size) for t, d in zip(outputs, depends, strict=True)]


def _rules(trace: Recorder, primitives: PrimitiveSet | None) -> PrimitiveSet:
    """These primitives, by default the recording's, with strong zeros if those of the recording have them."""
    chosen: PrimitiveSet = primitives or trace.primitives
    return chosen.strong if trace.primitives.weak else chosen


def _by_input(graph: Graph, operands: Terms) -> dict[Key, Term]:
    return {i.key: t for i, t in zip(graph.inputs, operands, strict=True) if t is not None}
