"""What one picture of a large document shows: the boxes that its groups and nodes are, and the edges between them, each drawn once.

`forest` has the groups of all graphs of a picture. `overview` is of a whole picture, with some groups open. `insides` are those of
each group alone; what its parts exchange with others then has a box at the margin, which says what it is.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidu_cli.errors import UnknownNameError, counted, did_you_mean
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Externals, Place
from tidu_cli.render.groups import MOST, Group, Part, brief, grouped, groups_of
from tidu_cli.render.picture import Edge, Flow, Item, Kind, Picture

MARGIN = 5
"""As many boxes of others stand on either side of a group."""


class Box(Frozen):
    """What is drawn as one: a part; or at the margin `others`, a part elsewhere, or several."""

    part: Part | None
    others: tuple[Part, ...] = ()
    before: bool = False


@dataclass(slots=True)
class Link:
    """All edges from one box to another: how many there are, one of them, and what they carry."""

    source: int
    target: int
    edge: Edge
    active: Flow | None
    values: set[Place] = field(default_factory=set)


Standing = int | tuple[Group, "list[Standing]"]
"""A box, or a group that is open, with what stands in it."""


@dataclass(eq=False)
class Scene:
    """Boxes and the links between them, by number. `clusters` are the groups that are open, with what stands in them."""

    of: Group | None
    boxes: list[Box] = field(default_factory=list)
    links: dict[tuple[int, int], Link] = field(default_factory=dict)
    clusters: list[Standing] = field(default_factory=list)

    def link(self, source: int, target: int, edge: Edge) -> None:
        """Draw an edge."""
        known = self.links.get((source, target))
        if known is None:
            known = self.links[source, target] = Link(source, target, edge, edge.active)
        known.active = known.active or edge.active
        known.values.add(edge.value)


class Forest:
    """The groups of a picture's graphs: a group of each graph, with its inputs, what is computed, and its outputs."""

    def __init__(self, shown: Picture, graphs: Sequence[Group]) -> None:
        self.shown = shown
        self.graphs = graphs
        self.parents: dict[str, Group | None] = {graph.id: None for graph in graphs}
        self.chains: dict[str, tuple[Part, ...]] = {}
        for group in groups_of(graphs):
            for part in group.parts:
                self.parents[part.id] = group
        self.groups = {group.id: group for group in groups_of(graphs)}
        for item in shown.items:
            self.chains[item.id] = (*self._around(item), item)
        self.leaving: dict[str, set[Place]] = {}
        for edge in shown.edges:
            source, target = self.chains[edge.source], self.chains[edge.target]
            for left in source[_common(source, target) : -1]:
                self.leaving.setdefault(left.id, set()).add(edge.value)
        self._constant = _constants(shown)

    def _around(self, item: Item) -> tuple[Part, ...]:
        chain: list[Part] = []
        at = self.parents.get(item.id)
        while at is not None:
            chain.append(at)
            at = self.parents[at.id]
        return tuple(chain[::-1])

    def is_constant(self, part: Part | None) -> bool:
        """Whether it is a constant: those that groups read are not drawn."""
        return part is not None and part.id in self._constant

    def overview(self, opened: Container[str]) -> Scene:
        """The whole picture, in which these groups are open."""
        scene, numbers = Scene(None), dict[str, int]()

        def enter(part: Part, into: list[Standing]) -> None:
            if isinstance(part, Group) and part.id in opened:
                inside: list[Standing] = []
                into.append((part, inside))
                for each in part.parts:
                    enter(each, inside)
            else:
                numbers[part.id] = len(scene.boxes)
                into.append(len(scene.boxes))
                scene.boxes.append(Box(part))

        clusters: list[Standing] = []
        detached: list[Part] = [item for item in self.shown.items if item.kind is Kind.DETACHED]
        for each in [*self.graphs, *detached]:
            enter(each, clusters)
        seen = {i: next(numbers[part.id] for part in chain if part.id in numbers) for i, chain in self.chains.items()}
        for edge in self.shown.edges:
            a, b = seen[edge.source], seen[edge.target]
            if a != b and not (edge.source in self._constant and isinstance(scene.boxes[b].part, Group)):
                scene.link(a, b, edge)
        scene.clusters = clusters
        return scene

    def insides(self) -> Mapping[str, Scene]:
        """What is in each group, by its id."""
        scenes = {id_: Scene(group, [Box(part) for part in group.parts]) for id_, group in self.groups.items()}
        number = {part.id: k for group in self.groups.values() for k, part in enumerate(group.parts)}
        margins: dict[tuple[str, bool], dict[str, tuple[Part, list[tuple[int, Edge]]]]] = {}
        for edge in self.shown.edges:
            source, target = self.chains[edge.source], self.chains[edge.target]
            depth = _common(source, target)
            a, b = source[depth], target[depth]
            is_constant = edge.source in self._constant
            if depth and not (is_constant and isinstance(b, Group)):
                scenes[source[depth - 1].id].link(number[a.id], number[b.id], edge)
            if is_constant:
                continue
            for chain, other, before in ((target, a, True), (source, b, False)):
                for around, part in zip(chain[depth:], chain[depth + 1 :], strict=False):
                    beside = margins.setdefault((around.id, before), {}).setdefault(other.id, (other, []))
                    beside[1].append((number[part.id], edge))
        for (id_, before), others in margins.items():
            _add_margin(scenes[id_], before, list(others.values()))
        return scenes


def opened_to_fit(forest: Forest, room: int, opened: Sequence[str] = ()) -> set[str]:
    """The groups that are open in a picture of `room` boxes: those given, then by depth the largest ones that there is room for.

    Inputs and outputs that are one box stay one, and so do the steps of a long loop.
    """
    chosen = around(forest, opened)
    if len(forest.graphs) == 1:
        chosen.add(forest.graphs[0].id)
    level = list(forest.graphs)
    while level:
        n_shown = sum(1 for _ in _visible(forest.graphs, chosen))
        for group in sorted(level, key=lambda group: -len(group.items)):
            if group.id not in chosen and n_shown - 1 + len(group.parts) <= room:
                n_shown += len(group.parts) - 1
                chosen.add(group.id)
        if any(group.id not in chosen for group in level):
            break
        inner = (part for group in level for part in group.parts if isinstance(part, Group))
        level = [group for group in inner if group.id in chosen or not (group.is_port or group.times > 1)]
    return chosen


def around(forest: Forest, ids: Sequence[str]) -> set[str]:
    """These groups, and those around them."""
    chosen: set[str] = set()
    for id_ in ids:
        at: Group | None = forest.groups[id_]
        while at is not None and at.id not in chosen:
            chosen.add(at.id)
            at = forest.parents[at.id]
    return chosen


def _visible(parts: Sequence[Part], opened: Container[str]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Group) and part.id in opened:
            yield from _visible(part.parts, opened)
        else:
            yield part


def _common(a: Sequence[Part], b: Sequence[Part]) -> int:
    depth = 0
    while a[depth] is b[depth]:
        depth += 1
    return depth


def _add_margin(scene: Scene, before: bool, beside: list[tuple[Part, list[tuple[int, Edge]]]]) -> None:
    if len(beside) > MARGIN:
        beside.sort(key=lambda each: -len(each[1]))
    rest = beside[MARGIN - 1 :] if len(beside) > MARGIN else []
    for parts in [*([each] for each in (beside[: MARGIN - 1] if rest else beside)), *([rest] if rest else [])]:
        k = len(scene.boxes)
        scene.boxes.append(Box(None, tuple(part for part, _ in parts), before))
        for _, links in parts:
            for number, edge in links:
                scene.link(*((k, number) if before else (number, k)), edge)


def _constants(shown: Picture) -> set[str]:
    """The nodes that are constants, or are computed of constants alone."""
    reads: dict[str, list[str]] = {}
    for edge in shown.edges:
        reads.setdefault(edge.target, []).append(edge.source)
    constants: set[str] = set()
    for item in shown.items:  # what they read comes before them
        if item.kind in (Kind.NODE, Kind.COLLAPSED) and constants.issuperset(reads.get(item.id, ())):
            constants.add(item.id)
    return constants


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
    return [
        Group(f"{what}s {own[0].index}–{own[-1].index}", _by_number(own, what), "", own) if len(own) > 1 else own[0]
        for own in slices
    ]
