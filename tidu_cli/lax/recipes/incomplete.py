"""Incomplete gamma and beta functions, their derivatives by parameters, and their inverses.

As in `tidu_cli.lax.recipes.order_integrals`, densities are integrated by one Gauss-Legendre rule in the variable in which they are
log-concave and entire, on the side of the argument that has the less, and small parameters are raised by recurrence. Here the
integrand is what it is beside its value at the argument, so that tails are found by their logarithms, however small they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from tidu_cli.lax.recipes import arrays as xp
from tidu_cli.lax.recipes import order_integrals
from tidu_cli.lax.recipes.arrays import Array, polynomial
from tidu_cli.lax.recipes.gamma import NUMBERS, SPECIAL

_RAISED = 10
_LARGE = 16.0
_TINY = 2.0**-1000
_HUGE = 2.0**100
"""Where densities are narrower than numbers are apart."""


class Tail(NamedTuple):
    """A tail of a distribution, as exp(log) * factor, and the other.

    `at`: -1 if it is the lower one, else 1. `density` is that of the variable of integration, by its logarithm.
    """

    at: Array
    log: Array
    factor: Array
    other: Array
    density: Array

    def lower(self) -> Array:
        """The lower tail."""
        return xp.where(self.at < 0, xp.exp(self.log) * self.factor, self.other)

    def upper(self) -> Array:
        """The upper tail."""
        return xp.where(self.at < 0, self.other, xp.exp(self.log) * self.factor)

    def step(self, wanted: Array, log_due: Array) -> Array:
        """Newton's step, up or down the variable, towards where the logarithm of a tail is this; `wanted` is -1 or 1 as `at`."""
        same = self.at == wanted
        level = xp.where(same, self.log + xp.log(self.factor), xp.log(xp.maximum(self.other, _TINY)))
        slope = xp.exp(self.density - level)
        return wanted * ((level - log_due) / slope)


_EXPONENTIAL = tuple(1 / math.factorial(k) for k in range(2, 18))
_LOGARITHM = tuple(1 / (2 * k + 3) for k in range(16))


def _exp_rest(x: Array) -> Array:
    """e^x - 1 - x."""
    small = xp.clip(x, -0.5, 0.5)
    return xp.where(small == x, small * small * polynomial(_EXPONENTIAL, small), xp.expm1(x) - x)


def _log_rest(x: Array) -> Array:
    """x - ln(1 + x) for x between -1/2 and 1/2, by the series of the inverse hyperbolic tangent; Abramowitz and Stegun 4.1.28."""
    t = x / (2 + x)
    square = t * t
    rest: Array = x * t - 2 * t * square * polynomial(_LOGARITHM, square)
    return rest


def _deviance(a: Array, apart: Array, ratio: Array) -> Array:
    """a (t - ln(1 + t)), where a t = `apart` and 1 + t = `ratio`."""
    near = xp.abs(apart) <= 0.5 * a
    rest = _log_rest(xp.where(near, apart, 0.0) / a)
    return xp.where(near, a * rest, apart - a * xp.log(xp.clip(ratio, 2.0**-1074, 2.0**1000)))


def _remainder(a: Array) -> Array:
    """What Stirling's formula lacks of ln Γ(a)."""
    remainder: Array = order_integrals._remainder(NUMBERS, SPECIAL, a)
    return remainder


def _integral(exponent: Callable[..., Array], rough: Callable[..., Array], *given: Array) -> Array:
    """The integral from 0 of exp(exponent), a function of the variable and what is given, to where it has dropped enough.

    `rough` is that function with fewer digits, by which this is found.
    """
    start = 0.0 * given[0]
    reach = order_integrals._reach(NUMBERS, lambda u: -rough(u, *given), start)
    wide = [x[..., None] for x in given]
    integral: Array = order_integrals._integral(NUMBERS, start, reach, 1.0, lambda u: xp.exp(exponent(u, *wide)))
    return integral


# The gamma function.


@cache
def _log_factorial_series() -> tuple[float, ...]:
    """(ln Γ(1 + x) + ln(1 + x)) / x = 1 - γ + Σ (-1)^k (ζ(k) - 1) x^(k - 1) / k; Abramowitz and Stegun 6.1.33."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    return (0.42278433509846713, *(float((-1) ** k * special.zeta(k, 2.0) / k) for k in range(2, 28)))


def _log_factorial(a: Array) -> Array:
    """ln Γ(1 + a), also where it is near 0."""
    small = xp.minimum(a, 0.5)
    return xp.where(a < 0.5, small * polynomial(_log_factorial_series(), small) - xp.log1p(small), xp.gammaln(a + 1))


def _gamma_tail(a: Array, x: Array) -> Tail:
    """A tail of the gamma distribution of order a at x, both above 0 and finite, over u = ln s."""
    scale = xp.minimum(1.0, _HUGE / a)
    a, x = a * scale, x * scale
    at = xp.where(x <= xp.maximum(a, 1.0), -1.0, 1.0)
    lower, small = at < 0, a < _RAISED
    # x^a e^-x / Γ(a + 1)
    large, less = xp.maximum(a, _LARGE), xp.minimum(a, _LARGE)
    stirling = -(_deviance(large, x - large, x / large) + _remainder(large)) - 0.5 * xp.log((2 * math.pi) * large)
    log_factorial = _log_factorial(less)
    log = xp.where(a < _LARGE, less * xp.log(x) - x - log_factorial, stirling)

    # s^a e^-s beside x^a e^-x
    def exponent(u: Array, at: Array, apart: Array, x: Array) -> Array:
        v = at * u
        return apart * v - x * _exp_rest(v)

    def rough(u: Array, at: Array, apart: Array, x: Array) -> Array:
        v = at * u
        return (apart + x) * v - x * xp.expm1(v)

    integral = _integral(exponent, rough, at, xp.where(lower & small, a + _RAISED, a) - x, x)
    # P(a, x) = P(a + 1, x) + x^a e^-x / Γ(a + 1); DLMF 8.8.5
    low = xp.minimum(x, float(_RAISED))
    total = term = xp.full_like(a, 1.0)
    for k in range(1, _RAISED):
        term = term * low / (a + k)
        total = total + term
    factor = xp.where(lower & small, total + term * low * integral, a * integral)
    # Of orders so small that a lower tail is nearly 1: 1 - x^a / Γ(a + 1) (1 + a Σ (-x)^n / (n! (a + n))); DLMF 8.7.3
    low, least = xp.minimum(x, 1.0), xp.minimum(a, 0.5)
    series = xp.full_like(a, 0.0)
    for n in range(18, 0, -1):
        series = low / n * (1 / (least + n) - series)
    power = least * xp.log(low) - xp.where(a < 0.5, log_factorial, 0.0)
    rest = xp.exp(power) * (least * series) - xp.expm1(power)
    other = xp.where(lower & (a < 0.5), rest, 1 - xp.exp(log) * factor)
    return Tail(at, log, factor, other, log + xp.log(a))


def _incomplete_gamma(attrs: Any, a: Array, x: Array, *, upper: bool) -> Array:
    known = (a >= 0) & (x >= 0) & (xp.maximum(a, x) > 0) & (xp.minimum(a, x) < math.inf)
    inside = known & (xp.minimum(a, x) > 0) & (xp.maximum(a, x) < math.inf)
    tail = _gamma_tail(xp.where(inside, a, 1.0), xp.where(inside, x, 1.0))
    ends = xp.where((a == 0) | (x == math.inf), 1.0 - upper, float(upper))
    return xp.where(inside, tail.upper() if upper else tail.lower(), xp.where(known, ends, math.nan))


def _gamma_by_order(attrs: Any, a: Array, x: Array) -> Array:
    known = (a > 0) & (x >= 0)
    inside = known & (a < math.inf) & (x > 0) & (x < math.inf)
    a, x = xp.where(inside, a, 1.0), xp.where(inside, x, 1.0)
    below = order_integrals._gamma_lower(NUMBERS, SPECIAL, attrs.order, a, x)
    above = -order_integrals._gamma_side(NUMBERS, SPECIAL, attrs.order, a, x, 1.0)
    derivative = xp.where(x <= xp.maximum(xp.exp(xp.digamma(a)), 1.0), below, above)
    return xp.where(inside, derivative, xp.where(known, 0.0, math.nan))


# The beta function.


def _product(x: Array, y: Array) -> tuple[Array, Array]:
    """x y, and what is lost by its rounding; T. J. Dekker (1971)."""
    product, x_high, y_high = xp.apart(x * y), xp.single(x), xp.single(y)
    x_low, y_low = x - x_high, y - y_high
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _beta_tail(a: Array, b: Array, x: Array, y: Array, lost: Array) -> Tail:
    """A tail of the beta distribution at x, where y + `lost` is 1 - x, over u = ln(s / (1 - s)); all but `lost` are above 0."""
    scale = xp.minimum(1.0, _HUGE / xp.maximum(a, b))
    a, b = xp.maximum(a * scale, _TINY), xp.maximum(b * scale, _TINY)
    both = a + b
    (left, left_lost), (right, right_lost) = _product(b, x), _product(a, y)
    apart = (left - right) + ((left_lost - right_lost) - a * lost)  # (a + b) x - a
    # x^a y^b / B(a, b), by gamma densities, as C. Loader has it (2000)
    deviances = _deviance(a, apart, x * (both / a)) + _deviance(b, -apart, y * (both / b))
    log = _remainder(both) - _remainder(a) - _remainder(b) - deviances + 0.5 * xp.log(a * (b / both) / (2 * math.pi))
    # Of upper tails, the integral would be as long as -ln x: here it is no longer than that of a number next to 1.
    at = xp.where(xp.log(y) >= xp.maximum(xp.digamma(b) - xp.digamma(both), -38.0), -1.0, 1.0)
    lower = at < 0
    a, b, apart = xp.where(lower, a, b), xp.where(lower, b, a), xp.where(lower, apart, -apart)
    x, y = xp.where(lower, x, y), xp.where(lower, y, x)
    small = a < _RAISED
    raised = xp.where(small, float(_RAISED), 0.0)

    # s^a (1 - s)^b beside x^a y^b, at v = ± u of the lesser of x and y, so that terms cancel the least
    def exponent(u: Array, sign: Array, least: Array, order: Array, both: Array, apart: Array) -> Array:
        v = sign * u
        rise = least * xp.expm1(v)
        near = xp.clip(rise, -0.5, 0.5)
        close = apart * u - both * (least * _exp_rest(v) - _log_rest(near))
        return xp.where(near == rise, close, order * v - both * xp.log1p(rise))

    def rough(u: Array, sign: Array, least: Array, order: Array, both: Array, apart: Array) -> Array:
        v = sign * u
        return order * v - both * xp.log1p(least * xp.expm1(v))

    sign = xp.where(x < 0.5, -1.0, 1.0)
    order = xp.where(x < 0.5, a + raised, b)
    integral = _integral(exponent, rough, sign, xp.minimum(x, y), order, both + raised, apart - raised * y)
    # I(a, b, x) = I(a + 1, b, x) + x^a y^b / (a B(a, b)); DLMF 8.17.20
    total = term = 1 / a
    for k in range(1, _RAISED):
        term = term * ((both + (k - 1)) * x / (a + k))
        total = total + term
    factor = xp.where(small, total + term * ((both + (_RAISED - 1)) * x) * integral, integral)
    return Tail(at, log, factor, 1 - xp.exp(log) * factor, log)


def _incomplete_beta(attrs: Any, a: Array, b: Array, x: Array) -> Array:
    known = (a >= 0) & (b >= 0) & (xp.maximum(a, b) > 0) & (xp.minimum(a, b) < math.inf) & (x >= 0) & (x <= 1)
    inside = known & (xp.minimum(a, b) > 0) & (xp.maximum(a, b) < math.inf) & (x > 0) & (x < 1)
    p, q, at = xp.where(inside, a, 1.0), xp.where(inside, b, 1.0), xp.where(inside, x, 0.5)
    y = xp.apart(1 - at)
    tail = _beta_tail(p, q, at, y, xp.apart(1 - y) - at).lower()
    ends = xp.where((x == 1) | (x > 0) & ((a == 0) | (b == math.inf)), 1.0, 0.0)
    return xp.where(inside, tail, xp.where(known, ends, math.nan))


def _beta_by_orders(attrs: Any, a: Array, b: Array, x: Array) -> Array:
    m, n = attrs.order_x, attrs.order_y
    known = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    inside = known & (xp.maximum(a, b) < math.inf) & (x > 0) & (x < 1)
    a, b, x = xp.where(inside, a, 1.0), xp.where(inside, b, 1.0), xp.where(inside, x, 0.5)
    lower = order_integrals._is_lower(NUMBERS, SPECIAL, m, n, a, b, x)
    derivative = xp.where(lower, _beta_lower(m, n, a, b, x, 1 - x), -_beta_lower(n, m, b, a, 1 - x, x))
    return xp.where(inside, derivative, xp.where(known, 0.0, math.nan))


def _beta_lower(m: int, n: int, a: Array, b: Array, x: Array, y: Array) -> Array:
    """As in `order_integrals`, with one graph for all terms of the recurrence."""

    def step(b: Array, x: Array, p: Array, added: Array) -> list[Array]:
        return [p + 1, added + order_integrals._beta_term(NUMBERS, SPECIAL, m, n, p, b, x)]

    _, added = xp.repeated(_RAISED, step, [a, 0.0 * a], [b, x])
    small = a < _RAISED
    integral = order_integrals._beta_side(NUMBERS, SPECIAL, m, n, xp.where(small, a + _RAISED, a), b, x, y)
    return xp.where(small, integral + added, integral)


# Inverses. The logarithms of the tails are concave over the variables of integration, so that Newton's steps from where a tail is
# less than is due do not pass the root.

_STEPS = 32
"""Enough for parameters from 1e-6 to 1e9; half of these would do for most."""
_LEAST = -700.0
"""The least of ln x that is looked at. There tails are powers, so that a step finds what is less."""


def _gamma_inverse(attrs: Any, a: Array, level: Array, *, upper: bool) -> Array:
    known = (a > 0) & (a < math.inf) & (level > 0) & (level < 1)
    order, given = xp.where(known, a, 1.0), xp.where(known, level, 0.5)
    less, more = xp.log(given), xp.log1p(-given)
    log_lower, log_upper = (more, less) if upper else (less, more)
    # x^a / Γ(a + 1) is more than P(a, x), and a + √(2ac) + c is a bound of the quantile at e^-c; S. Boucheron, G. Lugosi and
    # P. Massart, "Concentration inequalities" (2013), 2.4
    low = (log_lower + _log_factorial(order)) / order
    high = xp.log(order - log_upper + xp.sqrt(-2 * order * log_upper))
    wanted = xp.where((log_lower <= log_upper) | (low < _LEAST), -1.0, 1.0)
    due = xp.where(wanted < 0, log_lower, log_upper)

    def step(a: Array, wanted: Array, due: Array, v: Array) -> list[Array]:
        within = xp.clip(v, _LEAST, 709.0)
        return [within + _gamma_tail(a, xp.exp(within)).step(wanted, due)]

    (v,) = xp.repeated(_STEPS, step, [xp.where(wanted < 0, low, high)], [order, wanted, due])
    ends = xp.where(level == float(upper), 0.0, xp.where(level == 1.0 - upper, math.inf, math.nan))
    return xp.where(known, xp.exp(v), xp.where(a >= 0, ends, math.nan))


def _beta_inverse(attrs: Any, a: Array, b: Array, level: Array) -> Array:
    known = (a > 0) & (b > 0) & (xp.maximum(a, b) < math.inf) & (level > 0) & (level < 1)
    p, q, given = xp.where(known, a, 1.0), xp.where(known, b, 1.0), xp.where(known, level, 0.5)
    less, more = xp.log(given), xp.log1p(-given)
    # x^a / (a B(a, b)) is what the lower tail is near x = 0, and less of ln x / (1 - x) than x.
    common = xp.gammaln(p) + xp.gammaln(q) - xp.gammaln(p + q)
    low, high = (less + (common + xp.log(p))) / p, (more + (common + xp.log(q))) / q
    turned = (less > more) & (low >= _LEAST)
    p, q, due = xp.where(turned, q, p), xp.where(turned, p, q), xp.where(turned, more, less)

    def step(a: Array, b: Array, due: Array, v: Array) -> list[Array]:
        within = xp.clip(v, _LEAST, -_LEAST)
        x, y = xp.logistic(within), xp.logistic(-within)
        return [within + _beta_tail(a, b, x, y, 0.0 * x).step(xp.full_like(a, -1.0), due)]

    (v,) = xp.repeated(_STEPS, step, [xp.where(turned, high, low)], [p, q, due])
    quantile = xp.logistic(xp.where(turned, -v, v))
    ends = xp.where((level == 0) | (level == 1), level, math.nan)
    return xp.where(known, quantile, xp.where((a > 0) & (b > 0), ends, math.nan))


RECIPES = {
    "igamma": partial(_incomplete_gamma, upper=False),
    "igammac": partial(_incomplete_gamma, upper=True),
    "regularized_incomplete_beta": _incomplete_beta,
    "igamma_grad_a": _gamma_by_order,
    "regularized_incomplete_beta_grad": _beta_by_orders,
    "igamma_inv": partial(_gamma_inverse, upper=False),
    "igammac_inv": partial(_gamma_inverse, upper=True),
    "regularized_incomplete_beta_inv": _beta_inverse,
}
"""By op."""
