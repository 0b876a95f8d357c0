"""Axes and shapes as NumPy's functions take them."""

from __future__ import annotations

import operator
from typing import Any

from tidu_cli.build.arrays.array import Array, Shape


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
    if shapes and all(s == shapes[0] for s in shapes):
        return tuple(shapes[0])
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    common = []
    for sizes in zip(*padded, strict=True):
        others = {n for n in sizes if n != 1}
        if len(others) > 1:
            raise ValueError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast together")
        common.append(others.pop() if others else 1)
    return tuple(common)
