"""Integrals of exponentials, sines and error functions."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.lowering.special.tables import Attrs, Function, in_double, polynomial, table


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
    from scipy import special  # type: ignore[import-untyped]  # slow to import

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
    from scipy import special

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
    from scipy import special

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


FUNCTIONS = {
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
