"""The part of a model behind values that become inputs: what only these need is left out, and need not be what is read."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

from tidu_cli.adapters.onnx.contents import nodes_within
from tidu_cli.errors import UnknownNameError, did_you_mean


def leave_out_before(model: Any, names: Set[str]) -> None:
    """Take out of a model the nodes and inputs that nothing needs once the values of these names are given.

    Raises UnknownNameError for a name that no node computes.
    """
    graph = model.graph
    computed = [name for node in graph.node for name in node.output]
    missing = next((name for name in sorted(names) if name not in set(computed)), None)
    if missing is not None:
        raise UnknownNameError(f"no node computes a value '{missing}' to cut at{did_you_mean(missing, computed)}")
    needed = {o.name for o in graph.output}
    kept = []
    for node in reversed(graph.node):
        if not needed.isdisjoint(set(node.output) - names):
            kept.append(node)
            needed.update(_read_by(node))
    inputs = [i for i in graph.input if i.name in needed]
    del graph.node[:], graph.input[:]
    graph.node.extend(reversed(kept))
    graph.input.extend(inputs)


def _read_by(node: Any) -> Iterator[str]:
    """The names that a node and graphs within it may read of the graph around it: some of them may be their own."""
    for inner in nodes_within([node]):
        yield from inner.input
        for attribute in inner.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from (o.name for o in graph.output)
