"""Special functions to a few units in the last place where lax's lose more: for graphs that are run, by the engine xla.

Modules that are written keep lax's, which have names in StableHLO that other programs know.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.lowering.special.tables import Attrs, Function, polynomial, table
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN


def _of_doubles(function: Callable[[Any], Any], otherwise: str) -> Function:
    """A function of arrays of f64 as one of attrs and arrays of any dtype, for the others of which it is lax's of that name."""

    @wraps(function)
    def computed(attrs: Attrs, x: Any) -> Any:
        from jax import lax

        return function(x) if x.dtype == np.float64 else getattr(lax, otherwise)(x)

    return computed


# Error functions.


@cache
def _scaled_erfc() -> Function:
    """x e^(x^2) erfc(x), where 1 - erf(x) begins to lose digits up to where erfc is 0."""
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    def scaled(x: Any) -> Any:
        small = np.minimum(x, 1.5).astype(np.longdouble)
        term = total = small
        for k in range(1, 60):  # of e^(x^2) erf(x) √π / 2; Abramowitz and Stegun 7.1.6
            term = term * small * small / (k + 0.5)
            total = total + term
        series = np.exp(small * small) - total / np.sqrt(np.arctan(np.longdouble(1)))
        return x * np.where(x < 1.5, series, special.erfcx(x))

    return table(scaled, 0.25, 28.0)


def _erfc(x: Any) -> Any:
    from jax import lax
    from jax import numpy as jnp

    far = jnp.clip(x, 0.25, 28.0)
    # e^(-x^2) with x^2 rounded would lose log2(x^2) bits: h has 24 bits, so that its square is exact.
    h = lax.reduce_precision(far, exponent_bits=8, mantissa_bits=23)
    tail = jnp.exp(-h * h) * (jnp.exp((h - far) * (h + far)) * (_scaled_erfc()(far) / far))
    return jnp.where(x > 0.25, jnp.where(x > 28, 0.0, tail), 1 - lax.erf(x))


@cache
def _erf_inv_near_0() -> Function:
    """erf_inv(x) / x of 1 + x^2."""
    from scipy import special

    def ratio(u: Any) -> Any:
        x = np.sqrt(u - 1)
        return special.erfinv(x) / x

    return table(ratio, 1.0, 1.25, per_octave=8)


@cache
def _erf_inv_of_log() -> Function:
    """erf_inv(x) of -ln(1 - x)."""
    from scipy import special

    def found(w: Any) -> Any:
        y = special.erfcinv(np.exp(-w))
        scaled = special.erfcx(y)  # a step of Newton's for ln erfc(y) = -w, as erfcinv loses some digits
        return y + (np.log(scaled) - y * y + w) * scaled * math.sqrt(math.pi) / 2

    return table(found, 0.69, 37.5)


def _erf_inv(x: Any) -> Any:
    from jax import numpy as jnp

    size = jnp.abs(x)
    near = jnp.where(size < 0.5, x, 0)
    far = jnp.where((size > 0.5) & (size < 1), size, 0.5)
    tail = jnp.sign(x) * jnp.where(size < 1, _erf_inv_of_log()(-jnp.log(1 - far)), jnp.where(size == 1, jnp.inf, jnp.nan))
    return jnp.where(size < 0.5, near * _erf_inv_near_0()(1 + near * near), tail)


# The logarithm of the gamma function, and its derivative. Both have series for large numbers, from which others are reached by
# recurrence, and tables of what is left when their zeros are divided out.

_LARGE = 15.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""ln Γ(x) = (x - 1/2) ln x - x + ln(2π) / 2 + Σ c(j) / x^(2j + 1); Abramowitz and Stegun 6.1.40."""
_OF_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""ψ(x) = ln x - 1 / 2x - Σ c(j) / x^(2j + 2); 6.3.18."""


_ZERO = (1.4616321449683622, 9.549995429965697e-17)
"""Where ψ is 0, as a sum."""
_ZERO_BELOW = (-0.5040830082644554, -8.15428206243813e-18)


@cache
def _lgamma_apart() -> Function:
    """ln Γ(x) / ((x - 1) (x - 2))."""
    type_ = TensorType("f64", ())
    kernel = BUILTIN["lgamma"].evaluation.kernel(np, None, (type_,), (type_,))  # with more digits around 1 and 2 than SciPy's
    return table(lambda x: kernel(x) / ((x - 1) * (x - 2)), 0.5, 2.5, per_octave=4)


def _lgamma(x: Any) -> Any:
    from jax import numpy as jnp

    size = jnp.abs(x)
    small = size < 0.5
    near = jnp.where(small, 1 + x, jnp.clip(size, 0.5, _LARGE))
    steps, product = jnp.floor(jnp.maximum(near - 1.5, 0)), jnp.ones_like(x)
    for k in range(1, int(_LARGE - 1)):
        product = jnp.where(k <= steps, product * (near - k), product)
    r = near - steps
    # One logarithm, so that little cancels: ln |x| is less than 0 where it is taken away.
    found = (r - 1) * (r - 2) * _lgamma_apart()(r) + jnp.log(jnp.where(small, 1 / size, product))
    far = jnp.maximum(size, _LARGE)
    rest = polynomial(_STIRLING, 1 / far / far) / far + (math.log(2 * math.pi) - 1) / 2
    found = jnp.where(size < _LARGE, found, (far - 0.5) * (jnp.log(far) - 1) + rest)
    turned = jnp.where(jnp.isinf(x), 0, x - jnp.round(x))
    sine = jnp.abs(jnp.sin(math.pi * turned))
    mirrored = jnp.log(math.pi / (size * sine)) - found  # 6.1.17
    return jnp.where(x <= -0.5, jnp.where(sine == 0, jnp.inf, mirrored), found)


@cache
def _digamma_apart(zero: tuple[float, float], low: float, high: float, by: float) -> Function:
    """ψ(x) / (x - zero) of x + `by`."""

    def apart(shifted: Any) -> Any:
        x = shifted.astype(np.longdouble) - by
        far = x + 20  # where the series has more digits than are needed
        psi = np.log(far) - 0.5 / far - polynomial(_OF_DIGAMMA, 1 / far / far) / far / far
        return (psi - sum(1 / (x + k) for k in range(20))) / (x - zero[0] - zero[1])

    return table(apart, low, high, per_octave=4)


def _around(zero: tuple[float, float], low: float, high: float, x: Any, by: float = 0.0) -> Any:
    """ψ between two numbers."""
    from jax import lax

    apart = lax.optimization_barrier(x - zero[0]) - zero[1]  # XLA would take away the sum of the two
    return apart * _digamma_apart(zero, low + by, high + by, by)(x + by)


def _digamma(x: Any) -> Any:
    from jax import numpy as jnp

    size = jnp.abs(x)
    small = (x < 1) & (x >= -0.2)
    y = jnp.where(small, 1 + x, jnp.where(x < 0, 1 + size, x))  # ψ(x) = ψ(1 + x) - 1 / x, = ψ(1 - x) - π / tan πx
    near = jnp.clip(y, 0.8, 10.0)
    steps = jnp.floor(jnp.maximum(near - 1.5, 0))
    found = _around(_ZERO, 0.8, 2.5, near - steps)
    for k in range(9, 0, -1):
        found = jnp.where(k <= steps, found + 1 / (near - k), found)
    far = jnp.maximum(y, 10.0)
    square = 1 / far / far
    found = jnp.where(y < 10, found, jnp.log(far) - (0.5 / far + square * polynomial(_OF_DIGAMMA, square)))
    turned = x - jnp.round(x)
    pole = (x <= 0) & (turned == 0)
    below = found - math.pi / jnp.tan(math.pi * jnp.where(pole, 0.5, turned))
    below = jnp.where((x > -0.8) & (x < -0.2), _around(_ZERO_BELOW, -0.8, -0.2, jnp.clip(x, -0.8, -0.2), by=1.0), below)
    return jnp.where(pole, jnp.nan, jnp.where(small, found - 1 / jnp.where(pole, 1, x), jnp.where(x < 0, below, found)))


FUNCTIONS = {
    "erfc": _of_doubles(_erfc, "erfc"),
    "erf_inv": _of_doubles(_erf_inv, "erf_inv"),
    "lgamma": _of_doubles(_lgamma, "lgamma"),
    "digamma": _of_doubles(_digamma, "digamma"),
}
"""By op, of attrs and arrays."""
