"""The gamma function, its logarithm and derivatives of that, and the Hurwitz zeta function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from tidu_cli.graph.types import TensorType
from tidu_cli.lax.recipes import arrays as xp
from tidu_cli.lax.recipes import order_integrals
from tidu_cli.lax.recipes.arrays import Array, polynomial, table
from tidu_cli.lax.vocabulary import BUILTIN


def _gauss_legendre(n: int) -> tuple[Any, Any]:
    """The nodes and weights of the rule of n points, in extended precision; NumPy's weights are off by up to 1e-12."""
    x: Any = np.polynomial.legendre.leggauss(n)[0].astype(np.longdouble)
    for step in range(3):
        before, value = np.ones_like(x), x
        for k in range(2, n + 1):  # Abramowitz and Stegun 22.7.10
            before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
        slope = n * (before - x * value) / (1 - x * x)  # 22.8.5
        x = x - value / slope if step < 2 else x
    return x, 2 / ((1 - x * x) * slope * slope)  # 25.4.29


class Numbers:
    """NumPy, as far as formulas that are written for it read it, for Arrays."""

    polynomial = SimpleNamespace(legendre=SimpleNamespace(leggauss=_gauss_legendre))

    def __getattr__(self, name: str) -> Any:
        return getattr(xp, name)

    def any(self, condition: Array) -> bool:
        """What is known of a condition while recording: that it may hold somewhere."""
        return True

    def polyval(self, coefficients: Any, x: Array) -> Array:
        """A polynomial, by its coefficients from the highest."""
        value: Array = polynomial(coefficients[::-1], x)
        return value

    def sum(self, x: Array, axis: int) -> Array:
        """The sums over the last axis of two."""
        assert axis == len(x.shape) - 1
        return xp.dot(x, np.ones(x.shape[-1]))

    def ones_like(self, x: Array) -> Array:
        """An array of ones, of x's shape and dtype."""
        return xp.full_like(x, 1.0)

    def zeros_like(self, x: Array) -> Array:
        """Likewise, of zeros."""
        return xp.full_like(x, 0.0)


class Special:
    """Likewise, scipy.special."""

    psi = staticmethod(xp.digamma)
    gammaln = staticmethod(xp.gammaln)
    polygamma = staticmethod(xp.polygamma)


NUMBERS, SPECIAL = Numbers(), Special()

_LARGE = 15.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""ln Γ(x) = (x - 1/2) ln x - x + ln(2π) / 2 + Σ c(j) / x^(2j + 1); Abramowitz and Stegun 6.1.40."""
_OF_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""ψ(x) = ln x - 1 / 2x - Σ c(j) / x^(2j + 2); 6.3.18."""


def _even(n: Array) -> Array:
    """Whether numbers are even."""
    return n - 2 * xp.floor(n / 2) == 0


@cache
def _factorial_part() -> Callable[[Array], Array]:
    """Γ between 1 and 2, of numbers that are greater by 1."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    return table(special.gamma, 1.0, 2.0, 4.0)


def _gamma(attrs: Any, x: Array) -> Array:
    size = xp.clip(xp.abs(x), 0.0, 180.0)
    steps = xp.floor(size)
    rest = size - steps
    product = _factorial_part()(1 + rest)
    # Γ(1 + r) (1 + r) (2 + r) …
    for k in range(1, int(_LARGE)):
        product = xp.where(k < steps, product * (rest + k), product)
    least = xp.where(steps == 0, product / size, product)
    # Large ones as products of two, so that neither is infinite where they are not.
    far = xp.maximum(size, _LARGE)
    half = far ** (0.5 * far - 0.25)
    first = half * xp.exp(-far) * (xp.exp(polynomial(_STIRLING, 1 / far / far) / far) * math.sqrt(2 * math.pi))
    first, second = xp.where(size < _LARGE, least, first), xp.where(size < _LARGE, 1.0, half)
    nearest = xp.round(x)
    sine = xp.sin(math.pi * (x - nearest)) * xp.where(_even(nearest), 1.0, -1.0)
    following = xp.where(steps == 0, product, size * first)  # Γ(|x| + 1)
    reflected = math.pi / sine / following / second  # Abramowitz and Stegun 6.1.17
    below = xp.where((x == nearest) | (x == -math.inf), xp.where(x == 0, 1 / x, math.nan), reflected)
    return xp.where(x > 0, xp.where(x > 172, math.inf, first * second), xp.where(xp.isnan(x), x, below))


# The logarithm of the gamma function, and its derivative. Both have series for large numbers, from which others are reached by
# recurrence, and tables of what is left when their zeros are divided out.

_ZERO = (1.4616321449683622, 9.549995429965697e-17)
"""Where ψ is 0, as a sum."""
_ZERO_BELOW = (-0.5040830082644554, -8.15428206243813e-18)


@cache
def _lgamma_apart() -> Callable[[Array], Array]:
    """ln Γ(x) / ((x - 1) (x - 2)), by the kernel, which has more digits around 1 and 2 than SciPy's."""
    type_ = TensorType("f64", ())
    kernel = BUILTIN["lgamma"].evaluation.kernel(np, None, (type_,), (type_,))
    return table(lambda x: kernel(x) / ((x - 1) * (x - 2)), 0.5, 2.5, per_octave=4)


def _lgamma(attrs: Any, x: Array) -> Array:
    size = xp.abs(x)
    small = size < 0.5
    near = xp.where(small, 1 + x, xp.clip(size, 0.5, _LARGE))
    steps, product = xp.floor(xp.maximum(near - 1.5, 0)), xp.full_like(x, 1.0)
    for k in range(1, int(_LARGE - 1)):
        product = xp.where(k <= steps, product * (near - k), product)
    r = near - steps
    # One logarithm, so that little cancels: ln |x| is less than 0 where it is taken away.
    logarithm = (r - 1) * (r - 2) * _lgamma_apart()(r) + xp.where(small, -xp.log(size), xp.log(product))
    far = xp.maximum(size, _LARGE)
    rest = polynomial(_STIRLING, 1 / far / far) / far + (math.log(2 * math.pi) - 1) / 2
    logarithm = xp.where(size < _LARGE, logarithm, (far - 0.5) * (xp.log(far) - 1) + rest)
    turned = xp.where(size == math.inf, 0.0, x - xp.round(x))
    sine = xp.abs(xp.sin(math.pi * turned))
    mirrored = xp.log(math.pi / (size * sine)) - logarithm  # Abramowitz and Stegun 6.1.17
    return xp.where(x <= -0.5, xp.where(sine == 0, math.inf, mirrored), logarithm)


@cache
def _digamma_apart(zero: tuple[float, float], low: float, high: float, by: float) -> Callable[[Array], Array]:
    """ψ(x) / (x - zero) of x + `by`."""

    def apart(shifted: Any) -> Any:
        x = shifted.astype(np.longdouble) - by
        far = x + 20  # where the series has more digits than are needed
        psi = np.log(far) - 0.5 / far - polynomial(_OF_DIGAMMA, 1 / far / far) / far / far
        return (psi - sum(1 / (x + k) for k in range(20))) / (x - zero[0] - zero[1])

    return table(apart, low, high, per_octave=4)


def _around(zero: tuple[float, float], low: float, high: float, x: Array, by: float = 0.0) -> Array:
    """ψ between two numbers."""
    apart = xp.apart(x - zero[0]) - zero[1]  # compilers would take away the sum of the two
    return apart * _digamma_apart(zero, low + by, high + by, by)(x + by)


def _digamma(attrs: Any, x: Array) -> Array:
    size = xp.abs(x)
    small = (x < 1) & (x >= -0.2)
    y = xp.where(small, 1 + x, xp.where(x < 0, 1 + size, x))  # ψ(x) = ψ(1 + x) - 1 / x, = ψ(1 - x) - π / tan πx
    near = xp.clip(y, 0.8, 10.0)
    steps = xp.floor(xp.maximum(near - 1.5, 0))
    psi = _around(_ZERO, 0.8, 2.5, near - steps)
    for k in range(9, 0, -1):
        psi = xp.where(k <= steps, psi + 1 / (near - k), psi)
    far = xp.maximum(y, 10.0)
    square = 1 / far / far
    psi = xp.where(y < 10, psi, xp.log(far) - (0.5 / far + square * polynomial(_OF_DIGAMMA, square)))
    turned = x - xp.round(x)
    pole = (x <= 0) & (turned == 0)
    below = psi - math.pi / xp.tan(math.pi * xp.where(pole, 0.5, turned))
    below = xp.where((x > -0.8) & (x < -0.2), _around(_ZERO_BELOW, -0.8, -0.2, xp.clip(x, -0.8, -0.2), by=1.0), below)
    return xp.where(pole, math.nan, xp.where(small, psi - 1 / xp.where(pole, 1.0, x), xp.where(x < 0, below, psi)))


# The Hurwitz zeta function.

_HIGHEST = 2.0**40
"""Exponents of which all but the first terms are 0."""


def _sum(s: Array, q: Array) -> Array:
    """Σ (q + k)^-s for s > 1 and q > 0, by the Euler-Maclaurin formula; Abramowitz and Stegun 23.1.4 (DLMF 25.11.5)."""
    terms = order_integrals._TERMS
    total = q**-s
    for k in range(1, terms):
        total = total + (q + k) ** -s
    t, bounded = q + terms, xp.minimum(s, _HIGHEST)
    ratio, rising, correction = 1 / t, bounded, xp.full_like(t, 0.5)
    for j, coefficient in enumerate(order_integrals._BERNOULLI):
        correction = correction + coefficient * (rising * ratio)
        if j + 1 < len(order_integrals._BERNOULLI):
            rising = rising * ((bounded + (2 * j + 1)) * ratio) * ((bounded + (2 * j + 2)) * ratio)
    return total + (t ** (1 - s) / (s - 1) + t**-s * correction)


def zeta(s: Array, q: Array) -> Array:
    """The Hurwitz zeta function; below q = 0 for integral s."""
    above = (q > 0) & (s > 1)
    left = (q <= 0) & (q > -math.inf) & (s > 1) & (s == xp.round(s))
    exponent, at = xp.where(above | left, s, 2.0), xp.where(left, q, 0.0)
    # The sum over all of q + Z, less that over the numbers below q.
    offset = at - xp.round(at)
    after = xp.where(offset > 0, offset, 1 + offset)
    sign = xp.where(_even(exponent), 1.0, -1.0)
    value = _sum(exponent, xp.where(above, q, after))
    mirrored = value + sign * (_sum(exponent, xp.where(offset > 0, 1 - offset, xp.where(offset == 0, 1.0, -offset))))
    mirrored = mirrored - sign * _sum(exponent, xp.where(left, 1 - at, 1.0))
    mirrored = xp.where(offset == 0, xp.where(sign > 0, math.inf, math.nan), mirrored)
    undefined = (s == math.inf) & (q > 1) & (q <= 1e8)  # in SciPy
    value = xp.where(above, xp.where(undefined, math.nan, value), xp.where(left, mirrored, math.nan))
    return xp.where(s == 1, math.inf, value)


_FACTORIALS = np.array([*(float(math.factorial(k)) for k in range(171)), math.inf])


def _polygamma(attrs: Any, n: Array, x: Array) -> Array:
    integral = (n > 0) & (xp.round(n) == n)
    order = xp.where(integral, n, 1.0)
    factorial = xp.taken(_FACTORIALS, xp.clip(order, 0.0, 171.0).astype("i32"))
    sign = xp.where(_even(order + 1), 1.0, -1.0)  # Abramowitz and Stegun 6.4.10
    value = sign * factorial * zeta(order + 1, x)
    return xp.where(integral, value, xp.where(n == 0, xp.digamma(x), math.nan))


def _zeta_grad(attrs: Any, s: Array, q: Array) -> Array:
    known = (s > 1) & (q > 0)
    inside = known & xp.isfinite(s) & xp.isfinite(q)
    derivative = order_integrals._zeta_series(NUMBERS, attrs.order, xp.where(inside, s, 2.0), xp.where(inside, q, 1.0))
    return xp.where(inside, derivative, xp.where(known, 0.0, math.nan))


RECIPES = {
    "gamma": _gamma,
    "lgamma": _lgamma,
    "digamma": _digamma,
    "polygamma": _polygamma,
    "zeta": lambda attrs, s, q: zeta(s, q),
    "zeta_grad": _zeta_grad,
}
"""By op."""
