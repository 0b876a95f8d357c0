"""What people are told of a primitive, and the examples that the checks try it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidu_cli.rules.captions import CaptionRule


@dataclass(frozen=True, slots=True)
class Example:
    """A typical application of a primitive, on which `tidu check --ops` tries its rules.

    `operands` are types in which the letter T stands for each dtype of the primitive in turn, such as `T[2,3]` or `i32[2]`.
    `within` are intervals, one per operand or one for all, away from kinks and poles, from which operands are drawn; the parts
    of complex numbers are both drawn from it. `diagonals` are numbers, one per operand or one for all, that are added to the
    diagonals of its matrices (the last two axes), so that they are positive definite or well conditioned. `attrs` are in their
    file form; a dtype in them may be T, too.
    """

    operands: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    within: tuple[tuple[float, float], ...] = ((-2.0, 2.0),)
    diagonals: tuple[float, ...] = (0.0,)


@dataclass(frozen=True)
class Catalogue:
    """What people are told of an operation, and what it is tried on."""

    formula: str = ""
    """Its result in terms of operands x, y, z and attrs."""
    summary: str = ""
    """What it is; what follows a semicolon are details."""
    examples: tuple[Example, ...] = ()
    """Typical applications, on which `tidu check --ops` tries its rules."""
    caption: tuple[str, str] | CaptionRule | None = None
    """What pictures and pages say of one application, where the formula in x, y and z cannot tell."""
