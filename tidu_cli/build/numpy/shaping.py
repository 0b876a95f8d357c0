"""Shapes and axes: functions that only rename elements' places, and those that repeat along new axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, an_array, arrays_in, lift
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.elementwise.ufuncs import common_shape


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


def require_row_major(order: str | None) -> None:
    """Raises UntraceableError for other orders than NumPy's default."""
    if order not in ("C", "K", "A", None):
        raise UntraceableError(f"order={order!r} cannot be traced; transpose first")


def sizes_of(shape: Any) -> tuple[int, ...]:
    """A shape that was given as one integer or several."""
    return tuple(operator.index(n) for n in shape) if isinstance(shape, tuple | list) else (operator.index(shape),)


def reshape(x: Operand, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: object = None) -> Array:
    """np.reshape."""
    require_row_major(order)
    x = an_array(x)
    sizes = sizes_of(newshape if shape is None else shape)
    if sizes.count(-1) == 1:
        others = math.prod(n for n in sizes if n != -1)
        if others == 0 or x.size % others:
            raise ValueError(f"{x.type} does not reshape to {list(sizes)}")
        sizes = tuple(x.size // others if n == -1 else n for n in sizes)
    if math.prod(sizes) != x.size or any(n < 0 for n in sizes):
        raise ValueError(f"{x.type} has {x.size} elements and does not reshape to {list(sizes)}")
    return x.reshaped(sizes)


def ravel(x: Operand, order: str = "C") -> Array:
    """np.ravel."""
    return reshape(x, -1 if an_array(x).size else (0,), order)


def transpose(x: Operand, axes: Any = None) -> Array:
    """np.transpose."""
    x = an_array(x)
    if axes is None:
        return x.permuted(range(x.ndim)[::-1])
    permutation = normal_axes(axes, x.ndim)
    if len(permutation) != x.ndim:
        raise ValueError(f"axes {list(permutation)} do not permute the {x.ndim} axes of {x.type}")
    return x.permuted(permutation)


def swapaxes(x: Operand, axis1: int, axis2: int) -> Array:
    """np.swapaxes."""
    x = an_array(x)
    axes = list(range(x.ndim))
    a, b = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    axes[a], axes[b] = b, a
    return x.permuted(axes)


def matrix_transpose(x: Operand) -> Array:
    """np.matrix_transpose."""
    return swapaxes(x, -1, -2)


def moveaxis(x: Operand, source: Any, destination: Any) -> Array:
    """np.moveaxis."""
    x = an_array(x)
    old, new = normal_axes(source, x.ndim), normal_axes(destination, x.ndim)
    if len(old) != len(new):
        raise ValueError("source and destination must have as many axes")
    axes = [k for k in range(x.ndim) if k not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        axes.insert(place, axis)
    return x.permuted(axes)


def rollaxis(x: Operand, axis: int, start: int = 0) -> Array:
    """np.rollaxis."""
    x = an_array(x)
    axis = normal_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def expand_dims(x: Operand, axis: Any) -> Array:
    """np.expand_dims."""
    x = an_array(x)
    many = axis if isinstance(axis, tuple | list) else (axis,)
    new = normal_axes(many, x.ndim + len(many))
    sizes = iter(x.shape)
    return x.reshaped(tuple(1 if k in new else next(sizes) for k in range(x.ndim + len(new))))


def squeeze(x: Operand, axis: Any = None) -> Array:
    """np.squeeze."""
    x = an_array(x)
    gone = tuple(k for k, n in enumerate(x.shape) if n == 1) if axis is None else normal_axes(axis, x.ndim)
    if any(x.shape[k] != 1 for k in gone):
        raise ValueError(f"squeeze takes axes of size 1, but those of {x.type} given are not")
    return x.reshaped(tuple(n for k, n in enumerate(x.shape) if k not in gone))


def broadcast_to(x: Operand, shape: Any, subok: bool = False) -> Array:
    """np.broadcast_to."""
    return an_array(x).broadcast(sizes_of(shape))


def broadcast_arrays(*arrays: Operand, subok: bool = False) -> tuple[Array, ...]:
    """np.broadcast_arrays."""
    like = arrays_in(arrays)[0]
    found = [lift(x, like) for x in arrays]
    shape = common_shape(*(x.shape for x in found))
    return tuple(x.broadcast(shape) for x in found)


def _of_each(function: Callable[[Operand], Array]) -> Callable[..., Any]:
    """The function of one array, or of several, one after the other."""

    @wraps(function)
    def of_each(*arrays: Operand) -> Any:
        return function(arrays[0]) if len(arrays) == 1 else tuple(function(lift(x, arrays_in(arrays)[0])) for x in arrays)

    return of_each


@_of_each
def atleast_1d(x: Operand) -> Array:
    """np.atleast_1d."""
    x = an_array(x)
    return x if x.ndim else x.reshaped((1,))


@_of_each
def atleast_2d(x: Operand) -> Array:
    """np.atleast_2d."""
    x = an_array(x)
    return x if x.ndim > 1 else x.reshaped((1, x.size))


@_of_each
def atleast_3d(x: Operand) -> Array:
    """np.atleast_3d."""
    x = an_array(x)
    if x.ndim > 2:
        return x
    return x.reshaped((*x.shape, 1) if x.ndim == 2 else (1, x.size, 1))


def flip(x: Operand, axis: Any = None) -> Array:
    """np.flip."""
    x = an_array(x)
    axes = normal_axes(axis, x.ndim)
    return x.emit("rev", dimensions=axes) if axes else x


def full_like(
    x: Operand, fill_value: Operand, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **options: Any
) -> Array:
    """np.full_like."""
    like = arrays_in([x, fill_value])[0]
    model = lift(x, like)
    wanted = model.dtype if dtype is None else np.dtype(dtype)
    return lift(fill_value, like, wanted).broadcast(model.shape if shape is None else sizes_of(shape))


def meshgrid(*arrays: Operand, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Array]:
    """np.meshgrid."""
    like = arrays_in(arrays)[0]
    axes = [ravel(lift(x, like)) for x in arrays]
    order = [1, 0, *range(2, len(axes))] if indexing == "xy" and len(axes) > 1 else list(range(len(axes)))
    shaped = [x.reshaped(tuple(x.size if order[k] == j else 1 for j in range(len(axes)))) for k, x in enumerate(axes)]
    return shaped if sparse else list(broadcast_arrays(*shaped))
