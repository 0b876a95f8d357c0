"""Shapes and axes: functions that only rename elements' places, and those that repeat along new axes.

The functions of this module and those beside it are NumPy's of the same name. What they take as an `Array` has been made one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, lifted
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.axes import common_shape, normal_axes, normal_axis, sizes_of


def reshape(x: Array, shape: Any = None, order: str | None = "C", *, newshape: Any = None, copy: object = None) -> Array:
    if order not in ("C", "K", "A", None):
        raise UntraceableError(f"order={order!r} cannot be traced; transpose first")
    sizes = sizes_of(newshape if shape is None else shape)
    if sizes.count(-1) == 1:
        others = math.prod(n for n in sizes if n != -1)
        if others == 0 or x.size % others:
            raise ValueError(f"{x.type} does not reshape to {list(sizes)}")
        sizes = tuple(x.size // others if n == -1 else n for n in sizes)
    if math.prod(sizes) != x.size or any(n < 0 for n in sizes):
        raise ValueError(f"{x.type} has {x.size} elements and does not reshape to {list(sizes)}")
    return x.reshaped(sizes)


def ravel(x: Array, order: str = "C") -> Array:
    return reshape(x, (x.size,), order)


def transpose(x: Array, axes: Any = None) -> Array:
    if axes is None:
        return x.permuted(range(x.ndim)[::-1])
    permutation = normal_axes(axes, x.ndim)
    if len(permutation) != x.ndim:
        raise ValueError(f"axes {list(permutation)} do not permute the {x.ndim} axes of {x.type}")
    return x.permuted(permutation)


def swapaxes(x: Array, axis1: int, axis2: int) -> Array:
    axes = list(range(x.ndim))
    a, b = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    axes[a], axes[b] = b, a
    return x.permuted(axes)


def matrix_transpose(x: Array) -> Array:
    return swapaxes(x, -1, -2)


def moveaxis(x: Array, source: Any, destination: Any) -> Array:
    old, new = normal_axes(source, x.ndim), normal_axes(destination, x.ndim)
    if len(old) != len(new):
        raise ValueError("source and destination must have as many axes")
    axes = [k for k in range(x.ndim) if k not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        axes.insert(place, axis)
    return x.permuted(axes)


def rollaxis(x: Array, axis: int, start: int = 0) -> Array:
    axis = normal_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def expand_dims(x: Array, axis: Any) -> Array:
    many = axis if isinstance(axis, tuple | list) else (axis,)
    new = normal_axes(many, x.ndim + len(many))
    sizes = iter(x.shape)
    return x.reshaped(tuple(1 if k in new else next(sizes) for k in range(x.ndim + len(new))))


def squeeze(x: Array, axis: Any = None) -> Array:
    gone = tuple(k for k, n in enumerate(x.shape) if n == 1) if axis is None else normal_axes(axis, x.ndim)
    if any(x.shape[k] != 1 for k in gone):
        raise ValueError(f"squeeze takes axes of size 1, but those of {x.type} given are not")
    return x.reshaped(tuple(n for k, n in enumerate(x.shape) if k not in gone))


def broadcast_to(x: Array, shape: Any, subok: bool = False) -> Array:
    return x.broadcast(sizes_of(shape))


def broadcast_arrays(*arrays: Operand, subok: bool = False) -> tuple[Array, ...]:
    found = lifted(*arrays)
    shape = common_shape(*(x.shape for x in found))
    return tuple(x.broadcast(shape) for x in found)


def _of_each(function: Callable[[Array], Array]) -> Callable[..., Any]:
    """The function of one array, or of several, one after the other."""

    def of_each(*arrays: Operand) -> Any:
        found = tuple(map(function, lifted(*arrays)))
        return found[0] if len(found) == 1 else found

    return of_each


@_of_each
def atleast_1d(x: Array) -> Array:
    return x if x.ndim else x.reshaped((1,))


@_of_each
def atleast_2d(x: Array) -> Array:
    return x if x.ndim > 1 else x.reshaped((1, x.size))


@_of_each
def atleast_3d(x: Array) -> Array:
    return x if x.ndim > 2 else x.reshaped((*x.shape, 1) if x.ndim == 2 else (1, x.size, 1))


def flip(x: Array, axis: Any = None) -> Array:
    axes = normal_axes(axis, x.ndim)
    return x.emit("rev", dimensions=axes) if axes else x


def rot90(x: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    a, b = normal_axes(axes, x.ndim)
    k = operator.index(k) % 4
    if k % 2 == 0:
        return flip(x, (a, b)) if k else x
    return flip(swapaxes(x, a, b), a) if k == 1 else swapaxes(flip(x, a), a, b)


def meshgrid(*arrays: Operand, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Array]:
    axes = list(map(ravel, lifted(*arrays)))
    order = [1, 0, *range(2, len(axes))] if indexing == "xy" and len(axes) > 1 else list(range(len(axes)))
    shaped = [x.reshaped(tuple(x.size if order[k] == j else 1 for j in range(len(axes)))) for k, x in enumerate(axes)]
    return shaped if sparse else list(broadcast_arrays(*shaped))


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "permute_dims": transpose,
    "flipud": lambda m: flip(m, 0),
    "fliplr": lambda m: flip(m, 1),
}
