"""Reductions along axes, and cumulative ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, lift, lifted, lifted_weak, real_of
from tidu_cli.adapters.numpy.errors import BuildError, UntraceableError
from tidu_cli.adapters.numpy.numpy.elementwise.elementary import where as where_
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.adapters.numpy.numpy.indexing import (
    along,
    common_shape,
    filled,
    floating,
    is_given,
    is_nan,
    laid_along,
    normal_axes,
    normal_axis,
    part,
    reduce,
    resized,
    select,
    truth,
)
from tidu_cli.adapters.numpy.numpy.shaping import MAX_REPEATS, concatenate, expand_dims, ravel
from tidu_cli.graph.types import FLOATS


def _masked(x: Array, mask: Operand, neutral: Any) -> Array:
    return x if not is_given(mask) or mask is True else where_(mask, x, x.dtype.type(neutral)).convert(x.dtype)


def _summed_dtype(x: Array, dtype: Any) -> Any:
    """What NumPy adds up in: integers of fewer bits than the machine's in the machine's."""
    return np.dtype(dtype) if is_given(dtype) else np.sum(np.empty(0, x.dtype)).dtype


def _accumulating(op: str, of_bools: str, ufunc: str, neutral: int) -> Callable[..., Array]:
    """Reductions of numbers with an element that changes nothing."""

    def reduced(
        x: Operand, axis: Any = None, dtype: Any = None, out: object = None, keepdims: Any = False, initial: Any = None,
        where: Any = None,
    ) -> Array:  # fmt: skip
        x = an_array(x, initial, where)
        x = _masked(x.convert(_summed_dtype(x, dtype)), where, neutral)
        found = reduce(x, of_bools if x.type.dtype == "bool" else op, axis, keepdims)
        return apply_ufunc(ufunc, found, lift(initial, found, found.dtype)) if is_given(initial) else found

    return reduced


sum = _accumulating("reduce_sum", "reduce_or", "add", 0)
prod = _accumulating("reduce_prod", "reduce_and", "multiply", 1)


def _extremum(name: str) -> Callable[..., Array]:
    def extremum(
        x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None
    ) -> Array:
        x = an_array(x, initial, where)
        if is_given(where) and where is not True:
            if not is_given(initial):
                raise ValueError("where= needs initial=")
            x = where_(where, x, lift(initial, x, x.dtype))
        elif not is_given(initial) and not math.prod(x.shape[k] for k in normal_axes(axis, x.ndim)):
            raise ValueError(f"the {name}imum of no elements ({x.type})")
        if x.type.complex:
            raise BuildError(f"{x.type} has no order; take the {name}imum of its magnitude, np.abs")
        found = reduce(x, f"reduce_{name}", axis, keepdims)
        return apply_ufunc(f"{name}imum", found, lift(initial, x, x.dtype)) if is_given(initial) else found

    return extremum


max, min = _extremum("max"), _extremum("min")


def _logical(op: str, neutral: bool) -> Callable[..., Array]:
    def reduced(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
        return reduce(_masked(truth(an_array(x, where)), where, neutral), op, axis, keepdims)

    return reduced


all, any = _logical("reduce_and", True), _logical("reduce_or", False)


def count_nonzero(x: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    return sum(truth(x), axis, keepdims=keepdims)


def ptp(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False) -> Array:
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def _position(op: str) -> Callable[..., Array]:
    def position(x: Array, axis: int | None = None, out: object = None, *, keepdims: Any = False) -> Array:
        if x.type.complex:
            raise BuildError(f"{x.type} has no order; take the {op} of its magnitude, np.abs")
        flat, k = along(x, axis)
        if not flat.shape[k]:
            raise ValueError(f"{op} of no elements ({x.type})")
        found = flat.emit(op, axes=(k,), index_dtype="i64")
        return found.reshaped(resized(x.shape, normal_axes(axis, x.ndim))) if keepdims is True else found

    return position


argmax, argmin = _position("argmax"), _position("argmin")


def _cumulative(op: str) -> Callable[..., Array]:
    def accumulate(
        x: Array, axis: int | None = None, dtype: Any = None, out: object = None, *, include_initial: bool = False
    ) -> Array:
        x = x.convert(_summed_dtype(x, dtype)) if op in ("cumsum", "cumprod") else x
        if axis is None and include_initial and x.ndim > 1:
            raise ValueError("cumulative sums and products of several axes need axis=")
        x, k = along(x, axis)
        found = x.emit(op, axis=k)
        if include_initial:
            found = concatenate([filled(x, 0 if op == "cumsum" else 1, resized(x.shape, k)), found], k)
        return found

    return accumulate


cumsum, cumprod, cummax, cummin = map(_cumulative, ("cumsum", "cumprod", "cummax", "cummin"))


def logsumexp(x: Array, axis: Any = None, keepdims: Any = False) -> Array:
    """log Σ exp x, without overflow (scipy.special.logsumexp)."""
    x = floating(x)
    real = x.emit("real") if x.type.complex else x
    top = reduce(real, "reduce_max", axis, True).emit("stop_gradient")
    top = select(apply_ufunc("isfinite", top), top, filled(top, 0))
    found = sum((x - top).emit("exp"), axis, keepdims=True).emit("log") + top
    return found if keepdims is True else sum(found, axis)


def softmax(x: Array, axis: Any = None) -> Array:
    """exp x / Σ exp x (scipy.special.softmax)."""
    x = floating(x)
    powers = (x - reduce(x, "reduce_max", axis, True).emit("stop_gradient")).emit("exp")
    return powers / sum(powers, axis, keepdims=True)


def log_softmax(x: Array, axis: Any = None) -> Array:
    """log softmax x (scipy.special.log_softmax)."""
    x = floating(x)
    return x - logsumexp(x, axis, keepdims=True)


def _without_nan(reduction: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def reduced(x: Operand, *args: Any, **options: Any) -> Array:
        x = an_array(x, *args, *options.values())
        return reduction(where_(is_nan(x), x.dtype.type(neutral), x) if x.type.inexact else x, *args, **options)

    return reduced


nansum, nanprod = _without_nan(sum, 0), _without_nan(prod, 1)
nancumsum, nancumprod = _without_nan(cumsum, 0), _without_nan(cumprod, 1)
nanargmax, nanargmin = _without_nan(argmax, -math.inf), _without_nan(argmin, math.inf)


def _extremum_without_nan(extremum: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def reduced(
        x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None
    ) -> Array:
        x = an_array(x, initial, where)
        options = {"keepdims": keepdims, "initial": initial, "where": where}
        if x.type.dtype not in FLOATS:
            return extremum(x, axis, **options)
        missing = is_nan(x)
        found = extremum(where_(missing, x.dtype.type(neutral), x), axis, **options)
        return found if is_given(initial) else where_(all(missing, axis, keepdims=keepdims), x.dtype.type(math.nan), found)

    return reduced


nanmax, nanmin = _extremum_without_nan(max, -math.inf), _extremum_without_nan(min, math.inf)

COMPOSED: Mapping[str, Callable[..., Any]] = {
    "amax": max,
    "amin": min,
    "cumulative_sum": lambda x, /, *, axis=None, **options: cumsum(an_array(x), axis, **options),
    "cumulative_prod": lambda x, /, *, axis=None, **options: cumprod(an_array(x), axis, **options),
}


# What lies between neighbouring samples along an axis.


def neighbours(x: Array, axis: int) -> tuple[Array, Array]:
    """Of each two elements that follow each other the second one and the first one."""
    return part(x, axis, slice(1, None)), part(x, axis, slice(None, -1))


def differences(x: Array, axis: int) -> Array:
    """Of each two elements that follow each other the difference; of bools, whether they differ."""
    after, before = neighbours(x, axis)
    return after.emit("ne", before) if x.type.dtype == "bool" else after - before


def trapezoids(y: Operand, x: Any, dx: Any, axis: int) -> tuple[Array, int]:
    """The areas between neighbouring samples y at the places x, `dx` apart if None, and the axis along which they lie."""
    like = arrays_in([y, x, dx])[0]
    y = lift(y, like)
    k = normal_axis(axis, y.ndim)
    width = dx
    if x is not None:
        points = lift(x, like)
        if points.ndim == 1:
            points = points.reshaped(laid_along(k, points.size, y.ndim))
        width = differences(points, k)
    after, before = neighbours(y, k)
    return width * (after + before) / 2.0, k


# Samples along an axis: differences, sums of areas, convolutions and polynomials.


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
    found = a + (b - a) * shares
    if endpoint and num > 1:
        found = concatenate([part(found, k, slice(0, num - 1)), b], k)
    return found if dtype is None else found.convert(np.dtype(dtype))


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
    found = [_gradient(f, np.asarray(h, float), k) for h, k in zip(spacings, axes, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


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
    found = filled(at, 0)
    for c in coefficients:
        found = found * at + c
    return found
