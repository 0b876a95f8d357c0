"""Arrays resized: each axis that changes is resampled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.adapters.onnx.reading.operators.sampling.resampling import MODES, ROUNDINGS, Axis, resampled


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


def _require_one(name: str, way: str, ways: Sequence[str]) -> None:
    if way not in ways:
        raise RefusedError(f"has {name} '{way}'")


def _require_count(what: str, numbers: Sequence[float], axes: Sequence[int]) -> None:
    if len(numbers) != len(axes):
        raise RefusedError(f"has {len(numbers)} {what} for {len(axes)} axes")


def _scaled(n: int, scale: float) -> int:
    """n elements scaled, in single precision as scales are: 10 times 0.7 is 7."""
    return math.floor(np.float32(n) * np.float32(scale))


def _require_whole(mode: str, x: Value, axes: Sequence[int], factors: Sequence[float]) -> None:
    """The specification's code and onnxruntime differ in which length, rounded or not, the last elements belong to."""
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


OPERATORS: Mapping[str, Operator] = {
    "Resize": _resize,
    "Upsample": _upsample,
}
