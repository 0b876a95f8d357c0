"""Checkpoints: which early values of a derivative to compute a second time, and which to hold until they are needed.

What a policy drops is computed again from what it does not drop. All policies leave alone what is held anyway: inputs, outputs, and
nodes without operands (constants).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import isqrt

from tidu_cli.errors import Remedy, TransformError, UnknownNameError, did_you_mean
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import select_outputs
from tidu_cli.graph.types import RecordType
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.materialize import Trace

INPUT = -1
"""The node that makes an input: in `late` and `dropped` of a schedule the last entry, which is never set."""

_DEEPEST = 4
"""How many free nodes may follow one another from an input and still be repeated in every segment."""


class Schedule:
    """A self-contained graph, in the order in which it is evaluated, and what is to be dropped of it; node by node.

    `late` nodes are linear or depend on one that is; `wanted` and `due` are the first and the last late node that need a node,
    directly or through early ones (`due` is -1 where none does). `node_of` a value is the node that makes it. Policies fill in
    `dropped`; `segment`, which says what is dropped and computed again together; and `portable`, for what is not held from one
    segment to another but computed again in each.
    """

    def __init__(self, graph: Graph, primitives: PrimitiveSet) -> None:
        self.graph = graph
        self.primitives = primitives
        n, cases = graph.n_nodes, graph.cases
        self.node_of = column([INPUT]) * len(graph.inputs)
        for node, code in enumerate(graph.code):
            self.node_of.extend([node] * cases.n_results[code])
        self.late = bytearray(n + 1)
        for node, code in enumerate(graph.code):
            self.late[node] = cases[code].mask is not None or any(self.late[m] for m in self.makers(node))
        self.wanted, self.due = column([n]) * n, column([-1]) * n
        for node in range(n - 1, -1, -1):
            first, last = (node, node) if self.late[node] else (self.wanted[node], self.due[node])
            for m in self.makers(node):
                if not self.late[m]:
                    self.wanted[m], self.due[m] = min(self.wanted[m], first), max(self.due[m], last)
        self._is_output = bytearray(n + 1)
        for output in graph.outputs:
            if output.value is not None:
                self._is_output[self.node_of[output.value]] = 1
        self.dropped, self.portable = bytearray(n + 1), bytearray(n)
        self.segment = column([0]) * n
        self._flops: dict[int, int] = {}

    def results(self, node: int) -> range:
        """The values that a node makes."""
        first = self.graph.firsts[node]
        return range(first, first + self.graph.cases.n_results[self.graph.code[node]])

    def makers(self, node: int) -> list[int]:
        """The nodes that make what a node reads, one for each operand that is no input."""
        return [m for a in self.graph.operands(node) if (m := self.node_of[a]) != INPUT]

    def n_bytes(self, node: int) -> int:
        """The bytes of a node's results."""
        return sum(t.nbytes for t in self.graph.case(node).results)

    def flops(self, node: int) -> int:
        """The operations of a node."""
        code = self.graph.code[node]
        if code not in self._flops:
            case = self.graph.cases[code]
            self._flops[code] = self.primitives[case.op].evaluation.flops(case.attrs, case.operands, case.results)  # type: ignore[arg-type]
        return self._flops[code]

    def droppable(self, node: int) -> bool:
        """Whether a node is early, needed late, and not held anyway."""
        return self.due[node] >= 0 and self.reason_to_hold(node) is None

    def reason_to_hold(self, node: int) -> str | None:
        """Why a node cannot be dropped, for messages; None if it can."""
        if self.late[node]:
            return "is a tangent or cotangent, or depends on one; only what is computed before those can be recomputed"
        if self._is_output[node]:
            return "is an output, and thus held until the end"
        return None if len(self.graph.case(node).operands) else "is a constant, and thus held anyway"


class Named(Frozen):
    """Recompute the values of these outputs; and of the graphs of these names all values but the outputs, as jax.checkpoint does.

    What residual graphs (those without outputs) make of what is dropped is dropped, too.
    """

    values: tuple[Key, ...] = ()
    graphs: tuple[str, ...] = ()

    def drop(self, schedule: Schedule, trace: Trace) -> None:
        """Raises UnknownNameError for what the document does not have, TransformError for a value that cannot be dropped."""
        graphs = trace.document.graphs
        names = [graph.name for graph in graphs]
        for name in self.graphs:
            if name not in names:
                raise UnknownNameError(f"no graph is named '{name}'{did_you_mean(name, names)} (graphs: {', '.join(names[:8])})")
            g = names.index(name)
            outputs = {trace.value(g, o.value) for o in graphs[g].outputs if o.value is not None}
            for node in _droppable(schedule, (v for v in trace.values_of(g) if v not in outputs)):
                schedule.dropped[node] = 1
        for key in self.values:
            for g, output in select_outputs(trace.document, [key]):
                self._drop_value(g, output, schedule, trace)
        for g, graph in enumerate(graphs):
            if not graph.outputs:
                for node in _droppable(schedule, trace.values_of(g)):
                    schedule.dropped[node] |= any(schedule.dropped[m] for m in schedule.makers(node))

    def _drop_value(self, g: int, output: Output, schedule: Schedule, trace: Trace) -> None:
        key = output.key
        value = None if output.value is None else trace.value(g, output.value)
        if value is None:  # zero, or needed by no output
            return
        node = schedule.node_of[value]
        reason = "is an input, and thus held anyway" if node == INPUT else schedule.reason_to_hold(node)
        if reason:
            policy = Remedy("recompute", f"value={key}")
            raise TransformError(f"{policy}: graph '{trace.document.graphs[g].name}': '{key}' {reason}")
        schedule.dropped[node] = 1
        if isinstance(schedule.graph.type_of(value), RecordType):
            _drop_fields(schedule, node)


def _drop_fields(schedule: Schedule, record: int) -> None:
    """Drop what a record is put together of, and what is taken of it: they are the same arrays, held by any of them."""
    graph, primitives = schedule.graph, schedule.primitives
    pending, arrays = [record], {record}
    while pending:
        node = pending.pop()
        if primitives[graph.case(node).op].domain.makes is not None:
            more = [m for m in schedule.makers(node) if schedule.droppable(m) and m not in arrays]
            arrays.update(more)
            pending += more
    for node in range(record + 1, graph.n_nodes):
        takes, makers = primitives[graph.case(node).op].domain.takes, schedule.makers(node)
        if takes is not None and makers and makers[0] in arrays and schedule.droppable(node):
            arrays.add(node)
    for node in arrays:
        schedule.dropped[node] = 1


def _droppable(schedule: Schedule, values: Iterable[int]) -> Iterator[int]:
    nodes = map(schedule.node_of.__getitem__, values)
    return (node for node in nodes if node != INPUT and schedule.droppable(node))


class Cheap(Frozen):
    """Recompute what takes at most so many operations for each byte that is not held, counted from what is held.

    Moving an element counts as an operation. Along a chain the operations add up, until a value is held again.
    """

    flops_per_byte: float = 1.0

    def drop(self, schedule: Schedule, trace: Trace) -> None:
        """Drop the cheap ones, but those whose operand would have to be held instead and is no smaller."""
        costs: list[int] = []  # of a dropped node, with what it needs that is dropped; 0 where the node is held
        for node in range(schedule.graph.n_nodes):
            elements = sum(t.size for t in schedule.graph.case(node).results)
            own = 0
            if schedule.droppable(node) and elements:
                own = max(schedule.flops(node), elements) + sum(costs[m] for m in set(schedule.makers(node)))
                if own > self.flops_per_byte * schedule.n_bytes(node):
                    own = 0
            costs.append(own)
            schedule.dropped[node] = own > 0
        _hold_rather_than_operands(schedule)


def _hold_rather_than_operands(schedule: Schedule) -> None:
    """Hold dropped nodes again where that spares holding an operand as large, which no late node reads itself."""
    n, dropped = schedule.graph.n_nodes, schedule.dropped
    read_late = bytearray(n)
    readers: list[list[int]] = [[] for _ in range(n)]
    for node in range(n):
        for m in set(schedule.makers(node)):
            if schedule.late[node]:
                read_late[m] = 1
            elif dropped[node]:
                readers[m].append(node)
    for start in range(n - 1, -1, -1):
        pending = [start] if not dropped[start] else []
        while pending:
            node = pending.pop()
            again = [r for r in readers[node] if dropped[r]]
            if read_late[node] or not schedule.droppable(node) or sum(map(schedule.n_bytes, again)) > schedule.n_bytes(node):
                continue
            for reader in again:
                dropped[reader] = 0
            pending += again


class Sqrt(Frozen):
    """Hold about √n checkpoints of n values, and recompute what lies between two of them when it is first needed.

    Values are put in the order in which late nodes are done with them, from last to first, which for reverse mode is the order of
    the primal computation; or in that in which late nodes come to need them, which is so for forward mode: whichever cuts better.
    They are cut into √n segments of as many bytes each, near places where few bytes cross; n counts values as
    (Σ bytes)² / Σ bytes², so that scalars beside arrays do not count. What crosses is held. Loops of n steps that store values for
    reverse mode are done in segments of √n.
    """

    def steps(self, length: int) -> int:
        """Of how many steps a segment is, of a loop of so many."""
        return isqrt(length)

    def drop(self, schedule: Schedule, trace: Trace) -> None:
        """Fill in segments, and drop all that is not read in a later segment than its own."""
        early = [node for node, due in enumerate(schedule.due) if due >= 0]
        _mark_portable(schedule, early)
        done = sorted(early, key=lambda node: -schedule.due[node])  # both keep the order of the file where they do not differ
        wanted = sorted(early, key=schedule.wanted.__getitem__)
        order, cuts, _ = min(((order, *_cuts(schedule, order)) for order in (done, wanted)), key=lambda choice: choice[2])
        for k, node in enumerate(order):
            schedule.segment[node] = bisect_right(cuts, k)
            schedule.dropped[node] = schedule.droppable(node)
        for node in early:
            for m in schedule.makers(node):
                if schedule.segment[m] < schedule.segment[node] and not schedule.portable[m]:
                    schedule.dropped[m] = 0


class Segments(Frozen):
    """Loops in segments of so many steps: what is carried into a segment is stored, and residuals within it are recomputed."""

    n_steps: int

    def steps(self, length: int) -> int:
        """Of how many steps a segment is."""
        return self.n_steps

    def drop(self, schedule: Schedule, trace: Trace) -> None:
        """Nothing else."""


Policy = Named | Cheap | Sqrt | Segments
"""A choice of what to recompute: `drop` marks it in a schedule, and is told by a trace what became of the document's values."""


def _mark_portable(schedule: Schedule, early: Sequence[int]) -> None:
    """What only moves an input's elements (a bias, broadcast) is as good as the input: no segment holds it for another."""
    depth: dict[int, int] = {}
    for node in sorted(early):
        makers = schedule.makers(node)
        if schedule.graph.cases.arity[schedule.graph.code[node]] != 1 or schedule.flops(node) or not schedule.droppable(node):
            continue
        held = not makers or not schedule.graph.cases.arity[schedule.graph.code[makers[0]]]
        depth[node] = 1 if held else depth.get(makers[0], _DEEPEST) + 1
        schedule.portable[node] = depth[node] <= _DEEPEST


def _cuts(schedule: Schedule, order: Sequence[int]) -> tuple[list[int], int]:
    """The first places of all segments but the first, and the bytes that cross there, all told."""
    sizes = [schedule.n_bytes(node) if schedule.droppable(node) else 0 for node in order]
    squares = sum(size * size for size in sizes)
    n_segments = isqrt(sum(sizes) ** 2 // squares) if squares else 1
    total = list(accumulate(sizes))
    even = [bisect_left(total, total[-1] * k // n_segments) for k in range(n_segments)] + [len(order)] if order else []
    crossing = _crossing(schedule, order)
    cuts = []
    for before, here, after in zip(even, even[1:], even[2:], strict=False):
        near = range(here - (here - before) // 4, here + (after - here) // 4 + 1)
        cuts.append(min((crossing[k], abs(k - here), k) for k in near)[2])
    return cuts, sum(crossing[k] for k in cuts)


def _crossing(schedule: Schedule, order: Sequence[int]) -> list[int]:
    """For each place, the bytes that are made before it and read, by early nodes, from there on."""
    place = {node: k for k, node in enumerate(order)}
    last = dict(place)
    for node, k in place.items():
        for m in schedule.makers(node):
            last[m] = max(last[m], k)
    change = [0] * (len(order) + 1)
    for node, k in place.items():
        if schedule.droppable(node) and not schedule.portable[node]:
            change[k + 1] += schedule.n_bytes(node)
            change[last[node] + 1] -= schedule.n_bytes(node)
    return list(accumulate(change))
