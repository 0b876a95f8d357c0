"""The groups of a large graph, in one another: each is a stretch of its nodes, so that what is drawn as boxes has no cycles.

Nodes are distinguished by what they are (values, tangents, cotangents), then by the calls and lines that made them or by their
names, by repetition, and where nothing of this helps, by cuts where few values cross. The meta of nodes says where they come from,
as paths: of calls and lines, or of names such as `layer1/attention`. Repetition is a sequence that is the same piece many times, as
the nodes of an unrolled loop are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache
from itertools import accumulate, groupby
from typing import NamedTuple

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Graph, Meta
from tidu_cli.render.picture import Edge, Flow, Item, Kind

_PLACE = re.compile(r"(\S+) (.+):(\d+)", re.S)
_SEPARATOR = re.compile(r"[/.]+")


class Label(Frozen):
    """A step of a path: a name, and where a line of code is what is meant, `file:line`."""

    name: str
    place: str = ""


Path = tuple[Label, ...]


def paths(graph: Graph) -> Sequence[Path]:
    """The path of each node, empty where nothing is known.

    An operator of ONNX may be several nodes, of which the last one has its name: those before it are of that operator, too.
    """
    if not graph.node_meta:
        return [()] * graph.n_nodes
    from_last: list[Path] = []
    path_of = cache(_path)
    following: Path = ()
    for node in range(graph.n_nodes - 1, -1, -1):
        if (meta := graph.node_meta.get(node)) is not None:
            places = lines(meta)
            following = () if places else path_of(given_name(meta))
            from_last.append(path_of(tuple(places)) if places else following)
        else:
            from_last.append(following)
    return from_last[::-1]


def lines(meta: Meta) -> Sequence[str]:
    """The places in a user's code that made a node, `FUNCTION FILE:LINE`, the outermost first."""
    places = (meta or {}).get("source")
    return [place for place in places if isinstance(place, str)] if isinstance(places, list | tuple) else []


def given_name(meta: Meta) -> str:
    """The name that a node has elsewhere: in a model of ONNX, or as `name` in its meta."""
    onnx = (meta or {}).get("onnx")
    names = [onnx.get("node"), onnx.get("value")] if isinstance(onnx, dict) else [(meta or {}).get("name")]
    return next((name for name in names if isinstance(name, str) and name), "")


def brief(place: str) -> str:
    """A place without the folders of its file."""
    return place.rpartition("/")[2]


def _path(told: tuple[str, ...] | str) -> Path:
    if isinstance(told, str):
        return tuple(Label(part) for part in _SEPARATOR.split(told) if part)
    matched = [match.groups() for place in told if (match := _PLACE.fullmatch(place))]
    # A line of a function is what it calls there; of the innermost one it is the line itself.
    called = [*(function for function, _, _ in matched[1:]), ""][: len(matched)]
    places = [f"{file}:{line}" for _, file, line in matched]
    return tuple(Label(name or brief(place), place) for name, place in zip(called, places, strict=True))


_WINDOWS = 9
"""Repeats are looked for in pieces of 1, 2, 4, ... nodes, this number of lengths: few long pieces are the same by chance."""

_CANDIDATES = 4
"""As many distances between equal pieces of a length are tried."""


class Repeat(NamedTuple):
    """From `start` on, `times` pieces of `period` elements that are the same."""

    start: int
    period: int
    times: int


def repeat(sequence: Sequence[Hashable], cost: Callable[[int], int], least: int = 3) -> Repeat | None:
    """The repetition that covers most of a sequence, if it is `least` times and half of it; of equal ones that of least period.

    Where pieces may begin at several places, they begin where `cost` is least: of a loop, where the fewest values go on.
    """
    number: dict[Hashable, int] = {}
    ids = [number.setdefault(element, len(number)) for element in sequence]
    best = Repeat(0, 0, 0)
    for period in sorted(_distances(ids)):
        start, length = _longest(ids, period)
        times = length // period
        if times >= least and times * period > 1.1 * best.period * best.times:
            best = _begun(start, period, length, cost, least)
    return best if best.times and 2 * best.period * best.times >= len(sequence) else None


def _distances(ids: list[int]) -> set[int]:
    """How far equal pieces are from one another, most often and over the greatest lengths."""
    distances: set[int] = set()
    width = 1
    for _ in range(_WINDOWS):
        last: dict[int, int] = {}
        weights: Counter[int] = Counter()
        for k, piece in enumerate(ids):
            if piece in last:
                weights[k - last[piece]] += k - last[piece]
            last[piece] = k
        distances.update(distance for distance, _ in weights.most_common(_CANDIDATES))
        if len(ids) <= width:
            break
        number: dict[tuple[int, int], int] = {}
        ids = [number.setdefault(pair, len(number)) for pair in zip(ids, ids[width:], strict=False)]
        width *= 2
    return distances


def _longest(ids: list[int], period: int) -> tuple[int, int]:
    """Where the longest stretch begins that repeats after this period, and how long it is."""
    start, length, begun = 0, 0, None
    for k, (a, b) in enumerate(zip(ids, ids[period:], strict=False)):
        if a != b:
            begun = None
            continue
        if begun is None:
            begun = k
        if k - begun + 1 > length:
            start, length = begun, k - begun + 1
    return start, length + period if length else 0


def _begun(start: int, period: int, length: int, cost: Callable[[int], int], least: int) -> Repeat:
    """The repetition in a stretch, from the best place on; one piece less is no matter."""
    shifts = [s for s in range(period) if (length - s) // period >= max(least, length // period - 1)]
    shift = min(shifts, key=lambda s: (cost(start + s + period), s))
    return Repeat(start + shift, period, (length - shift) // period)


MOST = 12
"""A box shows no more parts than this: in a row, they are what a screen has room for in type that one can read."""

_FULL = 8
"""As many parts a box is given where they are cut by number."""

_PHASES = {Flow.PRIMAL: "values", Flow.TANGENT: "tangents", Flow.COTANGENT: "cotangents"}
_MOST_PHASES = 6


class Group(Frozen, slots=False, eq=False):
    """Items that are drawn as one box, or where it is open as its parts. `place` is the line that they come from, if it is one.

    A long loop is `times` steps that do the same, which open only where they are asked for.
    """

    name: str
    parts: Sequence[Part]
    place: str = ""
    items: Sequence[Item] = field(default=(), repr=False)
    times: int = 1

    @property
    def id(self) -> str:
        """What it is called in files of Graphviz and on pages."""
        return f"{self.items[0].id}to{self.items[-1].id}"

    @property
    def is_port(self) -> bool:
        """Whether it is of inputs, or of outputs."""
        kinds = {self.items[0].kind, self.items[-1].kind}
        return kinds in ({Kind.INPUT}, {Kind.OUTPUT})


Part = Group | Item

_Piece = tuple[Hashable, str, str, int, int]
"""Items from one number to another, what is the same in those like it, and their name and place."""


def grouped(graph: Graph, items: Sequence[Item], edges: Sequence[Edge]) -> Sequence[Part]:
    """The parts of a graph, of which these are the items of nodes, in order. `edges` may be of other graphs, too."""
    made = _Grouping(graph, items, edges)
    runs = [(flow, len(list(run))) for flow, run in groupby(item.flow for item in items)]
    if len(items) <= MOST or not 1 < len(runs) <= _MOST_PHASES:
        return made.split(0, len(items), 0)
    ends = [*accumulate(n for _, n in runs)]
    spans = [(flow, end - n, end) for (flow, n), end in zip(runs, ends, strict=True)]
    return [part for flow, start, end in spans for part in made.named(_PHASES[flow], "", start, end, made.split(start, end, 0))]


class _Grouping:
    def __init__(self, graph: Graph, items: Sequence[Item], edges: Sequence[Edge]) -> None:
        self.items = items
        path_of = paths(graph)
        self.paths: list[Path] = [path_of[item.index] for item in items]
        self.kinds = [_kind(graph, item) for item in items]
        self.crossing = _crossing(items, edges)
        self.position = {item.id: k for k, item in enumerate(items)}

    def split(self, start: int, end: int, depth: int) -> Sequence[Part]:
        """The parts of a stretch whose paths are the same up to this depth."""
        if end - start <= MOST:
            return self.items[start:end]
        while len(labels := {path[depth : depth + 1] for path in self.paths[start:end]}) == 1 and labels != {()}:
            depth += 1
        if len(labels) == 1:
            return self.joined([self._single(k) for k in range(start, end)], depth)
        runs = [(label, len(list(run))) for label, run in groupby(path[depth : depth + 1] for path in self.paths[start:end])]
        ends = [*accumulate((n for _, n in runs), initial=start)]
        return self.joined([self._run(label, a, b) for (label, _), a, b in zip(runs, ends, ends[1:], strict=False)], depth)

    def _single(self, k: int) -> _Piece:
        return self.kinds[k], "", "", k, k + 1

    def _run(self, label: tuple[Label, ...], start: int, end: int) -> _Piece:
        name, place = (label[0].name, label[0].place) if label else ("", "")
        return label or self.kinds[start], name, place, start, end

    def joined(self, pieces: Sequence[_Piece], depth: int) -> Sequence[Part]:
        """The parts that pieces are, with those that repeat as the steps of a loop."""
        loop = repeat([piece[0] for piece in pieces], lambda k: self.crossing[pieces[k][3] if k < len(pieces) else -1])
        if loop is None:
            return self.few([part for piece in pieces for part in self._part(piece, depth)])
        first, last = loop.start, loop.start + loop.period * loop.times
        steps: list[Part] = []
        for k, at in enumerate(range(first, last, loop.period)):
            own = pieces[at : at + loop.period]
            steps += self.named(f"step {k + 1}", own[0][2], own[0][3], own[-1][4], self.joined(own, depth))
        before, after = (self.joined(rest, depth) if rest else () for rest in (pieces[:first], pieces[last:]))
        long = loop.times > MOST
        if not before and not after and not long:
            return self.few(steps)
        start, end = pieces[first][3], pieces[last - 1][4]
        repeated = Group(f"{loop.times} steps", self.few(steps), "", self.items[start:end], loop.times if long else 1)
        return self.few([*before, repeated, *after])

    def _part(self, piece: _Piece, depth: int) -> Sequence[Part]:
        _, name, place, start, end = piece
        if end - start == 1:
            return self.items[start:end]
        parts = self.split(start, end, depth + bool(name))
        return self.named(name or f"nodes {self.items[start].index}–{self.items[end - 1].index}", place, start, end, parts)

    def named(self, name: str, place: str, start: int, end: int, parts: Sequence[Part]) -> Sequence[Part]:
        """A group of these parts, if they are more than one."""
        if len(parts) == 1 and isinstance(only := parts[0], Group) and only.times == 1:
            parts = only.parts
        return parts if len(parts) == 1 else [Group(name, parts, place, self.items[start:end])]

    def few(self, parts: Sequence[Part]) -> Sequence[Part]:
        """These parts, or if they are too many, groups of them, cut where few values cross."""
        if len(parts) <= MOST:
            return parts
        starts = [self.position[_items(part)[0].id] for part in parts]
        n = min(MOST, -(-len(parts) // _FULL))
        cuts = [0]
        for k in range(1, n):
            due, slack = len(parts) * k / n, len(parts) / n / 4
            near = [at for at in range(round(due - slack), round(due + slack) + 1) if cuts[-1] < at < len(parts)]
            cuts.append(min(near, key=lambda at: (self.crossing[starts[at]], abs(at - due))) if near else cuts[-1] + 1)
        groups: list[Part] = []
        for a, b in zip(cuts, [*cuts[1:], len(parts)], strict=True):
            own = parts[a:b]
            start, end = starts[a], starts[b] if b < len(parts) else self.position[_items(own[-1])[-1].id] + 1
            groups += self.named(_together(own), "", start, end, self.few(own))
        return groups


def groups_of(parts: Sequence[Part]) -> Iterator[Group]:
    """The groups among these parts and within them, the outer ones first."""
    waiting = [part for part in parts if isinstance(part, Group)]
    for group in waiting:  # which grows
        yield group
        waiting += [part for part in group.parts if isinstance(part, Group)]


def _items(part: Part) -> Sequence[Item]:
    return part.items if isinstance(part, Group) else [part]


def _kind(graph: Graph, item: Item) -> Hashable:
    """What is the same in nodes that do the same: not the numbers in constants and attrs, which may be those of a step."""
    case = graph.case(item.index)
    return case.op, case.mask, case.operands, case.results, len(item.nodes)


def _crossing(items: Sequence[Item], edges: Sequence[Edge]) -> list[int]:
    """How many items are read across each place between two, before the first and after the last."""
    position = {item.id: k for k, item in enumerate(items)}
    last = [*range(len(items))]
    for edge in edges:
        source, target = position.get(edge.source), position.get(edge.target)
        if source is not None and target is not None and target > last[source]:
            last[source] = target
    change = [0] * (len(items) + 2)
    for source, target in enumerate(last):
        change[source + 1] += 1
        change[target + 1] -= 1
    return [*accumulate(change)][: len(items) + 1]


def _together(parts: Sequence[Part]) -> str:
    """The name of several parts in a row."""
    names = [part.name for part in parts if isinstance(part, Group)]
    if len(names) == len(parts) and all(name.startswith("step") for name in names):
        return f"steps {names[0].split(' ')[1].split('–')[0]}–{names[-1].split(' ')[1].split('–')[-1]}"
    if named := [name for name in names if not name.startswith("nodes ")]:
        return named[0] if len(set(named)) == 1 else f"{named[0].split(' … ')[0]} … {named[-1].split(' … ')[-1]}"
    return f"nodes {_items(parts[0])[0].index}–{_items(parts[-1])[-1].index}"
