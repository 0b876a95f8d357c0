"""What of a large document a picture shows: the graphs that there is room for, and which nodes may be drawn as one.

The graphs are those of the document, and those within their nodes. Folds are runs of nodes that only hand a value on, and what is
computed of constants. A fold never hides a branch: it has one result that others read, or none but constants go into it. So folding
makes no cycles.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph, closed_graphs
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, literal_to_numbers
from tidu_cli.graph.types import COMPLEXES, RecordType, TensorType, Type, itemsize, parse_type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.catalogue import Part
from tidu_cli.rules.catalogue import short as short

Owner = tuple[int, int]
"""A node that holds graphs: the number of its frame, and its own."""

ROOM = 150
"""How many inputs, nodes and outputs of graphs within nodes are drawn: loops of more are folded, the innermost first."""

APART = 500
"""Likewise where each has a picture of its own."""


class Frame(Frozen, slots=False, eq=False):
    """A graph of the document; or one within the node `owner`, of which `part` says what it is for."""

    graph: Graph
    owner: Owner | None = None
    part: Part | None = None


def framed(document: Document, room: int = ROOM) -> list[Frame]:
    """The graphs of the document, then those within nodes, outer ones first: all of a node that there is room for, or none."""
    frames = [Frame(graph) for graph in document.graphs]
    for g, frame in enumerate(frames):  # which grows
        for node in _holding(frame.graph):
            case = frame.graph.case(node)
            graphs = [closed.graph for closed in closed_graphs(case.attrs)]
            size = sum(len(graph.inputs) + graph.n_nodes + len(graph.outputs) for graph in graphs)
            if size > room:
                continue
            room -= size
            tell = vocabulary(frame.graph.cases)[case.op].catalogue.parts
            parts = tell(case.attrs) if tell else [Part(f"graph {k}") for k in range(len(graphs))]
            frames += [Frame(graph, (g, node), part) for graph, part in zip(graphs, parts, strict=True)]
    return frames


def opened(frames: Sequence[Frame]) -> Mapping[Owner, Sequence[int]]:
    """The numbers of the frames within each node."""
    numbers: dict[Owner, list[int]] = {}
    for g, frame in enumerate(frames):
        if frame.owner is not None:
            numbers.setdefault(frame.owner, []).append(g)
    return numbers


def _holding(graph: Graph) -> Iterator[int]:
    codes = {code for code in set(graph.code) if closed_graphs(graph.cases[code].attrs)}
    return (node for node, code in enumerate(graph.code) if code in codes) if codes else iter(())


_SEVERAL = -2
"""Instead of a reader: a value is read by more than one node, or is an output."""


def folds(graph: Graph, apart: Container[int] = ()) -> list[int]:
    """For each node the node that it is drawn with: the last of its fold, or itself. Linear in the size of the graph.

    A node joins its reader if nothing else reads it and the reader has no other operand of this graph, not counting constants
    and, in linear nodes, inactive operands, which are held fixed. Nodes computed of constants alone join one another, and
    together their reader, if they have one only. The nodes `apart` are in no fold.
    """
    feeding, constant = _feeding(graph)
    component = _components(feeding, constant)
    reader = _readers(graph, component)
    leader = list(range(graph.n_nodes))
    for node in range(graph.n_nodes - 1, -1, -1):
        if component[node] != node:
            leader[node] = leader[component[node]]
        elif node in apart or (read_by := reader[node]) in apart:
            continue
        elif read_by > node and (constant[node] or feeding[read_by][1] == {node}):
            leader[node] = leader[read_by]
    return leader


def _made_by(graph: Graph, argument: int) -> int:
    """The node of this graph that makes what an argument stands for; -1 for inputs and values of other graphs."""
    return graph.producer(argument)[0] if argument >= len(graph.inputs) else -1


def _feeding(graph: Graph) -> tuple[list[tuple[set[int], set[int]]], list[bool]]:
    """Of each node the constant nodes that it reads, and those it depends on, -1 for inputs; and whether it is constant itself."""
    feeding: list[tuple[set[int], set[int]]] = []
    constant: list[bool] = []
    for case, arguments in graph.nodes():
        nodes = [_made_by(graph, argument) for argument in arguments]
        fixed = {node for node in nodes if node >= 0 and constant[node]}
        moving = {n for slot, n in enumerate(nodes) if n not in fixed and (case.mask is None or case.mask[slot])}
        feeding.append((fixed, moving))
        constant.append(fixed.issuperset(nodes))
    return feeding, constant


def _components(feeding: list[tuple[set[int], set[int]]], constant: list[bool]) -> list[int]:
    """Of each constant node the last one of those it hangs together with; of any other node itself."""
    parent = list(range(len(feeding)))

    def last(node: int) -> int:
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    for node, (fixed, _) in enumerate(feeding):
        if constant[node]:
            for other in fixed:
                parent[last(other)] = node
    return [last(node) for node in range(len(feeding))]


def _readers(graph: Graph, component: list[int]) -> list[int]:
    """Of each component the only node outside it that reads it, -1 if none does, or _SEVERAL."""
    reader = [-1] * graph.n_nodes

    def read(argument: int, by: int) -> None:
        node = _made_by(graph, argument)
        if node >= 0 and (by < 0 or component[node] != component[by]):
            one = component[node]
            reader[one] = by if reader[one] in (-1, by) else _SEVERAL

    for node, (_, arguments) in enumerate(graph.nodes()):
        for argument in arguments:
            read(argument, node)
    for output in graph.outputs:
        if output.value is not None:
            read(output.value, _SEVERAL)
    return reader


# Labels: names, attrs with long constants elided, and what keys mean in words.


_ATTRS = 56
_ELEMENTS = 3
_TYPE = 44


def name(thing: object) -> str:
    """A name on one line: its line ends are shown, and only the picture's own break lines."""
    return short(str(thing)).replace("\n", "\\n")


def attrs_text(case: Case) -> str:
    """The attrs of a case, `axes=[0], ...`, cut short, and of constants the first elements."""
    return short(", ".join(f"{key}={_attr(value)}" for key, value in case.attrs.identity(_size).items()), _ATTRS)


def type_text(type_: Type) -> str:
    """A type; of a long record as much as there is room for: `Segment{a: Point{…}, b: Point{…}}`, `{x: f64[], y: f64[], …}`."""
    if not isinstance(type_, RecordType) or len(str(type_)) <= _TYPE:
        return str(type_)
    return fields_text(type_, type_.name)


def fields_text(type_: RecordType, before: str = "") -> str:
    """The fields of a record with their types, as many as there is room for, after this name."""
    opening, closing = "()" if type_.is_tuple else "{}"
    fields = [("" if type_.is_tuple else f"{name}: ", field) for name, field in type_.fields]
    texts = [name + str(field) for name, field in fields]
    if sum(map(len, texts)) > _TYPE:
        texts = [name + _closed(field) for name, field in fields]
    shown, left = 0, _TYPE
    while shown < len(texts) and (not shown or len(texts[shown]) <= left):
        left -= len(texts[shown]) + 2
        shown += 1
    return f"{before}{opening}{', '.join([*texts[:shown], *(['…'] if shown < len(texts) else [])])}{closing}"


def _closed(type_: Type) -> str:
    """A type without the fields of a record: `Point{…}`."""
    if not isinstance(type_, RecordType) or str(type_) == type_.name:
        return str(type_)
    return "(…)" if type_.is_tuple else f"{type_.name}{{…}}"


def port_text(key: Key, type_: Type) -> str:
    """An input's name and type; below, the fields of a declared record."""
    fields = f"\n{fields_text(type_)}" if isinstance(type_, RecordType) and type_.name and not type_.tangent else ""
    return f"{name(key)}: {type_text(type_)}{fields}"


def declared_text(type_: Type) -> str:
    """What a declared record type is: `Point is {x: f64[], y: f64[]}`; of others ''."""
    if not isinstance(type_, RecordType) or not type_.name or type_.tangent:
        return ""
    return f"{type_.name} is {{{', '.join(f'{name}: {field}' for name, field in type_.fields)}}}"


def key_words(key: Key) -> str:
    """`the cotangent of x`, and so on for nested keys."""
    words = name(Key(key.name))
    for step in key.path:
        words = f"the {'tangent' if step > 0 else 'cotangent'} of {words}"
    return words


def _size(closed: ClosedGraph) -> str:
    n = closed.graph.n_nodes
    return f"{n} node{'' if n == 1 else 's'}"


def _attr(value: object) -> str:
    if isinstance(value, dict) and set(value) == {"type", "data"} and isinstance(value["data"], bytes):
        return _constant(parse_type(value["type"]), value["data"])
    return str(value)


def _constant(type_: TensorType, data: bytes) -> str:
    n = min(type_.size, _ELEMENTS)
    numbers = literal_to_numbers(Literal(TensorType(type_.dtype, (n,)), data[: n * itemsize(type_.dtype)]))
    if type_.dtype in COMPLEXES:
        numbers = [f"{re}{'' if str(im).startswith('-') else '+'}{im}i" for re, im in zip(numbers[::2], numbers[1::2], strict=True)]
    shown = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in numbers]
    listed = ", ".join(shown + ["..."] * (type_.size > n))
    return f"{listed if type_.shape == () else f'[{listed}]'}: {type_}"
