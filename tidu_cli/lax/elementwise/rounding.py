"""Rounding and remainders: to integers, to neighbouring floats and to float formats of fewer bits, and what is left over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import FLOATS, INTEGERS, ITEMSIZE, REALS
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.rules.analysis import ONE_EACH
from tidu_cli.rules.contract import JVP, Attrs, Example, Kernel, Types
from tidu_cli.rules.families import binary, elementwise, linear, numpy_function, of_one_type, unary
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import Term, op

convert, eq, reduce_precision, round_, select_n = map(op, ("convert_element_type", "eq", "reduce_precision", "round", "select_n"))


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


_EXPONENT_BITS = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}


class ReducePrecisionAttrs(Attrs):
    """`exponent_bits`, `mantissa_bits`: those of the format to round to; as many as the operand's or more change nothing."""

    exponent_bits: Annotated[int, Bounded(ge=1, lt=2**31)]
    mantissa_bits: Annotated[int, Bounded(ge=0, lt=2**31)]


def _reduce_precision_kernel(np: Any, attrs: ReducePrecisionAttrs, operands: Types, results: Types) -> Kernel:
    """As XLA: the mantissa to nearest, ties to even; past the format's range infinity, below its normal numbers a signed 0."""
    name = operands[0].dtype
    dtype, n_bits, n_exponent = numpy_dtype(np, name), 8 * ITEMSIZE[name], _EXPONENT_BITS[name]
    n_mantissa = n_bits - 1 - n_exponent
    bits = np.dtype(f"uint{n_bits}").type
    exponent_mask, sign_mask = ((1 << n_exponent) - 1) << n_mantissa, 1 << (n_bits - 1)
    dropped = n_mantissa - attrs.mantissa_bits
    bias = (1 << (n_exponent - 1)) - 1
    reach = (1 << (attrs.exponent_bits - 1)) - 1 if attrs.exponent_bits < n_exponent else None

    def reduced(x: Any) -> Any:
        x = np.asarray(x)
        word = x.view(bits)
        if dropped > 0:
            # To the last bit kept add just under half of its worth, and one more where it is odd. A carry into the exponent is
            # right: the mantissa is then 0.
            odd = (word >> bits(dropped)) & bits(1)
            word = (word + odd + bits((1 << (dropped - 1)) - 1)) & bits(((1 << n_bits) - 1) & -(1 << dropped))
        if reach is not None:
            exponent, sign = word & bits(exponent_mask), word & bits(sign_mask)
            word = np.where(exponent > bits((bias + reach) << n_mantissa), sign | bits(exponent_mask), word)
            word = np.where(exponent <= bits((bias - reach) << n_mantissa), sign, word)
        return np.where(np.isnan(x), x, np.asarray(word).view(dtype))

    return reduced


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
    linear(
        "reduce_precision",
        of_one_type(FLOATS),
        _reduce_precision_kernel,
        lambda node, ct, type_: reduce_precision(ct, **dict(node.attrs)),
        sparsity="elements",
        attrs=ReducePrecisionAttrs,
        dtypes=FLOATS,
        examples=(Example(("T[2,3]",), {"exponent_bits": 11, "mantissa_bits": 52}),),
        one_type=True,
        flops=ONE_EACH,
        faithful=False,
        formula="x rounded to fewer bits",
        summary="rounding to a float format of fewer bits; tangents and cotangents are rounded likewise",
        caption=("{0} rounded", "rounded to {exponent_bits} exponent and {mantissa_bits} mantissa bits"),
    ),
)
