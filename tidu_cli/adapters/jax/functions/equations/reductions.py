"""Reductions by a function of one's own, and what finds the greatest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.adapters.jax.functions.equations.equation import Equation, elementwise
from tidu_cli.adapters.numpy.arrays.array import Array


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
