"""Sums, products, extrema and norms along axes, cumulative operators, products of matrices, and losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.indexing import normal_axes, normal_axis, resized
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number
from tidu_cli.adapters.onnx.reading.open_sizes import not_same
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted
from tidu_cli.adapters.onnx.reading.operators.indexing import gathered, wrapped
from tidu_cli.graph.sizes.open import OpenSize, surely
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers, taking

Axes = tuple[int, ...]
Reduction = Callable[[Node, Value, Axes], Value]
"""From a node, an array and axes from 0 up to what has 1 element along each of these."""


def reduced(node: Node, op: str, x: Value, axes: Axes) -> Value:
    """A reducing primitive along axes from 0 up, of which 1 element stays."""
    values = computed(node, op, x, axes=axes) if axes else x
    return np.reshape(values, resized(x.shape, axes))


def total(x: Value, axes: Axes) -> Value:
    """The sum along axes, in the dtype of x, of which 1 element stays."""
    return np.sum(x, axes, dtype=x.dtype, keepdims=True) if axes else x


def mean(x: Value, axes: Axes) -> Value:
    """The mean of floats along axes, of which 1 element stays; NaN of none."""
    sizes = [x.shape[k] for k in axes]
    count = math.prod(sizes)
    if surely(lambda: count >= 0):
        return total(x, axes) / number(x, count)
    return total(x, axes) / reduce(np.multiply, [x.constant(1, x.dtype) * n for n in sizes])


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


def _in_floats(reduction: Reduction, node: Node, x: Value, axes: Axes) -> Value:
    """Of integers what f64 gives, rounded towards zero."""
    if np.dtype(x.dtype).kind not in "iu":
        return reduction(node, x, axes)
    return converted(node, reduction(node, converted(node, x, np.dtype(np.float64)), axes), x.dtype)


def _operator(reduction: Reduction, node: Node, x: Value, axes: Value | None = None) -> Value:
    """The operator, whose axes are an attribute, or in newer operator sets an input."""
    given = node["axes"] if axes is None else node.ints(axes, "axes")
    everything = not given and not node["noop_with_empty_axes"]
    on = normal_axes(None if everything else tuple(given or ()), x.ndim)
    values = reduction(node, x, on)
    return values if node["keepdims"] else np.reshape(values, [n for k, n in enumerate(x.shape) if k not in on])


def _cumulative(op: str, neutral: int, node: Node, x: Value, axis: Value) -> Value:
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


def _normalized(function: Reduction, node: Node, x: Value) -> Value:
    """The operator for a function along an axis, or before version 13 along all axes from one on."""
    axis = node["axis"]
    if node.version >= 13:
        return function(node, x, (normal_axis(axis, x.ndim),))
    if not -x.ndim <= axis <= x.ndim:
        raise RefusedError(f"its axis {axis} is none of an array of {x.ndim} axes")
    return function(node, x, tuple(range(axis % x.ndim if axis < 0 else axis, x.ndim)))


REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceL1": lambda node, x, axes: total(np.abs(x), axes),
    "ReduceL2": partial(_in_floats, lambda node, x, axes: np.sqrt(total(x * x, axes))),
    "ReduceLogSum": partial(_in_floats, lambda node, x, axes: np.log(total(x, axes))),
    "ReduceLogSumExp": partial(_in_floats, log_sum_exp),
    "ReduceMax": _extremum("reduce_max", "reduce_or"),
    "ReduceMean": _mean,
    "ReduceMin": _extremum("reduce_min", "reduce_and"),
    "ReduceProd": lambda node, x, axes: reduced(node, "reduce_prod", x, axes),
    "ReduceSum": lambda node, x, axes: total(x, axes),
    "ReduceSumSquare": lambda node, x, axes: total(x * x, axes),
}

_REDUCTIONS: Mapping[str, Operator] = {
    **{name: partial(_operator, reduction) for name, reduction in REDUCTIONS.items()},
    "CumProd": partial(_cumulative, "cumprod", 1),
    "CumSum": partial(_cumulative, "cumsum", 0),
    "LogSoftmax": partial(_normalized, log_softmax),
    "Softmax": partial(_normalized, softmax),
}


# Products of matrices and what is contracted.


_NARROW = ("float16", "bfloat16")


def _require_one_dtype(*operands: Value) -> None:
    """Raises RefusedError for products of arrays of several dtypes."""
    dtypes = dict.fromkeys(str(x.dtype) for x in operands)
    if len(dtypes) > 1:
        raise RefusedError(f"multiplies arrays of {' and '.join(dtypes)}")


def matmul(node: Node, x: Value, y: Value) -> Value:
    """Matrices x times matrices y, with NumPy's broadcasting of the axes before them."""
    _require_one_dtype(x, y)
    return converted(node, np.matmul(x, y), x.dtype)  # NumPy's products of bf16 are f32


def times(x: Value, factor: float) -> Value:
    """x times a number of an attribute. Raises RefusedError for integers and a fraction."""
    if factor == 1:
        return x
    if np.dtype(x.dtype).kind in "iu" and not float(factor).is_integer():
        raise RefusedError(f"multiplies integers by {factor:g}")
    return x * number(x, factor)


def gemm(node: Node, a: Value, b: Value, c: Value | None = None) -> Value:
    """alpha A B + beta C, A and B transposed if need be."""
    if a.ndim != 2 or b.ndim != 2:
        raise RefusedError(f"multiplies matrices, and is given arrays of {a.ndim} and {b.ndim} axes")
    _require_one_dtype(a, b)
    axes = (0 if node["transA"] else 1, 1 if node["transB"] else 0)
    n, m = a.shape[axes[0]], b.shape[axes[1]]
    if n != m:
        told = f"axis {axes[0]} of A has {n} elements, axis {axes[1]} of B {m}"
        raise not_same(n, m, told) if isinstance(n, OpenSize) or isinstance(m, OpenSize) else RefusedError(told)
    alpha, beta = (1.0 if node[name] is None else node[name] for name in ("alpha", "beta"))
    product = times(converted(node, np.tensordot(a, b, axes), a.dtype), alpha)
    if c is None or not beta:
        return product
    if c.ndim > 2 or any(n not in (1, m) for n, m in zip(c.shape[::-1], product.shape[::-1], strict=False)):
        raise RefusedError(f"C of shape {list(c.shape)} does not broadcast to the product's, {list(product.shape)}")
    return product + times(c, beta)


def _einsum(node: Node, *operands: Value) -> Value:
    if not operands or any(x is None for x in operands):
        raise RefusedError("has an input that is left out")
    _require_one_dtype(*operands)
    if operands[0].dtype.name == "bfloat16":  # which np.einsum does not know
        operands = tuple(node.traced(x) for x in operands)
    return np.einsum(node["equation"], *operands)


def _det(node: Node, x: Value) -> Value:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise RefusedError(f"is of square matrices, and is given an array of shape {list(x.shape)}")
    wide = converted(node, x, np.dtype(np.float32)) if x.dtype.name in _NARROW else x
    return converted(node, np.linalg.det(wide), x.dtype)


_CONTRACTION: Mapping[str, Operator] = {
    "Det": _det,
    "Einsum": _einsum,
    "Gemm": gemm,
    "MatMul": matmul,
}


# Losses of classes, whose labels are integers and may be inputs.


def _negative_log_likelihood(node: Node, log_prob: Value, labels: Value, weights: Value | None = None) -> Value:
    """Minus the logarithm of each label's probability. Those of the label to ignore are 0, and count for nothing in the mean."""
    if log_prob.ndim < 2 or labels.shape != (log_prob.shape[0], *log_prob.shape[2:]):
        raise RefusedError(f"labels of shape {list(labels.shape)} do not fit classes, axis 1, of shape {list(log_prob.shape)}")
    if weights is not None and weights.shape != (log_prob.shape[1],):
        raise RefusedError(f"weights of shape {list(weights.shape)} do not fit {log_prob.shape[1]} classes")
    reduction, ignored = node["reduction"], None
    if reduction not in ("none", "sum", "mean"):
        raise RefusedError(f"its reduction is '{reduction}', and not none, sum or mean")
    if node["ignore_index"] is not None:
        ignored = labels == number(labels, node["ignore_index"])
        labels = np.where(ignored, number(labels, 0), labels)
    places = np.expand_dims(labels.astype(np.int64) if isinstance(labels, Array) else wrapped(labels, log_prob.shape[1]), -1)
    losses = -gathered(node, log_prob, places, labels.shape, _of_labels(log_prob))
    counted = None
    if weights is not None:
        counted = gathered(node, weights, places, labels.shape, taking(weights.shape, 1, 0))
        losses = losses * counted
    if ignored is not None:
        zero, one = number(log_prob, 0), number(log_prob, 1)
        losses, counted = np.where(ignored, zero, losses), np.where(ignored, zero, one if counted is None else counted)
    if reduction == "none":
        return losses
    axes = tuple(range(losses.ndim))
    if reduction == "mean" and counted is None:
        return np.reshape(mean(losses, axes), ())
    loss = total(losses, axes)
    return np.reshape(loss / total(counted, axes) if reduction == "mean" else loss, ())


def _of_labels(x: Value) -> Mapping[str, Any]:
    """The attrs of a gather along axis 1, at places that have the other axes, and one more."""
    axes = tuple(range(x.ndim - 1))
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0, *range(2, x.ndim)),
        start_indices_batching_dims=axes,
    )
    return {"dimension_numbers": numbers, "slice_sizes": (1,) * x.ndim}


def _softmax_cross_entropy(node: Node, scores: Value, labels: Value, weights: Value | None = None) -> list[Value]:
    """The loss of the scores' log softmax along axis 1, and that itself."""
    log_prob = log_softmax(node, scores, (1,)) if scores.ndim > 1 else scores
    return [_negative_log_likelihood(node, log_prob, labels, weights), log_prob]


_LOSSES: Mapping[str, Operator] = {
    "NegativeLogLikelihoodLoss": _negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": _softmax_cross_entropy,
}

OPERATORS: Mapping[str, Operator] = {**_REDUCTIONS, **_CONTRACTION, **_LOSSES}
