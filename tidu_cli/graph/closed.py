"""Graphs within nodes: what the attrs of loops and branches hold, in the form of a document's graphs, but closed.

All that such a graph reads is its inputs, which the operands of its node give it, in order. Its nodes have no roles: what in it
depends on tangents is seen from which operands of the node are active.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, MutableSequence, Sequence
from functools import cached_property
from itertools import chain, compress, repeat
from operator import itemgetter
from typing import Any

from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, CaseTable, Document, Externals, Graph, column
from tidu_cli.graph.keys import Key, key_to_json
from tidu_cli.graph.types import Type
from tidu_cli.limits import require

MAX_GRAPH_NESTING = 64
"""How deep graphs may stand within nodes of graphs within nodes in a file: rules recurse as deep."""

TOO_DEEP = f"graphs within graphs nest deeper than {MAX_GRAPH_NESTING} levels, the most that are read; write the inner ones out"


class ClosedGraph:
    """A closed graph over a table of just the cases in it, so that it may be compared: equal ones have the same file form."""

    def __init__(self, graph: Graph) -> None:
        """Raises LimitError if the graph, with those within it, has more nodes than a document may have."""
        self.graph = graph
        self.n_nodes = nodes_written_out(graph.code, graph.cases)
        """How many nodes it stands for, with those of graphs within it, as often as a node holds them."""
        require("nodes", self.n_nodes, "a graph within a node, with those within it")
        self.tidy = False
        """Whether it is known that it has no dead or equal nodes."""
        self.digest: bytes | None = None
        """What `identity.closed_digest` has computed."""

    @classmethod
    def of(cls, graph: Graph) -> ClosedGraph:
        """A graph without externals, whose nodes lose their roles."""
        graph = with_cases(graph, CaseTable(graph.cases.vocabulary), lambda case: replace(case, mask=None))
        return cls(replace(graph, linear=None))

    @property
    def input_types(self) -> tuple[Type, ...]:
        """The types of the inputs."""
        return tuple([i.type for i in self.graph.inputs])

    @property
    def output_types(self) -> tuple[Type, ...]:
        """The types of the outputs."""
        return tuple([o.type for o in self.graph.outputs])

    @property
    def document(self) -> Document:
        """The document of this graph alone, over a table of its own, to which transforms may add."""
        return document_of(self.graph)

    @cached_property
    def positional(self) -> Document:
        """Likewise, with inputs and outputs named by their numbers: how it counts for identity."""
        graph = self.graph
        inputs = tuple([replace(i, key=Key(str(k))) for k, i in enumerate(graph.inputs)])
        return Document((replace(graph, inputs=inputs),), graph.cases)

    @cached_property
    def depth(self) -> int:
        """How many graphs stand within one another, this one included."""
        return 1 + max((graph.depth for graph in graphs_of(self.graph.cases.cases)), default=0)

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        graph = self.graph
        return (
            tuple(graph.cases.cases),
            graph.code.tobytes(),
            graph.args.tobytes(),
            graph.inputs if all(i.meta is None for i in graph.inputs) else repr(graph.inputs),
            graph.outputs if all(o.meta is None for o in graph.outputs) else repr(graph.outputs),
            graph.name,
            repr(graph.meta) if graph.meta else "",
            repr(sorted(graph.node_meta.items())) if graph.node_meta else "",
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClosedGraph):
            return NotImplemented
        return self is other or self._identity == other._identity

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<graph of {self.graph.n_nodes} nodes>"

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form, its nodes a list."""
        graph = self.graph
        common = {number: _common(case, binary) for number, case in enumerate(graph.cases.cases)}
        nodes = [
            _with_meta({"op": graph.cases[code].op, "inputs": [*args], **common[code]}, graph.node_meta.get(node))
            for node, (code, args, _, _) in enumerate(forwards(graph, graph.args))
        ]
        return {
            **({"name": graph.name} if graph.name else {}),
            **({"meta": graph.meta} if graph.meta is not None else {}),
            "inputs": [_with_meta({"key": key_to_json(i.key), "type": str(i.type)}, i.meta) for i in graph.inputs],
            "nodes": nodes,
            "outputs": [
                _with_meta({"key": key_to_json(o.key), "value": o.value, "type": str(o.type)}, o.meta) for o in graph.outputs
            ],
        }


def document_of(graph: Graph) -> Document:
    """The document of a self-contained graph alone, over a table of its own, to which transforms may add."""
    cases = graph.cases.copy()
    return Document((replace(graph, cases=cases),), cases)


def with_cases(graph: Graph, cases: CaseTable, change: Callable[[Case], Case]) -> Graph:
    """The graph over another table, to which those of its cases are added that its nodes have, each of them changed."""
    number = {code: cases.intern(change(graph.cases[code])) for code in dict.fromkeys(graph.code)}
    return replace(graph, cases=cases, code=column(map(number.__getitem__, graph.code)))


def closed_graphs(attrs: object) -> Sequence[ClosedGraph]:
    """The graphs that attrs hold, in the order of their fields."""
    return [graph for _, graph in named_graphs(attrs)]


def named_graphs(attrs: object) -> Sequence[tuple[str, ClosedGraph]]:
    """Likewise, with what messages call them: `body`, `branches[0]`."""
    pairs: list[tuple[str, ClosedGraph]] = []
    for name in getattr(attrs, "graphs", ()):
        value = vars(attrs)[name]
        graphs = [(f"{name}[{k}]", graph) for k, graph in enumerate(value)] if isinstance(value, tuple) else [(name, value)]
        pairs += graphs if value is not None else []
    return pairs


def derived_graphs(attrs: object) -> Sequence[ClosedGraph]:
    """Those through which derivatives go: all but solvers."""
    solvers = getattr(attrs, "solvers", ())
    return [graph for name, graph in named_graphs(attrs) if name not in solvers]


GraphsOf = Callable[[object], Sequence[ClosedGraph]]
"""From attrs to graphs in them."""


def graphs_of(cases: Iterable[Case], of_attrs: GraphsOf = closed_graphs) -> list[ClosedGraph]:
    """The graphs that cases hold, or some of them."""
    return [graph for case in cases for graph in of_attrs(case.attrs)]


def nodes_written_out(code: Collection[int], cases: CaseTable) -> int:
    """How many nodes these are, with those of the graphs that they hold: in a file a graph stands as often as a node holds it.

    It takes time in proportion to the nodes at most, since each graph knows how many it stands for.
    """
    numbers = range(len(cases)) if len(cases) < len(code) else set(code)
    within = {number: n for number in numbers if (n := sum(g.n_nodes for g in closed_graphs(cases[number].attrs)))}
    counts = Counter(code) if within else {}
    return len(code) + sum(n * counts.get(number, 0) for number, n in within.items())


def graphs_within(cases: Iterable[Case], of_attrs: GraphsOf = closed_graphs) -> Iterator[ClosedGraph]:
    """The graphs that cases hold, or some of them, and those in them, at any depth; one that several nodes hold once."""
    pending, seen = graphs_of(cases, of_attrs), set[int]()
    while pending:
        closed = pending.pop()
        if id(closed) not in seen:
            seen.add(id(closed))
            yield closed
            pending += graphs_of(closed.graph.cases.cases, of_attrs)


def cases_within(cases: Iterable[Case], of_attrs: GraphsOf = closed_graphs) -> Iterator[Case]:
    """These cases, and those in the graphs that they hold, or in some of them, at any depth."""
    given = list(cases)
    yield from given
    for graph in graphs_within(given, of_attrs):
        yield from graph.graph.cases.cases


def _common(case: Case, binary: bool) -> dict[str, object]:
    attrs = case.attrs.to_data(binary=binary)
    return {"attrs": attrs} if attrs else {}


def _with_meta(data: dict[str, object], meta: object) -> dict[str, object]:
    return data if meta is None else {**data, "meta": meta}


# Walking a graph node by node: what each is, what it reads, and what it makes.
#
# Walks are chains of iterators in C, which take half the time of a generator and are as lazy.


Numbers = tuple[int, ...]
Node = tuple[int, Numbers, int, int]
"""The number of a node's case, its arguments, its first result, and the first value that comes after its results."""


def forwards(graph: Graph, args: Iterable[int], base: int = 0) -> Iterator[Node]:
    """The nodes in order. `args` are the graph's, or what stands for them; its first value has the number `base`.

    What stands for them is asked for as nodes come: `map(new_id.__getitem__, graph.args)` finds what earlier nodes have entered.
    """
    firsts = first_results(graph, base)
    return zip(graph.code, operands(graph, graph.code, args), firsts, firsts[1:], strict=False)


def backwards(graph: Graph, args: Sequence[int], base: int = 0) -> Iterator[Node]:
    """Likewise, from the last node to the first."""
    firsts = first_results(graph, base)
    reads = map(_turned_round, operands(graph, reversed(graph.code), reversed(args)))
    return zip(reversed(graph.code), reads, firsts[-2::-1], firsts[:0:-1], strict=False)


def operands(graph: Graph, codes: Iterable[int], args: Iterable[int]) -> Iterator[Numbers]:
    """The arguments of nodes of these cases, from these, which `forwards` takes, too. The graph has all of the cases."""
    rest = iter(args)
    return _taken(graph, codes, lambda _, arity: zip(*[rest] * arity, strict=False) if arity else repeat(()))


def whole_nodes(graph: Graph, args: Iterable[int]) -> Iterator[Numbers]:
    """Of each node in order the number of its case and its arguments, as one tuple. `args` are as `forwards` takes them."""
    rest = iter(args)
    return _taken(graph, graph.code, lambda code, arity: zip(repeat(code), *[rest] * arity, strict=False))


def mark_dependencies(graph: Graph, marked: MutableSequence[int]) -> None:
    """Mark with 1 what marked arguments depend on. `marked` has a place for each: values, then externals, the last one first."""
    firsts = first_results(graph)
    reads = operands(graph, reversed(graph.code), reversed(graph.args))
    for argument in chain.from_iterable(compress(reads, are_marked(marked, firsts[-2::-1], firsts[:0:-1]))):
        marked[argument] = 1


def are_marked(marked: Sequence[int], firsts: Sequence[int], ends: Sequence[int]) -> Iterator[object]:
    """For each node with these results whether one of them is marked, at the time when that is asked."""
    if isinstance(firsts, range):
        return map(marked.__getitem__, firsts)
    return map(any, map(marked.__getitem__, map(slice, firsts, ends)))


def first_results(graph: Graph, base: int = 0) -> Sequence[int]:
    """The graph's `firsts`, where its first value has the number `base`."""
    firsts = graph.firsts
    return range(base + firsts[0], base + firsts[-1] + 1) if isinstance(firsts, range) else [base + v for v in firsts]


_turned_round: Callable[[Numbers], Numbers] = itemgetter(slice(None, None, -1))


def _taken(graph: Graph, codes: Iterable[int], take: Callable[[int, int], Iterator[Numbers]]) -> Iterator[Numbers]:
    """For each of these nodes the next that `take` gives for its case and arity."""
    takers = {code: take(code, graph.cases.arity[code]) for code in set(graph.code)}
    return map(next, map(takers.__getitem__, codes))


# Whether linear graphs are linear in their inputs also where these come in by another graph or by a binding.


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
