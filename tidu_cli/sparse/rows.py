"""Rows of patterns: moved, joined, spread along axes and added up."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from scipy import sparse  # type: ignore[import-untyped]
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from tidu_cli.limits import require
from tidu_cli.rules.analysis import Spread

ENTRY_BYTES = 5
"""What an entry of a pattern takes: the number of its column, and a byte."""


def identity(n: int, first: int, columns: int) -> csr_array:
    """The pattern of a tangent of n elements, whose columns are those from `first` on."""
    return of_rows(np.arange(first, first + n), columns)


def empty(n: int, columns: int) -> csr_array:
    """The pattern of n zeros."""
    return csr_array((n, columns), dtype=bool)


def of_rows(places: Any, columns: int) -> csr_array:
    """A pattern with one entry in each row, at these columns; none where -1."""
    there = places >= 0
    start = np.concatenate([[0], np.cumsum(there)])
    return csr_array((np.ones(start[-1], bool), places[there], start), shape=(places.size, columns))


def require_memory(n_entries: int, what: str) -> None:
    """Raises LimitError, which names `what` takes it, for more entries than memory is allowed for."""
    require("memory", ENTRY_BYTES * n_entries, what)


def rows_at(x: csr_array, places: Any, what: str | None = None) -> csr_array:
    """The pattern whose rows are these of x; none where -1. Raises LimitError, if it is said what it is, before it takes memory."""
    if places.size == x.shape[0] and np.array_equal(places, np.arange(places.size)):
        return x
    if not x.nnz:
        return empty(places.size, x.shape[1])
    counts = np.where(places >= 0, (x.indptr[1:] - x.indptr[:-1])[places], 0)
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    if what is not None:
        require_memory(total, what)
    source = np.arange(total) + np.repeat(x.indptr[:-1][places] - (ends - counts), counts)
    start = np.concatenate([[0], ends])
    return csr_array((np.ones(total, bool), x.indices[source], start), shape=(places.size, x.shape[1]))


def joined(x: csr_array, y: csr_array) -> csr_array:
    """The entries of both."""
    return x if x is y else csr_array(x + y)


def kept(x: csr_array, where: Any) -> csr_array:
    """The pattern with the rows only where it is true."""
    return x if where is None or where.all() else rows_at(x, np.where(where, np.arange(where.size), -1))


def along(x: csr_array, shape: Sequence[int], result: Sequence[int], spreads: Sequence[Spread], what: str) -> csr_array:
    """A pattern whose axes depend on those of x as `spreads` says: what is summed over goes first, what is new comes last."""
    sizes = [shape[o] for _, o, _ in spreads]
    rest = [axis for axis in range(len(shape)) if axis not in [o for _, o, _ in spreads]]
    order = np.transpose(np.arange(prod(shape)).reshape(shape), [*[o for _, o, _ in spreads], *rest]).ravel()
    x = rows_at(x, order)
    n_rest = prod(shape[axis] for axis in rest)
    if n_rest != 1:
        x = csr_array(sparse.kron(sparse.eye_array(prod(sizes), dtype=bool), np.ones((1, n_rest), bool), format="csr") @ x)
    for at, (r, _, which) in enumerate(spreads):
        if isinstance(which, str):
            x = _accumulated(x, sizes[at], prod(sizes[at + 1 :]), which == "upto", what)
        elif which is not None:
            step = _relation(which, result[r], sizes[at])
            before, after = (sparse.eye_array(prod(some), dtype=bool) for some in (sizes[:at], sizes[at + 1 :]))
            x = csr_array(sparse.kron(sparse.kron(before, step), after, format="csr").astype(bool) @ x)
        sizes[at] = result[r]
    middle = np.arange(prod(sizes)).reshape([sizes[i] for i in range(len(sizes))])
    axes = [r for r, _, _ in spreads]
    middle = np.transpose(middle, np.argsort(axes))
    aligned = [n if axis in axes else 1 for axis, n in enumerate(result)]
    return rows_at(x, np.broadcast_to(middle.reshape(aligned), result).ravel(), what)


def _relation(which: Any, n: int, m: int) -> Any:
    """Which of n places depend on which of m."""
    pairs = np.array(which, dtype=np.int64).reshape(-1, 2)
    return csr_array((np.ones(len(pairs), bool), (pairs[:, 0], pairs[:, 1])), shape=(n, m))


def _accumulated(x: csr_array, n: int, after: int, upto: bool, what: str) -> csr_array:
    """The pattern whose rows have the columns of all up to them, or from them on, of n places; `after` rows are one place apart."""
    row, col = (part.astype(np.int64) for part in x.tocoo().coords)
    line, place = row // (n * after) * after + row % after, row // after % n
    order = np.lexsort((place if upto else -place, col, line))
    line, place, col = line[order], place[order], col[order]
    first = np.concatenate([[True], (line[1:] != line[:-1]) | (col[1:] != col[:-1])])[: line.size]
    line, place, col = line[first], place[first], col[first]
    counts = n - place if upto else place + 1
    total = int(counts.sum())
    require_memory(total, what)
    count_up = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    places = count_up + np.repeat(place, counts) if upto else count_up
    lines = np.repeat(line, counts)
    rows = (lines // after * n + places) * after + lines % after
    return csr_array((np.ones(total, bool), (rows, np.repeat(col, counts))), shape=x.shape)
