"""Arrays sampled at places between their elements, and grids of such places."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at
from tidu_cli.limits import require


def widened(x: Value) -> Value:
    """Floats of half precision as those of single precision: places, and sums of many products, need more digits."""
    return x.astype(np.float32) if np.dtype(x.dtype).itemsize < 4 else x


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


def _index(place: Value) -> Value:
    """Whole numbers as integers, those far outside of any array cut off."""
    return np.clip(place, -(2.0**30), 2.0**30).astype(np.int64)


def _interpolated(read: Reading, places: Sequence[Value], sizes: Sequence[int], fix: Fixing, weigh: Weighing) -> Value:
    axes = []
    for place, n in zip(places, sizes, strict=True):
        whole = np.floor(place)
        index = _index(whole)
        axes.append([(*fix(index + k, n), weight) for k, weight in weigh(place - whole)])
    total = None
    for taps in product(*axes):
        weight: Value = None
        for _, counts, w in taps:
            counted = w if counts is None else np.where(counts, w, w.dtype.type(0))
            weight = counted if weight is None else weight * counted
        part = read([index for index, _, _ in taps]) * weight[..., np.newaxis]
        total = part if total is None else total + part
    return total


def _reflected(x: Value, low: float, high: float) -> Value:
    """x, reflected at two bounds until it is between them."""
    width = high - low
    if width <= 0:
        return x * 0
    rest = np.abs(x - low)
    rest = rest - np.floor(rest / (2 * width)) * (2 * width)
    return low + np.where(rest > width, 2 * width - rest, rest)


def _grid_sample(node: Node, x: Value, grid: Value) -> Value:
    """An array at places of a grid, whose last axis has the last spatial axis first; -1 and 1 are its ends."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node["mode"], node["mode"])
    padding, corners, sizes = node["padding_mode"], node["align_corners"], x.shape[2:]
    if grid.ndim != x.ndim or len(sizes) != grid.shape[-1] or x.shape[0] != grid.shape[0] or (mode == "cubic" and len(sizes) != 2):
        raise RefusedError(f"samples an array of shape {list(x.shape)} at places of shape {list(grid.shape)} in mode '{mode}'")
    if mode not in ("linear", "cubic", "nearest") or padding not in ("zeros", "border", "reflection"):
        raise RefusedError(f"has mode '{mode}' and padding_mode '{padding}'")
    if 0 in sizes or (mode != "nearest" and np.dtype(x.dtype).kind not in "fV"):
        raise RefusedError(f"samples an array of {x.dtype} of shape {list(x.shape)} in mode '{mode}'")
    places, at_places = [], widened(grid)
    for axis, n in enumerate(sizes):
        g = at_places[..., len(sizes) - 1 - axis]
        place = (g + 1) / 2 * (n - 1) if corners else ((g + 1) * n - 1) / 2
        if mode == "nearest":
            place = np.round(place)
        low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
        if padding == "border" and mode != "cubic":  # a cubic goes on outside, over elements of the border
            place = np.where((place < low) | (place > high), np.clip(place, 0, n - 1), place)
        elif padding == "reflection":
            place = np.where((place < low) | (place > high), _reflected(place, low, high), place)
        places.append(place)

    def fix(index: Value, n: int) -> tuple[Value, Value]:
        if padding == "zeros":
            return np.clip(index, 0, n - 1), (index >= 0) & (index < n)
        if padding == "border":
            return np.clip(index, 0, n - 1), None
        low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
        return np.clip(_reflected(index.astype(np.float64), low, high).astype(np.int64), 0, n - 1), None

    batch = np.arange(x.shape[0]).reshape(-1, *[1] * (grid.ndim - 2))
    last = np.moveaxis(x, 1, -1)
    if mode == "nearest":
        taps = [fix(_index(place), n) for place, n in zip(places, sizes, strict=True)]
        values = at(node, last, batch, *[index for index, _ in taps])
        for _, counts in taps if padding == "zeros" else ():
            values = np.where(counts[..., np.newaxis], values, np.zeros((), x.dtype))
        return np.moveaxis(values, -1, 1)
    weigh = _linear if mode == "linear" else _cubic
    values = _interpolated(lambda index: at(node, last, batch, *index), places, sizes, fix, weigh)
    return np.moveaxis(values.astype(x.dtype), -1, 1)


def _affine_grid(node: Node, theta: Value, size: Value) -> Value:
    """Where GridSample reads for affine maps of an image."""
    shape = node.ints(size, "size")[2:]
    if theta.shape[1:] != (len(shape), len(shape) + 1) or min(shape) < 1:
        raise RefusedError(f"maps images of size {shape} by arrays of shape {list(theta.shape)}")
    require("memory", math.prod(shape) * 8 * (len(shape) + 1), f"a grid of shape {shape}")
    axes = []
    for n in shape:
        places = np.linspace(-1, 1, n) if node["align_corners"] else (np.arange(n) * 2 + 1) / n - 1
        axes.append(np.zeros(1) if n == 1 and node["align_corners"] else places)
    mesh = np.meshgrid(*axes, indexing="ij")
    maps = widened(theta)
    base = np.stack([*mesh[::-1], np.ones(shape)], -1).astype(maps.dtype)
    return np.einsum("...k,njk->n...j", base, maps).astype(theta.dtype)


OPERATORS: Mapping[str, Operator] = {
    "AffineGrid": _affine_grid,
    "GridSample": _grid_sample,
}
