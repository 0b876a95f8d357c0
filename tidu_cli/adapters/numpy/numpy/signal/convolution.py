"""Convolutions and correlations of whole arrays, over all of their axes, as parts of the full one."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, lifted_as_arrays
from tidu_cli.adapters.numpy.numpy.shaping import atleast_1d, flip
from tidu_cli.lax.signal.convolution import ConvDimensionNumbers

MODES = ("full", "same", "valid")

Window = tuple[Sequence[int], Sequence[int]]
"""Where a part of the full result starts along each axis, and how long it is."""


def window_of(mode: str, x: Sequence[int], kernel: Sequence[int], like: Sequence[int]) -> Window:
    """The part of the full result that a mode means, of arrays of these shapes; `same` is the middle, of shape `like`."""
    if mode not in MODES:
        raise ValueError(f"mode is 'full', 'same' or 'valid', not {mode!r}")
    whole = [n + m - 1 for n, m in zip(x, kernel, strict=True)]
    lengths = {"full": whole, "same": like, "valid": [n - m + 1 for n, m in zip(x, kernel, strict=True)]}[mode]
    return [(n - length) // 2 for n, length in zip(whole, lengths, strict=True)], lengths


def slid(x: Array, kernel: Array, window: Window) -> Array:
    """The part of the full correlation of x by a kernel, which is neither reversed nor conjugated. They have one dtype and rank."""
    if x.type.dtype == "bool":
        return slid(x.convert("i32"), kernel.convert("i32"), window) != 0
    rank, edges = x.ndim, zip(x.shape, kernel.shape, *window, strict=True)
    ones, axes = (1,) * rank, tuple(range(rank + 2))
    correlated = x.reshaped((1, 1, *x.shape)).emit(
        "conv_general_dilated",
        kernel.reshaped((1, 1, *kernel.shape)),
        window_strides=ones,
        padding=tuple((m - 1 - start, start + length - n) for n, m, start, length in edges),
        lhs_dilation=ones,
        rhs_dilation=ones,
        dimension_numbers=ConvDimensionNumbers(lhs_spec=axes, rhs_spec=axes, out_spec=axes),
    )
    return correlated.reshaped(correlated.shape[2:])


def _vectors(name: str, a: Operand, v: Operand) -> tuple[Array, Array]:
    x, kernel = (atleast_1d(operand) for operand in lifted_as_arrays(a, v))
    if x.ndim != 1 or kernel.ndim != 1 or not x.size or not kernel.size:
        raise ValueError(f"{name} takes vectors that are not empty, got {x.type} and {kernel.type}")
    return x, kernel


def convolve(a: Operand, v: Operand, mode: str = "full") -> Array:
    x, kernel = _vectors("convolve", a, v)
    x, kernel = (kernel, x) if kernel.size > x.size else (x, kernel)
    return slid(x, flip(kernel, 0), window_of(mode, x.shape, kernel.shape, x.shape))


def correlate(a: Operand, v: Operand, mode: str = "valid") -> Array:
    x, kernel = _vectors("correlate", a, v)
    if kernel.size > x.size:
        return flip(correlate(kernel, x, mode).conj(), 0)
    return slid(x, kernel.conj(), window_of(mode, x.shape, kernel.shape, x.shape))
