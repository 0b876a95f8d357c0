"""Elementwise primitives that lax has under another name, with other attrs, or not for every dtype."""

from __future__ import annotations

from typing import Any

from jax import lax

Attrs = dict[str, Any]


def magnitude(attrs: Attrs, x: Any) -> Any:
    """|x|, which lax has not got for unsigned integers."""
    return lax.abs(x) if x.dtype.kind != "u" else x


def _round(attrs: Attrs, x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod[attrs["rounding_method"]])


FUNCTIONS = {
    "abs": magnitude,
    "round": _round,
    "regularized_incomplete_beta": lambda attrs, a, b, x: lax.betainc(a, b, x),
    "optimization_barrier": lambda attrs, *xs: lax.optimization_barrier(xs),
}
"""By op, of attrs and arrays."""
