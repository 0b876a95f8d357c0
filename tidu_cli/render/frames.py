"""The graphs that a picture shows: those of the document, and those within their nodes, as far as there is room for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import closed_graphs
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.catalogue import Part

Owner = tuple[int, int]
"""A node that holds graphs: the number of its frame, and its own."""

ROOM = 150
"""How many inputs, nodes and outputs of graphs within nodes are drawn: loops of more are folded, the innermost first."""

APART = 500
"""Likewise where each has a picture of its own."""


class Frame(Frozen, slots=False, eq=False):
    """A graph of the document; or one within the node `owner`, of which `part` says what it is for."""

    graph: Graph
    owner: Owner | None = None
    part: Part | None = None


def framed(document: Document, room: int = ROOM) -> list[Frame]:
    """The graphs of the document, then those within nodes, outer ones first: all of a node that there is room for, or none."""
    frames = [Frame(graph) for graph in document.graphs]
    for g, frame in enumerate(frames):  # which grows
        for node in _holding(frame.graph):
            case = frame.graph.case(node)
            graphs = [closed.graph for closed in closed_graphs(case.attrs)]
            size = sum(len(graph.inputs) + graph.n_nodes + len(graph.outputs) for graph in graphs)
            if size > room:
                continue
            room -= size
            tell = vocabulary(frame.graph.cases)[case.op].catalogue.parts
            parts = tell(case.attrs) if tell else [Part(f"graph {k}") for k in range(len(graphs))]
            frames += [Frame(graph, (g, node), part) for graph, part in zip(graphs, parts, strict=True)]
    return frames


def opened(frames: Sequence[Frame]) -> Mapping[Owner, Sequence[int]]:
    """The numbers of the frames within each node."""
    numbers: dict[Owner, list[int]] = {}
    for g, frame in enumerate(frames):
        if frame.owner is not None:
            numbers.setdefault(frame.owner, []).append(g)
    return numbers


def _holding(graph: Graph) -> Iterator[int]:
    codes = {code for code in set(graph.code) if closed_graphs(graph.cases[code].attrs)}
    return (node for node, code in enumerate(graph.code) if code in codes) if codes else iter(())
