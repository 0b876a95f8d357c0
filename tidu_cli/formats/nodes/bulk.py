"""The nodes of large graphs, checked and renumbered as whole columns with NumPy: what `plain` does one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from tidu_cli.formats.nodes.numbering import Pairs
from tidu_cli.graph.dataflow import array_of, blocks, column_of, spans, sums
from tidu_cli.graph.graph import Column, Externals, column


def args_in_range(
    code: Column[int], args: Column[int], arity: Sequence[int], n_results: Sequence[int], n: int, n_external: int
) -> bool:
    """What the plain way does."""
    rows, arguments = array_of(code), array_of(args)
    n_args, n_values = np.asarray(arity, np.int32), np.asarray(n_results, np.int64)
    end = 0
    for block in blocks(0, len(rows)):
        own = n_values[rows[block]]
        after = np.cumsum(own) + n
        n = int(after[-1])
        bound = np.repeat(after - own, n_args[rows[block]])
        start, end = end, end + len(bound)
        read = arguments[start:end]
        if (read >= bound).any() or (read < -n_external).any():
            return False
    return True


def distinct_externals(
    external: Sequence[object], args: Column[int], n_values: Sequence[int]
) -> tuple[Externals, Column[int]] | None:
    """The externals of a file, each once, and the arguments that refer to them.

    `n_values` counts the values of each earlier graph. None if one is no value of these, or if not all are in the order in which
    arguments use them.
    """
    pairs = Pairs.of(external)
    if pairs is None or not _are_values(pairs, n_values) or not _in_order_of_use(args, len(pairs)):
        return None
    handles = _handles(pairs.first, pairs.second)
    if _are_distinct(handles):
        return Externals(pairs.first, pairs.second), args
    _, first, which = np.unique(handles, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    chosen, renumbered = first[order], array_of(args).copy()
    negative = renumbered < 0
    renumbered[negative] = ~number[which[~renumbered[negative]]]
    return Externals(column_of(array_of(pairs.first)[chosen]), column_of(array_of(pairs.second)[chosen])), column_of(renumbered)


def is_in_order(args: Column[int], external: Externals) -> bool:
    """What the plain way does not find out."""
    if (array_of(external.graph) < 0).any() or not _in_order_of_use(args, len(external)):
        return False
    return _are_distinct(_handles(external.graph, external.value))


def _are_distinct(handles: npt.NDArray[np.int64]) -> bool:
    handles = np.sort(handles)
    return not (handles[1:] == handles[:-1]).any()


def _are_values(pairs: Pairs, n_values: Sequence[int]) -> bool:
    """Whether each pair is the number of an earlier graph and that of one of its values."""
    graph, value = array_of(pairs.first), array_of(pairs.second)
    if not ((graph >= 0) & (graph < len(n_values)) & (value >= 0)).all():
        return False
    return bool((value < np.asarray(n_values)[graph]).all())


def _handles(graph: Column[int], value: Column[int]) -> npt.NDArray[np.int64]:
    """A number for each pair: pairs are in order as their numbers are."""
    handles = array_of(graph).astype(np.int64)
    handles <<= 32
    handles |= array_of(value)
    return handles


def _in_order_of_use(args: Column[int], n_external: int) -> bool:
    arguments, n_used = array_of(args), 0
    for block in blocks(0, len(arguments)):
        some = arguments[block]
        highest = np.maximum.accumulate(np.append(n_used - 1, ~some[some < 0]))
        if (highest[1:] - highest[:-1] > 1).any():
            return False
        n_used = int(highest[-1]) + 1
    return n_used == n_external


def types_of(external: Externals, types: Sequence[Column[int]]) -> Column[int]:
    """The type numbers of externals, from those of the values of each graph."""
    graph, value = array_of(external.graph), array_of(external.value)
    numbers = np.empty(len(graph), np.int32)
    for g in np.flatnonzero(np.bincount(graph)).tolist():
        chosen = graph == g
        numbers[chosen] = array_of(types[g])[value[chosen]]
    return column_of(numbers)


def are_local(code: Column[int], args: Column[int], masks: Mapping[int, Sequence[bool]]) -> bool:
    """What the plain way does."""
    n_args = np.zeros(max(masks) + 1, np.int32)
    n_args[list(masks)] = [len(mask) for mask in masks.values()]
    first = np.zeros(len(n_args), np.int32)
    first[list(masks)] = np.cumsum([0, *(len(mask) for mask in masks.values())])[:-1]
    flags = np.array([*chain.from_iterable(masks.values())], np.bool_)
    rows, is_local, end = array_of(code), array_of(args) >= 0, 0
    for block in blocks(0, len(rows)):
        begin = first[rows[block]]
        which = spans(begin, begin + n_args[rows[block]])
        start, end = end, end + len(which)
        if (flags[which] != is_local[start:end]).any():
            return False
    return True


def operands_of(
    code: Column[int], args: Column[int], arity: Sequence[int], chosen: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, int]]:
    """What the plain way does, but each argument once."""
    rows, arguments, n_args = array_of(code), array_of(args), np.asarray(arity, np.int32)
    is_chosen = np.zeros((1 + max(chain.from_iterable(chosen.values()), default=0), len(n_args)), np.bool_)
    for number, operands in chosen.items():
        is_chosen[list(operands), number] = True
    is_one = is_chosen[0] if len(is_chosen) == 1 else np.logical_or.reduce(is_chosen)
    nodes = np.flatnonzero(is_one[rows])
    if not len(nodes):
        return
    start = sums(n_args, rows)[nodes]
    for k, is_due in enumerate(is_chosen):
        some = is_due[rows[nodes]]
        values, where = np.unique(arguments[start[some] + k], return_index=True)
        yield from ((node, k, value) for node, value in zip(nodes[some][where].tolist(), values.tolist(), strict=True))


def renamed(code: Column[int], number: dict[int, int]) -> Column[int]:
    """What the plain way does."""
    table = np.zeros(max(number, default=0) + 1, np.int32)
    table[list(number)] = list(number.values())
    made = column([0]) * len(code)  # whose memory is written to, as a copy would take as much again
    old, new = array_of(code), array_of(made)
    for block in blocks(0, len(code)):
        new[block] = table[old[block]]
    return made
