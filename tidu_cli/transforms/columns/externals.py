"""Externals of many arguments at once: each value of another graph is listed once, in the order of first use."""

from __future__ import annotations

import numpy as np

from tidu_cli.graph.columns.blocks import blocks, column_of
from tidu_cli.graph.columns.dataflow import Ints, within
from tidu_cli.graph.graph import Externals
from tidu_cli.graph.link import LogicalGraph


def number_externals(args: Ints, logical: LogicalGraph, residual_number: int, n_residual: int) -> Externals:
    """The externals of a new graph, whose arguments -1-h become -1-k, where h is entry k of them.

    h is a flat id of the document; or, going on from there, one of `n_residual` values of the new graph `residual_number`.
    """
    handles = number_by_first_use(args, logical.n_values + n_residual)
    base = np.asarray(logical.base)
    graph = (np.searchsorted(base, handles, side="right") - 1).astype(np.int32)
    value = handles - base[graph]
    is_new = handles >= logical.n_values
    graph[graph == len(logical.document.graphs)] = Externals.DETACHED
    graph[is_new] = residual_number
    value[is_new] = handles[is_new] - logical.n_values
    return Externals(column_of(graph), column_of(value))


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
