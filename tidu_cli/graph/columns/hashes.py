"""Hashes of nodes, equal where nodes are of one case and read the same: to be checked, or harmless where they are wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidu_cli.graph.columns.blocks import Indices, Ints
from tidu_cli.graph.columns.dataflow import FEW, Flow

Hashes = npt.NDArray[np.uint64]

# Odd numbers without pattern: 2**64 over the golden ratio (Knuth, volume 3, section 6.4), and two primes of xxHash.
FIRST, SECOND, _PLACE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)


def hashes_of(flow: Flow, nodes: Ints, found: Ints | None, factor: np.uint64) -> Hashes:
    """A hash of each node's case and of what stands for its operands. Another factor makes another hash."""
    start = flow.start[nodes]
    arity = flow.start[nodes + 1] - start
    total = _mixed(flow.code[nodes], -1, factor)
    k, longer = 0, np.flatnonzero(arity)
    while len(longer) > FEW:
        total[longer] += _mixed(operands_at(flow, start[longer] + k, found), k, factor)
        k += 1
        longer = longer[arity[longer] > k]
    for node in longer.tolist():
        rest = np.arange(k, arity[node])
        total[node : node + 1] += _mixed(operands_at(flow, start[node] + rest, found), rest, factor).sum()
    return _mixed(total, 0, factor)


def operands_at(flow: Flow, places: Indices, found: Ints | None) -> Ints:
    """What stands for the arguments at these places."""
    args = flow.args[places]
    return args if found is None else found[args]


def _mixed(values: npt.NDArray[np.generic], place: Indices | int, factor: np.uint64) -> Hashes:
    mixed = values.astype(np.uint64)
    mixed += np.asarray(place).astype(np.uint64) * _PLACE
    mixed *= factor
    mixed ^= mixed >> np.uint64(29)
    mixed *= factor
    mixed ^= mixed >> np.uint64(32)
    return mixed
