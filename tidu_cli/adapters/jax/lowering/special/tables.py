"""Functions of one number by piecewise polynomials: SciPy's are interpolated while JAX traces, and modules hold the coefficients.

Pieces are of equal ratio, so that a singularity at 0 is as far from each of them, in halves of its length, as from every other;
interpolation in Chebyshev points then converges as fast in all (L. N. Trefethen, "Approximation theory and approximation practice"
(2013), theorem 8.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

Function = Callable[..., Any]
Attrs = dict[str, Any]


SAMPLES = 256
"""Of a piece: more than it has coefficients, so that roundings of values are averaged out."""


def in_double(function: Callable[..., Any]) -> Function:
    """A function of attrs and arrays in double precision, if JAX is to have that, as one of arrays of any dtype."""

    @wraps(function)
    def computed(attrs: Attrs, *operands: Any) -> Any:
        import jax
        from jax import numpy as jnp

        wide = jnp.float64 if jax.config.jax_enable_x64 else jnp.float32  # type: ignore[attr-defined]
        return function(attrs, *[x.astype(wide) for x in operands]).astype(operands[0].dtype)

    return computed


def table(function: Function, low: float, high: float, per_octave: float = 2.0, degree: int = 16) -> Function:
    """A function of NumPy's arrays as one of JAX's, between two positive numbers; beyond these it is what it is there.

    `per_octave`: pieces between a number and twice that. Two are enough for what is singular at 0 alone.
    """
    count = max(1, math.ceil(per_octave * math.log2(high / low)))
    edges = low * (high / low) ** (np.arange(count + 1) / count)
    middle, half = (edges[1:] + edges[:-1]) / 2, (edges[1:] - edges[:-1]) / 2
    # cos(jπ / 2n), of angles below 2π: rounded ones of high orders would be off by many units.
    cosines = np.cos(2 * np.arctan(np.longdouble(1)) / SAMPLES * np.arange(4 * SAMPLES))
    odd = 2 * np.arange(SAMPLES) + 1
    with np.errstate(all="ignore"):
        values = np.asarray(function(middle[:, None] + half[:, None] * cosines[odd].astype(float)))
        waves = cosines[odd[:, None] * np.arange(degree + 1) % (4 * SAMPLES)]
        coefficients = (values @ waves * 2 / SAMPLES).astype(float)
    coefficients[:, 0] /= 2
    inverse_width = count / math.log2(high / low)

    def evaluate(x: Any) -> Any:
        from jax import numpy as jnp

        def of_piece(numbers: Any) -> Any:
            return jnp.asarray(numbers, x.dtype)[piece]

        within = jnp.clip(x, low, high)
        piece = jnp.clip(jnp.floor((jnp.log2(within) - math.log2(low)) * inverse_width), 0, count - 1).astype("int32")
        t = (within - of_piece(middle)) / of_piece(half)
        # C. W. Clenshaw (1955).
        last = before = jnp.zeros_like(x)
        for column in coefficients.T[:0:-1]:
            last, before = 2 * t * last - before + of_piece(column), last
        return t * last - before + of_piece(coefficients.T[0])

    return evaluate


def polynomial(coefficients: Any, x: Any) -> Any:
    """Σ c(k) xᵏ, by Horner's rule."""
    found = 0.0 * x + coefficients[-1]
    for c in coefficients[-2::-1]:
        found = found * x + c
    return found
