"""Loops: those that count become scans, which have a reverse mode, and others whiles.

JAX writes a scan as a while that carries a count, the arrays scanned, which it does not change, and the arrays of results. The
slices that it takes and puts back at the count become what a scan has for them. Else its derivative would go over whole arrays in
each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize, larger
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.recipes.affine import Affine, affine_values, decided, fits
from tidu_cli.rules.recording.known import Recording, inlined
from tidu_cli.rules.terms import Term

TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "ne": "ne"}


def loop(
    around: Recording,
    condition: ClosedGraph,
    of_condition: Sequence[Term],
    body: ClosedGraph,
    of_body: Sequence[Term],
    operands: Sequence[Term],
) -> list[Term]:
    """What a loop carries out. Its graphs take values from around it, and then what is carried."""
    values = [o.value for o in body.graph.outputs]
    same = {k for k in range(len(operands)) if values[k] == len(of_body) + k}
    carried = [k for k in range(len(operands)) if k not in same]
    condition, cond_consts = _with_constants(around, condition, of_condition, operands, carried)
    body, body_consts = _with_constants(around, body, of_body, operands, carried, carried)
    first = [operands[k] for k in carried]
    results = _counted(around, condition, body, body_consts, first, len(cond_consts))
    if results is None:
        outputs = around.emit_all(
            "while",
            *cond_consts,
            *body_consts,
            *first,
            cond_consts=len(cond_consts),
            body_consts=len(body_consts),
            condition=condition,
            body=body,
        )
        results = list(outputs)
    after = dict(zip(carried, results, strict=True))
    return [after.get(k, x) for k, x in enumerate(operands)]


def _with_constants(
    around: Recording,
    graph: ClosedGraph,
    outside: Sequence[Term],
    operands: Sequence[Term],
    carried: Sequence[int],
    wanted: Sequence[int] = (0,),
) -> tuple[ClosedGraph, list[Term]]:
    """The graph in which what a loop does not change comes first, and what comes first.

    What is known is a constant instead, and what is an open size is that in the graph.
    """
    fixed = {t.slot: t for t in (*outside, *[x for k, x in enumerate(operands) if k not in carried])}
    used = _used(graph)
    given = [*outside, *operands]
    needed = {given[k].slot for k in used}
    known = {slot: x for slot, t in fixed.items() if slot in needed and (x := around.known(t)) is not None}
    sizes = {slot: n for slot, t in fixed.items() if slot in needed and slot not in known and (n := around.size(t)) is not None}
    before = [t for slot, t in fixed.items() if slot in needed and slot not in known and slot not in sizes]
    recording = Recording(around.primitives, [*[t.type for t in before], *[operands[k].type for k in carried]])
    terms = dict(zip([t.slot for t in before], recording.sources, strict=False))
    terms |= {slot: recording.constant(x, fixed[slot].type) for slot, x in known.items()}
    terms |= {slot: recording.full(n, fixed[slot].type) for slot, n in sizes.items()}
    of_carried = dict(zip(carried, recording.sources[len(before) :], strict=True))
    unused: Any = recording.sources[0] if recording.sources else None  # nothing reads what stands there
    inputs = [terms.get(t.slot, unused) for t in outside]
    inputs += [of_carried.get(k, terms.get(x.slot, unused)) for k, x in enumerate(operands)]
    results = inlined(recording, graph, inputs)
    return recording.closed([results[k] for k in wanted]), before


def _used(graph: ClosedGraph) -> set[int]:
    """The inputs that a graph reads, or gives."""
    n, inner = len(graph.input_types), graph.graph
    return {a for a in inner.args if a < n} | {o.value for o in inner.outputs if o.value is not None and o.value < n}


def _counted(
    around: Recording, condition: ClosedGraph, body: ClosedGraph, consts: Sequence[Term], first: Sequence[Term], n_cond_consts: int
) -> list[Term] | None:
    """What a loop carries out that counts; None for one that does not."""
    test = None if n_cond_consts else _comparison(around, condition)
    if test is None:
        return None
    count, op, bound = test
    start, step = around.known(first[count]), _step(around, body, len(consts) + count, count)
    if start is None or not step:
        return None
    length = decided(lambda: _length(op, int(start), step, bound))
    if length is None:
        return None
    if length == 0:
        return list(first)
    counts = _counts(around, body, len(consts), first)
    if not all(fits(c, first[k].type.dtype, length + 1) for k, c in counts.items()):
        return None
    return _Scan(around, body, consts, first, counts, length).emitted()


def _counts(around: Recording, body: ClosedGraph, n_consts: int, first: Sequence[Term]) -> dict[int, Affine]:
    """What is carried and counts, in steps of a constant from a known number: JAX's own count, and those of users."""
    counts = {}
    for k, x in enumerate(first):
        if x.type.dtype in INTEGERS and not x.type.shape:
            start, step = around.known(x), _step(around, body, n_consts + k, k)
            if start is not None and step:
                counts[k] = Affine(step, int(start))
    return counts


def _comparison(around: Recording, condition: ClosedGraph) -> tuple[int, str, Any] | None:
    """The carried number that a condition compares, how, and with which known number or open size."""
    recording = Recording(around.primitives, condition.input_types)
    (result,) = inlined(recording, condition, recording.sources)
    case, args = recording.made_by(result), recording.read_by(result)
    if case is None or case.op not in TURNED:
        return None
    x, y = (Term(recording, slot, t, False) for slot, t in zip(args, case.operands, strict=True))
    op = case.op
    if y.slot < len(recording.sources):
        x, y, op = y, x, TURNED[op]
    known = recording.known(y)
    bound = recording.size(y) if known is None else int(known)
    if x.slot >= len(recording.sources) or bound is None or x.type.dtype not in INTEGERS or x.type.shape:
        return None
    return x.slot, op, bound


def _step(around: Recording, body: ClosedGraph, number: int, output: int) -> int:
    """By how much a carried number grows in each step, 0 if that is not known."""
    recording = Recording(around.primitives, body.input_types)
    result = inlined(recording, body, recording.sources)[output]
    case, args = recording.made_by(result), recording.read_by(result)
    if case is None or case.op not in ("add", "sub") or number not in args:
        return 0
    other = args[1] if args[0] == number else args[0]
    if case.op == "sub" and other == args[0]:
        return 0
    known = recording.known(Term(recording, other, case.operands[0], False))
    return 0 if known is None else int(known) if case.op == "add" else -int(known)


def _length(op: str, start: Any, step: int, bound: Any) -> Any:
    """How many steps there are, None if there is no end to them. Raises UndecidedSizeError."""
    if op in ("le", "ge"):
        bound, op = (bound + 1, "lt") if op == "le" else (bound - 1, "gt")
    if op == "ne":
        distance = bound - start
        return distance // step if distance % step == 0 and distance // step >= 0 else None
    if op == "gt":
        start, step, bound = -start, -step, -bound
    if isinstance(bound, OpenSize):
        return larger((bound - start + step - 1) // step, 0) if step > 0 else None
    if start >= bound:
        return 0
    return -((start - bound) // step) if step > 0 else None


class _Slice(Frozen, slots=False):
    """A slice of one element along an axis, at a place that is affine in the step."""

    axis: int
    place: Affine


@dataclass
class _Scan:
    """A loop that counts, on its way to a scan. `consts` and `first` are operands: what stays, and what is carried at first."""

    around: Recording
    body: ClosedGraph
    consts: Sequence[Term]
    first: Sequence[Term]
    counts: dict[int, Affine]
    length: Any
    scanned: dict[int, tuple[Term, _Slice]] = field(default_factory=dict)
    """The nodes that take slices of operands, by their numbers."""
    stacked: dict[int, tuple[int, _Slice]] = field(default_factory=dict)
    """What is carried that slices are put into, by its number: the value that is put, and where."""

    def emitted(self) -> list[Term]:
        """What the scan carries out."""
        self._find()
        n_consts, inner = len(self.consts), self.body.graph
        outputs = [o.value for o in inner.outputs]
        carried = [k for k in range(len(self.first)) if k not in self.counts and k not in self.stacked]
        wanted = [outputs[k] for k in carried] + [value for value, _ in self.stacked.values()]
        live, needed = self._live([v for v in wanted if v is not None])
        nodes = [node for node in self.scanned if node in live]
        slopes = [s.place.slope for _, s in (*[self.scanned[n] for n in nodes], *self.stacked.values())]
        reverse = bool(slopes) and sum(slope < 0 for slope in slopes) * 2 > len(slopes)
        consts = [k for k in range(n_consts) if k in needed]
        xs = [self._rows(*self.scanned[node], reverse) for node in nodes]
        counts = [k for k in self.counts if n_consts + k in needed]
        if not (xs or carried or consts or counts):
            counts = list(self.counts)[:1]  # a scan takes something
        xs += [self._counted(k, reverse) for k in counts]
        types = [*[self.consts[k].type for k in consts], *[self.first[k].type for k in carried]]
        recording = Recording(self.around.primitives, [*types, *[x.type.with_shape(x.type.shape[1:]) for x in xs]])
        sources = iter(recording.sources)
        values = {k: next(sources) for k in consts}
        values |= {n_consts + k: next(sources) for k in carried}
        slices = {node: next(sources) for node in nodes}
        values |= {n_consts + k: next(sources) for k in counts}
        self._emit(recording, values, slices, live)
        results = [values[v] for v in wanted if v is not None]
        for k, (_, place) in enumerate(self.stacked.values(), len(carried)):
            shape = list(results[k].type.shape)
            del shape[place.axis]
            results[k] = recording.emit("reshape", results[k], new_sizes=tuple(shape))
        emitted = self.around.emit_all(
            "scan",
            *[self.consts[k] for k in consts],
            *[self.first[k] for k in carried],
            *xs,
            length=self.length,
            num_consts=len(consts),
            num_carry=len(carried),
            reverse=reverse,
            body=recording.closed(results),
        ) if results else ()  # fmt: skip
        after = dict(zip(carried, emitted, strict=False))
        ys = zip(self.stacked.items(), emitted[len(carried) :], strict=True)
        after |= {k: self._put(self.first[k], y, place, reverse) for (k, (_, place)), y in ys}
        for k, count in self.counts.items():
            after[k] = self.around.full(count.start + self.length * count.slope, self.first[k].type)
        return [after[k] for k in range(len(self.first))]

    def _find(self) -> None:
        """Find the slices that are taken of operands and put into what is carried."""
        n_consts, inner = len(self.consts), self.body.graph
        numbers = affine_values(self.body, {n_consts + k: count for k, count in self.counts.items()}, self.length)
        uses: dict[int, list[int]] = {}
        nodes = [(inner.cases[code], args, first) for code, args, first, _ in forwards(inner, inner.args)]
        for node, (_, args, _) in enumerate(nodes):
            for a in args:
                uses.setdefault(a, []).append(node)
        outputs = [o.value for o in inner.outputs]
        for k in range(len(self.first)):
            own = n_consts + k
            making = [n for n in uses.get(own, ()) if nodes[n][2] == outputs[k]]
            if k in self.counts or len(making) != 1 or outputs.count(own) or outputs.count(outputs[k]) != 1:
                continue
            case, args, value = nodes[making[0]]
            if case.op != "dynamic_update_slice" or args[0] != own or own in args[1:] or uses.get(value):
                continue
            place = self._slice(case.operands[0], case.operands[1], args[2:], numbers)
            reading = [n for n in uses[own] if n != making[0]]
            if place is None or abs(place.place.slope) != 1 or any(self._taken(nodes[n], own, numbers) != place for n in reading):
                continue
            self.stacked[k] = (args[1], place)
            self.scanned |= dict.fromkeys(reading, (self.first[k], place))
        for node, (case, args, _) in enumerate(nodes):
            if case.op == "dynamic_slice" and args[0] < n_consts:
                piece = self._taken((case, args, 0), args[0], numbers)
                if piece is not None and piece.place.slope:
                    self.scanned[node] = (self.consts[args[0]], piece)

    def _taken(self, node: tuple[Case, Sequence[int], int], of: int, numbers: Mapping[int, Affine]) -> _Slice | None:
        case, args, _ = node
        if case.op != "dynamic_slice" or args[0] != of or of in args[1:]:
            return None
        return self._slice(case.operands[0], case.results[0], args[1:], numbers)

    def _slice(self, whole: object, part: object, indices: Sequence[int], numbers: Mapping[int, Affine]) -> _Slice | None:
        """Where a slice is, if it is of one element along an axis, whole along all others, and never clamped."""
        assert isinstance(whole, TensorType) and isinstance(part, TensorType)
        places = [numbers.get(a) for a in indices]
        axes = [a for a, place in enumerate(places) if place is None or place != Affine(0, 0) or part.shape[a] != whole.shape[a]]
        if len(axes) != 1 or places[axes[0]] is None or part.shape[axes[0]] != 1:
            return None
        place = places[axes[0]]
        assert place is not None
        low, high = place.range(self.length)
        within = decided(lambda: low >= 0 and high < whole.shape[axes[0]])
        return _Slice(axes[0], place) if within else None

    def _live(self, wanted: Sequence[int]) -> tuple[set[int], set[int]]:
        """The nodes that these values need, slices taken for what is there, and all values that are needed."""
        inner, needed, live = self.body.graph, set(wanted), set[int]()
        nodes = [(args, first, end) for _, args, first, end in forwards(inner, inner.args)]
        for node in range(len(nodes) - 1, -1, -1):
            args, first, end = nodes[node]
            if not needed.isdisjoint(range(first, end)):
                live.add(node)
                if node not in self.scanned:
                    needed.update(args)
        return live, needed

    def _emit(self, recording: Recording, values: dict[int, Term], slices: Mapping[int, Term], live: set[int]) -> None:
        inner = self.body.graph
        for node, (code, args, first, _) in enumerate(forwards(inner, inner.args)):
            if node not in live:
                continue
            case = inner.cases[code]
            if node in slices:
                shape = case.results[0].shape  # type: ignore[union-attr]
                results: Sequence[Term] = [recording.emit("reshape", slices[node], new_sizes=shape)]
            else:
                results = recording.apply(case.op, case.attrs, [values[a] for a in args])
            values.update(enumerate(results, first))

    def _rows(self, x: Term, place: _Slice, reverse: bool) -> Term:
        """The slices of all steps along axis 0, in the order of a scan."""
        axis, emit = place.axis, self.around.emit
        low, high = place.place.range(self.length)
        stride = abs(place.place.slope)
        if (low, high, stride) != (0, x.type.shape[axis] - 1, 1):
            start, limit, strides = [0] * x.type.rank, list(x.type.shape), [1] * x.type.rank
            start[axis], limit[axis], strides[axis] = low, high + 1, stride
            steps = None if stride == 1 else tuple(strides)
            x = emit("slice", x, start_indices=tuple(start), limit_indices=tuple(limit), strides=steps)
        if axis:
            x = emit("transpose", x, permutation=(axis, *[a for a in range(x.type.rank) if a != axis]))
        return emit("rev", x, dimensions=(0,)) if (place.place.slope < 0) != reverse else x

    def _put(self, whole: Term, y: Term, place: _Slice, reverse: bool) -> Term:
        """The results of all steps in their places."""
        axis, emit = place.axis, self.around.emit
        if (place.place.slope < 0) != reverse:
            y = emit("rev", y, dimensions=(0,))
        if axis:
            rank = y.type.rank
            y = emit("transpose", y, permutation=(*range(1, axis + 1), 0, *range(axis + 1, rank)))
        if y.type.shape == whole.type.shape:
            return y
        low, _ = place.place.range(self.length)
        zero, at = (self.around.full(n, TensorType("i32")) for n in (0, low))
        return emit("dynamic_update_slice", whole, y, *[at if a == axis else zero for a in range(y.type.rank)])

    def _counted(self, number: int, reverse: bool) -> Term:
        """The numbers that a count goes through, in the order of a scan."""
        count, type_ = self.counts[number], self.first[number].type
        if isinstance(self.length, int) and self.length <= 64:
            numbers = count.start + count.slope * np.arange(self.length)
            ordered = (numbers[::-1] if reverse else numbers).astype(numpy_dtype(np, type_.dtype))
            return self.around.constant(ordered, type_.with_shape((self.length,)))
        start, step = count.start, count.slope
        if reverse:
            start, step = start + step * (self.length - 1), -step
        values = self.around.emit("iota", dtype=type_.dtype, shape=(self.length,), dimension=0)
        if step != 1:
            values = self.around.emit("mul", values, step)
        return self.around.emit("add", values, start) if start != 0 else values
