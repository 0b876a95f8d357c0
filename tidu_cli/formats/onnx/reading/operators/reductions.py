"""Sums, products, extrema and what is cumulative."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, Value
from tidu_cli.formats.onnx.reading.operators.shapes import axes_of, normal


def _reduction(reduce: Callable[[Node, Value, tuple[int, ...]], Value]) -> Operator:
    """A reduction along axes, which stay with one element: all axes where none are given, or none."""

    def run(node: Node, x: Value, axes: Value = None) -> Value:
        chosen = axes_of(node, axes, x.ndim)
        if not chosen and node["noop_with_empty_axes"]:
            chosen = []
        elif not chosen:
            chosen = list(range(x.ndim))
        found = reduce(node, x, tuple(chosen))
        return found if node["keepdims"] else np.squeeze(found, tuple(chosen))

    return run


def total(x: Value, axes: tuple[int, ...]) -> Value:
    """The sum, in the dtype of x."""
    return np.sum(x, axes, dtype=x.dtype, keepdims=True)


def _mean(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    n = math.prod(x.shape[k] for k in axes)
    if np.dtype(x.dtype).kind in "iu":
        return node.emit("div", total(x, axes), np.full([1 if k in axes else n for k, n in enumerate(x.shape)], n, x.dtype))
    return total(x, axes) / x.dtype.type(n)


def _extreme(function: Callable[..., Any], op: str) -> Callable[[Node, Value, tuple[int, ...]], Value]:
    def reduce(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
        if x.size or not axes:
            return function(x, axes, keepdims=True) if axes else x
        dtype = np.dtype(x.dtype)
        if dtype.kind == "b":
            least, greatest = False, True
        elif dtype.kind in "iu":
            least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
        else:
            least, greatest = -np.inf, np.inf
        return np.full([1 if k in axes else n for k, n in enumerate(x.shape)], least if op == "max" else greatest, dtype)

    return reduce


def log_sum_exp(node: Node, x: Value, axes: tuple[int, ...]) -> Value:
    """log(sum(exp(x))), which does not overflow."""
    if not x.size:
        return np.log(total(x, axes))
    greatest = np.max(x, axes, keepdims=True) if axes else x
    shift = node.emit("stop_gradient", np.where(np.isfinite(greatest), greatest, x.dtype.type(0)))
    return np.log(total(np.exp(x - shift), axes)) + shift


def _cumulative(op: str, first: int) -> Operator:
    def run(node: Node, x: Value, axis: Value = None) -> Value:
        along = normal([int(node.known(axis, "axis").item()) if axis is not None else node["axis"] or 0], x.ndim)[0]
        reverse = bool(node["reverse"])
        if node["exclusive"]:
            n = x.shape[along]
            kept = slice(1, None) if reverse else slice(0, max(n - 1, 0))
            x = x[(*[slice(None)] * along, kept)]
            edge = np.full([1 if k == along else n for k, n in enumerate(x.shape)], first, x.dtype)
            x = np.concatenate([x, edge] if reverse else [edge, x], along)
        return node.emit(op, x, axis=along, reverse=reverse)

    return run


def softmax(node: Node, x: Value, axis: int) -> Value:
    """exp(x) over its sum along an axis, which does not overflow."""
    shift = node.emit("stop_gradient", np.max(x, axis, keepdims=True))
    powers = np.exp(x - shift)
    return powers / total(powers, (axis,))


def log_softmax(node: Node, x: Value, axis: int) -> Value:
    """The logarithm of softmax."""
    shifted = x - node.emit("stop_gradient", np.max(x, axis, keepdims=True))
    return shifted - np.log(total(np.exp(shifted), (axis,)))


def _along(function: Callable[[Node, Value, int], Value]) -> Operator:
    """A function along an axis; before opset 13 along all axes from that one on, as if they were one."""

    def run(node: Node, x: Value) -> Value:
        if node.version >= 13:
            return function(node, x, normal([node["axis"]], x.ndim)[0]) if x.size else x
        axis = normal([node["axis"]], x.ndim)[0]
        if axis == x.ndim - 1:
            return function(node, x, axis)
        flat = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
        return function(node, flat, 1).reshape(x.shape)

    return run


OPERATORS: Mapping[str, Operator] = {
    "CumProd": _cumulative("cumprod", 1),
    "CumSum": _cumulative("cumsum", 0),
    "LogSoftmax": _along(log_softmax),
    "ReduceL1": _reduction(lambda node, x, axes: total(np.abs(x), axes)),
    "ReduceL2": _reduction(lambda node, x, axes: np.sqrt(total(x * x, axes)).astype(x.dtype)),
    "ReduceLogSum": _reduction(lambda node, x, axes: np.log(total(x, axes))),
    "ReduceLogSumExp": _reduction(log_sum_exp),
    "ReduceMax": _reduction(_extreme(np.max, "max")),
    "ReduceMean": _reduction(_mean),
    "ReduceMin": _reduction(_extreme(np.min, "min")),
    "ReduceProd": _reduction(lambda node, x, axes: np.prod(x, axes, dtype=x.dtype, keepdims=True)),
    "ReduceSum": _reduction(lambda node, x, axes: total(x, axes)),
    "ReduceSumSquare": _reduction(lambda node, x, axes: total(x * x, axes)),
    "Softmax": _along(softmax),
}
