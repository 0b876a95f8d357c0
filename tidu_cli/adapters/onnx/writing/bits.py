"""Operations on bits of integers, for few of which ONNX has operators, and elementary functions of f64, made of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tidu_cli.adapters.onnx.writing.lowering import Lowering, Rule, widened
from tidu_cli.graph.types import SIGNED

UNSIGNED = {f"i{n}": f"u{n}" for n in (8, 16, 32, 64)}
"""The dtypes whose bits are shifted."""


def _bits(low: Lowering) -> int:
    return int(low.operand.dtype[1:])


def _as_u64(low: Lowering, x: str) -> str:
    """The bits of integers as u64, zeros above."""
    dtype = low.operand.dtype
    unsigned = low.cast(x, f"u{dtype[1:]}") if dtype in SIGNED else x
    return unsigned if dtype[1:] == "64" else low.cast(unsigned, "u64")


def _right(low: Lowering, x: str, n: int) -> str:
    return low.emit("BitShift", x, low.number(n, "u64"), direction="RIGHT")


def _counted(low: Lowering, x: str) -> str:
    """The bits set of u64: sums of neighbours, twice as wide in each step."""
    for n, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F), (8, 0x00FF00FF00FF00FF)):
        kept = low.number(mask, "u64")
        x = low.emit("Add", low.emit("BitwiseAnd", x, kept), low.emit("BitwiseAnd", _right(low, x, n), kept))
    x = low.emit("Add", x, _right(low, x, 16))
    return low.emit("BitwiseAnd", low.emit("Add", x, _right(low, x, 32)), low.number(0x7F, "u64"))


def _leading_zeros(low: Lowering, x: str) -> str:
    """All bits less those from the highest one on, to which it is smeared."""
    smeared = _as_u64(low, x)
    for n in (1, 2, 4, 8, 16, 32):
        if n < _bits(low):
            smeared = low.emit("BitwiseOr", smeared, _right(low, smeared, n))
    return low.cast(low.emit("Sub", low.number(_bits(low), "u64"), _counted(low, smeared)), low.result.dtype)


def _shift_right_arithmetic(low: Lowering, x: str, y: str) -> str:
    """By the logical shift of the complement of what is negative. The highest bit is a sign of unsigned integers, too."""
    bits, dtype = _bits(low), low.operand.dtype
    negative = low.emit("GreaterOrEqual", x, low.number(2 ** (bits - 1)))
    size = low.where(negative, low.emit("BitwiseNot", x), x, dtype)
    most = low.number(bits - 1)
    shift = low.where(low.emit("Greater", y, most), most, y, dtype)  # of what has no sign bit nothing is left then
    shifted = low.emit("BitShift", size, shift, direction="RIGHT")
    return low.where(negative, low.emit("BitwiseNot", shifted), shifted, dtype)


def reduced_bits(low: Lowering, x: str, op_type: str) -> str:
    """Integers whose bits are taken apart, reduced with others in their place, and put together."""
    rank, bits = low.operand.rank, _bits(low)
    powers = low.body.constant(np.uint64(1) << np.arange(bits, dtype=np.uint64))
    apart = low.emit("BitwiseAnd", low.emit("Unsqueeze", _as_u64(low, x), low.ints([rank])), powers)
    is_set = low.cast(low.emit("Not", low.emit("Equal", apart, low.number(0, "u64"))), "i32")
    reduced = low.emit(op_type, is_set, low.ints(low.attrs.axes), keepdims=0)
    reduced = low.emit("Mod", reduced, low.number(2, "i32")) if op_type == "ReduceSum" else reduced
    axis = low.result.rank
    parts = []
    for start in range(0, bits, 32):  # as runtimes sum in floats, of 53 bits
        part = low.emit("Slice", low.cast(reduced, "i64"), low.ints([start]), low.ints([start + 32]), low.ints([axis]))
        of_part = low.body.constant(2 ** np.arange(min(bits, 32)), "i64")
        total = low.emit("ReduceSum", low.emit("Mul", part, of_part), low.ints([axis]), keepdims=0)
        parts.append(low.emit("Mul", total, low.number(2**start, "i64")))
    return low.cast(low.emit("Add", *parts) if len(parts) > 1 else parts[0], low.result.dtype)


LOWERINGS: Mapping[str, Rule] = {
    "clz": _leading_zeros,
    "population_count": lambda low, x: low.cast(_counted(low, _as_u64(low, x)), low.result.dtype),
    "shift_right_arithmetic": widened(_shift_right_arithmetic, **UNSIGNED),
}


# Elementary functions of f64 by those that runtimes compute in it: they have f32 kernels alone of many, or lose digits.


ARCTANGENT = (
    (-0.8750608600031904, -16.157537187333652, -75.00855792314705, -122.8866684490136, -64.85021904942025),
    (1.0, 24.858464901423062, 165.02700983169885, 432.88106049129027, 485.3903996359137, 194.55065714826140),
)
"""Numerator and denominator of (arctan(x) - x) / x^3 in x^2 for |x| <= 0.66 (S. Moshier, Cephes, atan.c)."""


def of_doubles(rule: Rule, others: Rule) -> Rule:
    """One rule for f64, another for the other dtypes."""
    return lambda low, *operands: (rule if low.operand.dtype == "f64" else others)(low, *operands)


def polynomial(low: Lowering, coefficients: Sequence[float], x: str, dtype: str | None = None) -> str:
    """A polynomial in x, by default of the dtype of operand 0, by Horner's rule, from the highest power on."""
    value = low.number(coefficients[0], dtype)
    for c in coefficients[1:]:
        value = low.emit("Add", low.emit("Mul", value, x), low.number(c, dtype))
    return value


def odd(of_size: Callable[[Lowering, str], str]) -> Callable[[Lowering, str], str]:
    """An odd function by what it is of |x|. The sign of zero is kept."""

    def rule(low: Lowering, x: str) -> str:
        value = of_size(low, low.emit("Abs", x))
        negative = low.emit("Less", x, low.number(0))
        signed = low.emit("Where", negative, low.emit("Neg", value), value)
        return low.emit("Where", low.emit("Equal", x, low.number(0)), x, signed)

    return rule


def log1p(low: Lowering, x: str) -> str:
    """log(1 + x) = x log(u) / (u - 1) with u = 1 + x rounded, whose error cancels (W. Kahan)."""
    one = low.number(1)
    u = low.emit("Add", x, one)
    large = low.emit("Log", u)
    small = low.emit("Mul", x, low.emit("Div", large, low.emit("Sub", u, one)))
    log = low.emit("Where", low.emit("Greater", low.emit("Abs", x), one), large, small)
    return low.emit("Where", low.emit("Equal", u, one), x, log)


def expm1(low: Lowering, x: str) -> str:
    """exp(x) - 1, for small x by 2 t / (1 - t) with t = tanh(x / 2), which does not cancel."""
    t = low.emit("Tanh", low.emit("Mul", x, low.number(0.5)))
    small = low.emit("Div", low.emit("Add", t, t), low.emit("Sub", low.number(1), t))
    large = low.emit("Sub", low.emit("Exp", x), low.number(1))
    return low.emit("Where", low.emit("Less", low.emit("Abs", x), low.number(1)), small, large)


def logistic(low: Lowering, x: str) -> str:
    """1 / (1 + exp(-x))."""
    return low.emit("Reciprocal", low.emit("Add", low.emit("Exp", low.emit("Neg", x)), low.number(1)))


def _sinh(low: Lowering, x: str) -> str:
    """(e + e / (1 + e)) / 2 with e = exp(x) - 1; for large x by the square of exp(x / 2), which does not overflow too early."""
    e, half = expm1(low, x), low.number(0.5)
    small = low.emit("Mul", half, low.emit("Add", e, low.emit("Div", e, low.emit("Add", e, low.number(1)))))
    root = low.emit("Exp", low.emit("Mul", x, half))
    large = low.emit("Mul", low.emit("Mul", root, half), root)
    return low.emit("Where", low.emit("Greater", x, low.number(30)), large, small)


def cosh(low: Lowering, x: str) -> str:
    """(r^2 + 1 / r^2) / 2 with r = exp(|x| / 2), of which no part overflows too early."""
    half = low.number(0.5)
    root = low.emit("Exp", low.emit("Mul", low.emit("Abs", x), half))
    scaled = low.emit("Mul", root, half)
    return low.emit("Add", low.emit("Mul", scaled, root), low.emit("Div", low.emit("Div", half, root), root))


def tan(low: Lowering, x: str) -> str:
    """sin(x) / cos(x)."""
    return low.emit("Div", low.emit("Sin", x), low.emit("Cos", x))


def _asinh(low: Lowering, x: str) -> str:
    """log1p(x + x^2 / (1 + sqrt(1 + x^2))), of large x log(x) + log(2)."""
    one, square = low.number(1), low.emit("Mul", x, x)
    root = low.emit("Sqrt", low.emit("Add", square, one))
    small = log1p(low, low.emit("Add", x, low.emit("Div", square, low.emit("Add", one, root))))
    large = low.emit("Add", low.emit("Log", x), low.number(math.log(2)))
    return low.emit("Where", low.emit("Greater", x, low.number(2.0**28)), large, small)


def acosh(low: Lowering, x: str) -> str:
    """log1p(t + sqrt(t) sqrt(t + 2)) with t = x - 1, of large x log(x) + log(2)."""
    t = low.emit("Sub", x, low.number(1))
    root = low.emit("Mul", low.emit("Sqrt", t), low.emit("Sqrt", low.emit("Add", t, low.number(2))))
    small = log1p(low, low.emit("Add", t, root))
    large = low.emit("Add", low.emit("Log", x), low.number(math.log(2)))
    return low.emit("Where", low.emit("Greater", x, low.number(2.0**28)), large, small)


def _atanh(low: Lowering, x: str) -> str:
    """log1p(2 x / (1 - x)) / 2."""
    twice = low.emit("Div", low.emit("Add", x, x), low.emit("Sub", low.number(1), x))
    return low.emit("Mul", low.number(0.5), log1p(low, twice))


def _atan(low: Lowering, x: str) -> str:
    """By a rational approximation near 0, to which 1 and infinity are moved."""
    one, far = low.number(1), low.emit("Greater", x, low.number(math.tan(3 * math.pi / 8)))
    middle = low.emit("Greater", x, low.number(0.66))
    inverted = low.emit("Neg", low.emit("Reciprocal", x))
    moved = low.emit("Where", middle, low.emit("Div", low.emit("Sub", x, one), low.emit("Add", x, one)), x)
    near = low.emit("Where", far, inverted, moved)
    square = low.emit("Mul", near, near)
    ratio = low.emit("Div", polynomial(low, ARCTANGENT[0], square), polynomial(low, ARCTANGENT[1], square))
    angle = low.emit("Add", near, low.emit("Mul", low.emit("Mul", near, square), ratio))
    start = low.emit("Where", middle, low.number(math.pi / 4), low.number(0))
    return low.emit("Add", low.emit("Where", far, low.number(math.pi / 2), start), angle)


def _asin(low: Lowering, x: str) -> str:
    """arctan(x / sqrt((1 - x) (1 + x)))."""
    one = low.number(1)
    root = low.emit("Sqrt", low.emit("Mul", low.emit("Sub", one, x), low.emit("Add", one, x)))
    return _atan(low, low.emit("Div", x, root))


def acos(low: Lowering, x: str) -> str:
    """2 arctan(sqrt((1 - x) / (1 + x)))."""
    one = low.number(1)
    t = _atan(low, low.emit("Sqrt", low.emit("Div", low.emit("Sub", one, x), low.emit("Add", one, x))))
    return low.emit("Add", t, t)


sinh, asinh, atanh, asin, atan = odd(_sinh), odd(_asinh), odd(_atanh), odd(_asin), odd(_atan)
"""Odd functions."""
