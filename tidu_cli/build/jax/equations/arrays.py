"""Equations that arrange elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array, name_of
from tidu_cli.build.jax.equations.equation import Equation, spread


def stack(eq: Equation, *parts: Array) -> Array:
    """Arrays along a new axis."""
    axis = eq.params["axis"]
    shape = parts[0].type.shape
    each = [x.reshaped((*shape[:axis], 1, *shape[axis:])) for x in parts]
    return eq.emit("concatenate", *each, dimension=axis)


def unstack(eq: Equation, x: Array) -> Sequence[Array]:
    """The slices along an axis, without it."""
    axis = eq.params["axis"]
    n = x.type.shape[axis]
    parts = eq.emit_all("split", x, sizes=(1,) * n, axis=axis)
    return [p.emit("squeeze", dimensions=(axis,)) for p in parts]


def tile(eq: Equation, x: Array) -> Array:
    """An array repeated along its axes."""
    (result,) = eq.results
    repeats, shape = result.shape[:0], x.type.shape
    repeats = tuple(eq.params["reps"])
    shape = (1,) * (len(repeats) - len(shape)) + shape
    doubled = tuple(n for pair in zip(repeats, shape, strict=True) for n in pair)
    places = tuple(2 * k + 1 for k in range(len(repeats)))
    wide = eq.emit("broadcast_in_dim", x.reshaped(shape), shape=doubled, broadcast_dimensions=places)
    return wide.reshaped(result.shape)


def broadcast_to(eq: Equation, x: Array) -> Array:
    """An array with axes before its own."""
    shape = eq.results[0].shape
    return spread(x.reshaped((1,) * (len(shape) - x.type.rank) + x.type.shape), shape)


def zeros(eq: Equation, *operands: Array) -> Array:
    """Zeros of the type of the result: also what is said to have no particular value."""
    (result,) = eq.results
    from tidu_cli.build.arrays.array import dtype_of

    return spread(eq.constant(np.zeros((), dtype_of(result.dtype))), result.shape)


def dot_general(eq: Equation, x: Array, y: Array) -> Array:
    """A product of arrays that may be of different dtypes, by the wider of them."""
    if x.type.dtype != y.type.dtype:
        wider = name_of(np.promote_types(x.dtype, y.dtype))
        x, y = x.convert(wider), y.convert(wider)
    return eq.as_named("dot_general", x, y)[0]


def reshape(eq: Equation, x: Array) -> Array:
    """A reshape, of axes in another order perhaps."""
    dimensions = eq.params.get("dimensions")
    if dimensions is not None:
        x = x.permuted(tuple(map(int, dimensions)))
    return x.reshaped(eq.results[0].shape)


ARRAYS: dict[str, Callable[..., Any]] = {
    "stack": stack,
    "unstack": unstack,
    "tile": tile,
    "broadcast_to": broadcast_to,
    "zeros_like": zeros,
    "empty": zeros,
    "empty2": zeros,
    "reshape": reshape,
    "dot_general": dot_general,
}
