"""Elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from tidu_cli.adapters.onnx.writing import bits as doubles
from tidu_cli.adapters.onnx.writing.bits import UNSIGNED, of_doubles
from tidu_cli.adapters.onnx.writing.lowering import CODES, Body, Lowering, Rule, greatest, least, widened
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import FLOATS, INTEGERS, SIGNED, TensorType


def _op(op_type: str, **attrs: object) -> Rule:
    """One operator."""
    return lambda low, *operands: low.emit(op_type, *operands, **attrs)


def _either(of_bools: str, of_integers: str) -> Rule:
    """One operator of bools, another of integers."""
    return lambda low, *operands: low.emit(of_bools if low.operand.dtype == "bool" else of_integers, *operands)


def _compared(op_type: str, low: Lowering, *operands: str) -> str:
    """A comparison: of bools as of integers."""
    return low.emit(op_type, *([low.cast(x, "i32") for x in operands] if low.operand.dtype == "bool" else operands))


def _round(low: Lowering, x: str) -> str:
    if low.attrs.rounding_method != "AWAY_FROM_ZERO":
        return low.emit("Round", x)
    # Half is added after the whole part is off, as x + 0.5 may round.
    size = low.emit("Abs", x)
    whole = low.emit("Floor", size)
    up = low.emit("GreaterOrEqual", low.emit("Sub", size, whole), low.number(0.5))
    return low.emit("Mul", low.emit("Sign", x), low.emit("Add", whole, low.cast(up, low.operand.dtype)))


def _integer_pow(low: Lowering, x: str) -> str:
    """A power of an integer by squares, which wraps as products do."""
    y, base = low.attrs.y, x
    if y == 2:
        return low.emit("Mul", x, x)
    if low.operand.dtype in FLOATS:
        return low.emit("Reciprocal", x) if y == -1 else low.emit("Pow", x, low.number(y))
    power: str | None = None
    for digit in reversed(f"{y:b}"):
        if digit == "1":
            power = base if power is None else low.emit("Mul", power, base)
        base = low.emit("Mul", base, base)
    return low.emit("Expand", low.number(1), low.ints(low.result.shape)) if power is None else low.emit("Identity", power)


def _clamp(low: Lowering, start: str, x: str, end: str) -> str:
    if all(not t.shape for t in low.operands[::2]):
        return low.emit("Clip", x, start, end)
    return low.emit("Min", low.emit("Max", start, x), end)


def _select(low: Lowering, which: str, *cases: str) -> str:
    chosen, *others = cases
    if not others:
        return low.emit("Identity", chosen)
    for k, case in enumerate(others, 1):
        is_there = which if low.operand.dtype == "bool" else low.emit("GreaterOrEqual", which, low.number(k))
        chosen = low.where(is_there, case, chosen, low.result.dtype)
    return chosen


def chosen_by_products(low: Lowering, which: str, *cases: str, zero: int | None = None) -> str:
    """Where of two arrays of f32, of which one may be known to be 0, by products with 0 and 1 if all is finite.

    onnxruntime's Where branches at each element, and takes ten times a product where processors cannot foresee it. 0 times what
    is not finite is NaN, so then it is Where; so it is for sums that overflow.
    """
    sizes = [low.emit("ReduceL1", v, keepdims=0) for k, v in enumerate(cases) if k != zero]
    one, infinity = low.number(1, "f32"), low.number(math.inf, "f32")
    size = low.emit("Add", *sizes) if len(sizes) > 1 else sizes[0]

    def products(inner: Body) -> list[tuple[str, TensorType]]:
        taken = inner.emit("Cast", which if zero != 1 else inner.emit("Not", which), to=CODES["f32"])
        if zero is not None:
            return [(inner.emit("Mul", taken, cases[1 - zero]), low.result)]
        others = inner.emit("Mul", inner.emit("Sub", one, taken), cases[0])
        return [(inner.emit("Add", inner.emit("Mul", taken, cases[1]), others), low.result)]

    def where(inner: Body) -> list[tuple[str, TensorType]]:
        return [(inner.emit("Where", which, cases[1], cases[0]), low.result)]

    graphs = [low.body.subgraph([], write) for write in (products, where)]
    return low.emit("If", low.emit("Less", size, infinity), then_branch=graphs[0], else_branch=graphs[1])


def _convert(low: Lowering, x: str) -> str:
    """To integers floats are clamped, NaN being 0: Cast leaves that open."""
    source, target = low.operand.dtype, low.result.dtype
    if source not in FLOATS or target not in INTEGERS:
        return low.emit("Cast", x, to=CODES[target])
    low_, end = least(target), greatest(target) + 1
    if source == "f16" and end > 65504:  # the greatest of f16
        x, source = low.cast(x, "f32"), "f32"
    known = low.emit("Where", low.emit("IsNaN", x), low.number(0, source), x)
    most = low.body.constant(end - 1, target)
    wide = low.emit("Where", low.emit("Less", known, low.number(float(low_), source)), low.number(float(low_), source), known)
    inside = low.emit("Less", wide, low.number(float(end), source))
    within = low.emit("Where", inside, wide, low.number(0, source))
    return low.where(inside, low.emit("Cast", within, to=CODES[target]), most, target)


def converted_within(low: Lowering, x: str) -> str:
    """Likewise, of floats that are within the range of the integers, or NaN."""
    known = low.emit("Where", low.emit("IsNaN", x), low.number(0), x)
    return low.emit("Cast", known, to=CODES[low.result.dtype])


def _is_negative(low: Lowering, x: str) -> str:
    """Whether the sign is negative, of zeros, too."""
    zero = low.number(0)
    return low.emit("Less", low.emit("Where", low.emit("Equal", x, zero), low.emit("Reciprocal", x), x), zero)


def _atan2(low: Lowering, y: str, x: str) -> str:
    """By the quotient of the sizes, turned where x is negative, with the sign of y. Zeros and infinities have one, too."""
    zero, one, infinity = low.number(0), low.number(1), low.number(math.inf)
    a, b = low.emit("Abs", y), low.emit("Abs", x)
    both = low.emit("And", low.emit("Equal", a, infinity), low.emit("Equal", b, infinity))
    ratio = low.emit("Div", low.emit("Where", both, one, a), low.emit("Where", both, one, b))
    none = low.emit("And", low.emit("Equal", a, zero), low.emit("Equal", b, zero))
    ratio = low.emit("Where", none, zero, ratio)
    angle = doubles.atan(low, ratio) if low.operand.dtype == "f64" else low.emit("Atan", ratio)
    turned = low.emit("Where", _is_negative(low, x), low.emit("Sub", low.number(math.pi), angle), angle)
    return low.emit("Where", _is_negative(low, y), low.emit("Neg", turned), turned)


_ERFC = (
    -0.0295064322459,
    0.141926704748,
    -0.238736197713,
    0.141435464567,
    -0.0497441415802,
    0.085228159258,
    0.118634123861,
    0.171802345291,
    0.207608053605,
    0.225676080798,
    0.225675832707,
)
"""erfc(x) e^(x^2) / t in t = 1 / (1 + 0.4 x), from the highest power, to a tenth of an f32's last place (a fit by Chebyshev's)."""


def _erfc(low: Lowering, x: str) -> str:
    """The complement of erf, of f32 in f64: what is left of 1 - Erf would have no digits."""
    wide = low.cast(x, "f64")
    size = low.emit("Abs", wide)
    t = low.emit("Reciprocal", low.emit("Add", low.emit("Mul", size, low.number(0.4, "f64")), low.number(1, "f64")))
    fallen = low.emit("Exp", low.emit("Neg", low.emit("Mul", size, size)))
    above = low.emit("Mul", fallen, low.emit("Mul", t, doubles.polynomial(low, _ERFC, t, "f64")))
    below = low.emit("Sub", low.number(2, "f64"), above)
    return low.cast(low.emit("Where", low.emit("Less", wide, low.number(0, "f64")), below, above), "f32")


def _cube_root(low: Lowering, x: str) -> str:
    """The cube root, which keeps the sign: a power, and a step of Newton's for the digits that the exponent 1/3 has lost."""
    size = low.emit("Abs", x)
    power = low.emit("Pow", size, low.number(1 / 3))
    excess = low.emit("Sub", power, low.emit("Div", size, low.emit("Mul", power, power)))
    step = low.emit("Div", low.emit("Where", low.emit("IsNaN", excess), low.number(0), excess), low.number(3))
    return low.emit("Mul", low.emit("Sign", x), low.emit("Sub", power, step))


def _quotient(low: Lowering, x: str, y: str) -> str:
    """Of integers by 0 all bits are set; runtimes stop there, and where the least number is divided by -1."""
    dtype = low.operand.dtype
    if dtype in FLOATS:
        return low.emit("Div", x, y)
    zero, one = low.number(0), low.number(1)
    is_zero = low.emit("Equal", y, zero)
    all_bits = low.number(-1 if dtype in SIGNED else greatest(dtype))
    if dtype not in SIGNED:
        return low.where(is_zero, all_bits, low.emit("Div", x, low.where(is_zero, one, y, dtype)), dtype)
    is_minus_one = low.emit("Equal", y, low.number(-1))
    divisor = low.where(low.emit("Or", is_zero, is_minus_one), one, y, dtype)
    quotient = low.where(is_minus_one, low.emit("Sub", zero, x), low.emit("Div", x, divisor), dtype)
    return low.where(is_zero, all_bits, quotient, dtype)


def _strong(op_type: str, zero: int, low: Lowering, *operands: str) -> str:
    """0 where the result is NaN and the operand of this number is 0."""
    result, none = low.emit(op_type, *operands), low.number(0)
    is_weak = low.emit("And", low.emit("Equal", operands[zero], none), low.emit("IsNaN", result))
    return low.emit("Where", is_weak, none, result)


def _shift(direction: str, low: Lowering, x: str, y: str) -> str:
    """Shifts of unsigned integers, which ONNX has; those by as many bits as there are give 0."""
    dtype = low.operand.dtype
    most = low.number(int(dtype[1:]) - 1)
    is_far = low.emit("Greater", y, most)
    shifted = low.emit("BitShift", x, low.where(is_far, most, y, dtype), direction=direction)
    return low.where(is_far, low.number(0), shifted, dtype)


def _remainder(low: Lowering, x: str, y: str) -> str:
    """Of integers by 0 what is divided; by -1 it is 0, where runtimes stop for the least number."""
    if low.operand.dtype in FLOATS:
        return low.emit("Mod", x, y, fmod=1)
    dtype = low.operand.dtype
    is_zero = low.emit("Equal", y, low.number(0))
    odd = low.emit("Or", is_zero, low.emit("Equal", y, low.number(-1))) if dtype in SIGNED else is_zero
    remainder = low.emit("Mod", x, low.where(odd, low.number(1), y, dtype), fmod=1)
    return low.where(is_zero, x, remainder, dtype)


def _reduce_precision(low: Lowering, x: str) -> str:
    formats = {(5, 10): "f16", (8, 7): "bf16", (8, 23): "f32", (11, 52): "f64"}
    target = formats.get((low.attrs.exponent_bits, low.attrs.mantissa_bits))
    if target is None:
        raise low.refuse("rounds to a float format that ONNX has not got")
    return low.cast(low.cast(x, target), low.operand.dtype)


_ALIKE = ("ceil", "exp", "floor", "log", "mul", "pow", "sign", "sqrt", "sub", "tanh")
"""Operations that are an operator of the same name."""

_OF_DOUBLES = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan")
"""Likewise, but for doubles, of which runtimes have no kernels."""

LOWERINGS: Mapping[str, Rule] = {
    **{op: _op(op.capitalize()) for op in _ALIKE},
    **{op: of_doubles(getattr(doubles, op), widened(_op(op.capitalize()), bf16="f32")) for op in _OF_DOUBLES},
    **dict.fromkeys(("conj", "copy", "stop_gradient"), _op("Identity")),
    "abs": lambda low, x: low.emit("Identity", x) if low.operand.dtype.startswith("u") else low.emit("Abs", x),
    **dict.fromkeys(("add", "add_cotangents"), _op("Add")),
    "and": _either("And", "BitwiseAnd"),
    "atan2": widened(_atan2, f16="f32", bf16="f32"),
    "cbrt": widened(_cube_root, f16="f32", bf16="f32"),
    "clamp": widened(_clamp, bool="i32", i16="i32", u16="i32"),
    "convert_element_type": _convert,
    "cos": widened(_op("Cos"), bf16="f32"),
    "div": _quotient,
    "eq": _op("Equal"),
    "erf": of_doubles(Lowering.by_definition, widened(_op("Erf"), bf16="f32")),
    "erfc": of_doubles(Lowering.by_definition, widened(_erfc, f16="f32", bf16="f32")),
    "exp2": widened(lambda low, x: low.emit("Pow", low.number(2), x), f16="f32", bf16="f32"),
    "expm1": widened(doubles.expm1, f16="f32", bf16="f32"),
    "ge": partial(_compared, "GreaterOrEqual"),
    "gt": partial(_compared, "Greater"),
    "integer_pow": _integer_pow,
    "is_finite": lambda low, x: low.emit("Less", low.emit("Abs", x), low.number(math.inf)),
    "le": partial(_compared, "LessOrEqual"),
    "log1p": widened(doubles.log1p, f16="f32", bf16="f32"),
    "logistic": of_doubles(doubles.logistic, _op("Sigmoid")),
    "lt": partial(_compared, "Less"),
    "max": widened(_op("Max"), bool="i32", i16="i32", u16="i32"),
    "min": widened(_op("Min"), bool="i32", i16="i32", u16="i32"),
    "ne": lambda low, x, y: low.emit("Not", low.emit("Equal", x, y)),
    "neg": lambda low, x: low.emit("Sub", low.number(0), x) if low.operand.dtype.startswith("u") else low.emit("Neg", x),
    "not": _either("Not", "BitwiseNot"),
    "optimization_barrier": lambda low, *operands: [low.emit("Identity", x) for x in operands],
    "or": _either("Or", "BitwiseOr"),
    "reduce_precision": _reduce_precision,
    "rem": _remainder,
    "round": widened(_round, bf16="f32"),
    "rsqrt": lambda low, x: low.emit("Reciprocal", low.emit("Sqrt", x)),
    "select_n": _select,
    "shift_left": widened(partial(_shift, "LEFT"), **UNSIGNED),
    "shift_right_logical": widened(partial(_shift, "RIGHT"), **UNSIGNED),
    "sin": widened(_op("Sin"), bf16="f32"),
    "square": lambda low, x: low.emit("Mul", x, x),
    "strong_div": widened(partial(_strong, "Div", 0), f16="f32", bf16="f32"),
    "strong_mul": widened(partial(_strong, "Mul", 1), f16="f32", bf16="f32"),
    "xor": _either("Xor", "BitwiseXor"),
}

BROADCASTING = frozenset(
    {"add", "sub", "mul", "div", "max", "min", "pow", "eq", "lt", "le", "gt", "ge", "and", "or", "xor", "select_n"}
)
"""Primitives that are one operator with NumPy's broadcasting."""


def is_one_operator(case: Case) -> bool:
    """Whether a broadcasting primitive is one operator for operands of these types."""
    types = [str(getattr(t, "dtype", "")) for t in case.operands]
    if case.op == "select_n":
        return types[0] == "bool" and len(types) == 3
    return types[0] != "bool" or case.op in ("and", "or", "xor", "eq")
