"""Arrays resampled: resized axis by axis, or sampled at places between their elements, and grids of such places.

Each element of a resampled axis is the one nearest to its place, or a sum of some around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.adapters.onnx.reading.operators.indexing import gathered
from tidu_cli.adapters.onnx.reading.operators.networks.open_axes import open_resampled, repeated, scale_between, scaled_open
from tidu_cli.frozen import Frozen
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers
from tidu_cli.limits import require

SMALL_MATRIX = 4096
"""The most elements of a matrix by which sums are computed as a product."""

MANY_TAPS = 8
"""Or if they are of more elements than that each; else elements are gathered, and weighed."""

MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
"""Ways from the elements of a result to places in the array."""


class Axis(Frozen, slots=False):
    """An axis of n elements that becomes one of `size`, by a scale, read from `start` to `end` of it for tf_crop_and_resize."""

    n: int
    size: int
    scale: float
    start: float = 0.0
    end: float = 1.0

    def places(self, mode: str) -> Any:
        """Where the elements of the result lie in the array."""
        k, last = np.arange(self.size, dtype=np.float64), self.size - 1
        if mode == "align_corners":
            return k * ((self.n - 1) / last) if last > 0 else k * 0
        if mode == "asymmetric":
            return k / self.scale
        if mode == "tf_crop_and_resize":
            middle = np.full(self.size, 0.5 * (self.start + self.end) * (self.n - 1))
            return self.start * (self.n - 1) + k * (self.end - self.start) * (self.n - 1) / last if last > 0 else middle
        if mode == "tf_half_pixel_for_nn":
            return (k + 0.5) / self.scale
        if mode == "pytorch_half_pixel":
            return (k + 0.5) / self.scale - 0.5 if last > 0 else k * 0
        offset = self.n / 2 * (1 - self.size / (self.n * self.scale)) if mode == "half_pixel_symmetric" else 0.0
        return offset + (k + 0.5) / self.scale - 0.5


ROUNDINGS: Mapping[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda p: np.ceil(p - 0.5),
    "round_prefer_ceil": lambda p: np.floor(p + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""How a place becomes the index of an element. Version 10 says nothing; onnxruntime rounds up where it shrinks, and else down."""


def _near(t: Any, a: float) -> Any:
    """Keys' kernel (1981) at distances up to 1."""
    return ((a + 2) * t - (a + 3)) * t * t + 1


def _far(t: Any, a: float) -> Any:
    """That kernel at distances from 1 to 2."""
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a


def _cubic(t: Any, a: float) -> Any:
    """That kernel at any distances, of either sign."""
    t = np.abs(t)
    return np.where(t <= 1, _near(t, a), np.where(t < 2, _far(t, a), 0.0))


def _taps(node: Node, axis: Axis, places: Any) -> tuple[Any, Any]:
    """For each element of the result the indices of those that it is a sum of, and their weights."""
    kind, shrunk = node["mode"], min(axis.scale, 1.0) if node["antialias"] else 1.0
    radius = 1 if kind == "linear" else 2
    before = np.floor(places)
    first = math.floor(-radius / shrunk) + 1
    offsets = np.arange(first, 2 - first if node["antialias"] else radius + 1)
    require("memory", axis.size * offsets.size * 16, f"the weights of an axis of {axis.size} elements")
    distances = (offsets - (places - before)[:, np.newaxis]) * shrunk
    a = node["cubic_coeff_a"] if node["cubic_coeff_a"] is not None else -0.75
    weights = np.maximum(1 - np.abs(distances), 0) if kind == "linear" else _cubic(distances, a)
    at = before[:, np.newaxis].astype(np.int64) + offsets
    if node["exclude_outside"]:
        weights = np.where((at >= 0) & (at < axis.n), weights, 0.0)
    if node["antialias"] or node["exclude_outside"]:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(at, 0, axis.n - 1), weights


def _summed(x: Value, k: int, n: int, at: Any, weights: Any) -> Value:
    """Sums of elements along axis k."""
    size, taps = at.shape
    if size * n <= SMALL_MATRIX or taps > MANY_TAPS:
        require("memory", size * n * 8, f"the weights of an axis of {n} elements in one of {size}")
        matrix = np.zeros((size, n))
        np.add.at(matrix, (np.arange(size)[:, np.newaxis], at), weights)
        return np.moveaxis(np.tensordot(x, matrix.astype(x.dtype), ((k,), (1,))), -1, k)
    shape = [-1 if d == k else 1 for d in range(x.ndim)]
    parts = [np.take(x, at[:, j], k) * weights[:, j].astype(x.dtype).reshape(shape) for j in range(taps)]
    return sum(parts[1:], parts[0])


def _selected(x: Value, k: int, at: Any) -> Value:
    """Elements along axis k: slices, and repetitions, where they are, have better transposes than what is gathered."""
    n, size = x.shape[k], len(at)
    if n and size % n == 0 and np.array_equal(at, np.repeat(np.arange(n), size // n)):
        return repeated(x, k, size // n)
    steps = np.unique(np.diff(at))
    if steps.size == 1 and steps[0] > 0:
        return x[(*[slice(None)] * k, slice(int(at[0]), int(at[-1]) + 1, int(steps[0])))]
    return np.take(x, at, k)


def resampled(node: Node, x: Value, k: int, axis: Axis, mode: str, rounding: str) -> Value:
    """Axis k of x resampled, for a way from elements to places, and of rounding these. Raises LimitError."""
    if rounding == "ceil or floor":
        if axis.scale is None:
            raise RefusedError(f"resizes an axis of {axis.n} elements to {axis.size}, and rounds by which of them is the greater")
        rounding = "ceil" if axis.scale < 1 else "floor"
    if isinstance(axis.n, OpenSize) or isinstance(axis.size, OpenSize):
        return open_resampled(node, x, k, axis, mode, ROUNDINGS[rounding])
    require("memory", axis.size * 8, f"an axis of {axis.size} elements")
    places = axis.places(mode)
    if node["mode"] == "nearest":
        x = _selected(x, k, np.clip(ROUNDINGS[rounding](places), 0, axis.n - 1).astype(np.int64))
    else:
        x = _summed(x, k, axis.n, *_taps(node, axis, places))
    if mode == "tf_crop_and_resize":
        outside = np.reshape((places < 0) | (places > axis.n - 1), [-1 if d == k else 1 for d in range(x.ndim)])
        x = np.where(outside, x.dtype.type(node["extrapolation_value"]), x)
    return x


def _resized(node: Node, x: Value, axes: Mapping[int, Axis], mode: str, rounding: str) -> Value:
    """Axes of x resampled, sums in floats of single precision at least."""
    exact = node["mode"] == "nearest" or x.dtype in (np.float32, np.float64)
    values = x if exact else x.astype(np.float32)
    for k, axis in axes.items():
        if mode == "tf_crop_and_resize" or axis.size != axis.n or axis.scale != 1:
            values = resampled(node, values, k, axis, mode, rounding)
    return values if values.dtype == x.dtype else values.astype(x.dtype)


def _resize(node: Node, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None) -> Value:
    if node.version < 11:
        roi, scales, sizes = None, roi, None
    chosen = normalize_axis_tuple(node["axes"], x.ndim) if node.has("axes") else range(x.ndim)
    mode = node["coordinate_transformation_mode"] or "asymmetric"
    rounding = node["nearest_mode"] or ("ceil or floor" if node.version < 11 else "floor")
    policy = node["keep_aspect_ratio_policy"] or "stretch"
    _require_one("mode", node["mode"], ("nearest", "linear", "cubic"))
    _require_one("coordinate_transformation_mode", mode, MODES)
    _require_one("nearest_mode", rounding, ("ceil or floor", *ROUNDINGS))
    _require_one("keep_aspect_ratio_policy", policy, ("stretch", "not_larger", "not_smaller"))
    factors: list[Any] = [] if scales is None else [float(s) for s in np.ravel(node.known(scales, "scales"))]
    if factors:
        _require_count("scales", factors, chosen)
        due = [_scaled(x.shape[k], f) for k, f in zip(chosen, factors, strict=True)]
        _require_whole(mode, x, chosen, factors)
    else:
        if sizes is None:
            raise RefusedError("has neither scales nor sizes")
        due = node.ints(sizes, "sizes")
        _require_count("sizes", due, chosen)
        if any(x.shape[k] == 0 for k in chosen):
            raise RefusedError(f"resizes an array of shape {list(x.shape)} to sizes {due}")
        factors = [scale_between(x.shape[k], d) for k, d in zip(chosen, due, strict=True)]
        if policy != "stretch":
            if None in factors:
                raise RefusedError(f"keeps the aspect ratio of an array of shape {list(x.shape)}, which depends on open sizes")
            one = min(factors) if policy == "not_larger" else max(factors)
            factors = [one] * len(factors)
            due = [math.floor(x.shape[k] * one + 0.5) for k in chosen]
    if any(d < 0 for d in due) or any(f is not None and f <= 0 for f in factors):
        raise RefusedError(f"to sizes {due}")
    ends = [(0.0, 1.0)] * len(chosen)
    if mode == "tf_crop_and_resize":
        if roi is None:
            raise RefusedError("has no roi, which coordinate_transformation_mode 'tf_crop_and_resize' needs")
        region = [float(v) for v in np.ravel(node.known(roi, "roi"))]
        _require_count("numbers of roi", region, [*chosen, *chosen])
        ends = list(zip(region[: len(chosen)], region[len(chosen) :], strict=True))
    axes = {k: Axis(x.shape[k], d, f, *e) for k, d, f, e in zip(chosen, due, factors, ends, strict=True)}
    return _resized(node, x, axes, mode, rounding)


def _require_one(name: str, way: str, ways: Sequence[str]) -> None:
    if way not in ways:
        raise RefusedError(f"has {name} '{way}'")


def _require_count(what: str, numbers: Sequence[float], axes: Sequence[int]) -> None:
    if len(numbers) != len(axes):
        raise RefusedError(f"has {len(numbers)} {what} for {len(axes)} axes")


def _scaled(n: Any, scale: float) -> Any:
    """n elements scaled, in single precision as scales are: 10 times 0.7 is 7."""
    if isinstance(n, OpenSize):
        return scaled_open(n, scale)
    return math.floor(np.float32(n) * np.float32(scale))


def _require_whole(mode: str, x: Value, axes: Sequence[int], factors: Sequence[float]) -> None:
    """The specification's code and onnxruntime differ in which length, rounded or not, the last elements belong to."""
    if any(isinstance(x.shape[k], OpenSize) for k in axes):
        return
    lengths = [float(np.float32(x.shape[k]) * np.float32(f)) for k, f in zip(axes, factors, strict=True)]
    if mode in ("align_corners", "tf_crop_and_resize") and any(n != math.floor(n) for n in lengths):
        raise RefusedError(f"has scales that make lengths {lengths}, where '{mode}' has several readings; give it sizes")


def _upsample(node: Node, x: Value, scales: Value = None) -> Value:
    _require_one("mode", node["mode"], ("nearest", "linear", "cubic"))
    factors = node["scales"] if scales is None else [float(s) for s in np.ravel(node.known(scales, "scales"))]
    _require_count("scales", factors, x.shape)
    if min(factors, default=1.0) <= 0:
        raise RefusedError(f"has scales {factors}")
    axes = {k: Axis(n, _scaled(n, f), f) for k, (n, f) in enumerate(zip(x.shape, factors, strict=True))}
    return _resized(node, x, axes, "asymmetric", "floor")


def widened(x: Value) -> Value:
    """Floats of half precision as those of single precision: places, and sums of many products, need more digits."""
    return x.astype(np.float32) if np.dtype(x.dtype).itemsize < 4 else x


Reading = Callable[[Sequence[Value]], Value]
"""From indices along axes to the elements there, with channels as the last axis."""


def linear_taps(read: Reading, places: Sequence[Value], sizes: Sequence[int]) -> Value:
    """The linear interpolation of an array between its elements, which is 0 outside of it. Channels are the last axis."""
    return _interpolated(read, places, sizes, _inside, _linear)


def _inside(at: Value, n: int) -> tuple[Value, Value]:
    """Indices moved into an axis of n elements, and where that moves none."""
    index = np.clip(at, 0, n - 1)
    return index, index == at


Fixing = Callable[[Value, int], tuple[Value, Value]]
"""From indices along an axis of n elements to those within it, and which count, None for all."""

Weighing = Callable[[Value], list[tuple[int, Value]]]
"""From the distance to the element before a place to offsets from it and their weights."""


def _linear(rest: Value) -> list[tuple[int, Value]]:
    return [(0, 1 - rest), (1, rest)]


def _sampled_cubic(rest: Value) -> list[tuple[int, Value]]:
    """Keys' kernel with a = -0.75."""
    a = -0.75
    return [(-1, _far(rest + 1, a)), (0, _near(rest, a)), (1, _near(1 - rest, a)), (2, _far(2 - rest, a))]


def _index(place: Value) -> Value:
    """Whole numbers as integers, those far outside of any array cut off. Runtimes take half as long for short ones."""
    return np.clip(place, -(2.0**30), 2.0**30).astype(np.int32)


def _interpolated(read: Reading, places: Sequence[Value], sizes: Sequence[int], fix: Fixing, weigh: Weighing) -> Value:
    axes = []
    for place, n in zip(places, sizes, strict=True):
        whole = np.floor(place)
        index = _index(whole)
        axes.append([(*fix(index + k if k else index, n), weight) for k, weight in weigh(place - whole)])
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
    places, at_places = [], np.moveaxis(widened(grid), -1, 0)[::-1]  # so that what one axis takes lies together
    for g, n in zip(at_places, sizes, strict=True):
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
            return _inside(index, n)
        if padding == "border":
            return np.clip(index, 0, n - 1), None
        low, high = (0, n - 1) if corners else (-0.5, n - 0.5)
        return np.clip(_reflected(index.astype(np.float64), low, high).astype(np.int64), 0, n - 1), None

    rows = np.reshape(np.moveaxis(x, 1, -1), (x.shape[0] * math.prod(sizes), x.shape[1]))
    few = np.int32 if rows.shape[0] < 2**31 else np.int64
    batch = np.arange(x.shape[0], dtype=few).reshape(-1, *[1] * (grid.ndim - 2))

    def read(index: Sequence[Value]) -> Value:
        """The channels at places, by the numbers of their rows: one index a place, and an operator that copies rows."""
        flat = batch
        for place, n in zip(index, sizes, strict=True):
            flat = flat * flat.dtype.type(n) + place
        numbers = GatherDimensionNumbers(offset_dims=(flat.ndim,), collapsed_slice_dims=(0,), start_index_map=(0,))
        attrs = {"dimension_numbers": numbers, "slice_sizes": (1, x.shape[1])}
        return gathered(node, rows, np.expand_dims(flat, -1), (*flat.shape, x.shape[1]), attrs, within=True)

    if mode == "nearest":
        taps = [fix(_index(place), n) for place, n in zip(places, sizes, strict=True)]
        values = read([index for index, _ in taps])
        for _, counts in taps if padding == "zeros" else ():
            values = np.where(counts[..., np.newaxis], values, np.zeros((), x.dtype))
        return np.moveaxis(values, -1, 1)
    values = _interpolated(read, places, sizes, fix, _linear if mode == "linear" else _sampled_cubic)
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
    "Resize": _resize,
    "Upsample": _upsample,
    "AffineGrid": _affine_grid,
    "GridSample": _grid_sample,
}
