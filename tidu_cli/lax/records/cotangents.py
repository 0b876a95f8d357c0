"""Sums of cotangents of one thing, whichever types they have.

A cotangent counts *per* unit of its tangent, so that its conversion is the transpose of that of tangents: 1 per hour and 1 per
millisecond are 1.00000028 per millisecond, where tangents of 1 hour and 1 millisecond are 3,600,001 milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.types import tangent_type
from tidu_cli.lax.records.joining import joining_batch, joining_kernel
from tidu_cli.lax.records.sums_and_products import ADDABLE, JOINED, add_kernel, add_types
from tidu_cli.rules.contract import JVP, TOGETHER, Kernel, Transposition, ValueTypes
from tidu_cli.rules.families import elementwise, summed
from tidu_cli.rules.recording.conversion import converted, converted_cotangent
from tidu_cli.rules.terms import Term


def _kernel(np: Any, attrs: Any, operands: ValueTypes, results: ValueTypes) -> Kernel:
    add = add_kernel(np, attrs, results * 2, results)
    return add if operands == results * 2 else joining_kernel(np, add, operands, results[0], converted_cotangent)


def _jvp(node: JVP) -> Sequence[Term | None]:
    """The sum of the tangents, which count what the cotangents do."""
    natural = tangent_type(node.results[0].value_type)
    return [summed([t and converted_cotangent(t, natural) for t in node.tangents])]


def _transpose(node: Transposition) -> Sequence[Term | None]:
    """What a cotangent is transposed to counts as a tangent."""
    return [converted(node.cotangent, t) if a else None for a, t in zip(node.active, node.types, strict=True)]


ADD_COTANGENTS = elementwise(
    "add_cotangents",
    2,
    ADDABLE,
    _jvp,
    transpose=_transpose,
    types=add_types,  # type: ignore[arg-type]
    kernel=_kernel,
    batch=joining_batch("add_cotangents", converted_cotangent),
    records=True,
    joins=True,
    more=JOINED,
    fresh=True,
    linear=TOGETHER,
    formula="x + y",
    summary="sum of cotangents of one thing, in the natural type, whichever they have: durations in them count per unit",
)

PRIMITIVES = (ADD_COTANGENTS,)
