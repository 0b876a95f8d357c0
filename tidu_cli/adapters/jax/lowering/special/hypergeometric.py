"""Hypergeometric functions with fixed parameters: polynomials, series, and exponentials and powers times what is interpolated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.lowering.special import bessel
from tidu_cli.adapters.jax.lowering.special.tables import Attrs, Function, in_double, polynomial, table


def _terms(above: Sequence[float], below: Sequence[float], count: int) -> list[float]:
    """Coefficients of a hypergeometric series."""
    found = [1.0]
    for k in range(count - 1):
        found.append(found[-1] * math.prod(a + k for a in above) / math.prod((*(b + k for b in below), k + 1.0)))
    return found


def _degree(*parameters: float) -> int | None:
    """Of the polynomial that a series with these is, if one of them is an integer up to 0."""
    return min((int(-a) for a in parameters if a <= 0 and a == int(a)), default=None)


def _hyp0f1(attrs: Attrs, x: Any) -> Any:
    # Abramowitz and Stegun 9.1.69, 9.6.47.
    from jax import numpy as jnp

    b = float(attrs["b"])
    near, z = jnp.clip(x, -1.0, 1.0), 2 * jnp.sqrt(jnp.clip(jnp.abs(x), 1.0, 1e30))
    power, half = math.gamma(b) * (z / 2) ** (1 - b), jnp.exp(z / 4)
    above = half * half * (bessel.scaled_i(b - 1, z) * power) * half * half
    found = jnp.where(jnp.abs(x) <= 1, polynomial(_terms((), (b,), 20), near), jnp.where(x > 0, above, bessel.j(b - 1, z) * power))
    return jnp.where(jnp.isnan(x) | (x == -jnp.inf), jnp.nan, found)


@cache
def _kummer(a: float, b: float) -> Function:
    """e^-x x^(b - a) ₁F₁(a, b, x) from 1 on."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    def scaled(x: Any) -> Any:
        near, far = np.minimum(x, 300.0), np.maximum(x, 300.0)
        series = math.gamma(b) / math.gamma(a) * polynomial(_terms((1 - a, b - a), (), 12), 1 / far)  # 13.5.1
        return np.where(x < 300, special.hyp1f1(a, b, near) * np.exp(-near) * near ** (b - a), series)

    return table(scaled, 1.0, 2.0**40, 4.0)


def _hyp1f1(attrs: Attrs, x: Any) -> Any:
    from jax import numpy as jnp

    a, b = float(attrs["a"]), float(attrs["b"])
    degree = _degree(a)
    if degree is not None:
        return polynomial(_terms((a,), (b,), degree + 1), x)

    def scaled(a: float, y: Any) -> Any:
        """e^-y ₁F₁(a, b, y), for y from 1."""
        degree = _degree(a)
        if degree is not None:
            return polynomial(_terms((a,), (b,), degree + 1), y) * jnp.exp(-y)
        return _kummer(a, b)(y) * y ** (a - b)

    size = jnp.maximum(jnp.where(x < 0, -x, jnp.minimum(x, 1e30)), 1.0)
    half = jnp.exp(jnp.minimum(size, 2000.0) / 2)
    series = polynomial(_terms((a,), (b,), 30), jnp.clip(x, -1.0, 1.0))
    # Kummer's transformation below 0; 13.1.27.
    found = jnp.where(jnp.abs(x) <= 1, series, jnp.where(x > 0, half * scaled(a, size) * half, scaled(b - a, size)))
    return jnp.where(jnp.isnan(x), x, found)


@cache
def _gauss(a: float, b: float, c: float) -> Function:
    """₂F₁(a, b, c, 1 - u) u^max(0, a + b - c), between 0 and 1."""
    from scipy import special

    def scaled(u: Any) -> Any:
        # 1 - u is rounded: what that makes is put right by Taylor's series, whose terms are 15.2.2.
        at = 1 - u
        slopes = _terms((a, b), (c,), 6)
        lost = (1 - at) - u
        parts = [f * special.hyp2f1(a + k, b + k, c + k, at) * lost**k for k, f in enumerate(slopes)]
        found = sum(np.where((lost == 0) & (k > 0), 0.0, part) for k, part in enumerate(parts))
        return found * u ** max(0.0, a + b - c)

    return table(scaled, 2.0**-50, 1.0)


def _hyp2f1(attrs: Attrs, x: Any) -> Any:
    from jax import numpy as jnp
    from scipy import special

    a, b = sorted((float(attrs["a"]), float(attrs["b"])))
    c = float(attrs["c"])
    degree = _degree(a, b)
    if degree is not None:
        return polynomial(_terms((a, b), (c,), degree + 1), x)

    def within(b: float, u: Any) -> Any:
        return _gauss(a, b, c)(u) * u ** -max(0.0, a + b - c)

    # Pfaff's transformation below 0; 15.3.4. The lesser of a and b stays, so that what is interpolated has no pole.
    u = 1 / (1 - jnp.minimum(x, 0.0))
    found = jnp.where(x >= 0, within(b, jnp.where((x > 0) & (x < 1), 1 - x, 1.0)), within(c - b, u) * u**a)
    found = jnp.where(x == 1, float(special.hyp2f1(a, b, c, 1.0)), found)
    return jnp.where(x <= 1, found, jnp.where(x > 1, jnp.inf, x))


FUNCTIONS = {"hyp0f1": in_double(_hyp0f1), "hyp1f1": in_double(_hyp1f1), "hyp2f1": in_double(_hyp2f1)}
"""By op, of attrs and arrays."""
