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

from tidu_cli.adapters.c.complexes import PARTS, complex_function
from tidu_cli.adapters.c.functions import REALS, of_halves
from tidu_cli.adapters.c.views import CTYPES, HALVES, bits
from tidu_cli.graph.types import FLOATS, SIGNED
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.names import names_in

Use = Callable[..., str]
"""From the name of a function and dtypes to what it is called; notes that the file needs it."""

_CALLS = {**names_in("math"), **{name: name for name in ("floor", "ceil", "nextafter")}, "abs": "fabs", "gamma": "tgamma"}
"""The functions of math.h by op."""

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_BY_NAME = frozenset({
    "max", "min", "shift_left", "shift_right_logical", "shift_right_arithmetic", "population_count", "clz", "sign",
})  # fmt: skip
"""What is a function of the file, by its own name."""


def function(name: str, called: str, dtype: str, other: str = "") -> str:
    """The text of a function for a dtype."""
    if dtype in PARTS and name != "bits":
        return complex_function(name, called, dtype)
    text = (of_halves(name, dtype) if dtype in HALVES else None) or REALS[name]
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
    return Template(text).substitute(words)


def wide(dtype: str) -> str:
    """The unsigned type in which integers of a dtype are computed with."""
    return "uint64_t" if bits(dtype) == 64 else "uint32_t"


def suffix(dtype: str) -> str:
    """That of functions of math.h."""
    return "f" if CTYPES[dtype] == "float" else ""


def bounds(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer of a dtype."""
    if dtype == "bool":
        return 0, 1
    info = np.iinfo(numpy_dtype(np, dtype))
    return int(info.min), int(info.max)


def literal(dtype: str, value: Any) -> str:
    """A number of a dtype in C, an operand of templates."""
    if dtype in PARTS:
        return f"((k_{dtype}){{{literal(PARTS[dtype], complex(value).real)}, {literal(PARTS[dtype], complex(value).imag)}}})"
    if dtype not in FLOATS:
        whole = int(value)
        if whole == -(2**63):
            return "(-9223372036854775807LL - 1)"
        text = f"{whole}{'ULL' if dtype == 'u64' else 'LL' if dtype in ('i64', 'u32') else ''}"
    else:
        number = value if isinstance(value, np.generic) else numpy_dtype(np, dtype).type(value)
        number = np.float64(number) if dtype == "f64" else np.float32(number)
        if not math.isfinite(number):
            text = "NAN" if number != number else "INFINITY" if number > 0 else "-INFINITY"
        else:
            text = f"{number!s}{suffix(dtype)}"
    return f"({text})" if text.startswith("-") else text


def template(op: str, attrs: Any, dtypes: Sequence[str], result: str, use: Use) -> str | None:
    """The expression of one element, with `{k}` for that of operand k; None if the operation is none of these."""
    one = dtypes[min(1, len(dtypes) - 1) if op in ("select_n", "clamp") else 0] if dtypes else result
    if op == "select_n":
        return _selected(dtypes)
    if op == "convert_element_type":
        return _converted(one, result, use)
    if op == "bitcast_convert_type" and bits(one) == bits(result):
        return _same_bits(one, result, use)
    if op == "add_cotangents" and len({*dtypes, result}) == 1:  # of different ones they are of different types
        op = "add"
    if one in PARTS or result in PARTS:
        return _of_complex(op, attrs, dtypes, result, use)
    if one in HALVES:
        return _of_halves(op, attrs, dtypes, result, use)
    if op in _COMPARED:
        return f"({{0}} {_COMPARED[op]} {{1}})"
    if op in _BY_NAME:
        return _called(use(op, one), dtypes)
    if op == "clamp":
        return f"{use('min', one)}({use('max', one)}({{1}}, {{0}}), {{2}})"
    if op == "not":
        return "(!{0})" if one == "bool" else f"(({CTYPES[one]})~{{0}})"
    if op in ("and", "or", "xor"):
        return f"(({CTYPES[one]})({{0}} {_SIGNS[op]} {{1}}))"
    return _of_floats(op, attrs, dtypes, suffix(one), use) if one in FLOATS else _of_integers(op, attrs, one, use)


def _called(function: str, operands: Sequence[str]) -> str:
    return f"{function}({', '.join(f'{{{k}}}' for k in range(len(operands)))})"


_OF_COMPLEX = frozenset({
    "add", "sub", "mul", "div", "neg", "square", "sign", "conj", "complex", "exp", "exp2", "expm1", "log", "log1p", "logistic",
    "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
})  # fmt: skip
"""What is a function of its operands, by its own name."""


def _of_complex(op: str, attrs: Any, dtypes: Sequence[str], result: str, use: Use) -> str | None:
    one = dtypes[0]
    if op in _OF_COMPLEX:
        return _called(use(op, result), dtypes)
    if op in ("real", "imag"):
        return "{0}.re" if op == "real" else "{0}.im"
    if op == "abs":
        return f"hypot{suffix(result)}({{0}}.re, {{0}}.im)"
    if op == "eq":
        return "({0}.re == {1}.re && {0}.im == {1}.im)"
    if op == "ne":
        return "({0}.re != {1}.re || {0}.im != {1}.im)"
    if op == "pow":
        return f"{use('pow', one)}({{0}}, {{1}})" if dtypes[1] == one else _complex_power(one, "(double){1}", use)
    if op == "integer_pow":
        if abs(attrs.y) >= 100:
            return _complex_power(one, literal("f64", attrs.y), use)
        return "{0}" if attrs.y == 1 else f"{use('power', one)}({{0}}, {attrs.y}L)"
    if op in ("strong_mul", "strong_div"):
        zero, computed = ("{1}", "mul") if op == "strong_mul" else ("{0}", "div")
        return f"{use('strong', one)}({zero}, {use(computed, one)}({{0}}, {{1}}))"
    return None


def _complex_power(dtype: str, exponent: str, use: Use) -> str:
    """A power by an integer, of doubles: `float`s would lose the exponent's last digits."""
    text = f"{use('pow', 'c128')}({_converted(dtype, 'c128', use)}, {use('complex', 'c128')}({exponent}, 0))"
    return text if dtype == "c128" else f"{use('narrow', dtype)}({text})"


_EXACT = frozenset({"max", "min", "clamp", "neg", "abs", "sign", "floor", "ceil", "round", "rem", "is_finite", *_COMPARED})
"""What gives halves of halves, or no floats."""


def _of_halves(op: str, attrs: Any, dtypes: Sequence[str], result: str, use: Use) -> str | None:
    one = dtypes[0]
    if op == "nextafter":
        return f"{use(op, one)}({{0}}, {{1}})"
    if op == "reduce_precision":
        exponent, mantissa = (5, 10) if one == "f16" else (8, 7)
        return f"{use('reduce', one)}({{0}}, {min(attrs.exponent_bits, exponent)}, {min(attrs.mantissa_bits, mantissa)})"
    text = template(op, attrs, ["f32" if d in HALVES else d for d in dtypes], "f32" if result in HALVES else result, use)
    if text is None or op in _EXACT:
        return text
    if text.startswith("((float)pow("):  # powers by integers are those of doubles
        return f"{use('narrow', one)}({text.removeprefix('((float)')[:-1]})"
    return f"{use('round', one)}({text})"


def _of_floats(op: str, attrs: Any, dtypes: Sequence[str], s: str, use: Use) -> str | None:
    dtype = dtypes[0]
    one = literal(dtype, 1)
    if op in _SIGNS:
        return f"({{0}} {_SIGNS[op]} {{1}})"
    if op in _CALLS:
        return _called(f"{_CALLS[op]}{s}", dtypes)
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


def _same_bits(old: str, new: str, use: Use) -> str:
    """The bits of a number as another dtype. Halves have theirs in memory alone."""
    bits_of = f"{use('save', old)}({{0}})" if old in HALVES else "{0}"
    if new in HALVES:
        return f"{use('load', new)}((uint16_t){bits_of})"
    return f"{use('bits', new, 'u16' if old in HALVES else old)}({bits_of})"


def _converted(old: str, new: str, use: Use) -> str:
    if new == old:
        return "{0}"
    if new in PARTS:
        part = CTYPES[PARTS[new]]
        return f"{use('complex', new)}(({part}){{0}}{'.re' * (old in PARTS)}, {f'({part}){{0}}.im' if old in PARTS else '0'})"
    if old in PARTS:
        if new == "bool":
            return "({0}.re != 0 || {0}.im != 0)"
        return _converted(PARTS[old], new, use).replace("{0}", "{0}.re")
    if new == "bool":
        return "({0} != 0)"
    if new in HALVES:
        return f"{use('narrow', new)}({{0}})" if old == "f64" else f"{use('round', new)}({'(float)' * (old not in FLOATS)}{{0}})"
    if old in FLOATS and new not in FLOATS:
        return f"{use('to', new, 'f32' if old in HALVES else old)}({{0}})"
    return f"(({CTYPES[new]}){{0}})"
