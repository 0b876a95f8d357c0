"""Columns of integers as NumPy's arrays, block by block: what is computed of a block stays in the processor's cache, and soon goes.

NumPy takes numbers that choose elements as 64-bit integers, and makes them such where they are not: of all at once, that is twice
the memory of the columns themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidu_cli.graph.graph import Column, column

Ints = NDArray[np.int32]
Indices = NDArray[np.integer]
Bools = NDArray[np.bool_]

BLOCK = 2**15
"""So many elements at once."""


def blocks(first: int, end: int) -> Iterator[slice]:
    """The numbers from `first` to before `end`, in blocks."""
    return (slice(begin, min(begin + BLOCK, end)) for begin in range(first, end, BLOCK))


def array_of(values: Column[int] | Ints) -> Ints:
    """The array that shares a column's memory. While it exists, the column cannot grow."""
    return np.frombuffer(values, np.int32) if len(values) else np.empty(0, np.int32)


def column_of(values: Indices) -> Column[int]:
    """A column of these integers."""
    made = column()
    made.frombytes(np.ascontiguousarray(values, np.int32).data.cast("B") if len(values) else b"")
    return made


def counting(first: int, end: int) -> Column[int]:
    """The numbers from `first` to before `end`."""
    return column_of(np.arange(first, end, dtype=np.int32))


def taken(values: NDArray[Any], numbers: Ints) -> NDArray[Any]:
    """The values of these numbers."""
    found = np.empty(len(numbers), values.dtype)
    for block in blocks(0, len(numbers)):
        found[block] = values[numbers[block]]
    return found


def sums(values: Ints, numbers: Ints, first: int = 0) -> Ints:
    """`first`, and what it becomes by adding the values of these numbers, one after the other."""
    found = np.empty(len(numbers) + 1, np.int32)
    found[0] = first
    for block in blocks(0, len(numbers)):
        found[block.start + 1 : block.stop + 1] = values[numbers[block]]
    return np.cumsum(found, out=found)


def starts(sizes: Sequence[int], code: Column[int], first: int = 0) -> Column[int]:
    """What the plain way does."""
    return column_of(sums(np.asarray(sizes, np.int32), array_of(code), first))


def before_each(sizes: NDArray[Any]) -> Ints:
    """The sum of all sizes before each; one more entry for their total."""
    found = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=found[1:])
    return found


def counts(values: Ints, n: int) -> Ints:
    """How often each number below n occurs."""
    found = np.zeros(n, np.int32)
    for block in blocks(0, len(values)):  # what NumPy's bincount does to all at once, with three times the memory
        np.add.at(found, values[block].astype(np.intp), np.int32(1))
    return found


def spans(first: Indices, end: Indices) -> Ints:
    """The numbers from first[0] to before end[0], then those from first[1] to before end[1], and so on."""
    some = np.flatnonzero(end > first)
    first, end = first[some], end[some]
    begins = np.cumsum(end - first)
    steps = np.ones(begins[-1] if len(some) else 0, np.int32)
    steps[:1] = first[:1]
    steps[begins[:-1]] = first[1:] - end[:-1] + 1
    return np.cumsum(steps, out=steps)  # NumPy's repeat would take ten times as long


def distinct(values: Ints) -> Ints:
    """The values, each once, in increasing order."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=-1))]


def occurring(values: Column[int], n: int) -> set[int]:
    """Which of the numbers below n occur."""
    found, given = np.zeros(n, np.bool_), array_of(values)
    for block in blocks(0, len(given)):
        found[given[block]] = True
    return set(np.flatnonzero(found).tolist())


def encoded(values: Column[int] | Ints, table: Column[int] | None) -> Iterator[bytes]:
    """The values, or the entries of a table that they number, as little-endian bytes."""
    given, entries = array_of(values), None if table is None else array_of(table)
    for block in blocks(0, len(given)):
        yield (given[block] if entries is None else entries[given[block]]).astype("<i4", copy=False).tobytes()
