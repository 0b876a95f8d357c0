"""What NumPy's functions are made of: axes and shapes as they take them, and primitives with NumPy's conventions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, Shape

Axes = Sequence[int]


def normal_axis(axis: Any, rank: int) -> int:
    """An axis from 0 up. Raises np.exceptions.AxisError's text as a ValueError."""
    k = operator.index(axis)
    if not -rank <= k < rank:
        raise ValueError(f"axis {k} is out of range for an array of {rank} axes")
    return k % rank


def normal_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes from 0 up, all for None, each once."""
    if axis is None:
        return tuple(range(rank))
    axes = tuple(normal_axis(a, rank) for a in (axis if isinstance(axis, tuple | list | range) else (axis,)))
    if len(set(axes)) < len(axes):
        raise ValueError(f"axes repeat: {list(axes)}")
    return axes


def along(x: Array, axis: Any) -> tuple[Array, int]:
    """x and an axis of it from 0 up; for None all its elements in a row."""
    return (x.reshaped((x.size,)), 0) if axis is None else (x, normal_axis(axis, x.ndim))


def sizes_of(shape: Any) -> Shape:
    """A shape that was given as one integer or several."""
    return tuple(operator.index(n) for n in shape) if isinstance(shape, tuple | list) else (operator.index(shape),)


def resized(shape: Shape, axes: int | tuple[int, ...], n: int = 1) -> Shape:
    """A shape with n elements along an axis, or along several."""
    changed = axes if isinstance(axes, tuple) else (axes,)
    return tuple(n if k in changed else size for k, size in enumerate(shape))


def laid_along(axis: int, n: int, rank: int) -> Shape:
    """The shape of n elements along one of the axes."""
    return resized((1,) * rank, axis, n)


def common_shape(*shapes: Shape) -> Shape:
    """The shape that these broadcast to. Raises ValueError in the user's terms."""
    if all(s == shapes[0] for s in shapes):
        return shapes[0]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast together") from None


def is_given(option: Any) -> bool:
    """Whether an option of NumPy's was given."""
    return option is not None and option is not np._NoValue


def filled(x: Array, value: Any, shape: tuple[int, ...] | None = None) -> Array:
    """A number in the dtype of x, of its shape or another."""
    return x.constant(x.dtype.type(value), x.dtype).broadcast(x.shape if shape is None else shape)


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


def is_nan(x: Array) -> Array:
    """Where x is NaN."""
    return x.emit("ne", x)


def places(x: Array, shape: tuple[int, ...], axis: int, dtype: str = "i64") -> Array:
    """For each place of a shape its number along an axis."""
    return x.recorder.emit("iota", dtype=dtype, shape=shape, dimension=axis % len(shape))


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
