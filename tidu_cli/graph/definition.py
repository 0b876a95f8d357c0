"""How a value of a document is computed, one step at a time, with references and bindings followed."""

from __future__ import annotations

from dataclasses import dataclass

from tidu_cli.graph.graph import Case, Detached, Document, Externals, Input, Place


@dataclass(frozen=True, slots=True)
class Application:
    """Result `slot` of node number `node` of graph number `graph`: its case applied to the values at `operands`."""

    graph: int
    node: int
    case: Case
    operands: tuple[Place, ...]
    slot: int


Definition = Application | Input | Detached


class Definitions:
    """Looks up what the values of a document are."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def __getitem__(self, place: Place) -> Definition:
        """A node's result, a free input, or a detached value."""
        g, value = place
        while g != Externals.DETACHED:
            graph = self.document.graphs[g]
            if value >= len(graph.inputs):
                node, slot = graph.producer(value)
                return Application(g, node, graph.case(node), tuple(graph.place(g, a) for a in graph.operands(node)), slot)
            declared = graph.inputs[value]
            if declared.key not in self.document.bound:
                return declared
            g, value = self.document.bound[declared.key]
        return self.document.detached[value]
