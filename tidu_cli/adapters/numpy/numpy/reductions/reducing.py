"""Reductions along axes, and cumulative ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, lift
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy import indexing
from tidu_cli.adapters.numpy.numpy.elementwise.elementary import where as where_
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.adapters.numpy.numpy.shaping import concatenate
from tidu_cli.graph.types import FLOATS


def _masked(x: Array, mask: Operand, neutral: Any) -> Array:
    return x if not indexing.is_given(mask) or mask is True else where_(mask, x, x.dtype.type(neutral)).convert(x.dtype)


def _summed_dtype(x: Array, dtype: Any) -> Any:
    """What NumPy adds up in: integers of fewer bits than the machine's in the machine's."""
    return np.dtype(dtype) if indexing.is_given(dtype) else np.sum(np.empty(0, x.dtype)).dtype


def _accumulating(op: str, of_bools: str, ufunc: str, neutral: int) -> Callable[..., Array]:
    """Reductions of numbers with an element that changes nothing."""

    def reduced(
        x: Operand, axis: Any = None, dtype: Any = None, out: object = None, keepdims: Any = False, initial: Any = None,
        where: Any = None,
    ) -> Array:  # fmt: skip
        x = an_array(x, initial, where)
        x = _masked(x.convert(_summed_dtype(x, dtype)), where, neutral)
        total = indexing.reduce(x, of_bools if x.type.dtype == "bool" else op, axis, keepdims)
        return apply_ufunc(ufunc, total, lift(initial, total, total.dtype)) if indexing.is_given(initial) else total

    return reduced


sum = _accumulating("reduce_sum", "reduce_or", "add", 0)
prod = _accumulating("reduce_prod", "reduce_and", "multiply", 1)


def _extremum(name: str) -> Callable[..., Array]:
    def extremum(
        x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, initial: Any = None, where: Any = None
    ) -> Array:
        x = an_array(x, initial, where)
        if indexing.is_given(where) and where is not True:
            if not indexing.is_given(initial):
                raise ValueError("where= needs initial=")
            x = where_(where, x, lift(initial, x, x.dtype))
        elif not indexing.is_given(initial) and not math.prod(x.shape[k] for k in indexing.normal_axes(axis, x.ndim)):
            raise ValueError(f"the {name}imum of no elements ({x.type})")
        if x.type.complex:
            raise BuildError(f"{x.type} has no order; take the {name}imum of its magnitude, np.abs")
        extreme = indexing.reduce(x, f"reduce_{name}", axis, keepdims)
        return apply_ufunc(f"{name}imum", extreme, lift(initial, x, x.dtype)) if indexing.is_given(initial) else extreme

    return extremum


max, min = _extremum("max"), _extremum("min")


def _logical(op: str, neutral: bool) -> Callable[..., Array]:
    def reduced(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
        return indexing.reduce(_masked(indexing.truth(an_array(x, where)), where, neutral), op, axis, keepdims)

    return reduced


all, any = _logical("reduce_and", True), _logical("reduce_or", False)


def count_nonzero(x: Array, axis: Any = None, *, keepdims: bool = False) -> Array:
    return sum(indexing.truth(x), axis, keepdims=keepdims)


def ptp(x: Operand, axis: Any = None, out: object = None, keepdims: Any = False) -> Array:
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def _position(op: str) -> Callable[..., Array]:
    def position(x: Array, axis: int | None = None, out: object = None, *, keepdims: Any = False) -> Array:
        if x.type.complex:
            raise BuildError(f"{x.type} has no order; take the {op} of its magnitude, np.abs")
        flat, k = indexing.along(x, axis)
        if not flat.shape[k]:
            raise ValueError(f"{op} of no elements ({x.type})")
        place = flat.emit(op, axes=(k,), index_dtype="i64")
        return place.reshaped(indexing.resized(x.shape, indexing.normal_axes(axis, x.ndim))) if keepdims is True else place

    return position


argmax, argmin = _position("argmax"), _position("argmin")


def _cumulative(op: str) -> Callable[..., Array]:
    def accumulate(
        x: Array, axis: int | None = None, dtype: Any = None, out: object = None, *, include_initial: bool = False
    ) -> Array:
        x = x.convert(_summed_dtype(x, dtype)) if op in ("cumsum", "cumprod") else x
        if axis is None and include_initial and x.ndim > 1:
            raise ValueError("cumulative sums and products of several axes need axis=")
        x, k = indexing.along(x, axis)
        running = x.emit(op, axis=k)
        if include_initial:
            running = concatenate([indexing.filled(x, 0 if op == "cumsum" else 1, indexing.resized(x.shape, k)), running], k)
        return running

    return accumulate


cumsum, cumprod, cummax, cummin = map(_cumulative, ("cumsum", "cumprod", "cummax", "cummin"))


def logsumexp(x: Array, axis: Any = None, keepdims: Any = False) -> Array:
    """log Σ exp x, without overflow (scipy.special.logsumexp)."""
    x = indexing.floating(x)
    real = x.emit("real") if x.type.complex else x
    top = indexing.reduce(real, "reduce_max", axis, True).emit("stop_gradient")
    top = indexing.select(apply_ufunc("isfinite", top), top, indexing.filled(top, 0))
    logarithm = sum((x - top).emit("exp"), axis, keepdims=True).emit("log") + top
    return logarithm if keepdims is True else sum(logarithm, axis)


def softmax(x: Array, axis: Any = None) -> Array:
    """exp x / Σ exp x (scipy.special.softmax)."""
    x = indexing.floating(x)
    powers = (x - indexing.reduce(x, "reduce_max", axis, True).emit("stop_gradient")).emit("exp")
    return powers / sum(powers, axis, keepdims=True)


def log_softmax(x: Array, axis: Any = None) -> Array:
    """log softmax x (scipy.special.log_softmax)."""
    x = indexing.floating(x)
    return x - logsumexp(x, axis, keepdims=True)


def _without_nan(reduction: Callable[..., Array], neutral: float) -> Callable[..., Array]:
    def reduced(x: Operand, *args: Any, **options: Any) -> Array:
        x = an_array(x, *args, *options.values())
        return reduction(where_(indexing.is_nan(x), x.dtype.type(neutral), x) if x.type.inexact else x, *args, **options)

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
        missing = indexing.is_nan(x)
        extreme = extremum(where_(missing, x.dtype.type(neutral), x), axis, **options)
        if indexing.is_given(initial):
            return extreme
        return where_(all(missing, axis, keepdims=keepdims), x.dtype.type(math.nan), extreme)

    return reduced


nanmax, nanmin = _extremum_without_nan(max, -math.inf), _extremum_without_nan(min, math.inf)

COMPOSED: Mapping[str, Callable[..., Any]] = {
    "amax": max,
    "amin": min,
    "cumulative_sum": lambda x, /, *, axis=None, **options: cumsum(an_array(x), axis, **options),
    "cumulative_prod": lambda x, /, *, axis=None, **options: cumprod(an_array(x), axis, **options),
}
