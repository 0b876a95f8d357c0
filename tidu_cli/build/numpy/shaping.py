"""Shapes and axes: functions that only rename elements' places, and those that repeat along new axes.

The functions of this module and those beside it are NumPy's of the same name. What they take as an `Array` has been made one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, lifted
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.primitives import common_shape, normal_axes, reversed_along, sizes_of


def _empty(x: Array) -> Any:
    """A NumPy array of the shape of x, whatever its size: all elements are one."""
    return np.broadcast_to(np.empty(()), x.shape)


def reshape(x: Array, shape: Any = None, order: str | None = "C", *, newshape: Any = None, copy: object = None) -> Array:
    if order not in ("C", "K", "A", None):
        raise UntraceableError(f"order={order!r} cannot be traced; transpose first")
    sizes = sizes_of(newshape if shape is None else shape)
    try:
        return x.reshaped(_empty(x).reshape(sizes).shape)
    except ValueError:
        raise ValueError(f"{x.type} has {x.size} elements and does not reshape to {list(sizes)}") from None


def ravel(x: Array, order: str = "C") -> Array:
    return reshape(x, (x.size,), order)


def _permuting(numpys: Callable[..., Any]) -> Callable[..., Array]:
    """A function of NumPy's that puts axes in another order. NumPy says which, of an array whose axis k has k elements."""

    def permuted(x: Array, *args: Any, **options: Any) -> Array:
        return x.permuted(numpys(np.empty(range(x.ndim)), *args, **options).shape)

    return permuted


swapaxes, moveaxis, rollaxis, transpose = map(_permuting, (np.swapaxes, np.moveaxis, np.rollaxis, np.transpose))


def matrix_transpose(x: Array) -> Array:
    return swapaxes(x, -1, -2)


def _with_axes_of_one(numpys: Callable[..., Any]) -> Callable[..., Array]:
    """A function of NumPy's that adds or drops axes of one element."""

    def reshaped(x: Array, *args: Any, **options: Any) -> Array:
        return x.reshaped(numpys(_empty(x), *args, **options).shape)

    return reshaped


expand_dims, squeeze = map(_with_axes_of_one, (np.expand_dims, np.squeeze))


def _of_each(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """A function that adds axes to one array, or to several, one after the other."""

    def of_each(*arrays: Operand) -> Any:
        found = tuple(map(_with_axes_of_one(numpys), lifted(*arrays)))
        return found[0] if len(found) == 1 else found

    return of_each


atleast_1d, atleast_2d, atleast_3d = map(_of_each, (np.atleast_1d, np.atleast_2d, np.atleast_3d))


def broadcast_to(x: Array, shape: Any, subok: bool = False) -> Array:
    return x.broadcast(sizes_of(shape))


def broadcast_arrays(*arrays: Operand, subok: bool = False) -> tuple[Array, ...]:
    found = lifted(*arrays)
    shape = common_shape(*(x.shape for x in found))
    return tuple(x.broadcast(shape) for x in found)


def flip(x: Array, axis: Any = None) -> Array:
    axes = normal_axes(axis, x.ndim)
    return reversed_along(x, *axes) if axes else x


def rot90(x: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    a, b = normal_axes(axes, x.ndim)
    k = operator.index(k) % 4
    if k % 2 == 0:
        return flip(x, (a, b)) if k else x
    return flip(swapaxes(x, a, b), a) if k == 1 else swapaxes(flip(x, a), a, b)


def meshgrid(*arrays: Operand, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list[Array]:
    axes = list(map(ravel, lifted(*arrays)))
    shapes = [x.shape for x in np.meshgrid(*map(_empty, axes), indexing=indexing, sparse=True, copy=False)]  # type: ignore[call-overload]
    shaped = [x.reshaped(shape) for x, shape in zip(axes, shapes, strict=True)]
    return shaped if sparse else list(broadcast_arrays(*shaped))


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "permute_dims": transpose,
    "flipud": lambda m: flip(m, 0),
    "fliplr": lambda m: flip(m, 1),
}
