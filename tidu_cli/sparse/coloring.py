"""Colouring: which columns of a sparse matrix may share one direction, so that their entries do not meet.

Columns of one colour have no row in common: one product with the sum of their unit vectors holds the entries of all (Curtis, Powell
and Reid 1974). Of a symmetric matrix it is enough that each entry can be read from one of its two places: a star colouring, where
neighbours differ and each path of four columns has three colours (Gebremedhin, Manne and Pothen 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]

from tidu_cli.frozen import Frozen

Order = Literal["natural", "largest_first", "smallest_last", "incidence_degree"]
"""In which order columns take their colours: as they are; those with the most entries first; so that each has the fewest neighbours
among those before it; or each time one with the most neighbours that have a colour (Gebremedhin, Manne and Pothen 2005)."""

Mode = Literal["forward", "reverse", "both"]


def columns(matrix: Any, order: Order | None = None) -> Any:
    """A colour for each column of a pattern, such that columns of one colour share no row; -1 for columns without an entry.

    In natural order, by default: that is best where neighbours in a grid share a row. Where a row has fewer entries than there are
    colours, the other orders are tried, too; those that follow the graph of columns, which take many times as long and help where
    the columns of a grid are shuffled, up to a size. Greedy, each column taking the least colour that its rows do not have yet: of
    each row the colours in it are bits of a number, so that a column takes time in proportion to its entries.
    """
    by_column = matrix.tocsc()
    most, used = np.bincount(by_column.indices, minlength=1).max(), np.diff(by_column.indptr) > 0
    if most <= 1:
        return np.where(used, 0, -1)
    if most == np.count_nonzero(used):  # of a full row all columns differ
        return np.where(used, np.cumsum(used) - 1, -1)
    if order is None:
        return _fewest(lambda order: columns(by_column, order), int(most), pairs(matrix))
    start, rows = by_column.indptr.tolist(), by_column.indices.tolist()
    taken = [0] * matrix.shape[0]
    colors = [-1] * matrix.shape[1]
    for j in _ordered(by_column, order, lambda: by_column.T @ by_column):
        own = rows[start[j] : start[j + 1]]
        used = 0
        for i in own:
            used |= taken[i]
        bit = ~used & (used + 1)
        for i in own:
            taken[i] |= bit
        colors[j] = bit.bit_length() - 1
    return np.array(colors, dtype=np.int64)


def star(matrix: Any, order: Order | None = None) -> Any:
    """A star colouring of a symmetric pattern, whose diagonal counts as full: a colour for each column, -1 without an entry.

    Greedy: a column avoids the colours of its neighbours, and of what lies two steps away where a path of four columns would have
    two colours. It takes time in proportion to the pairs of entries of each row. By default in natural order, or, where that takes
    more colours than a band needs, in the order that takes the fewest.
    """
    by_row = matrix.tocsr()
    if order is None:
        return _fewest(lambda order: star(by_row, order), 3, pairs(by_row))
    start, indices = by_row.indptr.tolist(), by_row.indices.tolist()
    neighbours = [indices[a:b] for a, b in pairwise(start)]
    colors = [-1] * matrix.shape[0]
    beside: list[dict[int, int]] = [{} for _ in colors]  # of each column how many of its neighbours have which colour
    for v in _ordered(by_row, order, lambda: by_row):
        forbidden = set()
        for w in neighbours[v]:
            if w == v:
                continue
            own = colors[w]
            if own < 0:
                forbidden.update(beside[w])
                continue
            forbidden.add(own)
            forbidden.update([colors[x] for x in neighbours[w] if x not in (v, w) and colors[x] >= 0 and beside[x][own] > 1])
        color = next(c for c in range(len(forbidden) + 1) if c not in forbidden)
        colors[v] = color
        for w in neighbours[v]:
            beside[w][color] = beside[w].get(color, 0) + (w != v)
    return np.array(colors, dtype=np.int64)


def pairs(matrix: Any) -> int:
    """The pairs of entries of a row, of all rows together: what `star` may walk over."""
    return int((np.diff(matrix.tocsr().indptr).astype(np.int64) ** 2).sum())


class Coloring(Frozen):
    """Directions for a matrix: `by_rows` says which rows are taken by rows, `of_rows` the colours of these, and `of_columns` those
    of the columns, for all other rows.
    """

    by_rows: Any
    of_rows: Any
    of_columns: Any

    @property
    def n_directions(self) -> int:
        """How many directions there are."""
        return sum(int(colors.max(initial=-1)) + 1 for colors in (self.of_rows, self.of_columns))

    def parts(self, matrix: Any) -> tuple[Any, Any]:
        """What is taken by columns, and what by rows."""
        return _only(matrix, ~self.by_rows), _only(matrix, self.by_rows)


def of_jacobian(matrix: Any, mode: Mode | None = None) -> Coloring:
    """The colouring with the fewest directions: by columns (`forward`), by rows (`reverse`), or `both`, as for None.

    For both, the rows with the most entries, one, two, four, ..., are taken by rows, as long as that may gain something: a row
    costs one direction by rows, and by columns one for each of its entries.
    """
    n_rows, n_columns = matrix.shape
    none, no_rows, no_columns = np.zeros(n_rows, bool), np.full(n_rows, -1), np.full(n_columns, -1)
    sides = {
        "forward": lambda: Coloring(none, no_rows, columns(matrix)),
        "reverse": lambda: Coloring(~none, columns(matrix.T), no_columns),
    }
    if mode in sides:
        return sides[mode]()
    degrees = np.diff(matrix.tocsr().indptr)
    least = {"forward": degrees.max(initial=0), "reverse": _in_a_column(matrix)}
    (side, _), (other, bound) = sorted(least.items(), key=lambda item: item[1])
    found = {side: sides[side]()}
    if found[side].n_directions > bound:
        found[other] = sides[other]()
    best = min(found.values(), key=lambda coloring: coloring.n_directions)
    most, n = np.argsort(-degrees, kind="stable"), 1
    while n < n_rows and n + degrees[most[n]] < best.n_directions:
        rows = none.copy()
        rows[most[:n]] = True
        tried = Coloring(rows, columns(_only(matrix, rows).T), columns(_only(matrix, ~rows)))
        best = min(best, tried, key=lambda coloring: coloring.n_directions)
        n *= 2
    return best


def is_one(matrix: Any, mode: Mode | None) -> bool:
    """Whether one direction is enough, by columns or by rows."""
    by_columns = mode != "reverse" and np.diff(matrix.tocsr().indptr).max(initial=0) <= 1
    return bool(by_columns or (mode != "forward" and _in_a_column(matrix) <= 1))


def _in_a_column(matrix: Any) -> int:
    """The most entries of a column."""
    return int(np.bincount(matrix.tocsr().indices, minlength=1).max())


def _only(matrix: Any, rows: Any) -> Any:
    """The matrix with these rows only, and no entry in others."""
    coo = matrix.tocoo()
    there = rows[coo.row]
    return sparse.csr_array((coo.data[there], (coo.row[there], coo.col[there])), shape=matrix.shape)


_FOLLOWED = 2_000_000
"""The pairs of columns that share a row up to which orders that follow them are tried: a few seconds."""


def _fewest(colored: Callable[[Order], Any], least: int, n_pairs: int) -> Any:
    """The colours of the order that takes the fewest; `least` are as few as there can be, and none is tried after these."""
    best = colored("natural")
    others: tuple[Order, ...] = ("largest_first", "smallest_last", "incidence_degree")
    for order in others if n_pairs <= _FOLLOWED else others[:1]:
        if best.max(initial=-1) < least:
            break
        best = min(best, colored(order), key=lambda colors: colors.max(initial=-1))
    return best


def _ordered(by_column: Any, order: Order, neighbours: Callable[[], Any]) -> list[int]:
    """The columns that have entries, in the order in which they are coloured; `neighbours` is the graph of those that may meet."""
    degrees = np.diff(by_column.indptr)
    numbers = np.flatnonzero(degrees)
    if order in ("natural", "largest_first"):
        chosen: list[int] = (numbers if order == "natural" else numbers[np.argsort(-degrees[numbers], kind="stable")]).tolist()
        return chosen
    graph = neighbours().tocsr()
    start, indices = graph.indptr.tolist(), graph.indices.tolist()
    # Of smallest last, in reverse: how many neighbours are left. Of incidence degree: how many have been taken, as less than none.
    score = [0] * len(degrees) if order == "incidence_degree" else np.diff(graph.indptr).tolist()
    waiting, taken, chosen = [(score[j], j) for j in numbers.tolist()], [False] * len(degrees), []
    heapify(waiting)
    while waiting:
        least, j = heappop(waiting)
        if taken[j] or least != score[j]:
            continue
        taken[j] = True
        chosen.append(j)
        for k in indices[start[j] : start[j + 1]]:
            if not taken[k]:
                score[k] -= 1
                heappush(waiting, (score[k], k))
    return chosen if order == "incidence_degree" else chosen[::-1]
