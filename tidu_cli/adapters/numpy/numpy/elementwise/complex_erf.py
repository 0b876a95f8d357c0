"""The error function of complex numbers, by real functions: a series around the real line, and a continued fraction far from 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.indexing import filled, select

_RADIUS = 7.0
"""From where on the continued fraction is exact, and up to where the series has `_TERMS`."""

_TERMS = 2 * int(_RADIUS) + 12
_DEPTH = 12  # the poles of what is cut off lie within √(2 · 12) of 0


def complex_erf(z: Array) -> Array:
    """erf z, whose derivatives are those of what it is computed by. Infinite where e^(-z²) is."""
    x, y = z.emit("real").convert("f64"), z.emit("imag").convert("f64")
    x = select(abs(x) > 1e8, x.emit("sign") * 1e8, x)  # where it is 1, or no number has its phase
    far = (x * x + y * y) > _RADIUS**2
    zero = filled(x, 0)
    near_parts = _near(select(far, zero, x), select(far, zero, y))
    far_parts = _far(select(far, x, filled(x, _RADIUS + 1)), select(far, y, zero))
    real, imag = (select(far, a, b) for a, b in zip(far_parts, near_parts, strict=True))
    return real.emit("complex", imag).convert(z.type.dtype)


def _near(x: Array, y: Array) -> tuple[Array, Array]:
    """Abramowitz and Stegun 7.1.29, scaled so that nothing overflows."""
    n: Any = np.arange(1.0, _TERMS + 1)
    a, b = x.reshaped((*x.shape, 1)), y.reshaped((*x.shape, 1))
    gauss = (n * n * -0.25 - a * a).emit("exp")
    level = (b - a) * (b + a)
    ahead, behind = ((level - (n / 2 - s * b).emit("square")).emit("exp") * 0.5 for s in (1, -1))
    low = (abs(b) < 0.5).broadcast(gauss.shape)
    even = ahead + behind
    odd = select(low, gauss * (n * select(abs(b) < 0.5, b, filled(b, 0))).emit("sinh"), ahead - behind)
    cosine, sine = (a * b * 2).emit("cos"), (a * b * 2).emit("sin")
    width = n * n + a * a * 4
    real = ((gauss - even * cosine) * a * 2 + odd * sine * n) / width
    imag = (even * sine * a * 2 + odd * cosine * n) / width
    product, bell = x * y, (-x * x).emit("exp") * y * (1 / math.pi)
    half = bell * product.emit("sin") * product.emit("spherical_bessel_j", order=0)
    whole = bell * (product * 2).emit("spherical_bessel_j", order=0)
    sums = (part.emit("reduce_sum", axes=(x.ndim,)) * (2 / math.pi) for part in (real, imag))
    return x.emit("erf") + half + next(sums), whole + next(sums)


def _far(x: Array, y: Array) -> tuple[Array, Array]:
    """1 - erfc, by Laplace's continued fraction in the right half of the plane."""
    side = select(x >= 0, filled(x, 1), filled(x, -1))
    w = (x * side).emit("complex", y * side)
    fraction = w
    for k in range(_DEPTH, 0, -1):
        fraction = w + (k / 2) / fraction
    complement = ((y - x) * (y + x)).emit("complex", x * y * -2).emit("exp") / (fraction * math.sqrt(math.pi))
    one = select(x.emit("eq", filled(x, 0)), filled(x, 0), filled(x, 1))  # on the imaginary axis nothing is left of it
    return side * (one - complement.emit("real")), -side * complement.emit("imag")
