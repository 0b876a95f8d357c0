"""Loops of Python in what was traced: the same nodes again and again."""

from __future__ import annotations

import numpy as np

from tidu_cli.graph.graph import Graph

MANY = 1000
"""A loop of more turns had better be a scan."""

_PERIODS = 64
"""As many lengths of a turn are tried."""


def repetition(graph: Graph) -> tuple[int, int] | None:
    """How often the same ops follow one another in the middle of a graph, and how many they are; None up to `MANY` times."""
    if len(graph.code) <= MANY:
        return None
    ops = [case.op for case in graph.cases.cases]  # the cases of constants differ where their values do
    number = {op: k for k, op in enumerate(ops)}
    codes = np.asarray([number[op] for op in ops])[np.asarray(graph.code)]
    middle = len(codes) // 2
    for period in 1 + np.flatnonzero(codes[middle + 1 :] == codes[middle])[:_PERIODS]:
        differ = np.flatnonzero(codes[period:] != codes[:-period])
        first = differ[differ < middle].max(initial=-1) + 1
        last = differ[differ >= middle].min(initial=len(codes) - period)
        turns = int(last - first) // int(period) + 1
        if turns > MANY:
            return turns, int(period)
    return None
