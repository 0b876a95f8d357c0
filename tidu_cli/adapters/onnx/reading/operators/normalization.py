"""Normalizations: by statistics of the values themselves, along some of their axes, or by given ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.adapters.numpy.numpy.indexing import normal_axes, normal_axis
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted
from tidu_cli.adapters.onnx.reading.operators.reductions import Axes, mean, total


def widened(node: Node, x: Value, code: int = 1) -> Value:
    """x in the dtype of this code (1 is f32), in which statistics are computed, if that is wider than its own."""
    dtype = node.dtype(code)
    return converted(node, x, dtype) if x.dtype.itemsize < dtype.itemsize else x


def moments(x: Value, axes: Axes) -> tuple[Value, Value, Value]:
    """The mean along axes, how far x is from it, and the variance."""
    center = mean(x, axes)
    off = x - center
    return center, off, mean(off * off, axes)


def inverse_root(node: Node, x: Value, epsilon: float) -> Value:
    """1 / sqrt(x + epsilon)."""
    return computed(node, "rsqrt", x + number(x, epsilon))


def along_channels(node: Node, v: Value, x: Value, what: str, axis: int = 1) -> Value:
    """A vector with an element for each channel of x, laid along that axis of it. Raises RefusedError for one of another size."""
    n = x.shape[axis] if x.ndim > axis else 1
    if v.shape != (n,):
        raise RefusedError(f"its {what} is of shape {list(v.shape)}, and there are {n} channels")
    return np.reshape(v, (n,) + (1,) * (x.ndim - axis - 1))


def _batch_normalization(node: Node, x: Value, scale: Value, b: Value, center: Value, variance: Value) -> list[Value]:
    """By given statistics; for training by those of the batch, which the given ones come nearer to."""
    each = node["spatial"] == 0  # of version 7: statistics for each place
    axes = (0,) if each else tuple(k for k in range(x.ndim) if k != 1)

    def laid(v: Value, what: str) -> Value:
        if not each:
            return along_channels(node, v, x, what)
        if v.shape != x.shape[1:]:
            raise RefusedError(f"its {what} is of shape {list(v.shape)}, not {list(x.shape[1:])}")
        return v

    training = node["training_mode"] if node.version >= 14 else any(node.wants(k) for k in range(1, 5))
    scale_, b_, center_, variance_ = (
        laid(widened(node, v), what) for v, what in ((scale, "scale"), (b, "B"), (center, "mean"), (variance, "variance"))
    )
    wide = widened(node, x)
    if not training:
        factor = scale_ * inverse_root(node, variance_, node["epsilon"])
        # One product and one sum, which runtimes make part of a convolution before.
        return [converted(node, wide * factor + (b_ - center_ * factor), x.dtype)]
    now, off, spread = moments(wide, axes)
    y = off * inverse_root(node, spread, node["epsilon"]) * scale_ + b_
    part = node["momentum"]
    kept = [
        converted(node, widened(node, old) * number(wide, part) + np.reshape(new, old.shape) * number(wide, 1 - part), old.dtype)
        for old, new in ((center, now), (variance, spread))
    ]
    for old, new in zip((center, variance), kept, strict=True):
        node.importing.statistics.update(old, new)
    saved = [converted(node, np.reshape(v, center.shape), center.dtype) for v in (now, spread)]
    return [converted(node, y, x.dtype), *kept, *saved]


def _instance_normalization(node: Node, x: Value, scale: Value, b: Value) -> Value:
    wide = widened(node, x)
    _, off, variance = moments(wide, tuple(range(2, x.ndim)))
    scale, b = (along_channels(node, widened(node, v), x, what) for v, what in ((scale, "scale"), (b, "B")))
    return converted(node, off * inverse_root(node, variance, node["epsilon"]) * scale + b, x.dtype)


def _group_normalization(node: Node, x: Value, scale: Value, bias: Value) -> Value:
    """Of groups of channels. Before version 21 scale and bias have an element for each group."""
    n = node["num_groups"]
    if x.ndim < 2 or n < 1 or x.shape[1] % n:
        raise RefusedError(f"has {n} groups of the channels, axis 1, of an array of shape {list(x.shape)}, which do not fit")
    grouped = np.reshape(x, (x.shape[0], n, x.shape[1] // n, *x.shape[2:]))
    wide = widened(node, grouped, node["stash_type"] or 1)
    _, off, variance = moments(wide, tuple(range(2, wide.ndim)))
    normalized = converted(node, off * inverse_root(node, variance, node["epsilon"]), x.dtype)
    if node.version >= 21:
        normalized = np.reshape(normalized, x.shape)
    normalized = normalized * along_channels(node, scale, normalized, "scale") + along_channels(node, bias, normalized, "bias")
    return np.reshape(normalized, x.shape)


def normalized_axes(node: Node, x: Value) -> Axes:
    """The axes from the one of the attribute on."""
    return tuple(range(normal_axis(-1 if node["axis"] is None else node["axis"], x.ndim), x.ndim))


def by_deviation(node: Node, x: Value, scale: Value, bias: Value | None, axes: Axes, epsilon: float, code: int = 1) -> list[Value]:
    """x less its mean and divided by its standard deviation along axes; and that mean, and one by that deviation.

    The statistics are computed in the dtype of this code, or in that of x where it is wider.
    """
    center, off, variance = moments(widened(node, x, code), axes)
    inverse = inverse_root(node, variance, epsilon)
    y = converted(node, off * inverse, x.dtype) * scale
    return [y if bias is None else y + bias, *(converted(node, v, node.dtype(code)) for v in (center, inverse))]


def by_root_mean_square(node: Node, x: Value, scale: Value, axes: Axes, epsilon: float, code: int = 1) -> list[Value]:
    """x divided by the root of the mean of its squares along axes; and one by that root, computed as `by_deviation` says."""
    wide = widened(node, x, code)
    inverse = inverse_root(node, mean(wide * wide, axes), epsilon)
    return [converted(node, wide * inverse, x.dtype) * scale, converted(node, inverse, node.dtype(code))]


def _layer_normalization(node: Node, x: Value, scale: Value, b: Value | None = None) -> list[Value]:
    return by_deviation(node, x, scale, b, normalized_axes(node, x), node["epsilon"], node["stash_type"])


def rms_normalization(node: Node, x: Value, scale: Value) -> list[Value]:
    """Normalization by the root mean square, also for domains without schemas, and so without defaults here."""
    epsilon, code = (1e-5 if node["epsilon"] is None else node["epsilon"]), (node["stash_type"] or 1)
    return by_root_mean_square(node, x, scale, normalized_axes(node, x), epsilon, code)


def _lrn(node: Node, x: Value) -> Value:
    """x divided by a power of the mean square of its neighbours among the channels."""
    size = node["size"]
    if x.ndim < 2 or size < 1:
        raise RefusedError(f"goes over {size} channels of an array of {x.ndim} axes")
    window = tuple(min(size, 2 * x.shape[1] + 1) if k == 1 else 1 for k in range(x.ndim))
    before, after = min((size - 1) // 2, x.shape[1]), min(size // 2, x.shape[1])
    padding = tuple((before, after) if k == 1 else (0, 0) for k in range(x.ndim))
    ones = (1,) * x.ndim
    added = computed(
        node, "reduce_window_sum", x * x, window_dimensions=window, window_strides=ones, padding=padding,
        base_dilation=ones, window_dilation=ones,
    )  # fmt: skip
    base = added * number(x, node["alpha"] / size) + number(x, node["bias"])
    return x * computed(node, "pow", base, np.broadcast_to(node.sized(number(x, -node["beta"]), x.shape), x.shape))


def _lp_normalization(node: Node, x: Value) -> Value:
    """x divided by its norm along an axis; 0 where that is 0, with derivatives that are numbers."""
    axes = (normal_axis(node["axis"], x.ndim),)
    if node["p"] not in (1, 2):
        raise RefusedError(f"has the norm of p = {node['p']}, which is neither 1 nor 2")
    added = total(np.abs(x) if node["p"] == 1 else x * x, axes)
    safe = np.where(added == number(x, 0), number(x, 1), added)
    return x / safe if node["p"] == 1 else x * computed(node, "rsqrt", safe)


def _mean_variance_normalization(node: Node, x: Value) -> Value:
    _, off, variance = moments(x, normal_axes(tuple(node["axes"]), x.ndim))
    return off / (np.sqrt(variance) + number(x, 1e-9))


OPERATORS: Mapping[str, Operator] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LRN": _lrn,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": rms_normalization,
    "SimplifiedLayerNormalization": rms_normalization,  # as onnxruntime writes it, in the default domain, too
}
