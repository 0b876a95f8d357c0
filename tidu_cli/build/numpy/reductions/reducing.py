"""Reductions along axes, and cumulative ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, an_array, lift
from tidu_cli.build.errors import BuildError
from tidu_cli.build.numpy.elementwise.choosing import where as where_
from tidu_cli.build.numpy.elementwise.elementwise import select, truth
from tidu_cli.build.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.build.numpy.joining import concatenate
from tidu_cli.build.numpy.shaping import normal_axes, normal_axis, ravel
from tidu_cli.graph.types import FLOATS, INTEGERS, ITEMSIZE, SIGNED


def reduce(x: Array, op: str, axis: Any, keepdims: Any) -> Array:
    """A reducing primitive along axes, all for None."""
    axes = normal_axes(axis, x.ndim)
    found = x.emit(op, axes=axes) if axes else x
    return kept(found, x, axes) if keepdims is True else found


def kept(found: Array, x: Array, axes: tuple[int, ...]) -> Array:
    """A reduction of x with its axes kept, of size 1."""
    return found.reshaped(tuple(1 if k in axes else n for k, n in enumerate(x.shape)))


def given(option: Any) -> bool:
    """Whether an option of NumPy's was given."""
    return option is not None and option is not np._NoValue


def _masked(x: Array, mask: Operand, neutral: Any) -> Array:
    return x if not given(mask) or mask is True else where_(mask, x, x.dtype.type(neutral)).convert(x.dtype)


def _summed_dtype(x: Array, dtype: Any) -> Any:
    """NumPy sums integers of fewer bits than the machine's in the machine's."""
    if given(dtype):
        return np.dtype(dtype)
    name = x.type.dtype
    if name == "bool" or (name in SIGNED and ITEMSIZE[name] < 8):
        return np.dtype(np.int64)
    return np.dtype(np.uint64) if name in INTEGERS and name not in SIGNED else x.dtype


def _accumulating(op: str, neutral: int) -> Callable[..., Array]:
    """np.sum or np.prod: reductions of numbers with an element that changes nothing."""

    def reduced(
        x: Operand,
        axis: Any = None,
        dtype: Any = None,
        out: object = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        x = an_array(x, initial, where)
        x = _masked(x.convert(_summed_dtype(x, dtype)), where, neutral)
        if x.type.dtype == "bool":
            found = reduce(x, "reduce_or" if op == "sum" else "reduce_and", axis, keepdims)
        else:
            found = reduce(x, f"reduce_{op}", axis, keepdims)
        if not given(initial):
            return found
        return apply_ufunc("add" if op == "sum" else "multiply", found, lift(initial, found, found.dtype))

    reduced.__name__ = op
    reduced.__doc__ = f"np.{op}."
    return reduced


sum, prod = _accumulating("sum", 0), _accumulating("prod", 1)


def _extremum(x: Operand, op: str, axis: Any, keepdims: Any, initial: Any, where: Any) -> Array:
    x = an_array(x, initial, where)
    if given(where) and where is not True:
        if not given(initial):
            raise ValueError("where= needs initial=")
        x = where_(where, x, lift(initial, x, x.dtype))
    elif not given(initial) and not math.prod(x.shape[k] for k in normal_axes(axis, x.ndim)):
        raise ValueError(f"the {op[7:]}imum of no elements ({x.type})")
    if x.type.complex:
        raise BuildError(f"{x.type} has no order; take the {op[7:]}imum of its magnitude, np.abs")
    found = reduce(x, op, axis, keepdims)
    return apply_ufunc(f"{op[7:]}imum", found, lift(initial, x, x.dtype)) if given(initial) else found


def max(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None) -> Array:
    """np.max."""
    return _extremum(x, "reduce_max", axis, keepdims, initial, where)


def min(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None) -> Array:
    """np.min."""
    return _extremum(x, "reduce_min", axis, keepdims, initial, where)


def all(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
    """np.all."""
    return reduce(_masked(truth(an_array(x, where)), where, True), "reduce_and", axis, keepdims)


def any(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
    """np.any."""
    return reduce(_masked(truth(an_array(x, where)), where, False), "reduce_or", axis, keepdims)


def count_nonzero(x: Operand, axis: Any = None, *, keepdims: bool = False) -> Array:
    """np.count_nonzero."""
    return sum(truth(an_array(x)), axis, keepdims=keepdims)


def ptp(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False) -> Array:
    """np.ptp."""
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def _position(op: str) -> Callable[..., Array]:
    def position(x: Operand, axis: int | None = None, out: object = None, *, keepdims: Any = False) -> Array:
        x = an_array(x)
        if x.type.complex:
            raise BuildError(f"{x.type} has no order; take the {op} of its magnitude, np.abs")
        flat, k = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
        if not flat.shape[k]:
            raise ValueError(f"{op} of no elements ({x.type})")
        found = flat.emit(op, axes=(k,), index_dtype="i64")
        if keepdims is not True:
            return found
        return found.reshaped((1,) * x.ndim) if axis is None else kept(found, x, (k,))

    return position


argmax, argmin = _position("argmax"), _position("argmin")


def _extreme_place_without_nan(place: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def found(x: Operand, axis: int | None = None, out: object = None, *, keepdims: Any = False) -> Array:
        x = an_array(x)
        x = where_(not_a_number(x), x.dtype.type(neutral), x) if x.type.dtype in FLOATS else x
        return place(x, axis, keepdims=keepdims)

    return found


nanargmax, nanargmin = _extreme_place_without_nan(argmax, -math.inf), _extreme_place_without_nan(argmin, math.inf)


def _cumulative(op: str) -> Callable[..., Array]:
    def accumulate(
        x: Operand, axis: int | None = None, dtype: Any = None, out: object = None, *, include_initial: bool = False
    ) -> Array:
        x = an_array(x)
        x = x.convert(_summed_dtype(x, dtype)) if op in ("cumsum", "cumprod") else x
        if axis is None and include_initial and x.ndim > 1:
            raise ValueError("cumulative sums and products of several axes need axis=")
        x, k = (ravel(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
        found = x.emit(op, axis=k)
        if include_initial:
            start = x.constant(x.dtype.type(0 if op == "cumsum" else 1)).broadcast(
                tuple(1 if j == k else n for j, n in enumerate(x.shape))
            )
            found = concatenate([start, found], k)
        return found

    return accumulate


cumsum, cumprod, cummax, cummin = map(_cumulative, ("cumsum", "cumprod", "cummax", "cummin"))


def logsumexp(x: Operand, axis: Any = None, keepdims: Any = False) -> Array:
    """log Σ exp x, without overflow (scipy.special.logsumexp)."""
    x = floating(an_array(x))
    real = x.emit("real") if x.type.complex else x
    top = reduce(real, "reduce_max", axis, True).emit("stop_gradient")
    top = select(apply_ufunc("isfinite", top), top, top.constant(top.dtype.type(0)).broadcast(top.shape))
    found = sum((x - top).emit("exp"), axis, keepdims=True).emit("log") + top
    return found if keepdims is True else sum(found, axis)


def softmax(x: Operand, axis: Any = None) -> Array:
    """exp x / Σ exp x (scipy.special.softmax)."""
    x = floating(an_array(x))
    powers = (x - reduce(x, "reduce_max", axis, True).emit("stop_gradient")).emit("exp")
    return powers / sum(powers, axis, keepdims=True)


def log_softmax(x: Operand, axis: Any = None) -> Array:
    """log softmax x (scipy.special.log_softmax)."""
    x = floating(an_array(x))
    return x - logsumexp(x, axis, keepdims=True)


def floating(x: Array, dtype: Any = None) -> Array:
    """x as floats or complex numbers, which it keeps: integers and bools become f64, as in NumPy's means."""
    if given(dtype):
        return x.convert(np.dtype(dtype))
    return x if x.type.inexact else x.convert("f64")


def not_a_number(x: Array) -> Array:
    """Where x is NaN."""
    return x.emit("ne", x)


def _without_nan(reduction: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def reduced(x: Operand, *args: Any, **options: Any) -> Array:
        x = an_array(x, *args, *options.values())
        return reduction(where_(not_a_number(x), x.dtype.type(neutral), x) if x.type.inexact else x, *args, **options)

    reduced.__doc__ = f"np.nan{reduction.__name__}."
    return reduced


nansum, nanprod = _without_nan(sum, 0), _without_nan(prod, 1)
nancumsum, nancumprod = _without_nan(cumsum, 0), _without_nan(cumprod, 1)


def _extremum_without_nan(extremum: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def reduced(
        x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None
    ) -> Array:
        x = an_array(x, initial, where)
        if x.type.dtype not in FLOATS:
            return extremum(x, axis, keepdims=keepdims, initial=initial, where=where)
        missing = not_a_number(x)
        found = extremum(where_(missing, x.dtype.type(neutral), x), axis, keepdims=keepdims, initial=initial, where=where)
        if given(initial):
            return found
        return where_(all(missing, axis, keepdims=keepdims), x.dtype.type(math.nan), found)

    reduced.__doc__ = f"np.nan{extremum.__name__}."
    return reduced


nanmax, nanmin = _extremum_without_nan(max, -math.inf), _extremum_without_nan(min, math.inf)
