"""Loops and branches: the graphs that they hold are functions, which JAX traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from tidu_cli.graph.closed import ClosedGraph

OfGraph = Callable[[ClosedGraph], Callable[..., tuple[Any, ...]]]


def _scan(attrs: Any, of_graph: OfGraph) -> Callable[..., Any]:
    body, n, n_carry = of_graph(attrs.body), attrs.num_consts, attrs.num_carry

    def scan(*operands: Any) -> Any:
        consts, carry, slices = operands[:n], operands[n : n + n_carry], operands[n + n_carry :]

        def step(carry: Any, slices: Any) -> Any:
            values = body(*consts, *carry, *slices)
            return values[:n_carry], values[n_carry:]

        carry, stacked = lax.scan(step, carry, slices, attrs.length, attrs.reverse)
        return (*carry, *stacked)

    return _compiled(scan)


def _while(attrs: Any, of_graph: OfGraph) -> Callable[..., Any]:
    condition, body = of_graph(attrs.condition), of_graph(attrs.body)

    def loop(*operands: Any) -> Any:
        of_condition, of_body, carry = attrs.split(operands)
        return lax.while_loop(lambda c: condition(*of_condition, *c)[0], lambda c: body(*of_body, *c), tuple(carry))

    return _compiled(loop)


def _cond(attrs: Any, of_graph: OfGraph) -> Callable[..., Any]:
    branches = [of_graph(branch) for branch in attrs.branches]
    last = len(branches) - 1

    def choose(index: Any, *operands: Any) -> Any:
        if index.dtype.kind == "b":
            index = index.astype(np.int32)
        elif index.dtype != np.int32:  # to which lax.switch would convert it before it clamps it
            index = jnp.clip(index, 0, min(last, np.iinfo(index.dtype).max)).astype(np.int32)
        return lax.switch(index, branches, *operands)

    return _compiled(choose)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which JAX would compile at every call outside of a trace, as its closures are new ones."""
    once = jax.jit(function)

    def called(*operands: Any) -> Any:
        traced = any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(operands))
        return function(*operands) if traced else once(*operands)

    return called


FUNCTIONS = {"scan": _scan, "while": _while, "cond": _cond}
"""By op, of attrs and what makes functions of the graphs in them."""
