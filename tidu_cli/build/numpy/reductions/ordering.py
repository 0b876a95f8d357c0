"""Order: sorting, and finding places in what is sorted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, arrays_in, lift, lifted_as_arrays
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.elementwise.choosing import where
from tidu_cli.build.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.build.numpy.indexing import indexed
from tidu_cli.build.numpy.primitives import along, not_a_number, places, reversed_along
from tidu_cli.build.numpy.reductions.reducing import sum
from tidu_cli.graph.types import FLOATS

MAX_COMPARISONS = 100_000_000
"""As many comparisons as searchsorted may make: it compares each value with each element."""


def sort(
    x: Array, axis: int | None = -1, kind: object = None, order: object = None, *, stable: object = None, descending: bool = False
) -> Array:
    x, k = along(x, axis)
    found = x.emit("sort", dimension=k)
    return reversed_along(found, k) if descending else found


def argsort(
    x: Array, axis: int | None = -1, kind: object = None, order: object = None, *, stable: object = None, descending: bool = False
) -> Array:
    """Elements that are equal keep their order."""
    x, k = along(x, axis)
    if descending:
        # Of the reversed array and reversed again, so that equal elements keep their order.
        return (x.shape[k] - 1) - reversed_along(argsort(reversed_along(x, k), k), k)
    return x.recorder.emit_all("sort", (x, places(x, x.shape, k)), dimension=k)[1]


def searchsorted(a: Operand, v: Operand, side: str = "left", sorter: Any = None) -> Array:
    """How many elements come before each value. It compares each value with each element."""
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    ordered, values = lifted_as_arrays(a, v)
    if ordered.ndim != 1:
        raise ValueError(f"searchsorted takes a vector, got {ordered.type}")
    if ordered.size * values.size > MAX_COMPARISONS:
        raise UntraceableError(
            f"searchsorted of {values.size:,} values among {ordered.size:,} elements would compare each with each; "
            f"the most are {MAX_COMPARISONS:,} comparisons"
        )
    if sorter is not None:
        ordered = indexed(ordered, sorter)
    column = values.reshaped((*values.shape, 1))
    before = _before(ordered, column) if side == "left" else ~_before(column, ordered)
    return sum(before, -1)


def _before(x: Array, y: Array) -> Array:
    """Whether x comes before y in sorted order, in which NaN is last."""
    less = x < y
    return less | (~not_a_number(x) & not_a_number(y)) if x.type.dtype in FLOATS else less


def digitize(x: Operand, bins: Operand, right: bool = False) -> Array:
    """Of bins that are constant, or else ascend."""
    if not arrays_in([bins]):
        edges = np.asarray(bins)
        if edges.ndim == 1 and edges.size > 1 and edges[0] > edges[-1]:
            return edges.size - searchsorted(edges[::-1], x, "right" if right else "left")
    return searchsorted(bins, x, "left" if right else "right")


def interp(x: Operand, xp: Operand, fp: Operand, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """The chord between the points that x lies between, and `left` and `right` of them the outermost values."""
    if period is not None:
        raise UntraceableError("np.interp with period= cannot be traced; take x % period, and add a point at either end")
    like = arrays_in([x, xp, fp, left, right])[0]
    at, points = lift(x, like, "f64"), lift(xp, like, "f64")
    values = lift(fp, like)
    values = values.convert("c128" if values.type.complex else "f64")
    n = points.size
    if points.ndim != 1 or values.shape != points.shape or not n:
        raise ValueError(f"interp takes vectors of points and values of one size, got {points.type} and {values.type}")
    first = values[0] if left is None else left
    last = values[n - 1] if right is None else right
    if n > 1:
        k = apply_ufunc("minimum", apply_ufunc("maximum", searchsorted(points, at, "right") - 1, 0), n - 2)
        x0, y0 = indexed(points, k), indexed(values, k)
        inside = (indexed(values, k + 1) - y0) / (indexed(points, k + 1) - x0) * (at - x0) + y0
    else:
        inside = values[0] + at * 0
    inside = where(at < points[0], first, where(at > points[n - 1], last, where(at == points[n - 1], values[n - 1], inside)))
    return inside.convert(values.dtype)
