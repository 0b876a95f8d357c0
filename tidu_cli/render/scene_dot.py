"""Scenes as DOT text: groups are filled boxes with what they hold in words, or where they are open, frames around their parts."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tidu_cli.errors import TiduError, counted
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.render.dot import COLOURS, DEFAULTS, FADED, FILLS, draw, edge_line, item_line, quoted, title, value_type
from tidu_cli.render.folding import name, short
from tidu_cli.render.groups import Group, Part, brief
from tidu_cli.render.phrases import attrs_label
from tidu_cli.render.picture import Edge, Flow, Item, Kind, Picture, describe_graph, loops, op_counts, picture
from tidu_cli.render.scene import Box, Forest, Link, Scene, Standing, around, forest, named, opened_to_fit

_SHOWN = 3
"""As many names, or types, a box has room for."""

_QUIET = "#666666"
_WIDE = 40
_CLOSE = '  ranksep=0.35; nodesep=0.2; node [height=0.3, margin="0.12,0.05"];'
"""Boxes of groups stand closer than those of small pictures, so that more of them can be read."""


def scene_dot(
    trees: Forest, scene: Scene, names: Sequence[str], labels: Sequence[str | None], *, types: bool = False, wide: bool = False
) -> str:
    """A scene as DOT text, in which the boxes have these names and labels. What has none is labelled as in any picture."""
    linked = {end for ends in scene.links for end in ends}
    drawn = [
        "" if scene.of is None and k not in linked and trees.is_constant(box.part) else _box_line(trees, box, names[k], labels[k])
        for k, box in enumerate(scene.boxes)
    ]
    standing = list(_standing(trees, scene.clusters, drawn, "  ")) if scene.of is None else [f"  {line}" for line in drawn]
    links = [_link_line(trees, scene, link, names, types=types) for link in scene.links.values()]
    defaults = [line.replace("rankdir=TB", "rankdir=LR") if wide else line for line in DEFAULTS]
    return "\n".join(["digraph tidu {", *defaults, _CLOSE, *standing, *links, "}", ""])


def box_label(trees: Forest, box: Box) -> str | None:
    """What a box says; None for an item, which has a label of its own."""
    if box.part is None:
        first, more = box.others[0], len(box.others) - 1
        if more:
            return f"{'from' if box.before else 'to'} {len(box.others)} others"
        return short(part_name(trees.shown, first), _WIDE)
    return group_label(trees, box.part) if isinstance(box.part, Group) else None


def group_label(trees: Forest, group: Group) -> str:
    """A group in words: its name and line, how many nodes it has and of which ops, and what types it hands on."""
    shown = trees.shown
    nodes = [item for item in group.items if item.kind in (Kind.NODE, Kind.COLLAPSED)]
    if not nodes:
        names = [part_name(shown, item) for item in group.items[:_SHOWN]]
        return f"{name(group.name)}\n{short(', '.join([*names, *(['…'] if len(group.items) > _SHOWN else [])]), _WIDE)}"
    graph, times = shown.graph(nodes[0].graph), group.times
    nodes = nodes[: len(nodes) // times]  # of a loop one step
    own = [n for item in nodes for n in item.nodes or (item.index,)]
    counts, inner = op_counts(graph, own, 2), [f"{case.op}: {attrs_label(case)}" for case in loops(graph, own)[:_SHOWN]]
    many = f"{times} × " if times > 1 else ""
    types = list(dict.fromkeys(text for place in sorted(trees.leaving.get(group.id, ())) if (text := value_type(shown, place))))
    last = f"gives {', '.join(types[:_SHOWN])}{', …' if len(types) > _SHOWN else ''}" if types else ""
    if trees.parents[group.id] is None:
        last = describe_graph(graph)
    where = f"  {name(place)}" if (place := brief(group.place)) and place != group.name else ""
    return "\n".join(filter(None, (name(group.name) + where, f"{many}{counted(len(nodes), 'node')}: {counts}", *inner, last)))


def part_name(shown: Picture, part: Part) -> str:
    """What a part is called where it is referred to: a group by its name, an input or output by its key, a node by its op."""
    if isinstance(part, Group):
        return name(part.name)
    if part.kind is Kind.DETACHED:
        return shown.document.detached[part.index].digest[:15] + "..."
    graph = shown.graph(part.graph)
    if part.kind in (Kind.INPUT, Kind.OUTPUT):
        return name((graph.inputs if part.kind is Kind.INPUT else graph.outputs)[part.index].key)
    return short(graph.case(part.index).op)


def flow_of(part: Part) -> Flow:
    """What a part is: of a group what most of its items are."""
    if isinstance(part, Item):
        return part.flow
    flows = [item.flow for item in part.items]
    return max(Flow, key=flows.count)


def is_faded(shown: Picture, part: Part) -> bool:
    """Whether a highlight leaves out a part."""
    return all(item.id in shown.faded for item in (part.items if isinstance(part, Group) else [part]))


def _standing(trees: Forest, standing: Sequence[Standing], drawn: Sequence[str], indent: str) -> Iterator[str]:
    for each in standing:
        if isinstance(each, int):
            if drawn[each]:
                yield f"{indent}{drawn[each]}"
            continue
        group, inside = each
        yield f"{indent}subgraph cluster_{group.id} {{"
        whole = trees.parents[group.id] is None
        text = title(trees.shown, group.items[0].graph) if whole else group_label(trees, group).partition("\n")[0]
        look = (
            'style=filled; fillcolor="#f6f6f6"; color="#bbbbbb"'
            if whole
            else (f'style="rounded,filled"; fillcolor="#ebebeb"; color="{COLOURS[flow_of(group)]}"')
        )
        yield f'{indent}  label={quoted(text)}; labelloc=t; fontname="Helvetica"; fontsize=11; {look};'
        yield from _standing(trees, inside, drawn, indent + "  ")
        yield f"{indent}}}"


def _box_line(trees: Forest, box: Box, id_: str, label: str | None) -> str:
    shown, part = trees.shown, box.part
    if isinstance(part, Item):
        return item_line(shown, part, label).replace(part.id, id_, 1)
    if part is None:
        return f'{id_} [label={quoted(label or "")}, style="rounded,dashed", color="{_QUIET}", fontcolor="{_QUIET}"];'
    faded = is_faded(shown, part)
    colour, fill = (FADED, "white") if faded else (COLOURS[flow_of(part)], FILLS[flow_of(part)])
    grey = ', fontcolor="#a0a0a0"' if faded else ""
    return f'{id_} [label={quoted(label or "")}, fillcolor="{fill}", color="{colour}", penwidth=2{grey}];'


def _link_line(trees: Forest, scene: Scene, link: Link, names: Sequence[str], *, types: bool) -> str:
    ends = [scene.boxes[link.source].part, scene.boxes[link.target].part]
    items = all(isinstance(part, Item) for part in ends)
    edge = link.edge
    slot = edge.slot if items else None
    told = Edge(names[link.source], names[link.target], edge.value, link.active, edge.crosses, slot, edge.binding, edge.around)
    line = edge_line(trees.shown, told, types and len(link.values) == 1, isinstance(slot, str), {})
    if any(part is not None and is_faded(trees.shown, part) for part in ends):
        return line.replace(";", f' [color="{FADED}"];') if "[" not in line else line
    return line


# How pictures are laid out so that they can be read: from above or from the left, and with as much open as a screen shows.


SCREEN = (1380, 660)
"""The room for a picture, in pixels, on a page of 1440 by 900."""

LEGIBLE = 9 / 11
"""The least scale: then text of the size 11 has nine pixels."""

STRIP = 0.6
"""Below this scale a small picture, too, is shown as boxes."""

PLAIN = 60
"""Pictures of more inputs, nodes and outputs than this are shown as boxes."""

_ROOMS = (18, 16, 14, 12, 10, 8, 6)
"""So many boxes a picture has, or fewer, where those cannot be read."""

_ACROSS, _DOWN = 400, 32
"""The points that a picture is taken to need across, and down for each thing drawn, before it is drawn."""

_NODE = re.compile(r"^ *\w+ \[label=", re.M)
_SIZE = re.compile(r'<svg width="([\d.]+)pt" height="([\d.]+)pt"')


def scale(svg: str) -> float:
    """How much of its size a picture has that fills the screen."""
    match = _SIZE.search(svg)
    assert match is not None
    return min(room / max(1.0, float(size)) for room, size in zip(SCREEN, match.groups(), strict=True))


def svgs(texts: Sequence[str]) -> list[str]:
    """The drawings of DOT texts, all by one run of Graphviz; of those that it cannot draw, what the page has to draw itself."""
    if not texts:
        return []
    try:
        drawn = draw("".join(texts), "svg").decode()
    except TiduError:  # it is missing, or fails at one of them
        return [_undrawn(texts[0])] if len(texts) == 1 else [svg for text in texts for svg in svgs([text])]
    return ["<svg" + each.partition("</svg>")[0] + "</svg>" for each in drawn.split("<svg")[1:]]


def _undrawn(text: str) -> str:
    """A picture that the page draws, of about the size that it will have."""
    text = text.replace('fontname="Helvetica"', 'fontname="Courier"')  # which is as wide as a page's font may be
    size = f'width="{_ACROSS}pt" height="{_DOWN * len(_NODE.findall(text))}pt"'
    return f'<svg {size} viewBox="0 0 100 100" data-dot="{html.escape(text)}"></svg>'


def laid_out(texts: Callable[[bool], Sequence[str]]) -> list[tuple[str, bool]]:
    """The drawings of these texts, each from above or from the left, as it is larger; and whether it goes from the left.

    What the page draws itself it turns itself.
    """
    above, beside = (svgs(texts(wide)) for wide in (False, True))
    return [(a, False) if scale(a) >= scale(b) else (b, True) for a, b in zip(above, beside, strict=True)]


def _one(text: Callable[[set[str], bool], str], chosen: set[str], wide: bool) -> Sequence[str]:
    return [text(chosen, wide)]


def opened(trees: Forest, text: Callable[[set[str], bool], str], given: Sequence[str] = ()) -> tuple[set[str], bool]:
    """The groups that are open in the overview, besides those given: as many as can be read. And whether it goes from the left."""
    best: tuple[float, set[str], bool] = (0.0, set(), False)
    for room in _ROOMS:
        chosen = opened_to_fit(trees, room, given)
        ((svg, wide),) = laid_out(partial(_one, text, chosen))
        if scale(svg) > best[0] * 1.01:
            best = scale(svg), chosen, wide
        if best[0] >= LEGIBLE:
            break
    return best[1], best[2]


# Pictures of large graphs as DOT text, with some groups open.


def to_boxes(
    document: Document,
    *,
    types: bool = False,
    collapse: bool = False,
    highlight: Sequence[Key] = (),
    open_: Sequence[str] = (),
    depth: int | None = None,
) -> str:
    """The picture of a document with its groups as boxes, as DOT text. For `collapse` and `highlight` see `picture`.

    Those of the names `open_` are open, and those to this depth; without a depth as many as a screen has room for, which Graphviz
    says. Raises UnknownNameError.
    """
    trees = forest(picture(document, collapse=collapse, highlight=highlight, inside=False))
    given = named(trees, open_)

    def text(chosen: set[str], wide: bool) -> str:
        scene = trees.overview(chosen)
        names = [box.part.id if box.part is not None else f"m{k}" for k, box in enumerate(scene.boxes)]
        return scene_dot(trees, scene, names, [box_label(trees, box) for box in scene.boxes], types=types, wide=wide)

    if depth is None:
        return text(*opened(trees, text, given))
    return text(_to_depth(trees, depth) | around(trees, given), False)


def _to_depth(trees: Forest, depth: int) -> set[str]:
    """The groups around which there are fewer than this; graphs are open where there is one only."""
    first = len(trees.graphs) == 1
    return {id_ for id_, group in trees.groups.items() if len(around(trees, [id_])) <= depth + first and not group.is_port}
