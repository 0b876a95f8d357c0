"""Opcodes that make a number of one dtype of one of another: to integers towards zero and clamped, NaN to 0."""

from __future__ import annotations

from tidu_cli.adapters.native.opcodes.table import (
    FLOATS,
    INTEGERS,
    PARTS,
    SIGNED,
    TYPES,
    Emit,
    Emitter,
    Signature,
    Value,
    over,
)

_REALS = (*FLOATS, *INTEGERS, "bool")


def _conversion(old: str, new: str) -> Emit:
    def emit(e: Emitter, x: Value) -> Value:
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

    return emit


def _to_complex(old: str, new: str) -> Emit:
    part = _conversion(PARTS.get(old, old), PARTS[new])

    def emit(e: Emitter, x: Value) -> Value:
        if old in PARTS:
            return part(e, x[0]), part(e, x[1])
        real = part(e, x)
        return real, e.constant(real, 0.0)

    return emit


TABLE: dict[Signature, Emit] = {
    **{Signature("convert_element_type", (old,), new): _conversion(old, new) for old in _REALS for new in _REALS},
    **{Signature("convert_element_type", (old,), new): _to_complex(old, new) for old in (*_REALS, *PARTS) for new in PARTS},
}
