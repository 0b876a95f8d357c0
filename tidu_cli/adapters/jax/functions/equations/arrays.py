"""Equations that arrange elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.attrs import attrs_of
from tidu_cli.adapters.jax.functions.equations.equation import Equation, elementwise, spread
from tidu_cli.adapters.jax.functions.places import REFUSED
from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers


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
    repeats = tuple(eq.params["reps"])
    shape = (1,) * (len(repeats) - x.type.rank) + x.type.shape
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
    return eq.zeros(eq.results[0])


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


def over_axes(reduction: str) -> Callable[..., Sequence[Array]]:
    """A collective, which under jax.vmap is the reduction over the axis that the name stood for."""

    def read(eq: Equation, *operands: Array) -> Sequence[Array]:
        axes = eq.params["axes"]
        if not all(isinstance(a, int | np.integer) for a in axes) or eq.params["axis_index_groups"] is not None:
            raise eq.refused(REFUSED[eq.name])
        return [eq.emit(reduction, x, axes=tuple(map(int, axes))) for x in operands]

    return read


def scatter(eq: Equation, x: Array, indices: Array, updates: Array) -> Array:
    """Windows that are replaced; those to which a function is applied are gathered first."""
    function = eq.params.get("update_jaxpr")
    if function is None or function.outvars == [function.invars[1]]:
        return eq.as_named("scatter", x, indices, updates)[0]
    if not eq.params["unique_indices"]:
        raise eq.refused("it applies a function as often as an index occurs; say unique_indices=True where each does once")
    attrs = attrs_of("scatter", eq.params)
    names = ("offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims", "start_indices_batching_dims")
    axes = dict(zip(names, dict(attrs["dimension_numbers"]).values(), strict=True))
    windows = iter(updates.type.shape[k] for k in axes["offset_dims"])
    gone = {*axes["collapsed_slice_dims"], *axes["operand_batching_dims"]}
    sizes = tuple(1 if k in gone else next(windows) for k in range(x.type.rank))
    numbers = GatherDimensionNumbers(**axes)
    mode = "clip" if attrs["mode"] == "fill" else attrs["mode"]  # what does not fit is not written
    old = eq.emit("gather", x, indices, dimension_numbers=numbers, slice_sizes=sizes, mode=mode)
    (new,) = eq.traced_arrays(elementwise(function, eq.params["update_consts"], of_first=1), old)
    return eq.emit("scatter", x, indices, new, **attrs)


ARRAYS: dict[str, Callable[..., Any]] = {
    "psum": over_axes("reduce_sum"),
    "pmax": over_axes("reduce_max"),
    "pmin": over_axes("reduce_min"),
    "stack": stack,
    "unstack": unstack,
    "tile": tile,
    "broadcast_to": broadcast_to,
    "zeros_like": zeros,
    "empty": zeros,
    "empty2": zeros,
    "reshape": reshape,
    "dot_general": dot_general,
    "scatter": scatter,
}
