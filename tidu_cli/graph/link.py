"""The logical graph of a document: all graphs laid end to end, every reference followed.

Transforms see one numbering of values, *flat ids*: the values of graph 0, then those of graph 1, and so on, then the
detached values. Inputs that share a key, and inputs that a binding makes equal to a value, share that value's flat id.
Flat ids grow along every dependency but those on detached values, so increasing order is a topological order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tidu_cli.graph.graph import Column, Document, Externals, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType


@dataclass(frozen=True, eq=False)
class LogicalGraph:
    """A document with its references followed.

    `base[g]` is the flat id of graph g's first value, `base[-1]` that of the first detached value.
    `lookup[g][a]` is the flat id that argument `a` of graph g stands for; `a` may be negative, as an external is.
    `args[g]` is the column `args` of graph g in flat ids.
    `source[key]` is the flat id of an input; for a bound input, of the value that it is bound to.
    """

    document: Document
    base: Sequence[int]
    lookup: Sequence[Column[int]]
    args: Sequence[Column[int]]
    source: dict[Key, int]

    @property
    def n_values(self) -> int:
        """The number of flat ids."""
        return self.base[-1] + len(self.document.detached)

    @property
    def n_nodes(self) -> int:
        """The number of nodes of all graphs."""
        return sum(graph.n_nodes for graph in self.document.graphs)

    def origin(self, flat: int) -> tuple[int, int]:
        """The graph number and local id of a flat id, or (DETACHED, k)."""
        if flat >= self.base[-1]:
            return Externals.DETACHED, flat - self.base[-1]
        g = bisect_right(self.base, flat) - 1
        return g, flat - self.base[g]

    def type_of(self, flat: int) -> TensorType | None:
        """The type of a flat id; None for a detached value of unknown type."""
        g, v = self.origin(flat)
        return self.document.detached[v].type if g == Externals.DETACHED else self.document.graphs[g].type_of(v)

    def depends_on(self, values: Iterable[int]) -> bytearray:
        """For each flat id, 1 if one of `values` is it or depends on it, else 0."""
        needed = bytearray(self.n_values)
        for value in values:
            needed[value] = 1
        arity, n_results = self.document.cases.arity, self.document.cases.n_results
        for g in range(len(self.document.graphs) - 1, -1, -1):
            args, value = self.args[g], self.base[g + 1]
            end = len(args)
            for code in reversed(self.document.graphs[g].code):
                start, first = end - arity[code], value - n_results[code]
                if needed[first] or 1 in needed[first:value]:
                    for k in range(start, end):
                        needed[args[k]] = 1
                end, value = start, first
        return needed


def link(document: Document) -> LogicalGraph:
    """Follow every reference, shared input and binding of a document. Linear in its size."""
    base = [0, *accumulate(graph.n_values for graph in document.graphs)]
    bound = {b.key: (b.graph, b.value) for b in document.bindings}
    lookup: list[Column[int]] = []
    source: dict[Key, int] = {}
    for g, graph in enumerate(document.graphs):
        table = column(range(base[g], base[g + 1]))
        for i, declaration in enumerate(graph.inputs):
            key = declaration.key
            if key not in source:
                source[key] = lookup[bound[key][0]][bound[key][1]] if key in bound else base[g] + i
            table[i] = source[key]
        externals = [base[-1] + v if h == Externals.DETACHED else lookup[h][v] for h, v in graph.external]
        table.extend(reversed(externals))  # argument -1-k means external k: they stand at the end, last one first
        lookup.append(table)
    args = [column(map(table.__getitem__, graph.args)) for table, graph in zip(lookup, document.graphs, strict=True)]
    return LogicalGraph(document, base, lookup, args, source)
