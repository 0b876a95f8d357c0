"""Arrays sampled at places between their elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value

Reading = Callable[[Sequence[Value]], Value]
"""From indices along axes to the elements there, with channels as the last axis."""


def linear_taps(read: Reading, places: Sequence[Value], sizes: Sequence[int]) -> Value:
    """The linear interpolation of an array between its elements, which is 0 outside of it. Channels are the last axis."""
    return _interpolated(read, places, sizes, lambda at, n: (np.clip(at, 0, n - 1), (at >= 0) & (at < n)), _linear)


Fixing = Callable[[Value, int], tuple[Value, Value]]
"""From indices along an axis of n elements to those within it, and which count, None for all."""

Weighing = Callable[[Value], list[tuple[int, Value]]]
"""From the distance to the element before a place to offsets from it and their weights."""


def _linear(rest: Value) -> list[tuple[int, Value]]:
    return [(0, 1 - rest), (1, rest)]


def _cubic(rest: Value) -> list[tuple[int, Value]]:
    """Keys' kernel with a = -0.75."""
    a = -0.75

    def near(t: Value) -> Value:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Value) -> Value:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return [(-1, far(rest + 1)), (0, near(rest)), (1, near(1 - rest)), (2, far(2 - rest))]


def _interpolated(read: Reading, places: Sequence[Value], sizes: Sequence[int], fix: Fixing, weigh: Weighing) -> Value:
    axes = []
    for place, n in zip(places, sizes, strict=True):
        whole = np.floor(place)
        index = np.clip(whole, -(2.0**30), 2.0**30).astype(np.int64)
        axes.append([(*fix(index + k, n), weight) for k, weight in weigh(place - whole)])
    found = None
    for taps in product(*axes):
        weight = None
        for _, counts, w in taps:
            counted = w if counts is None else np.where(counts, w, w.dtype.type(0))
            weight = counted if weight is None else weight * counted
        part = read([at for at, _, _ in taps]) * weight[..., np.newaxis]
        found = part if found is None else found + part
    return found


def _reflected(x: Value, low: float, high: float) -> Value:
    """x, reflected at two bounds until it is between them."""
    width = high - low
    if width <= 0:
        return x * 0
    rest = np.abs(x - low)
    rest = rest - np.floor(rest / (2 * width)) * (2 * width)
    return low + np.where(rest > width, 2 * width - rest, rest)


def _grid_sample(node: Node, x: Value, grid: Value) -> Value:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node["mode"], node["mode"])
    padding, corners, sizes = node["padding_mode"], node["align_corners"], x.shape[2:]
    if len(sizes) != grid.shape[-1] or (mode == "cubic" and len(sizes) != 2):
        raise RefusedError(f"samples an array of {len(sizes)} spatial axes at places of {grid.shape[-1]} numbers in mode {mode}")
    places = []
    for axis, n in enumerate(sizes):
        g = grid[..., len(sizes) - 1 - axis]
        place = (g + 1) / 2 * (n - 1) if corners else ((g + 1) * n - 1) / 2
        if mode == "nearest":
            place = np.round(place)
        low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
        if padding == "border":
            place = np.where((place < low) | (place > high), np.clip(place, 0, n - 1), place)
        elif padding == "reflection":
            place = np.where((place < low) | (place > high), _reflected(place, low, high), place)
        places.append(place.astype(x.dtype) if place.dtype != x.dtype else place)

    def fix(at: Value, n: int) -> tuple[Value, Value]:
        if padding == "zeros":
            return np.clip(at, 0, n - 1), (at >= 0) & (at < n)
        if padding == "border":
            return np.clip(at, 0, n - 1), None
        low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
        return np.clip(_reflected(at.astype(np.float64), low, high).astype(np.int64), 0, n - 1), None

    batch = np.arange(x.shape[0]).reshape(-1, *[1] * (grid.ndim - 2))
    last = np.moveaxis(x, 1, -1)
    weigh = {"linear": _linear, "cubic": _cubic, "nearest": lambda rest: [(0, np.ones_like(rest))]}[mode]
    return np.moveaxis(_interpolated(lambda at: last[(batch, *at)], places, sizes, fix, weigh), -1, 1)


def _roi_align(node: Node, x: Value, rois: Value, batch: Value) -> Value:
    """Means or maxima of points in the cells of regions (He et al., 2017)."""
    height, width, scale = node["output_height"], node["output_width"], node["spatial_scale"]
    half = 0.5 if node["coordinate_transformation_mode"] in ("half_pixel",) else 0.0
    number = x.dtype.type
    start = [rois[:, k] * number(scale) - number(half) for k in (1, 0)]
    end = [rois[:, k] * number(scale) - number(half) for k in (3, 2)]
    extent = [b - a for a, b in zip(start, end, strict=True)]
    if not half:
        extent = [np.maximum(e, number(1)) for e in extent]
    places, counts = [], []
    for first, whole, cells in zip(start, extent, (height, width), strict=True):
        n = node["sampling_ratio"] or _points(node, whole, cells)
        inner = (np.arange(cells)[:, np.newaxis] + (np.arange(n) + 0.5) / n).ravel()  # of cells
        places.append(first[:, np.newaxis] + (whole / number(cells))[:, np.newaxis] * inner.astype(x.dtype))
        counts.append(n)
    n_rois, shape = rois.shape[0], (rois.shape[0], height * counts[0], width * counts[1])
    rows = np.broadcast_to(places[0][:, :, np.newaxis], shape)
    columns = np.broadcast_to(places[1][:, np.newaxis, :], shape)
    outside = (rows < -1) | (rows > x.shape[2]) | (columns < -1) | (columns > x.shape[3])
    at = [np.clip(p, number(0), number(n - 1)) for p, n in ((rows, x.shape[2]), (columns, x.shape[3]))]
    last, image = np.moveaxis(x, 1, -1), np.reshape(batch, (-1, 1, 1))
    taps = _roi_taps(lambda index: last[(image, *index)], at, x.shape[2:])
    cells = (n_rois, height, counts[0], width, counts[1], x.shape[1])
    inside = np.where(outside, number(0), number(1))[..., np.newaxis]
    if node["mode"] == "max":
        greatest = taps[0]
        for tap in taps[1:]:
            greatest = np.maximum(greatest, tap)
        found = np.max((greatest * inside).reshape(cells), (2, 4))
    else:
        found = np.sum((sum(taps[1:], taps[0]) * inside).reshape(cells), (2, 4)) / number(math.prod(counts))
    return np.moveaxis(found, -1, 1)


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


OPERATORS: Mapping[str, Operator] = {
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
}
