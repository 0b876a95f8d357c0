"""Splines of `scipy.interpolate` as sums of basis functions, and `interp1d`: the knots are constants, as of `piecewise`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import arrays_in, lift
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import indexed
from tidu_cli.adapters.numpy.scipy import piecewise


def _bspline(self: Any, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
    piecewise.require_constants(self, t=t)
    values = piecewise.as_values(c)
    piecewise.made_of_zeros("BSpline", self, t, piecewise.zeros(values), k, extrapolate, axis)
    piecewise.put(self, "c", np.moveaxis(values, axis, 0))


def _local(spline: Any, x: Any, nu: int, extrapolate: Any) -> tuple[Any, Any]:
    """The k + 1 basis functions that are not 0 at constant places, and the numbers of their coefficients.

    As they are neighbours, the splines whose coefficients are 1 at each k + 1st place have one of them each.
    """
    from scipy.interpolate import BSpline  # type: ignore[import-untyped]

    t, k = np.asarray(piecewise.get(spline, "t")), spline.k
    n = len(t) - k - 1
    comb = (np.arange(n)[:, None] % (k + 1) == np.arange(k + 1)).astype(float)
    values = BSpline(t, comb, k)(x, nu, extrapolate)
    at = t[k] + (x - t[k]) % (t[n] - t[k]) if extrapolate == "periodic" else x
    first = np.clip(np.searchsorted(t, at, "right") - 1, k, n - 1) - k
    return values, first[..., None] + (np.arange(k + 1) - first[..., None]) % (k + 1)


def _weighted(c: Any, weights: Any, numbers: Any) -> Any:
    rows = indexed(c, numbers)
    factors = weights.reshape((*weights.shape, *(1,) * (c.ndim - 1)))
    return np.sum(rows * factors, weights.ndim - 1)


def _bspline_evaluated(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    c = piecewise.get(self, "c")
    c = lift(c, arrays_in([c, x])[0])
    if not arrays_in([x]):
        return piecewise.turned(_weighted(c, *_local(self, np.asarray(x, float), nu, extrapolate)), np.ndim(x), self.axis)
    t, k = np.asarray(piecewise.get(self, "t")), self.k
    if not k:
        return piecewise.turned(
            piecewise.in_pieces(c[: len(t) - 1][None] * float(not nu), t, x, extrapolate), np.ndim(x), self.axis
        )
    if t[k] == t[k + 1] or t[-k - 1] == t[-k - 2]:
        raise UntraceableError(f"BSpline with {k + 2} knots at one end cannot be traced at traced places; leave one of them out")
    knots = np.unique(t[k : len(t) - k])
    rows = [_weighted(c, *_local(self, knots[:-1], m, True)) / math.factorial(m - nu) for m in range(k, nu - 1, -1)]
    pieces = np.stack(rows) if rows else c[:1][None].broadcast((1, len(knots) - 1, *c.shape[1:])) * 0.0
    return piecewise.turned(piecewise.in_pieces(pieces, knots, x, extrapolate), np.ndim(x), self.axis)


def _of_coefficients(self: Any, function: Callable[[Any], Any]) -> tuple[Any, Any]:
    """What SciPy makes of the spline whose coefficients are unit vectors, and these here."""
    from scipy.interpolate import BSpline

    t = np.asarray(piecewise.get(self, "t"))
    c = piecewise.get(self, "c")[: len(t) - self.k - 1]
    if len(c) > piecewise.MAX_KNOTS:
        raise UntraceableError(f"BSpline is derived with {piecewise.MAX_KNOTS:,} coefficients at most, got {len(c):,}")
    return function(BSpline(t, np.eye(len(c)), self.k, self.extrapolate)), c


def _bspline_derived(name: str) -> Callable[..., Any]:
    def derived(self: Any, nu: int = 1) -> Any:
        spline, c = _of_coefficients(self, lambda units: getattr(units, name)(nu))
        matrix = np.asarray(piecewise.get(spline, "c"))
        spline.axis = self.axis
        return piecewise.put(spline, "c", np.tensordot(matrix, c, 1))

    return derived


def _bspline_integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if not arrays_in([a, b]):
        weights, c = _of_coefficients(self, lambda units: units.integrate(a, b, extrapolate))
        return np.tensordot(weights, c, 1)
    if extrapolate == "periodic":
        raise UntraceableError("integrals of periodic splines cannot be traced; write the difference of antiderivative()(x)")
    whole, ends = _bspline_derived("antiderivative")(self), np.asarray(piecewise.get(self, "t"))[[self.k, -self.k - 1]]
    whole.axis = 0
    a, b = (a, b) if extrapolate else (np.clip(lift(v, arrays_in([a, b])[0]), *ends) for v in (a, b))
    return whole(b, 0, True) - whole(a, 0, True)


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Any:
    from scipy.interpolate import make_interp_spline as scipys

    piecewise.require_constants(make_interp_spline, x=x, t=t, bc_type=bc_type)
    values = piecewise.as_values(y)
    spline = scipys(x, piecewise.zeros(values), k, t, bc_type, axis)

    def coefficients(units: Any, n: int) -> Any:
        ends = bc_type
        if bc_type is not None and not isinstance(bc_type, str):
            ends = [e if e is None or isinstance(e, str) else [(order, np.zeros(n)) for order, _ in e] for e in bc_type]
        return piecewise.get(scipys(x, units, k, t, ends), "c")

    first = np.moveaxis(values, axis, 0)
    sums = piecewise.linear(first, coefficients, bc_type == "periodic", "make_interp_spline")
    constant = np.asarray(piecewise.get(spline, "c"))
    sums = sums + constant if constant.any() else sums
    return piecewise.put(spline, "c", sums * (piecewise.closed(first)[0] * 0 + 1) if bc_type == "periodic" else sums)


def _interp1d(self: Any, x: Any, y: Any, kind: Any = "linear", axis: int = -1, *args: Any, **options: Any) -> None:
    piecewise.require_constants(self, x=x, fill_value=[*args, *options.values()])
    values = piecewise.as_values(y, "f32" if arrays_in([y])[0].type.dtype == "f32" else "f64")
    piecewise.made_of_zeros("interp1d", self, x, piecewise.zeros(values), kind, axis, *args, **options)
    options |= dict(zip(("copy", "bounds_error", "fill_value", "assume_sorted"), args, strict=False))
    order = slice(None) if options.get("assume_sorted") else np.argsort(np.asarray(x), kind="mergesort")
    first = np.moveaxis(values, self.axis, 0)[order]
    self.y = np.moveaxis(first, 0, self.axis)
    if self._kind == "spline":
        self._spline = make_interp_spline(self.x, first.reshaped((len(first), math.prod(first.shape[1:]))), self._spline.k)
    if self._kind in ("previous", "next") and isinstance(options.get("fill_value"), str):  # to extrapolate
        end, value = ("above", first[-1]) if self._kind == "previous" else ("below", first[0])
        setattr(self, f"_fill_value_{end}", value)


def _interp1d_evaluated(self: Any, x: Any) -> Any:
    from scipy.interpolate import interp1d

    if not isinstance(self, interp1d):
        raise UntraceableError(f"scipy.interpolate.{type(self).__name__} cannot be traced; write CubicSpline or BSpline")
    like = arrays_in([x, self.y])[0]
    at: Any = lift(x, like, "f64") if arrays_in([x]) else np.asarray(x, float)
    if not isinstance(at, Array) and not self._extrapolate:
        self._check_bounds(at.reshape(-1))
    y = lift(np.moveaxis(self.y, self.axis, 0), like)
    value = _bspline_evaluated(self._spline, at) if self._kind == "spline" else _by_kind(self, y, at)
    value = value.reshaped((*np.shape(at), *y.shape[1:]))  # splines are of rows
    value = value * math.nan if "nan" in self._call.__name__ else value  # of constant values, which make all of a spline NaN
    value = value.convert(np.result_type(y.dtype, np.float64) if self._kind in ("spline", "linear") else y.dtype)
    if not self._extrapolate:
        lower, upper = (lift(c, like).reshaped((*np.shape(at), *(1,) * (y.ndim - 1))) for c in (at < self.x[0], at > self.x[-1]))
        beyond = (self._fill_value_below, self._fill_value_above)
        below, above = (math.nan if self.bounds_error else np.reshape(v, y.shape[1:] if np.size(v) > 1 else ()) for v in beyond)
        bounded: Any = np.where(lower, below, np.where(upper, above, value))
        value = bounded.convert(value.dtype)
    return piecewise.turned(value, np.ndim(at), self.axis)


def _by_kind(self: Any, y: Any, at: Any) -> Any:
    n, x = len(self.x), np.asarray(self.x, float)
    if self._kind in ("previous", "next"):
        k = np.clip(np.searchsorted(self._x_shift, at, self._side), 1 - self._ind, n - self._ind) + self._ind - 1
        return indexed(y, k)
    if self._kind != "linear":
        return indexed(y, np.clip(np.searchsorted(self.x_bds, at, self._side), 0, n - 1))
    c = np.stack([(y[1:] - y[:-1]) / piecewise.along(np.diff(x), y), y[:-1]])
    return piecewise.in_pieces(c, x, at, True)


COMPOSED: Mapping[str, Callable[..., Any]] = {
    **piecewise.PIECEWISE,
    "BSpline": _bspline,
    "interp1d": _interp1d,
    "BSpline.__call__": _bspline_evaluated,
    "BSpline.derivative": _bspline_derived("derivative"),
    "BSpline.antiderivative": _bspline_derived("antiderivative"),
    "BSpline.integrate": _bspline_integrate,
    "interp1d.__call__": _interp1d_evaluated,
}
"""All of them, by SciPy's names."""
