"""Maxima, means and norms of windows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.formats.onnx.reading.operators.indexing import grid
from tidu_cli.formats.onnx.reading.operators.reductions import mean, total
from tidu_cli.formats.onnx.reading.operators.windows import Windows, windows
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers
from tidu_cli.limits import require


def _max_pool(node: Node, x: Value) -> list[Value]:
    found = windows(node, x, node["kernel_shape"])
    if not node.wants(1):
        return [node.emit("reduce_window_max", x, **found.attrs())]
    return _with_places(x, found, node["storage_order"])


def _with_places(x: Value, found: Windows, column_major: int) -> list[Value]:
    """The maxima of windows, and where they are: numbers of elements of x, the first of equal ones."""
    sizes = x.shape[2:]
    rank = len(sizes)
    require("memory", math.prod(found.counts) * math.prod(found.kernel) * 8, "the places of windows")
    number = np.zeros((1,) * (2 * rank), np.int64)
    fits = np.ones((1,) * (2 * rank), bool)
    for k in range(rank):
        at = found.places(k)
        layout = [1] * (2 * rank)
        layout[k], layout[rank + k] = at.shape
        number = number * sizes[k] + np.clip(at, 0, sizes[k] - 1).reshape(layout)
        fits = fits & ((at >= 0) & (at < sizes[k])).reshape(layout)
    number = np.broadcast_to(number, (*found.counts, *found.kernel)).reshape(*found.counts, -1)
    fits = np.broadcast_to(fits, (*found.counts, *found.kernel)).reshape(*found.counts, -1)
    flat = x.reshape(*x.shape[:2], -1)
    kind = np.dtype(x.dtype).kind
    least = np.iinfo(x.dtype).min if kind in "iu" else -np.inf
    values = np.where(fits, flat[:, :, number], x.dtype.type(least))
    best = np.argmax(values, -1)
    chosen = number[(*grid(found.counts), best)] if number.ndim else best
    local = chosen
    if column_major:
        order = np.arange(math.prod(sizes)).reshape(sizes).transpose().ravel()
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(order.size)
        local = rank_of[chosen]
    image = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * rank) * math.prod(sizes)
    return [np.max(values, -1), local + image]


def _counts(found: Windows, sizes: tuple[int, ...], padded: bool) -> Value:
    """How many elements windows have, those of the padding included or not."""
    counts = np.ones((1, 1), np.int64)
    for k, n in enumerate(sizes):
        at = found.places(k)
        low, high = (-found.low[k], n + found.given_high[k]) if padded else (0, n)
        along = ((at >= low) & (at < high)).sum(1)
        counts = counts[..., np.newaxis] * along
    return counts


def _average_pool(node: Node, x: Value) -> Value:
    found = windows(node, x, node["kernel_shape"])
    counts = _counts(found, x.shape[2:], bool(node["count_include_pad"]))
    if counts.size and counts.min() == counts.max():
        counts = counts.ravel()[0]
    return node.emit("reduce_window_sum", x, **found.attrs()) / counts.astype(x.dtype)


def _power(x: Value, p: float) -> Value:
    size = np.abs(x)
    return size if p == 1 else size * size if p == 2 else size ** x.dtype.type(p)


def _lp_pool(node: Node, x: Value) -> Value:
    p = node["p"]
    found = node.emit("reduce_window_sum", _power(x, p), **windows(node, x, node["kernel_shape"]).attrs())
    return _root(found, p)


def _root(x: Value, p: float) -> Value:
    return x if p == 1 else np.sqrt(x) if p == 2 else x ** x.dtype.type(1 / p)


def _spatial(x: Value) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _max_unpool(node: Node, x: Value, places: Value, shape: Value = None) -> Value:
    """Zeros, with x at the places of MaxPool."""
    rank = x.ndim - 2
    strides, pads = list(node["strides"] or [1] * rank), list(node["pads"] or [0] * 2 * rank)
    inferred = [
        (n - 1) * s - (a + b) + k
        for n, s, k, a, b in zip(x.shape[2:], strides, node["kernel_shape"], pads[:rank], pads[rank:], strict=True)
    ]
    sizes = [*x.shape[:2], *inferred]
    due = sizes if shape is None else node.ints(shape, "output_shape")
    if len(due) != x.ndim or min(due, default=0) < 0:
        raise RefusedError(f"makes an array of shape {due}")
    require("memory", math.prod(due) * 8, f"an array of shape {due}")
    numbers = ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    flat = places.reshape(-1)
    if due != sizes:  # places are of the array without the additional rows
        at, rest = 0, flat
        for n, stride in zip(reversed(sizes), np.cumprod([1, *reversed(due[1:])]), strict=True):
            at, rest = at + rest % n * int(stride), rest // n
        flat = at
    blank = np.zeros(math.prod(due), x.dtype)
    found = node.emit("scatter", blank, flat.reshape(-1, 1), x.reshape(-1), dimension_numbers=numbers, mode="fill")
    return found.reshape(due)


OPERATORS: Mapping[str, Operator] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": lambda node, x: mean(x, _spatial(x)),
    "GlobalLpPool": lambda node, x: _root(total(_power(x, node["p"]), _spatial(x)), node["p"]),
    "GlobalMaxPool": lambda node, x: np.max(x, _spatial(x), keepdims=True),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
