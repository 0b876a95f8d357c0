"""Graphs within nodes: what the attrs of loops and branches hold, in the form of a document's graphs, but closed.

All that such a graph reads is its inputs, which the operands of its node give it, in order. Its nodes have no roles: what in it
depends on tangents is seen from which operands of the node are active.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph, column
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
        cases = CaseTable(graph.cases.vocabulary)
        number = {code: cases.intern(replace(graph.cases[code], mask=None)) for code in dict.fromkeys(graph.code)}
        return cls(replace(graph, cases=cases, code=column(map(number.__getitem__, graph.code)), linear=None))

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
        cases = self.graph.cases.copy()
        return Document((replace(self.graph, cases=cases),), cases)

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
        nodes: list[dict[str, object]] = []
        end = 0
        for node, code in enumerate(graph.code):
            start, end = end, end + graph.cases.arity[code]
            data = {"op": graph.cases[code].op, "inputs": graph.args[start:end].tolist(), **common[code]}
            nodes.append(_with_meta(data, graph.node_meta.get(node)))
        return {
            **({"name": graph.name} if graph.name else {}),
            **({"meta": graph.meta} if graph.meta is not None else {}),
            "inputs": [_with_meta({"key": key_to_json(i.key), "type": str(i.type)}, i.meta) for i in graph.inputs],
            "nodes": nodes,
            "outputs": [
                _with_meta({"key": key_to_json(o.key), "value": o.value, "type": str(o.type)}, o.meta) for o in graph.outputs
            ],
        }


def closed_graphs(attrs: object) -> Sequence[ClosedGraph]:
    """The graphs that attrs hold, in the order of their fields."""
    return [graph for _, graph in named_graphs(attrs)]


def named_graphs(attrs: object) -> Sequence[tuple[str, ClosedGraph]]:
    """Likewise, with what messages call them: `body`, `branches[0]`."""
    found: list[tuple[str, ClosedGraph]] = []
    for name in getattr(attrs, "graphs", ()):
        value = vars(attrs)[name]
        found += [(f"{name}[{k}]", graph) for k, graph in enumerate(value)] if isinstance(value, tuple) else [(name, value)]
    return found


def graphs_of(cases: Iterable[Case]) -> list[ClosedGraph]:
    """The graphs that cases hold."""
    return [graph for case in cases for graph in closed_graphs(case.attrs)]


def nodes_written_out(code: Collection[int], cases: CaseTable) -> int:
    """How many nodes these are, with those of the graphs that they hold: in a file a graph stands as often as a node holds it.

    It takes time in proportion to the nodes at most, since each graph knows how many it stands for.
    """
    numbers = range(len(cases)) if len(cases) < len(code) else set(code)
    within = {number: n for number in numbers if (n := sum(g.n_nodes for g in closed_graphs(cases[number].attrs)))}
    counts = Counter(code) if within else {}
    return len(code) + sum(n * counts.get(number, 0) for number, n in within.items())


def graphs_within(cases: Iterable[Case]) -> Iterator[ClosedGraph]:
    """The graphs that cases hold, and those in them, at any depth; one that several nodes hold once."""
    pending, seen = graphs_of(cases), set[int]()
    while pending:
        found = pending.pop()
        if id(found) not in seen:
            seen.add(id(found))
            yield found
            pending += graphs_of(found.graph.cases.cases)


def cases_within(cases: Iterable[Case]) -> Iterator[Case]:
    """These cases, and those in the graphs that they hold, at any depth."""
    given = list(cases)
    yield from given
    for graph in graphs_within(given):
        yield from graph.graph.cases.cases


def _common(case: Case, binary: bool) -> dict[str, object]:
    attrs = case.attrs.to_data(binary=binary)
    return {"attrs": attrs} if attrs else {}


def _with_meta(data: dict[str, object], meta: object) -> dict[str, object]:
    return data if meta is None else {**data, "meta": meta}
