"""What stands for linear products and quotients of numbers where zeros are strong; vectors that are scaled stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.rules.tangents.types import scaled_operand
from tidu_cli.rules.terms import Term

Strong = tuple[str, Sequence[Term]] | None


def strong_product(operands: Sequence[Term]) -> Strong:
    """strong_mul, with the tangent as operand 1."""
    return None if _scale(operands) else ("strong_mul", sorted(operands, key=lambda t: t.linear))


def strong_quotient(operands: Sequence[Term]) -> Strong:
    """strong_div."""
    return None if _scale(operands) else ("strong_div", operands)


def _scale(operands: Sequence[Term]) -> bool:
    return scaled_operand([t.value_type for t in operands]) is not None
