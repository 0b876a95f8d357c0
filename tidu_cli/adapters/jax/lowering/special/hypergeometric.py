"""Hypergeometric functions with fixed parameters: polynomials, series, and exponentials and powers times what is interpolated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.lowering.special.tables import Attrs, Function, in_double, polynomial, table
from tidu_cli.lax.special.recipes import bessel


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
    from scipy import special  # slow to import

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
    from scipy import special  # slow to import

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


_HYPERGEOMETRIC = {"hyp0f1": in_double(_hyp0f1), "hyp1f1": in_double(_hyp1f1), "hyp2f1": in_double(_hyp2f1)}
"""By op, of attrs and arrays."""


# Integrals of exponentials, sines and error functions.


def _of_jax(name: str, result: int | None = None) -> Function:
    """The function of jax.scipy.special of that name, or one of its results."""

    def function(attrs: Attrs, *operands: Any) -> Any:
        from jax.scipy import special

        found = getattr(special, name)(*operands)
        return found if result is None else found[result]

    return in_double(function)


def _erfcx(attrs: Attrs, x: Any) -> Any:
    """JAX's, but above 20, where that is 0 for a while: there Abramowitz and Stegun 7.1.23 has all digits."""
    from jax import numpy as jnp
    from jax.scipy import special

    far = jnp.maximum(x, 20)
    z = 0.5 / far / far
    series = (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z * (1 - 11 * z)))))) / (far * math.sqrt(math.pi))
    return jnp.where(x > 20, series, special.erfcx(jnp.minimum(x, 20)))


def _owens_t(attrs: Attrs, h: Any, a: Any) -> Any:
    from jax import numpy as jnp
    from jax.scipy import special

    limit = jnp.copysign(special.erfc(jnp.abs(h) * math.sqrt(0.5)) / 4, a)
    return jnp.where(jnp.isinf(a), limit, special.owens_t(h, a))


# The inverse of erfc.


@cache
def _erfc_inv_of_log() -> Function:
    from scipy import special  # slow to import

    return table(lambda w: special.erfcinv(np.exp(-w)), 0.5, 708.0)


def _erfc_inv(attrs: Attrs, x: Any) -> Any:
    from jax import lax
    from jax import numpy as jnp

    tail = jnp.where(x < 1, x, 2 - x)
    size = _erfc_inv_of_log()(-jnp.log(jnp.where(tail > 0, tail, 0.5)))
    found = jnp.where(tail < 0.5, jnp.where(x < 1, size, -size), lax.erf_inv(jnp.clip(1 - x, -0.6, 0.6)))
    return jnp.where(tail > 0, found, jnp.where(tail == 0, jnp.where(x < 1, jnp.inf, -jnp.inf), jnp.nan))


# Exponential integrals.

_TINY = 2.0**-54


@cache
def _scaled_expn(n: int) -> Function:
    """e^x E_n(x) between a number below which e^-x is 1, and one above which it is nearly 1 / (x + n)."""
    from scipy import special  # slow to import

    def scaled(x: Any) -> Any:
        near, far = np.minimum(x, 700.0), np.maximum(x, 700.0)
        y = far + n
        # Abramowitz and Stegun 5.1.52, where SciPy's loses digits to underflow.
        series = (1 + n / y**2 * (1 + (n - 2 * far) / y**2 + (6 * far**2 - 8 * n * far + n**2) / y**4)) / y
        return np.where(x <= 700, special.expn(n, near) * np.exp(near), series)

    return table(lambda x: scaled(x) * (x + n), _TINY, 750.0)


def _expn(attrs: Attrs, x: Any) -> Any:
    from jax import numpy as jnp

    n = attrs["n"]
    some = jnp.where((x > 0) & (x < jnp.inf), x, 1)
    found = jnp.exp(-some) * _scaled_expn(n)(some) / (some + n)
    if n == 1:
        found = jnp.where(some < _TINY, -jnp.log(some) - np.euler_gamma, found)
    found = jnp.where(x == jnp.inf, 0, found)
    return jnp.where(x > 0, found, jnp.where(x == 0, jnp.inf if n == 1 else 1 / max(n - 1, 1), jnp.nan))


_EI_SERIES = [0.0, *(1 / (k * math.factorial(k)) for k in range(1, 45))]
"""Ei x - ln |x| - γ; Abramowitz and Stegun 5.1.10."""


@cache
def _scaled_expi() -> Function:
    from scipy import special  # slow to import

    def scaled(x: Any) -> Any:
        near = np.minimum(x, 700.0)
        series = polynomial([math.factorial(k) for k in range(8)], 1 / x)  # Abramowitz and Stegun 5.1.51
        return np.where(x <= 700, special.expi(near) * np.exp(-near) * near, series)

    return table(scaled, 8.0, 720.0)


def _expi(attrs: Attrs, x: Any) -> Any:
    from jax import numpy as jnp

    near = jnp.clip(x, 1e-37, 8.0)
    series = np.euler_gamma + jnp.log(jnp.where((x > 0) & (x < 8), x, near)) + polynomial(_EI_SERIES, near)
    far = jnp.clip(x, 8.0, 800.0)
    half = jnp.exp(far / 2)
    above = jnp.where(x < 8, series, half * (_scaled_expi()(far) / far) * half)
    below = -_expn({"n": 1}, jnp.where(x < 0, -x, 1))
    return jnp.where(x > 0, jnp.where(x == jnp.inf, x, above), jnp.where(x == 0, -jnp.inf, jnp.where(x < 0, below, x)))


_INTEGRALS = {
    "erfcx": in_double(_erfcx),
    "dawsn": _of_jax("dawsn"),
    "spence": _of_jax("spence"),
    "owens_t": in_double(_owens_t),
    "fresnel_s": _of_jax("fresnel", 0),
    "fresnel_c": _of_jax("fresnel", 1),
    "sin_integral": _of_jax("sici", 0),
    "cos_integral": _of_jax("sici", 1),
    "erfc_inv": in_double(_erfc_inv),
    "expi": in_double(_expi),
    "expn": in_double(_expn),
}
"""By op, of attrs and arrays."""


FUNCTIONS = {**_HYPERGEOMETRIC, **_INTEGRALS}
