"""What each element of an elementwise operation is in C: templates of expressions, and the functions that these call.

An operand in a template is a name, an element of an array or a number in brackets, so it may stand twice. Integers wrap, as they do
in NumPy: they are computed with as unsigned ones, whose overflow C defines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from string import Template
from typing import Any

import numpy as np

from tidu_cli.adapters.c.views import CTYPES, bits
from tidu_cli.graph.types import SIGNED
from tidu_cli.lax.arrays.structural import numpy_dtype

FLOATS = ("f32", "f64")

Use = Callable[..., str]
"""From the name of a function and dtypes to what it is called; notes that the file needs it."""

_SAME_NAME = """exp exp2 expm1 log log1p sqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc lgamma
floor ceil nextafter"""
_CALLS = {**{name: name for name in _SAME_NAME.split()}, "abs": "fabs", "gamma": "tgamma", "rem": "fmod"}
"""The functions of math.h by op."""

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
SAME = frozenset({"copy", "stop_gradient", "optimization_barrier"})
"""What gives its operands."""

_FUNCTIONS = {
    "max": "static $T $N($T a, $T b) { return a >= b$NAN_A ? a : b; }",
    "min": "static $T $N($T a, $T b) { return a <= b$NAN_A ? a : b; }",
    "sign": "static $T $N($T a) { return ($T)(a > 0 ? 1 : $NEGATIVE a); }",
    "less": "static int $N($T a, $T b) { return a < b$NAN_B; }",
    "strong": "static $T $N($T zero, $T a) { return zero == 0 && a != a ? 0 : a; }",
    "logaddexp": "static $T $N($T a, $T b) { const $T d = a - b; return a == b ? a + log$S(($T)2) : d > 0 ? "
    "a + log1p$S(exp$S(-d)) : d <= 0 ? b + log1p$S(exp$S(d)) : d; }",
    "divide": "static $T $N($T a, $T b) { return b == 0 ? ($T)-1 : $BY_MINUS_ONE($T)(a / b); }",
    "remainder": "static $T $N($T a, $T b) { return b == 0 ? a : $NONE_LEFT($T)(a % b); }",
    "power": "static $T $N($T a, long n) { $W r = 1, s = ($W)a; "
    "for (; n > 0; n /= 2) { if (n % 2) r *= s; s *= s; } return ($T)r; }",
    "shift_left": "static $T $N($T a, $T b) { return ($U)b < $B ? ($T)(($W)($U)a << ($U)b) : ($T)0; }",
    "shift_right_logical": "static $T $N($T a, $T b) { return ($U)b < $B ? ($T)(($U)a >> ($U)b) : ($T)0; }",
    "shift_right_arithmetic": "static $T $N($T a, $T b) { return ($T)(($I)a >> (($U)b < $B ? ($U)b : $B - 1)); }",
    "population_count": "static $T $N($T a) { $U x = ($U)a; int n = 0; "
    "for (; x; x = ($U)(x >> 1)) n += (int)(x & 1); return ($T)n; }",
    "clz": "static $T $N($T a) { $U x = ($U)a; int n = $B; for (; x; x = ($U)(x >> 1)) --n; return ($T)n; }",
    "to": "static $T $N($R a) { return a != a ? 0 : a <= ($R)$LOW ? $LOW : a >= ($R)$HIGH ? $HIGH : ($T)a; }",
    "bits": "static $T $N($R a) { $T r; memcpy(&r, &a, sizeof r); return r; }",
    "reduce": """static $T $N($T a, int exponent, int mantissa) {
    const $U ones = (($U)1 << $EB) - 1, bias = ones >> 1, drop = $MB - ($U)mantissa;
    $U w, e;
    if (a != a) return a;
    memcpy(&w, &a, sizeof w);
    if (drop > 0) w = (w + ((w >> drop) & 1) + ((($U)1 << (drop - 1)) - 1)) & ~((($U)1 << drop) - 1);
    e = (w >> $MB) & ones;
    if (exponent < $EB) {
        const $U reach = (($U)1 << (exponent - 1)) - 1, sign = w & (($U)1 << ($B - 1));
        if ((w & (ones << $MB)) > ((bias + reach) << $MB)) w = sign | (ones << $MB);
        else if (e < bias - reach || (w & (ones << $MB)) <= ((bias - reach) << $MB)) w = sign;
    }
    memcpy(&a, &w, sizeof w);
    return a;
}""",
}


def function(name: str, called: str, dtype: str, other: str = "") -> str:
    """The text of a function for a dtype."""
    floats, signed, n = dtype in FLOATS, dtype in SIGNED, bits(dtype)
    low, high = ("0", "0") if floats or dtype == "bool" else (literal(dtype, k) for k in bounds(dtype))
    words = {
        "N": called, "T": CTYPES[dtype], "R": CTYPES.get(other, ""), "B": str(n), "S": suffix(dtype), "U": f"uint{n}_t",
        "I": f"int{n}_t", "W": wide(dtype), "LOW": low, "HIGH": high,
        "EB": "8" if n == 32 else "11", "MB": "23" if n == 32 else "52",
        "NAN_A": " || a != a" if floats else "", "NAN_B": " || (b != b && a == a)" if floats else "",
        "NEGATIVE": "a < 0 ? -1 :" if floats or signed else "",
        "BY_MINUS_ONE": f"b == -1 ? ($T)(0 - ({wide(dtype)})a) : ".replace("$T", CTYPES[dtype]) if signed else "",
        "NONE_LEFT": "b == -1 ? 0 : " if signed else "",
    }  # fmt: skip
    return Template(_FUNCTIONS[name]).substitute(words)


def wide(dtype: str) -> str:
    """The unsigned type in which integers of a dtype are computed with."""
    return "uint64_t" if bits(dtype) == 64 else "uint32_t"


def suffix(dtype: str) -> str:
    """That of functions of math.h."""
    return "f" if dtype == "f32" else ""


def bounds(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer of a dtype."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(numpy_dtype(np, dtype))
    return int(info.min), int(info.max)


def literal(dtype: str, value: Any) -> str:
    """A number of a dtype in C, an operand of templates."""
    if dtype not in FLOATS:
        whole = int(value)
        if whole == -(2**63):
            return "(-9223372036854775807LL - 1)"
        text = f"{whole}{'ULL' if dtype == 'u64' else 'LL' if dtype in ('i64', 'u32') else ''}"
    else:
        number = np.float32(value) if dtype == "f32" else np.float64(value)
        if not math.isfinite(number):
            text = "NAN" if number != number else "INFINITY" if number > 0 else "-INFINITY"
        else:
            text = f"{number!s}{suffix(dtype)}"
    return f"({text})" if text.startswith("-") else text


def template(op: str, attrs: Any, dtypes: Sequence[str], result: str, use: Use) -> str | None:
    """The expression of one element, with `{k}` for that of operand k; None if the operation is none of these."""
    one = dtypes[min(1, len(dtypes) - 1) if op in ("select_n", "clamp") else 0] if dtypes else result
    ctype, s = CTYPES[one], suffix(one)
    if op in _COMPARED:
        return f"({{0}} {_COMPARED[op]} {{1}})"
    if op in SAME:
        return "{0}"
    if op == "select_n":
        return _selected(dtypes)
    if op == "add_cotangents" and len({*dtypes, result}) == 1:  # of different ones they are of different types
        op = "add"
    if op in ("max", "min"):
        return f"{use(op, one)}({{0}}, {{1}})"
    if op == "clamp":
        return f"{use('min', one)}({use('max', one)}({{1}}, {{0}}), {{2}})"
    if op in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        return f"{use(op, one)}({{0}}, {{1}})"
    if op in ("population_count", "clz", "sign"):
        return f"{use(op, one)}({{0}})"
    if op == "convert_element_type":
        return _converted(one, result, use)
    if op == "bitcast_convert_type" and bits(one) == bits(result):
        return f"{use('bits', result, one)}({{0}})"
    if op == "not":
        return "(!{0})" if one == "bool" else f"(({ctype})~{{0}})"
    if op in ("and", "or", "xor"):
        return f"(({ctype})({{0}} {_SIGNS[op]} {{1}}))"
    return _of_floats(op, attrs, dtypes, s, use) if one in FLOATS else _of_integers(op, attrs, one, use)


def _of_floats(op: str, attrs: Any, dtypes: Sequence[str], s: str, use: Use) -> str | None:
    dtype = dtypes[0]
    one = literal(dtype, 1)
    if op in _SIGNS:
        return f"({{0}} {_SIGNS[op]} {{1}})"
    if op in _CALLS:
        return f"{_CALLS[op]}{s}({', '.join(f'{{{k}}}' for k in range(len(dtypes)))})"
    if op == "pow":
        if dtypes[1] == dtype:
            return f"pow{s}({{0}}, {{1}})"
        return f"(({CTYPES[dtype]})pow((double){{0}}, (double){{1}}))"
    if op == "integer_pow":
        n = attrs.y
        if 0 < n <= 4:
            return f"({' * '.join(['{0}'] * n)})"
        if n in (0, -1):
            return f"({one} / {{0}})" if n else one
        return f"(({CTYPES[dtype]})pow((double){{0}}, {literal('f64', n)}))"
    if op == "round":
        return f"{'round' if attrs.rounding_method == 'AWAY_FROM_ZERO' else 'rint'}{s}({{0}})"
    if op == "reduce_precision":
        exponent, mantissa = (8, 23) if dtype == "f32" else (11, 52)
        return f"{use('reduce', dtype)}({{0}}, {min(attrs.exponent_bits, exponent)}, {min(attrs.mantissa_bits, mantissa)})"
    if op in ("strong_mul", "strong_div"):
        zero, sign = ("{1}", "*") if op == "strong_mul" else ("{0}", "/")
        return f"{use('strong', dtype)}({zero}, {{0}} {sign} {{1}})"
    return {
        "div": "({0} / {1})",
        "neg": "(-{0})",
        "square": "({0} * {0})",
        "rsqrt": f"({one} / sqrt{s}({{0}}))",
        "logistic": f"({one} / ({one} + exp{s}(-{{0}})))",
        "is_finite": "(isfinite({0}) != 0)",
    }.get(op)


def _of_integers(op: str, attrs: Any, dtype: str, use: Use) -> str | None:
    ctype, w = CTYPES[dtype], wide(dtype)
    if op in ("add", "sub", "mul"):
        return f"(({ctype})(({w}){{0}} {_SIGNS[op]} ({w}){{1}}))"
    if op == "integer_pow":
        return f"{use('power', dtype)}({{0}}, {attrs.y}L)"
    if op in ("div", "rem"):
        return f"{use('divide' if op == 'div' else 'remainder', dtype)}({{0}}, {{1}})"
    negated = f"(({ctype})(0 - ({w}){{0}}))"
    if op == "abs":
        return f"({{0}} < 0 ? {negated} : {{0}})" if dtype in SIGNED else "{0}"
    return {"neg": negated, "square": f"(({ctype})(({w}){{0}} * ({w}){{0}}))"}.get(op)


def _selected(dtypes: Sequence[str]) -> str:
    last = len(dtypes) - 1
    if dtypes[0] == "bool":
        return "{1}" if last == 1 else "({0} ? {2} : {1})"
    chosen = f"{{{last}}}"
    for k in range(last - 1, 0, -1):
        chosen = f"({{0}} < {k} ? {{{k}}} : {chosen})"
    return chosen


def _converted(old: str, new: str, use: Use) -> str:
    if new == old:
        return "{0}"
    if new == "bool":
        return "({0} != 0)"
    if old in FLOATS and new not in FLOATS:
        return f"{use('to', new, old)}({{0}})"
    return f"(({CTYPES[new]}){{0}})"
