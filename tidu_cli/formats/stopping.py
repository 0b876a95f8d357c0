"""A document through some values of which no derivative goes: what the option --stop of readers makes of any document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tidu_cli.errors import Remedy, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.contract import NoAttrs


def stopped(document: Document, names: Sequence[str]) -> Document:
    """The document, with stop_gradient behind these values: inputs, outputs, values named in a model, or nodes as "node 3".

    What read such a value reads the result. Raises UnknownNameError, and TypeRuleError for documents of several graphs.
    """
    graph = document.head
    if len(document.graphs) > 1 or graph.linear is not None or len(graph.external):
        way = Remedy(function="materialize")
        raise TypeRuleError("derivatives are stopped in a document of one graph; make it one first: ", way)
    stops = set[int]()
    for name in names:
        stops.update(_values(graph, name))
    primitives = vocabulary(document.cases)
    builder, new = GraphBuilder(document.cases, graph.inputs), [*range(len(graph.inputs))]

    def stop(value: int) -> None:
        if value in stops:
            case = primitives.case("stop_gradient", NoAttrs(), None, [graph.type_of(value)])
            new[value] = builder.append(document.cases.intern(case), [new[value]])

    for value in range(len(graph.inputs)):
        stop(value)
    for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
        builder.keep_meta(graph, node)
        start = builder.append(code, [new[a] for a in args])
        new += range(start, start + end - first)
        for value in range(first, end):
            stop(value)
    return replace(document, graphs=(builder.rebuilt(graph, new),))


def _values(graph: Graph, name: str) -> Sequence[int]:
    """The values of a name. Raises UnknownNameError."""
    named: dict[str, Sequence[int]] = {str(i.key): [k] for k, i in enumerate(graph.inputs)}
    if name not in named:
        named |= {str(o.key): [] if o.value is None else [o.value] for o in graph.outputs if str(o.key) not in named}
    if name not in named:
        named = dict(_of_models(graph)) | named
    if name not in named and (numbered := re.fullmatch("node ([0-9]{1,9})", name)) and int(numbered[1]) < graph.n_nodes:
        return graph.results(int(numbered[1]))
    if name not in named:
        raise UnknownNameError(
            f"graph '{graph.name}': has no value '{name}' to stop derivatives at{did_you_mean(name, list(named))}; it takes "
            "inputs, outputs, values that a model names, and nodes by number, as 'node 3'"
        )
    return named[name]


def _of_models(graph: Graph) -> Iterator[tuple[str, Sequence[int]]]:
    """The values that a model names, as its reader wrote into meta."""
    for node, meta in graph.node_meta.items():
        for part in (meta or {}).values():
            if isinstance(part, dict) and isinstance(name := part.get("value"), str):
                yield name, graph.results(node)
