"""The recipes by op: what special functions are in terms of elementary ones, for backends that have none of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tidu_cli.lax.special.recipes.arrays import Array
from tidu_cli.rules.terms import Term

Recipe = Callable[..., Array]
"""From attrs and operands, of f64 and along one axis, to the result."""


@cache
def recipes() -> dict[str, Recipe]:
    """The recipes by op."""
    from tidu_cli.lax.special.recipes import bessel, error_functions, gamma, hypergeometric, incomplete, integrals

    families = (bessel, error_functions, gamma, hypergeometric, incomplete, integrals)
    return {op: recipe for family in families for op, recipe in family.RECIPES.items()}


def defined(op: str, attrs: Any, operands: Sequence[Term]) -> list[Term]:
    """The result of an op by its recipe, computed in f64 and rounded to the operands' dtype."""
    type_ = operands[0].type
    given = [Array(x).reshape((type_.size,)).astype("f64") for x in operands]
    found = recipes()[op](attrs, *given)
    return [found.astype(type_.dtype).reshape(type_.shape).term]
