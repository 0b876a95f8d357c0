"""Lists of nodes as columns, in plain data of JSON and msgpack.

A node of a list is several objects of Python, of a kilobyte together; in these columns it takes some twenty bytes. Whoever wants to
see the nodes themselves iterates.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, count, repeat
from operator import eq, itemgetter, lt
from typing import Any

from tidu_cli.formats.nodes.numbering import Pairs
from tidu_cli.formats.shape import DocumentData, TypeReader
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case, Column, Document, Externals, Graph, Output, column
from tidu_cli.graph.keys import key_to_json
from tidu_cli.graph.large import by_columns
from tidu_cli.rules.fields import DOUBT, made, read_quickly
from tidu_cli.watching import Watched


class Listed(Iterable[dict[str, Any]]):
    """A list of nodes.

    `table` has what is distinct in them but for inputs and meta, in order of first use, with the number of inputs in place of the
    inputs. `code` says for each node which it is, and `meta` has the meta of those nodes that have one, by index. `args` has the
    inputs of all nodes: a local id, or -1-k for `external[k]`, one for each time that a node reads what is no local id.

    The fields are those of nodes. Of what is in them, attrs, types and meta have not been looked at, nor whether there are such
    values.
    """

    def __init__(self) -> None:
        self.table: list[dict[str, Any]] = []
        self.code: Column[int] = column()
        self.args: Column[int] = column()
        self.external: Pairs | list[object] = Pairs()
        self.meta: dict[int, Any] = {}
        self._number: dict[tuple[object, ...], int] = {}
        self._n_keys: list[int] = []

    @classmethod
    def of(cls, nodes: list[Any], watched: Watched) -> Listed | None:
        """A list as columns; None if it is not as it must be."""
        listed = cls()
        return listed if listed.take(nodes, watched) is not None else None

    def __len__(self) -> int:
        return len(self.code)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        args, external = iter(self.args), iter(self.external)
        for i, r in enumerate(self.code):
            row = self.table[r]
            inputs = [a if (a := next(args)) >= 0 else next(external) for _ in range(row["inputs"])]
            meta = {"meta": self.meta[i]} if i in self.meta else {}
            yield {**row, "inputs": inputs, **meta}

    def take(self, nodes: list[Any], watched: Watched = iter) -> int | None:
        """Append nodes. The number of keys of objects, at any depth, in what was taken; None if it is not as it must be.

        After None this is of no use.
        """
        try:
            return self._taken(nodes, watched)
        except (KeyError, TypeError, ValueError, OverflowError):  # something is of another kind, or there is another field
            return None

    def _taken(self, nodes: list[Any], watched: Watched) -> int:
        inputs: list[list[Any]] = list(map(itemgetter("inputs"), nodes))
        masks: list[list[Any]] = []
        number, code, n_keys = self._number, array("i"), 0
        for node, references in zip(watched(nodes), inputs, strict=True):
            key: tuple[object, ...]
            n_fields = len(node)
            if n_fields > 2 and "meta" in node:
                meta = self.meta[len(self.code) + len(code)] = node["meta"]
                n_keys += 1 + _n_keys([meta])
                n_fields -= 1
            if n_fields == 2:
                key = node["op"], len(references)
            else:
                mask = others = None
                if "role" in node:
                    role = node["role"]
                    mask = role["linearized"]["active_mask"]
                    _require(len(role) == len(role["linearized"]) == 1)
                    masks.append(mask)
                    mask = tuple(mask)
                    n_fields -= 1
                if n_fields > 2:
                    _require(n_fields == 2 + ("attrs" in node) + ("types" in node))
                    # A tuple is what no JSON becomes: equal keys have the same fields.
                    others = marshal.dumps((node.get("attrs", ()), node.get("types", ())), 2)
                key = node["op"], len(references), mask, others
            row = number.get(key)
            if row is None:
                row = number[key] = self._new_row(node, len(references))
            code.append(row)
        # Masks that are equal to such may be of numbers.
        _require({list}.issuperset(map(type, chain(inputs, masks))) and {bool}.issuperset(map(type, chain.from_iterable(masks))))
        self._take_references([*chain.from_iterable(inputs)])
        self.code.extend(code)
        return n_keys + sum(map(self._n_keys.__getitem__, code))

    def _new_row(self, node: dict[str, Any], arity: int) -> int:
        _require(type(node["op"]) is str)
        row = {name: value for name, value in node.items() if name != "meta"} | {"inputs": arity}
        self._n_keys.append(_n_keys([row]))
        self.table.append(row)
        return len(self.table) - 1

    def _take_references(self, references: list[Any]) -> None:
        local: Sequence[int] = [r for r in references if type(r) is int]
        _require(not local or min(local) >= 0)
        if len(local) < len(references):
            argument = count(-1 - len(self.external), -1)
            others = [r for r in references if type(r) is not int]
            if isinstance(self.external, list) or not self.external.take(others):
                self.external = [*self.external, *others]
            local = [r if type(r) is int else next(argument) for r in references]
        self.args.extend(array("i", local))


def _require(condition: object) -> None:
    if not condition:
        raise ValueError


def _n_keys(values: Iterable[Any]) -> int:
    """The number of keys of all objects among values and in them."""
    n_keys, level = 0, list(values)
    while level:
        n_keys += sum(len(value) for value in level if isinstance(value, dict))
        parts = (value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list))
        level = [*chain.from_iterable(parts)]
    return n_keys


# The quick check of a document's shape, and the models' where it is in doubt.
#
# Each distinct part of nodes is checked once: the quick check sees an outline of the document, in which those parts are all nodes
# that there are. The models are asked about those documents only that it does not take, and see all, to say what is wrong and
# where.


def accepted(plain: dict[str, Any], read_type: TypeReader) -> DocumentData | None:
    """The shape of a document with its nodes in outline; None if there is anything that only the models can judge."""
    fields = read_quickly(DocumentData, outline(plain), read_type)
    return None if fields is DOUBT else made(DocumentData, fields)


def judged(plain: dict[str, Any], read_type: TypeReader) -> DocumentData:
    """The shape of a document by the models. Raises DocumentError."""
    from tidu_cli.formats.complaints import judged_as

    in_full = _with_nodes(plain, lambda nodes: list(nodes) if isinstance(nodes, Listed) else _outline(nodes))
    return judged_as(DocumentData, in_full, read_type)


def outline(plain: dict[str, Any]) -> dict[str, Any]:
    """A document whose nodes are one of each kind, without what they read, and one with each meta."""
    return _with_nodes(plain, _outline)


def _with_nodes(plain: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(graphs := plain.get("graphs"), list):
        return plain
    changed = [{**g, "nodes": change(g["nodes"])} if isinstance(g, dict) and "nodes" in g else g for g in graphs]
    return {**plain, "graphs": changed}


def _outline(nodes: Any) -> Any:
    if isinstance(nodes, Listed):
        with_meta = [{"op": "", "inputs": [], "meta": meta} for meta in nodes.meta.values()]
        return [{**row, "inputs": []} for row in nodes.table] + with_meta
    if isinstance(nodes, dict):
        return {name: part if name == "table" else _without_entries(part) for name, part in nodes.items()}
    return nodes


def _without_entries(part: Any) -> Any:
    if isinstance(part, list | Pairs):
        return []
    return {**part, "data": b""} if isinstance(part, dict) and isinstance(part.get("data"), array) else part


# What is asked of all nodes of a graph at once, answered by a walk through them. Of large graphs `bulk` is asked, by columns.
#
# What is said here to be right is right. Of what is not, others find out more, and say where it is wrong.


_BULK = "tidu_cli.formats.nodes.bulk"


@by_columns(_BULK, lambda code, *_: len(code))
def args_in_range(
    code: Column[int], args: Column[int], arity: Sequence[int], n_results: Sequence[int], n: int, n_external: int
) -> bool:
    """Whether each argument is an external, or one of the `n` values of inputs and those of the nodes before its own.

    `arity` and `n_results` are of each row of the table.
    """
    n_values = accumulate(map(n_results.__getitem__, code), initial=n)
    before = chain.from_iterable(map(repeat, n_values, map(arity.__getitem__, code)))  # of each argument
    return all(map(lt, args, before)) and (not args or min(args) >= -n_external)


@by_columns(_BULK, lambda code, *_: len(code))
def are_local(code: Column[int], args: Column[int], masks: Mapping[int, Sequence[bool]]) -> bool:
    """Whether of each node the arguments that the mask of its case says are local values, and the others externals."""
    return all(map(eq, chain.from_iterable(map(masks.__getitem__, code)), map((-1).__lt__, args)))


@by_columns(_BULK, lambda code, *_: len(code))
def operands_of(
    code: Column[int], args: Column[int], arity: Sequence[int], chosen: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, int]]:
    """A node, the number of its operand, and the argument, for each argument that some node has as one chosen by its case."""
    if chosen.keys().isdisjoint(code):
        return
    starts = accumulate(map(arity.__getitem__, code), initial=0)
    for node, (number, start) in enumerate(zip(code, starts, strict=False)):
        for k in chosen.get(number, ()):
            yield node, k, args[start + k]


@by_columns(_BULK, lambda code, _: len(code))
def renamed(code: Column[int], number: dict[int, int]) -> Column[int]:
    """A column with `number[c]` in the place of each c."""
    return column(map(number.__getitem__, code))


@by_columns(_BULK, lambda external, *_: len(external))
def distinct_externals(
    external: Sequence[object], args: Column[int], n_values: Sequence[int]
) -> tuple[Externals, Column[int]] | None:
    """The externals of a file, each once, and the arguments that refer to them; None where they have to be read one by one."""
    return None


@by_columns(_BULK, lambda args, _: len(args))
def is_in_order(args: Column[int], external: Externals) -> bool:
    """Whether it is known that externals are as files have them: none detached, each once, in order of first use by arguments."""
    return False


# What both formats need of a graph that is written.


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
        linear = {} if self.graph.linear is None else {"linear": {"pass": self.graph.linear}}
        return with_meta({"name": self.graph.name, **linear}, self.graph.meta)

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
