"""Elementwise functions right to more digits, or at more edges, than lax's of their names, for graphs that the engine xla runs.

Modules and functions of JAX have lax's, by which they are shorter, and derivatives JAX's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from tidu_cli.adapters.jax.lowering.arrays import magnitude

Attrs = dict[str, Any]


def _exp2(attrs: Attrs, x: Any) -> Any:
    """As a power: lax has exp(x log 2), in which the rounding of x log 2 counts the more the greater that is."""
    return lax.exp2(x) if x.dtype.kind == "c" else lax.pow(lax.full_like(x, 2), x)


def _log1p(attrs: Attrs, x: Any) -> Any:
    """Below -1/4 the logarithm of 1 + x, which is right to its last digit: XLA loses two digits there, from -0.42 to -0.36."""
    if x.dtype != np.float64:
        return lax.log1p(x)
    below = lax.lt(x, lax.full_like(x, -0.25))
    return lax.select(below, lax.log(lax.add(x, lax.full_like(x, 1))), lax.log1p(x))


def _atanh(attrs: Attrs, x: Any) -> Any:
    if x.dtype != np.float64:
        return lax.atanh(x)
    return lax.mul(lax.full_like(x, 0.5), lax.sub(_log1p(attrs, x), _log1p(attrs, lax.neg(x))))


def _halves(x: Any) -> tuple[Any, Any]:
    """Half of exp(x) and of exp(-x): as squares, which overflow no sooner; XLA has exp(x + log(1/2)), where the sum is rounded."""
    half = lax.full_like(x, 0.5)
    up, down = lax.exp(lax.mul(half, x)), lax.exp(lax.mul(lax.neg(half), x))
    return lax.mul(lax.mul(half, up), up), lax.mul(lax.mul(half, down), down)


def _sinh(attrs: Attrs, x: Any) -> Any:
    if x.dtype not in _SINGLE_AND_DOUBLE:
        return lax.sinh(x)
    near = lax.lt(lax.abs(x), lax.full_like(x, 1))
    return lax.select(near, lax.sinh(x), lax.sub(*_halves(x)))


_SINGLE_AND_DOUBLE = (np.float32, np.float64)

_BY_PRODUCTS = 8
"""Powers to greater integers are no products: each factor would be a rounding."""


def _integer_pow(attrs: Attrs, x: Any) -> Any:
    y = attrs["y"]
    if abs(y) <= _BY_PRODUCTS or x.dtype.kind in "ciu" or float(x.dtype.type(y)) != y:
        return lax.integer_pow(x, y)
    return lax.pow(x, lax.full_like(x, y))


def _abs(attrs: Attrs, x: Any) -> Any:
    """An infinite part outweighs a NaN, as in C99's hypot."""
    if x.dtype.kind != "c":
        return magnitude(attrs, x)
    parts = [lax.abs(lax.real(x)), lax.abs(lax.imag(x))]
    infinite = lax.full_like(parts[0], np.inf)
    return lax.select(lax.bitwise_or(*[lax.eq(part, infinite) for part in parts]), infinite, lax.abs(x))


def _pow(attrs: Attrs, x: Any, y: Any) -> Any:
    """Zero to a complex power of positive real part is zero; lax multiplies its logarithm."""
    power = lax.pow(x, y)
    if y.dtype.kind != "c":
        return power
    zero = lax.full_like(power, 0)
    positive = lax.gt(lax.real(y), lax.real(zero))
    return lax.select(lax.bitwise_and(lax.eq(x, zero), positive), zero, power)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": _abs,
    "pow": _pow,
    "exp2": _exp2,
    "log1p": _log1p,
    "atanh": _atanh,
    "sinh": _sinh,
    "cosh": lambda attrs, x: lax.add(*_halves(x)) if x.dtype in _SINGLE_AND_DOUBLE else lax.cosh(x),
    "integer_pow": _integer_pow,
}
"""By op, of attrs and arrays."""
