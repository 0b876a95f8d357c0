"""What both formats need of a graph that is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidu_cli.formats.nodes.plain import is_in_order, renamed
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case, Column, Document, Externals, Graph, Output, column
from tidu_cli.graph.keys import key_to_json

BLOCK = 2**12
"""So many nodes at once, as the texts or objects that they are written from."""

CODES = 2**16
"""So many codes at once, as the rows that they are written as."""


def with_meta(fields: dict[str, object], meta: object) -> dict[str, object]:
    """Fields, and `meta` after them if there is any."""
    return fields if meta is None else {**fields, "meta": meta}


class PackedNodes(Frozen):
    """Nodes as columns, that of codes in blocks. A code is a row of the table."""

    table: list[dict[str, object]]
    code: Iterable[Column[int]]
    args: Column[int]
    external: Externals


class Block(Frozen):
    """Some nodes one after the other, from number `first` on, and the arguments of all of them."""

    first: int
    code: Column[int]
    args: Column[int]


class GraphWriter:
    """A graph and how it is to be written: `listed` or packed, and with types or without."""

    def __init__(self, document: Document, graph: Graph, *, binary: bool, types: bool, listed: bool) -> None:
        self.graph = graph
        self.binary = binary
        self.types = types
        self.document = document
        self.detached: set[int] = set()
        if Externals.DETACHED in graph.external.graph:
            self.detached = {-1 - k for k, g in enumerate(graph.external.graph) if g == Externals.DETACHED}
        read_detached = bool(self.detached) and not self.detached.isdisjoint(graph.args)
        self.listed = listed or types or read_detached or bool(graph.node_meta)

    def reference(self, argument: int) -> object:
        """A value of another graph, as listed nodes and outputs refer to it."""
        g, v = self.graph.external.graph[~argument], self.graph.external.value[~argument]
        return self.document.detached[v].digest if g == Externals.DETACHED else [g, v]

    def head(self) -> dict[str, object]:
        """The fields before the inputs."""
        graph = self.graph
        head: dict[str, object] = {"name": graph.name}
        if graph.linear is not None:
            head["linear"] = {"pass": graph.linear}
        return head if graph.meta is None else {**head, "meta": graph.meta}

    def inputs(self) -> list[dict[str, object]]:
        """The declarations of inputs."""
        return [with_meta({"key": key_to_json(i.key), "type": str(i.type)}, i.meta) for i in self.graph.inputs]

    def outputs(self) -> list[dict[str, object]]:
        """The declarations of outputs."""
        return [
            with_meta({"key": key_to_json(o.key), "value": self._value(o), "type": str(o.type)}, o.meta) for o in self.graph.outputs
        ]

    def _value(self, output: Output) -> object:
        value = output.value
        return value if value is None or value >= 0 else self.reference(value)

    def common(self) -> Mapping[int, dict[str, object]]:
        """By case, the fields `attrs` and `role` of its nodes, where they are needed."""
        return {number: self._common(self.graph.cases[number]) for number in dict.fromkeys(self.graph.code)}

    def _common(self, case: Case) -> dict[str, object]:
        fields: dict[str, object] = {}
        if attrs := case.attrs.to_data(binary=self.binary):
            fields["attrs"] = attrs
        if case.mask is not None:
            fields["role"] = {"linearized": {"active_mask": list(case.mask)}}
        return fields

    def needs_types(self, args: Column[int]) -> bool:
        """Whether a node with these arguments carries types."""
        return self.types or not self.detached.isdisjoint(args)

    def blocks(self) -> Iterator[Block]:
        """All nodes."""
        graph, arity, end = self.graph, self.graph.cases.arity, 0
        for first in range(0, graph.n_nodes, BLOCK):
            code = graph.code[first : first + BLOCK]
            start, end = end, end + sum(map(arity.__getitem__, code))
            yield Block(first, code, graph.args[start:end])

    def packed(self) -> PackedNodes:
        """The nodes as columns."""
        graph, cases = self.graph, self.graph.cases
        table: dict[str, int] = {}
        rows: list[dict[str, object]] = []
        row_of_case: dict[int, int] = {}
        for number, common in self.common().items():
            case = cases[number]
            # Cases that differ in types only share a row. Rows are equal where their file forms are.
            row = {"op": case.op, **common, "inputs": len(case.operands), "outputs": len(case.results)}
            row_of_case[number] = table.setdefault(repr(row), len(rows))
            if row_of_case[number] == len(rows):
                rows.append(row)
        code = (renamed(graph.code[k : k + CODES], row_of_case) for k in range(0, graph.n_nodes, CODES))
        if is_in_order(graph.args, graph.external):
            return PackedNodes(rows, code, graph.args, graph.external)
        # Only what the nodes read, once each, in order of first use.
        number_of: dict[tuple[int, int], int] = {}
        renumbered: dict[int, int] = {}
        for argument in dict.fromkeys(a for a in graph.args if a < 0):
            reference = graph.external.graph[~argument], graph.external.value[~argument]
            renumbered[argument] = -1 - number_of.setdefault(reference, len(number_of))
        same = all(old == new for old, new in renumbered.items())
        args = graph.args if same else column(renumbered.get(a, a) for a in graph.args)
        return PackedNodes(rows, code, args, Externals(column(g for g, _ in number_of), column(v for _, v in number_of)))
