"""Linear filters of `scipy.ndimage` with constant weights: what lies beyond the edges is taken from the array, then a convolution.

As SciPy's, they are computed in f64, or c128, and have the dtype of what is filtered.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import an_array, arrays_in, lift
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import normal_axes, normal_axis
from tidu_cli.adapters.numpy.numpy.shaping import pad
from tidu_cli.adapters.numpy.numpy.signal import slid

_PADS = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "grid-wrap": "wrap",
    "constant": "constant", "grid-constant": "constant",
}  # fmt: skip
"""np.pad's modes by those of SciPy."""


def _each(value: Any, n: int, name: str) -> list[Any]:
    """An option for each of n axes."""
    values = [value] * n if isinstance(value, str) or not np.iterable(value) else list(value)
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries for {n} axes")
    return values


def _filtered(x: Any, kernel: Any, axes: Sequence[int], modes: Sequence[str], cval: Any, origins: Sequence[int]) -> Any:
    """The correlation of x over these axes by a kernel of as many, centred but for the origins."""
    if arrays_in([kernel, cval]):
        raise UntraceableError("filters of scipy.ndimage are traced with constant weights and cval; write scipy.signal.correlate")
    array = an_array(x)
    if not array.type.inexact:
        raise UntraceableError(f"filters of scipy.ndimage round integers; convert {array.type} first, x.astype(float)")
    weights = np.asarray(kernel)
    if weights.ndim != len(axes) or not weights.size:
        raise RuntimeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({len(axes)})")
    complex_ = array.type.complex or weights.dtype.kind == "c" or np.iscomplexobj(cval)
    wide, sizes = array.convert("c128" if complex_ else "f64"), [1] * array.ndim
    for k, mode, origin, size in zip(axes, modes, origins, weights.shape, strict=True):
        if mode not in _PADS:
            raise RuntimeError(f"mode is one of {', '.join(_PADS)}, not {mode!r}")
        before = size // 2 + origin
        if not 0 <= before < size:
            raise ValueError(f"Invalid origin {origin} for {size} weights")
        widths = [(before, size - 1 - before) if j == k else (0, 0) for j in range(array.ndim)]
        options = {"constant_values": cval} if _PADS[mode] == "constant" else {}
        wide, sizes[k] = pad(wide, widths, _PADS[mode], **options), size
    order = np.argsort(axes)
    lifted = lift(np.transpose(weights, order).reshape(sizes), wide, wide.dtype)
    if not array.size:
        return array
    value = slid(wide, lifted, ([n - 1 for n in sizes], array.shape))
    return value.convert(value.dtype if complex_ and not array.type.complex else array.dtype)


def _output(output: Any, value: Any) -> Any:
    if output is None:
        return value
    if isinstance(output, Array | np.ndarray):
        raise UntraceableError("output= would write into an array; leave it out and use the result")
    return value.convert(np.dtype(output))


def correlate1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    conjugate = weights if arrays_in([weights]) else np.conj(weights)
    return _output(output, _filtered(input, conjugate, [normal_axis(axis, np.ndim(input))], [mode], cval, [origin]))


def convolve1d(
    input: Any, weights: Any, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    reversed_ = weights if arrays_in([weights]) else np.conj(np.asarray(weights)[::-1])
    return correlate1d(input, reversed_, axis, output, mode, cval, -origin - (1 - len(weights) % 2))


def correlate(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None
) -> Any:
    over = normal_axes(axes, np.ndim(input))
    conjugate = weights if arrays_in([weights]) else np.conj(weights)
    n = len(over)
    return _output(output, _filtered(input, conjugate, over, [mode] * n, cval, _each(origin, n, "origin")))


def convolve(
    input: Any, weights: Any, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None
) -> Any:
    if arrays_in([weights]):
        return correlate(input, weights)
    over, kernel = normal_axes(axes, np.ndim(input)), np.asarray(weights)
    origins = [-o - (1 - size % 2) for o, size in zip(_each(origin, len(over), "origin"), kernel.shape, strict=False)]
    return _output(output, _filtered(input, np.flip(kernel), over, [mode] * len(over), cval, origins))


def _axis_by_axis(one: Callable[..., Any], input: Any, axes: Any, output: Any, **options: Any) -> Any:
    """A filter over one axis after the other, each with its own options."""
    x = an_array(input)
    over = normal_axes(axes, x.ndim)
    each = {k: _each(v, len(over), k) for k, v in options.items()}
    for j, axis in enumerate(over):
        x = one(x, axis=axis, **{k: v[j] for k, v in each.items()})
    return _output(output, x)


def uniform_filter1d(
    input: Any, size: int, axis: int = -1, output: Any = None, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    n = operator.index(size)
    if n < 1:
        raise RuntimeError("incorrect filter size")
    return correlate1d(input, np.full(n, 1 / n), axis, output, mode, cval, origin)


def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, *, axes: Any = None
) -> Any:
    def one(x: Any, size: Any, **options: Any) -> Any:
        return x if size <= 1 else uniform_filter1d(x, int(size), cval=cval, **options)

    return _axis_by_axis(one, input, axes, output, size=size, mode=mode, origin=origin)


def gaussian_filter1d(
    input: Any, sigma: float, axis: int = -1, order: int = 0, output: Any = None, mode: str = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, *, radius: Any = None,
) -> Any:  # fmt: skip
    """With the weights that SciPy gives an impulse."""
    from scipy.ndimage import gaussian_filter1d as scipys  # type: ignore[import-untyped]

    if arrays_in([sigma, order, truncate, radius]):
        raise UntraceableError("gaussian_filter is traced with a constant sigma; write scipy.signal.correlate with weights of it")
    reach = int(truncate * float(sigma) + 0.5) if radius is None else radius
    impulse = np.zeros(2 * reach + 1)
    impulse[reach] = 1
    weights = scipys(impulse, sigma, order=order, mode="constant", truncate=truncate, radius=radius)[::-1]
    return correlate1d(input, weights, axis, output, mode, cval, 0)


def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, truncate: float = 4.0,
    *, radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    def one(x: Any, sigma: Any, **options: Any) -> Any:
        if not arrays_in([sigma]) and sigma <= 1e-15:
            return x
        return gaussian_filter1d(x, sigma, cval=cval, truncate=truncate, **options)

    return _axis_by_axis(one, input, axes, output, sigma=sigma, order=order, mode=mode, radius=radius)


def _smoothed_difference(weights: Sequence[int]) -> Callable[..., Any]:
    def filtered(input: Any, axis: int = -1, output: Any = None, mode: Any = "reflect", cval: Any = 0.0) -> Any:
        x = an_array(input)
        modes, along = _each(mode, x.ndim, "mode"), normal_axis(axis, x.ndim)
        x = correlate1d(x, [-1, 0, 1], along, None, modes[along], cval)
        for k in range(x.ndim):
            x = x if k == along else correlate1d(x, weights, k, None, modes[k], cval)
        return _output(output, x)

    return filtered


def laplace(input: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None) -> Any:
    x = an_array(input)
    over = normal_axes(axes, x.ndim)
    parts = [correlate1d(x, [1, -2, 1], k, None, m, cval) for k, m in zip(over, _each(mode, len(over), "mode"), strict=True)]
    return _output(output, sum(parts[1:], parts[0]) if parts else x)


def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: Any = "reflect", cval: Any = 0.0, *, axes: Any = None, **options: Any
) -> Any:
    x = an_array(input)
    over = normal_axes(axes, x.ndim)
    modes, widths = _each(mode, len(over), "mode"), _each(sigma, len(over), "sigma")
    sigmas = [dict(zip(over, widths, strict=True)).get(k, 0.0) for k in range(x.ndim)]
    parts = (
        gaussian_filter(x, sigmas, [2 * (j == k) for j in range(x.ndim)], None, m, cval, **options)
        for k, m in zip(over, modes, strict=True)
    )
    return _output(output, reduce(operator.add, parts) if over else x)


COMPOSED = {"prewitt": _smoothed_difference([1, 1, 1]), "sobel": _smoothed_difference([1, 2, 1])}
