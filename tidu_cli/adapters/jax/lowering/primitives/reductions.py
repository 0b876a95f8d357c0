"""Positions of extremes, and sorting."""

from __future__ import annotations

from typing import Any

from jax import lax

from tidu_cli.adapters.jax.lowering.primitives.arrays import dtype_of

FUNCTIONS: dict[str, Any] = {
    "argmax": lambda attrs, x: lax.argmax(x, attrs["axes"][0], dtype_of(attrs["index_dtype"])),
    "argmin": lambda attrs, x: lax.argmin(x, attrs["axes"][0], dtype_of(attrs["index_dtype"])),
    "sort": lambda attrs, *xs: lax.sort(xs, **attrs),
    "top_k": lambda attrs, x: lax.top_k(x, attrs["k"], axis=attrs["axis"]),
}
"""By op, of attrs and arrays."""
