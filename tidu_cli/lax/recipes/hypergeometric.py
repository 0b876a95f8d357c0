"""Hypergeometric functions with fixed parameters, and Bessel functions of fixed orders, of which ₀F₁ is made.

Bessel functions are powers, exponentials and waves times functions that are smooth, which are interpolated; the others are
polynomials, series, and exponentials and powers times what is interpolated.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tidu_cli.lax.recipes import arrays as xp
from tidu_cli.lax.recipes.arrays import Array, polynomial, table

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


def bessel_j(order: float, x: Array) -> Array:
    """J_order(x) for x > 0, of an order that is no negative integer."""
    near = xp.minimum(x, _bound(order))
    return xp.where(x < _bound(order), _power(order, near) * _entire("jv", order)(near), _wave(order, x)[0])


def _y(order: float, x: Array) -> Array:
    if order < 0:  # Abramowitz and Stegun 9.1.2
        first = bessel_j(-order, x) * math.sin(-order * math.pi)
        return first if order % 1 == 0.5 else first + _y(-order, x) * math.cos(order * math.pi)
    near = xp.minimum(x, _bound(order))
    small = _singular("yv", order, _bound(order))(near) * near**-order
    if order == 0:  # Abramowitz and Stegun 9.1.13
        small = xp.where(near < 2.0**-50, (xp.log(near) + (np.euler_gamma - math.log(2))) * (2 / math.pi), small)
    return xp.where(x < _bound(order), small, _wave(order, x)[1])


def scaled_bessel_i(order: float, x: Array) -> Array:
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


BESSEL = {
    "bessel_j": _positive(partial(_mirrored, bessel_j, sign=True), True, (math.inf, math.nan)),
    "bessel_y": _positive(partial(_mirrored, _y, sign=True), False, (-math.inf, math.nan)),
    "bessel_ie": _positive(partial(_mirrored, scaled_bessel_i, sign=False), True, (math.nan, 0.0)),
    "bessel_ke": _positive(lambda order, x: _ke(abs(order), x), False, (math.inf, 0.0)),
    "spherical_bessel_j": _positive(
        lambda order, x: math.sqrt(math.pi / 2) * (bessel_j(order + 0.5, x) / xp.sqrt(x)), True, (1.0, 0.0)
    ),
}
"""By op."""


def _terms(above: Sequence[float], below: Sequence[float], count: int) -> list[float]:
    """Coefficients of a hypergeometric series."""
    coefficients = [1.0]
    for k in range(count - 1):
        coefficients.append(coefficients[-1] * math.prod(a + k for a in above) / math.prod((*(b + k for b in below), k + 1.0)))
    return coefficients


def _degree(*parameters: float) -> int | None:
    """Of the polynomial that a series with these is, if one of them is an integer up to 0."""
    return min((int(-a) for a in parameters if a <= 0 and a == int(a)), default=None)


def _terminating(degree: int, upper: Sequence[float], lower: float, x: Array) -> Array:
    """The series with -degree and, of Gauss' functions, one more parameter above, for any x."""
    if degree == 0:
        return xp.where(xp.isnan(x), x, 1.0)
    # Near its zeros, where powers cancel, by the parameter below which it terminates; Abramowitz and Stegun 13.4.1, 15.2.10.
    bound = 16.0 if upper else 8.0 * (degree + abs(lower) + 1)
    near = xp.clip(x, -bound, bound)
    before, value = xp.full_like(x, 1.0), 1 - near * (math.prod(upper) / lower)
    for k in range(1, degree):
        factor = (2 * k + lower) - near * (k + upper[0] if upper else 1.0)
        before, value = value, (factor * value - (k * (1 - near) if upper else float(k)) * before) * (1 / (lower + k))
    far = polynomial(_terms((-degree, *upper), (lower,), degree + 1), x)
    return xp.where(xp.abs(x) <= bound, value, far)


def _hyp0f1(attrs: Any, x: Array) -> Array:
    # Abramowitz and Stegun 9.1.69, 9.6.47; e^(2 √10^6) is infinite.
    b = float(attrs.b)
    size = xp.where(x > 0, xp.minimum(x, 1e6), xp.minimum(xp.abs(x), sys.float_info.max))
    near, z = xp.clip(x, -1.0, 1.0), 2 * xp.sqrt(xp.maximum(size, 1.0))
    power, half = math.gamma(b) * (z / 2) ** (1 - b), xp.exp(z / 4)
    above = half * half * (scaled_bessel_i(b - 1, z) * power) * half * half
    value = xp.where(xp.abs(x) <= 1, polynomial(_terms((), (b,), 20), near), xp.where(x > 0, above, bessel_j(b - 1, z) * power))
    return xp.where(xp.isnan(x) | (x == -math.inf), math.nan, value)


@cache
def _kummer(a: float, b: float) -> Callable[[Array], Array]:
    """e^-x x^(b - a) ₁F₁(a, b, x) from 1 on."""
    from scipy import special  # slow to import

    def scaled(x: Any) -> Any:
        near, far = np.minimum(x, 500.0), np.maximum(x, 500.0)
        series = math.gamma(b) / math.gamma(a) * polynomial(_terms((1 - a, b - a), (), 30), 1 / far)  # 13.5.1
        return np.where(x < 500, special.hyp1f1(a, b, near) * np.exp(-near) * near ** (b - a), series)

    return table(scaled, 1.0, 2.0**40, 4.0)


def _hyp1f1(attrs: Any, x: Array) -> Array:
    a, b = float(attrs.a), float(attrs.b)
    degree = _degree(a)
    if degree is not None:
        return _terminating(degree, (), b, x)

    def scaled(a: float, y: Array) -> Array:
        """e^-y ₁F₁(a, b, y), for y from 1."""
        degree = _degree(a)
        if degree is not None:
            return _terminating(degree, (), b, xp.minimum(y, 2000.0)) * xp.exp(-y)
        return _kummer(a, b)(y) * y ** (a - b)

    above, below = xp.clip(x, 1.0, 2600.0), xp.maximum(xp.where(x < 0, -x, 1.0), 1.0)
    root = xp.exp(above / 4)
    series = polynomial(_terms((a,), (b,), 30), xp.clip(x, -1.0, 1.0))
    # Kummer's transformation below 0; 13.1.27.
    large = xp.where(x > 0, root * scaled(a, above) * root * root * root, scaled(b - a, below))
    return xp.where(xp.isnan(x), x, xp.where(xp.abs(x) <= 1, series, large))


_NEAR_1 = 2.0**-30
"""The distance from 1 below which two terms of a series are enough."""


def _around_1(a: float, b: float, c: float, u: Array) -> Array:
    """₂F₁(a, b, c, 1 - u) for c - a - b ≥ 0 and u near 0: A + B u + (C + D u) W, where W is u^(c - a - b), ln u or u ln u."""
    from scipy import special

    d = c - a - b
    start = float(special.hyp2f1(a, b, c, 1.0)) if d > 0 else 0.0
    wave = float(special.gamma(c) * special.rgamma(a) * special.rgamma(b))
    if d == 0:  # Abramowitz and Stegun 15.3.10
        constants = [wave * (a * b) ** n * (2 * special.psi(n + 1) - special.psi(a + n) - special.psi(b + n)) for n in (0, 1)]
        return float(constants[0]) + float(constants[1]) * u - (wave + wave * a * b * u) * xp.log(u)
    if d == 1:  # 15.3.11
        return start + wave * u * (xp.log(u) + float(special.psi(a + 1) + special.psi(b + 1) - special.psi(1) - special.psi(2)))
    value = start + start * a * b / (1 - d) * u  # 15.3.6
    if d < 2:
        wave *= float(special.gamma(-d))
        value = value + (wave + wave * (c - a) * (c - b) / (1 + d) * u) * u**d
    return value


@cache
def _gauss(a: float, b: float, c: float) -> Callable[[Array], Array]:
    """₂F₁(a, b, c, 1 - u), for c - a - b ≥ 0 and u up to 1."""
    from scipy import special

    def scaled(u: Any) -> Any:
        def near(k: int) -> Any:
            """The derivative of order k, but for a factor. Near 1 by complex numbers: for real ones SciPy's loses digits there."""
            parameters = a + k, b + k, c + k
            return np.where(u < 0.1, special.hyp2f1(*parameters, at + 0j).real, special.hyp2f1(*parameters, at))

        at = 1 - u  # which is rounded: what that makes is put right by the derivative, 15.2.1
        lost = (1 - at) - u
        return near(0) + np.where(lost == 0, 0.0, near(1) * (a * b / c) * lost)

    return table(scaled, _NEAR_1, 1.0)


def _within(a: float, b: float, c: float, u: Array) -> Array:
    """₂F₁(a, b, c, 1 - u), for c - a - b ≥ 0 and 0 < u ≤ 1."""
    return xp.where(u < _NEAR_1, _around_1(a, b, c, xp.minimum(u, _NEAR_1)), _gauss(a, b, c)(u))


def _elementary(degree: int, a: float, b: float, c: float, x: Array) -> Array:
    """₂F₁(a, b, c, x) where c - a or c - b is -degree: a polynomial times a power; Abramowitz and Stegun 15.3.3."""
    excess = a + b - c
    bound = 2.0 ** (900 / max(degree, abs(excess), abs(degree - excess), 1.0))  # beyond which all is a power
    inside = x != 1 if excess == int(excess) else x < 1
    some = xp.where(inside, xp.clip(x, -bound, bound), 0.0)
    product = _terminating(degree, (c - b if c - a == -degree else c - a,), c, some) * (1 - some) ** -excess
    product = product * xp.maximum(xp.abs(x) / bound, 1.0) ** (degree - excess)
    return xp.where(inside | xp.isnan(x), product, math.inf)


def _hyp2f1(attrs: Any, x: Array) -> Array:
    from scipy import special

    a, b = sorted((float(attrs.a), float(attrs.b)))
    c = float(attrs.c)
    degree = _degree(a, b)
    if degree is not None:
        return _terminating(degree, (b if a == -degree else a,), c, x)
    degree = _degree(c - a, c - b)
    if degree is not None:
        value = _elementary(degree, a, b, c, x)
    else:
        excess = a + b - c
        u = 1 - xp.where((x > 0) & (x < 1), x, 0.0)
        above = _within(c - a, c - b, c, u) * u**-excess if excess > 0 else _within(a, b, c, u)  # 15.3.3
        # Pfaff's transformation below 0; 15.3.4. The lesser of a and b stays, so that nothing is infinite.
        u = 1 / (1 - xp.minimum(x, 0.0))
        value = xp.where(x > 1, math.inf, xp.where(x >= 0, above, _within(a, c - b, c, u) * u**a))
    value = xp.where(x == 1, float(special.hyp2f1(a, b, c, 1.0)), value)
    return xp.where(xp.isnan(x), x, value)


RECIPES = BESSEL | {"hyp0f1": _hyp0f1, "hyp1f1": _hyp1f1, "hyp2f1": _hyp2f1}
"""By op."""
