"""Opcodes of complex numbers: those whose results NumPy's roundings leave no choice about."""

from __future__ import annotations

from tidu_cli.adapters.native.opcodes.table import COMPLEXES, PARTS, Emit, Emitter, Signature, Value, same


def _sum(e: Emitter, x: Value, y: Value) -> Value:
    return e.b.fadd(x[0], y[0]), e.b.fadd(x[1], y[1])


def _difference(e: Emitter, x: Value, y: Value) -> Value:
    return e.b.fsub(x[0], y[0]), e.b.fsub(x[1], y[1])


def _product(e: Emitter, x: Value, y: Value) -> Value:
    real = e.b.fsub(e.b.fmul(x[0], y[0]), e.b.fmul(x[1], y[1]))
    return real, e.b.fadd(e.b.fmul(x[0], y[1]), e.b.fmul(x[1], y[0]))


def _equal(e: Emitter, x: Value, y: Value) -> Value:
    return e.b.and_(e.b.fcmp_ordered("==", x[0], y[0]), e.b.fcmp_ordered("==", x[1], y[1]))


def _unequal(e: Emitter, x: Value, y: Value) -> Value:
    return e.b.or_(e.b.fcmp_unordered("!=", x[0], y[0]), e.b.fcmp_unordered("!=", x[1], y[1]))


def _select_complex(e: Emitter, which: Value, if_false: Value, if_true: Value) -> Value:
    return tuple(e.b.select(which, t, f) for f, t in zip(if_false, if_true, strict=True))


TABLE: dict[Signature, Emit] = {
    **same("add", COMPLEXES, 2, _sum),
    **same("sub", COMPLEXES, 2, _difference),
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
