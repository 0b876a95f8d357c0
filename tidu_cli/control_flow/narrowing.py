"""Loops and branches without what nobody needs: dead results and carries, what is the same in all steps, equal work of two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

from tidu_cli.control_flow.graphs import made
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.walk import forwards
from tidu_cli.rules.recording.graphs import emitted, nodes_for
from tidu_cli.rules.terms import Recorder, Term
from tidu_cli.rules.vocabulary import PrimitiveSet


def output_values(graph: ClosedGraph) -> list[int]:
    """The value of each output."""
    return [cast(int, o.value) for o in graph.graph.outputs]


def tidy(primitives: PrimitiveSet, graph: ClosedGraph) -> ClosedGraph:
    """The graph without dead and equal nodes: itself if there are none."""
    if graph.tidy:
        return graph
    found = over(primitives, graph, range(len(graph.graph.inputs)), output_values(graph))
    same = found.graph.cases.cases == graph.graph.cases.cases and found.graph.code == graph.graph.code
    graph.tidy = same and found.graph.args == graph.graph.args
    return graph if graph.tidy else found


def values_read(graph: Graph, wanted: Iterable[int], known: Iterable[int] = ()) -> set[int]:
    """The values of a closed graph that are read to compute these, where some are known; and they."""
    wanted = set(wanted)
    return wanted.union(*nodes_for(graph, frozenset(known), wanted).values())


def needed_carries(needed: Sequence[bool], first: int, read: Callable[[Sequence[bool]], set[int]]) -> list[bool]:
    """What of the values carried, the inputs from `first` on, is needed if that is: what steps that give it read, and so on."""
    found = list(needed)
    while True:
        values = read(found)
        after = [n or first + k in values for k, n in enumerate(found)]
        if after == found:
            return found
        found = after


def varying(graph: Graph, inputs: Iterable[int]) -> bytearray:
    """Of each value of a closed graph whether it depends on one of these inputs."""
    found = bytearray(len(graph.inputs))
    for k in inputs:
        found[k] = 1
    for _, args, first, end in forwards(graph, graph.args):
        found += bytes([any(found[a] for a in args)]) * (end - first)
    return found


def invariants(graph: Graph, varies: bytearray, wanted: Iterable[int]) -> list[int]:
    """The values, but for inputs and constants, that are the same in all steps, and are wanted or read by what varies for these."""
    constant, wanted = varying(graph, range(len(graph.inputs))), set(wanted)
    live = values_read(graph, wanted)
    nodes = [(args, range(first, end)) for _, args, first, end in forwards(graph, graph.args) if varies[first]]
    read = wanted.union(*[args for args, made_here in nodes if not live.isdisjoint(made_here)])
    return sorted(v for v in read if v >= len(graph.inputs) and constant[v] and not varies[v])


def over(primitives: PrimitiveSet, graph: ClosedGraph, inputs: Sequence[int], outputs: Sequence[int]) -> ClosedGraph:
    """The graph of some values of another, as outputs, of others, as inputs; those that are such keep their names."""
    declared = graph.graph.inputs
    names = [str(declared[v].key) if v < len(declared) else f"c{k}" for k, v in enumerate(inputs)]

    def emit(trace: Recorder, terms: list[Term]) -> list[Term]:
        return emitted(trace, graph.graph, dict(zip(inputs, terms, strict=True)), outputs)

    return made(primitives, [(name, graph.graph.type_of(v)) for name, v in zip(names, inputs, strict=True)], emit)


def both(primitives: PrimitiveSet, one: ClosedGraph, other: ClosedGraph) -> ClosedGraph:
    """One graph of the outputs of two, which take the same inputs."""

    def emit(trace: Recorder, terms: list[Term]) -> list[Term]:
        known = dict(enumerate(terms))
        return [t for graph in (one, other) for t in emitted(trace, graph.graph, known, output_values(graph))]

    return made(primitives, [(str(i.key), i.type) for i in one.graph.inputs], emit)
