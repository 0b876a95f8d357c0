"""Reductions, cumulative ones, sorting, and statistics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidu_cli.build.array import Array, Operand, lift, real_of
from tidu_cli.build.elementwise import apply_ufunc, select, truth
from tidu_cli.build.indexing import indexed
from tidu_cli.build.shaping import an_array, concatenate, expand_dims, normal_axes, normal_axis, ravel
from tidu_cli.build.shaping import where as where_
from tidu_cli.build.trouble import BuildError, UntraceableError
from tidu_cli.graph.types import FLOATS, INTEGERS, ITEMSIZE, SIGNED


def _reduced(x: Array, op: str, axis: Any, keepdims: Any) -> Array:
    axes = normal_axes(axis, x.ndim)
    found = x.emit(op, axes=axes) if axes else x
    return _kept(found, x, axes) if keepdims is True else found


def _kept(found: Array, x: Array, axes: tuple[int, ...]) -> Array:
    return found.reshaped(tuple(1 if k in axes else n for k, n in enumerate(x.shape)))


def _given(option: Any) -> bool:
    return option is not None and option is not np._NoValue


def _masked(x: Array, mask: Operand, neutral: Any) -> Array:
    return x if not _given(mask) or mask is True else where_(mask, x, x.dtype.type(neutral)).convert(x.dtype)


def _summed_dtype(x: Array, dtype: Any) -> Any:
    """NumPy sums integers of fewer bits than the machine's in the machine's."""
    if _given(dtype):
        return np.dtype(dtype)
    name = x.type.dtype
    if name == "bool" or (name in SIGNED and ITEMSIZE[name] < 8):
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if name in INTEGERS and name not in SIGNED else x.dtype


def sum(
    x: Operand,
    axis: Any = None,
    dtype: Any = None,
    out: object = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """np.sum."""
    x = an_array(x)
    x = _masked(x.convert(_summed_dtype(x, dtype)), where, 0)
    found = _reduced(x, "reduce_sum" if x.type.dtype != "bool" else "reduce_or", axis, keepdims)
    return found + initial if _given(initial) else found


def prod(
    x: Operand,
    axis: Any = None,
    dtype: Any = None,
    out: object = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """np.prod."""
    x = an_array(x)
    found = _reduced(_masked(x.convert(_summed_dtype(x, dtype)), where, 1), "reduce_prod", axis, keepdims)
    return found * initial if _given(initial) else found


def _extremum(x: Operand, op: str, axis: Any, keepdims: Any, initial: Any, where: Any) -> Array:
    x = an_array(x)
    if _given(where) and where is not True:
        if not _given(initial):
            raise ValueError("where= needs initial=")
        x = where_(where, x, lift(initial, x, x.dtype))
    elif not _given(initial) and not math.prod(x.shape[k] for k in normal_axes(axis, x.ndim)):
        raise ValueError(f"the {op[7:]}imum of no elements ({x.type})")
    if x.type.complex:
        raise BuildError(f"{x.type} has no order; take the {op[7:]}imum of its magnitude, np.abs")
    found = _reduced(x, op, axis, keepdims)
    return apply_ufunc(f"{op[7:]}imum", found, initial) if _given(initial) else found


def max(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None) -> Array:
    """np.max."""
    return _extremum(x, "reduce_max", axis, keepdims, initial, where)


def min(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None) -> Array:
    """np.min."""
    return _extremum(x, "reduce_min", axis, keepdims, initial, where)


def all(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
    """np.all."""
    return _reduced(_masked(truth(an_array(x)), where, True), "reduce_and", axis, keepdims)


def any(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
    """np.any."""
    return _reduced(_masked(truth(an_array(x)), where, False), "reduce_or", axis, keepdims)


any_, all_ = any, all


def count_nonzero(x: Operand, axis: Any = None, *, keepdims: bool = False) -> Array:
    """np.count_nonzero."""
    return sum(truth(an_array(x)), axis, keepdims=keepdims)


def _count(x: Array, axis: Any) -> int:
    return math.prod(x.shape[k] for k in normal_axes(axis, x.ndim))


def _floating(x: Array, dtype: Any) -> Array:
    if _given(dtype):
        return x.convert(np.dtype(dtype))
    return x if x.type.inexact else x.convert("f64")


def mean(x: Operand, axis: Any = None, dtype: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
    """np.mean."""
    x = an_array(x)
    if _given(where) and where is not True:
        counted = sum(lift(where, x).broadcast(x.shape), axis, keepdims=keepdims)
        return sum(_floating(x, dtype), axis, keepdims=keepdims, where=where) / counted
    x = _floating(x, dtype)
    return sum(x, axis, keepdims=keepdims) / _count(x, axis)


def var(
    x: Operand, axis: Any = None, dtype: Any = None, out: object = None, ddof: float = 0, keepdims: Any = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:  # fmt: skip
    """np.var."""
    x = an_array(x)
    if (_given(where) and where is not True) or _given(mean):
        raise UntraceableError("np.var with where= or mean= cannot be traced; write it as a mean of squares")
    x = _floating(x, dtype)
    n, less = _count(x, axis), correction if _given(correction) else ddof
    off = x - sum(x, axis, keepdims=True) / n
    squares = off.emit("real") * off.emit("real") + off.emit("imag") * off.emit("imag") if x.type.complex else off * off
    return sum(squares, axis, keepdims=keepdims) / builtin_max(n - less, 0)


def std(x: Operand, axis: Any = None, *args: Any, **options: Any) -> Array:
    """np.std."""
    return var(x, axis, *args, **options).emit("sqrt")


def builtin_max(a: float, b: float) -> float:
    """The greater of two numbers (max is NumPy's here)."""
    return a if a > b else b


def average(x: Operand, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Array:
    """np.average."""
    x = an_array(x) if not isinstance(x, Array) else x
    if returned:
        raise UntraceableError("np.average with returned=True cannot be traced; sum the weights yourself")
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    w = lift(weights, x)
    if w.shape != x.shape:
        (along,) = normal_axes(axis, x.ndim)
        w = w.reshaped(tuple(w.size if k == along else 1 for k in range(x.ndim))).broadcast(x.shape)
    return sum(x * w, axis, keepdims=keepdims) / sum(w, axis, keepdims=keepdims)


def ptp(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False) -> Array:
    """np.ptp."""
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def _position(op: str) -> Any:
    def position(x: Operand, axis: int | None = None, out: object = None, *, keepdims: Any = False) -> Array:
        x = an_array(x)
        flat, k = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
        if not flat.shape[k]:
            raise ValueError(f"{op} of no elements ({x.type})")
        found = flat.emit(op, axes=(k,), index_dtype="i64")
        if keepdims is not True:
            return found
        return found.reshaped((1,) * x.ndim) if axis is None else _kept(found, x, (k,))

    return position


argmax, argmin = _position("argmax"), _position("argmin")


def _cumulative(op: str) -> Any:
    def accumulate(
        x: Operand, axis: int | None = None, dtype: Any = None, out: object = None, *, include_initial: bool = False
    ) -> Array:
        x = an_array(x)
        x = x.convert(_summed_dtype(x, dtype)) if op in ("cumsum", "cumprod") else x
        x, k = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
        found = x.emit(op, axis=k)
        if include_initial:
            start = x.constant(x.dtype.type(0 if op == "cumsum" else 1)).broadcast(
                tuple(1 if j == k else n for j, n in enumerate(x.shape))
            )
            found = concatenate([start, found], k)
        return found  # type: ignore[no-any-return]

    return accumulate


cumsum, cumprod, cummax, cummin = map(_cumulative, ("cumsum", "cumprod", "cummax", "cummin"))


def logsumexp(x: Operand, axis: Any = None, keepdims: Any = False, **options: Any) -> Array:
    """log Σ exp x, without overflow (scipy.special.logsumexp)."""
    x = _floating(an_array(x), None)
    real = x.emit("real") if x.type.complex else x
    top = _reduced(real, "reduce_max", axis, True).emit("stop_gradient")
    top = select(apply_ufunc("isfinite", top), top, top.constant(top.dtype.type(0)).broadcast(top.shape))
    found = sum((x - top).emit("exp"), axis, keepdims=True).emit("log") + top
    return found if keepdims is True else sum(found, axis)


def softmax(x: Operand, axis: Any = None) -> Array:
    """exp x / Σ exp x (scipy.special.softmax)."""
    x = _floating(an_array(x), None)
    powers = (x - _reduced(x, "reduce_max", axis, True).emit("stop_gradient")).emit("exp")
    return powers / sum(powers, axis, keepdims=True)  # type: ignore[no-any-return]


def log_softmax(x: Operand, axis: Any = None) -> Array:
    """log softmax x (scipy.special.log_softmax)."""
    x = _floating(an_array(x), None)
    return x - logsumexp(x, axis, keepdims=True)  # type: ignore[no-any-return]


def sort(
    x: Operand, axis: int | None = -1, kind: object = None, order: object = None, *, stable: object = None, descending: bool = False
) -> Array:
    """np.sort."""
    x = an_array(x)
    x, axis = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    found = x.emit("sort", dimension=axis)
    return found.emit("rev", dimensions=(axis,)) if descending else found  # type: ignore[no-any-return]


def argsort(
    x: Operand, axis: int | None = -1, kind: object = None, order: object = None, *, stable: object = None, descending: bool = False
) -> Array:
    """np.argsort; elements that are equal keep their order."""
    x = an_array(x)
    x, axis = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    if descending:
        raise UntraceableError("argsort with descending=True cannot be traced; sort -x")
    places = x.recorder.emit("iota", dtype="i64", shape=x.shape, dimension=axis)
    return x.recorder.emit_all("sort", (x, places), dimension=axis)[1]  # type: ignore[no-any-return]


def median(x: Operand, axis: Any = None, out: object = None, overwrite_input: bool = False, keepdims: Any = False) -> Array:
    """np.median over one axis or all."""
    x = an_array(x)
    if isinstance(axis, tuple):
        raise UntraceableError("np.median over several axes cannot be traced; reshape first")
    flat, k = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    n = flat.shape[k]
    if not n:
        raise ValueError(f"the median of no elements ({x.type})")
    middle = mean(indexed(sort(flat, k), (slice(None),) * k + (slice((n - 1) // 2, n // 2 + 1),)), k)
    if flat.type.dtype in FLOATS:
        unordered = any_(flat.emit("ne", flat), k)
        middle = select(unordered, middle.constant(middle.dtype.type(math.nan)).broadcast(middle.shape), middle)
    if keepdims is not True:
        return middle
    return middle.reshaped((1,) * x.ndim) if axis is None else expand_dims(middle, k)


def clip(
    x: Operand, a_min: Any = None, a_max: Any = None, out: object = None, *, min: Any = None, max: Any = None, **options: Any
) -> Array:
    """np.clip."""
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None:
        x = apply_ufunc("maximum", x, low)
    return an_array(x if high is None else apply_ufunc("minimum", x, high))


def round(x: Operand, decimals: int = 0, out: object = None) -> Array:
    """np.round: halves to even."""
    x = an_array(x)
    if x.type.dtype not in FLOATS:
        if decimals >= 0 and not x.type.complex:
            return x  # type: ignore[no-any-return]
        raise UntraceableError(f"np.round of {x.type} cannot be traced")
    if not decimals:
        return apply_ufunc("rint", x)  # type: ignore[no-any-return]
    scale = 10.0 ** abs(decimals)
    return apply_ufunc("rint", x * scale) / scale if decimals > 0 else apply_ufunc("rint", x / scale) * scale  # type: ignore[no-any-return]


def _without_nan(reduction: Any, neutral: float) -> Any:
    def reduced(x: Operand, axis: Any = None, dtype: Any = None, out: object = None, keepdims: Any = False) -> Array:
        x = an_array(x)
        return reduction(where_(x.emit("ne", x), x.dtype.type(neutral), x), axis, dtype, None, keepdims)  # type: ignore[no-any-return]

    return reduced


nansum, nanprod = _without_nan(sum, 0), _without_nan(prod, 1)


def nanmean(x: Operand, axis: Any = None, dtype: Any = None, out: object = None, keepdims: Any = False) -> Array:
    """np.nanmean."""
    x = an_array(x)
    return nansum(x, axis, dtype, None, keepdims) / sum(x.emit("eq", x), axis, keepdims=keepdims).convert(real_of(x))  # type: ignore[no-any-return]
