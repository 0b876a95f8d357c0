"""Documents as DOT text: a cluster per graph, references to other graphs dashed, active inputs marked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidu_cli.graph.graph import Case, Document, Externals, Graph

_COLOURS = {"primal": "#1b6ca8", "tangent": "#c2571a", "cotangent": "#7b3fa0"}
"""Primal ports are blue, tangents orange, cotangents purple."""

_SHOWN = 40
"""Names and attrs longer than this many characters are cut short."""

_ENTITY = re.compile(r"&(?=#?\w+;)")


def to_dot(document: Document) -> str:
    """The picture of a document as DOT text, the same for the same document. Linear in its size."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Document) -> Iterator[str]:
    yield "digraph tidu {"
    yield "  rankdir=TB; compound=true;"
    yield '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica", fontsize=11];'
    yield '  edge [arrowsize=0.7, color="#444444", labelfontname="Helvetica", labelfontsize=8, labelfontcolor="#777777"];'
    for g, graph in enumerate(document.graphs):
        yield f"  subgraph cluster_{g} {{"
        yield f'    label={_quoted(_title(document, g))}; fontname="Helvetica"; style=filled; fillcolor="#f6f6f6"; color="#bbbbbb";'
        yield from _nodes(g, graph)
        yield "  }"
    for k, entry in enumerate(document.detached):
        yield f"  d{k} [label={_quoted(entry.digest[:15] + '...')}, shape=note, style=dashed];"
    for g in range(len(document.graphs)):
        yield from _edges(document, g)
    for b in document.bindings:
        for g, graph in enumerate(document.graphs):
            for i, declared in enumerate(graph.inputs):
                if declared.key == b.key:
                    yield f"  {_place(document.graphs[b.graph], b.graph, b.value)} -> g{g}v{i} [style=dotted, label=is];"
    yield "}"


def _title(document: Document, g: int) -> str:
    graph = document.graphs[g]
    kind = f"linear, pass {graph.linear}" if graph.linear is not None else ""
    head = "head" if g == len(document.graphs) - 1 and g else ""
    notes = ", ".join(filter(None, (kind, head)))
    name = _name(graph.name)
    return f"{name} ({notes})" if notes else name


def _nodes(g: int, graph: Graph) -> Iterator[str]:
    for i, declared in enumerate(graph.inputs):
        label, colour = _quoted(f"{_name(declared.key)}: {declared.type}"), _colour(declared.key.path)
        yield f'    g{g}v{i} [label={label}, shape=ellipse, color="{colour}"];'
    for node, code in enumerate(graph.code):
        yield f"    g{g}n{node} [label={_quoted(_label(graph.cases[code]))}];"
    for k, output in enumerate(graph.outputs):
        zero = " = 0" if output.value is None else ""
        label, colour = _quoted(f"{_name(output.key)}: {output.type}{zero}"), _colour(output.key.path)
        yield f'    g{g}o{k} [label={label}, shape=ellipse, peripheries=2, color="{colour}"];'


def _edges(document: Document, g: int) -> Iterator[str]:
    graph, end = document.graphs[g], 0
    colour = _colour(graph.inputs[0].key.path if graph.inputs else (1,))
    for node, code in enumerate(graph.code):
        case = graph.cases[code]
        start, end = end, end + len(case.operands)
        for k, argument in enumerate(graph.args[start:end]):
            active = colour if case.mask is not None and case.mask[k] else None
            yield _edge(document, g, argument, f"g{g}n{node}", active, number=k if len(case.operands) > 1 else None)
    for k, output in enumerate(graph.outputs):
        if output.value is not None:
            yield _edge(document, g, output.value, f"g{g}o{k}", colour if graph.linear is not None else None)


def _edge(document: Document, g: int, argument: int, target: str, active: str | None, number: int | None = None) -> str:
    graph, styles = document.graphs[g], []
    if argument >= 0:
        source = _place(graph, g, argument)
    else:
        other, value = graph.external.graph[-1 - argument], graph.external.value[-1 - argument]
        source = f"d{value}" if other == Externals.DETACHED else _place(document.graphs[other], other, value)
        styles.append("style=dashed")
    if active is not None:
        styles.append(f'penwidth=2, color="{active}"')
    if number is not None:
        styles.append(f"headlabel={number}")
    return f"  {source} -> {target}" + (f" [{', '.join(styles)}];" if styles else ";")


def _place(graph: Graph, g: int, value: int) -> str:
    """The name of the picture's node that makes a value of a graph."""
    return f"g{g}v{value}" if value < len(graph.inputs) else f"g{g}n{graph.producer(value)[0]}"


def _label(case: Case) -> str:
    attrs = ", ".join(f"{name}={value}" for name, value in case.attrs.to_data(binary=False).items())
    return f"{_short(case.op)}\n{_short(attrs)}" if attrs else _short(case.op)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _name(name: object) -> str:
    """A name on one line: its line ends are shown, and only the picture's own break lines."""
    return _short(str(name)).replace("\n", "\\n")


def _colour(path: tuple[int, ...]) -> str:
    if not path:
        return _COLOURS["primal"]
    return _COLOURS["tangent" if path[-1] > 0 else "cotangent"]


def _quoted(text: str) -> str:
    """A label. Graphviz would read backslashes, quotes and entities such as &lt; in names; control characters break its output."""
    shown = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    escaped = _ENTITY.sub("&amp;", shown).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
