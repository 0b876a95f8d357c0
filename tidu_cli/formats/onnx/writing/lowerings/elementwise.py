"""Elementwise operations."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tidu_cli.formats.onnx.writing.body import CODES
from tidu_cli.formats.onnx.writing.lowering import Lowering, Rule, operator, through
from tidu_cli.graph.types import FLOATS, INTEGERS, SIGNED

_HALF = {"bf16": "f32"}
"""What functions compute of bf16, which many operators do not take."""


def _negated(low: Lowering, x: str) -> str:
    if low.operand.dtype.startswith("u"):
        return low.emit("Sub", low.number(0), x)
    found = operator("Neg")(low, x)
    return found if isinstance(found, str) else found[0]


def _quotient(low: Lowering, x: str, y: str) -> str:
    """Of integers divided by 0 all bits are set, and the least one divided by -1 is itself: runtimes die of either."""
    dtype = low.operand.dtype
    if dtype in FLOATS:
        return low.emit("Div", x, y)
    zero, one = low.number(0), low.number(1)
    is_zero = low.emit("Equal", y, zero)
    if dtype not in SIGNED:
        found = low.emit("Div", x, low.emit("Where", is_zero, one, y))
        return low.emit("Where", is_zero, low.number(2 ** int(dtype[1:]) - 1), found)
    turned = low.emit("Equal", y, low.number(-1))
    found = low.emit("Div", x, low.emit("Where", low.emit("Or", is_zero, turned), one, y))
    found = low.emit("Where", turned, low.emit("Sub", zero, x), found)
    return low.emit("Where", is_zero, low.number(-1), found)


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
    if low.operand.dtype in FLOATS and y not in (2, -1):
        return low.emit("Pow", x, low.number(y))
    return low.emit("Reciprocal", x) if y < 0 else _power(low, x, y)


def _power(low: Lowering, x: str, y: int) -> str:
    """By squares: Pow computes integers in floats, which round."""
    if y < 2:
        return low.emit("Identity", x) if y else low.emit("Sub", low.number(1), low.emit("Sub", x, x))
    found = None
    while y:
        if y & 1:
            found = x if found is None else low.emit("Mul", found, x)
        y >>= 1
        x = low.emit("Mul", x, x) if y else x
    return str(found)


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
    if source == "f16" and end > 65504:  # the greatest of f16
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


def _remainder(low: Lowering, x: str, y: str) -> str:
    """Of integers divided by 0 what is divided; divided by -1 it is 0, of which runtimes die."""
    if low.operand.dtype in FLOATS:
        return low.emit("Mod", x, y, fmod=1)
    is_zero = low.emit("Equal", y, low.number(0))
    odd = low.emit("Or", is_zero, low.emit("Equal", y, low.number(-1))) if low.operand.dtype in SIGNED else is_zero
    found = low.emit("Mod", x, low.emit("Where", odd, low.number(1), y), fmod=1)
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
    "acos": operator("Acos"),
    "acosh": operator("Acosh"),
    "add": operator("Add"),
    "asin": operator("Asin"),
    "asinh": operator("Asinh"),
    "atan": operator("Atan"),
    "atan2": through(_HALF, _atan2),
    "atanh": operator("Atanh"),
    "cbrt": _cube_root,
    "ceil": operator("Ceil"),
    "clamp": through({"bool": "u8"}, _clamp),
    "conj": operator("Identity"),
    "convert_element_type": _convert,
    "copy": operator("Identity"),
    "cos": operator("Cos"),
    "cosh": operator("Cosh"),
    "div": _quotient,
    "eq": operator("Equal"),
    "erf": operator("Erf"),
    "exp": operator("Exp"),
    "exp2": lambda low, x: low.emit("Pow", low.number(2), x),
    "expm1": _expm1,
    "floor": operator("Floor"),
    "ge": operator("GreaterOrEqual"),
    "gt": operator("Greater"),
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le": operator("LessOrEqual"),
    "log": operator("Log"),
    "log1p": through(_HALF, _log1p),
    "logistic": operator("Sigmoid"),
    "lt": operator("Less"),
    "max": operator("Max"),
    "min": operator("Min"),
    "mul": operator("Mul"),
    "ne": _not_equal,
    "neg": _negated,
    "optimization_barrier": _identities,
    "pow": operator("Pow"),
    "reduce_precision": _reduce_precision,
    "rem": _remainder,
    "round": through(_HALF, _round),
    "rsqrt": lambda low, x: low.emit("Reciprocal", low.emit("Sqrt", x)),
    "select_n": _select,
    "sign": operator("Sign"),
    "sin": operator("Sin"),
    "sinh": operator("Sinh"),
    "sqrt": operator("Sqrt"),
    "square": lambda low, x: low.emit("Mul", x, x),
    "stop_gradient": operator("Identity"),
    "sub": operator("Sub"),
    "tan": operator("Tan"),
    "tanh": operator("Tanh"),
}

BROADCASTING = frozenset(
    {"add", "sub", "mul", "div", "max", "min", "pow", "eq", "lt", "le", "gt", "ge", "and", "or", "xor", "select_n"}
)
"""Primitives that are one operator with NumPy's broadcasting."""
