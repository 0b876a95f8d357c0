"""Elementwise operations as expressions of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.python_source.text import AND, ATOM, COMPARED, OR, POWER, PRODUCT, SHIFT, SIGN, SUM, XOR, Text, shape_text
from tidu_cli.graph.types import COMPLEXES, FLOATS, INTEGERS, SIGNED
from tidu_cli.lax.names import names_in

Template = tuple[str, int, tuple[int, ...]]
"""A text with {0}, {1} … for operands, its level, and the levels that these need."""

_SIGNS = {
    "add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT), "and": ("&", AND), "or": ("|", OR),
    "xor": ("^", XOR), "shift_left": ("<<", SHIFT),
    "eq": ("==", COMPARED), "ne": ("!=", COMPARED), "lt": ("<", COMPARED), "le": ("<=", COMPARED), "gt": (">", COMPARED),
    "ge": (">=", COMPARED),
}  # fmt: skip

_FUNCTIONS = {
    **names_in("numpy"),
    **{name: name for name in ("abs", "floor", "ceil", "real", "imag", "conj")},
    "is_finite": "isfinite",
}  # fmt: skip
"""NumPy's functions by op."""

_SPECIAL = {**names_in("scipy.special"), "zeta": "zeta", "polygamma": "polygamma"}
"""SciPy's functions by op."""

_PARAMETERS = {
    "bessel_j": ("jv", "order"), "bessel_y": ("yv", "order"), "bessel_ie": ("ive", "order"), "bessel_ke": ("kve", "order"),
    "spherical_bessel_j": ("spherical_jn", "order"), "expn": ("expn", "n"), "hyp0f1": ("hyp0f1", "b"), "hyp1f1": ("hyp1f1", "a b"),
    "hyp2f1": ("hyp2f1", "a b c"),
}  # fmt: skip
"""Those that take parameters first."""

_PAIRS = {"fresnel_s": ("fresnel", 0), "fresnel_c": ("fresnel", 1), "sin_integral": ("sici", 0), "cos_integral": ("sici", 1)}
"""Those of which SciPy computes two at once."""


def dtype_text(dtype: str) -> str:
    """NumPy's name of a dtype."""
    letter, bits = dtype[0], dtype[1:]
    return "np.bool_" if dtype == "bool" else f"np.{ {'i': 'int', 'u': 'uint', 'f': 'float', 'c': 'complex'}[letter] }{bits}"


def called(function: str, n: int) -> Template:
    """A function of n operands."""
    return f"{function}({', '.join(f'{{{k}}}' for k in range(n))})", ATOM, (0,) * n


def template(op: str, attrs: Any, dtypes: Sequence[str], result: str) -> Template | None:
    """The expression of an elementwise operation; None if it is not one of these."""
    one, n = dtypes[min(1, len(dtypes) - 1)] if dtypes else result, len(dtypes)
    if op in ("div", "rem") and one in INTEGERS:
        return called(f"_{op}", n)
    if op in _SIGNS:
        sign, level = _SIGNS[op]
        return f"{{0}} {sign} {{1}}", level, (level + (level == COMPARED), level + 1)
    if special := _special(op, attrs, one, n):
        return special
    if one in COMPLEXES and op in ("atan2", "logistic"):
        return called("_logistic", 1) if op == "logistic" else None
    if op in ("expm1", "log1p") and one in COMPLEXES:
        return called(f"special.{op}", n)
    if op == "complex":
        return f"_complex({{0}}, {{1}}, {dtype_text(result)})", ATOM, (0, 0)
    if op in ("strong_mul", "strong_div", "clz"):
        return called(f"_{op}", n)
    written = _bits(op, one, result) or _other(op, attrs, dtypes, one, result)
    return written or (called(f"np.{_FUNCTIONS[op]}", n) if op in _FUNCTIONS else None)


def _special(op: str, attrs: Any, dtype: str, n: int) -> Template | None:
    """A special function, if it is one of SciPy's: with parameters as these are, all numbers being of f64 then."""
    if dtype not in FLOATS:
        return None
    if op in _PARAMETERS:
        name, parameters = _PARAMETERS[op]
        text = f"special.{name}({', '.join([*(repr(getattr(attrs, p)) for p in parameters.split()), '{0}'])})"
    elif op in _PAIRS:
        name, k = _PAIRS[op]
        text = f"special.{name}({{0}})[{k}]"
    elif op in _SPECIAL:
        text = called(f"special.{_SPECIAL[op]}", n)[0]
    else:
        return None
    wide = "np.float64" if op in _PARAMETERS and dtype != "f64" else "np.float32" if dtype == "f16" else ""
    if not wide:
        return text, ATOM, (0,) * n
    for k in range(n):
        text = text.replace(f"{{{k}}}", f"{{{k}}}.astype({wide})")
    return f"{text}.astype({dtype_text(dtype)})", ATOM, (ATOM,) * n


def _bits(op: str, one: str, result: str) -> Template | None:
    """An operation on the bits of numbers."""
    if op == "shift_right_arithmetic":
        return ("{0} >> {1}", SHIFT, (SHIFT, SUM)) if one in SIGNED else called("_shift_right_arithmetic", 2)
    if op == "shift_right_logical":
        if one not in SIGNED:
            return "{0} >> {1}", SHIFT, (SHIFT, SUM)
        bits = dtype_text(f"u{one[1:]}")
        return f"np.right_shift({{0}}.view({bits}), {{1}}.view({bits})).view({dtype_text(one)})", ATOM, (ATOM, ATOM)
    if op == "population_count":
        bits = dtype_text(f"u{one.lstrip('iu')}")
        return f"np.bitwise_count({{0}}.view({bits})).astype({dtype_text(one)})", ATOM, (ATOM,)
    if op == "bitcast_convert_type" and one[1:] == result[1:]:
        return f"{{0}}.view({dtype_text(result)})", ATOM, (ATOM,)
    return None


def _other(op: str, attrs: Any, dtypes: Sequence[str], one: str, result: str) -> Template | None:
    if op == "integer_pow":
        return _power(attrs.y, one)
    if op == "pow":
        if dtypes[0] == dtypes[1]:
            return called("np.power", 2)
        wide = "np.complex128" if dtypes[0] in COMPLEXES else "np.float64"
        return f"np.power({{0}}.astype({wide}), {{1}}.astype({wide})).astype({dtype_text(result)})", ATOM, (ATOM, ATOM)
    if op == "round":
        return called("_round" if attrs.rounding_method == "AWAY_FROM_ZERO" else "np.rint", 1)
    if op == "convert_element_type":
        return _converted(dtypes[0], result)
    if op == "reduce_precision":
        most = {"f16": (5, 10), "f32": (8, 23), "f64": (11, 52)}[one]
        same = attrs.exponent_bits >= most[0] and attrs.mantissa_bits >= most[1]
        return ("{0}", ATOM, (ATOM,)) if same else None
    if op == "select_n":
        return _selected(dtypes)
    return {
        "clamp": ("np.clip({1}, {0}, {2})", ATOM, (0, 0, 0)),
        "neg": ("-{0}", SIGN, (POWER,)),
        "not": ("~{0}", SIGN, (SIGN,)),
        "rsqrt": ("1 / np.sqrt({0})", PRODUCT, (0,)),
    }.get(op)


def _power(n: int, dtype: str) -> Template | None:
    if n in (2, -1) and dtype in FLOATS | INTEGERS:
        return ("np.square({0})", ATOM, (0,)) if n == 2 else ("1 / {0}", PRODUCT, (SIGN,))
    if dtype in INTEGERS:
        if n < 128:
            return f"{{0}} ** {n}", POWER, (ATOM,)
        wide = "np.int64" if dtype in SIGNED else "np.uint64"
        return f"np.power({{0}}.astype({wide}), {wide}({n})).astype({dtype_text(dtype)})", ATOM, (ATOM,)
    if abs(n) <= 2048:  # every float has these exactly
        return f"{{0}} ** {n}", POWER, (ATOM,)
    wide = "np.complex128" if dtype in COMPLEXES else "np.float64"
    return f"np.power({{0}}.astype({wide}), {n}).astype({dtype_text(dtype)})", ATOM, (ATOM,)


def _converted(old: str, new: str) -> Template:
    if new == old:
        return "{0}", ATOM, (ATOM,)
    x = "np.real({0})" if old in COMPLEXES and new not in COMPLEXES and new != "bool" else "{0}"
    if old in FLOATS | COMPLEXES and new in INTEGERS:
        return f"_to_integer({x}, {dtype_text(new)})", ATOM, (0,)
    return f"{x}.astype({dtype_text(new)})", ATOM, (ATOM if x == "{0}" else 0,)


def _selected(dtypes: Sequence[str]) -> Template:
    last = len(dtypes) - 1
    if last == 1:
        return "{1}", ATOM, (ATOM, ATOM)
    if dtypes[0] == "bool":
        return "np.where({0}, {2}, {1})", ATOM, (0, 0, 0)
    tests = ", ".join(f"{{0}} < {k}" for k in range(1, last))
    return f"np.select([{tests}], [{', '.join(f'{{{k}}}' for k in range(1, last))}], {{{last}}})", ATOM, (OR, *[0] * last)


def scalar(dtype: str, value: Any) -> tuple[str, int]:
    """A number of a dtype as one of Python, and its level."""
    if dtype == "bool":
        return str(bool(value)), ATOM
    if dtype in COMPLEXES:
        real, imag = (scalar("f32" if dtype == "c64" else "f64", x)[0] for x in (value.real, value.imag))
        return f"complex({real}, {imag})", ATOM
    if dtype in FLOATS:
        if value != value:
            return "np.nan", ATOM
        text = "np.inf" if abs(value) == np.inf else str(abs(value)) if dtype != "f64" else repr(float(abs(value)))
        return (f"-{text}", SIGN) if np.signbit(value) else (text, ATOM)
    return str(int(value)), ATOM if value >= 0 else SIGN


def element(dtype: str, value: Any) -> str:
    """An element of a constant, as NumPy reads it from text; of bools 0 or 1."""
    if dtype == "bool":
        return str(int(value))
    if dtype in COMPLEXES:
        real, imag = (element("f32" if dtype == "c64" else "f64", x) for x in (value.real, value.imag))
        return f"{real}{'' if imag[0] == '-' else '+'}{imag}j"
    return scalar(dtype, value)[0].replace("np.", "")


def extreme(dtype: str, *, low: bool) -> str:
    """What is the least, or greatest, of all numbers."""
    if dtype == "bool":
        return str(not low)
    if dtype in INTEGERS:
        info = np.iinfo(dtype_text(dtype)[3:])
        return str(info.min if low else info.max)
    return "-np.inf" if low else "np.inf"


def zero(type_: Any) -> Text:
    """0 as a number of Python."""
    return Text("False" if type_.dtype == "bool" else "0.0" if type_.inexact else "0", ATOM, (), True)


def filled(x: Text, type_: Any) -> str:
    """A number as an array of a type."""
    dtype = dtype_text(type_.dtype)
    if not type_.shape:
        return f"{dtype}({x.code})"
    if x.code in ("0.0", "0", "False"):
        return f"np.zeros({shape_text(type_.shape)}, dtype={dtype})"
    return f"np.full({shape_text(type_.shape)}, {x.code}, dtype={dtype})"
