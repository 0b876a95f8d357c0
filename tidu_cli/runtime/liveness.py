"""What is alive when, told from types and from who reads what: the estimate of peak memory, of documents and of programs.

Nodes run in order, and each value is let go of after its last use. A view counts as much as the array that it shows, since what
follows mostly makes it one; work space within kernels counts where they tell it (`Evaluation.work`), and what is
alive in a step of a loop, or in a branch, does. Results that are put together of arrays, or are taken out of
a record, take no memory of their own: what they share lives on in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import backwards, closed_graphs, forwards
from tidu_cli.graph.graph import Case, column
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.sizes.open import OpenSize, number_of
from tidu_cli.graph.types import Path, RecordType, TensorType, Type, leaves
from tidu_cli.rules.contract import Primitive, Types
from tidu_cli.rules.vocabulary import PrimitiveSet


class Array(Frozen):
    """A tensor of a value (a flat id): the value itself, or what is at `path` in a record; and its type."""

    flat: int
    path: Path
    type: TensorType


Arrays = tuple[Array | None, ...]
"""What the tensors of a value are. None stands for a zero."""

Sharing = Callable[[Sequence[Arrays]], Sequence[Arrays]]
"""From what the operands of a node are to what its results are."""


class Liveness:
    """A walk through a logical graph from its end: a value is alive from where it is made up to its last use, met first.

    `count` says of each case how many of its nodes some output needs. What the caller gives (free inputs, detached values) is held
    throughout, and so are the zeros of structural zeros: `given` bytes. Beside these at most `peak` bytes are alive at once, first
    where the value `at` is made, or when results are handed over: then that is the number of values.

    `last[v]` is the first result of the node that uses value v last, -1 if none does. Arrays of a record may live on in others when
    it does not itself: `last` of these is in `last_of_part`, and the bytes of those by record in `outliving`.
    """

    def __init__(self, logical: LogicalGraph, primitives: PrimitiveSet) -> None:
        self.logical = logical
        document, n_values = logical.document, logical.n_values
        cases = document.cases.cases
        self.count = [0] * len(cases)
        self.last = column([-1]) * n_values
        self.last_of_part: dict[Array, int] = {}
        self.outliving: Counter[int] = Counter()
        sharing = {code: shared for code, case in enumerate(cases) if (shared := _sharing(primitives[case.op], case))}
        self.shared = _shared(logical, sharing) if sharing else {}
        self._operand_bytes = [[0 if t is None else _bytes(t) for t in case.operands] for case in cases]
        self._result_bytes = [[0 if code in sharing else _bytes(t) for t in case.results] for code, case in enumerate(cases)]
        # While a loop runs, its steps hold values of their own.
        self._work = [alive_within(case, primitives) for case in cases]
        bound = {b.key for b in document.bindings}
        self.is_given = {flat for key, flat in logical.source.items() if key not in bound} | {*range(logical.base[-1], n_values)}
        parts = chain.from_iterable(self.shared.values())
        self._special = self.is_given | self.shared.keys() | {part.flat for part in parts if part is not None}
        self.open = any(isinstance(t.nbytes, OpenSize) for case in cases for t in case.results)
        """Whether sizes are open: their bytes count as 0, and the peak is not known."""
        self.given = self._live = 0
        head = len(document.graphs) - 1
        for output in document.head.outputs:
            if output.value is None:
                self.given += _bytes(output.type)
            else:
                self._use(logical.flat_id(head, output.value), _bytes(output.type), n_values)
        # Results are handed over one by one, the greatest perhaps as a copy.
        self.peak, self.at = self._live + max((_bytes(o.type) for o in document.head.outputs), default=0), n_values
        for g in range(head, -1, -1):
            self._walk(g)

    def _walk(self, g: int) -> None:
        """Walk back through the nodes of graph g."""
        last, count, operand_bytes, made = self.last, self.count, self._operand_bytes, list(map(sum, self._result_bytes))
        special, work, live, peak, at = self._special, self._work, self._live, self.peak, self.at
        for code, args, first, end in backwards(self.logical.document.graphs[g], self.logical.args[g], self.logical.base[g]):
            if end == first + 1:
                if last[first] < 0:
                    continue  # no output needs the node
            elif max(last[first:end]) < 0:
                continue
            else:
                live += sum(size for value, size in enumerate(self._result_bytes[code], first) if last[value] < 0)
            count[code] += 1
            for a in args:
                if last[a] >= 0:
                    continue
                size = operand_bytes[code][args.index(a)]
                if a in special:
                    self._live = 0
                    self._use(a, size, first)
                    size = self._live
                last[a] = first
                live += size
            if live + work[code] >= peak:
                peak, at = live + work[code], first
            live -= made[code]
        self._live, self.peak, self.at = live, peak, at

    def _use(self, value: int, size: int, by: int) -> None:
        if self.last[value] >= 0:
            return
        self.last[value] = by
        if value in self.shared:
            for part in self.shared[value]:
                if part is not None:
                    self._use_part(part, by)
        elif value in self.is_given:
            self.given += size
        else:
            self._live += size - self.outliving[value]

    def _use_part(self, part: Array, by: int) -> None:
        if not part.path:
            self._use(part.flat, _bytes(part.type), by)
        elif self.last[part.flat] < 0 and part.flat not in self.is_given and part not in self.last_of_part:
            self.last_of_part[part] = by
            self.outliving[part.flat] += _bytes(part.type)
            self._live += _bytes(part.type)

    def at_peak(self) -> Iterator[Array]:
        """What is alive at the peak beside what is given, of a document of one graph."""
        graph, at = self.logical.document.head, self.at
        end = at if at == len(self.last) else at + graph.cases.n_results[graph.code[graph.producer(at)[0]]]
        for value in range(end):
            if max(value, self.last[value]) >= at and value not in self.is_given and value not in self.shared:
                yield from _arrays(value, graph.type_of(value))
        for part, last in self.last_of_part.items():
            if part.flat < at <= last and self.last[part.flat] < at:
                yield part


def _bytes(type_: Type) -> int:
    """The bytes of a value; 0 of one whose sizes are open, where nobody asks for the peak."""
    size = type_.nbytes
    return 0 if isinstance(size, OpenSize) else size


def alive_within(case: Case, primitives: PrimitiveSet) -> int:
    """The bytes that the graphs in a node, or its kernel, hold at most, beside what they are given."""
    work = primitives[case.op].evaluation.work
    if work is not None and None not in case.operands:
        return number_of(lambda: work(case.attrs, cast(Types, case.operands), cast(Types, case.results))) or 0
    return max((Liveness(link(graph.document), primitives).peak for graph in closed_graphs(case.attrs)), default=0)


def _arrays(flat: int, type_: Type | None) -> tuple[Array, ...]:
    return () if type_ is None else tuple(Array(flat, path, tensor) for path, tensor in leaves(type_))


def _shared(logical: LogicalGraph, sharing: Mapping[int, Sharing]) -> dict[int, Arrays]:
    """Of the results of these cases, by flat id, the arrays of other values that they are."""
    shared: dict[int, Arrays] = {}
    for graph, args, base in zip(logical.document.graphs, logical.args, logical.base, strict=False):
        for code, operands, first, end in forwards(graph, args, base):
            if code in sharing:
                types = graph.cases[code].operands
                arrays = [shared.get(a) or _arrays(a, type_) for a, type_ in zip(operands, types, strict=True)]
                shared.update(zip(range(first, end), sharing[code](arrays), strict=True))
    return shared


def _sharing(primitive: Primitive, case: Case) -> Sharing | None:
    """How the results of a case are its operands, tensor by tensor; None where they are new arrays, or a type is hidden."""
    if None in case.operands:
        return None
    if primitive.evaluation.passes:
        return lambda operands: operands
    if primitive.domain.takes is not None:
        (record,) = case.operands
        assert isinstance(record, RecordType)
        before = record.names.index(primitive.domain.takes(case.attrs))
        start = sum(_n_tensors(type_) for _, type_ in record.fields[:before])
        end = start + _n_tensors(record.fields[before][1])
        return lambda operands: [operands[0][start:end]]
    if primitive.domain.makes is not None:
        (result,) = case.results
        assert isinstance(result, RecordType)
        names = primitive.domain.makes(case.attrs)
        parts = [(names.index(name) if name in names else None, (None,) * _n_tensors(type_)) for name, type_ in result.fields]
        return lambda operands: [tuple(chain.from_iterable(zeros if k is None else operands[k] for k, zeros in parts))]
    return None


def _n_tensors(type_: Type) -> int:
    return sum(1 for _ in leaves(type_))
