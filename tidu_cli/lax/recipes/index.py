"""Recipes: what special functions are in terms of elementary ones, for backends that have none of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import Frozen
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.terms import Term

_LARGEST = {"hyp1f1": 16, "hyp2f1": 8, "expn": 2**31}
"""Orders and other parameters up to which recipes keep 11 digits, by op: sums of terms of larger ones cancel."""

_LARGEST_ORDER = 128
"""Those of other ops: powers of larger ones leave the range of f64."""


class Recipe(Frozen):
    """The definition of an op by its recipe: hundreds of operations, which are recorded when a backend needs them."""

    op: str

    def refusal(self, attrs: Attrs) -> str:
        """Why there is no recipe for these attrs; empty if there is one."""
        most = _LARGEST.get(self.op, _LARGEST_ORDER)
        large = [f"{name} {value:g}" for name, value in dict(attrs).items() if abs(value) > most]
        return f"its recipe is for parameters up to {most}, not {large[0]}" if large else ""

    def __call__(self, attrs: Any, operands: Sequence[Term]) -> Sequence[Term]:
        """The result, computed in f64 and rounded to the operands' dtype.

        Raises MissingRuleError where the recipe is not for these attrs.
        """
        import numpy as np

        from tidu_cli.lax.recipes.arrays import Array

        if reason := self.refusal(attrs):
            raise MissingRuleError(reason)
        type_ = operands[0].type
        arrays = [Array(x).reshape((type_.size,)).astype("f64") for x in operands]
        try:
            with np.errstate(all="ignore"):
                result = recipes()[self.op](attrs, *arrays)
        except (OverflowError, ZeroDivisionError):  # of gamma functions of the parameters
            raise MissingRuleError("its recipe is not for these parameters, whose gamma functions are not finite") from None
        return [result.astype(type_.dtype).reshape(type_.shape).term]


@cache
def recipes() -> dict[str, Callable[..., Any]]:
    """By op: from attrs and operands, arrays of f64 along one axis, to the result."""
    from tidu_cli.lax.recipes import bessel, error_functions, gamma, hypergeometric, incomplete, integrals

    families = (bessel, error_functions, gamma, hypergeometric, incomplete, integrals)
    return {op: recipe for family in families for op, recipe in family.RECIPES.items()}
