"""Walking a graph node by node: what each is, what it reads, and what it makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tidu_cli.graph.graph import Column, Graph

Node = tuple[int, Sequence[int], int, int]
"""The number of a node's case, its arguments, its first result, and the first value that comes after its results."""


def forwards(graph: Graph, args: Iterable[int], base: int = 0) -> Iterator[Node]:
    """The nodes in order. `args` are the graph's, or what stands for them; its first value has the number `base`.

    What stands for them is asked for as nodes come: `map(new_id.__getitem__, graph.args)` finds what earlier nodes have entered.
    """
    arity, n_results = graph.cases.arity, graph.cases.n_results
    end, rest = base + len(graph.inputs), iter(args)
    for code in graph.code:
        first, end = end, end + n_results[code]
        yield code, tuple(islice(rest, arity[code])), first, end


def backwards(graph: Graph, args: Column[int], base: int = 0) -> Iterator[Node]:
    """Likewise, from the last node to the first."""
    arity, n_results = graph.cases.arity, graph.cases.n_results
    start, first = len(args), base + graph.n_values
    for code in reversed(graph.code):
        end, start = start, start - arity[code]
        value, first = first, first - n_results[code]
        yield code, args[start:end], first, value
