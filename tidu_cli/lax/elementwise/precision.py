"""Precision: rounding to a float format of fewer bits, kept in the operand's dtype."""

from __future__ import annotations

from typing import Annotated, Any

from tidu_cli.graph.types import FLOATS, ITEMSIZE
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.rules.analysis import ONE_EACH
from tidu_cli.rules.contract import Attrs, Example, Kernel, Types
from tidu_cli.rules.families import linear, of_one_type
from tidu_cli.rules.fields import Bounded
from tidu_cli.rules.terms import op

reduce_precision = op("reduce_precision")

_EXPONENT_BITS = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}


class ReducePrecisionAttrs(Attrs):
    """`exponent_bits`, `mantissa_bits`: those of the format to round to; as many as the operand's or more change nothing."""

    exponent_bits: Annotated[int, Bounded(ge=1, lt=2**31)]
    mantissa_bits: Annotated[int, Bounded(ge=0, lt=2**31)]


def _kernel(np: Any, attrs: ReducePrecisionAttrs, operands: Types, results: Types) -> Kernel:
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
    linear(
        "reduce_precision",
        of_one_type(FLOATS),
        _kernel,
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
