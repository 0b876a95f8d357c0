"""Loops in segments: one that stores what another reads, step by step, stores the state before some steps only.

The other computes what is missing anew, segment by segment. Values stay what they are, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.walk import forwards
from tidu_cli.rules.contract import Segmented
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper

Steps = Callable[[int], int]
"""From the number of steps of a loop to that of a segment."""


class _Pair(Frozen):
    """A loop, and one that reads what it stores: their nodes, and how they are done in segments."""

    first: int
    second: int
    segmented: Segmented


def in_segments(graph: Graph, primitives: PrimitiveSet, steps: Steps) -> Graph:
    """A self-contained graph with loops in segments of so many steps, where one stores what a linear one reads."""
    pairs = _pairs(graph, primitives, steps)
    if not pairs:
        return graph
    firsts, seconds = {p.first: p for p in pairs}, {p.second: p for p in pairs}
    cases = graph.cases
    builder = GraphBuilder(cases, graph.inputs)
    stamper, node_meta = Stamper.alone(builder), {}
    new: list[int] = list(range(len(graph.inputs)))
    stored: dict[int, tuple[list[int], list[Term]]] = {}  # by the first node: the handles of its operands and states, and these

    def stamped(trace: Trace, results: Sequence[Term | None], handles: Sequence[int]) -> Sequence[int]:
        return stamper.stamp(trace.template(len(handles), results), handles)

    for node, (code, args, _, _) in enumerate(forwards(graph, graph.args)):
        reads, case = [new[a] for a in args], cases[code]
        trace = Trace(primitives, cases)
        mask = case.mask or (False,) * len(args)
        operands = [trace.source(t, linear=linear) for t, linear in zip(case.operands, mask, strict=True)]
        if node in firsts:
            results, states = firsts[node].segmented.first(operands)
            found = stamped(trace, [*results, *states], reads)
            new += found[: len(results)]
            stored[node] = [*reads, *found[len(results) :]], [*operands, *states]
        elif node in seconds:
            pair = seconds[node]
            handles, terms = stored[pair.first]
            more = [trace.source(t.value_type, linear=False) for t in terms]
            n = len(cases[graph.code[pair.first]].operands)
            new += stamped(trace, pair.segmented.second(operands, more[:n], more[n:]), [*reads, *handles])
        else:
            if node in graph.node_meta:
                node_meta[len(builder.code)] = graph.node_meta[node]
            new += stamper.linear.append(code, reads)
    outputs = [o if o.value is None else replace(o, value=new[o.value]) for o in graph.outputs]
    return builder.build(graph.name, outputs, linear=graph.linear, meta=graph.meta, node_meta=node_meta)


def _pairs(graph: Graph, primitives: PrimitiveSet, steps: Steps) -> list[_Pair]:
    """Loops of which a linear one reads what they store, each in one pair at most."""
    makes: dict[int, tuple[int, int]] = {}  # of values that loops make: their node, and which result they are
    readers: dict[int, list[int]] = {}
    nodes = list(forwards(graph, graph.args))
    for node, (code, args, first, end) in enumerate(nodes):
        if primitives[graph.cases[code].op].rules.segmented is not None and graph.cases[code].mask is None:
            makes.update((value, (node, value - first)) for value in range(first, end))
        for a in set(args) & makes.keys():
            readers.setdefault(a, []).append(node)
    outputs = {o.value for o in graph.outputs}
    found: dict[int, _Pair] = {}
    for node, (code, args, _, _) in enumerate(nodes):
        case = graph.cases[code]
        rule = primitives[case.op].rules.segmented
        if rule is None or case.mask is None:
            continue
        sizes: dict[int, int] = {}
        for a, t in zip(args, case.operands, strict=True):
            if a in makes and graph.cases[nodes[makes[a][0]][0]].op == case.op:
                sizes[makes[a][0]] = sizes.get(makes[a][0], 0) + (t.nbytes if t else 0)
        for one in sorted(sizes.keys() - found.keys(), key=lambda one: -sizes[one])[:1]:
            before = graph.cases[nodes[one][0]]
            links = [makes[a][1] if a in makes and makes[a][0] == one else None for a in args]
            results = range(nodes[one][2], nodes[one][3])
            kept = [v - results.start for v in results if v in outputs or readers.get(v, [node]) != [node]]
            segmented = rule(before.attrs, case.attrs, links, kept, steps)
            if segmented is not None:
                found[one] = _Pair(one, node, segmented)
    return list(found.values())
