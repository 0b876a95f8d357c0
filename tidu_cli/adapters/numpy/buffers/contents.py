"""What the memory of a buffer holds: numbers that are known, and elements of traced arrays, by their numbers.

Beside the memory stands an array of the same layout that says for each element of it which element of a traced array it is. What
NumPy does to an array to read or write some of its elements it does to that array, too, so that indices, views, broadcasting and
overlaps mean what they mean in NumPy.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.numpy.arrays.shares import Share
from tidu_cli.adapters.numpy.arrays.storage import rooted
from tidu_cli.adapters.numpy.buffers.elements import STATIC, ElementTable
from tidu_cli.adapters.numpy.errors import UntraceableError, place_of_caller

_BITS = {"f8": 0x7FF8_0000_7469_6475, "f4": 0x7FC0_7464, "f2": 0x7E75}
"""NaN that no computation makes: where memory holds elements of traced arrays, and in what is computed of it by mistake."""


@lru_cache
def mark_of(dtype: Any) -> Any:
    """What memory of that dtype holds in place of traced values: nothing that could be taken for a value.

    Raises UntraceableError for dtypes that have no such number.
    """
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    if part.str[1:] in _BITS:
        mark = np.array(_BITS[part.str[1:]], f"u{part.itemsize}").view(part.newbyteorder("=")).astype(part)
        return np.array([mark] * 2).view(dtype)[0] if dtype.kind == "c" else mark[()]
    if dtype.kind == "i" and dtype.itemsize >= 4:
        return dtype.type(np.iinfo(dtype).min + 0x7464)
    raise UntraceableError(
        f"a traced value cannot be written into an array of {name_of(dtype)}, of which code that is not traced could not tell it; "
        "collect the elements in a list and write np.array(elements)"
    )


LEAK = (
    "what code that is not traced computed of an array that traced values were written into is a constant, which it cannot be; "
    "use functions of docs/build.md there"
)
"""What is told of constants that are `marked`."""


def marked(x: Any) -> bool:
    """Whether one of some numbers is a mark, or was computed of one: NaN stays the NaN that it was."""
    if x.dtype.kind == "c":
        return marked(x.real) or marked(x.imag)
    bits = _BITS.get(x.dtype.str[1:]) if x.dtype.kind == "f" else None
    if bits is None:
        return False
    found = np.ascontiguousarray(x).view(f"u{x.itemsize}")
    sign = 1 << (8 * x.itemsize - 1)
    return bool(((found & ~found.dtype.type(sign)) == bits).any())


_PART = (
    "it is a part of complex numbers, of which graphs have copies; write z.real.copy() or z.imag.copy() to read it later, and "
    "z.real = x or z.imag = y to change all of it"
)


class Contents:
    """The numbers of the elements in the memory that `owner`, an array, shows. `home` is the recording in which it was made."""

    __slots__ = ("dtype", "home", "low", "numbers", "parts", "table")

    def __init__(self, owner: Any, home: Any, table: ElementTable) -> None:
        self.low, high = np.lib.array_utils.byte_bounds(owner)
        self.dtype = owner.dtype
        self.numbers = np.full((high - self.low) // max(owner.itemsize, 1), STATIC)
        self.home = home
        self.table = table
        self.parts: list[Share] = []

    def part(self, x: Array) -> Array:
        """The real or imaginary part of complex elements: a view in NumPy, which is not written into, nor read after a change."""
        share = rooted(x)
        share.writable, share.doubt = False, _PART
        self.parts.append(share)
        return x

    def changing(self) -> None:
        """Has to be said before the memory is written into."""
        for share in self.parts:
            share.root.version += 1
            share.root.doubt = _PART
            share.root.place = place_of_caller()
        self.parts.clear()

    def seen(self, view: Any) -> Any:
        """The numbers as a view of the memory shows them, to be read and written. Raises UntraceableError for views of bytes."""
        offset = view.__array_interface__["data"][0] - self.low
        size = self.dtype.itemsize
        if view.dtype != self.dtype or offset % size or any(s % size for s in view.strides):
            raise UntraceableError(
                f"the bytes of an array of {name_of(self.dtype)} that traced values were written into are looked at as "
                f"{name_of(view.dtype)}; write astype() to convert it"
            )
        return np.ndarray(view.shape, np.int64, self.numbers, offset // size * 8, tuple(s // size * 8 for s in view.strides))


def traced_in(numbers: Any) -> bool:
    """Whether an array of numbers has those of traced elements."""
    return bool((numbers != STATIC).any())


def joined(table: ElementTable, numbers: Any, plain: Any) -> Array:
    """The traced array of these elements. Raises UntraceableError if something else wrote into their memory."""
    expected = mark_of(plain.dtype)
    held = np.ascontiguousarray(plain[numbers != STATIC])
    if held.tobytes() != np.full(held.shape, expected, held.dtype).tobytes():
        raise UntraceableError(
            f"an array of {name_of(plain.dtype)} that traced values were written into was changed by code that is not traced; "
            "let that code change a copy made before"
        )
    return table.joined(numbers, plain)
