"""The columns of packed nodes in plain data: as files have them, or compact, as they are read from msgpack.

A compact column of integers is an `array` in the place of the bytes of its `data`; compact externals are `Pairs` in the place of a
list of lists. There may be millions of either, for which Python objects would take ten times the memory.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from tidu_cli.errors import DocumentError
from tidu_cli.graph.graph import Column, column

TYPECODES = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I"}
"""The typecodes of arrays for the dtypes of columns in msgpack."""


class Pairs(Sequence[list[int]]):
    """A list of pairs of integers, as two columns."""

    def __init__(self) -> None:
        self.first = column()
        self.second = column()

    @classmethod
    def of(cls, entries: Sequence[object]) -> Pairs | None:
        """The same entries; None if they are not all pairs of integers of 32 bits."""
        if isinstance(entries, Pairs):
            return entries
        pairs = cls()
        return pairs if pairs.take(entries) else None

    def take(self, entries: Sequence[object]) -> bool:
        """Append these if they are all pairs of integers of 32 bits. Whether they are."""
        if not {list}.issuperset(map(type, entries)) or not {2}.issuperset(map(len, entries)):  # type: ignore[arg-type]
            return False
        flat: list[Any] = list(chain.from_iterable(entries))  # type: ignore[arg-type]
        if not {int}.issuperset(map(type, flat)):
            return False
        try:
            values = column(flat)
        except OverflowError:
            return False
        self.first.extend(values[::2])
        self.second.extend(values[1::2])
        return True

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[list[int]]:
        return map(list, zip(self.first, self.second, strict=True))

    def __getitem__(self, index: Any) -> Any:
        """The pair at an index."""
        return [self.first[index], self.second[index]]


def integers(field: list[object] | dict[str, Any], name: str) -> Column[int]:
    """A column of integers from either file form. Raises DocumentError if an entry is no integer or takes more than 32 bits."""
    if isinstance(field, list):
        if not {int}.issuperset(map(type, field)):
            wrong = next(i for i, x in enumerate(field) if type(x) is not int)
            raise DocumentError(f"{name}: entry {wrong} is not an integer")
        values: array[int] | list[int] = field  # type: ignore[assignment]
    else:
        values = _array(field, name)
        if values.typecode == "i":
            return values
    try:
        return column(values)
    except OverflowError:
        raise DocumentError(f"{name}: an entry is out of range; each takes 32 bits") from None


def _array(field: dict[str, Any], name: str) -> array[int]:
    data = field["data"]
    if isinstance(data, array):
        values = data
    else:
        values = array(TYPECODES[field["dtype"]])
        if len(data) % values.itemsize:
            raise DocumentError(f"{name}: {len(data)} bytes are not a whole number of {field['dtype']}")
        values.frombytes(data)
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values
