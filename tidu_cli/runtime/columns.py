"""Whole columns of integers, block by block: what is computed of a block stays in the processor's cache, and is soon let go.

NumPy takes numbers that choose elements as 64-bit integers, and makes them such where they are not: of all at once, that is twice
the memory of the columns themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tidu_cli.graph.graph import Column, column

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 2**14
"""So many elements at once."""


def blocks(n: int) -> Iterator[slice]:
    """The numbers from 0 to before `n`, in blocks."""
    return (slice(begin, min(begin + BLOCK, n)) for begin in range(0, n, BLOCK))


def array_of(values: Column[int]) -> NDArray[Any]:
    """The array that shares a column's memory. While it exists, the column cannot grow."""
    import numpy as np

    return np.frombuffer(values, np.int32) if values else np.empty(0, np.int32)


def column_of(values: NDArray[Any]) -> Column[int]:
    """A column of these 32-bit integers."""
    made = column()
    if len(values):
        made.frombytes(values.data.cast("B"))
    return made


def taken(values: NDArray[Any], numbers: NDArray[Any]) -> NDArray[Any]:
    """The values of these numbers."""
    import numpy as np

    found = np.empty(len(numbers), values.dtype)
    for block in blocks(len(numbers)):
        found[block] = values[numbers[block]]
    return found


def sums(values: NDArray[Any], numbers: NDArray[Any], first: int = 0) -> NDArray[Any]:
    """`first`, and what it becomes by adding the values of these numbers, one after the other."""
    import numpy as np

    found = np.empty(len(numbers) + 1, np.int32)
    found[0] = first
    for block in blocks(len(numbers)):
        found[block.start + 1 : block.stop + 1] = values[numbers[block]]
    return np.cumsum(found, dtype=np.int32, out=found)


def counts(values: NDArray[Any], n: int) -> NDArray[Any]:
    """How often each number below `n` occurs."""
    import numpy as np

    if len(values) <= BLOCK:
        return np.bincount(values, minlength=n)
    found = np.zeros(n, np.int64)
    for block in blocks(len(values)):
        np.add.at(found, values[block].astype(np.intp), 1)
    return found


def ranges(first: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """The numbers from each `first` on, so many, one range after the other."""
    import numpy as np

    ends = np.cumsum(lengths)
    return np.repeat(first - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)
