"""Splines of `scipy.interpolate`: knots are constants, values at them and the places where splines are evaluated may be traced.

SciPy makes the spline of zeros, which checks what it is given and has all attributes but the coefficients; these become traced
arrays. Where they depend linearly on the values, SciPy's splines of unit vectors say how. What SciPy raises for values, such as a
periodic spline that is not closed, gives NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import arrays_in, lift
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import indexed

MAX_KNOTS = 2_000
"""Coefficients that depend on all values do so by a dense constant matrix: of 32 MB for as many knots."""


def require_constants(spline: Any, **operands: Any) -> None:
    """Raises UntraceableError for an operand, by its name, that is traced."""
    for name, value in operands.items():
        if arrays_in([value]):
            raise UntraceableError(
                f"scipy.interpolate.{getattr(spline, '__name__', type(spline).__name__)} with a traced {name} cannot be traced: "
                "which polynomial holds where would depend on values; make it a constant"
            )


def get(spline: Any, name: str) -> Any:
    """An attribute, which newer versions of SciPy have behind a property."""
    return getattr(spline, f"_{name}" if isinstance(getattr(type(spline), name, None), property) else name)


def put(spline: Any, name: str, value: Any) -> Any:
    """The spline, which has another attribute now."""
    setattr(spline, f"_{name}" if isinstance(getattr(type(spline), name, None), property) else name, value)
    return spline


def made_of_zeros(name: str, spline: Any, *args: Any, **options: Any) -> None:
    """Have SciPy make a spline, which may be of a subclass of its class."""
    import scipy.interpolate  # type: ignore[import-untyped]

    getattr(scipy.interpolate, name).__init__(spline, *args, **options)


def as_values(y: Any, dtype: str = "f64") -> Any:
    """An operand that is traced, in a dtype that SciPy computes splines in."""
    values = lift(y, arrays_in([y])[0])
    return values.convert("c128" if values.type.complex else dtype)


def zeros(y: Any) -> Any:
    """NumPy's zeros in place of traced values."""
    return np.zeros(y.shape, y.dtype)


def along(steps: Any, y: Any) -> Any:
    """Constants along the first axis of y."""
    return steps.reshape((-1, *(1,) * (y.ndim - 1)))


# Piecewise polynomials.


def _hermite(spline: Any, x: Any, y: Any, slopes: Any) -> None:
    """The cubic polynomials of these values and slopes, along the first axis."""
    h = along(np.diff(x), y)
    chord = (y[1:] - y[:-1]) / h
    bend = (slopes[:-1] + slopes[1:] - 2 * chord) / h
    put(spline, "c", np.stack([bend / h, (chord - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]]))


def _knots(spline: Any) -> Any:
    return np.asarray(get(spline, "x"))


def _cubic_spline(self: Any, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
    require_constants(self, x=x)
    given = y if arrays_in([y]) else arrays_in([bc_type])[0].constant(np.asarray(y))
    values, periodic = as_values(given), isinstance(bc_type, str) and bc_type == "periodic"
    ends = bc_type if isinstance(bc_type, str) else [e if isinstance(e, str) else (e[0], zeros(_as_array(e[1]))) for e in bc_type]
    made_of_zeros("CubicSpline", self, x, zeros(values), axis, ends, extrapolate)
    knots, values = _knots(self), np.moveaxis(values, axis, 0)
    slopes = linear(values, lambda units, n: _slopes(knots, units, bc_type, [np.zeros(n)] * 2), periodic, "CubicSpline")
    for k, end in enumerate([] if isinstance(bc_type, str) else bc_type):
        if not isinstance(end, str):
            alone = _slopes(knots, np.zeros(len(knots)), bc_type, np.eye(2)[k])
            slopes = slopes + along(alone, values) * _as_array(end[1])
    _hermite(self, knots, closed(values) if periodic else values, slopes)


def _as_array(x: Any) -> Any:
    return x if isinstance(x, Array) else np.asarray(x)


def _slopes(x: Any, y: Any, ends: Any, given: Any) -> Any:
    """At the knots, of the spline through y that has these derivatives at its ends, where it has any."""
    from scipy.interpolate import CubicSpline

    if not isinstance(ends, str):
        ends = [e if isinstance(e, str) else (e[0], value) for e, value in zip(ends, given, strict=True)]
    return CubicSpline(x, y, bc_type=ends)(x, 1)


def linear(y: Any, of_units: Callable[[Any, int], Any], periodic: bool, name: str) -> Any:
    """What depends linearly on the values along the first axis, by what it is for unit vectors."""
    n = y.shape[0]
    if n > MAX_KNOTS:
        raise UntraceableError(f"{name} is traced through {MAX_KNOTS:,} points at most, got {n:,}; write np.interp")
    units = np.eye(n) if not periodic else np.concatenate([np.eye(n - 1), np.eye(n - 1)[:1]])
    matrix = np.asarray(of_units(units, units.shape[1]))
    return np.tensordot(matrix, y[: units.shape[1]], 1)


def closed(y: Any) -> Any:
    """The values, NaN where SciPy refuses the last one as another than the first."""
    first, last = y[0], y[-1]
    return np.where(abs(first - last) <= 1e-15 + 1e-15 * abs(last), y, math.nan)


def _cubic_hermite(self: Any, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
    require_constants(self, x=x)
    like = arrays_in([y, dydx])[0]
    values, slopes = as_values(lift(y, like)), as_values(lift(dydx, like))
    made_of_zeros("CubicHermiteSpline", self, x, zeros(values), zeros(slopes), axis, extrapolate)
    _hermite(self, _knots(self), *(np.moveaxis(v, axis, 0) for v in (values, slopes)))


def _pchip(self: Any, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
    """Slopes are weighted harmonic means of those of the chords, 0 at extrema: there the one-sided derivatives differ."""
    require_constants(self, x=x)
    values = as_values(y)
    made_of_zeros("PchipInterpolator", self, x, zeros(values), axis, extrapolate)
    knots, values = _knots(self), np.moveaxis(values, axis, 0)
    h = along(np.diff(knots), values)
    chord = (values[1:] - values[:-1]) / h
    if len(knots) == 2:
        return _hermite(self, knots, values, np.concatenate([chord, chord]))
    before, after = chord[:-1], chord[1:]
    rises = np.sign(before) * np.sign(after) > 0
    late, early = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    mean = (late + early) / (late / np.where(rises, before, 1.0) + early / np.where(rises, after, 1.0))
    ends = [_pchip_end(h[0], h[1], chord[0], chord[1]), _pchip_end(h[-1], h[-2], chord[-1], chord[-2])]
    inner = np.where(rises, mean, 0.0)
    return _hermite(self, knots, values, np.concatenate([ends[0][None], inner, ends[1][None]]))


def _pchip_end(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = (np.sign(m0) != np.sign(m1)) & (abs(slope) > 3.0 * abs(m0))
    return np.where(np.sign(slope) != np.sign(m0), 0.0, np.where(steep, 3.0 * m0, slope))


def _akima(self: Any, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
    require_constants(self, x=x)
    values = as_values(y)
    made_of_zeros("Akima1DInterpolator", self, x, zeros(values), axis, method=method, extrapolate=extrapolate)
    knots, values = _knots(self), np.moveaxis(values, axis, 0)
    chord = (values[1:] - values[:-1]) / along(np.diff(knots), values)
    if len(knots) == 2:
        return _hermite(self, knots, values, np.concatenate([chord, chord]))
    before, after = 2.0 * chord[0] - chord[1], 2.0 * chord[-1] - chord[-2]
    first, last = 2.0 * before - chord[0], 2.0 * after - chord[-1]
    m = np.concatenate([first[None], before[None], chord, after[None], last[None]])
    turns = abs(m[1:] - m[:-1])
    if method == "makima":
        turns = turns + 0.5 * abs(m[1:] + m[:-1])
    ahead, behind = turns[2:], turns[:-2]
    weight = ahead + behind
    clear = weight > 1e-9 * np.max(weight)
    weighted = m[1:-2] + behind / np.where(clear, weight, 1.0) * (m[2:-1] - m[1:-2])
    return _hermite(self, knots, values, np.where(clear, weighted, 0.5 * (m[3:] + m[:-3])))


def _ppoly(self: Any, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
    from scipy.interpolate import PPoly

    require_constants(self, x=x)
    values = as_values(c)
    if not isinstance(self, PPoly):
        raise UntraceableError(f"scipy.interpolate.{type(self).__name__} of traced coefficients cannot be traced; write PPoly")
    PPoly.__init__(self, zeros(values), x, extrapolate, axis)
    put(self, "c", np.moveaxis(values, (axis, axis + 1), (0, 1)))


def _evaluated(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """The polynomial between the knots that x lies between, by Horner's rule; at a knot the one to its right."""
    from scipy.interpolate import PPoly

    knots = _knots(self)
    if not isinstance(self, PPoly) or knots[0] > knots[-1]:
        raise UntraceableError(
            f"scipy.interpolate.{type(self).__name__} with these knots cannot be traced; write PPoly with ascending ones"
        )
    c = get(_derivative(self, nu) if nu else self, "c")
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    like = arrays_in([c, x])[0]
    return turned(in_pieces(lift(c, like), knots, x, extrapolate), np.ndim(x), self.axis)


def in_pieces(c: Any, knots: Any, x: Any, extrapolate: Any) -> Any:
    at = x.convert("f64") if isinstance(x, Array) else lift(x, c, "f64") if arrays_in([x]) else np.asarray(x, float)
    if extrapolate == "periodic":
        at = knots[0] + (at - knots[0]) % (knots[-1] - knots[0])
    k = np.clip(np.searchsorted(knots, at, "right") - 1, 0, len(knots) - 2)
    away = lift(at - (indexed(lift(knots, c), k) if isinstance(k, Array) else knots[k]), c)
    rows = indexed(c, (slice(None), k))
    away = away.reshaped((*away.shape, *(1,) * (c.ndim - 2)))
    value: Any = rows[0]
    for power in range(1, c.shape[0]):
        value = value * away + rows[power]
    if c.shape[0] == 1 or not extrapolate:
        value = np.where(away == away, value, math.nan)
    if not extrapolate or extrapolate == "periodic":
        inside = lift((at >= knots[0]) & (at <= knots[-1]), c)
        value = np.where(inside.reshaped(away.shape), value, math.nan)
    return value


def turned(values: Any, n: int, axis: int) -> Any:
    """With the n axes of the places where the axis of the knots was."""
    return np.moveaxis(values, tuple(range(n)), tuple(range(axis, axis + n))) if axis else values


def _like(self: Any, c: Any, extrapolate: Any) -> Any:
    from scipy.interpolate import PPoly

    spline = PPoly.construct_fast(np.zeros((1, 1)), _knots(self), extrapolate, self.axis)
    return put(spline, "c", c)


def _derivative(self: Any, nu: int = 1) -> Any:
    if nu < 0:
        return _antiderivative(self, -nu)
    c = get(self, "c")
    for _ in range(nu):
        powers = np.arange(c.shape[0] - 1, 0, -1.0)
        c = along(powers, c) * c[:-1] if len(powers) else c * 0.0
    return _like(self, c, self.extrapolate)


def _antiderivative(self: Any, nu: int = 1) -> Any:
    if nu < 0:
        return _derivative(self, -nu)
    c, h = get(self, "c"), np.diff(_knots(self))
    for _ in range(nu):
        c = c / along(np.arange(c.shape[0], 0, -1.0), c)
        area, step = c[0] * 0.0, along(h, c[0])
        for row in c:
            area = (area + row) * step
        c = np.concatenate([c, np.concatenate([area[:1] * 0.0, np.cumsum(area, 0)[:-1]])[None]])
    return _like(self, c, False if self.extrapolate == "periodic" else self.extrapolate)


def _integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if extrapolate == "periodic":
        raise UntraceableError("integrals of periodic splines cannot be traced; write the difference of antiderivative()(x)")
    whole = _antiderivative(self)
    whole.axis = 0
    return whole(b, 0, extrapolate) - whole(a, 0, extrapolate)


PIECEWISE: Mapping[str, Callable[..., Any]] = {
    "CubicSpline": _cubic_spline,
    "CubicHermiteSpline": _cubic_hermite,
    "PchipInterpolator": _pchip,
    "Akima1DInterpolator": _akima,
    "PPoly": _ppoly,
    "PPoly.__call__": _evaluated,
    "PPoly.derivative": _derivative,
    "PPoly.antiderivative": _antiderivative,
    "PPoly.integrate": _integrate,
}
"""Classes, which stand for their `__init__`, and methods."""
