"""Elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tidu_cli.formats.onnx.writing.body import CODES
from tidu_cli.formats.onnx.writing.lowering import Lowering, Rule
from tidu_cli.graph.types import FLOATS, INTEGERS, SIGNED


def _op(op_type: str, **attrs: object) -> Rule:
    """One operator."""
    return lambda low, *operands: low.emit(op_type, *operands, **attrs)


def _either(of_bools: str, of_integers: str) -> Rule:
    """One operator of bools, another of integers."""
    return lambda low, *operands: low.emit(of_bools if low.operand.dtype == "bool" else of_integers, *operands)


def _ordered(op_type: str) -> Rule:
    """max and min, and comparisons: of bools as of integers."""

    def rule(low: Lowering, *operands: str) -> str:
        if low.operand.dtype != "bool":
            return low.emit(op_type, *operands)
        found = low.emit(op_type, *[low.cast(x, "i32") for x in operands])
        return low.cast(found, low.result.dtype) if low.result.dtype != "bool" or op_type in ("Max", "Min") else found

    return rule


def _not_equal(low: Lowering, x: str, y: str) -> str:
    return low.emit("Not", low.emit("Equal", x, y))


def _is_finite(low: Lowering, x: str) -> str:
    return low.emit("Less", low.emit("Abs", x), low.number(math.inf))


def _round(low: Lowering, x: str) -> str:
    if low.attrs.rounding_method != "AWAY_FROM_ZERO":
        return low.emit("Round", x)
    # Half is added after the whole part is off, as x + 0.5 may round.
    size = low.emit("Abs", x)
    whole = low.emit("Floor", size)
    up = low.emit("GreaterOrEqual", low.emit("Sub", size, whole), low.number(0.5))
    return low.emit("Mul", low.emit("Sign", x), low.emit("Add", whole, low.cast(up, low.operand.dtype)))


def _cube_root(low: Lowering, x: str) -> str:
    """The cube root, which keeps the sign."""
    power = low.emit("Pow", low.emit("Abs", x), low.number(1 / 3))
    return low.emit("Mul", low.emit("Sign", x), power)


def _expm1(low: Lowering, x: str) -> str:
    """exp(x) - 1, for small x by 2 t / (1 - t) with t = tanh(x / 2), which does not cancel."""
    t = low.emit("Tanh", low.emit("Mul", x, low.number(0.5)))
    small = low.emit("Div", low.emit("Add", t, t), low.emit("Sub", low.number(1), t))
    large = low.emit("Sub", low.emit("Exp", x), low.number(1))
    return low.emit("Where", low.emit("Less", low.emit("Abs", x), low.number(1)), small, large)


def _log1p(low: Lowering, x: str) -> str:
    """log(1 + x), for small x by 2 artanh(x / (2 + x)), which does not cancel."""
    small = low.emit("Atanh", low.emit("Div", x, low.emit("Add", x, low.number(2))))
    large = low.emit("Log", low.emit("Add", x, low.number(1)))
    is_small = low.emit("Less", low.emit("Abs", x), low.number(0.5))
    return low.emit("Where", is_small, low.emit("Add", small, small), large)


def _integer_pow(low: Lowering, x: str) -> str:
    y = low.attrs.y
    if y == 2:
        return low.emit("Mul", x, x)
    if y == -1:
        return low.emit("Reciprocal", x) if low.operand.dtype in FLOATS else low.emit("Div", low.number(1), x)
    return low.emit("Pow", x, low.number(y))


def _clamp(low: Lowering, least: str, x: str, most: str) -> str:
    bounds, size = low.operands[::2], low.operands[1]
    if all(not t.shape for t in bounds) and size.dtype not in ("bool", "i16", "u16"):
        return low.emit("Clip", x, least, most)
    return low.emit("Min", low.emit("Max", least, x), most)


def _select(low: Lowering, which: str, *cases: str) -> str:
    if low.operand.dtype == "bool":
        return low.emit("Where", which, cases[1], cases[0]) if len(cases) == 2 else low.emit("Identity", cases[0])
    found = cases[0]
    for k, case in enumerate(cases[1:], 1):
        found = low.emit("Where", low.emit("GreaterOrEqual", which, low.number(k)), case, found)
    return found if len(cases) > 1 else low.emit("Identity", found)


def _convert(low: Lowering, x: str) -> str:
    """To integers floats are clamped, NaN being 0: Cast leaves that open."""
    source, target = low.operand.dtype, low.result.dtype
    if source not in FLOATS or target not in INTEGERS:
        return low.emit("Cast", x, to=CODES[target])
    bits = int(target[1:])
    least = -(2 ** (bits - 1)) if target in SIGNED else 0
    end = 2 ** (bits - 1) if target in SIGNED else 2**bits
    if source == "f16" and bits > 16:
        x, source = low.cast(x, "f32"), "f32"
    known = low.emit("Where", low.emit("IsNaN", x), low.number(0, source), x)
    most = low.body.constant(end - 1, target)
    wide = low.emit("Where", low.emit("Less", known, low.number(float(least), source)), low.number(float(least), source), known)
    inside = low.emit("Less", wide, low.number(float(end), source))
    within = low.emit("Where", inside, wide, low.number(0, source))
    return low.emit("Where", inside, low.emit("Cast", within, to=CODES[target]), most)


def _atan2(low: Lowering, y: str, x: str) -> str:
    """By the quotient, turned by pi where x is negative, with the sign of y; signed zeros count as zeros."""
    zero, pi = low.number(0), low.number(math.pi)
    ratio = low.emit("Atan", low.emit("Div", y, x))
    half_turn = low.emit("Where", low.emit("Less", y, zero), low.emit("Neg", pi), pi)
    turned = low.emit("Where", low.emit("Less", x, zero), low.emit("Add", ratio, half_turn), ratio)
    upright = low.emit("Mul", low.emit("Sign", y), low.number(math.pi / 2))
    return low.emit("Where", low.emit("Equal", x, zero), low.emit("Where", low.emit("Equal", y, zero), zero, upright), turned)


def _shift(direction: str) -> Rule:
    """Shifts of unsigned integers, which ONNX has; those by as many bits as there are give 0."""

    def rule(low: Lowering, x: str, y: str) -> str:
        bits = int(low.operand.dtype[1:])
        unsigned = f"u{bits}"
        a, b = (low.cast(v, unsigned) if low.operand.dtype != unsigned else v for v in (x, y))
        most = low.number(bits - 1, unsigned)
        shifted = low.emit("BitShift", a, low.emit("Min", b, most), direction=direction)
        found = low.emit("Where", low.emit("Greater", b, most), low.number(0, unsigned), shifted)
        return low.cast(found, low.operand.dtype) if low.operand.dtype != unsigned else found

    return rule


def _remainder(low: Lowering, x: str, y: str) -> str:
    if low.operand.dtype in FLOATS:
        return low.emit("Mod", x, y, fmod=1)
    is_zero = low.emit("Equal", y, low.number(0))
    found = low.emit("Mod", x, low.emit("Where", is_zero, low.number(1), y), fmod=1)
    return low.emit("Where", is_zero, x, found)


def _identities(low: Lowering, *operands: str) -> list[str]:
    return [low.emit("Identity", x) for x in operands]


def _reduce_precision(low: Lowering, x: str) -> str:
    formats = {(5, 10): "f16", (8, 7): "bf16", (8, 23): "f32", (11, 52): "f64"}
    target = formats.get((low.attrs.exponent_bits, low.attrs.mantissa_bits))
    if target is None:
        raise low.refuse("rounds to a float format that ONNX has not got")
    return low.cast(low.cast(x, target), low.operand.dtype)


def _abs(low: Lowering, x: str) -> str:
    return low.emit("Identity", x) if low.operand.dtype.startswith("u") else low.emit("Abs", x)


def _erfc(low: Lowering, x: str) -> str:
    if low.operand.dtype == "f64":
        raise low.refuse("of f64 has no operator that computes its tail; convert to f32")
    return low.emit("Sub", low.number(1), low.emit("Erf", x))


LOWERINGS: Mapping[str, Rule] = {
    "abs": _abs,
    "acos": _op("Acos"),
    "acosh": _op("Acosh"),
    "add": _op("Add"),
    "and": _either("And", "BitwiseAnd"),
    "asin": _op("Asin"),
    "asinh": _op("Asinh"),
    "atan": _op("Atan"),
    "atan2": _atan2,
    "atanh": _op("Atanh"),
    "cbrt": _cube_root,
    "ceil": _op("Ceil"),
    "clamp": _clamp,
    "conj": _op("Identity"),
    "convert_element_type": _convert,
    "copy": _op("Identity"),
    "cos": _op("Cos"),
    "cosh": _op("Cosh"),
    "div": _op("Div"),
    "eq": _op("Equal"),
    "erf": _op("Erf"),
    "exp": _op("Exp"),
    "exp2": lambda low, x: low.emit("Pow", low.number(2), x),
    "expm1": _expm1,
    "floor": _op("Floor"),
    "ge": _ordered("GreaterOrEqual"),
    "gt": _ordered("Greater"),
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le": _ordered("LessOrEqual"),
    "log": _op("Log"),
    "log1p": _log1p,
    "logistic": _op("Sigmoid"),
    "lt": _ordered("Less"),
    "max": _ordered("Max"),
    "min": _ordered("Min"),
    "mul": _op("Mul"),
    "ne": _not_equal,
    "neg": _op("Neg"),
    "not": _either("Not", "BitwiseNot"),
    "optimization_barrier": _identities,
    "or": _either("Or", "BitwiseOr"),
    "pow": _op("Pow"),
    "reduce_precision": _reduce_precision,
    "rem": _remainder,
    "round": _round,
    "rsqrt": lambda low, x: low.emit("Reciprocal", low.emit("Sqrt", x)),
    "select_n": _select,
    "shift_left": _shift("LEFT"),
    "shift_right_logical": _shift("RIGHT"),
    "sign": _op("Sign"),
    "sin": _op("Sin"),
    "sinh": _op("Sinh"),
    "sqrt": _op("Sqrt"),
    "square": lambda low, x: low.emit("Mul", x, x),
    "stop_gradient": _op("Identity"),
    "sub": _op("Sub"),
    "tan": _op("Tan"),
    "tanh": _op("Tanh"),
    "xor": _either("Xor", "BitwiseXor"),
}

BROADCASTING = frozenset(
    {"add", "sub", "mul", "div", "max", "min", "pow", "eq", "lt", "le", "gt", "ge", "and", "or", "xor", "select_n"}
)
"""Primitives that are one operator with NumPy's broadcasting."""
