"""fix: make inputs constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidu_cli.errors import TransformError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Binding, Document, Externals, Graph, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.select import fresh_name, require_inputs
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.primitives.vocabulary import vocabulary


def fix(document: Document, values: Mapping[Key, Literal], *, primitives: PrimitiveSet | None = None) -> Document:
    """Bind inputs to constants, which are a new first graph.

    Raises UnknownNameError for a key that no graph declares, TransformError for an input that is bound and for a constant of
    another type than the declared one.
    """
    if not values:
        return document
    primitives = primitives or vocabulary(document.cases)
    require_inputs(document, values)
    declared = {i.key: i.type for graph in document.graphs for i in graph.inputs}
    bound = {b.key: b for b in document.bindings}
    constants = GraphBuilder(document.cases)
    bindings = []
    for key, literal in values.items():
        if key in bound:
            graph = document.graphs[bound[key].graph].name
            raise TransformError(f"input '{key}' is bound to a value of graph '{graph}', so it cannot be set")
        if literal.type != declared[key]:
            raise TransformError(f"input '{key}' is {declared[key]}, and cannot be set to a constant {literal.type}")
        attrs = primitives.parse_attrs(primitives.constant, {"value": literal})
        value = constants.append(document.cases.intern(primitives.case(primitives.constant, attrs, None, ())), ())
        bindings.append(Binding(key, 0, value))
    bindings += [replace(b, graph=b.graph + 1) for b in document.bindings]
    graphs = (constants.build(fresh_name(document, "constants"), ()), *map(_moved, document.graphs))
    return replace(document, graphs=graphs, bindings=tuple(bindings))


def _moved(graph: Graph) -> Graph:
    """A graph whose references are to graphs of one number more."""
    numbers = column(g if g == Externals.DETACHED else g + 1 for g in graph.external.graph)
    return replace(graph, external=Externals(numbers, graph.external.value))
