"""What a picture of a document shows: things drawn, the edges between them, and which derivative flows where.

DOT text and the page of `tidu view` are two ways to write a `Picture` down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain, compress, groupby, pairwise
from typing import Any

from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.closed import closed_graphs
from tidu_cli.graph.graph import Case, Document, Externals, Graph, Place
from tidu_cli.graph.keys import Key
from tidu_cli.graph.passes import MEANING, kind_of
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.render.folding import APART, ROOM, Frame, Owner, folds, framed, opened, short

_COMMUTATIVE = frozenset({"add", "add_cotangents", "mul", "max", "min", "and", "or", "xor", "eq", "ne"})
"""Ops whose edges are not numbered by operand, since the order changes nothing that a picture shows."""


class Flow(StrEnum):
    """What a value is. In order of importance: a node that reads several kinds takes the last."""

    PRIMAL = "primal"
    TANGENT = "tangent"
    COTANGENT = "cotangent"


class Kind(StrEnum):
    """What is drawn."""

    INPUT = "input"
    NODE = "node"
    OUTPUT = "output"
    COLLAPSED = "collapsed"
    DETACHED = "detached"


class Item(Frozen):
    """One thing drawn: input, node, output or detached value number `index`; or several `nodes` as one, the last being `index`."""

    id: str
    kind: Kind
    graph: int
    index: int
    flow: Flow
    accumulates: bool = False
    nodes: tuple[int, ...] = ()


class Edge(Frozen):
    """`target` reads `value`. `active` is what flows along it if it carries the derivative.

    `slot` is the operand's number, or the field of a record that it becomes, where there is need to tell. What goes `around` is
    read in the next step of a loop.
    """

    source: str
    target: str
    value: Place
    active: Flow | None = None
    crosses: bool = False
    slot: int | str | None = None
    binding: bool = False
    around: bool = False


class Picture(Frozen, slots=False, eq=False):
    """A document's items, frame by frame, and edges; `faded` are the ids of items that a highlight leaves out.

    `graph` of an item and `value` of an edge number `frames`: the document's graphs, then those within nodes. What is within the
    nodes of `opened` is drawn. A picture of what is `within` one node shows nothing else.
    """

    document: Document
    frames: Sequence[Frame]
    flows: Sequence[Sequence[Flow]]
    items: Sequence[Item]
    edges: Sequence[Edge]
    faded: frozenset[str] = field(default=frozenset())
    opened: Mapping[Owner, Sequence[int]] = field(default_factory=dict)
    within: Owner | None = None

    def graph(self, number: int) -> Graph:
        """The graph of a frame."""
        return self.frames[number].graph


def picture(document: Document, *, collapse: bool = False, highlight: Sequence[Key] = (), inside: bool = True) -> Picture:
    """The picture of a document. Linear in its size.

    What is `inside` loops and branches is drawn, unless it is too much (see `framed`). With `collapse` it is not, the nodes of each
    graph but the head are one item, and so is each fold of the head (see `folds`). With `highlight`, what is on no path from an
    input to an output through one of these keys is faded. Raises UnknownNameError for a key that no graph has.
    """
    frames = framed(document, APART if not inside else 0 if collapse else ROOM)
    flows = _flows(frames)
    leaders = _leaders(document, flows, collapse)
    leaders += [range(frame.graph.n_nodes) for frame in frames[len(leaders) :]]
    within = opened(frames) if inside else {}
    drawn = range(len(frames) if inside else len(document.graphs))
    items = [item for g in drawn for item in _items(frames[g].graph, g, flows, leaders[g])]
    items += [Item(f"d{k}", Kind.DETACHED, Externals.DETACHED, k, Flow.PRIMAL) for k in range(len(document.detached))]
    edges = [edge for g in drawn for edge in _edges(frames, g, flows, leaders, within)]
    edges += _binding_edges(document, leaders)
    return Picture(document, frames, flows, items, edges, _off_path(document, items, edges, highlight), within)


def pictures_within(shown: Picture) -> Mapping[Owner, Picture]:
    """The pictures of what is within nodes, each by itself."""
    frames, inner = shown.frames, {}
    leaders = [range(frame.graph.n_nodes) for frame in frames]
    for owner, numbers in opened(frames).items():
        items = [item for g in numbers for item in _items(frames[g].graph, g, shown.flows, leaders[g])]
        edges = [edge for g in numbers for edge in _edges(frames, g, shown.flows, leaders, {})]
        edges += [edge for g in numbers for edge in _around(frames, g)]
        inner[owner] = Picture(shown.document, frames, shown.flows, items, edges, opened={owner: numbers}, within=owner)
    return inner


def n_items(document: Document, *, collapse: bool = False) -> tuple[int, int]:
    """How many things the picture of a document shows, and how many edges. Quick, for documents of any size."""
    n_ports = sum(len(graph.inputs) + len(graph.outputs) for graph in document.graphs) + len(document.detached)
    if not collapse:
        graphs = [frame.graph for frame in framed(document)]
        n_ports += sum(len(graph.inputs) + len(graph.outputs) for graph in graphs[len(document.graphs) :])
        n_edges = sum(len(graph.args) + sum(o.value is not None for o in graph.outputs) for graph in graphs)
        return n_ports + sum(graph.n_nodes for graph in graphs), n_edges + len(document.bindings)
    frames = framed(document, 0)
    flows = _flows(frames)
    leaders = _leaders(document, flows, collapse)
    edges = chain(*(_edges(frames, g, flows, leaders, {}) for g in range(len(leaders))), _binding_edges(document, leaders))
    return n_ports + sum(len(set(own)) for own in leaders), sum(1 for _ in edges)


def describe_graph(graph: Graph) -> str:
    """What a graph is, for a newcomer."""
    kind = kind_of(graph)
    return f"{kind}: {MEANING[kind]}" if kind in MEANING else str(kind)


def loops(graph: Graph, nodes: Iterable[int]) -> list[Case]:
    """Those of these nodes that hold graphs: loops and branches."""
    return [case for node in nodes if closed_graphs((case := graph.case(node)).attrs)]


def accumulating(graph: Graph, flows: Sequence[Flow]) -> set[int]:
    """The nodes that add a contribution to a cotangent, as transpose has where a value was read more than once.

    `flows` are those of the graph's values.
    """
    add = vocabulary(graph.cases).add
    codes = {code for code in set(graph.code) if (case := graph.cases[code]).op == add and case.mask == (True, True)}
    return {node for node, code in enumerate(graph.code) if code in codes and flows[graph.firsts[node]] is Flow.COTANGENT}


def _leaders(document: Document, flows: Sequence[Sequence[Flow]], collapse: bool) -> list[Sequence[int]]:
    """Of each graph, for each node, the node whose item it is drawn in."""
    if not collapse:
        return [range(graph.n_nodes) for graph in document.graphs]
    last = len(document.graphs) - 1
    return [
        folds(graph, accumulating(graph, flows[g])) if g == last else [graph.n_nodes - 1] * graph.n_nodes
        for g, graph in enumerate(document.graphs)
    ]


def _flow_of(key: Key) -> Flow:
    if not key.path:
        return Flow.PRIMAL
    return Flow.TANGENT if key.path[-1] > 0 else Flow.COTANGENT


def _flows(frames: Sequence[Frame]) -> list[list[Flow]]:
    order = list(Flow)
    flows: list[list[Flow]] = []
    for g, frame in enumerate(frames):
        graph, own = frame.graph, _input_flows(frames, frame, flows)
        flows.append(own)
        led_to = _flows_of_outputs(graph) if frame.owner is None else {}
        for node, (case, arguments) in enumerate(graph.nodes()):
            # Within a node it shows which operands are active: they are what is no primal.
            mask = case.mask or () if frame.owner is None else [True] * len(arguments)
            carried = (_flow_at(flows, graph.place(g, argument)) for argument in compress(arguments, mask))
            flow = max(carried, key=order.index, default=Flow.PRIMAL)
            own.extend([led_to.get(node, flow) if flow is Flow.PRIMAL else flow] * len(case.results))
    return flows


def _flows_of_outputs(graph: Graph) -> Mapping[int, Flow]:
    """What linear nodes carry, by the outputs that they lead to: all that tells where a seed is a constant, as `grad` has it.

    Those that lead to none, as they are held fixed in a later pass, carry what the outputs did before that.
    """
    keys = [(output.value, output.key) for output in graph.outputs if output.key.path]
    wanted = {value: _flow_of(key) for value, key in keys if value is not None}
    before = [number for _, key in keys for number in key.path[:-1]]
    inner = Flow.TANGENT if before and min(before) > 0 else Flow.COTANGENT
    carried: dict[int, Flow] = {}
    for node in range(graph.n_nodes - 1, -1, -1) if wanted else ():
        if any(mask := graph.case(node).mask or ()):
            flow = carried[node] = next((wanted[v] for v in graph.results(node) if v in wanted), inner)
            for argument in compress(graph.operands(node), mask):
                wanted.setdefault(argument, flow)
    return carried


def _input_flows(frames: Sequence[Frame], frame: Frame, flows: Sequence[Sequence[Flow]]) -> list[Flow]:
    """The flows of a frame's inputs; within a node, those of the operands that they take."""
    if frame.owner is None or frame.part is None:
        return [_flow_of(i.key) for i in frame.graph.inputs]
    g, node = frame.owner
    around, mask = frames[g].graph, frames[g].graph.case(node).mask
    operands = [_flow_at(flows, around.place(g, argument)) for argument in around.operands(node)]
    if mask is not None:
        operands = [_led(flows[g][around.firsts[node]], flow) for flow in operands]
    taken = [k for k, _ in frame.part.inputs] or [0] * len(frame.graph.inputs)
    return [operands[k] if frames[g].owner is not None or (mask is not None and mask[k]) else Flow.PRIMAL for k in taken]


def _led(node: Flow, operand: Flow) -> Flow:
    """What an active operand carries: where it is a constant seed, what its node does."""
    return node if operand is Flow.PRIMAL else operand


def _flow_at(flows: Sequence[Sequence[Flow]], place: Place) -> Flow:
    return Flow.PRIMAL if place[0] == Externals.DETACHED else flows[place[0]][place[1]]


def _items(graph: Graph, g: int, flows: Sequence[Sequence[Flow]], leaders: Sequence[int]) -> Iterator[Item]:
    adds = accumulating(graph, flows[g])
    for i in range(len(graph.inputs)):
        yield Item(f"g{g}v{i}", Kind.INPUT, g, i, flows[g][i])
    members: dict[int, list[int]] = {}
    for node, leader in enumerate(leaders):
        members.setdefault(leader, []).append(node)
    for node, (case, _) in enumerate(graph.nodes()):
        flow = flows[g][graph.firsts[node]] if case.results else Flow.PRIMAL
        if len(nodes := members.get(node, ())) > 1:
            yield Item(f"g{g}n{node}", Kind.COLLAPSED, g, node, flow, nodes=tuple(nodes))
        elif nodes:
            yield Item(f"g{g}n{node}", Kind.NODE, g, node, flow, node in adds)
    for k, output in enumerate(graph.outputs):
        yield Item(f"g{g}o{k}", Kind.OUTPUT, g, k, _flow_of(output.key))


def _id_of(graphs: Sequence[Frame], leaders: Sequence[Sequence[int]], place: Place) -> str:
    """The item that makes a value."""
    g, value = place
    if g == Externals.DETACHED:
        return f"d{value}"
    graph = graphs[g].graph
    return f"g{g}v{value}" if value < len(graph.inputs) else f"g{g}n{leaders[g][graph.producer(value)[0]]}"


def _edges(
    frames: Sequence[Frame],
    g: int,
    flows: Sequence[Sequence[Flow]],
    leaders: Sequence[Sequence[int]],
    within: Mapping[Owner, Sequence[int]],
) -> Iterator[Edge]:
    graph = frames[g].graph
    several = {leader for node, leader in enumerate(leaders[g]) if node != leader}
    into: dict[tuple[str, str], Edge] = {}  # edges into an item of several nodes: one from each source
    for node, (case, arguments) in enumerate(graph.nodes()):
        target = f"g{g}n{leaders[g][node]}"
        slots = _slots(case)
        for slot, argument in enumerate(arguments):
            place = graph.place(g, argument)
            source = _id_of(frames, leaders, place)
            own = flows[g][graph.firsts[node]] if case.results else Flow.PRIMAL
            active = _led(own, _flow_at(flows, place)) if case.mask is not None and case.mask[slot] else None
            if frames[g].owner is not None and (flow := _flow_at(flows, place)) is not Flow.PRIMAL:
                active = flow
            if (g, node) in within and (inputs := list(_taking(frames, within[g, node], slot))):
                yield from (Edge(source, into_graph, place, active, place[0] != g) for into_graph in inputs)
            elif leaders[g][node] not in several:
                yield Edge(source, target, place, active, place[0] != g, slots[slot])
            elif source != target and (active or (source, target) not in into):
                into[source, target] = Edge(source, target, place, active, place[0] != g)
    yield from into.values()
    for node, numbers in [(node, numbers) for (of, node), numbers in within.items() if of == g]:
        for h in numbers:
            yield from _around(frames, h)
            for k, output in enumerate(frames[h].graph.outputs):
                flow = _flow_at(flows, (h, output.value or 0))
                yield Edge(f"g{h}o{k}", f"g{g}n{node}", (h, output.value or 0), None if flow is Flow.PRIMAL else flow)
    for k, output in enumerate(graph.outputs):
        if output.value is not None:
            place = graph.place(g, output.value)
            active = _flow_at(flows, place)
            shown = None if active is Flow.PRIMAL else active
            yield Edge(_id_of(frames, leaders, place), f"g{g}o{k}", place, shown, place[0] != g)


def _taking(frames: Sequence[Frame], numbers: Sequence[int], operand: int) -> Iterator[str]:
    """The inputs of the graphs within a node that take one of its operands."""
    for h in numbers:
        part = frames[h].part
        yield from (f"g{h}v{i}" for i, (k, _) in enumerate(part.inputs if part else ()) if k == operand)


def _around(frames: Sequence[Frame], h: int) -> Iterator[Edge]:
    """What goes round in a loop, from outputs of its body to inputs."""
    part, graph = frames[h].part, frames[h].graph
    for k, i in part.around if part else ():
        yield Edge(f"g{h}o{k}", f"g{h}v{i}", (h, graph.outputs[k].value or 0), around=True)


def _slots(case: Case) -> Sequence[int | str | None]:
    """What says which operand an edge brings: its number where the order matters, of a record's operands their fields."""
    if case.op == "record":
        attrs: Any = case.attrs
        return [short(name) for name in attrs.names]
    n = len(case.operands)
    return range(n) if n > 1 and case.op not in _COMMUTATIVE else [None] * n


def _binding_edges(document: Document, leaders: Sequence[Sequence[int]]) -> Iterator[Edge]:
    frames = [Frame(graph) for graph in document.graphs]
    for g, graph in enumerate(document.graphs):
        for i, declared in enumerate(graph.inputs):
            if (place := document.bound.get(declared.key)) is not None:
                yield Edge(_id_of(frames, leaders, place), f"g{g}v{i}", place, crosses=True, binding=True)


def _off_path(document: Document, items: Sequence[Item], edges: Sequence[Edge], highlight: Sequence[Key]) -> frozenset[str]:
    if not highlight:
        return frozenset()
    ids: dict[Key, list[str]] = {}
    for item in items:
        if item.kind in (Kind.INPUT, Kind.OUTPUT) and item.graph < len(document.graphs):
            graph = document.graphs[item.graph]
            declared = graph.inputs[item.index] if item.kind is Kind.INPUT else graph.outputs[item.index]
            ids.setdefault(declared.key, []).append(item.id)
    for key in highlight:
        if key not in ids:
            known = list(map(str, ids))
            raise UnknownNameError(f"no graph has an input or output '{key}'{did_you_mean(str(key), known)}")
    pairs = [(edge.source, edge.target) for edge in edges]
    # One key is one input in the whole document: a path may enter one declaration and leave another.
    for same in ids.values():
        inputs = [item for item in same if "v" in item]
        pairs += [pair for a, b in pairwise(inputs) for pair in ((a, b), (b, a))]  # from each to all others, in steps
    lit: set[str] = set()
    for key in highlight:
        lit |= _reached(ids[key], pairs) | _reached(ids[key], [(b, a) for a, b in pairs])
    return frozenset(item.id for item in items if item.id not in lit)


def _reached(start: Iterable[str], pairs: Iterable[tuple[str, str]]) -> set[str]:
    successors: dict[str, list[str]] = {}
    for source, target in pairs:
        successors.setdefault(source, []).append(target)
    reached = set(start)
    waiting = list(reached)
    while waiting:
        fresh = [target for target in successors.get(waiting.pop(), ()) if target not in reached]
        reached.update(fresh)
        waiting += fresh
    return reached


def op_counts(graph: Graph, nodes: Iterable[int], shown: int = 3) -> str:
    """`3 add, 1 mul`, the most frequent first, and how many others there are."""
    counts = Counter(graph.case(node).op for node in nodes)
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    others = sum(n for _, n in ordered[shown:])
    return ", ".join([*(f"{n} {op}" for op, n in ordered[:shown]), *([f"{others} other{'s' * (others > 1)}"] if others else [])])


def op_run(graph: Graph, nodes: Sequence[int], shown: int = 3) -> str:
    """`exp, mul ×3, neg`, in order; of a long run the first ones and the last."""
    repeated = ((op, sum(1 for _ in same)) for op, same in groupby(graph.case(node).op for node in nodes))
    ops = [f"{op} ×{n}" if n > 1 else op for op, n in repeated]
    return ", ".join(ops if len(ops) <= shown else [*ops[: shown - 1], "...", ops[-1]])
