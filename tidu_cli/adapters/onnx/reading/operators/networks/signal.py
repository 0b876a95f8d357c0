"""Convolutions and their transposes, Fourier transforms of signals, and windows that signals are weighted by.

Complex numbers have an axis of two, the last, of real and imaginary parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at, computed
from tidu_cli.adapters.onnx.reading.operators.networks.pooling import automatic_padding, spatial, windows
from tidu_cli.adapters.onnx.reading.operators.networks.resampling import linear_taps, widened
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers
from tidu_cli.lax.signal.convolution import ConvDimensionNumbers
from tidu_cli.limits import require


def _one(node: Node, x: Value, what: str) -> int:
    """The whole number that a value is. Raises RefusedError for several."""
    numbers = node.ints(x, what)
    if len(numbers) != 1:
        raise RefusedError(f"has {len(numbers)} numbers as its {what}")
    return numbers[0]


LONGEST_MATRIX = 512
"""Transforms of up to this many elements are products with real matrices, which ONNX can hold. Longer ones are fast transforms, and
so are inverse ones to complex numbers, whose zeros onnx's tests have with the rounding of these."""


def _transformed(x: Value, n: int, along: int, inverse: bool, onesided: bool) -> Value:
    """The Fourier transform of n elements along an axis, those that are missing being zeros."""
    if x.shape[-1] not in (1, 2):
        raise RefusedError(f"is of an array of shape {list(x.shape)}, whose last axis has neither one nor two elements")
    if n <= LONGEST_MATRIX and (onesided or not inverse):
        x = x[(*[slice(None)] * along, slice(0, n // 2 + 1 if inverse and onesided else n))]
        matrix = _of_half(n, x.shape[along]) if inverse else _forward(n, x.shape[along], onesided)
        matrix = matrix[..., : x.shape[-1]].astype(x.dtype)
        return np.moveaxis(np.tensordot(x, matrix, ((along, x.ndim - 1), (2, 3))), -2, along)
    values = x[..., 0]
    if x.shape[-1] == 2:
        values = values + x[..., 1] * (np.complex64(1j) if x.dtype == np.float32 else 1j)
    if inverse and onesided:  # of a real signal the other half are conjugates
        return np.fft.irfft(values, n, along)[..., np.newaxis].astype(x.dtype)
    transform = np.fft.ifft(values, n, along) if inverse else np.fft.fft(values, n, along)
    if onesided:
        transform = transform[(*[slice(None)] * along, slice(0, n // 2 + 1))]
    return np.stack([np.real(transform), np.imag(transform)], -1).astype(x.dtype)


def _forward(n: int, m: int, onesided: bool) -> Any:
    """What m elements contribute to a transform: [result, its part, element, its part], the parts being real and imaginary."""
    angle = 2 * np.pi * (np.outer(np.arange(n // 2 + 1 if onesided else n), np.arange(m)) % n) / n
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1)


def _of_half(n: int, m: int) -> Any:
    """Likewise, what m elements of half a transform contribute to the n of its real signal."""
    element = np.arange(m)
    angle = 2 * np.pi * (np.outer(np.arange(n), element) % n) / n
    counts = np.where(element % n == -element % n, 1, 2)  # elsewhere there is a conjugate in the other half
    return (np.stack([np.cos(angle), -np.sin(angle)], -1) * counts[:, np.newaxis] / n)[:, np.newaxis]


def _dft(node: Node, x: Value, length: Value = None, axis: Value = None) -> Value:
    given = node["axis"] if axis is None else _one(node, axis, "axis")
    if node.version >= 20 and axis is None:
        given = -2
    along = normalize_axis_index(given, x.ndim)
    half = bool(node["inverse"] and node["onesided"])
    n = (2 * (x.shape[along] - 1) if half else x.shape[along]) if length is None else _one(node, length, "dft_length")
    if n < 1 or x.ndim < 2:
        raise RefusedError(f"has the length {n} in an array of shape {list(x.shape)}")
    require("memory", math.prod(x.shape) // max(x.shape[along], 1) * n * 16, f"transforms of length {n}")
    return _transformed(x, n, along, bool(node["inverse"]), bool(node["onesided"]))


def _stft(node: Node, x: Value, step: Value, window: Value = None, length: Value = None) -> Value:
    """Fourier transforms of frames."""
    if x.ndim not in (2, 3) or (window is not None and window.ndim != 1):
        raise RefusedError(f"is of an array of shape {list(x.shape)}")
    hop = _one(node, step, "frame_step")
    if length is None and window is None:
        raise RefusedError("has neither a window nor a frame_length")
    n = window.shape[0] if length is None else _one(node, length, "frame_length")
    if hop < 1 or n < 1 or n > x.shape[1] or (window is not None and window.shape != (n,)):
        raise RefusedError(f"has frames of {n} in steps of {hop} over {x.shape[1]} samples")
    starts = np.arange((x.shape[1] - n) // hop + 1) * hop
    frames = np.take(x if x.ndim == 3 else x[..., np.newaxis], starts[:, np.newaxis] + np.arange(n), 1)
    return _transformed(frames if window is None else frames * window[:, np.newaxis], n, 2, False, node["onesided"] in (1, None))


def _window(*coefficients: float) -> Operator:
    """A sum of cosines."""

    def run(node: Node, size: Value) -> Value:
        n = _one(node, size, "size")
        require("memory", max(n, 0) * 8, f"a window of {n} elements")
        phase = 2 * np.pi * np.arange(n) / (n if node["periodic"] else max(n - 1, 1))
        window = sum((c * np.cos(k * phase) * (-1) ** k for k, c in enumerate(coefficients)), np.zeros(n))
        return np.asarray(window).astype(node.dtype(node["output_datatype"]))

    return run


def _mel_weight_matrix(node: Node, bins: Value, length: Value, rate: Value, low: Value, high: Value) -> Value:
    """Triangles between frequencies that are evenly spaced in mels, 2595 log10(1 + f / 700)."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    n, size, sampled, first, last = (
        node.known(x, name).item() for x, name in zip((bins, length, rate, low, high), names, strict=True)
    )
    require("memory", max(n, 0) * max(size, 0) * 8, "a matrix of mels")
    mel = np.linspace(2595 * math.log10(1 + first / 700), 2595 * math.log10(1 + last / 700), n + 2)
    mel = mel[0] + np.arange(n + 2) * ((mel[-1] - mel[0]) / (n + 2))  # as the specification has it
    edges = np.floor((size + 1) * (700 * (10 ** (mel / 2595) - 1)) / sampled).astype(np.int64)
    matrix = np.zeros((size // 2 + 1, n))
    for k in range(n):
        left, middle, right = edges[k : k + 3]
        if middle == left:
            matrix[middle, k] = 1
        else:
            matrix[left : middle + 1, k] = (np.arange(left, middle + 1) - left) / (middle - left)
        if right > middle:
            matrix[middle:right, k] = (right - np.arange(middle, right)) / (right - middle)
    return matrix.astype(node.dtype(node["output_datatype"]))


def _plus_bias(y: Value, bias: Value) -> Value:
    if bias is None:
        return y
    if bias.shape != y.shape[1:2]:
        raise RefusedError(f"has a bias of shape {list(bias.shape)} for {y.shape[1]} features")
    return y + np.reshape(bias, (1, -1, *[1] * (y.ndim - 2)))


def _kernel(node: Node, x: Value, w: Value) -> tuple[int, ...]:
    """The sizes of the kernel along the spatial axes, those of the weights."""
    if w.ndim != x.ndim or list(node["kernel_shape"] or w.shape[2:]) != list(w.shape[2:]):
        raise RefusedError(f"has weights of shape {list(w.shape)} and kernel_shape {node['kernel_shape']} for {list(x.shape)}")
    return tuple(w.shape[2:])


def convolved(node: Node, x: Value, w: Value) -> Value:
    """The convolution of x, [batch, channels, ...], by w, [features, channels / groups, ...]."""
    grid = windows(node, x, _kernel(node, x, w))
    axes = tuple(range(x.ndim))
    return computed(
        node,
        "conv_general_dilated",
        x,
        w,
        window_strides=grid.strides,
        padding=grid.padding,
        lhs_dilation=(1,) * (x.ndim - 2),
        rhs_dilation=grid.dilations,
        dimension_numbers=ConvDimensionNumbers(lhs_spec=axes, rhs_spec=axes, out_spec=axes),
        feature_group_count=node["group"] or 1,
        batch_group_count=1,
    )


def _conv_transpose(node: Node, x: Value, w: Value, bias: Value = None) -> Value:
    rank, groups = x.ndim - 2, node["group"] or 1
    strides, dilations = spatial(node, "strides", rank, 1), spatial(node, "dilations", rank, 1)
    kernel = _kernel(node, x, w)
    if w.shape[0] != x.shape[1] or groups < 1 or w.shape[0] % groups:
        raise RefusedError(f"has weights of shape {list(w.shape)} for an array of shape {list(x.shape)}")
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    more = spatial(node, "output_padding", rank, 0)
    low, high = _transposed_pads(node, x.shape[2:], strides, sizes, more)
    if groups > 1:
        w = np.swapaxes(w.reshape(groups, -1, *w.shape[1:]), 1, 2)
        w = w.reshape(-1, *w.shape[2:])
    axes = tuple(range(x.ndim))
    rhs = axes if groups > 1 else (1, 0, *axes[2:])
    y = computed(
        node,
        "conv_general_dilated",
        x,
        np.flip(w, axes[2:]),
        window_strides=(1,) * rank,
        padding=tuple((s - 1 - a, s - 1 - b + m) for s, a, b, m in zip(sizes, low, high, more, strict=True)),
        lhs_dilation=strides,
        rhs_dilation=dilations,
        dimension_numbers=ConvDimensionNumbers(lhs_spec=axes, rhs_spec=rhs, out_spec=axes),
        feature_group_count=groups,
        batch_group_count=1,
    )
    return _plus_bias(y, bias)


def _transposed_pads(
    node: Node, shape: Sequence[int], strides: Sequence[int], sizes: Sequence[int], more: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What is cut off of each axis of the result, before and after it."""
    rank, automatic = len(shape), automatic_padding(node)
    due = list(node["output_shape"] or ())[-rank:]
    if not due and automatic.startswith("SAME"):
        due = [n * s for n, s in zip(shape, strides, strict=True)]
    if due and len(due) != rank:
        raise RefusedError(f"has output_shape {due} for {rank} spatial axes")
    if not due:
        pads = list(node["pads"] or [0] * 2 * rank)
        if len(pads) != 2 * rank:
            raise RefusedError(f"has pads {pads} for {rank} spatial axes")
        return ([0] * rank, [0] * rank) if automatic == "VALID" else (pads[:rank], pads[rank:])
    totals = [s * (n - 1) + m + w - d for s, n, m, w, d in zip(strides, shape, more, sizes, due, strict=True)]
    # What the result has more than the convolution is after its end, as in onnxruntime.
    half = [max(t, 0) // 2 if automatic == "SAME_UPPER" else max(t, 0) - max(t, 0) // 2 for t in totals]
    return half, [t - a for t, a in zip(totals, half, strict=True)]


def _deform_conv(node: Node, x: Value, w: Value, offset: Value, bias: Value = None, mask: Value = None) -> Value:
    """A convolution whose windows read places moved by offsets (Dai et al., 2017)."""
    if x.ndim != 4:
        raise RefusedError(f"is of an array of shape {list(x.shape)}; those of two spatial axes are read")
    grid = windows(node, x, _kernel(node, x, w))
    n, c = x.shape[:2]
    rows, columns = grid.counts
    taps, shifted = math.prod(grid.kernel), node["offset_group"] or 1
    groups = node["group"] or 1
    due = (n, shifted * taps, rows, columns)
    if offset.shape != (n, 2 * due[1], *due[2:]) or (mask is not None and mask.shape != due):
        raise RefusedError(f"has offsets {list(offset.shape)} and a mask that do not fit {shifted} groups of {taps} elements")
    if c % shifted or c != w.shape[1] * groups or w.shape[0] % groups:
        raise RefusedError(f"has weights of shape {list(w.shape)} in {groups} groups, {shifted} of offsets, for {c} channels")
    offsets = widened(offset.reshape(n, shifted, taps, 2, rows, columns))
    at_row = np.repeat(grid.places(0).T, grid.kernel[1], 0)[:, :, np.newaxis]
    at_column = np.tile(grid.places(1).T, (grid.kernel[0], 1))[:, np.newaxis, :]
    places = [offsets[:, :, :, 0] + at_row.astype(offsets.dtype), offsets[:, :, :, 1] + at_column.astype(offsets.dtype)]
    grouped = widened(x).reshape(n, shifted, c // shifted, *x.shape[2:])
    batch = np.arange(n).reshape(-1, 1, 1, 1, 1), np.arange(shifted).reshape(1, -1, 1, 1, 1)
    last = np.moveaxis(grouped, 2, -1)
    values = linear_taps(lambda index: at(node, last, *batch, *index), places, x.shape[2:])
    if mask is not None:
        values = values * widened(mask).reshape(n, shifted, taps, rows, columns)[..., np.newaxis]
    read = np.moveaxis(values, -1, 2).reshape(n, c, taps, rows, columns)  # [n, shifted, c / shifted, taps, rows, columns]
    weights = widened(w).reshape(groups, w.shape[0] // groups, c // groups, taps)
    y = np.einsum("ngctij,goct->ngoij", read.reshape(n, groups, c // groups, taps, rows, columns), weights)
    return _plus_bias(y.reshape(n, w.shape[0], rows, columns).astype(x.dtype), bias)


def _col2im(node: Node, x: Value, image: Value, block: Value) -> Value:
    """The sum of blocks where they lie in the image: the transpose of taking them."""
    shape, kernel = node.ints(image, "image_shape"), node.ints(block, "block_shape")
    if x.ndim != 3 or len(shape) != len(kernel) or min(shape + kernel, default=0) < 1 or x.shape[1] % math.prod(kernel):
        raise RefusedError(f"puts {list(x.shape)}, blocks {kernel}, into images {shape}")
    n, c = x.shape[0], x.shape[1] // math.prod(kernel)
    require("memory", n * c * math.prod(shape) * 8, f"an image of shape {shape}")
    blank = np.zeros((n, c, *shape), x.dtype)
    grid = windows(node, blank, kernel)
    if math.prod(grid.counts) != x.shape[2]:
        raise RefusedError(f"has {x.shape[2]} blocks, where {math.prod(grid.counts)} have a place in images {shape}")
    low, sizes = grid.low, [s + a + max(b, 0) for s, a, b in zip(shape, grid.low, grid.high, strict=True)]
    rank = len(shape)
    places = np.zeros((*kernel, *grid.counts), np.int64)
    for k in range(rank):
        along = (grid.places(k) + low[k]).T
        layout = [1] * (2 * rank)
        layout[k], layout[rank + k] = along.shape
        places = places * sizes[k] + along.reshape(layout)
    numbers = ScatterDimensionNumbers(update_window_dims=(0, 1), inserted_window_dims=(2,), scatter_dims_to_operand_dims=(2,))
    padded = computed(
        node,
        "scatter-add",
        np.zeros((n, c, math.prod(sizes)), x.dtype),
        places.reshape(-1, 1),
        x.reshape(n, c, -1),
        dimension_numbers=numbers,
        mode="promise_in_bounds",
    )
    inner = (slice(a, a + s) for a, s in zip(low, shape, strict=True))
    return padded.reshape(n, c, *sizes)[(slice(None), slice(None), *inner)]


OPERATORS: Mapping[str, Operator] = {
    "BlackmanWindow": _window(0.42, 0.5, 0.08),
    "Col2Im": _col2im,
    "Conv": lambda node, x, w, bias=None: _plus_bias(convolved(node, x, w), bias),
    "ConvTranspose": _conv_transpose,
    "DFT": _dft,
    "DeformConv": _deform_conv,
    "HammingWindow": _window(25 / 46, 21 / 46),
    "HannWindow": _window(0.5, 0.5),
    "MelWeightMatrix": _mel_weight_matrix,
    "STFT": _stft,
}
