"""Maxima, means and norms of windows, and of regions of interest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at, computed, counted, require_size
from tidu_cli.adapters.onnx.reading.node import number as number_like
from tidu_cli.adapters.onnx.reading.open_sizes import is_open_shape
from tidu_cli.adapters.onnx.reading.operators.networks.resampling import Reading, widened
from tidu_cli.adapters.onnx.reading.operators.shapes import filled
from tidu_cli.frozen import Frozen
from tidu_cli.graph.sizes.open import OpenSize, larger, smaller
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers
from tidu_cli.limits import require

# Where windows of convolutions and poolings lie: padding, strides and how many there are.


class Windows(Frozen, slots=False):
    """For each spatial axis the size of windows, their strides and dilation, padding, and the number of windows.

    `high` is the padding that all windows need, `given_high` that of the attributes: with ceil_mode the last ones reach further.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    given_high: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """Low and high padding of each axis."""
        return tuple(zip(self.low, self.high, strict=True))

    def attrs(self) -> dict[str, Any]:
        """The attrs of reduce_window primitives, for arrays with two axes before the spatial ones."""
        ones = (1,) * (len(self.kernel) + 2)
        return {
            "window_dimensions": (1, 1, *self.kernel),
            "window_strides": (1, 1, *self.strides),
            "padding": ((0, 0), (0, 0), *self.padding),
            "base_dilation": ones,
            "window_dilation": (1, 1, *self.dilations),
        }

    def places(self, axis: int) -> Any:
        """The places that each window of an axis reads, [window, element]; those in the padding are outside of the array."""
        require("memory", self.counts[axis] * self.kernel[axis] * 8, "the places of windows")
        starts = np.arange(self.counts[axis]) * self.strides[axis] - self.low[axis]
        return starts[:, np.newaxis] + np.arange(self.kernel[axis]) * self.dilations[axis]


def spatial(node: Node, name: str, rank: int, default: int) -> tuple[int, ...]:
    """An attribute with a number for each spatial axis. Raises RefusedError for another count, and for numbers below 1."""
    numbers = tuple(node[name]) if node[name] else (default,) * rank
    if len(numbers) != rank or min(numbers, default=1) < (0 if name == "output_padding" else 1):
        raise RefusedError(f"has {name} {list(numbers)} for {rank} spatial axes")
    return numbers


def automatic_padding(node: Node) -> str:
    """How padding is chosen. Raises RefusedError for an unknown mode."""
    mode = node["auto_pad"] or "NOTSET"
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise RefusedError(f"has auto_pad '{mode}'")
    return str(mode)


def windows(node: Node, x: Value, kernel: Sequence[int]) -> Windows:
    """The windows over the spatial axes of x, those after the first two. Raises RefusedError where none fits."""
    rank = x.ndim - 2
    if rank < 1 or len(kernel) != rank or min(kernel) < 1:
        raise RefusedError(f"has windows {list(kernel)} for an array of shape {list(x.shape)}")
    strides, dilations = spatial(node, "strides", rank, 1), spatial(node, "dilations", rank, 1)
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = list(node["pads"] or [0] * (2 * rank))
    if len(pads) != 2 * rank or min(pads, default=0) < 0:
        raise RefusedError(f"has pads {pads} for {rank} spatial axes")
    low, high = pads[:rank], pads[rank:]
    automatic = automatic_padding(node)
    if is_same := automatic.startswith("SAME"):
        totals = [larger(((n + s - 1) // s - 1) * s + w - n, 0) for n, s, w in zip(x.shape[2:], strides, sizes, strict=True)]
        low = [t // 2 if automatic == "SAME_UPPER" else t - t // 2 for t in totals]
        high = [t - a for t, a in zip(totals, low, strict=True)]
    elif automatic == "VALID":
        low, high = [0] * rank, [0] * rank
    counts, reach = [], []
    for n, s, w, a, b in zip(x.shape[2:], strides, sizes, low, high, strict=True):
        room = ((n + s - 1) // s - 1) * s if is_same else n + a + b - w
        if isinstance(room, OpenSize):
            require_size(room, f"has windows of {w} elements along an axis of {n}, padded to {n + a + b}")
        count = ((room + s - 1) // s if node["ceil_mode"] else room // s) + 1
        if node["ceil_mode"]:  # windows begin in the array or before it
            count = smaller(count, (n + a + s - 1) // s) if isinstance(n, OpenSize) else count - ((count - 1) * s >= n + a)
        if count < 0 or (room < 0 and not node["ceil_mode"]):
            raise RefusedError(f"has windows of {w} elements along an axis of {n}, padded to {n + a + b}")
        counts.append(count)
        reach.append(larger((count - 1) * s + w - n - a, b) if node["ceil_mode"] and not is_same else b)
    return Windows(tuple(kernel), strides, dilations, tuple(low), tuple(reach), tuple(high), tuple(counts))


def _max_pool(node: Node, x: Value) -> list[Value]:
    grid = windows(node, x, node["kernel_shape"])
    values = computed(node, "reduce_window_max", x, **grid.attrs())
    if not node.wants(1):
        return [values]
    numbers = _numbered(node, x.shape, bool(node["storage_order"]))
    return [values, computed(node, "select_and_gather_add", numbers, x, **grid.attrs(), select_prim="ge")]


def _numbered(node: Node, shape: Sequence[int], column_major: bool) -> Value:
    """The numbers of elements of an array; with `column_major` those of an image go through its first axis first."""
    number = counted(node, math.prod(shape))
    if not column_major:
        return number.reshape(shape)
    return np.transpose(number.reshape(*shape[:2], *shape[:1:-1]), (0, 1, *range(len(shape) - 1, 1, -1)))


def _counts(grid: Windows, sizes: tuple[int, ...], padded: bool) -> Value:
    """How many elements windows have, those of the padding included or not."""
    counts = np.ones((1, 1), np.int64)
    for k, n in enumerate(sizes):
        at = grid.places(k)
        low, high = (-grid.low[k], n + grid.given_high[k]) if padded else (0, n)
        along = ((at >= low) & (at < high)).sum(1)
        counts = counts[..., np.newaxis] * along
    return counts


def _average_pool(node: Node, x: Value) -> Value:
    grid = windows(node, x, node["kernel_shape"])
    if is_open_shape(x.shape[2:]):
        return _open_average(node, x, grid)
    counts = _counts(grid, x.shape[2:], bool(node["count_include_pad"]))
    if counts.size and counts.min() == counts.max():
        counts = counts.ravel()[0]
    return computed(node, "reduce_window_sum", x, **grid.attrs()) / counts.astype(x.dtype)


def _open_average(node: Node, x: Value, grid: Windows) -> Value:
    """Likewise, of axes with open sizes: elements of windows are counted as they are added up."""
    added, attrs = computed(node, "reduce_window_sum", x, **grid.attrs()), grid.attrs()
    is_unpadded = all(n == 0 for n in (*grid.low, *grid.high, *grid.given_high))
    if is_unpadded or (node["count_include_pad"] and grid.high == grid.given_high):
        return added / number_like(x, math.prod(grid.kernel))
    ones = filled(node, number_like(x, 1), (1, 1, *x.shape[2:]))
    if node["count_include_pad"]:
        ones = computed(
            node,
            "pad",
            ones,
            number_like(x, 1),
            padding_config=((0, 0, 0), (0, 0, 0), *((a, b, 0) for a, b in zip(grid.low, grid.given_high, strict=True))),
        )
        attrs["padding"] = ((0, 0), (0, 0), *((0, b - c) for b, c in zip(grid.high, grid.given_high, strict=True)))
    return added / computed(node, "reduce_window_sum", ones, **attrs)


def _power(x: Value, p: float) -> Value:
    size = np.abs(x)
    return size if p == 1 else size * size if p == 2 else size ** x.dtype.type(p)


def _exponent(node: Node) -> float:
    if node["p"] < 1:
        raise RefusedError(f"has p {node['p']}")
    return float(node["p"])


def _lp_pool(node: Node, x: Value) -> Value:
    p = _exponent(node)
    return _root(computed(node, "reduce_window_sum", _power(x, p), **windows(node, x, node["kernel_shape"]).attrs()), p)


def _root(x: Value, p: float) -> Value:
    return x if p == 1 else np.sqrt(x) if p == 2 else x ** x.dtype.type(1 / p)


def _spatial(x: Value) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _global_lp_pool(node: Node, x: Value) -> Value:
    p = _exponent(node)
    return _root(np.sum(_power(x, p), _spatial(x), dtype=x.dtype, keepdims=True), p)


def _max_unpool(node: Node, x: Value, places: Value, shape: Value = None) -> Value:
    """Zeros, with x at the places of MaxPool."""
    rank, kernel = x.ndim - 2, node["kernel_shape"]
    strides, pads = spatial(node, "strides", rank, 1), list(node["pads"] or [0] * 2 * rank)
    if places.shape != x.shape or len(kernel) != rank or len(pads) != 2 * rank:
        raise RefusedError(f"has kernel_shape {kernel}, pads {pads} and places {list(places.shape)} for {list(x.shape)}")
    inferred = [
        (n - 1) * s - (a + b) + k for n, s, k, a, b in zip(x.shape[2:], strides, kernel, pads[:rank], pads[rank:], strict=True)
    ]
    sizes = [*x.shape[:2], *inferred]
    due = sizes if shape is None else node.ints(shape, "output_shape")
    if due != sizes:
        told = "of which array the places are has several readings then"
        raise RefusedError(f"has the output_shape {due}, not the shape {sizes} that its attributes make; {told}")
    if any(n < 0 for n in due):
        raise RefusedError(f"makes an array of shape {due}")
    if not is_open_shape(due):
        require("memory", math.prod(due) * 8, f"an array of shape {due}")
    numbers = ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    blank = filled(node, number_like(x, 0), (math.prod(due),))
    flat = computed(node, "scatter", blank, places.reshape(-1, 1), x.reshape(-1), dimension_numbers=numbers, mode="fill")
    return flat.reshape(due)


_POOLING: Mapping[str, Operator] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda node, x: np.mean(x, _spatial(x), keepdims=True),
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": lambda node, x: np.max(x, _spatial(x), keepdims=True),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}


# Maxima and means of the cells of regions of interest.


def _max_roi_pool(node: Node, x: Value, rois: Value) -> Value:
    """Maxima of the cells of regions, whose bounds are whole numbers (Girshick, 2015)."""
    cells, number = node["pooled_shape"], np.dtype(x.dtype).type
    if x.ndim != 4 or rois.shape[1:] != (5,) or len(cells) != 2 or min(cells) < 1:
        raise RefusedError(f"has regions {list(rois.shape)} in {list(x.shape)}, and pooled_shape {cells}")
    rows, columns = cells
    if 0 in x.shape:
        raise RefusedError(f"has regions in an array of shape {list(x.shape)}")
    size = rois.shape[0] * (math.prod(x.shape[1:]) * rows + columns * x.shape[3]) * x.dtype.itemsize
    require("memory", size + 8 * (rows + columns), "the cells of regions")
    within = []
    for k, n, size in zip((2, 1), cells, x.shape[2:], strict=True):
        first, last = (_rounded(rois[:, i] * number(node["spatial_scale"])) for i in (k, k + 2))
        cell = np.maximum(last - first + number(1), number(1)) / number(n)
        steps = np.arange(n + 1).astype(x.dtype)
        low = np.floor(steps[:-1] * cell[:, np.newaxis]) + first[:, np.newaxis]
        high = np.ceil(steps[1:] * cell[:, np.newaxis]) + first[:, np.newaxis]
        places = np.arange(size).astype(x.dtype)
        within.append((places >= low[..., np.newaxis]) & (places < high[..., np.newaxis]))  # [region, cell, element]
    images = at(node, x, rois[:, 0].astype(np.int64))[:, :, np.newaxis]
    least = number(-np.inf)
    bands = np.max(np.where(within[0][:, np.newaxis, :, :, np.newaxis], images, least), 3)  # [region, channel, row, x]
    parts = [np.max(np.where(within[1][:, np.newaxis, np.newaxis, k], bands, least), 3) for k in range(columns)]
    greatest = np.stack(parts, -1)
    return np.where(greatest == least, number(0), greatest)


def _rounded(x: Value) -> Value:
    """Rounded to the nearest whole number, halves away from 0."""
    return np.sign(x) * np.floor(np.abs(x) + np.dtype(x.dtype).type(0.5))


def _roi_align(node: Node, image: Value, regions: Value, batch: Value) -> Value:
    """Means or maxima of points in the cells of regions (He et al., 2017)."""
    x, rois = widened(image), widened(regions).astype(widened(image).dtype)
    if x.ndim != 4 or rois.shape != (*batch.shape, 4) or batch.ndim != 1 or 0 in x.shape[2:]:
        raise RefusedError(f"has regions {list(rois.shape)} and {list(batch.shape)} of an array of shape {list(x.shape)}")
    height, width, scale = node["output_height"], node["output_width"], node["spatial_scale"]
    if min(height, width) < 1 or node["sampling_ratio"] < 0 or node["mode"] not in ("avg", "max"):
        raise RefusedError(f"has cells {[height, width]}, sampling_ratio {node['sampling_ratio']} and mode '{node['mode']}'")
    half = 0.5 if node["coordinate_transformation_mode"] == "half_pixel" else 0.0
    number = x.dtype.type
    start, end = ([rois[:, k] * number(scale) - number(half) for k in columns] for columns in ((1, 0), (3, 2)))
    extent = [b - a for a, b in zip(start, end, strict=True)]
    if not half:
        extent = [np.maximum(e, number(1)) for e in extent]
    places, counts = [], []
    for first, whole, cells in zip(start, extent, (height, width), strict=True):
        n = node["sampling_ratio"] or _points(node, whole, cells)
        require("memory", max(len(rois), 1) * cells * n * 8, "the points of regions")
        parts = (np.arange(cells)[:, np.newaxis] + (np.arange(n) + 0.5) / n).ravel()  # of cells
        places.append(first[:, np.newaxis] + (whole / number(cells))[:, np.newaxis] * parts.astype(x.dtype))
        counts.append(n)
    shape = (rois.shape[0], height * counts[0], width * counts[1])
    rows = np.broadcast_to(places[0][:, :, np.newaxis], shape)
    columns = np.broadcast_to(places[1][:, np.newaxis, :], shape)
    outside = (rows < -1) | (rows > x.shape[2]) | (columns < -1) | (columns > x.shape[3])
    inner = [np.clip(p, number(0), number(n - 1)) for p, n in ((rows, x.shape[2]), (columns, x.shape[3]))]
    last, images = np.moveaxis(x, 1, -1), np.reshape(batch, (-1, 1, 1))
    taps = _roi_taps(lambda index: at(node, last, images, *index), inner, x.shape[2:])
    cells = (rois.shape[0], height, counts[0], width, counts[1], x.shape[1])
    inside = np.where(outside, number(0), number(1))[..., np.newaxis]
    if node["mode"] == "max":
        pooled = np.max((reduce(np.maximum, taps) * inside).reshape(cells), (2, 4))
    else:
        pooled = np.sum((reduce(np.add, taps) * inside).reshape(cells), (2, 4)) / number(math.prod(counts))
    return np.moveaxis(pooled.astype(image.dtype), -1, 1)


def _points(node: Node, extent: Value, cells: int) -> int:
    """How many points cells have along an axis where nobody says. Raises RefusedError where regions differ in it."""
    known = np.unique(np.ceil(node.known(extent, "rois (or give sampling_ratio)") / cells))
    if known.size > 1:
        raise RefusedError("has regions of several sizes and sampling_ratio 0; export it with a sampling_ratio")
    return max(int(known.item()), 1) if known.size else 1


def _roi_taps(read: Reading, places: Sequence[Value], sizes: Sequence[int]) -> list[Value]:
    axes = []
    for place, n in zip(places, sizes, strict=True):
        low = np.minimum(np.floor(place), place.dtype.type(max(n - 1, 0))).astype(np.int64)
        rest = place - low.astype(place.dtype)
        axes.append([(low, 1 - rest), (np.minimum(low + 1, n - 1), rest)])
    return [read([a, b]) * (u * v)[..., np.newaxis] for (a, u), (b, v) in product(*axes)]


_REGIONS: Mapping[str, Operator] = {
    "MaxRoiPool": _max_roi_pool,
    "RoiAlign": _roi_align,
}

OPERATORS: Mapping[str, Operator] = {**_POOLING, **_REGIONS}
