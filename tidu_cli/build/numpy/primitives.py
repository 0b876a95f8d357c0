"""What NumPy's functions are made of: primitives with NumPy's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.numpy.axes import normal_axes, resized

Axes = Sequence[int]


def is_given(option: Any) -> bool:
    """Whether an option of NumPy's was given."""
    return option is not None and option is not np._NoValue


def filled(x: Array, value: Any, shape: tuple[int, ...] | None = None) -> Array:
    """A number in the dtype of x, of its shape or another."""
    return x.constant(x.dtype.type(value)).broadcast(x.shape if shape is None else shape)


def floating(x: Array, dtype: Any = None) -> Array:
    """x as floats or complex numbers, which it keeps: integers and bools become f64, as in NumPy's means."""
    if is_given(dtype):
        return x.convert(np.dtype(dtype))
    return x if x.type.inexact else x.convert("f64")


def select(condition: Array, if_true: Array, if_false: Array) -> Array:
    """if_true where the condition (bool) holds, else if_false; all of one shape."""
    return condition.emit("select_n", if_false, if_true)


def truth(x: Array) -> Array:
    """Whether elements are other than 0."""
    return x if x.type.dtype == "bool" else x.emit("ne", filled(x, 0))


def not_a_number(x: Array) -> Array:
    """Where x is NaN."""
    return x.emit("ne", x)


def places(x: Array, shape: tuple[int, ...], axis: int, dtype: str = "i64") -> Array:
    """For each place of a shape its number along an axis."""
    return x.recorder.emit("iota", dtype=dtype, shape=shape, dimension=axis % len(shape))


def reversed_along(x: Array, *axes: int) -> Array:
    """x in reverse order along axes."""
    return x.emit("rev", dimensions=axes)


def reduce(x: Array, op: str, axis: Any, keepdims: Any) -> Array:
    """A reducing primitive along axes, all for None."""
    axes = normal_axes(axis, x.ndim)
    found = x.emit(op, axes=axes) if axes else x
    return found.reshaped(resized(x.shape, axes)) if keepdims is True else found


def product(x: Array, y: Array, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes] = ((), ())) -> Array:
    """dot_general: axes of the result are batch, then those left of x, then of y. Products of bools are "and", sums "or"."""
    for a, b in (*zip(*contract, strict=True), *zip(*batch, strict=True)):
        if x.shape[a] != y.shape[b]:
            raise ValueError(f"axis {a} of {x.type} has {x.shape[a]} elements, axis {b} of {y.type} has {y.shape[b]}")
    if x.type.dtype == "bool":
        return product(x.convert("i32"), y.convert("i32"), contract, batch) != 0
    numbers = tuple((tuple(a), tuple(b)) for a, b in (contract, batch))
    return x.emit("dot_general", y, dimension_numbers=numbers)
