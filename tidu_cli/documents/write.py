"""Documents to bytes, deterministic byte for byte: the layout of JSON, and packed nodes."""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import msgpack

from tidu_cli.graph.graph import Case, Document, Externals, Graph, Output, column
from tidu_cli.graph.keys import key_to_json
from tidu_cli.graph.large import is_large
from tidu_cli.primitives.vocabulary import used_definitions, used_records
from tidu_cli.watching import Watched, watch

INDENT = " " * 16
"""Where the second input, node or output of a graph begins: under the first."""


def format_document(document: Document, format: str, *, types: bool = False, listed: bool | None = None) -> bytes:
    """Write a document as "json" or "msgpack".

    Nodes are a list in JSON and packed in msgpack, unless `listed` says otherwise. `types` gives every node its types.
    A graph whose nodes carry types or meta is always written as a list: packed nodes have no place for them.
    """
    if format not in ("json", "msgpack"):
        raise ValueError(f"unknown format {format!r}")
    binary = format == "msgpack"
    writers = [
        _GraphWriter(document, graph, binary=binary, types=types, listed=not binary if listed is None else listed)
        for graph in document.graphs
    ]
    if binary:
        return _msgpack(document, writers)
    return "".join(_json(document, writers)).encode()


class _GraphWriter:
    """What both formats need of one graph."""

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

    @cached_property
    def references(self) -> list[object]:
        """The externals as listed nodes and outputs refer to them."""
        detached = self.document.detached
        return [detached[v].digest if g == Externals.DETACHED else [g, v] for g, v in self.graph.external]

    def head(self) -> dict[str, object]:
        """The fields before the inputs."""
        graph = self.graph
        head: dict[str, object] = {"name": graph.name}
        if graph.linear is not None:
            head["linear"] = {"pass": graph.linear}
        return head if graph.meta is None else {**head, "meta": graph.meta}

    def inputs(self) -> list[dict[str, object]]:
        """The declarations of inputs."""
        return [_with_meta({"key": key_to_json(i.key), "type": str(i.type)}, i.meta) for i in self.graph.inputs]

    def outputs(self) -> list[dict[str, object]]:
        """The declarations of outputs."""
        return [
            _with_meta({"key": key_to_json(o.key), "value": self._value(o), "type": str(o.type)}, o.meta)
            for o in self.graph.outputs
        ]

    def _value(self, output: Output) -> object:
        value = output.value
        return value if value is None or value >= 0 else self.references[~value]

    def common(self, case: Case) -> dict[str, object]:
        """The fields `attrs` and `role` of nodes of a case, where they are needed."""
        fields: dict[str, object] = {}
        if attrs := case.attrs.to_data(binary=self.binary):
            fields["attrs"] = attrs
        if case.mask is not None:
            fields["role"] = {"linearized": {"active_mask": list(case.mask)}}
        return fields

    def needs_types(self, args: Sequence[int]) -> bool:
        """Whether a node with these arguments carries types."""
        return self.types or not self.detached.isdisjoint(args)

    def packed(self) -> dict[str, Any]:
        """The nodes as columns; `code` and `args` are arrays."""
        graph, cases = self.graph, self.graph.cases
        table: dict[str, int] = {}
        rows: list[dict[str, object]] = []
        row_of_case: dict[int, int] = {}
        for number in dict.fromkeys(graph.code):
            case = cases[number]
            # Cases that differ in types only share a row. Rows are equal where their file forms are.
            row = {"op": case.op, **self.common(case), "inputs": len(case.operands), "outputs": len(case.results)}
            row_of_case[number] = table.setdefault(repr(row), len(rows))
            if row_of_case[number] == len(rows):
                rows.append(row)
        if is_large(graph.n_nodes):
            from tidu_cli.documents.bulk import is_in_order, renamed

            code = renamed(graph.code, row_of_case)
            if not len(graph.external) or is_in_order(graph.args, graph.external):
                return {"table": rows, "code": code, "args": graph.args, "external": list(graph.external)}
        else:
            code = column(map(row_of_case.__getitem__, graph.code))
        # Only what the nodes read, once each, in order of first use.
        external: dict[object, int] = {}
        renumbered: dict[int, int] = {}
        for argument in dict.fromkeys(a for a in graph.args if a < 0):
            g, v = graph.external.graph[~argument], graph.external.value[~argument]
            renumbered[argument] = -1 - external.setdefault((g, v), len(external))
        same = all(old == new for old, new in renumbered.items())
        return {
            "table": rows,
            "code": code,
            "args": graph.args if same else column(renumbered.get(a, a) for a in graph.args),
            "external": [list(reference) for reference in external],  # type: ignore[call-overload]
        }


def _watched(writers: Sequence[_GraphWriter]) -> Watched:
    return watch("writing", sum(w.graph.n_nodes for w in writers if w.listed))


def _with_meta(fields: dict[str, object], meta: object) -> dict[str, object]:
    return fields if meta is None else {**fields, "meta": meta}


def _types(document: Document) -> dict[str, dict[str, str]]:
    return {type_.name: {name: str(field) for name, field in type_.fields} for type_ in used_records(document)}


def _ops(document: Document) -> dict[str, dict[str, object]]:
    used = {code for graph in document.graphs for code in graph.code}
    return {d.name: _with_meta(d.to_data(), d.meta) for d in used_definitions(document.cases, used)}


def _bindings(document: Document) -> list[dict[str, object]]:
    return [{"input": key_to_json(b.key), "value": [b.graph, b.value]} for b in document.bindings]


def _msgpack(document: Document, writers: Sequence[_GraphWriter]) -> bytes:
    data = _with_meta({"tidu": 1}, document.meta)
    if types := _types(document):
        data["types"] = types
    if ops := _ops(document):
        data["ops"] = ops
    watched = _watched(writers)
    data["graphs"] = [
        {
            **w.head(),
            "inputs": w.inputs(),
            "nodes": list(watched(_nodes(w))) if w.listed else _binary(w.packed()),
            "outputs": w.outputs(),
        }
        for w in writers
    ]
    if document.bindings:
        data["bindings"] = _bindings(document)
    packed: bytes = msgpack.packb(data)
    return packed


def _binary(nodes: dict[str, Any]) -> dict[str, object]:
    return {name: _little_endian(part) if isinstance(part, array) else part for name, part in nodes.items()}


def _little_endian(values: array[int]) -> dict[str, object]:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return {"dtype": "i32", "data": values.tobytes()}


def _nodes(writer: _GraphWriter) -> Iterator[dict[str, object]]:
    graph, cases, position = writer.graph, writer.graph.cases, 0
    common = {number: writer.common(cases[number]) for number in set(graph.code)}
    for i, number in enumerate(graph.code):
        case = cases[number]
        args = graph.args[position : position + len(case.operands)]
        position += len(args)
        node = {"op": case.op, "inputs": [a if a >= 0 else writer.references[~a] for a in args], **common[number]}
        if writer.needs_types(args):
            node["types"] = [str(t) for t in case.results]
        yield _with_meta(node, graph.node_meta.get(i))


def _json(document: Document, writers: Sequence[_GraphWriter]) -> Iterator[str]:
    watched = _watched(writers)
    yield '{"tidu": 1,\n'
    if document.meta is not None:
        yield f' "meta": {_text(document.meta)},\n'
    if types := _types(document):
        texts = [f"{_text(name)}: {_text(fields)}" for name, fields in types.items()]
        yield ' "types": {\n  ' + ",\n  ".join(texts) + "},\n"
    if ops := _ops(document):
        yield f' "ops": {_ops_text(ops)},\n'
    yield ' "graphs": [\n'
    for number, writer in enumerate(writers):
        if number:
            yield ",\n"
        yield f"   {_text(writer.head())[:-1]},\n"
        yield f'    "inputs":  {_lines(map(_text, writer.inputs()))},\n'
        yield '    "nodes":   '
        yield _lines(watched(_node_texts(writer))) if writer.listed else _packed_text(writer.packed())
        yield f',\n    "outputs": {_lines(map(_text, writer.outputs()))}}}'
    yield "]"
    if document.bindings:
        yield f',\n "bindings": {_lines(map(_text, _bindings(document)), " " * 14)}'
    yield "}\n"


def _ops_text(ops: dict[str, dict[str, object]]) -> str:
    # A line for each field of a definition, and for each node.
    texts = []
    for name, definition in ops.items():
        fields = [f"{_text(kind)}: {_text(part)}" for kind, part in definition.items()]
        texts.append(f"{_text(name)}: {{" + ",\n    ".join(fields) + "}")
    return "{\n  " + ",\n  ".join(texts) + "}"


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(texts: Iterable[str], indent: str = INDENT) -> str:
    return f"[{(',' + chr(10) + indent).join(texts)}]"


def _packed_text(nodes: dict[str, Any]) -> str:
    table = _lines(map(_text, nodes["table"]), INDENT + " " * 10)
    columns = [f'"{name}": {_text(list(nodes[name]))}' for name in ("code", "args", "external")]
    return (",\n" + INDENT).join([f'{{"table": {table}', *columns]) + "}"


def _node_texts(writer: _GraphWriter) -> Iterator[str]:
    # The text of a node is that of its case, made once, around its inputs.
    graph, cases, position = writer.graph, writer.graph.cases, 0
    ends = {number: _ends(writer, cases[number]) for number in set(graph.code)}
    external = [_text(reference) for reference in writer.references]
    inputs = [str(a) if a >= 0 else external[~a] for a in graph.args]
    detached, node_meta, types = writer.detached, graph.node_meta, writer.types
    for i, number in enumerate(graph.code):
        before, after, result_types, arity = ends[number]
        end = position + arity
        text = f"{before}{', '.join(inputs[position:end])}{after}"
        if types or (detached and writer.needs_types(graph.args[position:end])):
            text += result_types
        if i in node_meta:
            text += f', "meta": {_text(node_meta[i])}'
        yield text + "}"
        position = end


def _ends(writer: _GraphWriter, case: Case) -> tuple[str, str, str, int]:
    common = _text(writer.common(case))[1:-1]
    types = _text([str(t) for t in case.results])
    return (
        f'{{"op": {_text(case.op)}, "inputs": [',
        "]" + (f", {common}" if common else ""),
        f', "types": {types}',
        len(case.operands),
    )
