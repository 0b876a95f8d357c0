"""The elements of traced arrays by number, so that NumPy can move numbers about in place of values.

Memory that traced values were written into is described by an array of such numbers, -1 where it holds what it says.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, known
from tidu_cli.adapters.numpy.arrays.storage import own

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
        found = self._in_a_row(turned.ravel(), static.ravel()).reshaped(turned.shape)
        return own(found.permuted(tuple(int(k) for k in np.argsort(axes))))

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
    found = []
    for start, stop, first in zip(bounds, bounds[1:], firsts, strict=False):
        step = 0 if stop - start > 1 and numbers[start + 1] == first else 1
        found.append(_Run(start, stop, first, step))
    return found


def _best_axes(numbers: Any, starts: Any) -> tuple[int, ...]:
    """The order of axes in which there are the fewest runs."""
    orders = list(permutations(range(numbers.ndim))) if 1 < numbers.ndim <= 3 else [tuple(range(numbers.ndim))]
    return min(orders, key=lambda axes: int(_breaks(np.transpose(numbers, axes).ravel(), starts).sum()))
