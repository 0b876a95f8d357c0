"""Elementwise primitives that lax has under another name, with other attrs, or not for every dtype."""

from __future__ import annotations

from typing import Any

from jax import lax
from jax import numpy as jnp

Attrs = dict[str, Any]


def magnitude(attrs: Attrs, x: Any) -> Any:
    """|x|, which lax has not got for unsigned integers."""
    return lax.abs(x) if x.dtype.kind != "u" else x


def _round(attrs: Attrs, x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod[attrs["rounding_method"]])


def _strong(x: Any, found: Any) -> Any:
    """The result, but for 0 where it is NaN and x is 0."""
    return jnp.where((x == 0) & (found != found), 0, found)


FUNCTIONS = {
    "abs": magnitude,
    "round": _round,
    "regularized_incomplete_beta": lambda attrs, a, b, x: lax.betainc(a, b, x),
    "strong_mul": lambda attrs, x, y: _strong(y, lax.mul(x, y)),
    "strong_div": lambda attrs, x, y: _strong(x, lax.div(x, y)),
    "optimization_barrier": lambda attrs, *xs: lax.optimization_barrier(xs),
}
"""By op, of attrs and arrays."""
