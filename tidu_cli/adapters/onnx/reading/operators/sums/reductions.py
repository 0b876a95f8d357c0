"""Sums, products, extrema and norms along axes, and what is cumulative."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from tidu_cli.adapters.numpy.numpy.primitives import normal_axes, normal_axis, resized
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number
from tidu_cli.adapters.onnx.reading.operators.elementwise.elementwise import converted

Axes = tuple[int, ...]
Reduction = Callable[[Node, Value, Axes], Value]
"""From a node, an array and axes from 0 up to what has 1 element along each of these."""


def reduced(node: Node, op: str, x: Value, axes: Axes) -> Value:
    """A reducing primitive along axes from 0 up, of which 1 element stays."""
    found = computed(node, op, x, axes=axes) if axes else x
    return np.reshape(found, resized(x.shape, axes))


def total(x: Value, axes: Axes) -> Value:
    """The sum along axes, in the dtype of x, of which 1 element stays."""
    return np.sum(x, axes, dtype=x.dtype, keepdims=True) if axes else x


def mean(x: Value, axes: Axes) -> Value:
    """The mean of floats along axes, of which 1 element stays; NaN of none."""
    return total(x, axes) / number(x, math.prod(x.shape[k] for k in axes))


def _mean(node: Node, x: Value, axes: Axes) -> Value:
    """The mean along axes, of integers rounded towards zero."""
    if np.dtype(x.dtype).kind not in "iu":
        return mean(x, axes)
    added = total(x, axes)
    return computed(node, "div", added, np.broadcast_to(number(x, math.prod(x.shape[k] for k in axes)), added.shape))


def greatest(node: Node, x: Value, axes: Axes) -> Value:
    """The maximum along axes, as something that does not depend on x: what is subtracted from exponents has no derivative."""
    return computed(node, "stop_gradient", reduced(node, "reduce_max", x, axes))


def log_sum_exp(node: Node, x: Value, axes: Axes) -> Value:
    """log Σ eˣ along axes, of which 1 element stays, without overflow."""
    top = greatest(node, x, axes)
    top = np.where(np.isfinite(top), top, number(x, 0))
    return np.log(total(np.exp(x - top), axes)) + top


def softmax(node: Node, x: Value, axes: Axes) -> Value:
    """eˣ / Σ eˣ along axes."""
    powers = np.exp(x - greatest(node, x, axes))
    return powers / total(powers, axes)


def log_softmax(node: Node, x: Value, axes: Axes) -> Value:
    """The logarithm of the softmax, whose errors are as small as itself."""
    shifted = x - greatest(node, x, axes)
    return shifted - np.log(total(np.exp(shifted), axes))


def _extremum(op: str, of_bools: str) -> Reduction:
    return lambda node, x, axes: reduced(node, of_bools if x.dtype == bool else op, x, axes)


def _in_floats(reduction: Reduction) -> Reduction:
    """Of integers what f64 gives, rounded towards zero."""

    def apply(node: Node, x: Value, axes: Axes) -> Value:
        if np.dtype(x.dtype).kind not in "iu":
            return reduction(node, x, axes)
        return converted(node, reduction(node, converted(node, x, np.dtype(np.float64)), axes), x.dtype)

    return apply


def _operator(reduction: Reduction) -> Operator:
    """The operator, whose axes are an attribute, or in newer operator sets an input."""

    def apply(node: Node, x: Value, axes: Value | None = None) -> Value:
        given = node["axes"] if axes is None else node.ints(axes, "axes")
        everything = not given and not node["noop_with_empty_axes"]
        on = normal_axes(None if everything else tuple(given or ()), x.ndim)
        found = reduction(node, x, on)
        return found if node["keepdims"] else np.reshape(found, [n for k, n in enumerate(x.shape) if k not in on])

    return apply


def _cumulative(op: str, neutral: int) -> Operator:
    def apply(node: Node, x: Value, axis: Value) -> Value:
        axes = node.ints(axis, "axis")
        if len(axes) != 1:
            raise RefusedError(f"goes along one axis, and is given {len(axes)}")
        k = normal_axis(axes[0], x.ndim)
        if node["exclusive"]:
            # Shifted by one: what is subtracted from sums, or divided out of products, would leave errors and infinities.
            widths = [(0, 0, 0)] * x.ndim
            widths[k] = (-1, 1, 0) if node["reverse"] else (1, -1, 0)
            x = computed(node, "pad", x, number(x, neutral), padding_config=tuple(widths)) if x.shape[k] else x
        return computed(node, op, x, axis=k, reverse=bool(node["reverse"]))

    return apply


def _normalized(function: Reduction) -> Operator:
    """The operator for a function along an axis, or before version 13 along all axes from one on."""

    def apply(node: Node, x: Value) -> Value:
        axis = node["axis"]
        if node.version >= 13:
            return function(node, x, (normal_axis(axis, x.ndim),))
        if not -x.ndim <= axis <= x.ndim:
            raise RefusedError(f"its axis {axis} is none of an array of {x.ndim} axes")
        return function(node, x, tuple(range(axis % x.ndim if axis < 0 else axis, x.ndim)))

    return apply


REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceL1": lambda node, x, axes: total(np.abs(x), axes),
    "ReduceL2": _in_floats(lambda node, x, axes: np.sqrt(total(x * x, axes))),
    "ReduceLogSum": _in_floats(lambda node, x, axes: np.log(total(x, axes))),
    "ReduceLogSumExp": _in_floats(log_sum_exp),
    "ReduceMax": _extremum("reduce_max", "reduce_or"),
    "ReduceMean": _mean,
    "ReduceMin": _extremum("reduce_min", "reduce_and"),
    "ReduceProd": lambda node, x, axes: reduced(node, "reduce_prod", x, axes),
    "ReduceSum": lambda node, x, axes: total(x, axes),
    "ReduceSumSquare": lambda node, x, axes: total(x * x, axes),
}

OPERATORS: Mapping[str, Operator] = {
    **{name: _operator(reduction) for name, reduction in REDUCTIONS.items()},
    "CumProd": _cumulative("cumprod", 1),
    "CumSum": _cumulative("cumsum", 0),
    "LogSoftmax": _normalized(log_softmax),
    "Softmax": _normalized(softmax),
}
