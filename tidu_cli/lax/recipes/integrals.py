"""Integrals of exponentials, waves and logarithms: series near 0, and elsewhere what is smooth, which is interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.lax.recipes import arrays as xp
from tidu_cli.lax.recipes.arrays import Array, table
from tidu_cli.lax.recipes.hypergeometric import scaled_bessel_i

_TINY = 2.0**-60


def _integrated(function: Callable[[Any], Any]) -> Any:
    """∫₀^∞ function(u) du, which falls off as e^-u, by the trapezoidal rule of s, where u = e^(s - e^-s), along a new last axis."""
    step = np.longdouble(1) / 16
    s = np.arange(-80, 97) * step
    u = np.exp(s - np.exp(-s))
    return (function(u) * (u * (1 + np.exp(-s)) * step)).sum(axis=-1)


# Exponential integrals.


@cache
def _scaled_expn(n: int) -> Callable[[Array], Array]:
    """e^x E_n(x) (x + n) between a number below which e^-x is 1, and one above which it is 0."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    def scaled(x: Any) -> Any:
        values = special.expn(n, x) * np.exp(np.minimum(x, 700.0)) * (x + n)
        # Abramowitz and Stegun 5.1.4, with t = 1 + u / (x + n), where SciPy's loses digits to underflow.
        far = x[x > 500.0].astype(np.longdouble)[:, None]
        values[x > 500.0] = _integrated(lambda u: np.exp(-u * far / (far + n) - n * np.log1p(u / (far + n))))
        return values

    return table(scaled, _TINY, 750.0)


def _expn_above_0(n: int, x: Array) -> Array:
    """E_n(x) for 0 < x < ∞."""
    value = xp.exp(-x) * _scaled_expn(n)(x) / (x + n)
    return xp.where(x < _TINY, -xp.log(x) - np.euler_gamma, value) if n == 1 else value


def _expn(attrs: Any, x: Array) -> Array:
    n = int(attrs.n)
    inside = _expn_above_0(n, xp.where((x > 0) & (x < math.inf), x, 1.0))
    start = math.inf if n == 1 else 1 / (n - 1)
    outside = xp.where(x == 0, xp.full_like(x, start), xp.where(x > 0, xp.full_like(x, 0.0), math.nan))
    return xp.where((x > 0) & (x < math.inf), inside, outside)


_EI_SERIES = [0.0, *(1 / (k * math.factorial(k)) for k in range(1, 45))]
"""Ei x - ln |x| - γ; Abramowitz and Stegun 5.1.10."""


@cache
def _scaled_expi() -> Callable[[Array], Array]:
    """e^-x x Ei(x), up to where it is infinite."""
    from scipy import special

    def scaled(x: Any) -> Any:
        near = np.minimum(x, 700.0)
        series = xp.polynomial([math.factorial(k) for k in range(8)], 1 / x)  # Abramowitz and Stegun 5.1.51
        return np.where(x <= 700, special.expi(near) * np.exp(-near) * near, series)

    return table(scaled, 8.0, 720.0)


def _expi(attrs: Any, x: Array) -> Array:
    near, far = xp.where((x > 0) & (x < 8), x, 1.0), xp.clip(x, 8.0, 800.0)
    series = np.euler_gamma + xp.log(near) + xp.polynomial(_EI_SERIES, near)
    half = xp.exp(far / 2)
    above = xp.where(x < 8, series, half * (_scaled_expi()(far) / far) * half)
    below = xp.where(x == -math.inf, 0.0, _expn_above_0(1, xp.where((x < 0) & (x > -math.inf), -x, 1.0)))
    return xp.where(x > 0, above, xp.where(x == 0, -math.inf, xp.where(x < 0, -below, x)))


# Waves, by auxiliary functions that do not oscillate.


@cache
def _auxiliary_of_sine(part: int) -> Callable[[Array], Array]:
    """x f(x), and x^2 g(x), of sine and cosine integrals; DLMF 6.7.13, 6.7.14."""

    def scaled(x: Any) -> Any:
        x = x.astype(np.longdouble)[..., None]
        return _integrated(lambda u: np.exp(-u) * u**part / (1 + (u / x) ** 2))

    return table(scaled, 2.0, 2.0**28)


@cache
def _auxiliary_of_fresnel(part: int) -> Callable[[Array], Array]:
    """x f(x), and x^3 g(x), of Fresnel integrals; DLMF 7.7.10, 7.7.11, with t = 2u / πx^2."""

    def scaled(x: Any) -> Any:
        square = x.astype(np.longdouble)[..., None] ** 2 * (math.pi / 2)
        return (
            (part + 1) * math.pi ** (-1.5 - part) * _integrated(lambda u: np.exp(-u) * u ** (part - 0.5) / (1 + (u / square) ** 2))
        )

    return table(scaled, 1.5, 2.0**15)


def _fresnel(sine: bool) -> Callable[[Any, Array], Array]:
    """S or C."""
    # Abramowitz and Stegun 7.3.11, 7.3.13.
    ks = range(14)
    series = [(-1) ** k * (math.pi / 2) ** (2 * k + sine) / (math.factorial(2 * k + sine) * (4 * k + 1 + 2 * sine)) for k in ks]

    def recipe(attrs: Any, x: Array) -> Array:
        near, far = xp.clip(x, -1.5, 1.5), xp.clip(xp.abs(x), 1.5, 2.0**60)
        small = xp.polynomial(series, (near * near) ** 2) * near
        # x^2 / 4, less integers: h has 24 bits and what is left 29, so that their products are exact.
        h = xp.single(far)
        rest = far - h
        turns = [y - xp.floor(y) for y in (h * h * 0.25, h * rest * 0.5, rest * rest * 0.25)]
        angle = (turns[0] + turns[1] + turns[2]) * (2 * math.pi)
        c, s = xp.cos(angle), xp.sin(angle)
        f, g = _auxiliary_of_fresnel(0)(far) / far, _auxiliary_of_fresnel(1)(far) / far / far / far
        large = 0.5 - f * c - g * s if sine else 0.5 + f * s - g * c  # 7.3.9, 7.3.10
        signed = xp.where(x < 0, -large, large)
        return xp.where(xp.abs(x) < 1.5, small * (near * near) if sine else small, xp.where(xp.isnan(x), x, signed))

    return recipe


def _sine_waves(x: Array) -> tuple[Array, Array, Array, Array]:
    """f, g, cos and sin of x from 2 to ∞."""
    far = xp.where((x >= 2) & (x < math.inf), x, 2.0)
    return _auxiliary_of_sine(0)(far) / far, _auxiliary_of_sine(1)(far) / far / far, xp.cos(far), xp.sin(far)


_SI_SERIES = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(13)]
"""Si(x) / x by x^2; Abramowitz and Stegun 5.2.14."""
_CI_SERIES = [0.0, *((-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 13))]
"""Ci(x) - ln x - γ; 5.2.16."""


def _sin_integral(attrs: Any, x: Array) -> Array:
    size, near = xp.abs(x), xp.clip(x, -2.0, 2.0)
    f, g, c, s = _sine_waves(size)
    large = xp.where(size == math.inf, math.pi / 2, math.pi / 2 - f * c - g * s)  # 5.2.8
    signed = xp.where(x < 0, -large, large)
    return xp.where(size < 2, near * xp.polynomial(_SI_SERIES, near * near), xp.where(xp.isnan(x), x, signed))


def _cos_integral(attrs: Any, x: Array) -> Array:
    size = xp.abs(x)
    near = xp.where((size > 0) & (size < 2), size, 1.0)
    f, g, c, s = _sine_waves(size)
    small = np.euler_gamma + xp.log(near) + xp.polynomial(_CI_SERIES, near * near)
    value = xp.where(size < 2, small, xp.where(size == math.inf, 0.0, f * s - g * c))  # 5.2.9
    value = xp.where(x == 0, -math.inf, value)
    return xp.where(xp.isnan(x) | (x == -math.inf), math.nan, value)


# Spence's function.

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_DEBYE = [b / math.factorial(2 * k + 3) for k, b in enumerate(_BERNOULLI)]


def _dilogarithm(u: Array) -> Array:
    """Li₂(1 - e^-u), by Debye's function; Abramowitz and Stegun 27.1.1."""
    square = u * u
    odd: Array = u * square * xp.polynomial(_DEBYE, square)
    return u - square * 0.25 + odd


def _spence(attrs: Any, x: Array) -> Array:
    middle, some = (x >= 0.5) & (x <= 2), (x > 0) & (x < math.inf)
    given = xp.where(some, x, 1.0)
    least = xp.where(middle, 0.5, xp.where(x < 1, given, 1 / given))  # of x and 1/x
    # 1 - x in place of x, and 1/x; DLMF 25.12.6, 25.12.4.
    logarithm, other = xp.log(given), xp.log1p(-least)
    dilogarithm = _dilogarithm(0.0 - xp.where(middle, logarithm, other))
    below = math.pi**2 / 6 - xp.where(x > 1, -logarithm, logarithm) * other - dilogarithm
    dilogarithm = xp.where(middle, dilogarithm, xp.where(x > 1, -0.5 * (logarithm * logarithm) - below, below))
    return xp.where(some, dilogarithm, xp.where(x == 0, xp.full_like(x, math.pi**2 / 6), math.nan))


# Bessel functions of which the powers are integers.


def _near_0(order: int, x: Array) -> Array:
    """e^-|x| I_order(x) / x^order for |x| ≤ 1; Abramowitz and Stegun 9.6.10."""
    terms = [0.5 ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order)) for k in range(12)]
    value: Array = xp.exp(-xp.abs(x)) * xp.polynomial(terms, x * x)
    return value


def _bessel_i0e(attrs: Any, x: Array) -> Array:
    size = xp.abs(x)
    return xp.where(size < 1, _near_0(0, xp.clip(x, -1.0, 1.0)), scaled_bessel_i(0.0, xp.maximum(size, 1.0)))


def _bessel_i1e(attrs: Any, x: Array) -> Array:
    size, near = xp.abs(x), xp.clip(x, -1.0, 1.0)
    large = scaled_bessel_i(1.0, xp.maximum(size, 1.0))
    return xp.where(size < 1, near * _near_0(1, near), xp.where(x < 0, -large, large))


RECIPES = {
    "expi": _expi,
    "expn": _expn,
    "fresnel_s": _fresnel(sine=True),
    "fresnel_c": _fresnel(sine=False),
    "sin_integral": _sin_integral,
    "cos_integral": _cos_integral,
    "spence": _spence,
    "bessel_i0e": _bessel_i0e,
    "bessel_i1e": _bessel_i1e,
}
"""By op."""
