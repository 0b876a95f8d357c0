"""The elements of traced arrays by number, so that NumPy can move numbers about in place of values.

Memory that traced values were written into is described by an array of such numbers, -1 where it holds what it says.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, known, name_of
from tidu_cli.adapters.numpy.arrays.shares import Share
from tidu_cli.adapters.numpy.arrays.storage import own, rooted
from tidu_cli.adapters.numpy.errors import UntraceableError, place_of_caller

STATIC = -1
"""The number of an element that is known: memory holds it."""

MANY = 32
"""Parts of one array in more pieces than this are taken by a table of places instead of one by one."""


class _Run(NamedTuple):
    """Elements in a row from `start` to `stop` of what is joined: the first has the number `first`, each next `step` more."""

    start: int
    stop: int
    first: int
    step: int


class ElementTable:
    """Traced arrays of a recording whose elements have numbers: those of the k-th begin with `starts[k]`."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._room = np.zeros(64, np.int64)

    @property
    def starts(self) -> Any:
        """The first number of each array, and one past all."""
        return self._room[: len(self.arrays) + 1]

    def numbered(self, x: Array) -> Any:
        """The numbers of the elements of an array of no axes or more, in its shape."""
        self.arrays.append(own(x))
        n = len(self.arrays)
        if n == len(self._room):
            self._room = np.concatenate([self._room, np.zeros_like(self._room)])  # so that n arrays cost O(n)
        start = int(self._room[n - 1])
        self._room[n] = start + x.size
        return np.arange(start, start + x.size).reshape(x.shape)

    def one(self, number: int) -> Array:
        """The element of that number, without axes."""
        k = self._source(number)
        x = self.arrays[k]
        if x.size > 1:
            x = _item(x.reshaped((x.size,)), number - int(self.starts[k]))
        return own(x.reshaped(()))

    def pieces(self, numbers: Any) -> int:
        """Of how many arrays these elements are."""
        return len(np.unique(np.searchsorted(self.starts, numbers[numbers != STATIC], side="right")))

    def joined(self, numbers: Any, plain: Any) -> Array:
        """An array of the elements of these numbers, and of those of `plain`, which has the same shape, where they are known."""
        axes = _best_axes(numbers, self.starts)
        turned, static = np.transpose(numbers, axes), np.transpose(plain, axes)
        array = self._in_a_row(turned.ravel(), static.ravel()).reshaped(turned.shape)
        return own(array.permuted(tuple(int(k) for k in np.argsort(axes))))

    def _in_a_row(self, numbers: Any, plain: Any) -> Array:
        runs = _runs(numbers, self.starts)
        sources = {self._source(r.first) for r in runs if r.first != STATIC}
        if len(runs) > max(MANY, 2 * len(sources)):
            return self._picked(numbers, plain, sorted(sources))
        like = self.arrays[next(iter(sources))]
        parts = [like.constant(plain[r.start : r.stop]) if r.first == STATIC else self._part(r, plain.dtype) for r in runs]
        return parts[0] if len(parts) == 1 else like.recorder.emit("concatenate", *parts, dimension=0)

    def _source(self, number: int) -> int:
        return int(np.searchsorted(self.starts, number, side="right")) - 1

    def _part(self, run: _Run, dtype: Any) -> Array:
        """The elements of a run."""
        x = self.arrays[self._source(run.first)].convert(known(dtype))
        n, at = run.stop - run.start, run.first - int(self.starts[self._source(run.first)])
        if not run.step and n > 1:
            return x.reshaped((1,)).broadcast((n,))
        flat = x.reshaped((x.size,))
        return flat if n == x.size else _item(flat, slice(at, at + n))

    def _picked(self, numbers: Any, plain: Any, sources: list[int]) -> Array:
        """Elements of several arrays, picked from all of theirs by their places."""
        arrays = [self.arrays[k].convert(known(plain.dtype)) for k in sources]
        traced, offset = numbers != STATIC, 0
        places = np.zeros(numbers.shape, np.int64)
        parts = []
        for k, x in zip(sources, arrays, strict=True):
            own = (numbers >= self.starts[k]) & (numbers < self.starts[k] + x.size)
            places[own] = numbers[own] - self.starts[k] + offset
            parts.append(x.reshaped((x.size,)))
            offset += x.size
        if not traced.all():
            values, places[~traced] = np.unique(plain[~traced], return_inverse=True)
            places[~traced] += offset
            parts.append(arrays[0].constant(values))
        all_ = parts[0] if len(parts) == 1 else arrays[0].recorder.emit("concatenate", *parts, dimension=0)
        return _item(all_, places)


def _item(x: Array, index: Any) -> Array:
    """x[index], which shares no elements with x."""
    return x.recorder.numpy["indexed"](x, index)  # type: ignore[no-any-return]


def _breaks(numbers: Any, starts: Any) -> Any:
    """Between which neighbours in a row another run begins."""
    before, after = numbers[:-1], numbers[1:]
    sources = np.searchsorted(starts, numbers, side="right") - 1  # -1 of what is known
    known_ = (before == STATIC) & (after == STATIC)
    same = sources[:-1] == sources[1:]
    following = same & (after - before == 1) & (before != STATIC)
    repeated = same & (after == before) & (starts[sources[1:]] + 1 == starts[np.minimum(sources[1:] + 1, len(starts) - 1)])
    return ~(known_ | following | repeated)


def _runs(numbers: Any, starts: Any) -> list[_Run]:
    bounds = [0, *(np.nonzero(_breaks(numbers, starts))[0] + 1).tolist(), len(numbers)]
    firsts = numbers[bounds[:-1]].tolist() if len(numbers) else []
    return [
        _Run(start, stop, first, 0 if stop - start > 1 and numbers[start + 1] == first else 1)
        for start, stop, first in zip(bounds, bounds[1:], firsts, strict=False)
    ]


def _best_axes(numbers: Any, starts: Any) -> tuple[int, ...]:
    """The order of axes in which there are the fewest runs."""
    orders = list(permutations(range(numbers.ndim))) if 1 < numbers.ndim <= 3 else [tuple(range(numbers.ndim))]
    return min(orders, key=lambda axes: int(_breaks(np.transpose(numbers, axes).ravel(), starts).sum()))


# What the memory of a buffer holds: numbers that are known, and elements of traced arrays, by their numbers.
#
# Beside the memory stands an array of the same layout that says for each element of it which element of a traced array it is. What
# NumPy does to an array to read or write some of its elements it does to that array, too, so that indices, views, broadcasting and
# overlaps mean what they mean in NumPy.


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
"""The message about constants that are `marked`."""


def marked(x: Any) -> bool:
    """Whether one of some numbers is a mark, or was computed of one: NaN stays the NaN that it was."""
    if x.dtype.kind == "c":
        return marked(x.real) or marked(x.imag)
    bits = _BITS.get(x.dtype.str[1:]) if x.dtype.kind == "f" else None
    if bits is None:
        return False
    patterns = np.ascontiguousarray(x).view(f"u{x.itemsize}")
    sign = 1 << (8 * x.itemsize - 1)
    return bool(((patterns & ~patterns.dtype.type(sign)) == bits).any())


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
