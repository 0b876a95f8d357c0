"""Documents as JSON, in a layout for readers: a line for each input, node and output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tidu_cli.formats.json.text import json_text
from tidu_cli.formats.nodes.writer import GraphWriter, PackedNodes
from tidu_cli.graph.graph import Case
from tidu_cli.watching import Watched

INDENT = " " * 16
"""Where the second input, node or output of a graph begins: under the first."""


def texts(before: Mapping[str, Any], writers: Sequence[GraphWriter], after: Mapping[str, Any], watched: Watched) -> Iterator[str]:
    """The text of a document with these fields before and after its graphs."""
    opening = "{"
    for name, value in before.items():
        yield f"{opening}{json_text(name)}: {_LAYOUTS.get(name, json_text)(value)},\n"
        opening = " "
    yield ' "graphs": [\n'
    for number, writer in enumerate(writers):
        if number:
            yield ",\n"
        yield f"   {json_text(writer.head())[:-1]},\n"
        yield f'    "inputs":  {_lines(map(json_text, writer.inputs()))},\n'
        yield '    "nodes":   '
        if writer.listed:
            yield from _listed(writer, watched)
        else:
            yield _packed(writer.packed())
        yield f',\n    "outputs": {_lines(map(json_text, writer.outputs()))}}}'
    yield "]"
    for name, values in after.items():
        yield f",\n {json_text(name)}: {_lines(map(json_text, values), ' ' * (len(name) + 6))}"
    yield "}\n"


def _lines(entries: Iterable[str], indent: str = INDENT) -> str:
    return f"[{(',' + chr(10) + indent).join(entries)}]"


def _object(fields: Mapping[str, Any], indent: int, opening: str = "{", text: Callable[[Any], str] = json_text) -> str:
    """An object with a line for each field."""
    return opening + (",\n" + " " * indent).join(f"{json_text(name)}: {text(value)}" for name, value in fields.items()) + "}"


def _declaration(record: Mapping[str, Any]) -> str:
    if isinstance(record.get("fields"), str) or "views" not in record:
        return json_text(record)
    views = _object(record["views"], 6, "{\n      ", lambda view: _object(view, 8))
    return f'{{"fields": {json_text(record["fields"])},\n    "views": {views}}}'


_LAYOUTS: Mapping[str, Callable[[Any], str]] = {
    "types": lambda types: _object(types, 2, "{\n  ", _declaration),
    # A line for each field of a definition.
    "ops": lambda ops: _object(ops, 2, "{\n  ", lambda definition: _object(definition, 4)),
    "passes": lambda passes: _object(passes, 12),
}


def _packed(nodes: PackedNodes) -> str:
    table = _lines(map(json_text, nodes.table), INDENT + " " * 10)
    columns: dict[str, Iterable[object]] = {"code": chain.from_iterable(nodes.code), "args": nodes.args, "external": nodes.external}
    return (",\n" + INDENT).join([f'{{"table": {table}', *(f'"{name}": {json_text(list(v))}' for name, v in columns.items())]) + "}"


def _listed(writer: GraphWriter, watched: Watched) -> Iterator[str]:
    separator = ",\n" + INDENT
    opening = "["
    for nodes in _node_texts(writer, watched):
        yield opening
        yield separator.join(nodes)
        opening = separator
    yield "]" if opening == separator else "[]"


def _node_texts(writer: GraphWriter, watched: Watched) -> Iterator[list[str]]:
    # The text of a node is that of its case, made once, around its inputs.
    cases, common = writer.graph.cases, writer.common()
    ends = {number: _ends(cases[number], fields) for number, fields in common.items()}
    detached, node_meta, types, external = writer.detached, writer.graph.node_meta, writer.types, _external(writer)
    for block in writer.blocks():
        inputs = [str(a) if a >= 0 else external(a) for a in block.args]
        made: list[str] = []
        end = 0
        for i, number in enumerate(watched(block.code), block.first):
            before, after, result_types, arity = ends[number]
            start, end = end, end + arity
            text = f"{before}{', '.join(inputs[start:end])}{after}"
            if types or (detached and writer.needs_types(block.args[start:end])):
                text += result_types
            if i in node_meta:
                text += f', "meta": {json_text(node_meta[i])}'
            made.append(text + "}")
        yield made


def _external(writer: GraphWriter) -> Callable[[int], str]:
    """The texts of references to other graphs, by arguments."""
    if writer.detached:
        return lambda argument: json_text(writer.reference(argument))
    graph, value = writer.graph.external.graph, writer.graph.external.value
    return lambda argument: f"[{graph[~argument]}, {value[~argument]}]"


def _ends(case: Case, common: Mapping[str, object]) -> tuple[str, str, str, int]:
    fields = json_text(common)[1:-1]
    types = json_text([str(t) for t in case.results])
    return (
        f'{{"op": {json_text(case.op)}, "inputs": [',
        "]" + (f", {fields}" if fields else ""),
        f', "types": {types}',
        len(case.operands),
    )
