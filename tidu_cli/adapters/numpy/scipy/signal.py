"""What `scipy.signal` has: convolutions and correlations, by products or by transforms, and linear filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, lifted_as_arrays
from tidu_cli.adapters.numpy.control_flow.scan import scan
from tidu_cli.adapters.numpy.errors import BuildError, UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import filled, indexed, normal_axes, normal_axis, part
from tidu_cli.adapters.numpy.numpy.linear_algebra.products import tensordot
from tidu_cli.adapters.numpy.numpy.shaping import atleast_1d, concatenate, flip, moveaxis, pad
from tidu_cli.adapters.numpy.numpy.signal import Window, slid, transform, window_of
from tidu_cli.adapters.numpy.scipy.filters import convolve1d


def _pair(name: str, in1: Operand, in2: Operand, mode: str) -> tuple[Array, Array]:
    """Both as arrays, the first not the smaller one where only whole overlaps are asked for."""
    x, kernel = lifted_as_arrays(in1, in2)
    if x.ndim != kernel.ndim:
        raise ValueError(f"{name} takes arrays of equally many axes, got {x.type} and {kernel.type}; write x[:, None], say")
    if not x.size or not kernel.size:
        raise BuildError(f"{name} takes arrays that are not empty, got {x.type} and {kernel.type}")
    if mode == "valid" and not all(n >= m for n, m in zip(x.shape, kernel.shape, strict=True)):
        if not all(n <= m for n, m in zip(x.shape, kernel.shape, strict=True)):
            raise ValueError(f"mode 'valid' takes one array that is as long as the other on every axis: {x.type} and {kernel.type}")
        return kernel, x
    return x, kernel


def convolve(in1: Operand, in2: Operand, mode: str = "full", method: str = "auto") -> Array:
    """By the method that SciPy chooses for arrays of these shapes, if it is to choose."""
    x, kernel = _pair("convolve", in1, in2, mode)
    window = window_of(mode, x.shape, kernel.shape, x.shape)
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"method is 'auto', 'direct' or 'fft', not {method!r}")
    if method == "auto":
        from scipy.signal import choose_conv_method  # type: ignore[import-untyped]

        method = choose_conv_method(*(np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in (x, kernel)), mode)
    if method == "direct" or not x.ndim or not x.type.inexact:
        return slid(x, flip(kernel), window)
    return fftconvolve(x, kernel, mode)


def correlate(in1: Operand, in2: Operand, mode: str = "full", method: str = "auto") -> Array:
    x, kernel = lifted_as_arrays(in1, in2)
    return convolve(x, flip(kernel.conj()), mode, method)


def convolve2d(in1: Operand, in2: Operand, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Array:
    """With an edge filled with a number, or repeated: mirrored ('symm') or from the other side ('wrap')."""
    x, kernel = _pair("convolve2d", in1, in2, mode)
    return _over_plane(x, flip(kernel), window_of(mode, x.shape, kernel.shape, x.shape), boundary, fillvalue)


def correlate2d(in1: Operand, in2: Operand, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Array:
    """As SciPy has it: `same` starts half an even window later than convolve2d, and of two that change places the smaller is
    conjugated all the same.
    """
    given, _ = lifted_as_arrays(in1, in2)
    x, kernel = _pair("correlate2d", in1, in2, mode)
    starts, lengths = window_of(mode, x.shape, kernel.shape, x.shape)
    if mode == "same":
        starts = [m // 2 for m in kernel.shape]
    correlated = _over_plane(x, kernel.conj(), (starts, lengths), boundary, fillvalue)
    return correlated if x.shape == given.shape else flip(correlated)


def _over_plane(x: Array, kernel: Array, window: Window, boundary: str, fillvalue: Any) -> Array:
    """The part of the full correlation of matrices, with what SciPy may have around x."""
    if x.ndim != 2:
        raise ValueError(f"the arrays are to be matrices, got {x.type} and {kernel.type}")
    by = {"fill": "constant", "pad": "constant", "symm": "symmetric", "symmetric": "symmetric", "wrap": "wrap", "circular": "wrap"}
    if boundary not in by:
        raise ValueError(f"boundary is 'fill', 'symm' or 'wrap', not {boundary!r}")
    if by[boundary] == "constant" and isinstance(fillvalue, int | float | complex) and fillvalue == 0:
        return slid(x, kernel, window)
    options = {"constant_values": fillvalue} if by[boundary] == "constant" else {}
    wide = pad(x, [(m - 1, m - 1) for m in kernel.shape], by[boundary], **options)
    starts, lengths = window
    return slid(wide, kernel, ([start + m - 1 for start, m in zip(starts, kernel.shape, strict=True)], lengths))


def fftconvolve(in1: Operand, in2: Operand, mode: str = "full", axes: Any = None) -> Array:
    """By the convolution theorem, over transforms that are long enough that nothing wraps round."""
    from scipy.fft import next_fast_len  # type: ignore[import-untyped]

    x, kernel = _pair("fftconvolve", in1, in2, mode)
    if not x.ndim:
        return x * kernel
    over = normal_axes(axes, x.ndim)
    for k in range(x.ndim):
        if k not in over and 1 not in (x.shape[k], kernel.shape[k]) and x.shape[k] != kernel.shape[k]:
            raise ValueError(f"axis {k} of {x.type} and {kernel.type} is not convolved, and its sizes differ")
    over = tuple(k for k in over if x.shape[k] != 1 and kernel.shape[k] != 1)
    sizes = [n + m - 1 if k in over else max(n, m) for k, (n, m) in enumerate(zip(x.shape, kernel.shape, strict=True))]
    if over:
        kind = "FFT" if x.type.complex else "RFFT"
        lengths = [next_fast_len(sizes[k], not x.type.complex) for k in over]
        spectra = (transform(array, kind, lengths, over) for array in (x, kernel))
        convolved = transform(next(spectra) * next(spectra), f"I{kind}", lengths, over)
    else:
        convolved = x * kernel
    _, kept = window_of(mode, x.shape, kernel.shape, x.shape)
    # Along other axes `valid` takes nothing away.
    kept = sizes if mode == "full" else [n if mode == "same" or k in over else sizes[k] for k, n in enumerate(kept)]
    starts = [(whole - n) // 2 for whole, n in zip(sizes, kept, strict=True)]
    return indexed(convolved, tuple(slice(start, start + n) for start, n in zip(starts, kept, strict=True)))


def oaconvolve(in1: Operand, in2: Operand, mode: str = "full", axes: Any = None) -> Array:
    return fftconvolve(in1, in2, mode, axes)


def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Array:
    """A convolution; and what is recursive as a scan over the samples."""
    if zi is not None:
        raise UntraceableError("lfilter is traced from rest, without zi=; add what it gives of zeros and that zi, from constants")
    b, a, x = lifted_as_arrays(b, a, x)
    b, a = atleast_1d(b), atleast_1d(a)
    if b.ndim != 1 or a.ndim != 1 or not b.size or not a.size or not x.ndim:
        raise ValueError(f"lfilter takes vectors of coefficients and an array with axes, got {b.type}, {a.type} and {x.type}")
    if not x.type.inexact:
        b, a, x = (array.convert("f64") for array in (b, a, x))
    k, first = normal_axis(axis, x.ndim), indexed(a, 0)
    lines = moveaxis(x, k, -1)
    n = lines.shape[-1]
    rows = lines.reshaped((x.size // n if n else 0, n))
    filtered = _recursive(rows, b / first, a / first) if a.size > 1 and x.size else _weighted(rows, b / first)
    return moveaxis(filtered.reshaped(lines.shape), -1, k)


def _weighted(rows: Array, b: Array) -> Array:
    """Of each row the sums of what came before, weighted."""
    m, n = b.size, rows.shape[-1]
    if not rows.size:
        return rows
    wide = pad(rows, ((0, 0), (m - 1, 0)))
    return slid(wide, flip(b).reshaped((1, m)), ([0, m - 1], [rows.shape[0], n]))


def _recursive(rows: Array, b: Array, a: Array) -> Array:
    """The rows filtered sample by sample, in transposed direct form II as by SciPy; a[0] is 1."""
    order = max(a.size, b.size) - 1
    b, a = (pad(x, (0, order + 1 - x.size)) for x in (b, a))
    first, forward, back = indexed(b, 0), part(b, 0, slice(1, None)), part(a, 0, slice(1, None))

    def step(state: Array, x: Array) -> tuple[Array, Array]:
        column = x.reshaped((x.size, 1))
        y = first * column + part(state, 1, slice(0, 1))
        moved = pad(part(state, 1, slice(1, None)), ((0, 0), (0, 1)))
        return moved + column * forward - y * back, y.reshaped((x.size,))

    _, columns = scan(step, filled(rows, 0, (rows.shape[0], order)), moveaxis(rows, 0, 1))
    return moveaxis(columns, 0, 1)


def savgol_filter(
    x: Operand, window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, axis: int = -1, mode: str = "interp",
    cval: float = 0.0,
) -> Array:  # fmt: skip
    """A convolution with SciPy's weights; near the ends, with mode interp, the polynomials through the outermost windows."""
    from scipy.signal import savgol_coeffs
    from scipy.signal import savgol_filter as scipys

    x = an_array(x)
    if arrays_in([window_length, polyorder, deriv, delta]) or x.type.complex:
        raise UntraceableError("savgol_filter is traced of real samples, with a constant window, order and delta")
    if mode not in ("mirror", "constant", "nearest", "wrap", "interp"):
        raise ValueError(f"mode is 'mirror', 'constant', 'nearest', 'wrap' or 'interp', not {mode!r}")
    x = x if x.type.dtype in ("f32", "f64") else x.convert("f64")
    k, weights = normal_axis(axis, x.ndim), savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    if mode != "interp":
        filtered: Array = convolve1d(x, weights, k, mode=mode, cval=cval)
        return filtered
    n, half = x.shape[k], window_length // 2
    if window_length > n:
        raise ValueError(f"with mode 'interp' a window of {window_length} is for as many samples at least, got {x.type}")
    lines, middle = moveaxis(x, k, 0), moveaxis(convolve1d(x, weights, k, mode="constant"), k, 0)
    ends = scipys(np.eye(window_length), window_length, polyorder, deriv, delta, 0)
    first = tensordot(ends[:half], lines[:window_length], 1).convert(x.dtype)
    last = tensordot(ends[window_length - half :], lines[n - window_length :], 1).convert(x.dtype)
    return moveaxis(concatenate([first, middle[half : n - half], last]), 0, k)
