"""Edges of Fourier transforms, convolutions and windows: all sorts of attrs, ties, NaN, infinities, nothing but padding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.lax.sampling.sample import draw
from tests.lax.sampling.signal_samples import CONVOLUTIONS, WINDOWS, window, windows_of

INF, NAN = math.inf, math.nan


def _transforms() -> Iterator[tuple[Any, ...]]:
    for dtype in ("f64", "c128", "f32", "c64"):
        for shape, count in (((1,), 1), ((7,), 1), ((2, 6), 1), ((2, 3, 4), 2), ((2, 1, 3, 5), 3), ((0, 3), 1)):
            lengths = shape[-count:]
            for kind in ("FFT", "IFFT", "IRFFT") if dtype.startswith("c") else ("RFFT",):
                sizes = (*shape[:-1], shape[-1] // 2 + 1) if kind == "IRFFT" else shape
                yield {"fft_type": kind, "fft_lengths": lengths}, draw(dtype, sizes)


def _convolutions() -> Iterator[tuple[Any, ...]]:
    for lhs, rhs, attrs in CONVOLUTIONS:
        for dtype in ("f64", "c128", "f32", "i32"):
            low = 0.1 if dtype == "i32" else None
            yield attrs, draw(dtype, lhs, 1, low), draw(dtype, rhs, 2, low)


def _windows() -> Iterator[tuple[Any, ...]]:
    for shape, attrs in WINDOWS[1:]:  # scalars abort XLA
        for dtype in ("f64", "f32"):
            yield attrs, draw(dtype, shape)


def _extremes() -> Iterator[tuple[Any, ...]]:
    yield from _windows()
    overlapping = window([2, 3], padding=[[1, 0], [1, 1]])
    for rows in (
        [[1.0, 1.0, 0.0, 1.0], [1.0, 2.0, 2.0, 0.0]],
        [[0.0, -0.0, NAN, 3.0], [NAN, 1.0, 2.0, 3.0]],
        [[-INF] * 3, [INF] * 3],
    ):
        yield overlapping, np.array(rows)
        yield overlapping, np.array(rows, np.float32)
    yield window([2]), np.array([3, 3, 1, -128, -128], np.int8)
    yield window([2]), np.array([True, False, False])


def _choices(*, scatter: bool) -> Iterator[tuple[Any, ...]]:
    for attrs, operand, *_ in _extremes():
        if operand.dtype.kind != "f":
            continue
        for select in ("ge", "le"):
            dtype = "f64" if operand.dtype == np.float64 else "f32"
            chosen = {**attrs, "select_prim": select}
            if scatter:
                if max((*attrs["base_dilation"], *attrs["window_dilation"]), default=1) > 1:
                    continue
                plain = {k: v for k, v in chosen.items() if "dilation" not in k}
                yield plain, draw(dtype, windows_of(attrs, operand.shape)[0], 1), operand
            else:
                yield chosen, draw(dtype, operand.shape, 1), operand


OTHERS: dict[str, list[tuple[Any, ...]]] = {
    "fft": list(_transforms()),
    "conv_general_dilated": list(_convolutions()),
    "reduce_window_sum": list(_windows()),
    "reduce_window_max": list(_extremes()),
    "reduce_window_min": list(_extremes()),
    "select_and_gather_add": list(_choices(scatter=False)),
    "select_and_scatter_add": list(_choices(scatter=True)),
}
"""Attrs and operands."""
