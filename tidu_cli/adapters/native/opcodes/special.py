"""Opcodes of special functions: SciPy's, whose addresses the machine is given where a graph needs one, mended as in `lax`."""

from __future__ import annotations

import math

from tidu_cli.adapters.native.opcodes.table import FLOATS, TYPES, Emit, Emitter, Signature, Value, same

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
    found = e.b.select(below, mirrored, psi)
    pole = e.b.and_(e.b.fcmp_ordered("<=", x, e.constant(x, 0.0)), e.b.fcmp_ordered("==", turned, e.constant(x, 0.0)))
    return e.b.select(pole, e.constant(x, math.nan), found)


def _lgamma(e: Emitter, x: Value) -> Value:
    # Around its zeros, 1 and 2, SciPy's has no more than absolute accuracy, and the C library's has.
    near = e.b.and_(e.b.fcmp_ordered(">=", x, e.constant(x, 0.5)), e.b.fcmp_ordered("<", x, e.constant(x, 2.5)))
    found = e.b.select(near, e.libm("lgamma", x), e.special("gammaln", x))
    infinite = e.b.fcmp_ordered("==", x, e.constant(x, -math.inf))
    size = e.intrinsic("llvm.fabs", x)
    tiny = e.b.and_(e.b.fcmp_ordered("<", size, e.constant(x, 2.0**-1022)), e.b.fcmp_ordered(">", size, e.constant(x, 0.0)))
    found = e.b.select(tiny, e.b.fneg(e.libm("log", size)), found)
    return e.b.select(infinite, e.constant(x, math.inf), found)


def _in_double(emit: Emit) -> Emit:
    def rounded(e: Emitter, *operands: Value) -> Value:
        double = TYPES["f64"]
        if operands[0].type == double:
            return emit(e, *operands)
        return e.b.fptrunc(emit(e, *[e.b.fpext(x, double) for x in operands]), operands[0].type)

    return rounded


_UNARY: dict[str, Emit] = {
    "erf": _plain("erf"),
    "erfc": _erfc,
    "erf_inv": _odd("erfinv"),
    "gamma": _plain("gamma"),
    "lgamma": _lgamma,
    "digamma": _digamma,
    "bessel_i0e": _plain("i0e"),
    "bessel_i1e": _odd("i1e"),
    "erfcx": _plain("erfcx"),
    "erfc_inv": _plain("erfcinv"),
    "dawsn": _plain("dawsn"),
    "expi": _plain("expi"),
    "spence": _plain("spence"),
}
_BINARY: dict[str, Emit] = {"igamma": _plain("gammainc"), "igammac": _plain("gammaincc"), "owens_t": _plain("owens_t")}

OPERATIONS = frozenset({*_UNARY, *_BINARY, "regularized_incomplete_beta"})
"""The operations of this table, which call functions of one number at a time."""

TABLE: dict[Signature, Emit] = {
    **{key: emit for op, rule in _UNARY.items() for key, emit in same(op, FLOATS, 1, _in_double(rule)).items()},
    **{key: emit for op, rule in _BINARY.items() for key, emit in same(op, FLOATS, 2, _in_double(rule)).items()},
    **same("regularized_incomplete_beta", ("f64",), 3, _plain("betainc")),  # of floats NumPy's has fewer digits
}
