"""Which elements depend on which: patterns, propagated through a graph that is linear in its tangents.

The pattern of a value has a row for each of its elements, and a column for each element of the tangents: a sparse matrix of truth
values. Rows are moved, joined and added up as each primitive says (`Rules.sparsity`), whole arrays at a time. Values that depend on
no input are computed on the way, since it is they that say where a gather reads, and which coefficients are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, cast

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

from tidu_cli.errors import StepsError
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case, CaseTable, Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType, TensorType, Type, leaves
from tidu_cli.limits import StepCounting, limited_steps
from tidu_cli.rules.analysis import Spreading
from tidu_cli.rules.contract import Primitive, Transposition, Types
from tidu_cli.rules.recording.functions import kernel
from tidu_cli.rules.recording.trace import Trace, as_output, expanded, recorded
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.sparse.rows import along, empty, identity, joined, kept, of_rows, require_memory, rows_at

Value = Any
"""The `csr_array` of a value that depends on tangents, of a number also a set of columns or `Bits`; an array where it is known; or
None."""

_FEW = 64
"""As many columns a number may have to be a set of them."""

_BITS = 50_000
"""The most columns of a pattern for which those of a number are held as bits, where they are more than `_FEW`."""


class Bits(int):
    """The columns of a number: bit j is set for column j."""


_NUMBERS = frozenset({TensorType(dtype, ()) for dtype in ("f64", "f32", "f16", "bf16")})


def elements(type_: Type) -> int:
    """How many elements a value of a type has; those of a record are those of its arrays, depth first."""
    return sum(leaf.size for _, leaf in leaves(type_))


class Propagation:
    """Patterns of `columns` columns, by the rules of a set of primitives.

    `dense` names the ops of which nothing better was known than that each element of the result depends on all of an operand.
    """

    def __init__(self, primitives: PrimitiveSet, columns: int) -> None:
        self.primitives, self.columns = primitives, columns
        self.dense: dict[str, None] = {}
        self._expanded: dict[Case, Graph] = {}
        self._kernels: dict[Case, Callable[..., Any]] = {}

    def graph(self, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a self-contained graph for these values of its inputs. Raises LimitError for too many entries."""
        values: list[Value] = list(inputs)
        last = {a: node for node, (_, args, _, _) in enumerate(forwards(graph, graph.args)) for a in args}
        last |= {o.value: graph.n_nodes for o in graph.outputs if o.value is not None}
        for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
            wanted = any(value in last for value in range(first, end))
            values += self.node(graph.cases[code], [values[a] for a in args]) if wanted else [None] * (end - first)
            for a in args:
                if last[a] == node:
                    values[a] = None
        return [empty(elements(o.type), self.columns) if o.value is None else self._matrix(values[o.value]) for o in graph.outputs]

    def node(self, case: Case, operands: Sequence[Value]) -> Sequence[Value]:
        """The results of one node."""
        primitive = self.primitives[case.op]
        active = [isinstance(x, csr_array | frozenset | Bits) for x in operands]
        if not any(active):
            return self._computed(primitive, case, operands)
        rules = primitive.rules
        if rules.sparsity is not None and case.results[0] in _NUMBERS:
            few = [x for x, a in zip(operands, active, strict=True) if a]
            if all(isinstance(x, frozenset | Bits) for x in few) and not any(_is_zero(x) for x in operands):
                return [self._number(few)]
        operands = [self._matrix(x) for x in operands]
        if rules.inlined is not None:
            if case not in self._expanded:
                self._expanded[case] = expanded(self.primitives, case)
            return self.graph(self._expanded[case], operands)
        if rules.pattern is not None:
            return rules.pattern(self, case.attrs, operands)
        if primitive.evaluation.passes:
            return operands
        if rules.sparsity == "moved" and self._is_placed(primitive, operands):
            parts = [x for x, a in zip(operands, active, strict=True) if a]
            whole = parts[0] if len(parts) == 1 else csr_array(sparse.vstack(parts))
            moved = [rows_at(whole, places, _what(case)) for places in self._moved(primitive, case, operands)]
            return [self._small(x) for x in moved]
        results: list[csr_array | None] = [None] * len(case.results)
        for k in range(len(operands)):
            if active[k]:
                for r, part in enumerate(self._spread(primitive, case, operands, k)):
                    results[r] = part if results[r] is None else joined(results[r], part)
        for part in results:
            if part is not None:
                require_memory(part.nnz, _what(case))
        return [self._small(x) for x in results]

    # A number that depends on a few tangents is a set of columns: graphs of many numbers have a node for each.

    def _small(self, x: csr_array) -> Value:
        if x.shape[0] != 1 or (x.nnz > _FEW and self.columns > _BITS):
            return x
        return frozenset(x.indices.tolist()) if x.nnz <= _FEW else _bits(x.indices)

    def _number(self, parts: Sequence[frozenset[int] | Bits]) -> Value:
        """What depends on all that these numbers depend on."""
        few = frozenset().union(*[x for x in parts if isinstance(x, frozenset)])
        many = [x for x in parts if isinstance(x, Bits)]
        if many:
            return Bits(reduce(or_, many, _bits([*few]) if few else 0))
        if len(few) <= _FEW:
            return few
        return _bits([*few]) if self.columns <= _BITS else self._matrix(few)

    def _matrix(self, x: Value) -> Value:
        """A value of which a pattern is a matrix."""
        if isinstance(x, frozenset):
            return csr_array((np.ones(len(x), bool), sorted(x), [0, len(x)]), shape=(1, self.columns))
        if isinstance(x, Bits):
            some = np.frombuffer(x.to_bytes(-(-self.columns // 8), "little"), np.uint8)
            places = np.flatnonzero(np.unpackbits(some, bitorder="little"))
            return csr_array((np.ones(places.size, bool), places, [0, places.size]), shape=(1, self.columns))
        return x

    # What rules of operations that hold graphs use (`analysis.Patterns`).

    def through(self, graph: ClosedGraph, values: Sequence[Value]) -> list[Value]:
        """The outputs of a closed graph."""
        return self.graph(graph.graph, values)

    def union(self, values: Sequence[Value]) -> Value:
        """What may be any of these values: all that one of them depends on; what is known only where all are the same."""
        patterns = [x for x in values if isinstance(x, csr_array)]
        if patterns:
            return reduce(joined, patterns)
        known = all(isinstance(x, np.ndarray | np.generic) and np.array_equal(x, values[0]) for x in values)
        return values[0] if known else None

    def same(self, values: Sequence[Value], others: Sequence[Value]) -> bool:
        """Whether these are the same values."""
        pairs = zip(values, others, strict=True)
        return all(type(a) is type(b) and (a.nnz == b.nnz if isinstance(a, csr_array) else np.array_equal(a, b)) for a, b in pairs)

    def steps(self, n: int, values: Sequence[Value]) -> Iterator[list[Value]]:
        """The parts of values along their first axis, of n places. Of records nothing is known, and all parts are as one."""
        for k in range(n):
            yield [_part(x, k, n) for x in values]

    def stacked(self, parts: Sequence[Value]) -> Value:
        """The value that has these along its first axis."""
        if any(isinstance(x, csr_array) for x in parts):
            size = next(x.shape[0] for x in parts if isinstance(x, csr_array))
            return csr_array(sparse.vstack([x if isinstance(x, csr_array) else empty(size, self.columns) for x in parts]))
        return np.stack(parts) if all(isinstance(x, np.ndarray | np.generic) for x in parts) and parts else None

    def solved(self, map: ClosedGraph, consts: Sequence[Value], right: Sequence[Value]) -> list[Value]:
        """What a map of unknowns takes to these values: its inverse ties unknowns that a chain of equations does, and no others."""
        sizes = [elements(i.type) for i in map.graph.inputs[len(consts) :]]
        first = np.cumsum([0, *sizes]).tolist()
        within = Propagation(self.primitives, first[-1])
        units = [identity(size, start, first[-1]) for size, start in zip(sizes, first, strict=False)]
        matrix = sparse.vstack(within.graph(map.graph, [*consts, *units]), format="csr")
        self.dense |= within.dense
        n, tied = connected_components(matrix, directed=False)
        rows = [x if isinstance(x, csr_array) else empty(size, self.columns) for x, size in zip(right, sizes, strict=True)]
        of_each = csr_array(of_rows(tied, n).T @ sparse.vstack(rows, format="csr"))
        whole = rows_at(of_each, tied, "the pattern of the solution of a linear system")
        return [whole[start : start + size] for start, size in zip(first, sizes, strict=False)]

    # What one operand of a linear node contributes.

    def _computed(self, primitive: Primitive, case: Case, operands: Sequence[Value]) -> Sequence[Value]:
        """The results of a node that depends on no tangent: known if its operands are."""
        if any(x is None for x in operands):
            return [None] * len(case.results)
        if case not in self._kernels:
            made = primitive.evaluation.kernel(np, case.attrs, cast(Types, case.operands), cast(Types, case.results))
            self._kernels[case] = made
        try:
            with np.errstate(all="ignore"), limited_steps(None, drawn=True), StepCounting():
                results = self._kernels[case](*operands)
        except StepsError:  # of a loop that may never end: what it gives is not known
            return [None] * len(case.results)
        return [results] if len(case.results) == 1 else list(results)

    def _spread(self, primitive: Primitive, case: Case, operands: Sequence[Value], k: int) -> Sequence[csr_array]:
        """What operand k contributes to each result."""
        rules, x = primitive.rules, operands[k]
        if any(isinstance(t, RecordType) for t in (*case.operands, *case.results)):
            return self._of_records(primitive, case, k, x)
        types, results = cast(Types, case.operands), cast(Types, case.results)
        sparsity = rules.sparsity
        if not self._is_placed(primitive, operands):
            sparsity = rules.unplaced
            if sparsity != "elements":
                self.dense[case.op] = None
        if sparsity == "elements" and types[k].size == results[0].size:
            return [kept(x, self._coefficients(primitive, case, operands, k))]
        if sparsity == "summed":
            places = self._summed(case, operands, k)
            rows = np.flatnonzero(places >= 0)
            into = csr_array(sparse.coo_array((np.ones(rows.size, bool), (places[rows], rows)), (results[0].size, types[k].size)))
            return [csr_array(into @ x)]
        if callable(sparsity):
            node = Spreading(case.attrs, types, k, results[0], [x if isinstance(x, np.ndarray) else None for x in operands])
            return [along(x, types[k].shape, results[0].shape, sparsity(node), _what(case))]
        if max(types[k].size, results[0].size) > 1:
            self.dense[case.op] = None
        return [along(x, types[k].shape, t.shape, (), _what(case)) for t in results]

    def _of_records(self, primitive: Primitive, case: Case, k: int, x: csr_array) -> Sequence[csr_array]:
        """Of nodes that put records together, take fields of them, or go through them array by array."""
        operand, result = cast(Type, case.operands[k]), case.results[0]
        makes, takes = primitive.domain.makes, primitive.domain.takes
        parts = []
        for path, leaf in leaves(result):
            if makes is not None:
                names = makes(case.attrs)
                source = path[1:] if path[0] in names and names.index(path[0]) == k else None
            else:
                source = (takes(case.attrs), *path) if takes is not None else path
            span = None if source is None else _span(operand, source)
            size = elements(operand)
            if span is None and makes is None and size == 1:  # a number that scales a record
                parts.append(rows_at(x, np.zeros(leaf.size, int)))
            else:
                parts.append(empty(leaf.size, self.columns) if span is None else x[span[0] : span[1]])
        return [csr_array(sparse.vstack(parts))] if parts else [empty(0, self.columns)]

    def _coefficients(self, primitive: Primitive, case: Case, operands: Sequence[Value], k: int) -> Any:
        """Where a known coefficient of operand k is not zero, element by element; None where none is known."""
        beside = primitive.others([j == k for j in range(len(operands))])
        outside = [j for j in range(len(operands)) if j != k and j not in (beside or ()) and not primitive.domain.is_index(j)]
        if beside is None or not outside or any(not isinstance(operands[j], np.ndarray | np.generic) for j in outside):
            return None
        ones = [np.ones_like(operands[outside[0]], shape=cast(TensorType, t).shape) for t in case.operands]
        given = [operands[j] if j in outside else ones[j] * (j == k) for j in range(len(ones))]
        return np.ravel(self._computed(primitive, case, given)[0]) != 0

    def _is_placed(self, primitive: Primitive, operands: Sequence[Value]) -> bool:
        """Whether operands that say where or which are known."""
        first, end = primitive.domain.indices
        return not any(x is None for x in operands[first:end])

    def _moved(self, primitive: Primitive, case: Case, operands: Sequence[Value]) -> list[Any]:
        """Of each element of each result which one of the active operands it is, or -1: what the kernel does to their numbers.

        Elements are numbered through, from one operand to the next.
        """
        types, given, start = [], [], 1.0
        for j, type_ in enumerate(map(_numbered, case.operands)):
            if primitive.domain.is_index(j):
                types.append(cast(TensorType, case.operands[j]))
                given.append(operands[j])
                continue
            types.append(type_)
            active = isinstance(operands[j], csr_array)
            given.append(np.arange(start, start + type_.size).reshape(type_.shape) if active else np.zeros(type_.shape))
            start += type_.size * active
        results = tuple(map(_numbered, case.results))
        moved = primitive.evaluation.kernel(np, case.attrs, tuple(types), results)(*given)
        return [_places(part) for part in ([moved] if len(results) == 1 else moved)]

    def _summed(self, case: Case, operands: Sequence[Value], k: int) -> Any:
        """Of each element of operand k the element of the result that it is in, or -1: what the transpose does to their numbers."""
        index = self.primitives[case.op].domain.is_index
        types = tuple([cast(TensorType, t) if index(j) else _numbered(t) for j, t in enumerate(case.operands)])
        result, mask = _numbered(case.results[0]), tuple([j == k for j in range(len(types))])
        trace = Trace(self.primitives, CaseTable(self.primitives))
        sources = [trace.source(t, linear=False) for t in types]
        cotangent = trace.source(result, linear=False)
        hidden = [None if j == k else t for j, t in enumerate(sources)]
        rule = self.primitives.transpose_rule(case.op)
        back = rule(Transposition(case.attrs, hidden, types, mask, [cotangent]))[k]
        assert back is not None
        inputs = [Input(Key(f"x{j}"), t) for j, t in enumerate((*types, result))]
        run = kernel(np, recorded(trace, case.op, inputs, [as_output("x", back)]), self.primitives)
        given = [operands[j] if index(j) else np.zeros(t.shape) for j, t in enumerate(types)]
        return _places(np.abs(run(*given, np.arange(1.0, result.size + 1).reshape(result.shape))))


def _bits(columns: Any) -> Bits:
    there = np.zeros(max(columns) + 1, bool)
    there[columns] = True
    return Bits.from_bytes(np.packbits(there, bitorder="little").tobytes(), "little")


def _is_zero(x: Value) -> bool:
    return isinstance(x, np.ndarray | np.generic) and np.ndim(x) == 0 and not x


def _numbered(type_: Type | None) -> TensorType:
    """A type with f64 for its dtype, which numbers elements exactly."""
    assert isinstance(type_, TensorType)
    return type_.with_dtype("f64")


def _places(numbered: Any) -> Any:
    """Element numbers from 0 up, of numbers from 1 up; -1 of what is 0 or NaN."""
    return np.where(numbered > 0, np.nan_to_num(numbered), 0).astype(np.int64).ravel() - 1


def _part(x: Value, k: int, n: int) -> Value:
    if isinstance(x, csr_array):
        size = x.shape[0] // n
        return x[k * size : (k + 1) * size]
    return x[k] if isinstance(x, np.ndarray) else None


def _span(type_: Type, path: Sequence[str]) -> tuple[int, int] | None:
    """The elements of the array at a path in a record, or of all arrays there."""
    start = 0
    for at, leaf in leaves(type_):
        if tuple(at) == tuple(path):
            return start, start + leaf.size
        start += leaf.size
    return None


def _what(case: Case) -> str:
    return f"the pattern of the derivative, at a node {case.op}"
