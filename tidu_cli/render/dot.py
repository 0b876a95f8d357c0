"""Pictures as DOT text, which Graphviz draws: a cluster per graph, references dashed, tangents and cotangents in their colours."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence

from tidu_cli.errors import TiduError, printable
from tidu_cli.graph.graph import Document, Externals, Place
from tidu_cli.graph.keys import Key
from tidu_cli.render.folding import name, port_text, short, type_text
from tidu_cli.render.phrases import attrs_label
from tidu_cli.render.picture import Edge, Flow, Item, Kind, Picture, describe_graph, loops, op_counts, op_run, picture

COLOURS = {Flow.PRIMAL: "#1b6ca8", Flow.TANGENT: "#c2571a", Flow.COTANGENT: "#7b3fa0"}
"""What is primal is blue, tangents are orange, cotangents purple."""

FILLS = {Flow.PRIMAL: "#e8f1f8", Flow.TANGENT: "#fbece2", Flow.COTANGENT: "#f1e8f6"}
"""Pale forms of the same colours, in inputs and outputs and in the adds that accumulate."""

# Titles stand where few edges cross them: edges come from above, but those of a graph without outputs leave below.
DEFAULTS = (
    "  rankdir=TB; compound=true; pad=0.15; labelloc=b; labeljust=l;",
    '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="Helvetica", fontsize=11];',
    '  edge [arrowsize=0.7, color="#444444", fontname="Helvetica", fontsize=9, '
    'labelfontname="Helvetica", labelfontsize=8, labelfontcolor="#666666", labeldistance=1.5];',
)
_LOOP = "#ebebeb"
FADED = "#d0d0d0"
_ENTITY = re.compile(r"&(?=#?\w+;)")


def to_dot(document: Document, *, types: bool = False, collapse: bool = False, highlight: Sequence[Key] = ()) -> str:
    """The picture of a document as DOT text, the same for the same document. Linear in its size.

    `types` writes the type of what flows on each edge; for `collapse` and `highlight` see `picture`. Raises UnknownNameError.
    """
    return dot_text(picture(document, collapse=collapse, highlight=highlight), types=types)


def dot_text(
    shown: Picture,
    *,
    types: bool = False,
    label: Callable[[Item], str | None] = lambda item: None,
    slots: bool = True,
    numbers: Mapping[Place, str] | None = None,
    wide: bool = False,
) -> str:
    """A picture as DOT text. `label` may give items a label of their own, `numbers` are texts for edges, by the value on them.

    Without `slots`, edges are not numbered by operand: where labels are formulas, these say it. If it is `wide`, it goes to the
    right.
    """
    items: dict[int, list[Item]] = {}
    for item in shown.items:
        items.setdefault(item.graph, []).append(item)
    lines = ["digraph tidu {", *(line.replace("rankdir=TB", "rankdir=LR") if wide else line for line in DEFAULTS)]
    for g in range(len(shown.document.graphs)) if shown.within is None else shown.opened[shown.within]:
        lines += _cluster(shown, g, items, label, "  ")
    lines += [f"  {item_line(shown, item, label(item))}" for item in items.get(Externals.DETACHED, ())]
    lines += [edge_line(shown, edge, types, slots, numbers or {}) for edge in shown.edges]
    return "\n".join([*lines, "}", ""])


def _cluster(
    shown: Picture, g: int, items: Mapping[int, Sequence[Item]], label: Callable[[Item], str | None], indent: str
) -> Iterator[str]:
    """A graph; within it, around each node that is opened, a frame with the graphs in it."""
    frame = shown.frames[g]
    yield f"{indent}subgraph cluster_{g} {{"
    place = "" if frame.graph.outputs else "labelloc=t; "
    style = 'fontname="Helvetica"; style=filled; fillcolor="#f6f6f6"; color="#bbbbbb";'
    yield f"{indent}  label={quoted(title(shown, g))}; {place}{style}"
    for item in items.get(g, ()):
        line = item_line(shown, item, label(item))
        within = shown.opened.get((g, item.index), ()) if item.kind is Kind.NODE else ()
        if not within:
            yield f"{indent}  {line}"
            continue
        yield f"{indent}  subgraph cluster_{item.id} {{"
        yield f'{indent}    label=""; style="rounded,filled"; fillcolor="{_LOOP}"; color="{COLOURS[item.flow]}";'
        yield f"{indent}    {line}"
        for h in within:
            yield from _cluster(shown, h, items, label, indent + "    ")
        yield f"{indent}  }}"
    yield f"{indent}}}"


def title(shown: Picture, g: int) -> str:
    """What stands in the frame of a graph: its name, and what it is."""
    document, frame = shown.document, shown.frames[g]
    graph = frame.graph
    if frame.part is not None:
        return f"{frame.part.name}{f': {name(graph.name)}' if graph.name else ''}"
    kind = f"linear, pass {graph.linear}" if graph.linear is not None else ""
    head = "head" if g == len(document.graphs) - 1 and g else ""
    notes = ", ".join(filter(None, (kind, head)))
    return f"{name(graph.name)}{f' ({notes})' if notes else ''}\n{describe_graph(graph)}"


def item_line(shown: Picture, item: Item, given: str | None) -> str:
    """An item's line: inputs are ellipses, outputs have a double border, nodes are boxes, accumulating adds circles."""
    faded = item.id in shown.faded
    grey = ', fontcolor="#a0a0a0"' if faded else ""
    colour = FADED if faded else COLOURS[item.flow]
    own = f'fillcolor="{FILLS[item.flow]}", ' if not faded else ""
    if item.kind is Kind.DETACHED:
        digest = quoted(shown.document.detached[item.index].digest[:15] + "...")
        return f"{item.id} [label={digest}, shape=note, style=dashed{grey}];"
    styles = {
        Kind.INPUT: f"shape=ellipse, {own}",
        Kind.OUTPUT: f"style=filled, peripheries=2, {own}",
        Kind.COLLAPSED: 'shape=box3d, margin="0.15,0.1", style=filled, ',
    }
    style = styles.get(item.kind, "")
    if item.kind is Kind.NODE and (item.graph, item.index) not in shown.opened and loops(shown.graph(item.graph), [item.index]):
        style = styles[Kind.COLLAPSED]
    if item.accumulates:
        style = f"{'shape=circle, width=0.3, margin=0, ' if given is None else ''}{own}penwidth=2, "
    border = f', {style}color="{colour}"' if style or faded or item.flow is not Flow.PRIMAL else ""
    return f"{item.id} [label={quoted(given or item_label(shown, item))}{border}{grey}];"


def item_label(shown: Picture, item: Item) -> str:
    """What an item says where nothing else is given."""
    graph, part = shown.graph(item.graph), shown.frames[item.graph].part
    if item.kind is Kind.INPUT:
        declared = graph.inputs[item.index]
        role = part.inputs[item.index][1] if part and part.inputs else ""
        return f"{role} {port_text(declared.key, declared.type)}".lstrip()
    if item.kind is Kind.OUTPUT:
        output = graph.outputs[item.index]
        return f"{name(output.key)}: {type_text(output.type)}{' = 0' if output.value is None else ''}"
    if item.kind is Kind.COLLAPSED:
        # A run is told in its order, a whole graph by what there is most of.
        whole = item.graph < len(shown.document.graphs) - 1
        return f"{len(item.nodes)} nodes\n{op_counts(graph, item.nodes) if whole else op_run(graph, item.nodes)}"
    if item.accumulates:
        return "+"
    case = graph.case(item.index)
    attrs = attrs_label(case)
    return f"{short(case.op)}\n{attrs}" if attrs else short(case.op)


def edge_line(shown: Picture, edge: Edge, types: bool, slots: bool, numbers: Mapping[Place, str]) -> str:
    """An edge's line: dashed from another graph, dotted to an input that is bound, and in colour if it carries the derivative."""
    if edge.binding:
        return f"  {edge.source} -> {edge.target} [style=dotted, label=is];"
    if edge.around:
        return f'  {edge.source} -> {edge.target} [constraint=false, style=bold, color="#888888", xlabel="  next step"];'
    faded = edge.source in shown.faded or edge.target in shown.faded
    styles = []
    if edge.crosses:
        styles.append("style=dashed")
    if faded:
        styles.append(f'color="{FADED}", fontcolor="#a0a0a0"')
    elif edge.active is not None:
        styles.append(f'penwidth=2, color="{COLOURS[edge.active]}"')
    texts = [numbers[edge.value]] if edge.value in numbers else []
    if types and (type_ := value_type(shown, edge.value)):
        texts.append(type_)
    if texts:
        styles.append("label=" + quoted("\n".join(f"  {text}" for text in texts)))  # spaces keep it off the line
    if slots and edge.slot is not None:
        styles.append(f"headlabel={edge.slot if isinstance(edge.slot, int) else quoted(edge.slot)}")
    return f"  {edge.source} -> {edge.target}" + (f" [{', '.join(styles)}];" if styles else ";")


def value_type(shown: Picture, place: Place) -> str:
    """The type of a value; empty where it is not known, as that of a detached one."""
    g, value = place
    type_ = shown.document.detached[value].type if g == Externals.DETACHED else shown.graph(g).type_of(value)
    return type_text(type_) if type_ is not None else ""


def quoted(text: str) -> str:
    """A label. Graphviz would read backslashes, quotes and entities such as &lt; in names; control characters break its output."""
    plain = "\n".join(map(printable, text.split("\n")))
    escaped = _ENTITY.sub("&amp;", plain).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def draw(text: str, format_: str) -> bytes:
    """Lay out and draw DOT text as svg, png or pdf. Raises TiduError if Graphviz is missing or fails."""
    program = shutil.which("dot")
    if program is None:
        raise TiduError(
            f"{format_} needs Graphviz's program dot, which is not on the PATH; install it "
            "(apt-get install graphviz, brew install graphviz, https://graphviz.org/download), use --format dot, or write a page, "
            "which needs none (tidu view)"
        )
    done = subprocess.run([program, f"-T{format_}"], input=text.encode(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        complaint = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise TiduError(f"Graphviz failed: {complaint or f'status {done.returncode}'}")
    return done.stdout
