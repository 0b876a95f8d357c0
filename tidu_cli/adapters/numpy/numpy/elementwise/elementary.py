"""Functions of single elements that are no ufuncs: choices by conditions, comparisons, parts of complex numbers, rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import NUMBERS, Operand, an_array, arrays_in, lift, lifted, result_dtype
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import apply_ufunc
from tidu_cli.adapters.numpy.numpy.indexing import common_shape, filled, is_nan, select, truth
from tidu_cli.graph.types import FLOATS, INTEGERS


def where(condition: Operand, *cases: Operand) -> Array:
    """With three arguments."""
    if len(cases) != 2:
        raise UntraceableError("np.where(condition) gives an array of unknown shape; write np.where(condition, a, b)")
    like = arrays_in((condition, *cases))[0]
    dtype = result_dtype(*cases)
    which, *options = truth(lift(condition, like)), *(lift(x, like, dtype) for x in cases)
    shape = common_shape(which.shape, *(x.shape for x in options))
    return select(which.broadcast(shape), *(x.broadcast(shape) for x in options))


def _select(conditions: Sequence[Operand], choices: Sequence[Operand], default: Operand = 0) -> Array:
    if len(conditions) != len(choices):
        raise ValueError("as many conditions as choices")
    like = arrays_in([conditions, choices, default])[0]
    dtype = result_dtype(*choices, default)
    chosen = lift(default, like, dtype)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        chosen = where(condition, lift(choice, like, dtype), chosen)
    return chosen


def clip(
    x: Operand, a_min: Any = None, a_max: Any = None, out: object = None, *, min: Any = None, max: Any = None, **options: Any
) -> Array:
    like = arrays_in([x, a_min, a_max, min, max])[0]
    low, high = a_min if min is None else min, a_max if max is None else max
    x = x if arrays_in([x]) else np.asarray(x)  # which gives way no more, as in NumPy
    kept = [_in_range(x, low, low=True), _in_range(x, high, low=False)]
    dtype = result_dtype(x, *(v for v in kept if v is not None))
    clipped = lift(x, like, dtype)
    for name, bound in zip(("maximum", "minimum"), kept, strict=True):
        clipped = clipped if bound is None else apply_ufunc(name, clipped, lift(bound, like, dtype))
    return clipped


def _in_range(x: Operand, bound: Operand, *, low: bool) -> Operand:
    """A bound; None, as NumPy has it, if it is a Python integer that no integer of x's dtype passes."""
    if isinstance(x, Array) and x.type.dtype in INTEGERS and type(bound) is int:
        limits = np.iinfo(x.dtype)
        if bound <= limits.min if low else bound >= limits.max:
            return None
    return bound


def isclose(a: Operand, b: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    like = arrays_in([a, b])[0]
    # Python numbers give way, but b is inexact in any case: differences of bools and of the least integers are not integers.
    x = lift(a, like, result_dtype(a, b))
    y = lift(b, like, result_dtype(a, b, 0.0) if isinstance(b, NUMBERS) else result_dtype(b, 0.0))
    near = (abs(x - y) <= atol + rtol * abs(y)) & apply_ufunc("isfinite", y) | (x == y)
    return near | (apply_ufunc("isnan", x) & apply_ufunc("isnan", y)) if equal_nan else near


def allclose(a: Operand, b: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """A traced bool."""
    return isclose(a, b, rtol, atol, equal_nan).all()


def array_equal(a1: Operand, a2: Operand, equal_nan: bool = False) -> Any:
    """False for other shapes, else a traced bool."""
    x, y = lifted(a1, a2)
    if x.shape != y.shape:
        return False
    same = x == y
    return (same | ((x != x) & (y != y)) if equal_nan else same).all()


def isin(element: Operand, test_elements: Operand, assume_unique: bool = False, invert: bool = False, **options: Any) -> Array:
    """Each element is compared with each."""
    x, among = lifted(element, test_elements)
    present = (x.reshaped((*x.shape, 1)) == among.reshaped((1,) * x.ndim + (among.size,))).any(axis=-1)
    return ~present if invert else present


def real(x: Array) -> Array:
    return x.emit("real") if x.type.complex else x


def imag(x: Array) -> Array:
    return x.emit("imag") if x.type.complex else filled(x, 0)


def angle(z: Array, deg: bool = False) -> Array:
    radians = apply_ufunc("arctan2", imag(z) if z.type.complex else 0, real(z))
    return radians * (180 / np.pi) if deg else radians


def sinc(x: Array) -> Array:
    """sin πx / πx, where πx is less than 1 by its series: derivatives of the quotient lose all their digits near 0."""
    turned = x * np.pi
    near = abs(turned) < 1
    square = where(near, turned, 0.0) ** 2
    series: Any = 0.0
    for k in range(_SINC_TERMS, -1, -1):
        series = (-1) ** k / math.factorial(2 * k + 1) + series * square
    far = where(near, 1.0, turned)
    return where(near, series, apply_ufunc("sin", far) / far)


_SINC_TERMS = 11
"""The last is 4·10⁻²³ where πx is 1, and its sixth derivative 2·10⁻¹⁵."""


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
    if not copy and isinstance(x, Array) and x.type.inexact:
        changed: Array = x.recorder.numpy["out"](x, nan_to_num(x, True, nan, posinf, neginf), "np.nan_to_num")
        return changed
    x = an_array(x, nan)
    if x.type.complex:
        parts = (nan_to_num(x.emit(part), copy, nan, posinf, neginf) for part in ("real", "imag"))
        return next(parts).emit("complex", next(parts))
    if x.type.dtype not in FLOATS:
        return x
    import ml_dtypes  # whose finfo knows bf16, too

    bounds: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]
    x = where(x == np.inf, x.dtype.type(bounds.max if posinf is None else posinf), x)
    x = where(x == -np.inf, x.dtype.type(bounds.min if neginf is None else neginf), x)
    return where(is_nan(x), lift(nan, x, x.dtype), x)


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "select": _select,
    "iscomplex": lambda x: imag(an_array(x)) != 0,
    "isreal": lambda x: imag(an_array(x)) == 0,
    "isposinf": lambda x, out=None: an_array(x) == math.inf,
    "isneginf": lambda x, out=None: an_array(x) == -math.inf,
    "around": round,
    "fix": lambda x, out=None: apply_ufunc("trunc", x),
    "astype": lambda x, dtype, /, *, copy=True, device=None: an_array(x).convert(np.dtype(dtype)),
}
