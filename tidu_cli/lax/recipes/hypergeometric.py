"""Hypergeometric functions with fixed parameters: polynomials, series, and exponentials and powers times what is interpolated."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.lax.recipes import arrays as xp
from tidu_cli.lax.recipes import bessel
from tidu_cli.lax.recipes.arrays import Array, polynomial, table


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
    above = half * half * (bessel.scaled_i(b - 1, z) * power) * half * half
    value = xp.where(xp.abs(x) <= 1, polynomial(_terms((), (b,), 20), near), xp.where(x > 0, above, bessel.j(b - 1, z) * power))
    return xp.where(xp.isnan(x) | (x == -math.inf), math.nan, value)


@cache
def _kummer(a: float, b: float) -> Callable[[Array], Array]:
    """e^-x x^(b - a) ₁F₁(a, b, x) from 1 on."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

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


RECIPES = {"hyp0f1": _hyp0f1, "hyp1f1": _hyp1f1, "hyp2f1": _hyp2f1}
"""By op."""
