"""An axis of an array resampled: each element of the result from the one nearest to its place, or as a sum of some around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Value
from tidu_cli.frozen import Frozen
from tidu_cli.limits import require

SMALL_MATRIX = 4096
"""Sums are a product with a matrix if it has at most so many elements."""

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


def _cubic(t: Any, a: float) -> Any:
    """Keys' kernel (1981)."""
    t = np.abs(t)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


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
        before, after = x.shape[:k], x.shape[k + 1 :]
        wide = np.broadcast_to(x.reshape(*before, n, 1, *after), (*before, n, size // n, *after))
        return wide.reshape(*before, size, *after)
    steps = np.unique(np.diff(at))
    if steps.size == 1 and steps[0] > 0:
        return x[(*[slice(None)] * k, slice(int(at[0]), int(at[-1]) + 1, int(steps[0])))]
    return np.take(x, at, k)


def resampled(node: Node, x: Value, k: int, axis: Axis, mode: str, rounding: str) -> Value:
    """Axis k of x resampled, for a way from elements to places, and of rounding these. Raises LimitError."""
    require("memory", axis.size * 8, f"an axis of {axis.size} elements")
    places = axis.places(mode)
    if node["mode"] == "nearest":
        chosen = rounding if rounding != "ceil or floor" else "ceil" if axis.scale < 1 else "floor"
        x = _selected(x, k, np.clip(ROUNDINGS[chosen](places), 0, axis.n - 1).astype(np.int64))
    else:
        x = _summed(x, k, axis.n, *_taps(node, axis, places))
    if mode == "tf_crop_and_resize":
        outside = np.reshape((places < 0) | (places > axis.n - 1), [-1 if d == k else 1 for d in range(x.ndim)])
        x = np.where(outside, x.dtype.type(node["extrapolation_value"]), x)
    return x
