"""Slicing, joining, gathering and scattering element by element, as StableHLO's specification defines them."""

from __future__ import annotations

import math

import numpy as np

from tidu_cli.graph.types import INEXACT, SIGNED
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype


def element_by_element(shape, element):
    """The array whose element at each index is `element(index)`."""
    out = np.empty(shape, object)
    for index in np.ndindex(*shape):
        out[index] = element(index)
    return out


def sliced(x, starts, limits, strides):
    shape = [len(range(a, b, s)) for a, b, s in zip(starts, limits, strides, strict=True)]
    return element_by_element(shape, lambda i: x[tuple(a + k * s for a, k, s in zip(starts, i, strides, strict=True))].item())


def padded(x, value, config):
    shape = [low + n + max(n - 1, 0) * interior + high for n, (low, high, interior) in zip(x.shape, config, strict=True)]

    def element(index):
        at = []
        for i, n, (low, _, interior) in zip(index, x.shape, config, strict=True):
            place, rest = divmod(i - low, interior + 1)
            if rest or not 0 <= place < n:
                return value.item()
            at.append(place)
        return x[tuple(at)].item()

    return element_by_element(shape, element)


def clamped(start, size, available):
    return min(max(start, 0), available - size)


def _split(index, window_dims):
    """An index of a windowed array as batch index and window index."""
    return [i for k, i in enumerate(index) if k not in window_dims], [i for k, i in enumerate(index) if k in window_dims]


def _window(batch, indices, names, numbers, operand_shape, sizes, mode):
    """The start of one window, and whether the window is to be used. `names`: index map, batching of operand, of indices."""
    index_map, ours, theirs = (numbers.get(name, ()) for name in names)
    vector = [int(i) for i in indices[tuple(batch)]]
    given = [0] * len(operand_shape)
    for k, axis in enumerate(index_map):
        given[axis] = vector[k]
    start = [clamped(s, n, m) for s, n, m in zip(given, sizes, operand_shape, strict=True)]
    usable = mode != "fill" or start == given
    for axis, other in zip(ours, theirs, strict=True):
        start[axis] = batch[other]
    return start, usable


def _offset(window, rank, dropped):
    left = iter(window)
    return [0 if axis in dropped else next(left) for axis in range(rank)]


def default_fill(dtype):
    if dtype == "bool":
        return True
    if dtype in INEXACT:
        return math.nan
    info = np.iinfo(numpy_dtype(np, dtype))
    return int(info.min) if dtype in SIGNED else int(info.max)


def gathered(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value=None):
    numbers = dimension_numbers
    dropped = {*numbers["collapsed_slice_dims"], *numbers.get("operand_batching_dims", ())}
    kept = iter([n for axis, n in enumerate(slice_sizes) if axis not in dropped])
    batch_shape = iter(indices.shape[:-1])
    offset_dims = numbers["offset_dims"]
    shape = [next(kept) if k in offset_dims else next(batch_shape) for k in range(len(offset_dims) + indices.ndim - 1)]
    names = ("start_index_map", "operand_batching_dims", "start_indices_batching_dims")
    fill = default_fill(dtype_name(x.dtype)) if fill_value is None else fill_value

    def element(index):
        batch, window = _split(index, offset_dims)
        start, usable = _window(batch, indices, names, numbers, x.shape, slice_sizes, mode)
        at = tuple(map(sum, zip(start, _offset(window, x.ndim, dropped), strict=True)))
        return x[at].item() if usable else fill

    return element_by_element(shape, element)


def scattered(x, indices, updates, combine, *, dimension_numbers, mode, unique_indices=False):
    """`combine(old, new)` for each update, window after window in the row-major order of the indices."""
    numbers = dimension_numbers
    dropped = {*numbers["inserted_window_dims"], *numbers.get("operand_batching_dims", ())}
    dims = numbers["update_window_dims"]
    names = ("scatter_dims_to_operand_dims", "operand_batching_dims", "scatter_indices_batching_dims")
    own = iter(dims)
    sizes = [1 if axis in dropped else updates.shape[next(own)] for axis in range(x.ndim)]
    out = element_by_element(x.shape, lambda i: x[i].item())
    for index in sorted(np.ndindex(*updates.shape), key=lambda i: _split(i, dims)):
        batch, window = _split(index, dims)
        start, usable = _window(batch, indices, names, numbers, x.shape, sizes, mode)
        at = tuple(map(sum, zip(start, _offset(window, x.ndim, dropped), strict=True)))
        if usable and all(0 <= i < n for i, n in zip(at, x.shape, strict=True)):
            out[at] = combine(out[at], updates[index].item())
    return out
