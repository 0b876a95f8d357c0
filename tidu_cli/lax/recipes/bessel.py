"""Bessel functions of any fixed order: powers, exponentials and waves times functions that are smooth, which are interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from tidu_cli.lax.recipes import arrays as xp
from tidu_cli.lax.recipes.arrays import Array, table

_FAR, _HIGH = 2.0**26, 2.0**60


def _positive(function: Callable[[float, Array], Array], parity: bool, limits: tuple[float, float]) -> Callable[..., Array]:
    """The recipe, by a function of orders and numbers above 0, and its limits at 0, if not by a power, and at ∞.

    `parity`: whether those of integral orders are even or odd, and else NaN below 0; otherwise all are NaN there.
    """
    at_zero, at_infinity = limits

    def recipe(attrs: Any, x: Array) -> Array:
        order = float(attrs.order)
        integral = order == int(order)
        size = xp.abs(x)
        inside = (size > 0) & (size < math.inf)
        value = function(order, xp.where(inside, size, 1.0))
        mirrored = -1 if at_zero < 0 and order < 0 and order % 2 == 1 else 1
        start = mirrored * at_zero if not parity or (order < 0 and not integral) else float(order == 0)
        value = xp.where(inside, value, xp.where(size == 0, start, at_infinity))
        below = (value if order % 2 == 0 else -value) if parity and integral else math.nan
        return xp.where(xp.isnan(x), x, xp.where(x < 0, below, value))

    return recipe


def _mirrored(function: Callable[[float, Array], Array], order: float, x: Array, *, sign: bool) -> Array:
    """A function for all orders: those of negative integral ones are of positive ones, with a sign if they are odd."""
    if order >= 0 or order != int(order):
        return function(order, x)
    return function(-order, x) * (-1 if sign and order % 2 else 1)


def _bound(order: float) -> float:
    """Where waves and exponentials take over from powers."""
    return max(16.0, 1.5 * abs(order))


def _least(order: float) -> float:
    """Where x^order is still not near underflow, for what is divided by it; but no less than what is nothing beside 1."""
    return max(2.0**-54, 2 * math.exp((math.lgamma(order + 1) - 640) / order) if order > 1 else 0.0)


def _pieces(order: float, least: float) -> float:
    """Pieces of a table per octave: functions of high order change the faster, by their powers."""
    return least * max(1.0, abs(order) / 8)


@cache
def _entire(of: str, order: float) -> Callable[[Array], Array]:
    """J or e^-x I by its power at 0, (x/2)^order / Γ(order + 1)."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    def scaled(x: Any) -> Any:
        return getattr(special, of)(order, x) * special.gamma(order + 1) * (2 / x) ** order

    return table(scaled, _least(order), _bound(order), _pieces(order, 6.0))


@cache
def _singular(of: str, order: float, high: float) -> Callable[[Array], Array]:
    """Y or e^x K times x^order."""
    from scipy import special

    return table(lambda x: getattr(special, of)(order, x) * x**order, _least(order), high, _pieces(order, 6.0))


@cache
def _amplitude(of: str, order: float, low: float, part: str = "real") -> Callable[[Array], Array]:
    """√x e^(-ix) H⁽¹⁾, √x e^-x I or √x e^x K: the real or the imaginary part."""
    from scipy import special

    def scaled(x: Any) -> Any:
        def near(x: Any) -> Any:
            return getattr(np.sqrt(x) * getattr(special, of)(order, x), part)

        # SciPy's are NaN at great numbers; there they are linear in 1/x.
        limit = 2 * near(2 * _FAR) - near(_FAR)
        return np.where(x < _FAR, near(np.minimum(x, _FAR)), limit + (near(_FAR) - limit) * _FAR / x)

    return table(scaled, low, _HIGH, _pieces(order, 3.0))


def _wave(order: float, x: Array) -> tuple[Array, Array]:
    """H⁽¹⁾ = J + iY of large arguments, as (J, Y)."""
    x = xp.maximum(x, _bound(order))
    real, imaginary = (_amplitude("hankel1e", order, _bound(order), part)(x) for part in ("real", "imag"))
    c, s, root = xp.cos(x), xp.sin(x), xp.sqrt(x)
    return (real * c - imaginary * s) / root, (real * s + imaginary * c) / root


def _power(order: float, x: Array) -> Array:
    """(x/2)^order / Γ(order + 1)."""
    return (x / 2) ** order * (1 / math.gamma(order + 1))


def j(order: float, x: Array) -> Array:
    """J_order(x) for x > 0, of an order that is no negative integer."""
    near = xp.minimum(x, _bound(order))
    return xp.where(x < _bound(order), _power(order, near) * _entire("jv", order)(near), _wave(order, x)[0])


def _y(order: float, x: Array) -> Array:
    if order < 0:  # Abramowitz and Stegun 9.1.2
        first = j(-order, x) * math.sin(-order * math.pi)
        return first if order % 1 == 0.5 else first + _y(-order, x) * math.cos(order * math.pi)
    near = xp.minimum(x, _bound(order))
    small = _singular("yv", order, _bound(order))(near) * near**-order
    if order == 0:  # Abramowitz and Stegun 9.1.13
        small = xp.where(near < 2.0**-50, (xp.log(near) + (np.euler_gamma - math.log(2))) * (2 / math.pi), small)
    return xp.where(x < _bound(order), small, _wave(order, x)[1])


def scaled_i(order: float, x: Array) -> Array:
    """e^-x I_order(x) for x > 0, of an order that is no negative integer."""
    near, far = xp.minimum(x, _bound(order)), xp.maximum(x, _bound(order))
    large = _amplitude("ive", order, _bound(order))(far) / xp.sqrt(far)
    return xp.where(x < _bound(order), _power(order, near) * _entire("ive", order)(near), large)


def _ke(order: float, x: Array) -> Array:
    near, far = xp.minimum(x, 1.0), xp.maximum(x, 1.0)
    small = _singular("kve", order, 1.0)(near) * near**-order
    if order == 0:  # Abramowitz and Stegun 9.6.13
        small = xp.where(near < 2.0**-50, (math.log(2) - np.euler_gamma) - xp.log(near), small)
    return xp.where(x < 1, small, _amplitude("kve", order, 1.0)(far) / xp.sqrt(far))


RECIPES = {
    "bessel_j": _positive(partial(_mirrored, j, sign=True), True, (math.inf, math.nan)),
    "bessel_y": _positive(partial(_mirrored, _y, sign=True), False, (-math.inf, math.nan)),
    "bessel_ie": _positive(partial(_mirrored, scaled_i, sign=False), True, (math.nan, 0.0)),
    "bessel_ke": _positive(lambda order, x: _ke(abs(order), x), False, (math.inf, 0.0)),
    "spherical_bessel_j": _positive(lambda order, x: math.sqrt(math.pi / 2) * (j(order + 0.5, x) / xp.sqrt(x)), True, (1.0, 0.0)),
}
"""By op."""
