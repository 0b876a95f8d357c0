"""Opcodes of integers, which wrap, of bools, and of special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from tidu_cli.adapters.native import opcodes
from tidu_cli.adapters.native.opcodes import FLOATS, INTEGERS, SIGNED, TYPES, UNSIGNED, Emit, Emitter, Signature, Value, same
from tidu_cli.lax.names import names_in

_LOGICAL = (*INTEGERS, "bool")
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compared(symbol: str, *, signed: bool) -> Emit:
    if signed:
        return lambda e, x, y: e.b.icmp_signed(symbol, x, y)
    return lambda e, x, y: e.b.icmp_unsigned(symbol, x, y)


def _extremum(symbol: str, *, signed: bool) -> Emit:
    holds = _compared(symbol, signed=signed)
    return lambda e, x, y: e.b.select(holds(e, x, y), x, y)


def _clamp(*, signed: bool) -> Emit:
    most, least = _extremum(">", signed=signed), _extremum("<", signed=signed)
    return lambda e, low, x, high: least(e, most(e, x, low), high)


def _safe(e: Emitter, y: Value, *, signed: bool) -> tuple[Value, Value, Value]:
    """A divisor that no processor refuses, whether it is 0, and whether it is -1: the least number has no quotient by that."""
    zero = e.b.icmp_unsigned("==", y, e.constant(y, 0))
    minus_one = e.b.icmp_signed("==", y, e.constant(y, -1)) if signed else e.b.icmp_unsigned("!=", y, y)
    return e.b.select(e.b.or_(zero, minus_one), e.constant(y, 1), y), zero, minus_one


def _quotient(*, signed: bool) -> Emit:
    def emit(e: Emitter, x: Value, y: Value) -> Value:
        divisor, zero, minus_one = _safe(e, y, signed=signed)
        quotient = e.b.sdiv(x, divisor) if signed else e.b.udiv(x, divisor)
        quotient = e.b.select(minus_one, e.b.neg(x), quotient)
        return e.b.select(zero, e.constant(x, -1), quotient)  # all bits set, as XLA has it

    return emit


def _remainder(*, signed: bool) -> Emit:
    def emit(e: Emitter, x: Value, y: Value) -> Value:
        divisor, zero, _ = _safe(e, y, signed=signed)  # by 1 and by -1 nothing remains
        return e.b.select(zero, x, e.b.srem(x, divisor) if signed else e.b.urem(x, divisor))

    return emit


def _fourth_power(e: Emitter, x: Value) -> Value:
    square = e.b.mul(x, x)
    return e.b.mul(square, square)


def _sign(e: Emitter, x: Value) -> Value:
    zero, one = e.constant(x, 0), e.constant(x, 1)
    negative = e.b.select(e.b.icmp_signed("<", x, zero), e.constant(x, -1), zero)
    return e.b.select(e.b.icmp_signed(">", x, zero), one, negative)


def _shift(name: str, e: Emitter, x: Value, y: Value) -> Value:
    """A shift, by which as many bits as there are, or more, all go; so do they by negative amounts, which count as such."""
    most = e.constant(y, getattr(x.type, "element", x.type).width - 1)
    fits = e.b.icmp_unsigned("<=", y, most)
    amount = e.b.select(fits, y, most)
    if name == "ashr":
        return e.b.ashr(x, amount)
    moved = e.b.shl(x, amount) if name == "shl" else e.b.lshr(x, amount)
    return e.b.select(fits, moved, e.constant(x, 0))


def _leading_zeros(e: Emitter, x: Value) -> Value:
    """The highest 1 smeared over all lower bits, of which what remains is counted."""
    reach = 1
    while reach < getattr(x.type, "element", x.type).width:
        x, reach = e.b.or_(x, e.b.lshr(x, e.constant(x, reach))), 2 * reach
    return e.intrinsic("llvm.ctpop", e.b.not_(x))


def _by_sign(op: str, arity: int, rule: Callable[..., Emit], result: str = "") -> dict[Signature, Emit]:
    return {**same(op, SIGNED, arity, rule(signed=True), result), **same(op, UNSIGNED, arity, rule(signed=False), result)}


_INTEGERS: dict[Signature, Emit] = {
    **same("add", INTEGERS, 2, lambda e, x, y: e.b.add(x, y)),
    **same("sub", INTEGERS, 2, lambda e, x, y: e.b.sub(x, y)),
    **same("mul", INTEGERS, 2, lambda e, x, y: e.b.mul(x, y)),
    **same("square", INTEGERS, 1, lambda e, x: e.b.mul(x, x)),
    **same("neg", INTEGERS, 1, lambda e, x: e.b.neg(x)),
    **same("integer_pow 1", INTEGERS, 1, lambda e, x: x),
    **same("integer_pow 2", INTEGERS, 1, lambda e, x: e.b.mul(x, x)),
    **same("integer_pow 3", INTEGERS, 1, lambda e, x: e.b.mul(e.b.mul(x, x), x)),
    **same("integer_pow 4", INTEGERS, 1, _fourth_power),
    **same("abs", SIGNED, 1, lambda e, x: e.b.select(e.b.icmp_signed("<", x, e.constant(x, 0)), e.b.neg(x), x)),
    **same("abs", UNSIGNED, 1, lambda e, x: x),
    **same("sign", SIGNED, 1, _sign),
    **same("sign", UNSIGNED, 1, lambda e, x: e.b.select(e.b.icmp_unsigned("==", x, e.constant(x, 0)), x, e.constant(x, 1))),
    **_by_sign("div", 2, _quotient),
    **_by_sign("rem", 2, _remainder),
    **_by_sign("max", 2, partial(_extremum, ">=")),
    **_by_sign("min", 2, partial(_extremum, "<=")),
    **_by_sign("clamp", 3, _clamp),
    **same("not", _LOGICAL, 1, lambda e, x: e.b.not_(x)),
    **same("and", _LOGICAL, 2, lambda e, x, y: e.b.and_(x, y)),
    **same("or", _LOGICAL, 2, lambda e, x, y: e.b.or_(x, y)),
    **same("xor", _LOGICAL, 2, lambda e, x, y: e.b.xor(x, y)),
    **same("shift_left", INTEGERS, 2, partial(_shift, "shl")),
    **same("shift_right_logical", INTEGERS, 2, partial(_shift, "lshr")),
    **same("shift_right_arithmetic", INTEGERS, 2, partial(_shift, "ashr")),
    **same("population_count", INTEGERS, 1, lambda e, x: e.intrinsic("llvm.ctpop", x)),
    **same("clz", INTEGERS, 1, _leading_zeros),
    **opcodes.joined(_by_sign(op, 2, partial(_compared, symbol), "bool") for op, symbol in _COMPARED.items()),
    **opcodes.joined(same(op, ("bool",), 2, _compared(symbol, signed=False)) for op, symbol in _COMPARED.items()),
    **{Signature("select_n", ("bool", t, t), t): lambda e, which, x, y: e.b.select(which, y, x) for t in _LOGICAL},
}


# Opcodes of special functions. They call SciPy's, whose addresses the machine gets when a graph needs one, corrected as in `lax`.


FUNCTIONS = {
    "erf": 1, "erfc": 1, "erfcx": 1, "erfinv": 1, "erfcinv": 1, "dawsn": 1, "expi": 1, "spence": 1, "i0e": 1, "i1e": 1,
    "gamma": 1, "gammaln": 1, "psi": 1, "gammainc": 2, "gammaincc": 2, "betainc": 3, "owens_t": 2,
}  # fmt: skip
"""The names of SciPy's functions of doubles, and how many operands they have."""


def _plain(name: str) -> Emit:
    return lambda e, *x: e.special(name, *x)


def _odd(name: str) -> Emit:
    """With the sign of the operand, also where that is -0."""
    return lambda e, x: e.intrinsic("llvm.copysign", e.special(name, x), x)


def _erfc(e: Emitter, x: Value) -> Value:
    """As `lax` has it: but for small x by e^(-x^2), whose x^2 would be rounded, of an h near x whose square is exact."""
    t = e.intrinsic("llvm.minnum", x, e.constant(x, 30.0))
    h = e.b.fpext(e.b.fptrunc(t, TYPES["f32"]), x.type)
    square = e.libm("exp", e.b.fneg(e.b.fmul(h, h)))
    rest = e.libm("exp", e.b.fmul(e.b.fsub(h, t), e.b.fadd(h, t)))
    tail = e.b.fmul(e.b.fmul(square, rest), e.special("erfcx", t))
    return e.b.select(e.b.fcmp_ordered(">", x, e.constant(x, 0.8)), tail, e.special("erfc", x))


def _digamma(e: Emitter, x: Value) -> Value:
    # By reflection where SciPy's loses digits, as `lax` has it.
    below = e.b.fcmp_ordered("<", x, e.constant(x, -0.8))
    psi = e.special("psi", e.b.select(below, e.b.fsub(e.constant(x, 1.0), x), x))
    turned = e.b.fsub(x, e.intrinsic("llvm.rint", x))
    pi = e.constant(x, math.pi)
    mirrored = e.b.fsub(psi, e.b.fdiv(pi, e.libm("tan", e.b.fmul(pi, turned))))
    value = e.b.select(below, mirrored, psi)
    pole = e.b.and_(e.b.fcmp_ordered("<=", x, e.constant(x, 0.0)), e.b.fcmp_ordered("==", turned, e.constant(x, 0.0)))
    return e.b.select(pole, e.constant(x, math.nan), value)


def _lgamma(e: Emitter, x: Value) -> Value:
    # Around its zeros, 1 and 2, SciPy's has no more than absolute accuracy, and the C library's has.
    near = e.b.and_(e.b.fcmp_ordered(">=", x, e.constant(x, 0.5)), e.b.fcmp_ordered("<", x, e.constant(x, 2.5)))
    value = e.b.select(near, e.libm("lgamma", x), e.special("gammaln", x))
    infinite = e.b.fcmp_ordered("==", x, e.constant(x, -math.inf))
    size = e.intrinsic("llvm.fabs", x)
    tiny = e.b.and_(e.b.fcmp_ordered("<", size, e.constant(x, 2.0**-1022)), e.b.fcmp_ordered(">", size, e.constant(x, 0.0)))
    value = e.b.select(tiny, e.b.fneg(e.libm("log", size)), value)
    return e.b.select(infinite, e.constant(x, math.inf), value)


def _in_double(emit: Emit, e: Emitter, *operands: Value) -> Value:
    double = TYPES["f64"]
    if operands[0].type == double:
        return emit(e, *operands)
    return e.b.fptrunc(emit(e, *[e.b.fpext(x, double) for x in operands]), operands[0].type)


def _by_scipy(*ops: str) -> dict[str, Emit]:
    return {op: _plain(names_in("scipy.special")[op]) for op in ops}


_UNARY: dict[str, Emit] = {
    **_by_scipy("erf"), "erfc": _erfc, "erf_inv": _odd("erfinv"), **_by_scipy("gamma"), "lgamma": _lgamma, "digamma": _digamma,
    **_by_scipy("bessel_i0e"), "bessel_i1e": _odd("i1e"), **_by_scipy("erfcx", "erfc_inv", "dawsn", "expi", "spence"),
}  # fmt: skip
_BINARY = _by_scipy("igamma", "igammac", "owens_t")

OPERATIONS = frozenset({*_UNARY, *_BINARY, "regularized_incomplete_beta"})
"""The operations of this table, which call functions of one number at a time."""

SPECIAL: dict[Signature, Emit] = {
    **opcodes.joined(same(op, FLOATS, 1, partial(_in_double, rule)) for op, rule in _UNARY.items()),
    **opcodes.joined(same(op, FLOATS, 2, partial(_in_double, rule)) for op, rule in _BINARY.items()),
    **same("regularized_incomplete_beta", ("f64",), 3, _plain("betainc")),  # of floats NumPy's has fewer digits
}

TABLE: dict[Signature, Emit] = {**_INTEGERS, **SPECIAL}
"""Those that call functions of SciPy's stand last."""
