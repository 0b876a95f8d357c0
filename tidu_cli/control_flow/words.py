"""What people are told of loops and branches: captions, and what the graphs in them are for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.graph import Case
from tidu_cli.rules.catalogue import Caption, Part


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
