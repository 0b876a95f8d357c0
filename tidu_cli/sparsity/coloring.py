"""Colouring: which columns of a sparse matrix may share one direction, so that their entries do not meet.

Columns of one colour have no row in common: one product with the sum of their unit vectors holds the entries of all (Curtis, Powell
and Reid 1974). Of a symmetric matrix it is enough that each entry can be read from one of its two places: a star colouring, in which
neighbours differ and each path of four columns has three colours (Gebremedhin, Manne and Pothen 2005).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Order = str
ORDERS = ("natural", "largest_first")


def columns(matrix: Any, order: Order = "natural") -> Any:
    """A colour for each column of a pattern, such that columns of one colour share no row; -1 for columns without an entry.

    Greedy, each column taking the least colour that its rows do not have yet: of each row the colours in it are bits of a number,
    so that a column takes time in proportion to its entries.
    """
    by_column = matrix.tocsc()
    start, rows = by_column.indptr.tolist(), by_column.indices.tolist()
    taken = [0] * matrix.shape[0]
    colors = [-1] * matrix.shape[1]
    for j in _ordered(np.diff(by_column.indptr), order):
        own = rows[start[j] : start[j + 1]]
        used = 0
        for i in own:
            used |= taken[i]
        bit = ~used & (used + 1)
        for i in own:
            taken[i] |= bit
        colors[j] = bit.bit_length() - 1
    return np.array(colors, dtype=np.int64)


def star(matrix: Any, order: Order = "natural") -> Any:
    """A star colouring of a symmetric pattern, whose diagonal counts as full: a colour for each column, -1 without an entry.

    Greedy: a column avoids the colours of its neighbours, and of what lies two steps away where the path would have two colours.
    """
    by_row = matrix.tocsr()
    start, indices = by_row.indptr.tolist(), by_row.indices.tolist()
    colors = [-1] * matrix.shape[0]
    forbidden: dict[int, int] = {}
    for v in _ordered(np.diff(by_row.indptr), order):
        for w in indices[start[v] : start[v + 1]]:
            if w == v:
                continue
            if colors[w] >= 0:
                forbidden[colors[w]] = v
            for x in indices[start[w] : start[w + 1]]:
                if x in (v, w) or colors[x] < 0:
                    continue
                if colors[w] < 0:
                    forbidden[colors[x]] = v
                elif any(colors[y] == colors[w] for y in indices[start[x] : start[x + 1]] if y not in (w, x)):
                    forbidden[colors[x]] = v
        color = 0
        while forbidden.get(color) == v:
            color += 1
        colors[v] = color
    return np.array(colors, dtype=np.int64)


def _ordered(degrees: Any, order: Order) -> list[int]:
    """The columns that have entries, in the order in which they are coloured."""
    numbers = np.flatnonzero(degrees)
    if order == "largest_first":
        numbers = numbers[np.argsort(-degrees[numbers], kind="stable")]
    return [int(j) for j in numbers]
