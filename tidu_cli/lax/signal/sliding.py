"""Windows that slide over an array: how many there are along each axis, what is in them, and the array that they slide over.

Along an axis of n elements: the operand is spread by its dilation d, element i at d i; `low` and `high` places go before and after
it, or are taken away where negative; window k starts at place k s, s being the stride, and has the places from there on in steps
of the window's dilation. There are as many windows as fit, none if the first does not.

A convolution is computed with windows as columns of a matrix, which the kernel multiplies (im2col). Columns are made of a strided
view, a megabyte at a time, so that they are multiplied while they are in the cache; all of them would take many times the memory
of the operand, an element for each window that it is in. Where the operand is dilated, its zeros are left out: windows are taken
phase by phase, of places that meet elements.

The layout within is: lhs (batch, group, feature, *places), rhs (group, output feature, feature, *places), result (batch, group,
output feature, *windows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import gcd, prod
from typing import Annotated, Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.rules.attrs import Edge, sizes
from tidu_cli.rules.fields import Bounded

Count = Annotated[int, Bounded(ge=1, lt=2**62)]
Window = tuple[Annotated[int, sizes(1, 2**62)], ...]
Counts = tuple[Count, ...]
Padding = tuple[tuple[Edge, Edge], ...]


def spread(n: int, step: int) -> int:
    """How many places n elements take that are this far apart."""
    return (n - 1) * step + 1 if n else 0


class Phase(Frozen):
    """Windows of one axis between which only the start differs: they meet elements of the operand in even steps.

    Window `outputs[q]` meets with its place `taps[j]` element `start` + q `stride` + j `step`, where there is one.
    """

    outputs: slice
    taps: slice
    start: int
    stride: int
    step: int
    n_outputs: int
    n_taps: int

    @property
    def unit(self) -> bool:
        """Whether windows, and places in them, are next to each other."""
        return self.stride == self.step == 1

    @property
    def end(self) -> int:
        """One past the last element that a window meets."""
        return self.start + (self.n_outputs - 1) * self.stride + (self.n_taps - 1) * self.step + 1

    def n_pairs(self, n: int) -> int:
        """How many pairs of a window and a place in it are about one of n elements."""
        (few, apart), (many, step) = sorted(((self.n_outputs, self.stride), (self.n_taps, self.step)))
        return sum(_within(self.start + k * apart, step, many, n) for k in range(few))


class Sliding(Frozen):
    """The windows along one axis of `n` elements, each of `window` places."""

    n: int
    window: int
    stride: int
    low: int
    high: int
    base: int
    """The dilation of the operand."""
    dilation: int
    """The dilation of the window."""

    @property
    def padded(self) -> int:
        """How many places there are."""
        return self.low + spread(self.n, self.base) + self.high

    @property
    def count(self) -> int:
        """How many windows there are."""
        room = self.padded - spread(self.window, self.dilation)
        return room // self.stride + 1 if room >= 0 else 0

    @property
    def plain(self) -> bool:
        """Whether the places are the elements."""
        return self.base == 1 and not self.low and not self.high

    @property
    def directly(self) -> bool:
        """Whether windows are so short, or so few, that they are best reduced place by place."""
        return not self.count or self.window * self.count <= 2 * self.padded * self.window.bit_length()

    @property
    def adjoint_padding(self) -> tuple[int, int]:
        """The padding with which reversed windows, over results that are dilated by the stride, meet each element once."""
        reach = spread(self.window, self.dilation) - 1
        before = reach - self.low
        return before, spread(self.n, self.base) + reach - spread(self.count, self.stride) - before

    @property
    def n_phases(self) -> int:
        """How many kinds of windows there are, apart by which of their places fall on elements of a dilated operand."""
        return self.base // gcd(self.stride, self.base)

    @property
    def spread_out(self) -> Sliding:
        """The same windows over an operand that has been spread."""
        return replace(self, n=spread(self.n, self.base), base=1)

    def phases(self) -> Iterator[Phase]:
        """All windows by kind, without those that meet no element."""
        m, u = self.n_phases, self.base // gcd(self.dilation, self.base)
        for r in range(min(m, self.count)):
            place = r * self.stride - self.low
            first = _solved(self.dilation, -place, self.base)
            if first is not None and first < self.window:
                outputs, taps = slice(r, None, m), slice(first, None, u)
                counts = -((r - self.count) // m), -((first - self.window) // u)
                steps = m * self.stride // self.base, u * self.dilation // self.base
                yield Phase(outputs, taps, (place + first * self.dilation) // self.base, *steps, *counts)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Each window, and each element of the operand in it."""
        return [(w, (w * self.stride + t * self.dilation - self.low) // self.base) for w, t in self.met]

    @property
    def met(self) -> list[tuple[int, int]]:
        """Each window, and each place in it where there is an element."""
        places = ((w, t, w * self.stride + t * self.dilation - self.low) for w in range(self.count) for t in range(self.window))
        return [(w, t) for w, t, place in places if 0 <= place < spread(self.n, self.base) and not place % self.base]

    @property
    def n_pairs(self) -> int:
        """How many pairs there are of a window and an element of the operand in it."""
        if self.n_phases <= self.window:
            return sum(phase.n_pairs(self.n) for phase in self.phases())
        total, step = 0, self.stride // gcd(self.stride, self.base)
        for t in range(self.window):
            place = self.low - t * self.dilation
            first = _solved(self.stride, place, self.base)
            if first is not None:
                outputs = -((first - self.count) // self.n_phases)
                total += _within((first * self.stride - place) // self.base, step, outputs, self.n)
        return total


def _solved(factor: int, value: int, modulus: int) -> int | None:
    """The least number from 0 up which, times a factor, is `value` up to multiples of the modulus; None if there is none."""
    common = gcd(factor, modulus)
    if value % common:
        return None
    rest = modulus // common
    return value // common * pow(factor // common, -1, rest) % rest


def _within(start: int, stride: int, count: int, n: int) -> int:
    """How many of `count` numbers from `start` on are from 0 to n - 1."""
    first, end = max(0, -(start // stride)), min(count, -((start - n) // stride))
    return max(end - first, 0)


def slidings(
    shape: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
    what: str,
) -> tuple[Sliding, ...]:
    """The windows along each of these axes of `what`. Raises TypeRuleError where more is taken away than there is."""
    columns = zip(shape, windows, strides, padding, base_dilation, window_dilation, strict=True)
    axes = tuple(Sliding(n, w, s, low, high, base, dilation) for n, w, s, (low, high), base, dilation in columns)
    for axis, along in enumerate(axes):
        if along.padded < 0:
            raise TypeRuleError(
                f"padding {[along.low, along.high]} takes more from {what} than the {spread(along.n, along.base)} places "
                f"along its axis {axis}; use less"
            )
    return axes


def laid_out(np: Any, x: Any, axes: Sequence[Sliding], fill: Any) -> Any:
    """The array whose elements are the places: x spread and padded with `fill`, along its last axes."""
    if all(along.plain for along in axes):
        return x
    lead = x.ndim - len(axes)
    places = np.full((*x.shape[:lead], *(along.padded for along in axes)), fill, x.dtype)
    source, target = [slice(None)] * lead, [slice(None)] * lead
    for along in axes:
        # Element k goes to low + k base; the first and last k that stay:
        first = max(0, -(along.low // along.base))
        end = max(first, min(along.n, -((along.low - along.padded) // along.base)))
        source.append(slice(first, end))
        start = along.low + first * along.base
        target.append(slice(start, start + spread(end - first, along.base), along.base))
    places[tuple(target)] = x[tuple(source)]
    return places


def most_places(axes: Sequence[Sliding]) -> int:
    """How many places arrays have together, at most, while `slid` reduces one that is `laid_out` along one axis after the other."""
    most, sizes = 0, [along.padded for along in axes]
    for axis, along in enumerate(axes):
        before = prod(sizes)
        sizes[axis] = along.count
        # The array, its reductions of twice the reach of those before, and these; and of the windows what is combined of two.
        most = max(most, (1 if along.directly else 3) * before + 3 * prod(sizes))
    return most


Parts = tuple[Any, ...]
"""Arrays of one shape that are reduced together."""


def slid(parts: Parts, combine: Callable[[Parts, Parts], Parts], axis: int, along: Sliding) -> Parts:
    """The reductions of windows along an axis, which has the places, by an associative function of what comes before and after.

    Of long windows in steps that double the reach, at all places; of short ones place by place, where windows are only.
    """

    def every(arrays: Parts, start: int, count: int, step: int = 1) -> Parts:
        where = (*[slice(None)] * axis, slice(start, start + spread(count, step), step))
        return tuple([array[where] for array in arrays])

    at_windows = partial(every, count=along.count, step=along.stride)
    if along.directly:
        reduced = at_windows(parts, 0)
        for t in range(1, along.window if along.count else 0):
            reduced = combine(reduced, at_windows(parts, t * along.dilation))
        return reduced
    total: Parts | None = None
    offset, reach, left, places = 0, 1, along.window, along.padded
    while True:
        if left & 1:
            piece = at_windows(parts, offset * along.dilation)
            total, offset = piece if total is None else combine(total, piece), offset + reach
        left >>= 1
        if not left:
            assert total is not None
            return total
        places -= reach * along.dilation
        parts = combine(every(parts, 0, places), every(parts, reach * along.dilation, places))
        reach *= 2


_COLUMNS = 1 << 20
"""How many bytes of columns are made at a time, or those of one row of windows of one image, if that is more."""

_PHASES = 4096
"""Where there are more phases than so many, zeros are put between elements instead."""


def spread_places(axes: Sequence[Sliding]) -> int:
    """How many places a convolution makes of one feature of lhs at once, beside its elements."""
    most = 0
    if prod(along.n_phases for along in axes) > _PHASES:
        axes = [along.spread_out for along in axes]
        most = prod(along.n for along in axes)
    met = (max((phase.end - phase.start for phase in along.phases()), default=0) for along in axes)
    return most + 2 * int(prod(met))  # padded, and in the order of lines


def convolving(np: Any, axes: Sequence[Sliding]) -> Callable[[Any, Any], Any]:
    """The convolution of lhs by rhs, in the layout above, as a function of both. They are of one dtype, in which it is computed."""
    given, many_kinds = axes, prod(along.n_phases for along in axes) > _PHASES
    if many_kinds:
        axes = [along.spread_out for along in axes]
    counts, every = tuple(along.count for along in axes), list(product(*(along.phases() for along in axes)))
    is_line = len(every) == len(axes) == 1 and every[0][0].unit and every[0][0].n_outputs == counts[0]

    def convolved(lhs: Any, rhs: Any) -> Any:
        if many_kinds:
            lhs = laid_out(np, lhs, [replace(along, low=0, high=0) for along in given], 0)
        shape = (lhs.shape[0], *rhs.shape[:2], *counts)
        if is_line and lhs.shape[:3] == rhs.shape[:3] == (1, 1, 1) and every[0][0].n_taps == rhs.shape[3]:
            # NumPy has a loop for one line by one kernel: a matrix of columns would be long to make and soon multiplied.
            return np.reshape(np.correlate(_met(np, lhs, every[0])[0, 0, 0], np.conj(rhs[0, 0, 0]), "valid"), shape)
        total = np.zeros(shape, lhs.dtype)
        for phases in every if total.size and lhs.size and rhs.size else ():
            windows = _windows(np, _met(np, lhs, phases), phases)
            kernel = rhs[(..., *(phase.taps for phase in phases))]
            part = total[(..., *(phase.outputs for phase in phases))]
            many = prod(phase.n_outputs for phase in phases) >= prod(phase.n_taps for phase in phases)
            (_by_columns if many else _by_rows)(np, windows, kernel, part)
        return total

    return convolved


def _met(np: Any, lhs: Any, phases: Sequence[Phase]) -> Any:
    """The elements that windows of a phase meet, from the first to the last, and zeros where there is none."""
    x = lhs[(..., *(slice(max(phase.start, 0), max(phase.end, 0)) for phase in phases))]
    if all(phase.start >= 0 and phase.end <= n for phase, n in zip(phases, lhs.shape[3:], strict=True)):
        return x
    padded = np.zeros((*lhs.shape[:3], *(phase.end - phase.start for phase in phases)), lhs.dtype)
    lows = [max(-phase.start, 0) for phase in phases]
    padded[(..., *(slice(low, low + n) for low, n in zip(lows, x.shape[3:], strict=True)))] = x
    return padded


def _windows(np: Any, x: Any, phases: Sequence[Phase]) -> Any:
    """A view of what each window meets: (batch, group, feature, *places of the window, *windows)."""
    if phases and x.strides[-1] != x.itemsize:
        x = np.ascontiguousarray(x)  # columns are copied from lines along the last axis
    shape = (*x.shape[:3], *(phase.n_taps for phase in phases), *(phase.n_outputs for phase in phases))
    steps = [stride * phase.step for stride, phase in zip(x.strides[3:], phases, strict=True)]
    strides = [stride * phase.stride for stride, phase in zip(x.strides[3:], phases, strict=True)]
    return np.lib.stride_tricks.as_strided(x, shape, (*x.strides[:3], *steps, *strides), writeable=False)


def _by_columns(np: Any, windows: Any, kernel: Any, into: Any) -> None:
    """A column for each window: kernels, as rows, times that. Best where there are more windows than places in each."""
    rank = kernel.ndim - 3
    groups, n_out = kernel.shape[:2]
    rows = np.reshape(kernel, (groups, n_out, -1))
    for images, lines in _pieces(windows, rank):
        some = windows[(images, *[slice(None)] * (rank + 2), *lines)]
        n, counts = some.shape[0], some.shape[3 + rank :]
        columns = np.matmul(rows, np.reshape(some, (n, groups, rows.shape[-1], prod(counts))))
        into[(images, slice(None), slice(None), *lines)] = np.reshape(columns, (n, groups, n_out, *counts))


def _pieces(windows: Any, rank: int) -> Iterator[tuple[slice, tuple[slice, ...]]]:
    """Which images, and which of the first axis of windows, make columns of the size that is made at a time."""
    n_images, size = windows.shape[0], windows[0].size * windows.itemsize
    n_lines, per = windows.shape[3 + rank] if rank else 1, max(1, _COLUMNS // size)
    lines = n_lines if size <= _COLUMNS else max(1, _COLUMNS * n_lines // size)
    for k in range(0, n_images, per):
        for line in range(0, n_lines, lines):
            yield slice(k, k + per), (slice(line, line + lines),) * min(rank, 1)


def _by_rows(np: Any, windows: Any, kernel: Any, into: Any) -> None:
    """A row for each window, times kernels as columns, added up over features. Best where kernels are large."""
    rank = kernel.ndim - 3
    groups, n_out, n_features = kernel.shape[:3]
    places, outputs = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
    rows, columns = np.transpose(windows, (1, 0, *outputs, 2, *places)), np.transpose(kernel, (0, 2, *places, 1))
    counts = windows.shape[3 + rank :]
    n_rows = into.shape[0] * prod(counts)
    per = max(1, _COLUMNS * n_features // (windows.size * windows.itemsize))
    total: Any = None
    for k in range(0, n_features, per):
        some = rows[(slice(None),) * (2 + rank) + (slice(k, k + per),)]
        by = np.reshape(columns[:, k : k + per], (groups, -1, n_out))
        part = np.matmul(np.reshape(some, (groups, n_rows, by.shape[1])), by)
        total = part if total is None else np.add(total, part, out=total)
    total = np.reshape(total, (groups, into.shape[0], *counts, n_out))
    into[...] = np.transpose(total, (1, 0, 2 + rank, *range(2, 2 + rank)))
