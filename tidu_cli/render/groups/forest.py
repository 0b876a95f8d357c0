"""The groups of all graphs of a picture."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.errors import UnknownNameError, counted, did_you_mean
from tidu_cli.graph.graph import Externals
from tidu_cli.render.groups.labels import brief
from tidu_cli.render.groups.scene import Forest
from tidu_cli.render.groups.tree import MOST, Group, Part, grouped
from tidu_cli.render.picture import Item, Kind, Picture

_PORTS = 5
"""More inputs than this, or outputs, are one box."""


def forest(shown: Picture) -> Forest:
    """The groups of a picture: of each of its graphs the inputs, the nodes as `grouped` has them, and the outputs."""
    items: dict[int, list[Item]] = {}
    for item in shown.items:
        items.setdefault(item.graph, []).append(item)
    return Forest(shown, [_graph(shown, g, own) for g, own in items.items() if g != Externals.DETACHED])


def named(trees: Forest, names: Sequence[str]) -> list[str]:
    """The ids of the groups that have these names, or come from these lines. Raises UnknownNameError."""
    ids = []
    for name in names:
        meant = [id_ for id_, group in trees.groups.items() if name in (group.name, group.place, brief(group.place), id_)]
        if not meant:
            known = list(dict.fromkeys(group.name for group in trees.groups.values()))
            shown = ", ".join(known[:MOST]) + (", ..." if len(known) > MOST else "")
            raise UnknownNameError(f"no group is called '{name}'{did_you_mean(name, known)} (groups: {shown or 'none'})")
        ids += meant
    return ids


def _graph(shown: Picture, g: int, items: Sequence[Item]) -> Group:
    graph, part = shown.graph(g), shown.frames[g].part
    nodes = [item for item in items if item.kind in (Kind.NODE, Kind.COLLAPSED)]
    inputs = [item for item in items if item.kind is Kind.INPUT]
    outputs = [item for item in items if item.kind is Kind.OUTPUT]
    parts = [*_ports(inputs, "input"), *(grouped(graph, nodes, shown.edges) if nodes else ()), *_ports(outputs, "output")]
    if len(parts) == 1 and isinstance(only := parts[0], Group):
        parts = [*only.parts]
    return Group(part.name if part else graph.name, parts, "", items)


def _ports(items: Sequence[Item], what: str) -> Sequence[Part]:
    """Inputs or outputs: each, or if they are many, as one box, and in it some at a time."""
    if len(items) <= _PORTS:
        return items
    return [Group(counted(len(items), what), _by_number(items, what), "", items)]


def _by_number(items: Sequence[Item], what: str) -> Sequence[Part]:
    if len(items) <= MOST:
        return items
    size = max(MOST, -(-len(items) // MOST))
    slices = [items[at : at + size] for at in range(0, len(items), size)]
    return [_some(own, what) for own in slices]


def _some(items: Sequence[Item], what: str) -> Part:
    named = f"{what}s {items[0].index}–{items[-1].index}"
    return Group(named, _by_number(items, what), "", items) if len(items) > 1 else items[0]
