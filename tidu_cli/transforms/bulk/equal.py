"""Equal values of a large graph: hash-consing in bulk.

Two nodes are equal if they are of one case and read equal values. Classes begin as single values. Nodes that read the same classes
are merged, and the first of them stands for all; from then on only readers of classes that have just grown can have become equal to
something. So after a first round over all nodes, rounds are as small as what they look at. There are as many as equal values
build upon equal values; where that is deep, the plain way is the better one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidu_cli.graph.flow import FEW, Flow, Indices, Ints, distinct, readers, spans

Hashes = npt.NDArray[np.uint64]

BLOCK = 2**15
"""So many nodes at once, whose hashes stay in the processor's cache."""

EFFORT = 16
"""How often, on average, each value may be looked at before the plain way is the better one."""
EFFORT_OF_ROUND = 2**11
"""What the calls of a round are worth, in values that are looked at."""

# Odd numbers without pattern: 2**64 over the golden ratio (Knuth, volume 3, section 6.4), and two primes of xxHash.
_FIRST, _SECOND, _PLACE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)


def representatives(flow: Flow, nodes: Ints) -> Ints | None:
    """For each value, the first of `nodes` that is equal to it; the value itself, if it is none of `nodes`, which are in order.

    None if that takes more effort than it is worth.
    """
    found = np.arange(flow.n_values, dtype=np.int32)
    merged = np.empty(0, np.int32)
    effort = EFFORT * (flow.n_values + EFFORT_OF_ROUND)
    pairs = _equal_pairs(flow, nodes, found)
    if pairs is None or not len(pairs[1]):
        return pairs and found
    start, reader = readers(flow)
    is_kept = np.zeros(flow.n_values, np.bool_)  # whether it is one of `nodes` that stands for itself
    is_kept[nodes] = True
    has_grown = np.zeros(flow.n_values, np.bool_)
    while pairs is not None and len(pairs[1]):
        first, later = pairs
        found[later], is_kept[later] = first, False
        merged = np.concatenate([merged, later])
        found[merged] = found[found[merged]]
        has_grown[first] = True
        read = np.concatenate([distinct(first), merged[has_grown[found[merged]]]])
        has_grown[first] = False
        reading = reader[spans(start[read], start[read + 1])]
        candidates = distinct(reading[is_kept[reading]])
        effort -= len(merged) + len(candidates) + EFFORT_OF_ROUND
        if effort < 0:
            return None
        pairs = _equal_pairs(flow, candidates, found)
    return pairs and found


def _equal_pairs(flow: Flow, nodes: Ints, found: Ints) -> tuple[Ints, Ints] | None:
    """Of nodes in order, the first of those that are equal, and each later one that is equal to it.

    `found` says which values are equal so far. None if two different nodes have the same hashes.
    """
    if len(nodes) < 2:
        return nodes[:0], nodes[:0]
    # Hashes are cut to make room for places, so that sorting them tells what nodes they are of, too.
    bits = np.uint64((len(nodes) - 1).bit_length())
    hashes = _hashes(flow, nodes, found, _FIRST)
    hashes >>= bits
    hashes <<= bits
    hashes |= np.arange(len(nodes), dtype=np.uint64)
    hashes.sort()
    alike = (hashes[1:] ^ hashes[:-1]) >> bits == 0
    of_several = np.append(alike, False) | np.append(False, alike)
    places = hashes[of_several] & ((np.uint64(1) << bits) - np.uint64(1))
    del hashes, alike, of_several
    # Few are left, and a second hash tells apart what only the cut has made alike.
    suspects = nodes[places.astype(np.int64)]
    hashes = _hashes(flow, suspects, found, _SECOND)
    order = np.lexsort((suspects, hashes))
    suspects, hashes = suspects[order], hashes[order]
    is_later = np.append(False, hashes[1:] == hashes[:-1])[: len(suspects)]
    place = np.arange(len(suspects))
    first = suspects[np.maximum.accumulate(np.where(is_later, 0, place))][is_later]
    later = suspects[is_later]
    return (first, later) if _all_equal(flow, first, later, found) else None


def _hashes(flow: Flow, nodes: Ints, found: Ints, factor: np.uint64) -> Hashes:
    """A hash of each node's case and of what stands for its operands. Another factor makes another hash."""
    made = np.empty(len(nodes), np.uint64)
    for begin in range(0, len(nodes), BLOCK):
        block = nodes[begin : begin + BLOCK]
        start = flow.start[block]
        arity = flow.start[block + 1] - start
        total = _mixed(flow.code[block], -1, factor)
        k, longer = 0, np.flatnonzero(arity)
        while len(longer) > FEW:
            total[longer] += _mixed(found[flow.args[start[longer] + k]], k, factor)
            k += 1
            longer = longer[arity[longer] > k]
        for node in longer.tolist():
            rest = np.arange(k, arity[node])
            total[node : node + 1] += _mixed(found[flow.args[start[node] + rest]], rest, factor).sum()
        made[begin : begin + BLOCK] = _mixed(total, 0, factor)
    return made


def _mixed(values: npt.NDArray[np.generic], place: Indices | int, factor: np.uint64) -> Hashes:
    mixed = values.astype(np.uint64)
    mixed += np.asarray(place).astype(np.uint64) * _PLACE
    mixed *= factor
    mixed ^= mixed >> np.uint64(29)
    mixed *= factor
    mixed ^= mixed >> np.uint64(32)
    return mixed


def _all_equal(flow: Flow, first: Ints, later: Ints, found: Ints) -> bool:
    """Whether the nodes of each pair are equal: what no hash is trusted with."""
    a, b = flow.start[first], flow.start[later]
    a_end, b_end = flow.start[first + 1], flow.start[later + 1]
    if not np.array_equal(flow.code[first], flow.code[later]):
        return False
    return bool(np.all(found[flow.args[spans(a, a_end)]] == found[flow.args[spans(b, b_end)]]))
