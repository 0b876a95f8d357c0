"""Where nodes of derivatives come from: the `source` that the meta of a node has passes on to the nodes that its rule emits.

It says which of a user's lines made the node (`tidu build --source`). All else that stands in meta stays with its owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from tidu_cli.frozen import replace
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, Graph, Meta

N = TypeVar("N", bound=tuple[object, ...])

SOURCE = "source"


def has_sources(graphs: Iterable[Graph]) -> bool:
    """Whether a node says where it comes from."""
    return any(SOURCE in (meta or ()) for graph in graphs for meta in graph.node_meta.values())


def passed_on(nodes: Iterable[N], graph: Graph, base: int, made: Sequence[tuple[GraphBuilder, dict[int, Meta]]]) -> Iterator[N]:
    """These nodes, as they are; and what is written to the builders while each of them is looked at gets its source as meta.

    The last but one number of a node is its first result, counted from `base` on.
    """
    for node in nodes:
        before = [len(builder.code) for builder, _ in made]
        yield node
        first_result: int = node[-2]  # type: ignore[assignment]
        meta = graph.node_meta.get(graph.producer(first_result - base)[0])
        if meta and SOURCE in meta:
            for (builder, node_meta), first in zip(made, before, strict=True):
                node_meta.update((k, {SOURCE: meta[SOURCE]}) for k in range(first, len(builder.code)))


def kept(before: Graph, after: Graph, new_id: Column[int]) -> Graph:
    """`after` with the meta of those nodes of `before` that it has: they are those whose values have ids of their own."""
    if not before.node_meta:
        return after
    ids, ends = [*new_id, after.n_values], before.firsts
    met = {k: meta for k, meta in before.node_meta.items() if ids[ends[k]] < ids[ends[k + 1]]}
    return replace(after, node_meta={after.producer(ids[ends[k]])[0]: meta for k, meta in met.items()})
