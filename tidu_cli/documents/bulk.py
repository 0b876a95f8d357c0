"""Packed nodes of large graphs, checked and renumbered as whole columns with NumPy.

What is said here to be right is right. Of what is not, the loops in `nodes` find out more, and say where it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from tidu_cli.graph.flow import array_of, column_of
from tidu_cli.graph.graph import Column, Externals


def args_in_range(
    code: Column[int], args: Column[int], arity: Sequence[int], n_results: Sequence[int], n: int, n_external: int
) -> bool:
    """Whether each argument is an external, or one of the `n` values of inputs and those of the nodes before its own.

    `arity` and `n_results` are of each row of the table.
    """
    rows = array_of(code)
    own = np.asarray(n_results, np.int32)[rows]
    before = np.cumsum(own, dtype=np.int64) - own + n
    bound = np.repeat(before, np.asarray(arity, np.int32)[rows])
    found = array_of(args)
    return bool((found < bound).all() and (found >= -n_external).all())


def externals_in_order(external: Sequence[object], args: Column[int], n_values: Sequence[int]) -> Externals | None:
    """The externals of a file, if they are what this program writes: pairs, each once, in the order in which arguments use them.

    `n_values` counts the values of each earlier graph.
    """
    if not _are_pairs(external):
        return None
    flat: Iterator[int] = chain.from_iterable(external)  # type: ignore[arg-type]
    try:
        pairs = np.fromiter(flat, np.int64, 2 * len(external)).reshape(-1, 2)
    except OverflowError:
        return None
    graph, value = pairs[:, 0], pairs[:, 1]
    if not ((graph >= 0) & (graph < len(n_values)) & (value >= 0)).all() or not (value < np.asarray(n_values)[graph]).all():
        return None
    handles = np.sort((graph << 32) | value)
    if (handles[1:] == handles[:-1]).any() or not _in_order_of_use(args, len(external)):
        return None
    return Externals(column_of(graph), column_of(value))


def _are_pairs(external: Sequence[object]) -> bool:
    if not {list}.issuperset(map(type, external)) or not {2}.issuperset(map(len, external)):  # type: ignore[arg-type]
        return False
    return {int}.issuperset(map(type, chain.from_iterable(external)))  # type: ignore[arg-type]


def _in_order_of_use(args: Column[int], n_external: int) -> bool:
    found = array_of(args)
    used = ~found[found < 0]
    highest = np.maximum.accumulate(used)
    # Each is at most one more than all before it, and the last of all is used.
    return bool(len(used) and used[0] == 0 and (highest[1:] - highest[:-1] <= 1).all() and highest[-1] == n_external - 1)


def types_of(external: Externals, types: Sequence[Column[int]]) -> Column[int]:
    """The type numbers of externals, from those of the values of each graph."""
    graph, value = array_of(external.graph), array_of(external.value)
    found = np.empty(len(graph), np.int32)
    for g in np.flatnonzero(np.bincount(graph)).tolist():
        chosen = graph == g
        found[chosen] = array_of(types[g])[value[chosen]]
    return column_of(found)


def renamed(code: Column[int], number: dict[int, int]) -> Column[int]:
    """A column with `number[c]` in the place of each c."""
    table = np.zeros(max(number, default=0) + 1, np.int32)
    table[list(number)] = list(number.values())
    return column_of(table[array_of(code)])


def is_in_order(graph_args: Column[int], external: Externals) -> bool:
    """Whether a graph's externals are as files have them: none detached, each once, in the order in which arguments use them."""
    graph, value = array_of(external.graph), array_of(external.value)
    if (graph < 0).any() or not _in_order_of_use(graph_args, len(external)):
        return False
    handles = np.sort((graph.astype(np.int64) << 32) | value)
    return not (handles[1:] == handles[:-1]).any()
