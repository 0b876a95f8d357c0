"""Graphs and documents in memory: columns of integers over a small table of distinct cases.

A node is an entry of the column `code`, which names its case (op, attrs, role, operand and result types), and its
operands are the next entries of the column `args`. So a million nodes are a few arrays, rules run once a case,
and types need no column of their own.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import by_columns
from tidu_cli.graph.types import Type

Column = array  # of signed 32-bit integers, typecode "i", one beside the other in memory


def column(values: Iterable[int] = ()) -> Column[int]:
    """A new column of integers. Raises OverflowError for one of more than 32 bits."""
    try:
        return array("i", struct.pack(f"{len(values)}i", *values) if isinstance(values, list) else values)  # twice as fast
    except struct.error:
        return array("i", values)  # which raises what columns have to


Meta = Mapping[str, object] | None
"""What users keep under `meta`; tidu carries it along and never looks inside."""

Place = tuple[int, int]
"""A value of a document: its graph number and local id; (DETACHED, k) for a detached one."""


class CaseAttrs(Hashable, Protocol):
    """What the graph layer knows of attrs: they compare, hash, and have a file form."""

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form: lists, numbers and strings, and bytes for constants if `binary`."""

    def identity(self, of_graph: Callable[[Any], object]) -> dict[str, object]:
        """What a digest hashes: the binary file form, with this in the place of graphs that they hold."""


class Defined(Protocol):
    """What the graph layer knows of the definition of an op."""

    @property
    def name(self) -> str:
        """The op's name."""

    def to_data(self) -> dict[str, object]:
        """The file form without meta: plain data, the same for definitions that are the same."""


class Vocabulary(Protocol):
    """What the graph layer knows of a set of primitives."""

    def definitions_behind(self, op: str) -> Sequence[Defined]:
        """The definitions that say what an op is: that of its own and those that these use, by name; none if it is built in."""


class Case(Frozen):
    """Everything that distinguishes nodes, but for which values they read.

    `mask` is the active mask of a linearized node, and None for a primary one. An operand's type is None only
    where a detached reference hides it.
    """

    op: str
    attrs: CaseAttrs
    mask: tuple[bool, ...] | None
    operands: tuple[Type | None, ...]
    results: tuple[Type, ...]


class CaseTable:
    """The distinct cases of a document, numbered in order of first use. Documents derived from one another share it.

    `vocabulary` is the set of primitives that the cases are of; None for the built-in one.
    """

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.vocabulary = vocabulary
        self.cases: list[Case] = []
        self.arity: list[int] = []
        self.n_results: list[int] = []
        self.open_codes: list[bool] = []
        """Of the first cases, which have open sizes: what `open_sizes` has looked up."""
        self._number: dict[Case, int] = {}

    def intern(self, case: Case) -> int:
        """The number of `case`, a new one if it is new."""
        number = self._number.get(case)
        if number is None:
            number = self._number[case] = len(self.cases)
            self.cases.append(case)
            self.arity.append(len(case.operands))
            self.n_results.append(len(case.results))
        return number

    def copy(self) -> CaseTable:
        """A table of the same cases, which grows by itself."""
        table = CaseTable(self.vocabulary)
        for case in self.cases:
            table.intern(case)
        return table

    def __getitem__(self, number: int) -> Case:
        return self.cases[number]

    def __len__(self) -> int:
        return len(self.cases)


class Input(Frozen):
    """An input of a graph. Inputs are global: one key is one input in the whole document."""

    key: Key
    type: Type
    meta: Meta = None


class Output(Frozen):
    """An output: `value` is an argument as in `Graph.args`, or None for a structural zero."""

    key: Key
    value: int | None
    type: Type
    meta: Meta = None


class Externals(Frozen):
    """The values of other graphs that a graph reads: value `value[k]` of graph `graph[k]`.

    Where `graph[k]` is `DETACHED`, `value[k]` numbers an entry of the document's `detached`.
    """

    DETACHED = -1

    graph: Column[int] = field(default_factory=column)
    value: Column[int] = field(default_factory=column)

    def __len__(self) -> int:
        return len(self.graph)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.graph, self.value, strict=True)


class Graph(Frozen, slots=False, eq=False):
    """A graph fragment. Local value ids: the inputs first, then the results of the nodes in order.

    An argument (in `args`, or an output's value) is a local id, or -1-k for entry k of `external`.
    `linear` is the pass of a linear graph, and None for any other. `node_meta` holds the meta of listed nodes by index.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    cases: CaseTable
    code: Column[int] = field(default_factory=column)
    args: Column[int] = field(default_factory=column)
    external: Externals = field(default_factory=Externals)
    linear: int | None = None
    meta: Meta = None
    node_meta: Mapping[int, Meta] = field(default_factory=dict)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.code)

    @cached_property
    def n_values(self) -> int:
        """The number of local values: inputs and node results."""
        return self.firsts[-1]

    @cached_property
    def firsts(self) -> Sequence[int]:
        """The local id of each node's first result, and the end of all: a range if each node has one result."""
        first, n_results = len(self.inputs), self.cases.n_results
        if max(n_results, default=1) == 1 or all(n_results[c] == 1 for c in set(self.code)):
            return range(first, first + self.n_nodes + 1)
        return starts(n_results, self.code, first)

    @cached_property
    def _arg_start(self) -> Column[int]:
        return starts(self.cases.arity, self.code)

    def producer(self, value: int) -> tuple[int, int]:
        """The node and the result slot that make a local value. `value` must not be an input."""
        node = value - self.firsts[0] if isinstance(self.firsts, range) else bisect_right(self.firsts, value) - 1
        return node, value - self.firsts[node]

    def operands(self, node: int) -> Sequence[int]:
        """The arguments of one node. A view for reports and pictures: transforms walk the columns."""
        return self.args[self._arg_start[node] : self._arg_start[node + 1]]

    def results(self, node: int) -> range:
        """The local ids of a node's results."""
        return range(self.firsts[node], self.firsts[node + 1])

    def case(self, node: int) -> Case:
        """The case of one node."""
        return self.cases[self.code[node]]

    def nodes(self) -> Iterator[tuple[Case, Sequence[int]]]:
        """The case and the arguments of each node, in order. For reports and pictures, as `operands` is."""
        end = 0
        for code in self.code:
            start, end = end, end + self.cases.arity[code]
            yield self.cases[code], self.args[start:end]

    def place(self, number: int, argument: int) -> Place:
        """The value that an argument of this graph, which has this number, stands for."""
        if argument >= 0:
            return number, argument
        return self.external.graph[-1 - argument], self.external.value[-1 - argument]

    def type_of(self, value: int) -> Type:
        """The type of a local value."""
        if value < len(self.inputs):
            return self.inputs[value].type
        node, slot = self.producer(value)
        return self.case(node).results[slot]

    def describe(self, node: int) -> str:
        """How messages name a node: `graph 'f', node 3 (mul)`."""
        return f"graph '{self.name}', node {node} ({self.case(node).op})"


@by_columns("tidu_cli.graph.dataflow", lambda _, code, *first: len(code))
def starts(sizes: Sequence[int], code: Column[int], first: int = 0) -> Column[int]:
    """Where each of these begins, if they lie one after the other and have the sizes that their codes have; and the end."""
    return column([*accumulate(map(sizes.__getitem__, code), initial=first)])


class Detached(Frozen):
    """A value that the document refers to by digest ("sha256:HEX") and does not define; its type if it is known."""

    digest: str
    type: Type | None


class Binding(Frozen):
    """The input `key` is value `value` of graph number `graph`."""

    key: Key
    graph: int
    value: int


_PORTS = 6
"""So many inputs or outputs are told of in a line."""


def _ports(ports: Sequence[Input] | Sequence[Output]) -> str:
    shown = [f"{port.key}: {port.type}" for port in ports[:_PORTS]]
    return ", ".join(shown + [f"… {len(ports) - _PORTS} more"] * (len(ports) > _PORTS))


def signature(name: str, inputs: Sequence[Input], outputs: Sequence[Output]) -> str:
    """What a function of inputs is, in a line: f(x: f64[3]) -> y: f64[]."""
    return f"{name}({_ports(inputs)}) -> {_ports(outputs) or 'nothing'}"


CALLED: list[Callable[..., dict[str, Any]]] = []
"""How documents are called: whoever evaluates them puts it here (`tidu_cli.api`)."""

SHOWN: dict[str, Callable[[Document], str | None]] = {}
"""How documents are shown as "text", "html" and "svg": whoever draws them puts it here (`tidu_cli.api`)."""


def shown(form: str, document: Document) -> str | None:
    """A document in a form for people and notebooks; None where nobody draws it so."""
    return SHOWN[form](document) if form in SHOWN else None


class Document(Frozen, slots=False, eq=False):
    """What a file or pipe holds: graphs, of which the last is the head, over one table of cases. It is called as a function.

    >>> f = tidu.formula("a * sum(x)", a="f64[]", x="f64[2]")
    >>> f(2.0, [1.0, 2.0]), f(2.0, x=[1.0, 2.0])
    ({'y': array(6.)}, {'y': array(6.)})

    `passes` says of pass numbers in use which call of linearize each is (see `graph/passes.py`), where that is known.
    """

    graphs: tuple[Graph, ...]
    cases: CaseTable
    detached: tuple[Detached, ...] = ()
    bindings: tuple[Binding, ...] = ()
    meta: Meta = None
    passes: Mapping[int, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The head in a line: <Document f(x: f64[3]) -> y: f64[], 2 nodes>, short also for large documents."""
        if not self.graphs:
            return "<Document without graphs>"
        head, others = self.head, len(self.graphs) - 1
        nodes = sum(graph.n_nodes for graph in self.graphs)
        rest = f" and {others} other graph{'s' if others > 1 else ''}" if others else ""
        told = signature(head.name, head.inputs, head.outputs)
        return f"<Document {told}{rest}, {nodes:,} node{'s' if nodes != 1 else ''}>"

    def __call__(self, *positions: Any, **names: Any) -> dict[str, Any]:
        """The values of the outputs, by the text of their keys, as `evaluate` gives them: of inputs by position or name, or a dict.

        Raises EvaluationError.
        """
        return CALLED[-1](self, positions, names)

    def __str__(self) -> str:
        return shown("text", self) or repr(self)

    def _repr_html_(self) -> str | None:
        return shown("html", self)

    def _repr_svg_(self) -> str | None:
        return shown("svg", self)

    @property
    def head(self) -> Graph:
        """The last graph, on which commands act."""
        return self.graphs[-1]

    @cached_property
    def inputs(self) -> dict[Key, Input]:
        """The inputs that graphs declare, by key and in order; each as the first graph declares it."""
        inputs: dict[Key, Input] = {}
        for graph in self.graphs:
            for declared in graph.inputs:
                inputs.setdefault(declared.key, declared)
        return inputs

    @property
    def outputs(self) -> dict[Key, Output]:
        """The outputs of the head, by key and in order."""
        return {output.key: output for output in self.head.outputs}

    @cached_property
    def bound(self) -> dict[Key, Place]:
        """What inputs are bound to, by key."""
        return {b.key: (b.graph, b.value) for b in self.bindings}

    @property
    def free_inputs(self) -> list[Input]:
        """The inputs that are not bound, in order: those that materialize declares."""
        return [i for key, i in self.inputs.items() if key not in self.bound]

    def every_key(self) -> Iterator[Key]:
        """Every key of the document: inputs, outputs and bindings."""
        for graph in self.graphs:
            yield from (i.key for i in graph.inputs)
            yield from (o.key for o in graph.outputs)
        yield from (b.key for b in self.bindings)

    def used_passes(self) -> set[int]:
        """The pass numbers of all keys and linear graphs."""
        linear = {graph.linear for graph in self.graphs if graph.linear is not None}
        return linear.union(abs(step) for key in self.every_key() for step in key.path)

    def next_pass(self) -> int:
        """1 + the greatest pass number in any key or linear graph: the number of the next `linearize`."""
        return 1 + max(self.used_passes(), default=0)
