"""Comparing documents by structure: whether they take the same inputs and compute the same outputs in the same way.

Values are known by their digests, so the order of nodes, dead nodes, sharing, the split into graphs and the file format make no
difference. Where definitions differ, both are walked down together to the smallest parts that do. What differs, in this way or to
the letter, comes as lines for people and as data for programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from tidu_cli.checking.exact_comparison import first_within, structural_differences, texts, told_apart
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Externals, Output, Place
from tidu_cli.graph.identity import PREFIX, closed_digest, digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import Application, Definitions, link
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import Type
from tidu_cli.render.phrases import expression

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


def lines(compared: Comparison, data: dict[str, Any]) -> Iterator[str]:
    """A line for each thing that differs, of data as `to_data` gives it, and at last one of values."""
    for what in ("inputs", "outputs"):
        for side, keys in data[f"{what}_only"].items():
            if keys:
                yield f"{what} only in {side.upper()}: {listed(keys)}"
    for what, ports in (("input", compared.input_types), ("output", compared.output_types)):
        for port in ports:
            yield f"{what} '{port.of}' is {told_apart(port.a, port.b)}"
    for types, value in zip(compared.value_types, data["value_types"], strict=True):
        yield f"{value['value']} is {told_apart(types.a, types.b)}"
    if data["computed_differently"]:
        yield f"outputs computed differently: {listed(data['computed_differently'])}"
    for place in data["places"]:
        reason = f", {place['reason']}" if place["reason"] else ""
        yield f"  output '{place['output']}'{reason}:"
        for side in "ab":
            at = place[side]
            where = f"  (graph '{at['graph']}', node {at['node']})" if "node" in at else ""
            yield f"    {side.upper()}: {at['expression']}{where}"
    if data["n_places"] > len(data["places"]):
        yield f"  ... at {data['n_places']} places in all"
    values = data["values"]
    only = [f"{sum(values[k].values())} only in {side}{_ops_in_words(values[k])}" for k, side in (("only_a", "A"), ("only_b", "B"))]
    yield f"values: {values['shared']} in both, {', '.join(only)}"


def difference(a: Document, b: Document, *, exact: bool = False) -> tuple[Comparison, dict[str, Any]]:
    """How two documents differ, and the JSON form of that: "same", and where; with `exact` also graph by graph, as "structure"."""
    compared = compare(a, b)
    told = structural_differences(a, b) if exact else iter(())
    first = list(islice(told, _LISTED))
    structure = {"structure": first, "more_structure": sum(1 for _ in told)} if exact else {}
    return compared, {"same": compared.same and not first, **to_data(compared, a, b), **structure}


_LISTED = 10
"""As many differences of structure are listed."""


def to_data(compared: Comparison, a: Document, b: Document) -> dict[str, Any]:
    """The JSON form of a comparison."""

    def keys(pair: tuple[Sequence[Key], Sequence[Key]]) -> dict[str, list[str]]:
        return {side: list(map(str, keys)) for side, keys in zip("ab", pair, strict=True)}

    def types(differences: Sequence[TypesDiffer[Key]]) -> list[dict[str, str]]:
        return [{"key": str(d.of), **texts(d.a, d.b)} for d in differences]

    return {
        "inputs_only": keys(compared.inputs_only),
        "outputs_only": keys(compared.outputs_only),
        "input_types": types(compared.input_types),
        "output_types": types(compared.output_types),
        "value_types": [{"value": _value(a, d.of)["expression"], **texts(d.a, d.b)} for d in compared.value_types],
        "computed_differently": list(map(str, compared.computed)),
        "places": [
            {"output": str(place.key), "reason": place.reason or None, "a": _value(a, place.a), "b": _value(b, place.b)}
            for place in compared.places
        ],
        "n_places": compared.n_places,
        "values": {"shared": compared.shared, "only_a": dict(compared.values_only[0]), "only_b": dict(compared.values_only[1])},
    }


def _value(document: Document, place: Place | None) -> dict[str, Any]:
    """A value as an expression, and the graph and node that make it, if a node does."""
    if place is None:
        return {"expression": "0"}
    definitions = Definitions(document)
    data, maker = {"expression": expression(definitions, place)}, definitions[place]
    return data | ({"graph": document.graphs[maker.graph].name, "node": maker.node} if isinstance(maker, Application) else {})


def _ops_in_words(ops: dict[str, int]) -> str:
    listed = ", ".join(f"{n} {op}" for op, n in sorted(ops.items(), key=lambda item: (-item[1], item[0])))
    return f" ({listed})" if listed else ""
