"""Order and statistics: sorting, finding places in what is sorted, means, variances, quantiles, covariances and fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import index
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, an_array, arrays_in, lift, lifted_as_arrays, real_of, result_dtype
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.elementwise.elementary import real
from tidu_cli.adapters.numpy.numpy.elementwise.elementary import where as where_
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.adapters.numpy.numpy.indexing import (
    along,
    floating,
    indexed,
    is_given,
    is_nan,
    laid_along,
    normal_axes,
    places,
    resized,
    select,
    squares,
)
from tidu_cli.adapters.numpy.numpy.linear_algebra.decompositions import lstsq
from tidu_cli.adapters.numpy.numpy.linear_algebra.products import matmul
from tidu_cli.adapters.numpy.numpy.reductions.reducing import any as any_
from tidu_cli.adapters.numpy.numpy.reductions.reducing import nansum, sum
from tidu_cli.adapters.numpy.numpy.shaping import concatenate, flip, moveaxis, squeeze, stack
from tidu_cli.graph.sizes.open import OpenSize, larger, surely
from tidu_cli.graph.types import FLOATS

MAX_COMPARISONS = 100_000_000
"""As many comparisons as searchsorted may make: it compares each value with each element."""


def sort(
    x: Array, axis: int | None = -1, kind: object = None, order: object = None, *, stable: object = None, descending: bool = False
) -> Array:
    x, k = along(x, axis)
    ascending = x.emit("sort", dimension=k)
    return flip(ascending, k) if descending else ascending


def argsort(
    x: Array, axis: int | None = -1, kind: object = None, order: object = None, *, stable: object = None, descending: bool = False
) -> Array:
    """Elements that are equal keep their order."""
    x, k = along(x, axis)
    if descending:
        # Of the reversed array and reversed again, so that equal elements keep their order.
        return (x.shape[k] - 1) - flip(argsort(flip(x, k), k), k)
    return x.recorder.emit_all("sort", (x, places(x, x.shape, k)), dimension=k)[1]


def partition(x: Array, kth: Any, axis: int | None = -1, kind: object = None, order: object = None) -> Array:
    """All of it sorted, which is one of the orders that NumPy leaves open."""
    return sort(_partitioned(x, kth, axis), axis)


def argpartition(x: Array, kth: Any, axis: int | None = -1, kind: object = None, order: object = None) -> Array:
    return argsort(_partitioned(x, kth, axis), axis)


def _partitioned(x: Array, kth: Any, axis: int | None) -> Array:
    if arrays_in([kth]):
        raise UntraceableError("np.partition takes places that are not traced; write np.sort")
    flat, k = along(x, axis)
    n = flat.shape[k]
    if any(not -n <= k < n for k in np.ravel(kth).tolist()):
        raise ValueError(f"kth={kth} is out of range for {n} elements")
    return x


def searchsorted(a: Operand, v: Operand, side: str = "left", sorter: Any = None) -> Array:
    """How many elements come before each value. It compares each value with each element."""
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    ordered, values = lifted_as_arrays(a, v)
    if ordered.ndim != 1:
        raise ValueError(f"searchsorted takes a vector, got {ordered.type}")
    if surely(lambda: ordered.size * values.size > MAX_COMPARISONS):
        raise UntraceableError(
            f"searchsorted of {values.size:,} values among {ordered.size:,} elements would compare each with each; "
            f"the most are {MAX_COMPARISONS:,} comparisons"
        )
    if sorter is not None:
        ordered = indexed(ordered, sorter)
    column = values.reshaped((*values.shape, 1))
    before = _before(ordered, column) if side == "left" else ~_before(column, ordered)
    return sum(before, -1)


def _before(x: Array, y: Array) -> Array:
    """Whether x comes before y in sorted order, in which NaN is last."""
    less = x < y
    return less | (~is_nan(x) & is_nan(y)) if x.type.dtype in FLOATS else less


def digitize(x: Operand, bins: Operand, right: bool = False) -> Array:
    """Of bins that are constant, or else ascend."""
    if not arrays_in([bins]):
        edges = np.asarray(bins)
        if edges.ndim == 1 and edges.size > 1 and edges[0] > edges[-1]:
            return edges.size - searchsorted(edges[::-1], x, "right" if right else "left")
    return searchsorted(bins, x, "left" if right else "right")


def interp(x: Operand, xp: Operand, fp: Operand, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """The chord between the points that x lies between, and `left` and `right` of them the outermost values."""
    if period is not None:
        raise UntraceableError("np.interp with period= cannot be traced; take x % period, and add a point at either end")
    like = arrays_in([x, xp, fp, left, right])[0]
    at, points = lift(x, like, "f64"), lift(xp, like, "f64")
    values = lift(fp, like)
    values = values.convert("c128" if values.type.complex else "f64")
    n = points.size
    if points.ndim != 1 or values.shape != points.shape or not n:
        raise ValueError(f"interp takes vectors of points and values of one size, got {points.type} and {values.type}")
    first = values[0] if left is None else left
    last = values[n - 1] if right is None else right
    if n > 1:
        k = apply_ufunc("minimum", apply_ufunc("maximum", searchsorted(points, at, "right") - 1, 0), n - 2)
        x0, y0 = indexed(points, k), indexed(values, k)
        inside = (indexed(values, k + 1) - y0) / (indexed(points, k + 1) - x0) * (at - x0) + y0
    else:
        inside = values[0] + at * 0
    inside = where_(at < points[0], first, where_(at > points[n - 1], last, where_(at == points[n - 1], values[n - 1], inside)))
    return inside.convert(values.dtype)


def _count(x: Array, axis: Any) -> int:
    return math.prod(x.shape[k] for k in normal_axes(axis, x.ndim))


def mean(x: Array, axis: Any = None, dtype: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None) -> Array:
    x = floating(x, dtype)
    if not is_given(where) or where is True:
        return sum(x, axis, keepdims=keepdims) / _count(x, axis)
    counted = sum(lift(where, x).broadcast(x.shape), axis, keepdims=keepdims)
    return sum(x, axis, keepdims=keepdims, where=where) / counted.convert(real_of(x))


def var(
    x: Array, axis: Any = None, dtype: Any = None, out: object = None, ddof: float = 0, keepdims: Any = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:  # fmt: skip
    if (is_given(where) and where is not True) or is_given(mean):
        raise UntraceableError("np.var with where= or mean= cannot be traced; write it as a mean of squares")
    x = floating(x, dtype)
    n, less = _count(x, axis), correction if is_given(correction) else ddof
    off = x - sum(x, axis, keepdims=True) / n
    freedom: Any = n - less
    variance: Array = sum(squares(off), axis, keepdims=keepdims) / larger(freedom, 0)
    return variance


def nanmean(
    x: Operand, axis: Any = None, dtype: Any = None, out: object = None, keepdims: Any = False, *, where: Any = None
) -> Array:
    x = _nan_unless(where, floating(an_array(x, where), dtype))
    count = sum(x.emit("eq", x), axis, keepdims=keepdims).convert(real_of(x))
    return nansum(x, axis, keepdims=keepdims) / count


def _nan_unless(mask: Any, x: Array) -> Array:
    """What where= means to functions that leave out NaN."""
    return where_(mask, x, x.dtype.type(math.nan)) if is_given(mask) and mask is not True else x


def nanvar(
    x: Operand, axis: Any = None, dtype: Any = None, out: object = None, ddof: float = 0, keepdims: Any = False, *,
    where: Any = None, mean: Any = None, correction: Any = None,
) -> Array:  # fmt: skip
    """NaN where no more than ddof elements are numbers."""
    if is_given(mean):
        raise UntraceableError("np.nanvar with mean= cannot be traced; write it as a mean of squares")
    x = _nan_unless(where, floating(an_array(x, where), dtype))
    count = sum(x.emit("eq", x), axis, keepdims=True).convert(real_of(x))
    off = where_(is_nan(x), x.dtype.type(0), x - nansum(x, axis, keepdims=True) / count)
    freedom = count - (correction if is_given(correction) else ddof)
    variance = sum(squares(off), axis, keepdims=True) / where_(freedom > 0, freedom, freedom.dtype.type(math.nan))
    return variance if keepdims is True else sum(variance, axis)


def average(x: Operand, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Array:
    if returned:
        raise UntraceableError("np.average with returned=True cannot be traced; sum the weights yourself")
    x = an_array(x, weights)
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    w = lift(weights, x)
    if w.shape != x.shape:
        (along,) = normal_axes(axis, x.ndim)
        w = w.reshaped(laid_along(along, w.size, x.ndim)).broadcast(x.shape)
    dtype = result_dtype(x, w) if x.type.inexact else result_dtype(x, w, np.float64(0))
    return sum(apply_ufunc("multiply", x, w, dtype=dtype), axis, keepdims=keepdims) / sum(w, axis, dtype, keepdims=keepdims)


def median(x: Array, axis: Any = None, out: object = None, overwrite_input: bool = False, keepdims: Any = False) -> Array:
    flat, axes = _one_axis(x, axis)
    n = flat.shape[-1]
    if not n:
        raise ValueError(f"the median of no elements ({x.type})")
    middle = mean(indexed(sort(flat, -1), (..., slice((n - 1) // 2, n // 2 + 1))), -1)
    medians = _nan_where_unordered(middle, flat)
    return medians.reshaped(resized(x.shape, axes)) if keepdims is True else medians


def _one_axis(x: Array, axis: Any) -> tuple[Array, tuple[int, ...]]:
    """x with the axes given brought to the end and made one, and these axes."""
    axes = normal_axes(axis, x.ndim)
    x = moveaxis(x, axes, range(x.ndim - len(axes), x.ndim)) if axes else x
    left = x.shape[: x.ndim - len(axes)]
    return x.reshaped((*left, math.prod(x.shape[len(left) :]))), axes


def _nan_where_unordered(values: Array, x: Array) -> Array:
    if x.type.dtype not in FLOATS:
        return values
    nan = values.constant(values.dtype.type(math.nan)).broadcast(values.shape)
    return select(any_(is_nan(x), -1).broadcast(values.shape), nan, values)


_ROUNDINGS: Mapping[str, Callable[[float], int]] = {"lower": math.floor, "higher": math.ceil, "nearest": round}


def _quantiles(numpys: Callable[..., Any], shares_of: Callable[[Any], Any]) -> Callable[..., Array]:
    """np.quantile or np.percentile for constant q, with the methods linear, lower, higher, midpoint and nearest."""

    def quantiles(
        x: Operand, q: Any, axis: Any = None, out: object = None, overwrite_input: bool = False, method: str = "linear",
        keepdims: Any = False, *, weights: Any = None, interpolation: Any = None,
    ) -> Array:  # fmt: skip
        if arrays_in([q, weights]) or weights is not None:
            raise UntraceableError("np.quantile is traced for constant q and without weights; sort, and index with traced places")
        if method not in ("linear", "midpoint", *_ROUNDINGS):
            raise UntraceableError(f"np.quantile with method={method!r} cannot be traced; methods are linear, midpoint, lower, ...")
        x = an_array(x)
        shares = shares_of(q)
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError("quantiles are from 0 to 1 (percentiles from 0 to 100)")
        if method == "linear" and shares.dtype.kind in "biu":
            method = "nearest"  # of 0 and 1 NumPy takes the element as it is
        flat, axes = _one_axis(x if method in _ROUNDINGS else floating(x), axis)
        if not flat.shape[-1]:
            raise ValueError(f"the quantile of no elements ({x.type})")
        # NumPy is asked for the dtype, as q gives way if it is a Python number, and else not. It refuses bools and knows no bf16.
        dtype = flat.dtype if x.type.dtype in ("bool", "bf16") else numpys(np.ones(1, x.dtype), q, method=method).dtype
        if isinstance(flat.shape[-1], OpenSize):
            raise UntraceableError(f"the quantile of the open size {flat.shape[-1]} cannot be traced; write np.sort, and an index")
        places = shares * (flat.shape[-1] - 1)
        ordered = sort(flat, -1)
        values = [_nan_where_unordered(_between(ordered, float(place), method, dtype), flat) for place in places.reshape(-1)]
        values = [f.reshaped(resized(x.shape, axes)) for f in values] if keepdims is True else values
        return stack(values).reshaped((*places.shape, *values[0].shape)) if places.ndim else values[0]

    return quantiles


quantile = _quantiles(np.quantile, np.asarray)
percentile = _quantiles(np.percentile, lambda q: np.asarray(np.true_divide(q, 100)))


def _between(ordered: Array, place: float, method: str, dtype: Any) -> Array:
    if method in _ROUNDINGS:
        return indexed(ordered, (..., _ROUNDINGS[method](place))).convert(dtype)
    below, above = math.floor(place), math.ceil(place)
    t = place - below if method == "linear" or below == above else 0.5
    low, high = indexed(ordered, (..., below)), indexed(ordered, (..., above))
    # From the nearer end, as NumPy, so that both ends are exact.
    value: Array = low + (high - low) * dtype.type(t) if t < 0.5 else high - (high - low) * dtype.type(1 - t)
    return value.convert(dtype)


def cov(
    m: Operand, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Array:  # fmt: skip
    """Without weights: computed in f64 or c128, as NumPy does, unless dtype= says otherwise."""
    if fweights is not None or aweights is not None:
        raise UntraceableError("np.cov with weights cannot be traced; write it as a product of what is off the mean")
    variables, *others = lifted_as_arrays(*(v for v in (m, y) if v is not None))
    rows = [_rows(variables, not rowvar and variables.ndim != 1)]
    rows += [_rows(other, not rowvar and other.ndim == 2 and other.shape[0] != 1) for other in others]
    x = concatenate(rows) if others else rows[0]
    x = x.convert(np.result_type(x.dtype, np.float64) if dtype is None else np.dtype(dtype))
    freedom = x.shape[1] - (ddof if ddof is not None else 0 if bias else 1)
    off = x - mean(x, 1, keepdims=True)
    covariance = matmul(off, off.conj().T) / larger(freedom, 0)
    return squeeze(covariance)


def _rows(x: Array, turned: bool) -> Array:
    if x.ndim > 2:
        raise ValueError(f"cov takes vectors and matrices, got {x.type}")
    rows = x if x.ndim == 2 else x.reshaped((1, x.size))
    return rows.T if turned else rows


def corrcoef(x: Operand, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Array:
    """Computed in f64 or c128 unless dtype= says otherwise."""
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    spread = real(c.diagonal()).emit("sqrt")
    return _within_one(c / spread.reshaped((spread.size, 1)) / spread)


def _within_one(x: Array) -> Array:
    if x.type.complex:
        parts = x.emit("real"), x.emit("imag")
        return _within_one(parts[0]).emit("complex", _within_one(parts[1]))
    return apply_ufunc("minimum", apply_ufunc("maximum", x, -1.0), 1.0)


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """By least squares of scaled powers, as NumPy has it. Places that are traced are taken to be enough of them, and apart."""
    x, y, w = (v if v is None else v + 0.0 if isinstance(v, Array) else np.asarray(v) + 0.0 for v in (x, y, w))
    n, order = len(x), index(deg) + 1
    if order < 1 or x.ndim != 1 or y.ndim not in (1, 2) or not n or len(y) != n or (w is not None and w.shape != (n,)):
        raise ValueError("polyfit takes a vector of places, as many values and weights, and a degree from 0 up")
    powers, values = np.vander(x, order), y
    if w is not None:
        powers, values = powers * w[:, None], values * (w[:, None] if y.ndim == 2 else w)
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    powers = powers / scale
    rcond = n * np.finfo(x.dtype).eps if rcond is None else rcond
    scaled, rest, rank, s = lstsq(powers, values, rcond)
    fitted = (scaled.T / scale).T
    if full:
        return fitted, rest, rank, s, rcond
    if not cov:
        return fitted
    spread = np.linalg.inv(np.dot(powers.T, powers)) / np.outer(scale, scale)
    if isinstance(cov, str) and cov == "unscaled":
        return fitted, spread if y.ndim == 1 else spread[:, :, None]
    if n <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    return fitted, (spread if y.ndim == 1 else spread[:, :, None]) * (rest / (n - order))


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "std": lambda x, *args, **options: var(an_array(x), *args, **options).emit("sqrt"),
    "nanstd": lambda x, *args, **options: nanvar(x, *args, **options).emit("sqrt"),
}
