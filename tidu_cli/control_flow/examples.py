"""Examples of loops and branches: their attrs, with graphs that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidu_cli.control_flow.graphs import made
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.rules.terms import Term, op

Attributes = Mapping[str, Any]

cos, dot_general, less, sin = map(op, ("cos", "dot_general", "lt", "sin"))

_MATRIX_VECTOR = {"dimension_numbers": (((1,), (0,)), ((), ()))}


def _graph(types: Sequence[str], emit: Callable[..., Sequence[Term]]) -> ClosedGraph:
    inputs = [(f"x{k}", parse_type(t)) for k, t in enumerate(types)]
    return made(BUILTIN, inputs, lambda trace, terms: emit(*terms))


def recurrence() -> Attributes:
    """s ← sin(k) s + x, which also gives cos(s)."""

    def step(k: Term, s: Term, x: Term) -> Sequence[Term]:
        after = sin(k) * s + x
        return after, cos(after)

    return {"length": 4, "num_consts": 1, "num_carry": 1, "body": _graph(["f64[]"] * 3, step)}


def powers() -> Attributes:
    """v ← A v, from the last step to the first, each of which gives v."""

    def step(matrix: Term, v: Term) -> Sequence[Term]:
        return dot_general(matrix, v, **_MATRIX_VECTOR), v

    body = _graph(["f64[2,2]", "f64[2]"], step)
    return {"length": 3, "num_consts": 1, "num_carry": 1, "reverse": True, "body": body}


def two_branches() -> Attributes:
    """sin(x) or x²."""
    return {"branches": (_graph(["f64[3]"], lambda x: [sin(x)]), _graph(["f64[3]"], lambda x: [x * x]))}


def counted() -> Attributes:
    """x ← sin(a) x as long as a count, which goes up, is below 3."""

    def step(a: Term, count: Term, x: Term) -> Sequence[Term]:
        return count + 1, sin(a) * x

    condition = _graph(["i32[]", "f64[]"], lambda count, x: [less(count, 3)])
    return {"cond_consts": 0, "body_consts": 1, "condition": condition, "body": _graph(["f64[]", "i32[]", "f64[]"], step)}
