"""Elementwise primitives that lax has under another name, with other attrs, or not for every dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

Attrs = dict[str, Any]


def _abs(attrs: Attrs, x: Any) -> Any:
    return lax.abs(x) if x.dtype.kind != "u" else x


def _round(attrs: Attrs, x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod[attrs["rounding_method"]])


def _exp2(attrs: Attrs, x: Any) -> Any:
    """As a power: lax has exp(x log 2), in which the rounding of x log 2 counts the more the greater that is."""
    return lax.exp2(x) if x.dtype.kind == "c" else lax.pow(lax.full_like(x, 2), x)


def _mended(found: Any, better: Any) -> Any:
    """What a function of lax finds, with its derivatives, moved to a value that has more digits."""
    by = lax.sub(better, found)
    # Else -0, which changes nothing, not even the sign of -0.
    mended = lax.bitwise_and(lax.is_finite(by), lax.ne(by, lax.full_like(by, 0)))
    return lax.add(found, lax.stop_gradient(lax.select(mended, by, lax.full_like(by, -0.0))))


def _logarithm(x: Any) -> Any:
    """log(1 + x): below -1/4 of the sum, which is right to its last digit. XLA loses two digits there, from -0.42 to -0.36."""
    below = lax.lt(x, lax.full_like(x, -0.25))
    return lax.select(below, lax.log(lax.add(x, lax.full_like(x, 1))), lax.log1p(x))


def _log1p(attrs: Attrs, x: Any) -> Any:
    return _mended(lax.log1p(x), _logarithm(x)) if x.dtype == np.float64 else lax.log1p(x)


def _atanh(attrs: Attrs, x: Any) -> Any:
    if x.dtype != np.float64:
        return lax.atanh(x)
    return _mended(lax.atanh(x), lax.mul(lax.full_like(x, 0.5), lax.sub(_logarithm(x), _logarithm(lax.neg(x)))))


def _halves(x: Any) -> tuple[Any, Any]:
    """Half of exp(x) and of exp(-x): as squares, which overflow no sooner; XLA has exp(x + log(1/2)), where the sum is rounded."""
    half = lax.full_like(x, 0.5)
    up, down = lax.exp(lax.mul(half, x)), lax.exp(lax.mul(lax.neg(half), x))
    return lax.mul(lax.mul(half, up), up), lax.mul(lax.mul(half, down), down)


def _cosh(attrs: Attrs, x: Any) -> Any:
    return _mended(lax.cosh(x), lax.add(*_halves(x))) if x.dtype in _SINGLE_AND_DOUBLE else lax.cosh(x)


def _sinh(attrs: Attrs, x: Any) -> Any:
    if x.dtype not in _SINGLE_AND_DOUBLE:
        return lax.sinh(x)
    found, near = lax.sinh(x), lax.lt(lax.abs(x), lax.full_like(x, 1))
    return _mended(found, lax.select(near, found, lax.sub(*_halves(x))))


_SINGLE_AND_DOUBLE = (np.float32, np.float64)

_BY_PRODUCTS = 8
"""Powers to greater integers are no products: each factor would be a rounding."""


def _integer_pow(attrs: Attrs, x: Any) -> Any:
    y = attrs["y"]
    if abs(y) <= _BY_PRODUCTS or x.dtype.kind in "ciu" or int(x.dtype.type(y)) != y:
        return lax.integer_pow(x, y)
    return lax.pow(x, lax.full_like(x, y))


FUNCTIONS = {
    "abs": _abs,
    "exp2": _exp2,
    "log1p": _log1p,
    "atanh": _atanh,
    "sinh": _sinh,
    "cosh": _cosh,
    "integer_pow": _integer_pow,
    "round": _round,
    "regularized_incomplete_beta": lambda attrs, a, b, x: lax.betainc(a, b, x),
    "optimization_barrier": lambda attrs, *xs: lax.optimization_barrier(xs),
}
"""By op, of attrs and arrays."""
