"""Equations of arrays: those that arrange elements, elementwise ones of another form here, and reductions by a function."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.equation import Equation, elementwise, spread
from tidu_cli.adapters.jax.functions.jaxpr import REFUSED, attrs_of, plain
from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of
from tidu_cli.graph.types import FLOATS
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
    repeats = plain(tuple(eq.params["reps"]))
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


def reshape(eq: Equation, x: Array) -> Array:
    """A reshape, of axes in another order perhaps."""
    dimensions = eq.params.get("dimensions")
    if dimensions is not None:
        x = x.permuted(tuple(map(int, dimensions)))
    return x.reshaped(eq.results[0].shape)


def over_axes(reduction: str, eq: Equation, *operands: Array) -> Sequence[Array]:
    """A collective, which under jax.vmap is the reduction over the axis that the name stood for."""
    axes = eq.params["axes"]
    if not all(isinstance(a, int | np.integer) for a in axes) or eq.params["axis_index_groups"] is not None:
        raise eq.refused(REFUSED[eq.name])
    return [eq.emit(reduction, x, axes=tuple(map(int, axes))) for x in operands]


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
    "psum": partial(over_axes, "reduce_sum"),
    "pmax": partial(over_axes, "reduce_max"),
    "pmin": partial(over_axes, "reduce_min"),
    "stack": stack,
    "unstack": unstack,
    "tile": tile,
    "broadcast_to": broadcast_to,
    **dict.fromkeys(("zeros_like", "empty", "empty2"), zeros),
    "reshape": reshape,
    "scatter": scatter,
}


# Elementwise equations that differ from operations of graphs in what they take, or are called.


# fmt: off
SPREADING = frozenset({
    "sub", "div", "pow", "rem", "atan2", "nextafter", "eq", "ne", "lt", "le", "gt", "ge",
    "and", "or", "xor", "zeta", "polygamma", "igamma", "igammac", "regularized_incomplete_beta", "complex",
    "shift_left", "shift_right_logical", "shift_right_arithmetic",
})
# fmt: on
"""Operations whose equations take scalars beside arrays, but for those that `ELEMENTWISE` has."""


def renamed(op: str, eq: Equation, *operands: Array) -> Array:
    """An equation that is an operation of another name."""
    shape = eq.results[0].shape
    return eq.emit(op, *[spread(x, shape) for x in operands])


def ordered(op: str, eq: Equation, *operands: Array) -> Array:
    """A comparison by the total order of floats, where NaN comes last and equals itself. Zeros of either sign are equal here."""
    x, y = (spread(operand, eq.results[0].shape) for operand in operands)
    truth = eq.emit(op, x, y)
    if x.type.dtype not in FLOATS:
        return truth
    last = eq.emit("ne", y, y)
    if op != "le":
        last = eq.emit("and", last, eq.emit("eq" if op == "lt" else "ne", x, x))
    return eq.emit("or", truth, last)


def select_n(eq: Equation, which: Array, *cases: Array) -> Array:
    """Cases by numbers of 32 bits."""
    if which.type.dtype not in ("bool", "i32"):
        which = which.convert("i32")
    return eq.emit("select_n", which, *cases)


def mulhi(eq: Equation, x: Array, y: Array) -> Array:
    """The high half of a product of integers of at most 32 bits."""
    dtype = x.type.dtype
    bits = int(dtype[1:])
    if bits > 32:
        raise eq.refused("no operation of a graph gives the high 64 bits of a product")
    wide = f"{dtype[0]}64"
    product = eq.emit("mul", x.convert(wide), y.convert(wide))
    shift = spread(eq.constant(dtype_of(wide).type(bits)), product.type.shape)
    return eq.emit("shift_right_arithmetic" if dtype[0] == "i" else "shift_right_logical", product, shift).convert(dtype)


def of_bools(op: str, logical: str, eq: Equation, *operands: Array) -> Array:
    """An operation of numbers whose equation takes bools, too."""
    return renamed(logical if operands[0].type.dtype == "bool" else op, eq, *operands)


def reduced_bools(op: str, logical: str) -> Callable[..., Array]:
    """Likewise, for a reduction."""
    return lambda eq, x: eq.emit(logical if x.type.dtype == "bool" else op, x, axes=tuple(map(int, eq.params["axes"])))


def converted(op: str, eq: Equation, x: Array) -> Array:
    """A conversion, or bits as another dtype; it may be of weak types only."""
    dtype = eq.results[0].dtype
    return x if dtype == x.type.dtype else eq.emit(op, x, new_dtype=dtype)


def conj(eq: Equation, x: Array) -> Array:
    """The conjugate, of a real number as a complex one."""
    return eq.emit("conj", x) if x.type.complex else x.convert(eq.results[0].dtype)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add_any": partial(renamed, "add"),
    **{f"{op}_to": partial(ordered, op) for op in ("eq", "lt", "le")},
    "select_n": select_n,
    "igamma_grad_a": lambda eq, a, x: eq.emit("igamma_grad_a", a, x, order=1),
    "mulhi": mulhi,
    "max": partial(of_bools, "max", "or"),
    "min": partial(of_bools, "min", "and"),
    "mul": partial(of_bools, "mul", "and"),
    "add": partial(of_bools, "add", "or"),
    "reduce_max": reduced_bools("reduce_max", "reduce_or"),
    "reduce_min": reduced_bools("reduce_min", "reduce_and"),
    **{op: partial(converted, op) for op in ("bitcast_convert_type", "convert_element_type")},
    "conj": conj,
}


# Reductions by a function of one's own, and what finds the greatest.


def reduce(eq: Equation, *operands: Array) -> Sequence[Array]:
    """A reduction by any function: a loop over the elements of the reduced axes, from the initial values on."""
    import jax

    n, dimensions = len(operands) // 2, tuple(eq.params["dimensions"])
    combine = elementwise(eq.params["jaxpr"])

    def reduced(*values: Any) -> Any:
        arrays, initial = values[:n], values[n:]
        kept = [k for k in range(arrays[0].ndim) if k not in dimensions]
        shape = [arrays[0].shape[k] for k in kept]
        rows = [x.transpose(*dimensions, *kept).reshape(-1, *shape) for x in arrays]
        carry = [jax.numpy.broadcast_to(x, shape) for x in initial]
        return jax.lax.scan(lambda carry, row: (combine(*carry, *row), None), carry, rows)[0]

    return eq.traced_arrays(reduced, *operands)


def reduce_window(eq: Equation, *operands: Array) -> Sequence[Array]:
    """The same of windows: their elements one after the other, each of all windows at once."""
    import jax.lax as lax
    import jax.numpy as jnp

    p, n = eq.params, len(operands) // 2
    window, strides, inner = p["window_dimensions"], p["window_strides"], p["window_dilation"]
    if math.prod(window) > 4096:
        raise eq.refused(f"its windows have {math.prod(window):,} elements, and no more than 4,096 are combined one by one")
    combine, shape = elementwise(p["jaxpr"]), eq.results[0].shape

    def reduced(*values: Any) -> Any:
        initial, arrays = values[n:], []
        for x, start in zip(values[:n], initial, strict=True):
            config = [(low, high, base - 1) for (low, high), base in zip(p["padding"], p["base_dilation"], strict=True)]
            arrays.append(lax.pad(x, start, config))
        carry = [jnp.broadcast_to(x, shape) for x in initial]
        for offset in itertools.product(*map(range, window)):
            first = [k * d for k, d in zip(offset, inner, strict=True)]
            last = [a + (m - 1) * s + 1 for a, m, s in zip(first, shape, strides, strict=True)]
            carry = combine(*carry, *[lax.slice(x, first, last, strides) for x in arrays])
        return carry

    return eq.traced_arrays(reduced, *operands)


def approx_top_k(eq: Equation, x: Array) -> Sequence[Array]:
    """The greatest or least elements: all of them, as on a CPU."""
    p = eq.params
    axis, k = p["reduction_dimension"] % x.type.rank, p["k"]
    if eq.results[0].shape[axis] != k:
        raise eq.refused("it gives more candidates than it is asked for; set aggregate_to_topk")
    greatest = p["is_max_k"]
    values, places = eq.emit_all("top_k", x if greatest else -x, k=k, axis=axis)
    return (values if greatest else -values), places.convert(eq.results[1].dtype)


REDUCTIONS: dict[str, Callable[..., Any]] = {"reduce": reduce, "reduce_window": reduce_window, "approx_top_k": approx_top_k}
