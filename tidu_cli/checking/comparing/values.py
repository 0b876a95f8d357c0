"""Comparing documents by structure: whether they take the same inputs and compute the same outputs in the same way.

Values are known by their digests, so the order of nodes, dead nodes, sharing, the split into graphs and the file format make no
difference. Where definitions differ, both are walked down together to the smallest parts that do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidu_cli.checking.comparing.structure import first_within
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Externals, Output, Place
from tidu_cli.graph.identity import PREFIX, closed_digest, digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import Application, Definitions, link
from tidu_cli.graph.types import Type

T = TypeVar("T")

PLACES = 10
"""How many of the places where definitions differ are kept."""


@dataclass(frozen=True, slots=True)
class TypesDiffer(Generic[T]):
    """What has not the same type in A and in B: an input or output, or a value, by its place in A, as with detached references."""

    of: T
    a: Type
    b: Type


class Difference(Frozen):
    """The smallest parts, below the output `key`, that differ: the value at `a` in A where B has that at `b`.

    A place is None for a structural zero. `reason` says what differs of nodes of one op: attrs, role, the number of operands, the
    result taken of several, or only the order of the operands. It is empty where the values are altogether different.
    """

    key: Key
    a: Place | None
    b: Place | None
    reason: str


class Comparison(Frozen, slots=False):
    """What differs between documents A and B. Pairs are of A and of B; `computed` are the keys of outputs that differ in value.

    `places` are the first of `n_places` differences. `shared` counts the values of nodes that both compute, `values_only` those
    that only one does, by op. Dead nodes do not count.
    """

    inputs_only: tuple[tuple[Key, ...], tuple[Key, ...]]
    outputs_only: tuple[tuple[Key, ...], tuple[Key, ...]]
    input_types: tuple[TypesDiffer[Key], ...]
    output_types: tuple[TypesDiffer[Key], ...]
    value_types: tuple[TypesDiffer[Place], ...]
    computed: tuple[Key, ...]
    places: tuple[Difference, ...]
    n_places: int
    shared: int
    values_only: tuple[Counter[str], Counter[str]]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        differences = (*self.inputs_only, *self.outputs_only, self.input_types, self.output_types, self.value_types, self.computed)
        return not any(differences)


def compare(a: Document, b: Document) -> Comparison:
    """Compare two documents by structure. Linear in their sizes.

    A bound input is the value it is bound to, and a detached value is the one with its digest. Of outputs that share a key, the
    latest are compared, then those before them, and so on.
    """
    one, other = _Side(a), _Side(b)
    common = [key for key in one.inputs if key in other.inputs]
    input_types = [TypesDiffer(k, one.inputs[k], other.inputs[k]) for k in common if one.inputs[k] != other.inputs[k]]
    matched = [slot for slot in one.outputs if slot in other.outputs]
    pairs = [(one.outputs[slot][1], other.outputs[slot][1]) for slot in matched]
    walk = _Walk(one, other)
    computed = tuple(slot[0] for slot in matched if not walk.same_output(slot))
    shared = one.values.keys() & other.values.keys()
    return Comparison(
        inputs_only=(_without(one.inputs, other.inputs), _without(other.inputs, one.inputs)),
        outputs_only=(_keys(_without(one.outputs, other.outputs)), _keys(_without(other.outputs, one.outputs))),
        input_types=tuple(input_types),
        output_types=tuple(TypesDiffer(x.key, x.type, y.type) for x, y in pairs if x.type != y.type),
        # Types follow from those of inputs and detached values: where inputs' types differ, so do others, and it says nothing new.
        value_types=() if input_types else tuple(_value_types(one, other)),
        computed=computed,
        places=tuple(walk.places),
        n_places=walk.n_places,
        shared=sum(one.values[digest][0] != _DETACHED for digest in shared),
        values_only=(_ops(one, shared), _ops(other, shared)),
    )


_DETACHED = ""
_Slot = tuple[Key, int]  # the output of this key, counted from the latest graph that has it


class _Side:
    """One document: its free inputs, its outputs, and its live values by digest, with their op and type."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.definitions = Definitions(document)
        self.digests = digests(document)
        self.inputs = {i.key: i.type for i in document.free_inputs}
        self.outputs: dict[_Slot, tuple[int, Output]] = {}
        seen: Counter[Key] = Counter()
        for g in range(len(document.graphs) - 1, -1, -1):
            for output in document.graphs[g].outputs:
                self.outputs[output.key, seen[output.key]] = g, output
            seen.update(output.key for output in document.graphs[g].outputs)
        self.values = self._live_values()

    def _live_values(self) -> dict[bytes, tuple[str, Type | None]]:
        logical = link(self.document)
        outputs = [(g, o.value) for g, o in self.outputs.values() if o.value is not None]
        live = logical.depends_on(logical.flat_id(g, value) for g, value in outputs)
        results = [[(case.op, t) for t in case.results] for case in self.document.cases.cases]
        values: dict[bytes, tuple[str, Type | None]] = {}
        for k, detached in enumerate(self.document.detached):
            if live[logical.base[-1] + k]:
                values[bytes.fromhex(detached.digest.removeprefix(PREFIX))] = _DETACHED, detached.type
        for g, graph in enumerate(self.document.graphs):
            own, flat = self.digests[g], logical.base[g]
            for code, _, first, after in forwards(graph, graph.args):
                values.update((own[v], results[code][v - first]) for v in range(first, after) if live[flat + v])
        return values

    def digest(self, place: Place) -> bytes:
        g, value = place
        if g == Externals.DETACHED:
            return bytes.fromhex(self.document.detached[value].digest.removeprefix(PREFIX))
        return self.digests[g][value]

    def place_of(self, slot: _Slot) -> Place | None:
        """The value of an output; None for a structural zero."""
        g, output = self.outputs[slot]
        return None if output.value is None else self.document.graphs[g].place(g, output.value)

    def find(self, digest: bytes) -> Place:
        """The first place that has this digest."""
        for g, own in enumerate(self.digests):
            if digest in own:
                return g, own.index(digest)
        return Externals.DETACHED, [d.digest for d in self.document.detached].index(PREFIX + digest.hex())


class _Walk:
    """Walks definitions in A and B down together, keeping the first of the smallest parts that differ.

    A pair of values is passed over if both have been met before, in whatever pairs. So there are no more steps than values; and
    the first way down always ends at a difference, since all below a value that is new on it is new.
    """

    def __init__(self, a: _Side, b: _Side) -> None:
        self.a, self.b = a, b
        self.met_a: set[bytes] = set()
        self.met_b: set[bytes] = set()
        self.places: list[Difference] = []
        self.n_places = 0

    def same_output(self, slot: _Slot) -> bool:
        """Whether A and B compute this output in the same way; if not, where they differ is noted."""
        a, b = self.a.place_of(slot), self.b.place_of(slot)
        if a is None or b is None:
            if a != b:
                self._note(slot[0], a, b, "")
            return a == b
        same = self.a.digest(a) == self.b.digest(b)
        waiting = [] if same else [(a, b)]
        while waiting:
            a, b = waiting.pop()
            x, y = self.a.digest(a), self.b.digest(b)
            if x == y or (x in self.met_a and y in self.met_b):
                continue
            self.met_a.add(x)
            self.met_b.add(y)
            p, q = self.a.definitions[a], self.b.definitions[b]
            if not isinstance(p, Application) or not isinstance(q, Application) or p.case.op != q.case.op:
                self._note(slot[0], a, b, "")
            elif reason := self._reason(p, q):
                self._note(slot[0], a, b, reason)
            else:
                waiting += reversed(list(zip(p.operands, q.operands, strict=True)))
        return same

    def _reason(self, p: Application, q: Application) -> str:
        """What differs between two applications of one op, but for the values they read."""
        if p.case.attrs.identity(closed_digest) != q.case.attrs.identity(closed_digest):
            return first_within(p.case, q.case) or "attrs"
        if p.case.mask != q.case.mask:
            return "role"
        if len(p.operands) != len(q.operands):
            return "number of operands"
        if p.slot != q.slot:
            return "result"
        if sorted(map(self.a.digest, p.operands)) == sorted(map(self.b.digest, q.operands)):
            return "order of operands"
        return ""

    def _note(self, key: Key, a: Place | None, b: Place | None, reason: str) -> None:
        self.n_places += 1
        if len(self.places) < PLACES:
            self.places.append(Difference(key, a, b, reason))


def _without(ours: Iterable[T], others: Container[T]) -> tuple[T, ...]:
    return tuple(one for one in ours if one not in others)


def _keys(slots: Iterable[_Slot]) -> tuple[Key, ...]:
    return tuple(key for key, _ in slots)


def _value_types(a: _Side, b: _Side) -> Iterator[TypesDiffer[Place]]:
    for digest, (_, type_) in a.values.items():
        if digest in b.values:
            other = b.values[digest][1]
            if type_ != other and type_ is not None and other is not None:
                yield TypesDiffer(a.find(digest), type_, other)
                return  # types of what is computed from it differ likewise


def _ops(side: _Side, shared: set[bytes]) -> Counter[str]:
    return Counter(op for digest, (op, _) in side.values.items() if digest not in shared and op != _DETACHED)
