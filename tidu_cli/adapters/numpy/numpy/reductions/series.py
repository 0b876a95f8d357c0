"""Samples along an axis: differences, sums of areas, convolutions and polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, lift, lifted, lifted_weak, real_of
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import (
    common_shape,
    filled,
    floating,
    is_given,
    laid_along,
    normal_axes,
    normal_axis,
    part,
    resized,
)
from tidu_cli.adapters.numpy.numpy.reductions.intervals import differences, trapezoids
from tidu_cli.adapters.numpy.numpy.reductions.reducing import sum
from tidu_cli.adapters.numpy.numpy.shaping import MAX_REPEATS, concatenate, expand_dims, ravel


def linspace(
    start: Operand, stop: Operand, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Array:
    """Between ends of which one is traced."""
    a, b = map(floating, lifted_weak(start, stop))
    shape = common_shape(a.shape, b.shape)
    if retstep or not 0 <= num <= MAX_REPEATS:
        raise UntraceableError(f"np.linspace is traced without retstep= and for 0 to {MAX_REPEATS:,} points")
    k = normal_axis(axis, len(shape) + 1)
    a, b = (expand_dims(v.broadcast(shape), k) for v in (a, b))
    share = np.arange(num) / max(num - 1 if endpoint else num, 1)
    shares = a.constant(share, real_of(a)).reshaped(laid_along(k, num, a.ndim))
    points = a + (b - a) * shares
    if endpoint and num > 1:
        points = concatenate([part(points, k, slice(0, num - 1)), b], k)
    return points if dtype is None else points.convert(np.dtype(dtype))


def diff(x: Operand, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    x = an_array(x, prepend, append)
    if not 0 <= n <= 1000:
        raise ValueError("n is from 0 to 1000")
    k = normal_axis(axis, x.ndim)
    ends = [_end(e, x, k) for e in (prepend, append)]
    if n and any(e is not None for e in ends):
        x = concatenate([part for part in (ends[0], x, ends[1]) if part is not None], k)
    for _ in range(n):
        x = differences(x, k)
    return x


def _end(value: Any, x: Array, axis: int) -> Array | None:
    if not is_given(value):
        return None
    end = lift(value, x)
    return end if end.ndim else end.broadcast(resized(x.shape, axis))


def ediff1d(ary: Operand, to_end: Any = None, to_begin: Any = None) -> Array:
    x = diff(ravel(an_array(ary, to_end, to_begin)))
    return concatenate([ravel(lift(part, x, x.dtype)) for part in (to_begin, x, to_end) if part is not None])


def gradient(f: Operand, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences, for distances that are numbers or constant coordinates."""
    f = floating(an_array(f, *varargs))
    axes = normal_axes(axis, f.ndim)
    spacings = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    if len(spacings) != len(axes):
        raise ValueError(f"{len(spacings)} distances for {len(axes)} axes")
    if edge_order != 1 or arrays_in(spacings) or any(np.iscomplexobj(h) for h in spacings):
        raise UntraceableError("np.gradient is traced with edge_order=1 and constant real distances; write differences of slices")
    slopes = [_gradient(f, np.asarray(h, float), k) for h, k in zip(spacings, axes, strict=True)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _gradient(f: Array, h: Any, k: int) -> Array:
    n = f.shape[k]
    if n < 2 or (h.ndim and h.shape != (n,)):
        raise ValueError(f"np.gradient of {f.type} takes at least 2 elements along each axis, and as many coordinates")

    def at(entry: slice) -> Array:
        return part(f, k, entry)

    steps = np.diff(h) if h.ndim else h.reshape(1)
    first = (at(slice(1, 2)) - at(slice(0, 1))) / float(steps[0])
    last = (at(slice(n - 1, n)) - at(slice(n - 2, n - 1))) / float(steps[-1])
    if (steps != steps[0]).any():
        a, b = steps[:-1], steps[1:]
        # The derivative of the parabola through three points.
        weights = (-b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b)))
        before, here, after = (f.constant(w, f.dtype).reshaped(laid_along(k, n - 2, f.ndim)) for w in weights)
        inner = before * at(slice(0, n - 2)) + here * at(slice(1, n - 1)) + after * at(slice(2, n))
    else:
        inner = (at(slice(2, n)) - at(slice(0, n - 2))) / (2 * float(steps[0]))
    return concatenate([first, inner, last], k)


def trapezoid(y: Operand, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    return sum(*trapezoids(y, x, dx, axis))


def polyval(p: Operand, x: Operand) -> Array:
    """By Horner's rule."""
    coefficients, at = lifted(p, x)
    at.recorder.require_room(3 * len(coefficients))  # of each a slice, a product and a sum
    value = filled(at, 0)
    for c in coefficients:
        value = value * at + c
    return value
