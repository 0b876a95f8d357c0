"""Whether linear graphs are linear in their inputs also where these come in by another graph or by a binding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import chain, compress

from tidu_cli.graph.graph import Document, Externals, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.walk import mark_dependencies


def own_tangent_read(document: Document) -> tuple[Graph, Key] | None:
    """A linear graph that is a nonlinear function of one of its inputs, and this input: None if there is none.

    It is, if what it reads of other graphs depends on the input; or if one of its inputs is bound to what depends on another one
    otherwise than by a linear graph.
    """
    declared = Counter(i.key for graph in document.graphs for i in graph.inputs)
    suspects: dict[int, tuple[set[Key], list[int]]] = {}
    for g, graph in enumerate(document.graphs):
        if graph.linear is not None:
            factors = _factors(document, g)
            keys = {i.key for h in factors for i in document.graphs[h].inputs}
            keys -= {i.key for i in graph.inputs if declared[i.key] == 1}  # on which no graph before this one depends
            if keys:
                suspects[g] = keys, factors
    if _reached(
        document, (h for _, factors in suspects.values() for h in factors), {k for keys, _ in suspects.values() for k in keys}
    ):
        for g, (keys, factors) in suspects.items():  # which of them it is
            if key := _reached(document, factors, keys):
                return document.graphs[g], key
    return None


def not_linear(graph: Graph, key: Key) -> str:
    """What is wrong with what `own_tangent_read` gives."""
    return (
        f"graph '{graph.name}': is not linear in '{key}', as what it reads through other graphs or bindings depends on '{key}', too"
    )


def _factors(document: Document, g: int) -> list[int]:
    """A linear graph, and those that its inputs are bound to values of: so they are one linear map."""
    factors = [g]
    for h in factors:
        bound = [document.bound[i.key][0] for i in document.graphs[h].inputs if i.key in document.bound]
        factors += dict.fromkeys(b for b in bound if document.graphs[b].linear is not None and b not in factors)
    return factors


def _reached(document: Document, factors: Iterable[int], keys: Collection[Key]) -> Key | None:
    """One of these keys that what these linear graphs read of others depends on, or else what their inputs are bound to."""
    if not keys:
        return None
    read: list[set[int]] = [set() for _ in document.graphs]
    for h in factors:
        graph = document.graphs[h]
        bound = [document.bound[i.key] for i in graph.inputs if i.key in document.bound]
        for earlier, value in chain(graph.external, (b for b in bound if document.graphs[b[0]].linear is None)):
            if earlier != Externals.DETACHED:
                read[earlier].add(value)
    for g in range(len(document.graphs) - 1, -1, -1):
        if not read[g]:
            continue
        graph = document.graphs[g]
        marked = bytearray(graph.n_values + len(graph.external))
        for value in read[g]:
            marked[value] = 1
        mark_dependencies(graph, marked)
        for declared in compress(graph.inputs, marked):
            if declared.key in keys:
                return declared.key
            if declared.key in document.bound:
                earlier, value = document.bound[declared.key]
                read[earlier].add(value)
        for earlier, value in compress(graph.external, reversed(marked)):
            if earlier != Externals.DETACHED:
                read[earlier].add(value)
    return None
