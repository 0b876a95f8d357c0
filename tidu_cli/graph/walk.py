"""Walking a graph node by node: what each is, what it reads, and what it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidu_cli.graph.graph import Column, Graph

Node = tuple[int, Sequence[int], int, int]
"""The number of a node's case, its arguments, its first result, and the first value that comes after its results."""


def forwards(graph: Graph, args: Column[int], base: int = 0) -> Iterator[Node]:
    """The nodes in order. `args` are the graph's, or what stands for them; its first value has the number `base`."""
    arity, n_results = graph.cases.arity, graph.cases.n_results
    end, value = 0, base + len(graph.inputs)
    for code in graph.code:
        start, end = end, end + arity[code]
        first, value = value, value + n_results[code]
        yield code, args[start:end], first, value


def backwards(graph: Graph, args: Column[int], base: int = 0) -> Iterator[Node]:
    """Likewise, from the last node to the first."""
    arity, n_results = graph.cases.arity, graph.cases.n_results
    start, first = len(args), base + graph.n_values
    for code in reversed(graph.code):
        end, start = start, start - arity[code]
        value, first = first, first - n_results[code]
        yield code, args[start:end], first, value
