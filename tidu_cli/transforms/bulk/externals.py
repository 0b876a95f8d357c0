"""Externals of many arguments at once: each value of another graph is listed once, in the order of first use."""

from __future__ import annotations

import numpy as np

from tidu_cli.graph.flow import Ints, column_of
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
    outside = np.flatnonzero(args < 0)
    handles = ~args[outside]
    number = np.empty(n, np.int32)
    place = np.arange(len(handles), dtype=np.int32)
    number[handles[::-1]] = place[::-1]  # the last assignment stays: that of the first use
    first_used: Ints = handles[number[handles] == place]
    number[first_used] = place[: len(first_used)]
    args[outside] = ~number[handles]
    return first_used
