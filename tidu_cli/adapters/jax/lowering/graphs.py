"""Graphs as functions: node by node, without recursion, and a value is let go once the last node that reads it has run.

So are the graphs that loops and branches hold, which JAX traces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from tidu_cli.errors import MissingRuleError, placed
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.sizes.open import OpenSize

Function = Callable[..., tuple[Any, ...]]


def graph_function(graph: Graph, function_of: Callable[[Case], Function]) -> Function:
    """The function of a self-contained graph, from its inputs in order to its outputs; `function_of` a case is asked for once.

    Outputs that are structural zeros are None. Raises MissingRuleError naming the node of a case that has no function.
    """
    functions: dict[int, Function] = {}
    for node, code in enumerate(graph.code):
        if code not in functions:
            functions[code] = _function(graph, node, function_of)
    outputs = [o.value for o in graph.outputs]
    steps = [(functions[code], reads, dying) for code, reads, dying in _with_last_uses(graph)]

    def run(*inputs: Any) -> tuple[Any, ...]:
        values: list[Any] = list(inputs)
        for function, reads, dying in steps:
            values += function(*[values[k] for k in reads])
            for k in dying:
                values[k] = None
        return tuple([None if k is None else values[k] for k in outputs])

    return run


def _function(graph: Graph, node: int, function_of: Callable[[Case], Function]) -> Function:
    try:
        return function_of(graph.case(node))
    except MissingRuleError as error:
        raise MissingRuleError(placed(graph.describe(node), error)) from None


def _with_last_uses(graph: Graph) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Of each node its code, what it reads, and the values that nothing needs after it."""
    nodes = list(forwards(graph, graph.args))
    live = bytearray(graph.n_values)
    for o in graph.outputs:
        if o.value is not None:
            live[o.value] = 1
    steps = []
    for code, reads, first, end in reversed(nodes):
        dying = [k for k in range(first, end) if not live[k]]
        for k in reads:
            if not live[k]:
                live[k] = 1
                dying.append(k)
        steps.append((code, reads, tuple(dying)))
    steps.reverse()
    return steps


OfGraph = Callable[[ClosedGraph], Callable[..., tuple[Any, ...]]]


def _scan(attrs: Any, of_graph: OfGraph) -> Callable[..., Any]:
    body, n, n_carry, length = of_graph(attrs.body), attrs.num_consts, attrs.num_carry, attrs.length
    if isinstance(length, OpenSize):
        from tidu_cli.adapters.jax.lowering.dims import dim_of  # which functions of fixed sizes do without

        length = dim_of(length)

    def scan(*operands: Any) -> Any:
        consts, carry, slices = operands[:n], operands[n : n + n_carry], operands[n + n_carry :]

        scanned, steps = slices, length
        if isinstance(attrs.length, OpenSize):  # which lax.scan takes from arrays alone
            scanned, steps = slices or (jnp.zeros((length,), bool),), None

        def step(carry: Any, rows: Any) -> Any:
            values = body(*consts, *carry, *rows[: len(slices)])
            return values[:n_carry], values[n_carry:]

        carry, stacked = lax.scan(step, carry, scanned, steps, attrs.reverse)
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
