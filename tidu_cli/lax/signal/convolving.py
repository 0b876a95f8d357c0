"""How a convolution is computed: windows as columns of a matrix, which the kernel multiplies (im2col).

Columns are made of a strided view, a megabyte at a time, so that they are multiplied while they are in the cache; all of them would
take many times the memory of the operand, an element for each window that it is in. Where the operand is dilated, its zeros are
left out: windows are taken phase by phase, of places that meet elements.

The layout within is: lhs (batch, group, feature, *places), rhs (group, output feature, feature, *places), result (batch, group,
output feature, *windows).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from tidu_cli.frozen import replace
from tidu_cli.lax.signal.sliding import Phase, Sliding, laid_out

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
            return np.reshape(_of_line(np, _met(np, lhs, every[0])[0, 0, 0], rhs[0, 0, 0]), shape)
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


def _of_line(np: Any, line: Any, kernel: Any) -> Any:
    """Of one line by one kernel, for which NumPy has a loop: a matrix of columns would be long to make and soon multiplied."""
    return np.correlate(line, np.conj(kernel), "valid")


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
