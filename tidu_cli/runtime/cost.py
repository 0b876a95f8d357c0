"""What a document costs: operations, depth and memory, told from types before anything runs. Linear in its size, without NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from tidu_cli.graph.graph import Case, Column, Document, Graph, column
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.types import TensorType, Type, leaves
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.contract import ValueTypes
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.aliasing import Sharing, shared_by


@dataclass(frozen=True, slots=True)
class Flops:
    """Operations of some nodes. `unknown` of the nodes are left out, since a detached reference hides an operand's type."""

    known: int
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What evaluating the head's outputs takes.

    `nodes` counts those that some output needs, `depth` those on the longest path among them. `peak` is the greatest number of
    bytes alive at once, inputs and results included (see `tidu_cli.runtime.memory`); None where a detached reference hides a type.
    """

    nodes: int
    depth: int
    flops: Flops
    peak: int | None


def flops(graph: Graph, primitives: PrimitiveSet | None = None) -> Flops:
    """The operations of all nodes of a graph."""
    return _flops(graph.cases.cases, Counter(graph.code), primitives or vocabulary(graph.cases))


def depths(document: Document) -> list[int]:
    """For each graph the number of nodes on the longest path that ends in it; a path may begin in graphs that it reads."""
    logical = link(document)
    depth = column([0]) * logical.n_values
    return [_deepest(logical, g, depth) for g in range(len(document.graphs))]


def evaluation(document: Document, primitives: PrimitiveSet | None = None) -> Evaluation:
    """What evaluating the head's outputs takes, nodes being run in order, and each value let go of after its last use.

    The estimate is that of `estimate_memory` for the materialized document, except that nodes that compute the same count each.
    """
    primitives = primitives or vocabulary(document.cases)
    walk = _Walk(document, primitives)
    for g in range(len(document.graphs) - 1, -1, -1):
        walk.through(g)
    used = {code: n for code, n in enumerate(walk.count) if n}
    cases = document.cases.cases
    hidden = any(None in cases[code].operands for code in used)
    return Evaluation(sum(used.values()), walk.depth, _flops(cases, used, primitives), None if hidden else walk.given + walk.peak)


def _flops(cases: list[Case], counts: Mapping[int, int], primitives: PrimitiveSet) -> Flops:
    known = unknown = 0
    for code, n in counts.items():
        case = cases[code]
        if None in case.operands:
            unknown += n
        else:
            known += n * primitives[case.op].evaluation.flops(case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    return Flops(known, unknown)


def _flat_args(logical: LogicalGraph, g: int) -> Column[int]:
    """The arguments of graph g as flat ids: its own column, where each stands for itself."""
    graph = logical.document.graphs[g]
    return graph.args if not logical.base[g] and logical.outside[g] == column(range(len(graph.inputs))) else logical.args[g]


def _deepest(logical: LogicalGraph, g: int, depth: Column[int]) -> int:
    """Fill in the depths of the results of graph g. Gives the greatest."""
    graph, args = logical.document.graphs[g], _flat_args(logical, g)
    arity, n_results = graph.cases.arity, graph.cases.n_results
    end, value, deepest = 0, logical.base[g] + len(graph.inputs), 0
    for code in graph.code:
        start, end = end, end + arity[code]
        own = 0
        for a in args[start:end]:
            if depth[a] > own:
                own = depth[a]
        own += 1
        for _ in range(n_results[code]):
            depth[value] = own
            value += 1
        if own > deepest:
            deepest = own
    return deepest


@dataclass(frozen=True, slots=True)
class _Part:
    """An array that a value is, or is made of: that of a value of its own (a flat id), or of tensor number `tensor` in a record."""

    flat: int
    tensor: int | None
    nbytes: int


def _parts(flat: int, type_: Type) -> tuple[_Part, ...]:
    if isinstance(type_, TensorType):
        return (_Part(flat, None, type_.nbytes),)
    return tuple(_Part(flat, k, tensor.nbytes) for k, (_, tensor) in enumerate(leaves(type_)))


def _shared(logical: LogicalGraph, sharing: Mapping[int, Sharing[_Part]]) -> dict[int, tuple[_Part | None, ...]]:
    """Of the results of these cases, by flat id, the arrays of other values that they are."""
    found: dict[int, tuple[_Part | None, ...]] = {}
    cases = logical.document.cases
    arity, n_results = cases.arity, cases.n_results
    for g, graph in enumerate(logical.document.graphs):
        args, end, value = _flat_args(logical, g), 0, logical.base[g] + len(graph.inputs)
        for code in graph.code:
            start, end = end, end + arity[code]
            if code in sharing:
                types = cast(ValueTypes, cases[code].operands)
                operands = [found.get(a) or _parts(a, type_) for a, type_ in zip(args[start:end], types, strict=True)]
                found.update(zip(range(value, value + n_results[code]), sharing[code](operands), strict=True))
            value += n_results[code]
    return found


_ALIVE, _GIVEN = 1, 2


class _Walk:
    """A walk through the logical graph from its end: a value is alive from where it is made up to its last use, met first.

    What the caller gives (free inputs, detached values) is held throughout, and so are the zeros of structural zeros.
    `height` counts, for each value, the nodes on the longest path from it to an output. `shared` tells of results that take no
    memory of their own which arrays they hold; of a record some may be alive before it is itself, which `fields` and `early` tell.
    """

    def __init__(self, document: Document, primitives: PrimitiveSet) -> None:
        self.logical = logical = link(document)
        self.state = bytearray(logical.n_values)
        self.height = column([0]) * logical.n_values
        self.count = [0] * len(document.cases)
        cases = document.cases.cases
        self.operand_bytes = [[0 if t is None else t.nbytes for t in case.operands] for case in cases]
        sharing: dict[int, Sharing[_Part]] = {}
        for code, case in enumerate(cases):
            shared: Sharing[_Part] | None = shared_by(primitives[case.op], case)
            if shared is not None:
                sharing[code] = shared
        self.shared = _shared(logical, sharing) if sharing else {}
        self.fields: set[_Part] = set()
        self.early: Counter[int] = Counter()
        self.result_bytes = [[0 if code in sharing else t.nbytes for t in case.results] for code, case in enumerate(cases)]
        self.made = list(map(sum, self.result_bytes))
        self.depth = self.live = self.peak = self.given = 0
        bound = {b.key for b in document.bindings}
        for key, flat in logical.source.items():
            if key not in bound:
                self.state[flat] = _GIVEN
        for flat in range(logical.base[-1], logical.n_values):
            self.state[flat] = _GIVEN
        for output in document.head.outputs:
            if output.value is None:
                self.given += output.type.nbytes
            else:
                self._use(logical.flat_id(len(document.graphs) - 1, output.value), output.type.nbytes)
        # Results are handed over one by one, the greatest perhaps as a copy.
        self.peak = self.live + max((o.type.nbytes for o in document.head.outputs), default=0)

    def _use(self, value: int, size: int) -> None:
        state = self.state[value]
        if state & _ALIVE:
            return
        self.state[value] = state | _ALIVE
        if value in self.shared:
            for part in self.shared[value]:
                if part is not None:
                    self._use_part(part)
        elif state & _GIVEN:
            self.given += size
        else:
            self.live += size - (self.early[value] if self.early else 0)

    def _use_part(self, part: _Part) -> None:
        if part.tensor is None:
            self._use(part.flat, part.nbytes)
        elif not self.state[part.flat] and part not in self.fields:
            self.fields.add(part)
            self.early[part.flat] += part.nbytes
            self.live += part.nbytes

    def through(self, g: int) -> None:
        """Walk back through the nodes of graph g."""
        graph, args = self.logical.document.graphs[g], _flat_args(self.logical, g)
        arity, n_results = graph.cases.arity, graph.cases.n_results
        state, height, count, made = self.state, self.height, self.count, self.made
        end, value, live, peak, depth = len(args), self.logical.base[g + 1], self.live, self.peak, self.depth
        for code in reversed(graph.code):
            start, first = end - arity[code], value - n_results[code]
            if first + 1 < value:
                own, wasted = self._several(code, first)
                live += wasted
            else:
                own = height[first] + 1 if state[first] else 0
            if own:  # else no output needs the node
                count[code] += 1
                for k in range(start, end):
                    a = args[k]
                    if not state[a] & _ALIVE:
                        self.live = live
                        self._use(a, self.operand_bytes[code][k - start])
                        live = self.live
                    if height[a] < own:
                        height[a] = own
                if own > depth:
                    depth = own
                if live > peak:
                    peak = live
                live -= made[code]
            end, value = start, first
        self.live, self.peak, self.depth = live, peak, depth

    def _several(self, code: int, first: int) -> tuple[int, int]:
        """Of a node with several results: 1 + their greatest height, 0 if none is needed, and the bytes of those not needed."""
        own = wasted = 0
        for value, size in enumerate(self.result_bytes[code], first):
            if self.state[value]:
                own = max(own, self.height[value] + 1)
            else:
                wasted += size
        return own, wasted if own else 0
