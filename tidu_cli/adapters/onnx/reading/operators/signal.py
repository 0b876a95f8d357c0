"""Fourier transforms and windows. Complex numbers have an axis of two, the last, of real and imaginary parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.limits import require


def _one(node: Node, x: Value, what: str) -> int:
    """The whole number that a value is. Raises RefusedError for several."""
    numbers = node.ints(x, what)
    if len(numbers) != 1:
        raise RefusedError(f"has {len(numbers)} numbers as its {what}")
    return numbers[0]


LONGEST_MATRIX = 512
"""Transforms of so many elements are products with real matrices, as ONNX can be written with. Longer ones are fast transforms, and
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


OPERATORS: Mapping[str, Operator] = {
    "BlackmanWindow": _window(0.42, 0.5, 0.08),
    "DFT": _dft,
    "HammingWindow": _window(25 / 46, 21 / 46),
    "HannWindow": _window(0.5, 0.5),
    "MelWeightMatrix": _mel_weight_matrix,
    "STFT": _stft,
}
