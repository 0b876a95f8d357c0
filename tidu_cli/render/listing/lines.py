"""The lines of a listing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from tidu_cli.errors import counted
from tidu_cli.graph.closed import named_graphs
from tidu_cli.graph.graph import Case, Document, Graph, Output
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.passes import MEANING, Kind, kind_of
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.lax.vocabulary import used_records
from tidu_cli.render.listing.definitions import definition_lines
from tidu_cli.render.listing.names import Names, attr_text, elements_text, key_text, names_of
from tidu_cli.render.text import declared_text

FOLDED = 60
"""A graph of more nodes is folded."""

_SHOWN = 20
"""So many nodes are shown before and after those that are folded."""

_ELEMENTS = 4
_INDENT = "    "


def listing(document: Document, *, every: bool = False) -> Iterator[str]:
    """The lines of a document: record types, custom operations, graphs, bindings. Of large graphs head and tail, unless `every`."""
    for record in used_records(document):
        yield f"type {declared_text(record)}"
        for view in record.views:
            yield f"{_INDENT}view {view.name} is {{{', '.join(f'{name}: {type_}' for name, type_ in view.properties)}}}"
    primitives = vocabulary(document.cases)
    for definition in primitives.definitions:
        yield from definition_lines(definition, primitives, None if every else FOLDED)
    names = names_of(*document.graphs)
    for k, detached in enumerate(document.detached):
        yield f"detached{k}{f': {detached.type}' if detached.type else ''} = {detached.digest}"
    for number, graph in enumerate(document.graphs):
        if number:
            yield ""
        yield from Lines(names, number, every).graph(_remark(graph))
    for binding in document.bindings:
        yield f"{key_text(binding.key)} is {names.of(binding.graph, binding.value)}"


def _remark(graph: Graph) -> str:
    kind = kind_of(graph)
    told = "" if kind is Kind.PRIMAL else MEANING[kind]
    if graph.linear is not None:
        told = f"linear, pass {graph.linear}: {told}"
    return f"  # {told}" if told else ""


class Lines:
    """The lines of one graph of some, by its number, and of the graphs within its nodes."""

    def __init__(self, names: Names, number: int, every: bool, indent: str = "") -> None:
        self._names, self._number, self._every = names, number, every
        self._graph = names.graphs[number]
        self._indent = indent
        self._texts: dict[int, str] = {}
        self._within: dict[int, bool] = {}

    def graph(self, remark: str = "", name: str | None = None) -> Iterator[str]:
        """The header, the nodes and what is returned."""
        graph = self._graph
        inputs = ", ".join(f"{key_text(i.key)}: {i.type}" for i in graph.inputs)
        yield f"{self._indent}{key_text(graph.name) if name is None else name}({inputs}):{remark}"
        if self._every or graph.n_nodes <= FOLDED:
            yield from self._nodes(range(graph.n_nodes))
        else:
            end = graph.n_nodes - _SHOWN
            yield from self._nodes(range(_SHOWN))
            ops: Counter[str] = Counter()
            for code, n in Counter(graph.code[_SHOWN:end]).items():
                ops[graph.cases[code].op] += n
            told = ", ".join(f"{n:,} {op}" for op, n in ops.most_common(5)) + (", …" if len(ops) > 5 else "")
            yield f"{self._indent}{_INDENT}… {counted(end - _SHOWN, 'node')}: {told}"
            yield from self._nodes(range(end, graph.n_nodes))
        if graph.outputs:
            yield f"{self._indent}{_INDENT}return {', '.join(map(self._output, graph.outputs))}"

    def _output(self, output: Output) -> str:
        found = "0" if output.value is None else self._value(output.value)
        key = key_text(output.key)
        return key if found == key else f"{key} = {found}"

    def _value(self, argument: int) -> str:
        return self._names.of(*self._graph.place(self._number, argument))

    def _nodes(self, nodes: range) -> Iterator[str]:
        graph, firsts = self._graph, self._graph.firsts
        inline = self._names.inline[self._number]
        for node in nodes:
            code = graph.code[node]
            if code in inline:
                continue
            case = graph.cases[code]
            results = zip(range(firsts[node], firsts[node + 1]), case.results, strict=True)
            left = ", ".join(f"{self._names.of(self._number, value)}: {type_}" for value, type_ in results)
            right = [self._value(x) for x in graph.operands(node)]
            if case.mask is not None:
                right = [f"{x}'" if active else x for x, active in zip(right, case.mask, strict=True)]
            yield f"{self._indent}{_INDENT}{left} = {' '.join([self._op(code, case), *right])}"
            if self._within[code]:
                for name, closed in named_graphs(case.attrs):
                    yield from Lines(names_of(closed.graph), 0, self._every, self._indent + 2 * _INDENT).graph(name=name)

    def _op(self, code: int, case: Case) -> str:
        """The op with its attrs, once a case."""
        text = self._texts.get(code)
        if text is None:
            attrs = case.attrs.identity(lambda closed: _NESTED)
            parts = [f"{key}={attr_text(value)}" for key, value in attrs.items() if not _nested(value)]
            self._within[code] = any(map(_nested, attrs.values()))
            literal = getattr(case.attrs, "value", None)
            if case.op == "constant" and isinstance(literal, Literal):
                parts = [elements_text(literal, _ELEMENTS)]
                text = f"{case.op} {parts[0]}"
            else:
                text = f"{case.op}[{', '.join(parts)}]" if parts else case.op
            self._texts[code] = text
        return text


_NESTED = object()


def _nested(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_nested, value))
    if isinstance(value, Mapping):
        return any(map(_nested, value.values()))
    return value is _NESTED
