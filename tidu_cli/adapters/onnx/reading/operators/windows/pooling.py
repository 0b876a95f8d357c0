"""Maxima, means and norms of windows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, counted
from tidu_cli.adapters.onnx.reading.operators.windows.windows import Windows, spatial, windows
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers
from tidu_cli.limits import require


def _max_pool(node: Node, x: Value) -> list[Value]:
    found = windows(node, x, node["kernel_shape"])
    values = computed(node, "reduce_window_max", x, **found.attrs())
    if not node.wants(1):
        return [values]
    numbers = _numbered(node, x.shape, bool(node["storage_order"]))
    return [values, computed(node, "select_and_gather_add", numbers, x, **found.attrs(), select_prim="ge")]


def _numbered(node: Node, shape: Sequence[int], column_major: bool) -> Value:
    """The numbers of elements of an array; with `column_major` those of an image go through its first axis first."""
    number = counted(node, math.prod(shape))
    if not column_major:
        return number.reshape(shape)
    spatial = tuple(range(2, len(shape)))
    return np.transpose(number.reshape(*shape[:2], *shape[:1:-1]), (0, 1, *spatial[::-1]))


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
    return computed(node, "reduce_window_sum", x, **found.attrs()) / counts.astype(x.dtype)


def _power(x: Value, p: float) -> Value:
    size = np.abs(x)
    return size if p == 1 else size * size if p == 2 else size ** x.dtype.type(p)


def _exponent(node: Node) -> float:
    if node["p"] < 1:
        raise RefusedError(f"has p {node['p']}")
    return float(node["p"])


def _lp_pool(node: Node, x: Value) -> Value:
    p = _exponent(node)
    found = computed(node, "reduce_window_sum", _power(x, p), **windows(node, x, node["kernel_shape"]).attrs())
    return _root(found, p)


def _root(x: Value, p: float) -> Value:
    return x if p == 1 else np.sqrt(x) if p == 2 else x ** x.dtype.type(1 / p)


def _spatial(x: Value) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


def _global_average_pool(node: Node, x: Value) -> Value:
    return np.mean(x, _spatial(x), keepdims=True)


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
    if min(due, default=0) < 0:
        raise RefusedError(f"makes an array of shape {due}")
    require("memory", math.prod(due) * 8, f"an array of shape {due}")
    numbers = ScatterDimensionNumbers(update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    blank = np.zeros(math.prod(due), x.dtype)
    found = computed(node, "scatter", blank, places.reshape(-1, 1), x.reshape(-1), dimension_numbers=numbers, mode="fill")
    return found.reshape(due)


OPERATORS: Mapping[str, Operator] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": lambda node, x: np.max(x, _spatial(x), keepdims=True),
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
