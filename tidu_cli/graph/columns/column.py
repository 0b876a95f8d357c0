"""Columns: the integers of a graph, one beside the other in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

Column = array  # of signed 32-bit integers, typecode "i"


def column(values: Iterable[int] = ()) -> Column[int]:
    """A new column of integers."""
    return array("i", values)
