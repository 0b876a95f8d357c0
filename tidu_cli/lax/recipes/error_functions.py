"""Error functions, their inverses, and Dawson's and Owen's integrals: exponentials times functions that are interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.lax.recipes import arrays as xp
from tidu_cli.lax.recipes.arrays import Array, table

_ROOT_PI = math.sqrt(math.pi)


def _exp_of_square(x: Array, scale: float) -> Array:
    """e^(scale x^2), for a scale that is a power of 2 or minus one, and |x| < 2^100.

    x^2, rounded, would lose log2(x^2) bits: h has 24 bits, so that its square is exact.
    """
    h = xp.single(x)
    return xp.exp(scale * (h * h)) * xp.exp(scale * ((x - h) * (x + h)))


@cache
def _scaled_erfc() -> Callable[[Array], Array]:
    """x e^(x^2) erfc(x), where 1 - erf(x) begins to lose digits up to where it is nearly its limit, 1/√π."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    def scaled(x: Any) -> Any:
        small = np.minimum(x, 1.5).astype(np.longdouble)
        term = total = small
        for k in range(1, 60):  # of e^(x^2) erf(x) √π / 2; Abramowitz and Stegun 7.1.6
            term = term * small * small / (k + 0.5)
            total = total + term
        series = np.exp(small * small) - total / np.sqrt(np.arctan(np.longdouble(1)))
        return x * np.where(x < 1.5, series, special.erfcx(x))

    return table(scaled, 0.25, 2.0**28)


_ERF_SERIES = [2 / _ROOT_PI * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(18)]
"""erf(x) / x in x^2, for |x| < 0.7; Abramowitz and Stegun 7.1.5."""


def _erf(attrs: Any, x: Array) -> Array:
    size = xp.abs(x)
    near = xp.minimum(size, 0.7)
    far = 1 - _tail(size)
    return xp.where(size < 0.7, xp.where(x < 0, -near, x) * xp.polynomial(_ERF_SERIES, near * near), xp.where(x < 0, -far, far))


def _tail(x: Array) -> Array:
    """erfc(x) for x > 0.25."""
    far = xp.clip(x, 0.25, 28.0)
    return xp.where(x > 28, 0.0, _exp_of_square(far, -1.0) * (_scaled_erfc()(far) / far))


def _erfcx_above_0(x: Array) -> Array:
    """e^(x^2) erfc(x) for x ≥ 0."""
    near, far = xp.minimum(x, 0.25), xp.maximum(x, 0.25)
    return xp.where(x > 0.25, _scaled_erfc()(far) / far, xp.exp(near * near) * (1 - xp.erf(near)))


def _erfcx(attrs: Any, x: Array) -> Array:
    size = xp.abs(x)
    above = _erfcx_above_0(size)
    # Abramowitz and Stegun 7.1.9; e^(27^2) is infinite.
    return xp.where(x < 0, 2 * _exp_of_square(xp.minimum(size, 27.0), 1.0) - above, above)


@cache
def _erf_inv_near_0() -> Callable[[Array], Array]:
    """erf_inv(x) / x of 1 + x^2."""
    from scipy import special

    def ratio(u: Any) -> Any:
        x = np.sqrt(u - 1)
        return special.erfinv(x) / x

    return table(ratio, 1.0, 1.25, per_octave=8)


@cache
def _inverse_of_log() -> Callable[[Array], Array]:
    """The inverse of -ln(erfc y), from near 1/2 to the logarithm of the least number."""
    from scipy import special

    def inverse(w: Any) -> Any:
        y = special.erfcinv(np.exp(-np.minimum(w, 700)))
        for _ in range(4):  # of Newton's steps, as erfcinv loses some digits
            scaled = special.erfcx(y)
            y = y + (np.log(scaled) - y * y + w) * scaled * _ROOT_PI / 2
        return y

    return table(inverse, 0.69, 746.0)


def _near(x: Array) -> Array:
    """erf_inv for |x| ≤ 1/2."""
    return x * _erf_inv_near_0()(1 + x * x)


def _erf_inv(attrs: Any, x: Array) -> Array:
    size = xp.abs(x)
    far = xp.where((size > 0.5) & (size < 1), size, 0.5)
    tail = xp.where(size < 1, _inverse_of_log()(-xp.log(1 - far)), xp.where(size == 1, xp.full_like(x, math.inf), math.nan))
    return xp.where(size < 0.5, _near(xp.where(size < 0.5, x, 0.0)), xp.sign(x) * tail)


def _erfc_inv(attrs: Any, x: Array) -> Array:
    tail = xp.where(x < 1, x, 2 - x)
    size = _inverse_of_log()(-xp.log(xp.where((tail > 0) & (tail < 0.5), tail, 0.5)))
    size = xp.where(tail > 0, size, xp.where(tail == 0, xp.full_like(x, math.inf), math.nan))
    far = xp.where(x < 1, size, -size)
    return xp.where(tail >= 0.5, -_near(xp.where(tail >= 0.5, x - 1, 0.0)), far)


@cache
def _scaled_dawson() -> Callable[[Array], Array]:
    """(1 + x^2) D(x) / x of 1 + x^2, up to where it is nearly 1/2; SciPy's lacks some digits."""

    def scaled(u: Any) -> Any:
        square = u.astype(np.longdouble) - 1
        near, far = np.minimum(square, 64), np.maximum(square, 64)
        term, total = np.ones_like(near), np.ones_like(near)
        for k in range(1, 220):  # Abramowitz and Stegun 7.1.5
            term = term * near / k
            total = total + term / (2 * k + 1)
        series = xp.polynomial([math.prod(range(1, 2 * k, 2)) / 2.0 ** (k + 1) for k in range(24)], 1 / far)  # DLMF 7.12.1
        return u * np.where(square < 64, np.exp(-near) * total, series / far)

    return table(scaled, 1.0, 2.0**54)


def _dawson(attrs: Any, x: Array) -> Array:
    near = xp.clip(x, -(2.0**27), 2.0**27)
    u = 1 + near * near
    return xp.where(xp.abs(x) < 2.0**27, near * (_scaled_dawson()(u) / u), 0.5 / xp.where(x == 0, 1.0, x))


# Owen's T function.

_NODES = 32
_FAR = 9.0
"""Standard deviations beyond which nothing is left."""


@cache
def _gauss(count: int) -> tuple[Any, Any]:
    """The nodes, from 0 to 1, and the weights of Gauss' rule; DLMF 3.5.20. NumPy's weights lack some digits."""
    x: Any = np.polynomial.legendre.leggauss(count)[0].astype(np.longdouble)
    for _ in range(2):  # of Newton's steps
        before, value = np.ones_like(x), x
        for k in range(2, count + 1):
            before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
        slope = count * (x * value - before) / (x * x - 1)
        x = x - value / slope
    return ((1 + x) / 2).astype(float), (1 / ((1 - x * x) * slope * slope)).astype(float)


def _owens_inside(h: Array, a: Array) -> Array:
    """T(h, a) for 0 ≤ h < 100 and 0 ≤ a ≤ 1, by Gauss' rule, up to where the integrand is nothing."""
    nodes, weights = _gauss(_NODES)
    end = xp.minimum(a, _FAR / xp.maximum(h, 1.0))[..., None]
    s = end * nodes
    square = s * s
    integral = xp.dot(xp.exp(-0.5 * ((h * h)[..., None] * square)) / (1 + square) * end, weights / (2 * math.pi))
    return _exp_of_square(h, -0.5) * integral


def _upper(h: Array) -> Array:
    """The probability that a normal variable is above h ≥ 0."""
    return 0.5 * (_exp_of_square(h, -0.5) * _erfcx_above_0(h * math.sqrt(0.5)))


def _owens_t(attrs: Any, h: Array, a: Array) -> Array:
    missing = xp.isnan(h) | xp.isnan(a)
    height, size = xp.where(missing, 1.0, xp.minimum(xp.abs(h), 90.0)), xp.where(missing, 1.0, xp.abs(a))
    steep = size > 1
    ratio = xp.where(steep, 1 / xp.maximum(size, 1.0), size)
    other = xp.minimum(height * xp.where(steep, xp.minimum(size, 1e300), 1.0), 90.0)
    p, q = _upper(height), _upper(other)
    inside = _owens_inside(other, ratio)
    # D. B. Owen (1956), 2.3 to 2.6.
    value = xp.where(steep, 0.5 * (p + q) - p * q - inside, inside)
    return xp.where(missing, math.nan, xp.where(a < 0, -value, value))


RECIPES = {
    "erf": _erf,
    "erfc": lambda attrs, x: xp.where(x > 0.25, _tail(x), 1 - xp.erf(x)),
    "erf_inv": _erf_inv,
    "erfcx": _erfcx,
    "erfc_inv": _erfc_inv,
    "dawsn": _dawson,
    "owens_t": _owens_t,
}
"""By op."""
