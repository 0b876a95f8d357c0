"""Values through which no derivative goes, by name: of the graph, and of graphs within nodes, as NODE/ATTRIBUTE/NAME."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.graph.select import listed


def label(name: str, outputs: Iterable[str]) -> str:
    """What a node is called: by its name, else by the first value that it gives."""
    return name or next(filter(None, outputs), "")


def stopped_places(graph: Any, names: Sequence[str], known: Iterable[str]) -> frozenset[str]:
    """Where the values of these names are. A name within a node needs no more than itself where there is one value of it.

    `known` are further names of the graph. Raises UnknownNameError.
    """
    if not names:
        return frozenset()
    own = {name: name for name in (*known, *(p.name for p in (*graph.input, *graph.initializer)))}
    own |= {t.values.name: t.values.name for t in graph.sparse_initializer}
    inner: dict[str, list[str]] = {}
    for node in graph.node:
        own |= {name: name for name in node.output if name}
        for place, name in _within(node, ""):
            inner.setdefault(name, []).append(place)
    whole = own | {place: place for places in inner.values() for place in places}
    return frozenset(whole[name] if name in whole else _only(name, inner, whole) for name in names)


def _only(name: str, inner: Mapping[str, Sequence[str]], known: Iterable[str]) -> str:
    places = list(dict.fromkeys(inner.get(name, ())))
    if not places:
        raise UnknownNameError(f"has no value '{name}' to stop derivatives at{did_you_mean(name, [*known, *inner])}")
    if len(places) > 1:
        told = listed([f"'{place}'" for place in places])
        raise UnknownNameError(f"has {len(places)} values '{name}' to stop derivatives at, within nodes; name one as {told}")
    return places[0]


def _within(node: Any, path: str) -> Iterator[tuple[str, str]]:
    """The values of graphs within a node: where they are, and their names. Graphs do not nest deep, as `require_sound` says."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inner = f"{path}{label(node.name, node.output)}/{attribute.name}/"
            ports = (p.name for p in (*attribute.g.input, *attribute.g.initializer))
            yield from ((f"{inner}{name}", name) for name in (*ports, *(o for n in attribute.g.node for o in n.output if o)))
            for each in attribute.g.node:
                yield from _within(each, inner)
