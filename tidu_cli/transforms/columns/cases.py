"""The nodes of a large graph by their cases, and by which of their operands are active."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidu_cli.graph.columns.blocks import Bools, Ints
from tidu_cli.graph.columns.dataflow import Flow

NODES_PER_CASE = 16
"""With fewer nodes than this for each case, the calls that a case costs outweigh what they save."""


def by_code(code: Ints, values: Ints) -> list[tuple[int, Ints]]:
    """The distinct codes of some values, and the values of each in the order given."""
    codes = code[values]
    if len(codes) and codes.max() < 2**16:
        codes = codes.astype(np.uint16)  # which NumPy sorts in linear time
    ordered = values[np.argsort(codes, kind="stable")]
    counts = np.bincount(codes)
    ends = np.cumsum(counts)
    return [(int(c), ordered[ends[c] - counts[c] : ends[c]]) for c in np.flatnonzero(counts)]


def are_few(code: Ints, values: Ints) -> bool:
    """Whether so few different codes occur that work by groups of equal codes pays."""
    return bool(np.count_nonzero(np.bincount(code[values])) * NODES_PER_CASE <= len(values))


def operands(flow: Flow, values: Ints, k: int) -> Ints:
    """The argument number k of each of these values."""
    return flow.args[flow.start[values] + k]


def by_mask(flow: Flow, values: Ints, arity: int, active: Bools) -> Iterator[tuple[tuple[bool, ...], Ints]]:
    """The distinct masks of some values of this arity, which say what operands are active, and the values of each in order."""
    masks = np.empty((len(values), arity), np.bool_)
    for k in range(arity):
        masks[:, k] = active[operands(flow, values, k)]
    if masks.all():
        yield (True,) * arity, values
        return
    packed = np.packbits(masks, axis=1)
    if packed.shape[1] == 1:
        kinds = np.flatnonzero(np.bincount(packed[:, 0]))
        groups = [np.flatnonzero(packed[:, 0] == kind) for kind in kinds]
    else:
        _, inverse = np.unique(packed, axis=0, return_inverse=True)
        order = np.argsort(inverse.reshape(-1), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(inverse.reshape(-1)))[:-1])
    for group in groups:
        yield tuple(masks[group[0]].tolist()), values[group]
