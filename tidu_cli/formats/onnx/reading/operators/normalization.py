"""Normalizations: of a batch in inference form, of instances, groups and layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.formats.onnx.reading.operators.reductions import total
from tidu_cli.formats.onnx.reading.operators.shapes import normal


def _channels(x: Value, rank: int) -> Value:
    """A vector along axis 1 of an array of so many axes."""
    return np.reshape(x, (1, -1, *[1] * (rank - 2))) if rank > 1 else x


def mean(x: Value, axes: Sequence[int]) -> Value:
    """The mean along axes, which stay with one element."""
    return total(x, tuple(axes)) / x.dtype.type(math.prod(x.shape[k] for k in axes))


def standardized(x: Value, axes: Sequence[int], epsilon: float) -> tuple[Value, Value, Value]:
    """x less its mean, over its standard deviation; the mean; and one over that deviation."""
    middle = mean(x, axes)
    centred = x - middle
    inverse = 1 / np.sqrt(mean(centred * centred, axes) + x.dtype.type(epsilon))
    return centred * inverse, middle, inverse


def _batch_normalization(node: Node, x: Value, scale: Value, bias: Value, middle: Value, variance: Value) -> list[Value]:
    if node.version < 14 and node["spatial"] not in (None, 1):
        raise RefusedError("is not spatial, which newer operator sets have not got")
    if not node["training_mode"]:
        found = _normalized(x, scale, bias, middle, variance, node["epsilon"])
        return [found, *[None] * (node.n_outputs - 1)]
    axes = [k for k in range(x.ndim) if k != 1]
    of_batch = mean(x, axes)
    spread = mean((x - of_batch) ** 2, axes).reshape(-1)
    of_batch, momentum = of_batch.reshape(-1), x.dtype.type(node["momentum"])
    running = [
        old * old.dtype.type(momentum) + new.astype(old.dtype) * old.dtype.type(1 - momentum)
        for old, new in ((middle, of_batch), (variance, spread))
    ]
    return [_normalized(x, scale, bias, of_batch, spread, node["epsilon"]), *running]


def _normalized(x: Value, scale: Value, bias: Value, middle: Value, variance: Value, epsilon: float) -> Value:
    factor = scale / np.sqrt(variance.astype(scale.dtype) + scale.dtype.type(epsilon))
    wide = x if x.dtype == factor.dtype else x.astype(factor.dtype)
    found = (wide - _channels(middle.astype(factor.dtype), x.ndim)) * _channels(factor, x.ndim) + _channels(bias, x.ndim)
    return found.astype(x.dtype)


def _instance_normalization(node: Node, x: Value, scale: Value, bias: Value) -> Value:
    found = standardized(x, range(2, x.ndim), node["epsilon"])[0]
    return found * _channels(scale, x.ndim) + _channels(bias, x.ndim)


def _stashed(node: Node, x: Value) -> Value:
    """x as the dtype in which the specification has statistics computed: f32, or wider as it is."""
    return x.astype(node.dtype(node["stash_type"] or 1)) if np.dtype(x.dtype).itemsize < 4 else x


def _group_normalization(node: Node, x: Value, scale: Value, bias: Value) -> Value:
    n, c, *rest = x.shape
    groups = node["num_groups"]
    grouped = _stashed(node, x).reshape(n, groups, c // groups, *rest)
    found = standardized(grouped, range(2, grouped.ndim), node["epsilon"])[0]
    if node.version < 21:  # of groups, not of channels
        of_groups = [np.reshape(v, (1, groups, *[1] * (grouped.ndim - 2))) for v in (scale, bias)]
        return (found.astype(x.dtype) * of_groups[0] + of_groups[1]).reshape(x.shape)
    return found.reshape(x.shape).astype(x.dtype) * _channels(scale, x.ndim) + _channels(bias, x.ndim)


def _layer_normalization(node: Node, x: Value, scale: Value, bias: Value = None) -> list[Value]:
    axis = normal([node["axis"]], x.ndim)[0]
    found, middle, inverse = standardized(_stashed(node, x), range(axis, x.ndim), node["epsilon"])
    scaled = found.astype(x.dtype) * scale
    return [scaled if bias is None else scaled + bias, middle, inverse]


def _rms_normalization(node: Node, x: Value, scale: Value) -> Value:
    axis = normal([node["axis"]], x.ndim)[0]
    wide = _stashed(node, x)
    root = np.sqrt(mean(wide * wide, range(axis, x.ndim)) + wide.dtype.type(node["epsilon"]))
    return (wide / root).astype(x.dtype) * scale


def _lrn(node: Node, x: Value) -> Value:
    """Local response normalization (Krizhevsky et al., 2012): over the sum of squares of nearby channels."""
    size = node["size"]
    low = (size - 1) // 2
    window = (1, size, *[1] * (x.ndim - 2))
    padding = tuple((low, size - 1 - low) if k == 1 else (0, 0) for k in range(x.ndim))
    ones = (1,) * x.ndim
    squares = node.emit(
        "reduce_window_sum",
        x * x,
        window_dimensions=window,
        window_strides=ones,
        padding=padding,
        base_dilation=ones,
        window_dilation=ones,
    )
    number = x.dtype.type
    return x / (number(node["bias"]) + number(node["alpha"] / size) * squares) ** number(node["beta"])


def _lp_normalization(node: Node, x: Value) -> Value:
    axis = normal([node["axis"]], x.ndim)
    norm = total(np.abs(x), tuple(axis)) if node["p"] == 1 else np.sqrt(total(x * x, tuple(axis)))
    is_zero = norm == 0
    return np.where(is_zero, x.dtype.type(0), x / np.where(is_zero, x.dtype.type(1), norm))


OPERATORS: Mapping[str, Operator] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LRN": _lrn,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "RMSNormalization": _rms_normalization,
}
