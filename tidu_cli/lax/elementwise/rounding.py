"""Rounding and remainders: to integers, to neighbouring floats, and what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import FLOATS, INTEGERS, REALS
from tidu_cli.rules.contract import JVP, Attrs, Kernel, Types
from tidu_cli.rules.families import binary, elementwise, numpy_function, unary
from tidu_cli.rules.terms import Term, op

convert, eq, round_, select_n = map(op, ("convert_element_type", "eq", "round", "select_n"))


class RoundAttrs(Attrs):
    """`rounding_method`: where halves go, away from zero or to the even neighbour."""

    rounding_method: Literal["AWAY_FROM_ZERO", "TO_NEAREST_EVEN"] = "AWAY_FROM_ZERO"


def _round_kernel(np: Any, attrs: RoundAttrs, operands: Types, results: Types) -> Kernel:
    if attrs.rounding_method == "TO_NEAREST_EVEN":
        return numpy_function("rint")(np, attrs, operands, results)

    def away_from_zero(x: Any) -> Any:
        # The fraction is exact; adding a half before truncation would round.
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)

    return away_from_zero


def _remainder(np: Any, x: Any, y: Any) -> Any:
    # As XLA: x rem 0 is x.
    zero = np.equal(y, 0)
    return np.where(zero, x, np.fmod(x, np.where(zero, np.ones_like(y), y)))


def _quotient(t: Term, x: Term, y: Term, z: Term) -> Term:
    """The q in x = q y + z, a number like the tangent t."""
    if x.type.dtype in INTEGERS:
        # x rem 0 is x, which does not depend on the 0.
        return convert(select_n(eq(y, 0), x / y, 0), new_dtype=t.type.dtype)
    # x - z is all but a multiple of y, so that rounding finds the quotient also where x / y itself rounds past an integer.
    return round_((x - z) / y)


def _nextafter_jvp(node: JVP) -> Sequence[Term | None]:
    raise MissingRuleError("nextafter has no derivative: it steps from one float to the next")


def _jumps(k: Any) -> Sequence[Any]:
    return [k.Kink(k.whole, "operand is an integer", "0", onnx="")]


def _at_half(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    return np.abs(operands[0] - np.floor(operands[0])) == 0.5


def _is_multiple(np: Any, attrs: Any, operands: Any, results: Any) -> Any:
    return (results[0] == 0) & (operands[1] != 0)


PRIMITIVES = (
    unary("floor", FLOATS, "⌊x⌋", "the greatest integer not above x", kinks=_jumps),
    unary("ceil", FLOATS, "⌈x⌉", "the least integer not below x", kinks=_jumps),
    unary(
        "round",
        FLOATS,
        "the integer next to x",
        "rounding to an integer, of halves as rounding_method says",
        kernel=_round_kernel,
        attrs=RoundAttrs,
        kinks=lambda k: [k.Kink(_at_half, "operand is halfway", "0", onnx="")],
    ),
    binary(
        "rem",
        REALS,
        kernel=numpy_function("fmod", INTEGERS, _remainder),
        tangents=(lambda t, x, y, z: t, lambda t, x, y, z: -_quotient(t, x, y, z) * t),
        integers="exact",
        kinks=lambda k: [k.Kink(_is_multiple, "x is a multiple of y", "that of one side", onnx="")],
        linear=(),  # its derivative by x does not show where it jumps
        within=((2.2, 2.6), (0.9, 1.05)),
        formula="x - y trunc(x / y)",
        summary="remainder, with the sign of x; of integers x rem 0 is x",
    ),
    unary(
        "is_finite",
        FLOATS,
        "|x| < ∞",
        "whether x is neither infinite nor NaN",
        kernel="isfinite",
        result=lambda t: t.with_dtype("bool"),
    ),
    elementwise(
        "nextafter",
        2,
        FLOATS,
        _nextafter_jvp,
        formula="the float after x towards y",
        summary="the neighbour of x in the direction of y; it has no derivative",
        inert=(0, 1),
        inert_reason="it steps from one float to the next",
        opaque="steps through the bits of floats",
    ),
)
