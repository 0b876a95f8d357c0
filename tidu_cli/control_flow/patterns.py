"""Which elements of what loops and branches give depend on which tangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.rules.sparsity import Patterns

_FOLLOWED = 200_000
"""The nodes of all steps together up to which each step of a loop is followed."""

Values = Sequence[Any]


def cond_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """Those of the branch that is taken, if it is known; else what may be any of them."""
    index, *rest = operands
    branches = attrs.branches if index is None else [attrs.branches[max(0, min(int(index), len(attrs.branches) - 1))]]
    return [patterns.union(some) for some in zip(*[patterns.through(branch, rest) for branch in branches], strict=True)]


def scan_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """Step by step, as what is carried over comes to depend on more; of long loops, whatever may be at any step, at each."""
    first, end = attrs.num_consts, attrs.num_consts + attrs.num_carry
    consts, carry, xs = operands[:first], operands[first:end], operands[end:]

    def step(carry: Values, x: Values) -> tuple[Values, Values]:
        outputs = patterns.through(attrs.body, [*consts, *carry, *x])
        return outputs[: attrs.num_carry], outputs[attrs.num_carry :]

    slices = list(patterns.steps(attrs.length, xs))
    if attrs.length * attrs.body.n_nodes > _FOLLOWED:
        x = [patterns.union(some) for some in zip(*slices, strict=True)]
        carry = _any_step(patterns, carry, lambda carry: step(carry, x)[0])
        return [*carry, *[patterns.stacked([y] * attrs.length) for y in step(carry, x)[1]]]
    results: list[Values] = []
    for x in reversed(slices) if attrs.reverse else slices:
        carry, ys = step(carry, x)
        results.append(ys)
    if not results:
        return [*carry, *[None] * (len(attrs.body.output_types) - attrs.num_carry)]
    return [*carry, *map(patterns.stacked, zip(*results[:: -1 if attrs.reverse else 1], strict=True))]


def while_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """Nobody knows how many steps there are."""
    _, consts, carry = attrs.split(operands)
    return _any_step(patterns, carry, lambda carry: patterns.through(attrs.body, [*consts, *carry]))


def solve_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """An unknown depends on the right sides of all equations that it is tied to, by others too, and on no more."""
    n: int = attrs.num_consts
    return patterns.solved(attrs.matvec, operands[:n], operands[n:])


def _any_step(patterns: Patterns, carry: Values, step: Callable[[Values], Values]) -> Values:
    """What is carried over after any number of steps, none among them: it adds up until nothing is new."""
    while True:
        after = [patterns.union(two) for two in zip(carry, step(carry), strict=True)]
        if patterns.same(carry, after):
            return after
        carry = after
