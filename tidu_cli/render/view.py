"""The page of `tidu view`: one HTML file with the picture, what is said of each part of it, and the steps of the head.

Nothing in it comes from elsewhere. Names are data: they reach the page as JSON or by way of Graphviz, which escapes them.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from tidu_cli.errors import UnknownNameError, counted, printable
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph, Meta, Place
from tidu_cli.render.dot import dot_text
from tidu_cli.render.folding import attrs_text, declared_text, key_words, name, port_text, short
from tidu_cli.render.group_page import Boxes, boxes, interned
from tidu_cli.render.groups import given_name, lines
from tidu_cli.render.phrases import SHORT, attrs_label, summary_text, value_text
from tidu_cli.render.picture import Flow, Item, Kind, Picture, describe_graph, loops, op_counts, op_run, pictures_within
from tidu_cli.render.scene import forest, named
from tidu_cli.render.scene_dot import LEGIBLE, PLAIN, STRIP, laid_out, scale, svgs
from tidu_cli.render.words import Words

_LONG = 24
"""How many elements of an array are told where there is room."""

_SCRIPT = re.compile(r"<script>(.*?)</script>", flags=re.S)
_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


class _Told(Frozen, slots=False):
    """What a page says: of items by id, in captions, and by whose numbers."""

    words: Words
    short: Mapping[Place, str]
    long: Mapping[Place, str]
    summary: Mapping[Place, str]


def to_html(
    shown: Picture,
    *,
    types: bool = False,
    values: Mapping[Place, Any] | None = None,
    owners: Mapping[int, Sequence[Place]] | None = None,
    expand: bool = False,
    at: str | None = None,
    beside: tuple[str, str] | None = None,
) -> str:
    """A picture as a page that needs nothing else. `values`, as evaluation gives them, are drawn on the edges.

    What is too large to be read is drawn as boxes, which open, unless `expand` is set. `at` is the group that is open at first.
    `owners` are, where known, the values whose cotangents the head's values are. `beside` is another picture, as SVG, and what it
    shows. What Graphviz cannot draw here, as it is missing or fails, the page draws itself. Raises UnknownNameError.
    """
    words = Words(shown, owners)
    told = _Told(
        words, *_texts(shown, values or {}), {place: text for place, x in (values or {}).items() if (text := summary_text(x))}
    )
    inner = {f"g{g}n{node}": inside for (g, node), inside in pictures_within(shown).items()}
    pictures = {"": shown, **inner}
    drawn = {of: _drawn(told, one, of, types=types, expand=expand) for of, one in pictures.items()}
    boxed = {of: one for of, one in drawn.items() if isinstance(one, Boxes)}
    opened = [] if at is None else named(forest(shown), [at])
    if at is not None and "" not in boxed:
        raise UnknownNameError(f"no group is called '{at}': the whole picture is shown, without groups")
    data = {
        "items": {item.id: _about(told, item) for one in pictures.values() for item in one.items},
        "faded": sorted(shown.faded),
        "steps": _steps(told),
        "overview": _overview(shown),
        "inside": {of: _about_inside(words, one) for of, one in inner.items()} | _together(boxed, "about"),
        "boxes": _together(boxed, "pictures"),
        "at": opened[0] if opened else "",
    }
    _add_reads(data["items"], pictures.values())
    figure = (
        "" if beside is None else f'<figure class="beside">{beside[0]}<figcaption>{html.escape(beside[1])}</figcaption></figure>'
    )
    return _page(shown.document.head.name, _standing(drawn), interned(data), figure)


def _texts(shown: Picture, values: Mapping[Place, Any]) -> tuple[Mapping[Place, str], Mapping[Place, str]]:
    """Values in few characters and in more."""
    graphs = shown.document.graphs
    of_length = ({(g, v): value_text(x, graphs[g].type_of(v), n) for (g, v), x in values.items()} for n in (SHORT, _LONG))
    return next(of_length), next(of_length)


def _standing(drawn: Mapping[str, str | Boxes]) -> str:
    """The pictures in the page: those that are there from the start, and the templates of groups."""
    parts = []
    for of, one in drawn.items():
        svg = one if isinstance(one, str) else one.overview
        parts.append(f'<div class="picture" data-of="{of}"{" hidden" if of else ""}>{svg}</div>')
    for of, one in drawn.items():
        if isinstance(one, Boxes):
            parts += [f'<template data-of="{of}" data-number="{k}">{svg}</template>' for k, svg in enumerate(one.templates)]
    return "".join(parts)


def _together(boxed: Mapping[str, Boxes], what: str) -> dict[str, object]:
    return {id_: {"root": of, **about} for of, one in boxed.items() for id_, about in getattr(one, what).items()}


def _drawn(told: _Told, shown: Picture, of: str, *, types: bool, expand: bool) -> str | Boxes:
    """A picture, from above or from the left; or if it cannot be read, its groups."""

    def label(item: Item) -> str | None:
        return _label(told.words, item)

    def text(wide: bool) -> str:
        return dot_text(shown, types=types, label=label, slots=False, numbers=told.short, wide=wide)

    if expand or len(shown.items) <= PLAIN:
        (svg,) = svgs([text(False)])
        if scale(svg) < LEGIBLE:
            ((svg, _),) = laid_out(lambda wide: [text(wide)])
        if expand or types or told.short or scale(svg) >= STRIP:  # boxes have no room for types and numbers on edges
            return svg
    return boxes(forest(shown), label, root=of, types=types)


def _add_reads(items: Any, pictures: Iterable[Picture]) -> None:
    """What each item reads, in the order of its operands."""
    for shown in pictures:
        for edge in shown.edges:
            if edge.target in items and not edge.around:
                items[edge.target].setdefault("reads", []).append(edge.source)


def _about_inside(words: Words, inside: Picture) -> dict[str, str]:
    """What the page tells of the inside of a node: its name, in which picture the node stands, and what it is."""
    assert inside.within is not None
    g, node = inside.within
    owner, case = inside.frames[g].owner, inside.graph(g).case(node)
    parent = "" if owner is None else f"g{owner[0]}n{owner[1]}"
    return {
        "name": f"{case.op}, node {node}",
        "parent": parent,
        "overview": f"{words.assignment(g, node)}: {words.phrase(g, node).does}",
    }


def _page(title: str, svg: str, data: object, beside: str) -> str:
    folder = files("tidu_cli.render")
    template = folder.joinpath("view.html").read_text(encoding="utf-8")
    script = _SCRIPT.search(template)
    assert script is not None
    layout, allowed = "", _source(script[1])
    if " data-dot=" in svg:
        layout = folder.joinpath("layout/viz.js").read_text(encoding="utf-8")
        allowed += f" {_source(layout)} 'wasm-unsafe-eval'"
    parts = {
        "{{scripts}}": allowed,
        "{{layout}}": layout and f"<script>{layout}</script>",
        "{{title}}": html.escape(printable(title)),
        "{{svg}}": svg,
        "{{beside}}": beside,
        "{{data}}": json.dumps(data, ensure_ascii=False).translate(_UNSAFE),
    }
    return re.sub("|".join(map(re.escape, parts)), lambda match: parts[match[0]], template)


def _source(script: str) -> str:
    """What allows a script. No other runs: whatever a name might smuggle in is no script to the browser."""
    return f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'"


def _label(words: Words, item: Item) -> str | None:
    if item.kind is Kind.NODE:
        label = short(words.assignment(item.graph, item.index)).replace("\n", " ")
        return "\n".join([label, *map(attrs_label, loops(words.graph(item.graph), [item.index]))])
    if item.kind is Kind.COLLAPSED and item.graph == len(words.document.graphs) - 1:
        return f"{words.results(item.graph, item.index)}: {len(item.nodes)} nodes\n{op_run(words.document.head, item.nodes)}"
    if item.kind is Kind.INPUT and item.flow is not Flow.PRIMAL:
        if words.frames[item.graph].owner is not None:
            return None
        declared = words.document.graphs[item.graph].inputs[item.index]
        return f"{words.names[item.graph][item.index]} = {port_text(declared.key, declared.type)}"
    return None


def _about(told: _Told, item: Item) -> dict[str, object]:
    """What the page tells of an item: a title and lines of text."""
    document = told.words.document
    if item.kind is Kind.DETACHED:
        entry = document.detached[item.index]
        return {"title": "a detached value", "lines": [entry.digest, f"type {entry.type or 'unknown'}"], "flow": item.flow}
    graph = told.words.graph(item.graph)
    if item.kind is Kind.COLLAPSED:
        title, lines = f"{len(item.nodes)} nodes of {graph.name}", [describe_graph(graph), op_counts(graph, item.nodes)]
    else:
        about = {Kind.INPUT: _about_input, Kind.NODE: _about_node, Kind.OUTPUT: _about_output}[item.kind]
        title, lines = about(told, item, graph)
    return {"title": title, "lines": [line for line in lines if line], "flow": item.flow}


def _about_input(told: _Told, item: Item, graph: Graph) -> tuple[str, list[str]]:
    declared = graph.inputs[item.index]
    lines = [f"input of {_of(told, item)}, type {declared.type}", declared_text(declared.type)]
    what = key_words(declared.key) if declared.key.path else ""
    return str(declared.key), [*lines, what, *_value(told, (item.graph, item.index))]


def _of(told: _Told, item: Item) -> str:
    """What graph an item is of."""
    frame = told.words.frames[item.graph]
    return frame.graph.name if frame.part is None else f"the {frame.part.name}"


def _about_node(told: _Told, item: Item, graph: Graph) -> tuple[str, list[str]]:
    case = graph.case(item.index)
    known = told.words.primitives[case.op].catalogue
    values = graph.results(item.index)
    role = (
        "primal" if case.mask is None else f"linear, active in input {' and '.join(str(k) for k, on in enumerate(case.mask) if on)}"
    )
    return told.words.assignment(item.graph, item.index), [
        f"{case.op}: {known.formula}" + (f" ({known.summary.partition(';')[0]})" if known.summary else ""),
        attrs_text(case),
        f"type {', '.join(str(graph.type_of(value)) for value in values)}",
        f"role {role}" if told.words.frames[item.graph].owner is None else "",
        "adds a contribution to a cotangent" if item.accumulates else "",
        *_origin(graph.node_meta.get(item.index)),
        *(line for value in values for line in _value(told, (item.graph, value))),
    ]


def _origin(meta: Meta) -> list[str]:
    """Where a node comes from: its name elsewhere, and the calls and the line that made it."""
    called = [f"called {name}" for name in [given_name(meta)] if name]
    return [*called, *(f"at {' › '.join(places)}" for places in [lines(meta)] if places)]


def _about_output(told: _Told, item: Item, graph: Graph) -> tuple[str, list[str]]:
    output = graph.outputs[item.index]
    what = key_words(output.key) if output.key.path else ""
    lines = [f"output of {_of(told, item)}, type {output.type}", what]
    if output.value is None:
        return str(output.key), [*lines, "always zero"]
    place = graph.place(item.graph, output.value)
    return str(output.key), [*lines, f"is {told.words.name(place)}", *_value(told, place)]


def _value(told: _Told, place: Place) -> list[str]:
    return [f"= {told.long[place]}", told.summary.get(place, "")] if place in told.long else []


def _steps(told: _Told) -> list[dict[str, object]]:
    """The seed, the head's nodes one by one, or as they are drawn together, and the results."""
    g = len(told.words.document.graphs) - 1
    steps = [_start(told, g)]
    for item, caption in told.words.captions():
        numbers = _computation(told, g, item.index, with_formula=not item.nodes)
        steps.append({"items": [item.id], "caption": caption, "numbers": numbers})
    return [*steps, _end(told, g)]


def _start(told: _Told, g: int) -> dict[str, object]:
    head, names, flows = told.words.document.head, told.words.names[g], told.words.flows[g]
    seeds = [f"{names[i]} = {name(d.key)}" for i, d in enumerate(head.inputs) if flows[i] is not Flow.PRIMAL]
    others = [name(d.key) for i, d in enumerate(head.inputs) if flows[i] is Flow.PRIMAL]
    seeded = f"the seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}" if seeds else ""
    start = " and ".join(filter(None, (seeded, ", ".join(others)))) or "constants"
    numbers = [f"{names[i]} = {told.long[g, i]}" for i in range(len(head.inputs)) if (g, i) in told.long]
    items = [f"g{g}v{i}" for i in range(len(head.inputs))]
    return {"items": items, "caption": f"It starts from {start}.", "numbers": ", ".join(numbers)}


def _end(told: _Told, g: int) -> dict[str, object]:
    head = told.words.document.head
    captions, numbers = [], []
    for output in head.outputs:
        place = None if output.value is None else head.place(g, output.value)
        complete = " is complete" if output.key.path and output.key.path[-1] < 0 else ""
        meaning = f": {key_words(output.key)}{complete}" if output.key.path else ""
        captions.append(f"{name(output.key)} = {'0' if place is None else told.words.name(place)}{meaning}")
        if place is not None and place in told.long:
            numbers.append(f"{name(output.key)} = {told.long[place]}")
    items = [f"g{g}o{k}" for k in range(len(head.outputs))]
    return {"items": items, "caption": "; ".join(captions), "numbers": ", ".join(numbers)}


def _computation(told: _Told, g: int, node: int, *, with_formula: bool) -> str:
    """A node in numbers: `c3 = 6 + 3 = 9`; without formula `c3 = 9`."""
    graph = told.words.document.graphs[g]
    places = [(g, value) for value in graph.results(node)]
    if not places or not all(place in told.short for place in places):
        return ""
    left = ", ".join(told.words.name(place) for place in places)
    right = "; ".join(told.long[place] for place in places)
    operands = [told.short.get(place, "") for place in told.words.places(g, node)]
    brief = not any(text.startswith("[") or "…" in text for text in operands)
    told_by_result = graph.case(node).op in ("record", "field")
    middle = told.words.formula(g, node, told.short) if brief and with_formula and not told_by_result else ""
    return " = ".join(filter(None, (left, middle if middle != right else "", right)))


def _overview(shown: Picture) -> str:
    head = shown.document.head
    steps = counted(head.n_nodes, "node")
    return f"{head.name}, {describe_graph(head)}, in {steps}. Next steps through them, in the order in which they are computed."
