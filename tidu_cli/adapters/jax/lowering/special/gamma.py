"""The gamma function, and inverses of incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.lowering.special.tables import Attrs, Function, in_double, polynomial, table
from tidu_cli.lax.special import order_integrals
from tidu_cli.lax.special.order_integrals import bell

# Derivatives of incomplete gamma and beta functions by their orders, and of zeta by its exponent.
#
# The formulas are those of `tidu_cli.lax.special.order_integrals`, whose functions of NumPy are called with JAX's; what is chosen
# there by looking at numbers is computed both ways here.


_RAISED = 10


class _Numbers:
    """jax.numpy, with NumPy's Gauss-Legendre rule, and polynomials of tuples."""

    polynomial = np.polynomial

    def polyval(self, coefficients: Any, x: Any) -> Any:
        return polynomial(coefficients[::-1], x)

    def __getattr__(self, name: str) -> Any:
        from jax import numpy as jnp

        return getattr(jnp, name)


class _Special:
    """What is read of scipy.special."""

    def psi(self, x: Any) -> Any:
        from jax import lax

        return lax.digamma(x)

    def gammaln(self, x: Any) -> Any:
        from jax import lax

        return lax.lgamma(x)

    def polygamma(self, order: int, x: Any) -> Any:
        from jax import lax
        from jax import numpy as jnp

        return lax.polygamma(jnp.full_like(x, order), x) if order else lax.digamma(x)


_NUMBERS, _SPECIAL = _Numbers(), _Special()


def _gamma_by_order(attrs: Attrs, a: Any, x: Any) -> Any:
    from jax import lax
    from jax import numpy as jnp

    n, shape = attrs["order"], a.shape
    a, x = a.reshape(-1), x.reshape(-1)
    known = (a > 0) & (x >= 0)
    inside = known & (a < jnp.inf) & (x > 0) & (x < jnp.inf)
    order, at = jnp.where(inside, a, 1), jnp.where(inside, x, 1)
    log_x, small, added = jnp.log(at), order < _RAISED, 0.0
    # P(a, x) = P(a + 1, x) + x^a e^-x / Γ(a + 1)
    for k in range(_RAISED):
        c = order + (k + 1)
        slopes = [log_x - lax.digamma(c), *(-_SPECIAL.polygamma(i, c) for i in range(1, n))]
        added = added + jnp.exp((order + k) * log_x - at - lax.lgamma(c)) * bell(n, 0, lambda i, j, s=slopes: s[i - 1])  # type: ignore[misc]
    raised = jnp.where(small, order + _RAISED, order)
    below = order_integrals._gamma_side(_NUMBERS, _SPECIAL, n, raised, at, -1.0) + jnp.where(small, added, 0)
    above = -order_integrals._gamma_side(_NUMBERS, _SPECIAL, n, order, at, 1.0)
    found = jnp.where(at <= jnp.maximum(1, jnp.exp(lax.digamma(order))), below, above)
    return jnp.where(inside, found, jnp.where(known, 0.0, jnp.nan)).reshape(shape)


def _zeta_by_exponent(attrs: Attrs, s: Any, q: Any) -> Any:
    from jax import numpy as jnp

    n = attrs["order"]
    known = (s > 1) & (q > 0)
    inside = known & jnp.isfinite(s) & jnp.isfinite(q)
    s, q = jnp.where(inside, s, 2), jnp.where(inside, q, 1)
    terms = order_integrals._TERMS
    found = sum((-jnp.log(q + k)) ** n * (q + k) ** -s for k in range(terms))
    # The Euler-Maclaurin formula.
    t = q + terms
    log_t, size = -jnp.log(t), t**-s
    for i in range(n + 1):
        found = found + math.comb(n, i) * log_t ** (n - i) * size * t * (-1.0) ** i * math.factorial(i) / (s - 1) ** (i + 1)
    found = found + log_t**n * size / 2
    jet = [s, jnp.ones_like(s), *[jnp.zeros_like(s)] * (n - 1)]  # s and its derivatives by s
    for j, coefficient in enumerate(order_integrals._BERNOULLI):
        at = coefficient * size / t ** (2 * j + 1)
        found = found + at * sum(math.comb(n, i) * jet[i] * log_t ** (n - i) for i in range(n + 1))
        for k in (2 * j + 1, 2 * j + 2):
            jet = [jet[i] * (s + k) + (i * jet[i - 1] if i else 0) for i in range(n + 1)]
    return jnp.where(inside, found, jnp.where(known, 0.0, jnp.nan))


# The beta function.


def _curvature(i: int, j: int, a: Any, b: Any, raised: int) -> Any:
    """A derivative by a and b, of an order from 2, of ln Γ(a + b) - ln Γ(a + raised) - ln Γ(b)."""
    if i and j:
        return _SPECIAL.polygamma(i + j - 1, a + b)
    return _step(j - 1, b, a) if j else _step(i - 1, a + raised, b - raised)


def _step(order: int, z: Any, step: Any) -> Any:
    """ψ⁽ⁿ⁾(z + step) - ψ⁽ⁿ⁾(z): for a step that is small beside z, where the two cancel, by Taylor's series."""
    from jax import numpy as jnp

    series = sum(step**k / math.factorial(k) * _SPECIAL.polygamma(order + k, z) for k in range(1, 9))
    return jnp.where(jnp.abs(step) < z / 100, series, _SPECIAL.polygamma(order, z + step) - _SPECIAL.polygamma(order, z))


def _remainders(a: Any, b: Any) -> Any:
    """What Stirling's formula lacks of ln B(a, b), negated."""
    return (
        order_integrals._remainder(_NUMBERS, _SPECIAL, a + b)
        - order_integrals._remainder(_NUMBERS, _SPECIAL, a)
        - order_integrals._remainder(_NUMBERS, _SPECIAL, b)
    )


def _beta_lower(m: int, n: int, a: Any, b: Any, x: Any, y: Any) -> Any:
    """The integral below x; y is 1 - x."""
    from jax import lax
    from jax import numpy as jnp

    small, added = a < _RAISED, 0.0
    excess = order_integrals._excess
    # I(a, b) = I(a + 1, b) + x^a y^b / (a B(a, b))
    for k in range(_RAISED):
        p = a + k
        total = p + b
        size = p * jnp.log(x * total / p) + b * (jnp.log1p(-x) + jnp.log1p(p / b))
        weight = jnp.exp(size + _remainders(p, b)) * jnp.sqrt(b / (2 * math.pi * total * p))
        first = {
            (1, 0): jnp.log(x) + lax.digamma(total) - lax.digamma(p + 1),
            (0, 1): jnp.log1p(-x) + jnp.log1p(p / b) + (excess(_NUMBERS, _SPECIAL, b) - excess(_NUMBERS, _SPECIAL, total)),
        }
        added = added + weight * bell(m, n, lambda i, j, f=first, p=p: f[i, j] if i + j == 1 else _curvature(i, j, p, b, 1))  # type: ignore[misc]
    return _beta_side(m, n, jnp.where(small, a + _RAISED, a), b, x, y) + jnp.where(small, added, 0)


def _beta_side(m: int, n: int, a: Any, b: Any, x: Any, y: Any) -> Any:
    """The integral of the density's derivative below x, over v = ln(s / (1 - s)) - ln(a / b)."""
    from jax import numpy as jnp

    total = a + b
    p, q = a / total, b / total

    def logs(v: Any, p: Any, q: Any) -> tuple[Any, Any]:
        return -jnp.log1p(q * jnp.expm1(-v)), -jnp.log1p(p * jnp.expm1(v))

    def deviance(v: Any) -> Any:
        log_s, log_rest = logs(v, p, q)
        return -a * log_s - b * log_rest

    start = jnp.log(x) - jnp.log(y) - jnp.log(a / b)
    reach = order_integrals._reach(_NUMBERS, lambda s: deviance(start - s) - deviance(start), start)
    of_a, of_b, of_both = (order_integrals._excess(_NUMBERS, _SPECIAL, z)[:, None] for z in (a, b, total))
    curvatures = {(i, j): _curvature(i, j, a, b, 0)[:, None] for i in range(m + 1) for j in range(n + 1) if i + j > 1}

    def integrand(v: Any) -> Any:
        log_s, log_rest = logs(v, p[:, None], q[:, None])
        exponents = {**curvatures, (1, 0): log_s + of_a - of_both, (0, 1): log_rest + of_b - of_both}
        return jnp.exp(a[:, None] * log_s + b[:, None] * log_rest) * bell(m, n, lambda i, j: exponents[i, j])

    # By a product: XLA's compiler has been seen to make a wrong sum of what is computed within it.
    nodes, weights = order_integrals._rule(_NUMBERS)
    integral = reach * (integrand(start[:, None] - reach[:, None] * nodes) @ jnp.asarray(weights, a.dtype))
    return jnp.sqrt(p * b / (2 * math.pi)) * jnp.exp(_remainders(a, b)) * integral


def _beta_by_orders(attrs: Attrs, a: Any, b: Any, x: Any) -> Any:
    from jax import lax
    from jax import numpy as jnp

    m, n, shape = attrs["order_x"], attrs["order_y"], a.shape
    a, b, x = (z.reshape(-1) for z in (a, b, x))
    known = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    inside = known & (jnp.maximum(a, b) < jnp.inf) & (x > 0) & (x < 1)
    a, b, x = (jnp.where(inside, z, other) for z, other in ((a, 1), (b, 1), (x, 0.5)))
    if not n:
        lower = jnp.log(x) <= lax.digamma(a) - lax.digamma(a + b)
    elif not m:
        lower = jnp.log1p(-x) >= lax.digamma(b) - lax.digamma(a + b)
    else:
        lower = x * (a + b) <= a
    found = jnp.where(lower, _beta_lower(m, n, a, b, x, 1 - x), -_beta_lower(n, m, b, a, 1 - x, x))
    return jnp.where(inside, found, jnp.where(known, 0.0, jnp.nan)).reshape(shape)


BY_ORDERS = {
    "igamma_grad_a": in_double(_gamma_by_order),
    "regularized_incomplete_beta_grad": in_double(_beta_by_orders),
    "zeta_grad": in_double(_zeta_by_exponent),
}
"""By op, of attrs and arrays."""


@cache
def _factorial_part() -> Function:
    """Γ between 1 and 2, of numbers that are greater by 1."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    return table(special.gamma, 1.0, 2.0, 4.0)


def _gamma(attrs: Attrs, x: Any) -> Any:
    from jax import numpy as jnp

    size = jnp.clip(jnp.abs(x), 0, 180.0)
    steps = jnp.floor(size)
    found = _factorial_part()(1 + (size - steps))
    # Γ(1 + r) (1 + r) (2 + r) …: exact to a few units for all numbers that are not infinite.
    for k in range(1, 172):
        found = jnp.where(k < steps, found * (size - steps + k), found)
    found = jnp.where(steps == 0, found / size, found)
    turned = x - 2 * jnp.round(x / 2)
    reflected = math.pi / (jnp.sin(math.pi * turned) * size * found)  # Abramowitz and Stegun 6.1.17
    integral = x == jnp.round(x)
    below = jnp.where(integral | (x == -jnp.inf), jnp.where(x == 0, 1 / x, jnp.nan), jnp.where(x > -180, reflected, 0.0))
    return jnp.where(x > 0, jnp.where(x > 172, jnp.inf, found), jnp.where(jnp.isnan(x), x, below))


# Inverses: safeguarded Newton steps on logarithms.


def _root(function: Callable[[Any], tuple[Any, Any]], low: Any, high: Any, steps: int = 90) -> Any:
    """Where an increasing function, of which (value, slope) is given, is 0: Newton's steps, and halves where these leave."""
    from jax import lax
    from jax import numpy as jnp

    def step(_: Any, state: Any) -> Any:
        low, high, x = state
        value, slope = function(x)
        low, high = jnp.where(value <= 0, x, low), jnp.where(value >= 0, x, high)
        newton = x - value / slope
        inside = (newton >= low) & (newton <= high) & jnp.isfinite(slope)  # which a value that has vanished makes infinite
        return low, high, jnp.where(inside, newton, (low + high) / 2)

    return lax.fori_loop(0, steps, step, (low, high, (low + high) / 2))[2]


def _log_ratio(found: Any, due: Any) -> Any:
    """ln(found / due), as good as it can be where they are near each other."""
    from jax import numpy as jnp

    near = jnp.abs(found - due) < 0.5 * due
    tiny = jnp.finfo(found.dtype).tiny  # type: ignore[no-untyped-call]
    return jnp.where(near, jnp.log1p((found - due) / due), jnp.log(jnp.maximum(found, tiny)) - jnp.log(due))


def _gamma_inverse(attrs: Attrs, a: Any, level: Any, upper: bool) -> Any:
    """x with P(a, x) or 1 - P(a, x) = level, over ln x; that of the two functions is met which is less."""
    from jax import lax
    from jax import numpy as jnp

    known = (a > 0) & (a < jnp.inf) & (level > 0) & (level < 1)
    a, inner = jnp.where(known, a, 1), jnp.where(known, level, 0.5)
    lower = (inner >= 0.5) if upper else (inner <= 0.5)
    due = jnp.where(lower == upper, 1 - inner, inner)

    def function(v: Any) -> tuple[Any, Any]:
        x = jnp.exp(v)
        p, q = lax.igamma(a, x), lax.igammac(a, x)
        found = jnp.where(lower, p, q)
        density = jnp.exp(a * v - x - lax.lgamma(a))  # by ln x
        sign = jnp.where(lower, 1.0, -1.0)
        return sign * _log_ratio(found, due), density / found

    first = (jnp.log(inner if not upper else 1 - inner) + lax.lgamma(a + 1)) / a
    low = jnp.minimum(first - 1, jnp.log(a)) - 40 / jnp.sqrt(a)
    high = jnp.log(a + 40 * jnp.sqrt(a) + 800)
    found = jnp.exp(_root(function, jnp.maximum(low, -745.0), high))
    zero, infinite = (level == 1, level == 0) if upper else (level == 0, level == 1)
    ends = jnp.where(zero, 0.0, jnp.where(infinite, jnp.inf, jnp.nan))
    return jnp.where(known, found, jnp.where(a > 0, ends, jnp.nan))


def _beta_inverse(attrs: Attrs, a: Any, b: Any, level: Any) -> Any:
    """x with I(a, b, x) = level, over ln(x / (1 - x)); that of I and 1 - I is met which is less."""
    from jax import lax
    from jax import numpy as jnp

    known = (a > 0) & (b > 0) & (level > 0) & (level < 1)
    a, b, inner = (jnp.where(known, x, y) for x, y in ((a, 1), (b, 1), (level, 0.5)))
    lower = inner <= 0.5
    due = jnp.where(lower, inner, 1 - inner)
    log_beta = lax.lgamma(a) + lax.lgamma(b) - lax.lgamma(a + b)

    def function(v: Any) -> tuple[Any, Any]:
        x, y = lax.logistic(v), lax.logistic(-v)
        found = jnp.where(lower, lax.betainc(a, b, x), lax.betainc(b, a, y))
        density = jnp.exp(-a * jnp.log1p(jnp.exp(-v)) - b * jnp.log1p(jnp.exp(v)) - log_beta)
        return jnp.where(lower, 1.0, -1.0) * _log_ratio(found, due), density / found

    found = lax.logistic(_root(function, jnp.full_like(a, -700.0), jnp.full_like(a, 700.0)))
    return jnp.where(known, found, jnp.where((level == 0) | (level == 1), level, jnp.nan))


FUNCTIONS = {
    "gamma": in_double(_gamma),
    "igamma_inv": in_double(lambda attrs, a, p: _gamma_inverse(attrs, a, p, upper=False)),
    "igammac_inv": in_double(lambda attrs, a, q: _gamma_inverse(attrs, a, q, upper=True)),
    "regularized_incomplete_beta_inv": in_double(_beta_inverse),
    **BY_ORDERS,
}
"""By op, of attrs and arrays."""
