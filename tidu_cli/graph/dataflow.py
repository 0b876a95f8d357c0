"""What depends on what in a large document, as NumPy columns, and how that spreads at any depth.

Values that nothing holds any more are peeled off: those that a peeled one was the last to hold follow it. The rounds of peeling
take whole arrays where many values go at once, and a plain loop where it is one after the other, as along a chain. So the work is
linear in what is peeled, however deep.

Hashes of nodes are equal where these are of one case and read the same: to be checked, or harmless where they are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import CaseTable, Column, Document, Externals, column

# Columns of integers as NumPy's arrays, block by block: what is computed of a block stays in the processor's cache, and soon goes.
#
# NumPy takes numbers that choose elements as 64-bit integers, and makes them such where they are not: of all at once, that is twice
# the memory of the columns themselves.


Ints = NDArray[np.int32]
Indices = NDArray[np.integer]
Bools = NDArray[np.bool_]

BLOCK = 2**15
"""So many elements at once."""


def blocks(first: int, end: int) -> Iterator[slice]:
    """The numbers from `first` to before `end`, in blocks."""
    return (slice(begin, min(begin + BLOCK, end)) for begin in range(first, end, BLOCK))


def array_of(values: Column[int] | Ints) -> Ints:
    """The array that shares a column's memory. While it exists, the column cannot grow."""
    return np.frombuffer(values, np.int32) if len(values) else np.empty(0, np.int32)


def column_of(values: Indices) -> Column[int]:
    """A column of these integers."""
    made = column()
    made.frombytes(np.ascontiguousarray(values, np.int32).data.cast("B") if len(values) else b"")
    return made


def counting(first: int, end: int) -> Column[int]:
    """The numbers from `first` to before `end`."""
    return column_of(np.arange(first, end, dtype=np.int32))


def taken(values: NDArray[Any], numbers: Ints) -> NDArray[Any]:
    """The values of these numbers."""
    chosen = np.empty(len(numbers), values.dtype)
    for block in blocks(0, len(numbers)):
        chosen[block] = values[numbers[block]]
    return chosen


def sums(values: Ints, numbers: Ints, first: int = 0) -> Ints:
    """`first`, and what it becomes by adding the values of these numbers, one after the other."""
    totals = np.empty(len(numbers) + 1, np.int32)
    totals[0] = first
    for block in blocks(0, len(numbers)):
        totals[block.start + 1 : block.stop + 1] = values[numbers[block]]
    return np.cumsum(totals, out=totals)


def starts(sizes: Sequence[int], code: Column[int], first: int = 0) -> Column[int]:
    """What the plain way does."""
    return column_of(sums(np.asarray(sizes, np.int32), array_of(code), first))


def before_each(sizes: NDArray[Any]) -> Ints:
    """The sum of all sizes before each; one more entry for their total."""
    totals = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=totals[1:])
    return totals


def counts(values: Ints, n: int) -> Ints:
    """How often each number below n occurs."""
    tally = np.zeros(n, np.int32)
    for block in blocks(0, len(values)):  # what NumPy's bincount does to all at once, with three times the memory
        np.add.at(tally, values[block].astype(np.intp), np.int32(1))
    return tally


def spans(first: Indices, end: Indices) -> Ints:
    """The numbers from first[0] to before end[0], then those from first[1] to before end[1], and so on."""
    some = np.flatnonzero(end > first)
    first, end = first[some], end[some]
    begins = np.cumsum(end - first)
    steps = np.ones(begins[-1] if len(some) else 0, np.int32)
    steps[:1] = first[:1]
    steps[begins[:-1]] = first[1:] - end[:-1] + 1
    return np.cumsum(steps, out=steps)  # NumPy's repeat would take ten times as long


def distinct(values: Ints) -> Ints:
    """The values, each once, in increasing order."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]


def occurring(values: Column[int], n: int) -> set[int]:
    """Which of the numbers below n occur."""
    occurs, given = np.zeros(n, np.bool_), array_of(values)
    for block in blocks(0, len(given)):
        occurs[given[block]] = True
    return set(np.flatnonzero(occurs).tolist())


def encoded(values: Column[int] | Ints, table: Column[int] | None) -> Iterator[bytes]:
    """The values, or the entries of a table that they number, as little-endian bytes."""
    given, entries = array_of(values), None if table is None else array_of(table)
    for block in blocks(0, len(given)):
        yield (given[block] if entries is None else entries[given[block]]).astype("<i4", copy=False).tobytes()


FEW = 64
"""Up to so many values at once, a plain loop is quicker than a round of NumPy calls."""

PARTS = 4
"""In so many parts values are put in order: each takes a look at all of them."""

Hashes = NDArray[np.uint64]

# Odd numbers without pattern: 2**64 over the golden ratio (Knuth, volume 3, section 6.4), and two primes of xxHash.
FIRST, SECOND, _PLACE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)


def within(mask: Bools, block: slice) -> Ints:
    """The numbers in a block where the mask is true."""
    return np.flatnonzero(mask[block]).astype(np.int32) + np.int32(block.start)


class Flow(Frozen, slots=False, eq=False):
    """Values, numbered so that each comes after those that it reads.

    Value v is made by a node of case `code[v]`, which reads `args[start[v]:start[v + 1]]`; `start` has an entry more than there are
    values. Inputs have the code -1, and read nothing. Arguments below 0 are none of these values.
    """

    code: Ints
    start: Ints
    args: Ints

    @property
    def n_values(self) -> int:
        """The number of values."""
        return len(self.code)

    @classmethod
    def of(cls, code: Ints, args: Ints, cases: CaseTable) -> Flow:
        """The flow of values of these cases."""
        arity = np.array([*cases.arity, 0], np.int32)  # of code -1 the last one
        start = np.zeros(len(code) + 1, np.int32)
        np.take(arity, code, out=start[1:], mode="wrap")  # to check codes would take a copy
        np.cumsum(start, out=start)
        return cls(code, start, args)


def has_single_results(cases: CaseTable, code: Ints) -> bool:
    """Whether all nodes of these cases (-1 means none) have one result."""
    n_results = np.array([*cases.n_results, 1], np.int32)
    return bool(np.all(n_results == 1)) or bool(np.all(n_results[code] == 1))


def flow_of(document: Document, base: Sequence[int], outside: Sequence[Column[int]]) -> Flow | None:
    """The flow of a logical graph's flat ids; None if some node has several results."""
    if sum(len(g.inputs) + g.n_nodes for g in document.graphs) != base[-1]:
        return None
    code = np.full(base[-1] + len(document.detached), -1, np.int32)
    args = np.empty(sum(len(g.args) for g in document.graphs), np.int32)
    end = 0
    for g, graph in enumerate(document.graphs):
        at = base[g] + len(graph.inputs)
        code[at : at + graph.n_nodes] = array_of(graph.code)
        start, end = end, end + len(graph.args)
        args[start:end] = array_of(graph.args)
        for block in blocks(start, end):
            to_flat_ids(args[block], base[g], outside[g], len(graph.inputs))
    return Flow.of(code, args, document.cases) if has_single_results(document.cases, code) else None


def to_flat_ids(args: Ints, base: int, outside: Column[int], n_inputs: int) -> None:
    """Turn arguments of a graph into the flat ids that they stand for, in place."""
    is_outside = np.flatnonzero(args < n_inputs)
    flat = array_of(outside)[args[is_outside]]
    args += np.int32(base)
    args[is_outside] = flat


def externals_in_flat_ids(
    external: Externals, base: Sequence[int], outside: Sequence[Column[int]], n_inputs: Sequence[int]
) -> Column[int]:
    """What the plain way does."""
    graphs, values = array_of(external.graph), array_of(external.value)
    bases = np.array(base, np.int32)
    flat: Ints = bases[graphs]  # graph -1, of which detached values are, has the last base
    flat += values
    # Inputs stand for what they share or are bound to.
    is_input = np.flatnonzero(values < np.array([*n_inputs, 0])[graphs])
    linked = [array_of(some)[:n] for some, n in zip(outside, n_inputs, strict=False)]
    first = np.cumsum([0, *n_inputs])
    flat[is_input] = np.concatenate([*linked, flat[:0]])[first[graphs[is_input]] + values[is_input]]
    return column_of(flat)


def depended_on(flow: Flow, roots: Iterable[int]) -> Bools:
    """For each value, whether one of `roots` is it or depends on it."""
    held = counts(flow.args, flow.n_values)
    np.add.at(held, np.fromiter(roots, np.int64), 1)
    peel(held, flow.start, flow.args)
    return held > 0


def readers(flow: Flow) -> tuple[Ints, Ints]:
    """The other way round: value v is read by `reader[start[v]:start[v + 1]]`, in increasing order. Gives `start` and `reader`."""
    start = np.zeros(flow.n_values + 1, np.int32)
    np.cumsum(counts(flow.args, flow.n_values), out=start[1:])
    owner = owners(flow.start)
    reader = np.empty(len(flow.args), np.int32)
    end = 0
    for places in in_order(flow.args, flow.n_values):
        begin, end = end, end + len(places)
        reader[begin:end] = owner[places]
    return start, reader


def in_order(values: Ints, n: int) -> Iterator[Ints]:
    """The places of some values from 0 to below n, in increasing order of the values, and where these are equal, of places.

    They come in parts, and places of equal values in one: to sort all at once would take more memory.
    """
    cuts = np.linspace(0, n, PARTS + 1).astype(np.int32)
    for first, end in pairwise(cuts):
        places = np.flatnonzero((values >= first) & (values < end))
        pairs = values[places].astype(np.int64)
        pairs <<= 32
        pairs |= places
        pairs.sort()
        yield pairs.astype(np.int32)  # the lower half of each pair


def peel(held: Ints, start: Ints, targets: Ints, loose: Indices | None = None) -> None:
    """Let go of `targets[start[v]:start[v + 1]]`, for each v in `loose` (by default all with `held[v]` 0), and on from there.

    `held[v]` counts what holds value v, and is counted down in place. What comes to 0 lets go in its turn.
    """
    if loose is None:
        loose = np.flatnonzero(held == 0)
    while len(loose):
        if len(loose) <= FEW:
            loose = _peel_singly(held, start, targets, loose)
        else:
            loose = np.concatenate([_peel_at_once(held, start, targets, loose[block]) for block in blocks(0, len(loose))])


def _peel_at_once(held: Ints, start: Ints, targets: Ints, loose: Indices) -> Indices:
    reached = targets[spans(start[loose], start[loose + 1])]
    np.subtract.at(held, reached.astype(np.intp), np.int32(1))
    return distinct(reached[held[reached] == 0])


def _peel_singly(held: Ints, start: Ints, targets: Ints, loose: Indices) -> Indices:
    # Memory views are what Python indexes quickest. Back to arrays where it is worth the while.
    counts, first, target, stack = held.data, start.data, targets.data, loose.tolist()
    while 0 < len(stack) <= 2 * FEW:
        value = stack.pop()
        for reached in target[first[value] : first[value + 1]]:
            left = counts[reached] - 1
            counts[reached] = left
            if not left:
                stack.append(reached)
    return np.array(stack, np.int64)


def owners(start: Ints) -> Ints:
    """The v of each number from start[v] to before start[v + 1]."""
    steps = np.zeros(start[-1], np.int32)
    last = 0
    for block in blocks(0, len(start) - 1):
        some = np.flatnonzero(np.diff(start[block.start : block.stop + 1])) + block.start
        steps[start[some]] = np.diff(some, prepend=last)
        last = some[-1] if len(some) else last
    return np.cumsum(steps, out=steps)


def number_by_first_use(args: Ints, n: int) -> Ints:
    """Turn arguments -1-h, h below n, into -1-k in place, where k numbers the distinct h in the order of first use; give these."""
    number = np.empty(n, np.int32)  # at first the place of the first use, which is found from behind
    is_outside, pieces = args < 0, list(blocks(0, len(args)))
    for piece in reversed(pieces):
        at = within(is_outside, piece)[::-1]
        number[~args[at]] = at  # the last assignment stays
    first_used: list[Ints] = [args[:0]]
    n_used = 0
    for piece in pieces:
        at = within(is_outside, piece)
        handles = ~args[at]
        new: Ints = handles[number[handles] == at]  # what has been numbered is past its first use, and its number less than that
        number[new] = np.arange(n_used, n_used + len(new))
        args[at] = ~number[handles]
        first_used.append(new)
        n_used += len(new)
    return np.concatenate(first_used)


def hashes_of(flow: Flow, nodes: Ints, stand_ins: Ints | None, factor: np.uint64) -> Hashes:
    """A hash of each node's case and of what stands for its operands. Another factor makes another hash."""
    start = flow.start[nodes]
    arity = flow.start[nodes + 1] - start
    total = _mixed(flow.code[nodes], -1, factor)
    k, longer = 0, np.flatnonzero(arity)
    while len(longer) > FEW:
        total[longer] += _mixed(operands_at(flow, start[longer] + k, stand_ins), k, factor)
        k += 1
        longer = longer[arity[longer] > k]
    for node in longer.tolist():
        rest = np.arange(k, arity[node])
        total[node : node + 1] += _mixed(operands_at(flow, start[node] + rest, stand_ins), rest, factor).sum()
    return _mixed(total, 0, factor)


def operands_at(flow: Flow, places: Indices, stand_ins: Ints | None) -> Ints:
    """What stands for the arguments at these places."""
    args = flow.args[places]
    return args if stand_ins is None else stand_ins[args]


def _mixed(values: NDArray[np.generic], place: Indices | int, factor: np.uint64) -> Hashes:
    mixed = values.astype(np.uint64)
    mixed += np.asarray(place).astype(np.uint64) * _PLACE
    mixed *= factor
    mixed ^= mixed >> np.uint64(29)
    mixed *= factor
    mixed ^= mixed >> np.uint64(32)
    return mixed
