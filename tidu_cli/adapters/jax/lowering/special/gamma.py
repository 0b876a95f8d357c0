"""The gamma function, and inverses of incomplete gamma and beta functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from tidu_cli.adapters.jax.lowering.special.orders import BY_ORDERS
from tidu_cli.adapters.jax.lowering.special.tables import Attrs, Function, in_double, table


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
