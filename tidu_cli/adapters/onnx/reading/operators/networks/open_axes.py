"""Axes with open sizes resampled: by repetition where that is what it is, else at places that are computed when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, RefusedError, Value, as_sizes, counted
from tidu_cli.errors import UndecidedSizeError
from tidu_cli.graph.sizes.open import OpenSize

MOST_PARTS = 1024
"""Scales that are fractions with a greater denominator make no sizes of open ones."""

_TRIED = 7
"""A number of elements at which it is seen whether resampling repeats each of them."""


def scale_between(n: Any, size: Any) -> float | None:
    """The scale from n elements to this many, None if it depends on what open sizes are."""
    if not isinstance(n, OpenSize) and not isinstance(size, OpenSize):
        return size / n  # type: ignore[no-any-return]
    try:
        whole, rest = divmod(size, n)
        part, left = divmod(n, size) if size > 0 else (0, 1)
    except UndecidedSizeError:
        return None
    if rest == 0 and isinstance(whole, int):
        return float(whole)
    return 1 / part if left == 0 and isinstance(part, int) else None


def scaled_open(n: Any, scale: float) -> Any:
    """An open size, scaled. Raises UndecidedSizeError for a scale that single precision has no short fraction for."""
    exact = Fraction(float(np.float32(scale)))
    if exact.denominator > MOST_PARTS:
        raise UndecidedSizeError(f"scales an axis of {n} elements by {scale:.6g}, which depends on how numbers are rounded")
    return n * exact.numerator // exact.denominator


def repeated(x: Value, k: int, times: int) -> Value:
    """x with each element along axis k repeated this number of times."""
    before, n, after = x.shape[:k], x.shape[k], x.shape[k + 1 :]
    wide = np.broadcast_to(x.reshape(*before, n, 1, *after), (*before, n, times, *after))
    return wide.reshape(*before, n * times, *after)


def open_resampled(node: Node, x: Value, k: int, axis: Any, mode: str, rounding: Callable[[Any], Any]) -> Value:
    """As `resampled`, of an axis of which either size is open."""
    takes_numbers = mode in ("tf_crop_and_resize", "half_pixel_symmetric") or node["mode"] == "cubic"
    if takes_numbers or node["antialias"] or node["exclude_outside"]:
        raise RefusedError(
            f"resizes an axis of {axis.n} elements to {axis.size} by '{node['mode']}' and '{mode}', which takes numbers"
        )
    nearest = node["mode"] == "nearest"
    if nearest and axis.scale is not None and axis.scale.is_integer() and axis.size == axis.n * int(axis.scale):
        like = type(axis)(_TRIED, _TRIED * int(axis.scale), axis.scale)
        at = np.clip(rounding(like.places(mode)), 0, _TRIED - 1)
        if np.array_equal(at, np.repeat(np.arange(_TRIED), int(axis.scale))):
            return repeated(x, k, int(axis.scale))
    places = _places(node, axis, mode)
    last = _number(node, axis.n - 1)
    if nearest:
        return np.take(node.traced(x), _within(rounding(places), last).astype(np.int64), k)
    before = np.floor(places)
    rest = np.reshape((places - before).astype(x.dtype), [-1 if d == k else 1 for d in range(x.ndim)])
    low, high = (np.take(node.traced(x), _within(at, last).astype(np.int64), k) for at in (before, before + 1.0))
    return low * (x.dtype.type(1) - rest) + high * rest


def _number(node: Node, size: Any) -> Value:
    """A size as a double."""
    return node.traced(as_sizes(np.array(size, object), np.float64))


def _within(places: Value, last: Value) -> Value:
    return np.minimum(np.maximum(places, 0.0), last)


def _places(node: Node, axis: Any, mode: str) -> Value:
    """Where the elements of the result lie in the array, as doubles."""
    k, last = node.traced(counted(node, axis.size)).astype(np.float64), _number(node, axis.size - 1)
    if mode == "align_corners":
        return k * (_number(node, axis.n - 1) / np.maximum(last, 1.0))
    scale = axis.scale if axis.scale is not None else _number(node, axis.size) / _number(node, axis.n)
    if mode == "asymmetric":
        return k / scale
    half = (k + 0.5) / scale
    if mode == "pytorch_half_pixel":
        return np.where(last > 0.0, half - 0.5, 0.0)
    return half if mode == "tf_half_pixel_for_nn" else half - 0.5
