"""Arrays joined, cut, padded and repeated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.formats.onnx.reading.operators.shapes import normal
from tidu_cli.limits import require


def _concat(node: Node, *operands: Value) -> Value:
    axis = normal([node["axis"] if node["axis"] is not None else 1], operands[0].ndim)[0]
    return np.concatenate(operands, axis) if len(operands) > 1 else operands[0]


def _split(node: Node, x: Value, split: Value = None) -> list[Value]:
    axis = normal([node["axis"]], x.ndim)[0]
    sizes = node["split"] if split is None else node.ints(split, "split")
    n = x.shape[axis]
    if not sizes:
        count = node["num_outputs"] or node.n_outputs
        most = -(-n // count)
        sizes = [min(most, max(n - k * most, 0)) for k in range(count)]
    if sum(sizes) != n or min(sizes, default=0) < 0:
        raise RefusedError(f"into parts of {sizes} along an axis of {n} elements")
    ends = np.cumsum(sizes).tolist()
    return [x[_along(axis, slice(end - size, end))] for end, size in zip(ends, sizes, strict=True)]


def _along(axis: int, chosen: Any) -> tuple[Any, ...]:
    return (*[slice(None)] * axis, chosen)


def _slice(node: Node, x: Value, starts: Value = None, ends: Value = None, axes: Value = None, steps: Value = None) -> Value:
    if starts is None:
        first, last, along, by = node["starts"], node["ends"], node["axes"], None
    else:
        first, last = node.ints(starts, "starts"), node.ints(ends, "ends")
        along, by = (None if v is None else node.ints(v, what) for v, what in ((axes, "axes"), (steps, "steps")))
    along = list(range(len(first))) if along is None else along
    by = [1] * len(first) if by is None else by
    chosen = [slice(None)] * x.ndim
    for start, end, axis, step in zip(first, last, normal(along, x.ndim), by, strict=True):
        n = x.shape[axis]
        low, high = (0, n) if step > 0 else (-1, n - 1)
        begin, stop = (min(max(k + n if k < 0 else k, low), high) for k in (start, end))
        if step < 0 and stop < 0:
            stop = None
        chosen[axis] = slice(begin, stop, step)
    return x[tuple(chosen)]


def _pad(node: Node, x: Value, pads: Value = None, value: Value = None, axes: Value = None) -> Value:
    widths = node["pads"] if pads is None else node.ints(pads, "pads")
    along = range(x.ndim) if axes is None else normal(node.ints(axes, "axes"), x.ndim)
    if len(widths) != 2 * len(along):
        raise RefusedError(f"has {len(widths)} pads, where {2 * len(along)} are due, two for each axis")
    before, after = [0] * x.ndim, [0] * x.ndim
    for k, axis in enumerate(along):
        before[axis], after[axis] = widths[k], widths[k + len(along)]
    if pads is None:
        value = x.dtype.type(node["value"]) if node["value"] is not None else None
    return padded(node, x, before, after, node["mode"], value)


def padded(node: Node, x: Value, before: list[int], after: list[int], mode: str, value: Value = None) -> Value:
    """x with so many elements more before and after it along each axis, or fewer where the number is negative."""
    low, high = [max(-n, 0) for n in before], [max(-n, 0) for n in after]
    before, after = [max(n, 0) for n in before], [max(n, 0) for n in after]
    if any(low) or any(high):
        x = x[tuple(slice(a, n - b) for a, b, n in zip(low, high, x.shape, strict=True))]
    if not any(before) and not any(after):
        return x
    shape = [a + n + b for a, n, b in zip(before, x.shape, after, strict=True)]
    require("memory", math.prod(shape) * np.dtype(x.dtype).itemsize, f"padding to the shape {shape}")
    if mode == "constant":
        fill = np.asarray(x.dtype.type(0)) if value is None else value
        config = tuple((a, b, 0) for a, b in zip(before, after, strict=True))
        return node.emit("pad", x, np.reshape(fill, ()), padding_config=config)
    places = [_places(n, a, b, mode) for n, a, b in zip(x.shape, before, after, strict=True)]
    for axis, chosen in enumerate(places):
        if chosen.size != x.shape[axis]:
            x = np.take(x, chosen, axis)
    return x


def _places(n: int, before: int, after: int, mode: str) -> Any:
    k = np.arange(-before, n + after)
    if mode == "edge":
        return np.clip(k, 0, n - 1)
    if mode == "wrap":
        return k % n
    if mode == "reflect":
        period = max(2 * (n - 1), 1)
        k = np.abs(k) % period
        return np.minimum(k, period - k) if n > 1 else np.zeros_like(k)
    raise RefusedError(f"pads in mode '{mode}', which is none of constant, reflect, edge and wrap")


def _tile(node: Node, x: Value, repeats: Value) -> Value:
    counts = node.ints(repeats, "repeats")
    shape = [n * c for n, c in zip(x.shape, counts, strict=True)]
    if min(counts, default=0) < 0:
        raise RefusedError(f"repeats {counts} times")
    return np.tile(node.sized(x, shape), counts)


def _center_crop_pad(node: Node, x: Value, shape: Value) -> Value:
    sizes = node.ints(shape, "shape")
    axes = normal(node["axes"], x.ndim) if node.has("axes") else list(range(x.ndim))
    before, after = [0] * x.ndim, [0] * x.ndim
    for axis, size in zip(axes, sizes, strict=True):
        more = size - x.shape[axis]
        before[axis] = more // 2 if more > 0 else -(-more // 2)
        after[axis] = more - before[axis]
    return padded(node, x, before, after, "constant")


def _compress(node: Node, x: Value, condition: Value) -> Value:
    chosen = np.flatnonzero(node.known(condition, "condition"))
    if not node.has("axis"):
        return np.take(np.reshape(x, -1), chosen)
    return np.take(x, chosen, normal([node["axis"]], x.ndim)[0])


OPERATORS: Mapping[str, Operator] = {
    "CenterCropPad": _center_crop_pad,
    "Compress": _compress,
    "Concat": _concat,
    "Pad": _pad,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
}
