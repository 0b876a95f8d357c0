"""Equal values of a large graph: hash-consing in bulk.

Two nodes are equal if they are of one case and read equal values. Classes begin as single values. Nodes that read the same classes
are merged, and the first of them stands for all; from then on only readers of classes that have just grown can have become equal to
something. So after a first round over all nodes, rounds are as small as what they look at. There are as many as equal values
build upon equal values; where that is deep, the plain way is the better one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tidu_cli.graph.columns.blocks import Bools, Ints, blocks, distinct, spans
from tidu_cli.graph.columns.dataflow import FIRST, SECOND, Flow, hashes_of, operands_at, readers, within

EFFORT = 16
"""How often, on average, each value may be looked at before the plain way is the better one."""
EFFORT_OF_ROUND = 2**11
"""What the calls of a round are worth, in values that are looked at."""

SEARCHES = 12
"""So often all arguments are looked at for who reads some values, before an index of readers is made."""


def equal_nodes(flow: Flow, is_node: Bools) -> tuple[Ints, Ints] | None:
    """Of these nodes, all that are equal to an earlier one, and for each of them the first that it is equal to.

    None if that takes more effort than it is worth.
    """
    effort = EFFORT * (flow.n_values + EFFORT_OF_ROUND)
    every = (within(is_node, block) for block in blocks(0, flow.n_values))
    pairs = _equal_pairs(flow, every, int(np.count_nonzero(is_node)), None)
    if pairs is None or not len(pairs[1]):
        return pairs
    read_by = _Readers(flow)
    found = np.arange(flow.n_values, dtype=np.int32)
    merged = np.empty(0, np.int32)
    is_kept = is_node.copy()  # whether it is a node that stands for itself
    has_grown = np.zeros(flow.n_values, np.bool_)
    while pairs is not None and len(pairs[1]):
        first, later = pairs
        found[later], is_kept[later] = first, False
        merged = np.concatenate([merged, later])
        found[merged] = found[found[merged]]
        has_grown[first] = True
        read = np.concatenate([distinct(first), merged[has_grown[found[merged]]]])
        has_grown[first] = False
        reading = read_by(read)
        candidates = distinct(reading[is_kept[reading]])
        effort -= len(merged) + len(candidates) + EFFORT_OF_ROUND
        if effort < 0:
            return None
        pieces = (candidates[block] for block in blocks(0, len(candidates)))
        pairs = _equal_pairs(flow, pieces, len(candidates), found)
    return pairs and (merged, found[merged])


class _Readers:
    """Who reads some values: found among all arguments the first few times; then by an index, which takes more time and memory."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._asked = 0
        self._index: tuple[Ints, Ints] | None = None

    def __call__(self, values: Ints) -> Ints:
        self._asked += 1
        if self._asked <= SEARCHES:
            return self._search(values)
        if self._index is None:
            self._index = readers(self.flow)
        start, reader = self._index
        return reader[spans(start[values], start[values + 1])]

    def _search(self, values: Ints) -> Ints:
        is_read = np.zeros(self.flow.n_values, np.bool_)
        is_read[values] = True
        args = self.flow.args
        first = self.flow.start[values.min()]  # who reads a value comes after it
        at = [np.flatnonzero(is_read[args[block]]) + block.start for block in blocks(first, len(args))]
        # A search for other integers would take a copy of what it searches.
        places = np.concatenate([*at, args[:0]]).astype(np.int32)
        return (np.searchsorted(self.flow.start, places, side="right") - 1).astype(np.int32)


def _equal_pairs(flow: Flow, nodes: Iterable[Ints], n: int, found: Ints | None) -> tuple[Ints, Ints] | None:
    """Of n nodes, the first of those that are equal, and each later one that is equal to it.

    `found` says which values are equal so far (None: each to itself). None if two different nodes have the same hashes.
    """
    suspects = _suspects(flow, nodes, n, found)
    # Few are left, and a second hash tells apart what only the cut has made alike.
    hashes = hashes_of(flow, suspects, found, SECOND)
    order = np.lexsort((suspects, hashes))
    suspects, hashes = suspects[order], hashes[order]
    is_later = np.append(False, hashes[1:] == hashes[:-1])[: len(suspects)]
    place = np.arange(len(suspects))
    first = suspects[np.maximum.accumulate(np.where(is_later, 0, place))][is_later]
    later = suspects[is_later]
    return (first, later) if _all_equal(flow, first, later, found) else None


def _suspects(flow: Flow, nodes: Iterable[Ints], n: int, found: Ints | None) -> Ints:
    """Of n nodes, those whose hashes others have, too.

    Hashes are cut to make room for the nodes' own numbers, so that to sort hashes is to sort nodes by their hashes, in place.
    """
    bits = np.uint64(flow.n_values.bit_length())
    hashes = np.empty(n, np.uint64)
    end = 0
    for some in nodes:
        begin, end = end, end + len(some)
        hashes[begin:end] = hashes_of(flow, some, found, FIRST) >> bits << bits | some.astype(np.uint64)
    hashes.sort()
    is_alike = np.zeros(n + 1, np.bool_)  # as the one before it; none is as the first, nor is what is past the end
    for block in blocks(1, n):
        is_alike[block] = hashes[block] ^ hashes[block.start - 1 : block.stop - 1] < np.uint64(1) << bits
    is_alike[:-1] |= is_alike[1:]
    return (hashes[is_alike[:-1]] & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int32)


def _all_equal(flow: Flow, first: Ints, later: Ints, found: Ints | None) -> bool:
    """Whether the nodes of each pair are equal: what no hash is trusted with."""
    a, b = flow.start[first], flow.start[later]
    a_end, b_end = flow.start[first + 1], flow.start[later + 1]
    if not np.array_equal(flow.code[first], flow.code[later]) or not np.array_equal(a_end - a, b_end - b):
        return False
    return np.array_equal(operands_at(flow, spans(a, a_end), found), operands_at(flow, spans(b, b_end), found))
