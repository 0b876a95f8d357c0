"""Arrays resized: each axis by a matrix, or by indices for the nearest element."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.limits import require


@dataclass(frozen=True)
class Axis:
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
        if mode not in ("half_pixel", "half_pixel_symmetric"):
            raise RefusedError(f"has coordinate_transformation_mode '{mode}'")
        return offset + (k + 0.5) / self.scale - 0.5


_ROUNDINGS = {
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


def _matrix(node: Node, axis: Axis, places: Any) -> Any:
    """The weights of the axis' elements in each element of the result."""
    kind, shrunk = node["mode"], min(axis.scale, 1.0) if node["antialias"] else 1.0
    radius = 1 if kind == "linear" else 2
    before = np.floor(places)
    first = math.floor(-radius / shrunk) + 1
    offsets = np.arange(first, 2 - first if node["antialias"] else radius + 1)
    distances = (offsets - (places - before)[:, np.newaxis]) * shrunk
    a = node["cubic_coeff_a"] if node["cubic_coeff_a"] is not None else -0.75
    weights = np.maximum(1 - np.abs(distances), 0) if kind == "linear" else _cubic(distances, a)
    at = before[:, np.newaxis].astype(np.int64) + offsets
    if node["exclude_outside"]:
        weights = np.where((at >= 0) & (at < axis.n), weights, 0.0)
    if node["antialias"] or node["exclude_outside"]:
        weights = weights / weights.sum(1, keepdims=True)
    require("memory", axis.size * axis.n * 8, f"the weights of an axis of {axis.n} elements in one of {axis.size}")
    matrix = np.zeros((axis.size, axis.n))
    np.add.at(matrix, (np.arange(axis.size)[:, np.newaxis], np.clip(at, 0, axis.n - 1)), weights)
    return matrix


def _resized(node: Node, x: Value, axes: Mapping[int, Axis], mode: str, rounding: str) -> Value:
    dtype = x.dtype
    for k, axis in axes.items():
        if mode != "tf_crop_and_resize" and axis.size == axis.n and axis.scale == 1:
            continue
        places = axis.places(mode)
        if node["mode"] == "nearest":
            chosen = rounding if rounding != "ceil or floor" else "ceil" if axis.scale < 1 else "floor"
            x = np.take(x, np.clip(_ROUNDINGS[chosen](places), 0, axis.n - 1).astype(np.int64), k)
        else:
            wide = x if np.dtype(x.dtype).kind == "f" else x.astype(np.float32)
            x = np.moveaxis(np.tensordot(wide, _matrix(node, axis, places).astype(wide.dtype), ((k,), (1,))), -1, k)
        if mode == "tf_crop_and_resize":
            outside = np.reshape((places < 0) | (places > axis.n - 1), [-1 if d == k else 1 for d in range(x.ndim)])
            x = np.where(outside, x.dtype.type(node["extrapolation_value"]), x)
    return x if x.dtype == dtype else x.astype(dtype)


def _resize(node: Node, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None) -> Value:
    if node.version < 11:
        roi, scales, sizes = None, roi, None
    chosen = normalize_axis_tuple(node["axes"], x.ndim) if node.has("axes") else range(x.ndim)
    mode = node["coordinate_transformation_mode"] or "asymmetric"
    rounding = node["nearest_mode"] or ("ceil or floor" if node.version < 11 else "floor")
    factors = [] if scales is None else [float(s) for s in np.ravel(node.known(scales, "scales"))]
    if factors:
        _require_count("scales", factors, chosen)
        due = [_scaled(x.shape[k], f) for k, f in zip(chosen, factors, strict=True)]
        _require_whole(mode, x, chosen, factors)
    else:
        if sizes is None:
            raise RefusedError("has neither scales nor sizes")
        due = node.ints(sizes, "sizes")
        _require_count("sizes", due, chosen)
        if not all(x.shape[k] for k in chosen):
            raise RefusedError(f"resizes an array of shape {list(x.shape)} to sizes {due}")
        factors = [d / x.shape[k] for k, d in zip(chosen, due, strict=True)]
        policy = node["keep_aspect_ratio_policy"] or "stretch"
        if policy != "stretch":
            one = min(factors) if policy == "not_larger" else max(factors)
            factors = [one] * len(factors)
            due = [math.floor(x.shape[k] * one + 0.5) for k in chosen]
    if min(due, default=0) < 0 or min(factors, default=1.0) <= 0:
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


def _require_count(what: str, found: Sequence[float], axes: Sequence[int]) -> None:
    if len(found) != len(axes):
        raise RefusedError(f"has {len(found)} {what} for {len(axes)} axes")


def _scaled(n: int, scale: float) -> int:
    """n elements scaled, in single precision as scales are: 10 times 0.7 is 7."""
    return math.floor(np.float32(n) * np.float32(scale))


def _require_whole(mode: str, x: Value, axes: Sequence[int], factors: Sequence[float]) -> None:
    """The specification's code and onnxruntime differ in which length, rounded or not, the last elements belong to."""
    lengths = [float(np.float32(x.shape[k]) * np.float32(f)) for k, f in zip(axes, factors, strict=True)]
    if mode in ("align_corners", "tf_crop_and_resize") and any(n != math.floor(n) for n in lengths):
        raise RefusedError(f"has scales that make lengths {lengths}, where '{mode}' has several readings; give it sizes")


def _upsample(node: Node, x: Value, scales: Value = None) -> Value:
    factors = node["scales"] if scales is None else [float(s) for s in np.ravel(node.known(scales, "scales"))]
    _require_count("scales", factors, x.shape)
    if min(factors, default=1.0) <= 0:
        raise RefusedError(f"has scales {factors}")
    axes = {k: Axis(n, _scaled(n, f), f) for k, (n, f) in enumerate(zip(x.shape, factors, strict=True))}
    return _resized(node, x, axes, "asymmetric", "floor")


def _affine_grid(node: Node, theta: Value, size: Value) -> Value:
    """Where GridSample reads for affine maps of an image."""
    shape = node.ints(size, "size")[2:]
    require("memory", math.prod(shape) * 8 * (len(shape) + 1), f"a grid of shape {shape}")
    axes = []
    for n in shape:
        places = np.linspace(-1, 1, n) if node["align_corners"] else (np.arange(n) * 2 + 1) / n - 1
        axes.append(np.zeros(1) if n == 1 and node["align_corners"] else places)
    mesh = np.meshgrid(*axes, indexing="ij")
    base = np.stack([*mesh[::-1], np.ones(shape)], -1).astype(theta.dtype)
    return np.einsum("...k,njk->n...j", base, theta)


OPERATORS: Mapping[str, Operator] = {
    "AffineGrid": _affine_grid,
    "Resize": _resize,
    "Upsample": _upsample,
}
