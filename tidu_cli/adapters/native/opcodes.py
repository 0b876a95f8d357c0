"""The table of opcodes, what the machine computes of scalars by operation and dtypes; and those of floats.

Opcodes of floats are arithmetic, comparison, rounding, conversion, and functions of the C library. What they give is what NumPy's
functions of the same names give, but for roundings of functions that are not rounded correctly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from llvmlite import ir

from tidu_cli.lax.names import names_in

Value = Any
"""A value of LLVM's; of a complex number the pair of its parts."""


class Signature(NamedTuple):
    """What an opcode computes: an operation, with what of its attrs makes another opcode of it, and its dtypes."""

    op: str
    operands: tuple[str, ...]
    result: str


Emit = Callable[..., Value]
"""From an `Emitter` and the values of the operands to that of the result."""

WORD = ir.IntType(64)
_SHORT = ir.IntType(32)
PARTS = {"c128": "f64", "c64": "f32"}
TYPES: dict[str, Any] = {
    "f64": ir.DoubleType(), "f32": ir.FloatType(), "bool": ir.IntType(1),
    **{f"{sign}{n}": ir.IntType(n) for sign in "iu" for n in (8, 16, 32, 64)},
}  # fmt: skip
"""The types of LLVM's in which numbers are computed with."""

FLOATS = ("f64", "f32")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
COMPLEXES = ("c128", "c64")


class Emitter:
    """Emits the instructions of an opcode: LLVM's builder, and functions of the C library. Values may be vectors of numbers."""

    def __init__(self, builder: Any, functions: dict[str, Any]) -> None:
        self.b = builder
        self._functions = functions

    def constant(self, like: Value, number: float | int) -> Value:
        """A number of the type of a value."""
        return ir.Constant(like.type, [number] * like.type.count if isinstance(like.type, ir.VectorType) else number)

    def intrinsic(self, name: str, *values: Value, result: Any = None) -> Value:
        """A call of LLVM's intrinsic, by name without the types that follow it; of that element type, where it is another."""
        types = [v.type for v in values]
        given = types[0] if result is None else over(types[0], result)
        suffix = ".".join(map(_suffix, [given] if result is None else [given, types[0]]))
        return self.b.call(self._function(f"{name}.{suffix}", given, types), values)

    def libm(self, name: str, *values: Value) -> Value:
        """A call of a function of the C library of doubles; of floats it is rounded from there."""
        double = TYPES["f64"]
        wide = [v if v.type == double else self.b.fpext(v, double) for v in values]
        result = self.b.call(self._function(name, double, [double] * len(wide)), wide)
        return result if values[0].type == double else self.b.fptrunc(result, values[0].type)

    def special(self, name: str, *values: Value) -> Value:
        """A call of one of SciPy's functions of doubles, whose address the variable `special_NAME` of the module holds."""
        double, module = TYPES["f64"], self.b.module
        if name not in self._functions:
            self._functions[name] = ir.GlobalVariable(module, WORD, f"special_{name}")
            self._functions[name].initializer = ir.Constant(WORD, 0)
        type_ = ir.FunctionType(double, [double] * len(values) + [_SHORT])
        function = self.b.inttoptr(self.b.load(self._functions[name]), type_.as_pointer())
        return self.b.call(function, [*values, ir.Constant(_SHORT, 0)])  # the last one is Cython's

    def _function(self, name: str, result: Any, types: list[Any]) -> Any:
        if name not in self._functions:
            module = self.b.module
            self._functions[name] = ir.Function(module, ir.FunctionType(result, types), name)
        return self._functions[name]


def over(like: Any, element: Any) -> Any:
    """The type of as many of these elements as another type has."""
    return ir.VectorType(element, like.count) if isinstance(like, ir.VectorType) else element


def _suffix(type_: Any) -> str:
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_suffix(type_.element)}"
    if isinstance(type_, ir.IntType):
        return f"i{type_.width}"
    return "f64" if isinstance(type_, ir.DoubleType) else "f32"


def same(op: str, dtypes: Iterable[str], arity: int, emit: Emit, result: str = "") -> dict[Signature, Emit]:
    """The entries of an operation whose operands are of one dtype each time, and whose result is of that, or of `result`."""
    return {Signature(op, (dtype,) * arity, result or dtype): emit for dtype in dtypes}


def joined(tables: Iterable[dict[Signature, Emit]]) -> dict[Signature, Emit]:
    """The entries of all of these."""
    return {key: emit for table in tables for key, emit in table.items()}


def _extremum(relation: str, e: Emitter, x: Value, y: Value) -> Value:
    # NaN wins; of equal numbers, as zeros of two signs are, the second is taken.
    taken = e.b.or_(e.b.fcmp_ordered(relation, x, y), e.b.fcmp_unordered("uno", x, x))
    return e.b.select(taken, x, y)


def _sign(e: Emitter, x: Value) -> Value:
    zero = e.constant(x, 0.0)
    other = e.b.fcmp_unordered("ueq", x, zero)  # zeros, which keep their sign, and NaN
    return e.b.select(other, x, e.intrinsic("llvm.copysign", e.constant(x, 1.0), x))


def _logistic(e: Emitter, x: Value) -> Value:
    one = e.constant(x, 1.0)
    small = e.libm("exp", e.b.fneg(e.intrinsic("llvm.fabs", x)))
    above = e.b.select(e.b.fcmp_ordered(">=", x, e.constant(x, 0.0)), one, small)
    return e.b.fdiv(above, e.b.fadd(one, small))


def _fourth_power(e: Emitter, x: Value) -> Value:
    square = e.b.fmul(x, x)
    return e.b.fmul(square, square)


def _power(e: Emitter, x: Value, y: Value) -> Value:
    """In double precision: a rounded exponent would lose its parity, and with it the sign."""
    double = over(x.type, TYPES["f64"])
    power = e.libm("pow", x if x.type == double else e.b.fpext(x, double), y)
    return power if x.type == double else e.b.fptrunc(power, x.type)


def _power_of_integer(signed: bool, e: Emitter, x: Value, y: Value) -> Value:
    double = over(x.type, TYPES["f64"])
    return _power(e, x, e.b.sitofp(y, double) if signed else e.b.uitofp(y, double))


def _round_half_up(e: Emitter, x: Value) -> Value:
    whole = e.intrinsic("llvm.trunc", x)
    far = e.b.fcmp_ordered(">=", e.intrinsic("llvm.fabs", e.b.fsub(x, whole)), e.constant(x, 0.5))
    return e.b.select(far, e.b.fadd(whole, _sign(e, x)), whole)


def _is_finite(e: Emitter, x: Value) -> Value:
    return e.b.fcmp_ordered("<", e.intrinsic("llvm.fabs", x), e.constant(x, math.inf))


def _strong(zero: int, emit: Emit, e: Emitter, *operands: Value) -> Value:
    """0 where the result is NaN and the operand of this number is 0."""
    result, none = emit(e, *operands), e.constant(operands[0], 0.0)
    is_weak = e.b.and_(e.b.fcmp_ordered("==", operands[zero], none), e.b.fcmp_unordered("uno", result, result))
    return e.b.select(is_weak, none, result)


_LIBM = tuple(op for op in names_in("math") if op in names_in("numpy") and op not in ("sqrt", "atan2", "rem"))
"""Functions of one number that the C library has, and NumPy takes from there."""

CALLING = frozenset({*_LIBM, "logistic", "integer_pow", "pow", "atan2", "rem", "nextafter"})
"""The operations that call functions of the C library, of one number at a time."""

_COMPARED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _function(name: str) -> Emit:
    return lambda e, *x: e.libm(name, *x)


def _compared(symbol: str) -> Emit:
    return lambda e, x, y: e.b.fcmp_ordered(symbol, x, y)


_FLOATS: dict[Signature, Emit] = {
    **same("add", FLOATS, 2, lambda e, x, y: e.b.fadd(x, y)),
    **same("sub", FLOATS, 2, lambda e, x, y: e.b.fsub(x, y)),
    **same("mul", FLOATS, 2, lambda e, x, y: e.b.fmul(x, y)),
    **same("div", FLOATS, 2, lambda e, x, y: e.b.fdiv(x, y)),
    **same("strong_mul", FLOATS, 2, partial(_strong, 1, lambda e, x, y: e.b.fmul(x, y))),
    **same("strong_div", FLOATS, 2, partial(_strong, 0, lambda e, x, y: e.b.fdiv(x, y))),
    **same("neg", FLOATS, 1, lambda e, x: e.b.fneg(x)),
    **same("abs", FLOATS, 1, lambda e, x: e.intrinsic("llvm.fabs", x)),
    **same("sign", FLOATS, 1, _sign),
    **same("max", FLOATS, 2, partial(_extremum, ">")),
    **same("min", FLOATS, 2, partial(_extremum, "<")),
    **same("clamp", FLOATS, 3, lambda e, low, x, high: _extremum("<", e, _extremum(">", e, x, low), high)),
    **same("square", FLOATS, 1, lambda e, x: e.b.fmul(x, x)),
    **same("integer_pow 2", FLOATS, 1, lambda e, x: e.b.fmul(x, x)),
    **same("integer_pow 1", FLOATS, 1, lambda e, x: x),
    **same("integer_pow -1", FLOATS, 1, lambda e, x: e.b.fdiv(e.constant(x, 1.0), x)),
    **same("integer_pow 3", FLOATS, 1, lambda e, x: e.b.fmul(e.b.fmul(x, x), x)),
    **same("integer_pow 4", FLOATS, 1, _fourth_power),
    **{Signature("integer_pow", (t, "f64"), t): _power for t in FLOATS},
    **{Signature("pow", (t, i), t): partial(_power_of_integer, i in SIGNED) for t in FLOATS for i in INTEGERS},
    **same("pow", FLOATS, 2, _function("pow")),
    **same("sqrt", FLOATS, 1, lambda e, x: e.intrinsic("llvm.sqrt", x)),
    **same("rsqrt", FLOATS, 1, lambda e, x: e.b.fdiv(e.constant(x, 1.0), e.intrinsic("llvm.sqrt", x))),
    **same("logistic", FLOATS, 1, _logistic),
    **same("atan2", FLOATS, 2, _function("atan2")),
    **same("rem", FLOATS, 2, _function("fmod")),
    **same("nextafter", ("f64",), 2, _function("nextafter")),
    **same("floor", FLOATS, 1, lambda e, x: e.intrinsic("llvm.floor", x)),
    **same("ceil", FLOATS, 1, lambda e, x: e.intrinsic("llvm.ceil", x)),
    **same("round TO_NEAREST_EVEN", FLOATS, 1, lambda e, x: e.intrinsic("llvm.rint", x)),
    **same("round AWAY_FROM_ZERO", FLOATS, 1, _round_half_up),
    **same("is_finite", FLOATS, 1, _is_finite, "bool"),
    **same("ne", FLOATS, 2, lambda e, x, y: e.b.fcmp_unordered("!=", x, y), "bool"),
    **joined(same(op, FLOATS, 2, _compared(symbol), "bool") for op, symbol in _COMPARED.items()),
    **joined(same(name, FLOATS, 1, _function(name)) for name in _LIBM),
    **{Signature("select_n", ("bool", t, t), t): lambda e, which, x, y: e.b.select(which, y, x) for t in FLOATS},
}


# Opcodes of complex numbers: those whose results NumPy's roundings leave no choice about.


def _product(e: Emitter, x: Value, y: Value) -> Value:
    real = e.b.fsub(e.b.fmul(x[0], y[0]), e.b.fmul(x[1], y[1]))
    return real, e.b.fadd(e.b.fmul(x[0], y[1]), e.b.fmul(x[1], y[0]))


def _equal(e: Emitter, x: Value, y: Value) -> Value:
    return e.b.and_(e.b.fcmp_ordered("==", x[0], y[0]), e.b.fcmp_ordered("==", x[1], y[1]))


def _unequal(e: Emitter, x: Value, y: Value) -> Value:
    return e.b.or_(e.b.fcmp_unordered("!=", x[0], y[0]), e.b.fcmp_unordered("!=", x[1], y[1]))


def _select_complex(e: Emitter, which: Value, if_false: Value, if_true: Value) -> Value:
    return tuple(e.b.select(which, t, f) for f, t in zip(if_false, if_true, strict=True))


_COMPLEXES: dict[Signature, Emit] = {
    **same("add", COMPLEXES, 2, lambda e, x, y: (e.b.fadd(x[0], y[0]), e.b.fadd(x[1], y[1]))),
    **same("sub", COMPLEXES, 2, lambda e, x, y: (e.b.fsub(x[0], y[0]), e.b.fsub(x[1], y[1]))),
    **same("mul", COMPLEXES, 2, _product),
    **same("neg", COMPLEXES, 1, lambda e, x: (e.b.fneg(x[0]), e.b.fneg(x[1]))),
    **same("conj", COMPLEXES, 1, lambda e, x: (x[0], e.b.fneg(x[1]))),
    **same("eq", COMPLEXES, 2, _equal, "bool"),
    **same("ne", COMPLEXES, 2, _unequal, "bool"),
    **{Signature("real", (c,), part): lambda e, x: x[0] for c, part in PARTS.items()},
    **{Signature("imag", (c,), part): lambda e, x: x[1] for c, part in PARTS.items()},
    **{Signature("complex", (part, part), c): lambda e, x, y: (x, y) for c, part in PARTS.items()},
    **{Signature("select_n", ("bool", c, c), c): _select_complex for c in COMPLEXES},
}


# Opcodes that make a number of one dtype of one of another: to integers towards zero and clamped, NaN to 0.


_REALS = (*FLOATS, *INTEGERS, "bool")


def _conversion(old: str, new: str, e: Emitter, x: Value) -> Value:
    element = TYPES[new]
    type_ = over(x.type, element)
    if new == "bool":
        return e.b.fcmp_unordered("!=", x, e.constant(x, 0.0)) if old in FLOATS else e.b.icmp_signed("!=", x, e.constant(x, 0))
    if old in FLOATS and new in FLOATS:
        return x if old == new else e.b.fpext(x, type_) if new == "f64" else e.b.fptrunc(x, type_)
    if old in FLOATS:
        return e.intrinsic("llvm.fptosi.sat" if new in SIGNED else "llvm.fptoui.sat", x, result=element)
    if new in FLOATS:
        return e.b.sitofp(x, type_) if old in SIGNED else e.b.uitofp(x, type_)
    if element.width <= TYPES[old].width:
        return e.b.trunc(x, type_) if element.width < TYPES[old].width else x
    return e.b.sext(x, type_) if old in SIGNED else e.b.zext(x, type_)


def _to_complex(old: str, new: str) -> Emit:
    part = partial(_conversion, PARTS.get(old, old), PARTS[new])

    def emit(e: Emitter, x: Value) -> Value:
        if old in PARTS:
            return part(e, x[0]), part(e, x[1])
        real = part(e, x)
        return real, e.constant(real, 0.0)

    return emit


_CONVERSIONS: dict[Signature, Emit] = {
    **{Signature("convert_element_type", (old,), new): partial(_conversion, old, new) for old in _REALS for new in _REALS},
    **{Signature("convert_element_type", (old,), new): _to_complex(old, new) for old in (*_REALS, *PARTS) for new in PARTS},
}

TABLE: dict[Signature, Emit] = {**_FLOATS, **_COMPLEXES, **_CONVERSIONS}
