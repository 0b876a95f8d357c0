"""The lines of a listing."""

from __future__ import annotations

import html
import shutil
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, count
from typing import Any

from tidu_cli.errors import TiduError, counted, printable
from tidu_cli.graph.closed import named_graphs
from tidu_cli.graph.graph import Case, Document, Externals, Graph, Output
from tidu_cli.graph.keys import Key, key_from_json
from tidu_cli.graph.literals import Literal, literal_to_numbers
from tidu_cli.graph.passes import MEANING, Kind, kind_of
from tidu_cli.graph.types import COMPLEXES, TIMES, TensorType
from tidu_cli.lax.vocabulary import used_records, vocabulary
from tidu_cli.render.dot import draw, to_dot
from tidu_cli.render.folding import declared_text
from tidu_cli.render.picture import n_items
from tidu_cli.rules.vocabulary import Definition, PrimitiveSet

# What values are called in a listing: inputs by their keys, results of nodes a, b, c, ..., z, aa, ab, ... through all graphs.


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(number: int) -> str:
    """The name of this number: a to z, then aa, ab, ...

    >>> [letters(n) for n in (0, 25, 26, 702)]
    ['a', 'z', 'aa', 'aaa']
    """
    text = ""
    while number >= 0:
        text = _LETTERS[number % 26] + text
        number = number // 26 - 1
    return text


def _number(text: str) -> int:
    number = 0
    for letter in text:
        number = number * 26 + _LETTERS.index(letter) + 1
    return number - 1


def key_text(key: Key | str) -> str:
    """A key on one line, in quotes if it has spaces, brackets or the like."""
    text = str(key)
    return text if text and not set(text) & set(" \t\n\r'\"()[]{},:=") and text.isprintable() else f"'{printable(text)}'"


def scalar_text(literal: Literal) -> str | None:
    """A constant without axes as a number with its dtype, `2.0`, `3:i64`; None for others, and for times."""
    if literal.type.shape or literal.type.dtype in TIMES:
        return None
    numbers = literal_to_numbers(literal)
    if literal.type.dtype in COMPLEXES:
        re, im = (float(str(n)) for n in numbers)
        text = str(complex(re, im)).strip("()")
    else:
        text = str(numbers[0])
    return text if literal.type.dtype in ("f64", "bool") else f"{text}:{literal.type.dtype}"


def elements_text(literal: Literal, most: int) -> str:
    """A constant by its first elements: `[1.0, 2.0, …]`."""
    n = min(literal.type.size, most)
    size = len(literal.data) // max(literal.type.size, 1)
    parts = [scalar_text(Literal(TensorType(literal.type.dtype), literal.data[k * size : (k + 1) * size])) or "…" for k in range(n)]
    parts = [part.partition(":")[0] for part in parts] + (["…"] if literal.type.size > n else [])
    return f"[{', '.join(parts)}]"


def attr_text(value: object) -> str:
    """An attr on one line: (1,2), true, {a: 1}."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{','.join(map(attr_text, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {attr_text(v)}' for k, v in value.items())}}}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return str(value)


class Names:
    """The names of the values of a document's graphs. Constants without axes are called by their numbers and have no line."""

    def __init__(self, graphs: Iterable[Graph], taken: Iterable[str]) -> None:
        self.graphs = list(graphs)
        reserved = sorted({_number(t) for t in taken if t and len(t) < 7 and set(t) <= set(_LETTERS)})
        self._gaps = [number - k for k, number in enumerate(reserved)]
        self.inline = [self._constants(graph) for graph in self.graphs]
        self._hidden = [self._before(graph, inline) for graph, inline in zip(self.graphs, self.inline, strict=True)]
        sizes = [graph.n_values - len(graph.inputs) - hidden[-1] for graph, hidden in zip(self.graphs, self._hidden, strict=True)]
        self._first = list(accumulate(sizes, initial=0))

    @staticmethod
    def _constants(graph: Graph) -> dict[int, str]:
        """The codes of constants without axes, and how these are written."""
        texts = {}
        for code in set(graph.code):
            case = graph.cases[code]
            literal = getattr(case.attrs, "value", None) if case.op == "constant" else None
            text = scalar_text(literal) if isinstance(literal, Literal) else None
            if text is not None:
                texts[code] = text
        return texts

    @staticmethod
    def _before(graph: Graph, inline: dict[int, str]) -> array[int]:
        """Of each node how many constants without a line there are before it; and of the end."""
        return array("i", accumulate((code in inline for code in graph.code), initial=0)) if inline else array("i", [0])

    def of(self, graph: int, value: int) -> str:
        """The name of a value of a graph, by their numbers."""
        if graph == Externals.DETACHED:
            return f"detached{value}"
        source = self.graphs[graph]
        if value < len(source.inputs):
            return key_text(source.inputs[value].key)
        number = self._first[graph] + value - len(source.inputs)
        if self.inline[graph]:
            node, _ = source.producer(value)
            text = self.inline[graph].get(source.code[node])
            if text is not None:
                return text
            number -= self._hidden[graph][node]
        return letters(number + bisect_right(self._gaps, number))


def names_of(*graphs: Graph) -> Names:
    """The names of the values of these graphs: none of them is a key."""
    keys = [str(key) for graph in graphs for key in (*(i.key for i in graph.inputs), *(o.key for o in graph.outputs))]
    return Names(graphs, keys)


# The lines of a custom operation: patterns of its inputs and outputs, and the graphs that say what it and its derivatives are.
#
# These graphs have no types, which come with the operands, so names stand alone: `a = exp x`.


_INDENT = "    "


def definition_lines(definition: Definition, primitives: PrimitiveSet, most: int | None) -> Iterator[str]:
    """The lines of a definition. A graph of more than `most` nodes is told of in a line."""
    data = definition.to_data()
    attrs: Mapping[str, Any] = data.get("attrs", {})
    defaults = ", ".join(key_text(name) + ("" if value is None else f"={attr_text(value)}") for name, value in attrs.items())
    ports = [", ".join(f"{_key(port)}: {port['type']}" for port in data[side]) for side in ("inputs", "outputs")]
    yield f"op {key_text(definition.name)}{f'[{defaults}]' if attrs else ''}({ports[0]}) -> ({ports[1]}):"
    for kind, graph in data.items():
        if kind in ("inputs", "outputs", "attrs"):
            continue
        head = f"{_INDENT}{kind}({', '.join(map(_key, graph['inputs']))}):"
        sizes = _sizes(graph["nodes"], primitives)
        if sizes is None or (most is not None and len(sizes) > most):
            yield f"{head} {counted(len(graph['nodes']), 'node')}"
        else:
            yield head
            yield from (f"{2 * _INDENT}{line}" for line in _lines(graph, sizes, set(attrs)))


def _key(port: Mapping[str, Any]) -> str:
    return key_text(key_from_json(port["key"]))


def _sizes(nodes: Sequence[Mapping[str, Any]], primitives: PrimitiveSet) -> list[int] | None:
    """How many results each node has; None if that depends on attrs which come with the operation's."""
    sizes = []
    for node in nodes:
        domain = primitives[node["op"]].domain
        attrs = None
        if domain.n_results is not type(domain).n_results:  # else it is one, whatever the attrs
            if domain.attrs.graphs:
                return None
            try:
                attrs = primitives.parse_attrs(node["op"], node.get("attrs", {}))
            except TiduError:
                return None
        sizes.append(domain.n_results(attrs, len(node["inputs"])))
    return sizes


def _lines(graph: Mapping[str, Any], sizes: Sequence[int], taken: set[str]) -> Iterator[str]:
    """The lines of nodes and outputs. Attrs of the operation, which are `taken`, may stand among operands, as numbers do."""
    names = [_key(port) for port in graph["inputs"]]
    keys = taken.union(names, map(_key, graph["outputs"]))
    fresh = (name for name in map(letters, count()) if name not in keys)
    for node, size in zip(graph["nodes"], sizes, strict=True):
        attrs = node.get("attrs", {})
        number = _scalar(attrs) if node["op"] == "constant" else None
        if number is not None:
            names.append(number)
            continue
        results = [next(fresh) for _ in range(size)]
        given = ", ".join(f"{name}={attr_text(value)}" for name, value in attrs.items())
        op = f"{node['op']}[{given}]" if given else node["op"]
        yield f"{', '.join(results)} = {' '.join([op, *(names[x] for x in node['inputs'])])}"
        names += results
    returned = [(_key(output), "0" if output["value"] is None else names[output["value"]]) for output in graph["outputs"]]
    yield f"return {', '.join(key if key == name else f'{key} = {name}' for key, name in returned)}"


def _scalar(attrs: Mapping[str, Any]) -> str | None:
    """A constant without axes: a number with its dtype, or the attr that it is; None for others, and for pairs of numbers."""
    value = attrs.get("value")
    if isinstance(value, Literal) or not isinstance(value, Mapping):
        return None
    type_, data = str(value.get("type", "")), value.get("data")
    if not type_.endswith("[]") or not isinstance(data, list) or len(data) != 1:
        return None
    dtype, number = type_.removesuffix("[]"), data[0]
    if isinstance(number, Mapping):
        return key_text(str(number["attr"])) if "attr" in number else None
    if isinstance(number, list):
        return None
    return attr_text(number) if dtype in ("f64", "bool") else f"{attr_text(number)}:{dtype}"


FOLDED = 60
"""A graph of more nodes is folded."""

_SHOWN = 20
"""So many nodes are shown before and after those that are folded."""

_ELEMENTS = 4


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
        value = "0" if output.value is None else self._value(output.value)
        key = key_text(output.key)
        return key if value == key else f"{key} = {value}"

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


# Documents in notebooks: what they are in a line, the picture of a small one, and the listing, folded.


_DRAWN = 60
"""A picture of more things is not drawn."""


def svg_of(document: Document) -> str | None:
    """The picture of a small document; None of a large one, or without Graphviz."""
    if shutil.which("dot") is None or sum(graph.n_nodes for graph in document.graphs) > _DRAWN or n_items(document)[0] > _DRAWN:
        return None
    try:
        return draw(to_dot(document), "svg").decode()
    except TiduError:
        return None  # a picture is an extra: the listing is there


def html_of(document: Document) -> str:
    """A line, the picture if there is one, and the listing."""
    picture = svg_of(document)
    svg = picture[picture.index("<svg") :] if picture else ""
    text = html.escape("\n".join(listing(document)))
    return (
        f"<div><code>{html.escape(repr(document))}</code>{svg}<details><summary>listing</summary><pre>{text}</pre></details></div>"
    )
