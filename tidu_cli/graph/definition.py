"""How a value of a document is computed, one step at a time, with references and bindings followed."""

from __future__ import annotations

from dataclasses import dataclass

from tidu_cli.graph.graph import Case, Detached, Document, Externals, Input

Place = tuple[int, int]
"""A value: its graph number and local id; (DETACHED, k) for a detached one."""


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
        self._bound = {b.key: (b.graph, b.value) for b in document.bindings}

    def __getitem__(self, place: Place) -> Definition:
        """A node's result, a free input, or a detached value."""
        g, value = place
        while g != Externals.DETACHED:
            graph = self.document.graphs[g]
            if value >= len(graph.inputs):
                node, slot = graph.producer(value)
                return Application(g, node, graph.case(node), tuple(self.place(g, a) for a in graph.operands(node)), slot)
            declared = graph.inputs[value]
            if declared.key not in self._bound:
                return declared
            g, value = self._bound[declared.key]
        return self.document.detached[value]

    def place(self, g: int, argument: int) -> Place:
        """The value that an argument of graph g stands for."""
        if argument >= 0:
            return g, argument
        external = self.document.graphs[g].external
        return external.graph[-1 - argument], external.value[-1 - argument]
