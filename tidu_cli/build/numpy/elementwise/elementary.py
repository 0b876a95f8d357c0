"""Functions of single elements that are no ufuncs: parts of complex numbers, rounding, and a few more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand, an_array, lift
from tidu_cli.build.errors import UntraceableError
from tidu_cli.build.numpy.elementwise.choosing import where
from tidu_cli.build.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.build.numpy.primitives import filled, not_a_number
from tidu_cli.graph.types import FLOATS


def real(x: Array) -> Array:
    return x.emit("real") if x.type.complex else x


def imag(x: Array) -> Array:
    return x.emit("imag") if x.type.complex else filled(x, 0)


def angle(z: Array, deg: bool = False) -> Array:
    found = apply_ufunc("arctan2", imag(z) if z.type.complex else 0, real(z))
    return found * (180 / np.pi) if deg else found


def sinc(x: Array) -> Array:
    """sin πx / πx, near 0 by its series, so that it has derivatives there."""
    turned = x * np.pi
    zero = turned == 0
    safe = where(zero, 1.0, turned)
    return where(zero, 1 - turned * turned / 6, apply_ufunc("sin", safe) / safe)


def i0(x: Array) -> Array:
    """The modified Bessel function of order 0."""
    x = x if x.type.dtype in FLOATS else x.convert("f64")
    return x.emit("bessel_i0e") * abs(x).emit("exp")


def round(x: Array, decimals: int = 0, out: object = None) -> Array:
    """Halves to even."""
    if not x.type.inexact:
        if decimals >= 0 and x.type.dtype != "bool":
            return x
        raise UntraceableError(f"np.round of {x.type} cannot be traced; convert it first: x.astype(float)")
    if not decimals:
        return apply_ufunc("rint", x)
    scale = 10.0 ** abs(decimals)
    return apply_ufunc("rint", x * scale) / scale if decimals > 0 else apply_ufunc("rint", x / scale) * scale


def nan_to_num(x: Operand, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    if not copy:
        raise UntraceableError("np.nan_to_num with copy=False changes its operand; write x = np.nan_to_num(x)")
    x = an_array(x, nan)
    if x.type.complex:
        parts = (nan_to_num(x.emit(part), copy, nan, posinf, neginf) for part in ("real", "imag"))
        return next(parts).emit("complex", next(parts))
    if x.type.dtype not in FLOATS:
        return x
    bounds = _finfo(x)
    x = where(x == np.inf, x.dtype.type(bounds.max if posinf is None else posinf), x)
    x = where(x == -np.inf, x.dtype.type(bounds.min if neginf is None else neginf), x)
    return where(not_a_number(x), lift(nan, x, x.dtype), x)


def _finfo(x: Array) -> Any:
    if x.type.dtype == "bf16":
        import ml_dtypes

        return ml_dtypes.finfo("bfloat16")  # type: ignore[no-untyped-call]
    return np.finfo(x.dtype)


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "iscomplex": lambda x: imag(an_array(x)) != 0,
    "isreal": lambda x: imag(an_array(x)) == 0,
    "isposinf": lambda x, out=None: an_array(x) == math.inf,
    "isneginf": lambda x, out=None: an_array(x) == -math.inf,
    "around": round,
    "fix": lambda x, out=None: apply_ufunc("trunc", x),
    "astype": lambda x, dtype, /, *, copy=True, device=None: an_array(x).convert(np.dtype(dtype)),
}
