"""The logical graph of a document: all graphs laid end to end, every reference followed.

Transforms see one numbering of values, *flat ids*: the values of graph 0, then those of graph 1, and so on, then the
detached values. Inputs that share a key, and inputs that a binding makes equal to a value, share that value's flat id.
Flat ids grow along every dependency but those on detached values, so increasing order is a topological order.

What looks at single values only asks `Definitions`, which follows references one step at a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from functools import cached_property
from itertools import accumulate, compress
from typing import TYPE_CHECKING

from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import mark_dependencies
from tidu_cli.graph.graph import Case, CaseTable, Column, Detached, Document, Externals, Graph, Input, Meta, Output, Place, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import by_columns
from tidu_cli.graph.select import select_outputs
from tidu_cli.graph.types import Type

if TYPE_CHECKING:
    from tidu_cli.graph.dataflow import Flow


class LogicalGraph(Frozen, slots=False, eq=False):
    """A document with its references followed.

    `base[g]` is the flat id of graph g's first value, `base[-1]` that of the first detached value.
    `outside[g][a]` is the flat id that argument `a` of graph g stands for, where no node of g makes that: inputs come first, and
    externals, which are negative, stand at the end, the last one first.
    `source[key]` is the flat id of an input; for a bound input, of the value that it is bound to.
    """

    document: Document
    base: Sequence[int]
    outside: Sequence[Column[int]]
    source: dict[Key, int]

    def flat_id(self, graph: int, argument: int) -> int:
        """The flat id that an argument of a graph stands for."""
        is_outside = argument < len(self.document.graphs[graph].inputs)
        return self.outside[graph][argument] if is_outside else self.base[graph] + argument

    def by_argument(self, g: int, of_flat: Sequence[int]) -> list[int]:
        """What this holds for the flat ids that arguments of graph g stand for, as a table for those who walk its nodes."""
        n_inputs, table = len(self.document.graphs[g].inputs), [*map(of_flat.__getitem__, self.outside[g])]
        table[n_inputs:n_inputs] = of_flat[self.base[g] + n_inputs : self.base[g + 1]]
        return table

    @cached_property
    def args(self) -> Sequence[Column[int]]:
        """The column `args` of each graph in flat ids."""
        flat, own = range(self.n_values), column(range(len(self.document.graphs[0].inputs)))
        return [
            graph.args if g == 0 and self.outside[0] == own else column([*map(self.by_argument(g, flat).__getitem__, graph.args)])
            for g, graph in enumerate(self.document.graphs)
        ]

    @cached_property
    def flow(self) -> Flow | None:
        """All graphs as NumPy columns over flat ids; None if they are not large, or some node has several results."""
        return flow_of(self.document, self.base, self.outside)

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

    def type_of(self, flat: int) -> Type | None:
        """The type of a flat id; None for a detached value of unknown type."""
        g, v = self.origin(flat)
        return self.document.detached[v].type if g == Externals.DETACHED else self.document.graphs[g].type_of(v)

    def select_outputs(self, keys: Sequence[Key] | None) -> list[tuple[Output, int | None]]:
        """The outputs of these keys, by default the head's, and their flat ids, None for zero. Raises UnknownNameError."""
        outputs = select_outputs(self.document, keys)
        return [(o, None if o.value is None else self.flat_id(g, o.value)) for g, o in outputs]

    def depends_on_externals(self, graphs: Iterable[int]) -> bytearray:
        """For each flat id, 1 if what these graphs read of others is it or depends on it, else 0."""
        return self.depends_on(flat for g in graphs for flat in self.outside[g][len(self.document.graphs[g].inputs) :])

    def depends_on(self, values: Iterable[int]) -> bytearray:
        """For each flat id, 1 if one of `values` is it or depends on it, else 0."""
        if self.flow is not None:
            from tidu_cli.graph.dataflow import depended_on

            return bytearray(depended_on(self.flow, values).data)
        needed = bytearray(self.n_values)
        for value in values:
            needed[value] = 1
        for g in range(len(self.document.graphs) - 1, -1, -1):
            graph, marked = self.document.graphs[g], self.by_argument(g, needed)
            mark_dependencies(graph, marked)
            n_inputs = len(graph.inputs)
            needed[self.base[g] + n_inputs : self.base[g + 1]] = bytes(marked[n_inputs : graph.n_values])
            del marked[n_inputs : graph.n_values]
            for flat in compress(self.outside[g], marked):
                needed[flat] = 1
        return needed


def link(document: Document) -> LogicalGraph:
    """Follow every reference, shared input and binding of a document. Linear in its size."""
    base = [0, *accumulate(graph.n_values for graph in document.graphs)]
    n_inputs = [len(graph.inputs) for graph in document.graphs]
    outside: list[Column[int]] = []
    source: dict[Key, int] = {}
    logical = LogicalGraph(document, base, outside, source)
    for g, graph in enumerate(document.graphs):
        for i, declaration in enumerate(graph.inputs):
            key = declaration.key
            if key not in source:
                source[key] = logical.flat_id(*document.bound[key]) if key in document.bound else base[g] + i
        externals = externals_in_flat_ids(graph.external, base, outside, n_inputs)
        externals.reverse()
        outside.append(column(source[i.key] for i in graph.inputs) + externals)
    return logical


@by_columns("tidu_cli.graph.dataflow", lambda document, *_: sum(graph.n_nodes for graph in document.graphs))
def flow_of(document: Document, base: Sequence[int], outside: Sequence[Column[int]]) -> Flow | None:
    """The nodes of a logical graph as NumPy columns; None where they are walked."""
    return None


@by_columns("tidu_cli.graph.dataflow", lambda external, *_: len(external))
def externals_in_flat_ids(
    external: Externals, base: Sequence[int], outside: Sequence[Column[int]], n_inputs: Sequence[int]
) -> Column[int]:
    """What externals stand for, which are values of graphs that have been linked, or detached."""
    n_inputs = [*n_inputs, 0]  # graph -1, of which detached values are, has none, and the last base
    return column([outside[g][v] if v < n_inputs[g] else base[g] + v for g, v in external])


class Application(Frozen):
    """Result `slot` of node number `node` of graph number `graph`: its case applied to the values at `operands`."""

    graph: int
    node: int
    case: Case
    operands: tuple[Place, ...]
    slot: int


Definition = Application | Input | Detached


class Definitions(Frozen, slots=False, eq=False):
    """Looks up what the values of a document are."""

    document: Document

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


# Building graphs: columns grow node by node, and values of other graphs become externals, each listed once.


class GraphBuilder:
    """A graph under construction. Its columns are lists, which grow faster, unless they are set as a whole."""

    def __init__(self, cases: CaseTable, inputs: Iterable[Input] = ()) -> None:
        self.cases = cases
        self.inputs = list(inputs)
        self.code: MutableSequence[int] = []
        self.args: MutableSequence[int] = []
        self.external = Externals()
        self.node_meta: dict[int, Meta] = {}
        self.n_values = len(self.inputs)
        self._external_number: dict[tuple[int, int], int] = {}

    def refer(self, graph: int, value: int) -> int:
        """The argument that stands for a value of another graph (or, for graph DETACHED, for a detached value)."""
        reference = graph, value
        number = self._external_number.get(reference)
        if number is None:
            number = self._external_number[reference] = -1 - len(self.external)
            self.external.graph.append(graph)
            self.external.value.append(value)
        return number

    def append(self, code: int, args: Iterable[int]) -> int:
        """Append a node of case number `code`. Returns the local id of its first result."""
        first = self.n_values
        self.code.append(code)
        self.args.extend(args)
        self.n_values = first + self.cases.n_results[code]
        return first

    def keep_meta(self, graph: Graph, node: int) -> None:
        """The node that is appended next has the meta of this node of another graph."""
        if node in graph.node_meta:
            self.node_meta[len(self.code)] = graph.node_meta[node]

    def columns(self) -> tuple[Column[int], Column[int]]:
        """The columns `code` and `args` as they are now."""
        code, args = (part if isinstance(part, Column) else column(part) for part in (self.code, self.args))
        return code, args

    def build(
        self,
        name: str,
        outputs: Iterable[Output],
        *,
        linear: int | None = None,
        meta: Meta = None,
        node_meta: Mapping[int, Meta] | None = None,
    ) -> Graph:
        """The finished graph. The builder must not be used after."""
        inputs, outputs = tuple(self.inputs), tuple(outputs)
        return Graph(name, inputs, outputs, self.cases, *self.columns(), self.external, linear, meta, node_meta or self.node_meta)

    def rebuilt(self, graph: Graph, new: Sequence[int | None]) -> Graph:
        """The finished graph in the place of another one, whose values have these arguments now: with its outputs and its meta."""
        outputs = [replace(o, value=None if o.value is None else new[o.value]) for o in graph.outputs]
        return self.build(graph.name, outputs, linear=graph.linear, meta=graph.meta)
