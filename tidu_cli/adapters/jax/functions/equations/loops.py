"""Loops and branches: scan, while and cond, whose jaxprs become graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.equations.equation import Equation
from tidu_cli.adapters.jax.functions.known import Known, Value
from tidu_cli.adapters.numpy.arrays.array import Array


def scan(eq: Equation, *operands: Array) -> Sequence[Array]:
    """A scan, also one that is written for any length."""
    p = eq.params
    attrs = {name: p[name] for name in ("length", "num_consts", "num_carry", "reverse")}
    return eq.emit_all("scan", *operands, **attrs, body=eq.graph(p["jaxpr"]))


def cond(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A choice among branches; where it is known which, that branch."""
    index, *rest = operands
    branches = eq.params["branches"]
    if type(index) is Known:
        number = min(max(int(np.asarray(index.value)), 0), len(branches) - 1)
        return eq.run(branches[number], rest, eq.needs)
    arrays = [eq.lifted(x) for x in operands]
    return eq.emit_all("cond", *arrays, branches=tuple(eq.graph(b) for b in branches))


def while_loop(eq: Equation, *operands: Array) -> Sequence[Array]:
    """A loop with a condition; with one for each item of a batch, it goes on as long as one of them holds."""
    p = eq.params
    n, m = p["cond_nconsts"], p["body_nconsts"]
    if p["cond_jaxpr"].out_avals[0].shape:
        return _batched(eq, n, m, operands)
    attrs = {"cond_consts": n, "body_consts": m}
    return eq.emit_all("while", *operands, **attrs, condition=eq.graph(p["cond_jaxpr"]), body=eq.graph(p["body_jaxpr"]))


def _batched(eq: Equation, n: int, m: int, operands: Sequence[Array]) -> Sequence[Array]:
    """Items whose condition does not hold keep what they are."""
    test, step = eq.params["cond_jaxpr"], eq.params["body_jaxpr"]
    types = [x.type for x in operands]

    def condition(inner: Any, arrays: list[Array]) -> list[Array]:
        (go_on,) = map(inner.lifted, inner.run(test.jaxpr, test.consts, arrays))
        return [go_on.emit("reduce_or", axes=tuple(range(go_on.type.rank)))]

    def body(inner: Any, arrays: list[Array]) -> list[Array]:
        old = arrays[n + m :]
        (go_on,) = map(inner.lifted, inner.run(test.jaxpr, test.consts, [*arrays[:n], *old]))
        new = map(inner.lifted, inner.run(step.jaxpr, step.consts, arrays[n:]))
        axes = tuple(range(go_on.type.rank))
        each = [go_on.emit("broadcast_in_dim", shape=x.type.shape, broadcast_dimensions=axes) for x in old]
        return [which.emit("select_n", a, b) for which, a, b in zip(each, old, new, strict=True)]

    graphs = {
        "condition": eq.reader.made([*types[:n], *types[n + m :]], condition),
        "body": eq.reader.made(types, body),
    }
    return eq.emit_all("while", *operands[:n], *operands, cond_consts=n, body_consts=n + m, **graphs)


LOOPS = {"scan": scan, "while": while_loop}
