"""The words for loops and branches: captions, the roles of the graphs in them, and examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidu_cli.control_flow.graphs import made
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.rules.catalogue import Caption, Part
from tidu_cli.rules.terms import Term, op


def scan_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`a loop of 4 steps`."""
    attrs: Any = case.attrs
    steps = f"{attrs.length:,} step{'' if attrs.length == 1 else 's'}{', from the last to the first' if attrs.reverse else ''}"
    return Caption(f"scan({', '.join(operands)})", f"the loop of {steps}", label=steps)


def while_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`a loop as long as its condition holds`."""
    does = "the loop as long as its condition holds"
    return Caption(f"while({', '.join(operands)})", does, label="as long as its condition holds")


def cond_caption(case: Case, operands: Sequence[str]) -> Caption:
    """`the one of 2 branches that i chooses`."""
    attrs: Any = case.attrs
    n = len(attrs.branches)
    which = f"one of {n} branches" if n > 1 else "one branch"
    return Caption(f"cond({', '.join(operands)})", f"the {which}, chosen by {operands[0]}", "through the branch", label=which)


def scan_parts(attrs: Any) -> Sequence[Part]:
    """The body: constants, what goes round, and slices."""
    n, end = attrs.num_consts, attrs.num_consts + attrs.num_carry
    roles = [(k, "const" if k < n else "carry" if k < end else "slice") for k in range(len(attrs.body.input_types))]
    return [Part("body", tuple(roles), tuple((k, n + k) for k in range(attrs.num_carry)))]


def while_parts(attrs: Any) -> Sequence[Part]:
    """The condition and the body, both of what goes round."""
    n, m = attrs.cond_consts, attrs.body_consts
    n_carry = len(attrs.body.output_types)
    carry = tuple((n + m + k, "carry") for k in range(n_carry))
    condition = Part("condition", (*((k, "const") for k in range(n)), *carry))
    return [condition, Part("body", (*((n + k, "const") for k in range(m)), *carry), tuple((k, m + k) for k in range(n_carry)))]


def cond_parts(attrs: Any) -> Sequence[Part]:
    """The branches, each of the operands after the index."""
    return [
        Part(f"branch {k}", tuple((i + 1, "") for i in range(len(branch.input_types)))) for k, branch in enumerate(attrs.branches)
    ]


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
