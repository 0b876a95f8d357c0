"""What views show of arrays: the same elements in another shape or order, some of them, or parts of complex numbers.

Each view knows the call of NumPy's function that made it. What it shows of an array that has changed is found by that call anew.
How an array changes with what is shown of it is read off NumPy's own view of an empty array: where it begins, and its strides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.storage import blank
from tidu_cli.frozen import Frozen, replace


class Same(Frozen, eq=False):
    """All elements as they are."""

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        return whole

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        return shown

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        return whole


class Item(Frozen, eq=False):
    """x[index], of integers, slices, None and Ellipsis. Integers may be traced."""

    index: Any

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        found: Array = whole.recorder.numpy["indexed"](whole, self.index)
        return found

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        found: Array = whole.recorder.numpy["updated"](whole, self.index, shown)
        return found

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        entries = self.index if isinstance(self.index, tuple) else (self.index,)
        # All places of an axis are laid out alike, wherever a traced index leads; an Ellipsis keeps it an array.
        dots = () if any(e is Ellipsis for e in entries) else (...,)
        return whole[(*(0 if isinstance(e, Array) else e for e in entries), *dots)]


class Part(Frozen, eq=False):
    """The real or the imaginary part of complex numbers."""

    name: str

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        return whole.emit(self.name)

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        return shown.emit("complex", whole.emit("imag")) if self.name == "real" else whole.emit("real").emit("complex", shown)

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        return getattr(whole, self.name)


class Call(Frozen, eq=False):
    """A result of a function of NumPy's, whose arguments hold `model` for the array.

    `numpys` is NumPy's function; of several results, `part` is the number of this one.
    """

    name: str
    numpys: Callable[..., Any]
    args: Sequence[Any]
    options: Mapping[str, Any]
    model: Array
    part: int | None = None

    def of(self, part: int) -> Call:
        """That of a result of several."""
        return replace(self, part=part)

    def _called(self, function: Callable[..., Any], whole: Any) -> Any:
        blanks = isinstance(whole, np.ndarray)
        args = [whole if x is self.model else blank(x.type) if blanks and isinstance(x, Array) else x for x in self.args]
        found = function(*args, **{k: whole if x is self.model else x for k, x in self.options.items()})
        return found if self.part is None else found[self.part]

    def get(self, whole: Array) -> Array:
        """As `Lens.get`."""
        found: Array = self._called(whole.recorder.numpy[self.name], whole)
        return found

    def laid(self, whole: Any) -> Any:
        """As `Lens.laid`."""
        return self._called(self.numpys, whole)

    def put(self, whole: Array, shown: Array) -> Array:
        """As `Lens.put`."""
        empty = blank(whole.type)
        view = self.laid(empty)
        if not view.size:
            return whole
        begin = (view.__array_interface__["data"][0] - empty.__array_interface__["data"][0]) // empty.itemsize
        strides = [stride // empty.itemsize for stride in view.strides]
        if view.size == empty.size:
            return _rearranged(shown, strides).reshaped(whole.shape)
        index = _slices(empty.shape, view.shape, begin, strides)
        if index is not None:
            return Item(index).put(whole, shown)
        places = np.full(view.shape, begin, np.int64)
        for axis, stride in enumerate(strides):
            places += (np.arange(view.shape[axis]) * stride).reshape(-1, *(1,) * (view.ndim - axis - 1))
        row = whole.reshaped((whole.size,))
        return Item(places.ravel()).put(row, shown.reshaped((shown.size,))).reshaped(whole.shape)


def _rearranged(shown: Array, strides: Sequence[int]) -> Array:
    """All elements of an array that were shown with these strides, in the order in which C has them there, in any shape."""
    axes = [axis for axis, n in enumerate(shown.shape) if n > 1]
    x = shown.reshaped(tuple(shown.shape[axis] for axis in axes))
    back = tuple(k for k, axis in enumerate(axes) if strides[axis] < 0)
    x = x.emit("rev", dimensions=back) if back else x
    return x.permuted(sorted(range(len(axes)), key=lambda k: -abs(strides[axes[k]])))


def _slices(whole: Sequence[int], shown: Sequence[int], begin: int, strides: Sequence[int]) -> tuple[slice, ...] | None:
    """The slices that show this much of an array, with these strides; None if it takes more than slices."""
    if len(whole) != len(shown):
        return None
    index = []
    lengths = [int(np.prod(whole[axis + 1 :], dtype=np.int64)) for axis in range(len(whole))]
    for n, size, stride, length in zip(shown, whole, strides, lengths, strict=True):
        first, begin = divmod(begin, length)
        step, rest = divmod(stride, length) if n > 1 else (1, 0)
        last = first + (n - 1) * step
        if rest or not step or not 0 <= first < size or not 0 <= last < size:
            return None
        index.append(slice(first, last + 1 if step > 0 else last - 1 if last else None, step))
    return tuple(index)
