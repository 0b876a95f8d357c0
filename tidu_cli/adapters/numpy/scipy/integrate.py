"""What `scipy.integrate` has of samples: sums of them with weights that depend only on where they were taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, arrays_in, lift
from tidu_cli.adapters.numpy.numpy.indexing import normal_axis
from tidu_cli.adapters.numpy.numpy.reductions.intervals import trapezoids
from tidu_cli.adapters.numpy.numpy.reductions.reducing import cumsum, sum
from tidu_cli.adapters.numpy.numpy.reductions.series import diff, trapezoid
from tidu_cli.adapters.numpy.numpy.shaping import broadcast_to, concatenate, moveaxis


def cumulative_trapezoid(y: Operand, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Array:
    areas, k = trapezoids(y, x, dx, axis)
    sums = cumsum(areas, k)
    if initial is None:
        return sums
    if initial != 0:
        raise ValueError("`initial` parameter must be `None` or `0`.")
    return concatenate([broadcast_to(lift(0.0, areas), (*areas.shape[:k], 1, *areas.shape[k + 1 :])), sums], k)


def simpson(y: Operand, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Array:
    """By parabolas through three points; where an interval is left over, by that of the last three (Cartwright, 2017)."""
    like = arrays_in([y, x, dx])[0]
    y = lift(y, like)
    y = moveaxis(y, normal_axis(axis, y.ndim), -1)
    n = y.shape[-1]
    if x is None:  # the integrals of samples that are one at one place and zero at the others
        from scipy.integrate import simpson as scipys  # type: ignore[import-untyped]

        integral: Array = y @ lift(scipys(np.eye(n, dtype=y.dtype)), y) * dx
        return integral
    points = lift(x, like)
    h = diff(points if points.ndim == 1 else moveaxis(points, normal_axis(axis, points.ndim), -1))
    if n < 3:
        return sum(h * (y[..., 1:] + y[..., :-1]) / 2.0, -1)
    end = n - 1 - (n - 1) % 2  # of the intervals that make pairs
    a, b = h[..., 0:end:2], h[..., 1:end:2]
    first, middle, last = y[..., 0:end:2], y[..., 1:end:2], y[..., 2 : end + 1 : 2]
    integral = sum((a + b) / 6.0 * (first * (2 - b / a) + middle * ((a + b) * (a + b) / (a * b)) + last * (2 - a / b)), -1)
    if end < n - 1:
        a, b = h[..., -2], h[..., -1]
        integral = integral + y[..., -1] * ((2 * b * b + 3 * a * b) / (6 * (a + b)))
        integral = integral + y[..., -2] * ((b * b + 3 * a * b) / (6 * a)) - y[..., -3] * (b * b * b / (6 * a * (a + b)))
    return integral


COMPOSED = {"trapezoid": trapezoid}
