"""What lies between neighbouring samples along an axis."""

from __future__ import annotations

from typing import Any

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, arrays_in, lift
from tidu_cli.adapters.numpy.numpy.indexing import laid_along, normal_axis, part


def neighbours(x: Array, axis: int) -> tuple[Array, Array]:
    """Of each two elements that follow each other the second one and the first one."""
    return part(x, axis, slice(1, None)), part(x, axis, slice(None, -1))


def differences(x: Array, axis: int) -> Array:
    """Of each two elements that follow each other the difference; of bools, whether they differ."""
    after, before = neighbours(x, axis)
    return after.emit("ne", before) if x.type.dtype == "bool" else after - before


def trapezoids(y: Operand, x: Any, dx: Any, axis: int) -> tuple[Array, int]:
    """The areas between neighbouring samples y at the places x, `dx` apart if None, and the axis along which they lie."""
    like = arrays_in([y, x, dx])[0]
    y = lift(y, like)
    k = normal_axis(axis, y.ndim)
    width = dx
    if x is not None:
        points = lift(x, like)
        if points.ndim == 1:
            points = points.reshaped(laid_along(k, points.size, y.ndim))
        width = differences(points, k)
    after, before = neighbours(y, k)
    return width * (after + before) / 2.0, k
