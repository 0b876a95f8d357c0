"""The names of the formula language: its constants and its functions, and what other languages and textbooks call them.

What is not in the tables of constants and functions is refused; of names of others the refusal says what formulas write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import NUMBERS, arrays_in, lift
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import SCIPYS, apply_ufunc, apply_ufunc_all, ufunc_named
from tidu_cli.adapters.numpy.numpy.functions import ALIASES, FUNCTIONS
from tidu_cli.adapters.numpy.numpy.linear_algebra.systems import solve_triangular
from tidu_cli.adapters.numpy.numpy.putting import WRITING
from tidu_cli.adapters.numpy.numpy.reductions import series
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.errors import Remedy, TypeTextError, did_you_mean
from tidu_cli.graph.literals import literal_from_numbers
from tidu_cli.graph.sizes.open import OpenSize, larger
from tidu_cli.graph.types import DATETIME, DURATION, UNITS, TensorType

FOREIGN: Mapping[str, str] = {
    # Activations, which networks have by name.
    "relu": "maximum(x, 0)", "relu6": "clip(x, 0, 6)", "leaky_relu": "where(x > 0, x, 0.01 * x)",
    "elu": "where(x > 0, x, expm1(x))",
    "silu": "x * sigmoid(x)", "swish": "x * sigmoid(x)", "softplus": "logaddexp(x, 0)", "gelu": "x * ndtr(x)",
    "softsign": "x / (1 + abs(x))", "hardtanh": "clip(x, -1, 1)", "mish": "x * tanh(logaddexp(x, 0))", "logsigmoid": "log_expit(x)",
    # Logarithms, powers and roots.
    "ln": "log(x)", "lg": "log10(x)", "ld": "log2(x)", "lb": "log2(x)", "logn": "log(x)", "sqr": "x**2", "sq": "x**2",
    "squared": "x**2", "cube": "x**3", "root": "sqrt(x)", "rsqrt": "1 / sqrt(x)", "recip": "1 / x", "inverse": "1 / x",
    # Trigonometry.
    "tg": "tan(x)", "ctg": "1 / tan(x)", "cot": "1 / tan(x)", "ctan": "1 / tan(x)", "cotan": "1 / tan(x)", "sec": "1 / cos(x)",
    "csc": "1 / sin(x)", "cosec": "1 / sin(x)", "sech": "1 / cosh(x)", "csch": "1 / sinh(x)", "coth": "1 / tanh(x)",
    "arctg": "arctan(x)", "arcctg": "arctan(1 / x)", "acot": "arctan(1 / x)", "asec": "arccos(1 / x)", "acsc": "arcsin(1 / x)",
    "sh": "sinh(x)", "ch": "cosh(x)", "th": "tanh(x)", "sinus": "sin(x)", "cosine": "cos(x)", "tangent": "tan(x)",
    "arsinh": "arcsinh(x)",
    "arcosh": "arccosh(x)", "artanh": "arctanh(x)", "sind": "sin(radians(x))", "cosd": "cos(radians(x))", "tand": "tan(radians(x))",
    # Rounding, signs and steps.
    "sgn": "sign(x)", "signum": "sign(x)", "step": "heaviside(x, 0.5)", "theta": "heaviside(x, 0.5)", "magnitude": "abs(x)",
    "mag": "abs(x)", "modulus": "abs(x)", "ceiling": "ceil(x)", "int": "trunc(x)", "frac": "x - floor(x)",
    "clamp": "clip(x, 0, 1)", "saturate": "clip(x, 0, 1)", "bound": "clip(x, 0, 1)",
    # Choices, sums and means.
    "if": "where(x > 0, x, 0)", "ifelse": "where(x > 0, x, 0)", "iif": "where(x > 0, x, 0)", "piecewise": "where(x > 0, x, 0)",
    "avg": "mean(x)", "total": "sum(x)", "product": "prod(x)", "stdev": "std(x)", "variance": "var(x)",
    "pmax": "maximum(x, 0)", "pmin": "minimum(x, 0)", "hypotenuse": "hypot(x, x)",
    # Special functions.
    "factorial": "gamma(x + 1)", "fact": "gamma(x + 1)", "lngamma": "gammaln(x)", "gammafn": "gamma(x)",
    "erfinverse": "erfinv(x)", "normcdf": "ndtr(x)", "pnorm": "ndtr(x)", "phi": "ndtr(x)", "qnorm": "ndtri(x)",
    "probit": "ndtri(x)",
    "arccot": "arctan(1 / x)", "arcsec": "arccos(1 / x)", "arccsc": "arcsin(1 / x)", "sen": "sin(x)",
    "rem": "fmod(x, y)", "fma": "x * y + x", "lerp": "x + 0.5 * (y - x)", "mix": "x + 0.5 * (y - x)",
    "smoothstep": "x**2 * (3 - 2 * x)",
    "comb": "binom(x, y)", "choose": "binom(x, y)", "ncr": "binom(x, y)", "nchoosek": "binom(x, y)",
    "rms": "sqrt(mean(x**2))", "cond": "where(x > 0, x, 0)",
    "besselj0": "j0(x)", "besselj1": "j1(x)", "bessely0": "y0(x)", "bessely1": "y1(x)",
}  # fmt: skip
"""Names of functions in small letters, and what to write."""

NOT_HERE: Mapping[str, str] = {
    "grad": "tidu grad derives the graph", "d": "tidu grad derives the graph",
    "derivative": "tidu derivative derives the graph", "integrate": "write a sum over a grid", "print": "tidu show lists a graph",
    "random": "give random numbers as an input", "rand": "give random numbers as an input",
    "randn": "give random numbers as an input",
    **dict.fromkeys(("fixed_point", "linear_solve", "scan", "fori_loop", "while_loop"), "write a function of Python, in FILE.py"),
}  # fmt: skip
"""What formulas do not do, and what does."""

NAMES: Mapping[str, str] = {
    "π": "pi", "m_pi": "pi", "m_e": "e", "euler": "e", "infinity": "inf", "infty": "inf", "true": "True",
    "false": "False", "i": "1j", "j": "1j", "ⅈ": "1j", "im": "1j",
}  # fmt: skip
"""Names of constants in small letters, and what to write."""

SYNTAX: Sequence[tuple[str, str]] = (
    (r"&&", "write & for &&, with parentheses: (x > 0) & (y > 0)"),
    (r"\|\|", "write | for ||, with parentheses: (x > 0) | (y > 0)"),
    (r"%\*%", "write @ for a product of matrices"),
    (r"%%", "write x % 2 for a remainder"),
    (r"\bmod\b", "write mod(x, 2) for a remainder"),
    (r"\.\*|\./|\.\^", "write * / ** without a dot: they are elementwise"),
    (r"\^", "write ** for a power: x**2"),
    (r"\?.*:", "write where(x > 0, x, 0) for x > 0 ? x : 0"),
    (r"\bif\b.*\bthen\b", "write where(x > 0, x, 0) for if ... then ... else"),
    (r"<>", "write != for <>"),
    (r"!(?!=)", "write ~(x > 0) for not, and gamma(x + 1) for x!"),
    (r"[²³⁴⁵⁶⁷⁸⁹½]", "write x**2 for x²"),
    (r"[√∛]", "write sqrt(x) for √x"),
    (r"[×·⋅∙]", "write * for a product"),
    (r"∞", "write inf for ∞"),
    (r"[÷]", "write / for ÷"),
    (r"[−–—]", "write - for minus: this is another character"),
    (r"[≤≥≠]", "write <=, >= or !="),
    (r"\\frac", r"write x / y for \frac{x}{y}"),
    (r"\\(?:cdot|times)", "write * for a product"),
    (r"\\\w+", "write functions by their names, without a backslash: sin(x)"),
    (r"\d[dD][-+]?\d", "write e for the exponent: 1.0e3"),
    (r"\|[^|]+\|", "write abs(x) for |x|"),
    (r"'", "write transpose(x) for x'"),
    (r"\b\d+(?:\.\d*)?\s*[A-Za-z_(]", "write * for a product: 2*x"),
    (r"\)\s*[A-Za-z\d_]", "write * for a product: sin(x)*cos(x)"),
    (r"\b[A-Za-z_]\w*\s+[A-Za-z_\d]", "write parentheses around what a function is of, sin(x), and * for a product, x*y"),
    (r"\w\[", "write parentheses around what a function is of: exp(x)"),
)
"""What a text that Python cannot parse has in it, and what to write; the first that is there counts."""


def instead_of(name: str, known: Sequence[str]) -> str:
    """A hint `; write ...` for a function that formulas have not, by another language's word or a misspelling, or nothing."""
    plain = name.lower()
    if plain in FOREIGN:
        return f"; write {FOREIGN[plain]}"
    if plain in NOT_HERE:
        return f"; {NOT_HERE[plain]}"
    if plain in known:
        return f"; did you mean {plain!r}?"
    return did_you_mean(name, list(known), alike=0.85)


def instead_of_name(name: str, known: Sequence[str]) -> str:
    """A hint `; write ...` for a name that is neither an input nor a constant, or nothing."""
    instead = NAMES.get(name.lower()) or (name.lower() if name.lower() in ("pi", "inf", "nan") else None)
    if instead:
        way = Remedy(name, f"{name}:TYPE", flag="-i", python=f"{name}='f64[]'")
        return f"; write {instead}" if instead != "1j" else f"; write 1j for the imaginary unit, or give it a type with {way}"
    if name in ("np", "numpy", "math", "Math", "scipy", "jnp", "torch"):
        return "; functions and constants go without a module: sin(x), pi"
    # Of names as short as these any two are alike.
    return did_you_mean(name, list(known), alike=0.75) if len(name) > 2 else ""


def syntax_fault(text: str, error: SyntaxError) -> str:
    """What Python's parser has against a text that is no formula, and a hint `; write ...` where one is known."""
    hint = next((f"; {hint}" for pattern, hint in SYNTAX if re.search(pattern, text)), "")
    line, at = (error.text or text).rstrip(), (error.offset or 1) - 1
    if error.msg.endswith("was never closed"):
        return f"{error.msg}; add the bracket that closes it"
    if "match" in error.msg:  # brackets
        return error.msg
    if error.msg != "invalid syntax":
        return f"{error.msg}{hint}"
    if at >= len(line):
        return f"is unfinished: something must follow '{line[-12:]}'{hint}"
    return f"'{line[at : at + 12]}' cannot stand here{hint}"


CONSTANTS: Mapping[str, Any] = {"pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "True": True, "False": False}
"""Names that formulas may use besides those of inputs."""

OTHER_NAMES: Mapping[str, str] = {
    "sigmoid": "expit", "logistic": "expit", "erf_inv": "erfinv", "lgamma": "gammaln", "digamma": "psi",
    "igamma": "gammainc", "igammac": "gammaincc",
}  # fmt: skip
"""Names of ufuncs that are only the formulas'."""

_HIDDEN = frozenset(
    {"diag_indices_from", "tril_indices_from", "triu_indices_from",
     "shape", "ndim", "result_type", "can_cast", "iscomplexobj", "isrealobj", "asarray", "copy", "empty_like", "astype",
     "array_equal", "sliding_window_view", "histogram", "histogram2d", "histogramdd", *WRITING}
)  # fmt: skip
"""What makes sense for functions only: it gives no arrays, or stands under another name."""

OPTIONS_REFUSED = frozenset({"out", "casting", "order", "subok", "where", "device", "like", "copy", "optimize"})
"""Options of NumPy's that say nothing about a graph, or that have another form."""


class Several(tuple[Array, ...]):
    """The results of a function that gives several."""

    __slots__ = ()


@lru_cache(maxsize=1)
def function_names() -> tuple[str, ...]:
    """The functions that formulas may call."""
    plain = {name for name in FUNCTIONS if "." not in name and name not in _HIDDEN}
    return tuple(sorted(plain | set(ALIASES) | set(SCIPYS) | set(OTHER_NAMES) | set(CREATION) | set(_OWN)))


def function_named(name: str) -> Callable[..., Any] | None:
    """The function of that name, None if formulas have none. Those of `CREATION` also take a recorder, which comes first."""
    own = CREATION.get(name) or _OWN.get(name)
    if own is not None:
        return own
    name = OTHER_NAMES.get(name, name)
    name = ALIASES.get(name, name)
    if name in UFUNCS or (name in SCIPYS and name not in FUNCTIONS):
        arity, several = ufunc_named(name).nin, ufunc_named(name).nout > 1

        def apply(*operands: Any) -> Any:
            if len(operands) != arity:
                raise BuildError(f"{name} takes {arity} argument{'s' if arity != 1 else ''}, got {len(operands)}")
            return apply_ufunc_all(name, *operands) if several else apply_ufunc(name, *operands)

        return apply
    return FUNCTIONS.get(name) if "." not in name and name not in _HIDDEN else None


def recorded(recorder: Recorder, value: Any) -> Array:
    """A value of the language as an Array. Raises BuildError for what is neither an array nor a number nor a list of these."""
    if isinstance(value, Array):
        return value
    held = arrays_in([value])
    if held:
        return lift(value, held[0])
    if isinstance(value, OpenSize):
        from tidu_cli.adapters.numpy.arrays.sizes import number_of  # which formulas of fixed sizes do without

        return number_of(recorder, value)
    if isinstance(value, (*NUMBERS, list, tuple)):
        return recorder.constant(np.asarray(value))
    raise BuildError("not an array or a number")


def _array(recorder: Recorder, values: Any, dtype: Any = None) -> Array:
    array = recorded(recorder, values)
    return array if dtype is None else array.convert(dtype)


def _full(recorder: Recorder, shape: Any, value: Any = 0.0, dtype: Any = None) -> Array:
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not all(isinstance(n, OpenSize) or (isinstance(n, int) and n >= 0) for n in sizes):
        raise ValueError("a shape is of integers from 0 up")
    return _array(recorder, value, dtype).broadcast(sizes)


def _arange(recorder: Recorder, start: int, stop: int | None = None, step: int = 1, dtype: Any = None) -> Array:
    start, stop = (0, start) if stop is None else (start, stop)
    if isinstance(start, OpenSize) or isinstance(stop, OpenSize):
        from tidu_cli.adapters.numpy.arrays.sizes import counted as places

        return places(recorder, start, stop, step, dtype)
    if not all(isinstance(n, int) for n in (start, stop, step)) or not step:
        raise ValueError("arange takes integers; write linspace for floats")
    n = len(range(start, stop, step))
    counted = recorder.emit("iota", dtype="i64", shape=(n,), dimension=0)
    multiples = counted if step == 1 else counted * step
    return (multiples if start == 0 else multiples + start).convert(dtype or np.dtype(np.int64))


def _linspace(recorder: Recorder, start: Any, stop: Any, num: int = 50, **options: Any) -> Array:
    if arrays_in([start, stop]):
        return series.linspace(start, stop, num, **options)
    if options:
        raise ValueError(f"linspace of numbers takes no {next(iter(options))}=")
    if not isinstance(num, int | OpenSize) or not num >= 1:
        raise ValueError("linspace takes a number of points from 1 up")
    counted = recorder.emit("iota", dtype="f64", shape=(num,), dimension=0)
    points: Array = counted * ((stop - start) / larger(num - 1, 1)) + start
    return points


def _eye(recorder: Recorder, n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    shape = (n, n if m is None else m)
    rows, columns = (recorder.emit("iota", dtype="i64", shape=shape, dimension=d) for d in (0, 1))
    return ((columns - rows) == k).convert(dtype or np.dtype(np.float64))


def _datetime(recorder: Recorder, text: object, unit: object = None) -> Array:
    """A point in time, in a unit or else in the longest that counts it; as it meets others, the shorter of both units is taken."""
    if not isinstance(text, str):
        raise ValueError("a point in time is text, such as datetime64('2026-01-31T12:00')")
    if unit is not None:
        return _time(recorder, DATETIME, [text], unit)
    for unit in UNITS[:-1]:
        with suppress(TypeTextError):
            return _time(recorder, DATETIME, [text], unit)
    return _time(recorder, DATETIME, [text], UNITS[-1])


def _duration(recorder: Recorder, count: object, unit: object = None) -> Array:
    if isinstance(count, bool) or not isinstance(count, int | float):
        raise ValueError("a span of time is a number and a unit, such as timedelta64(1, 'h')")
    return _time(recorder, DURATION, [count], unit)


def _time(recorder: Recorder, kind: str, numbers: list[object], unit: object) -> Array:
    if unit not in UNITS:
        raise ValueError(f"the unit of a time is one of {', '.join(UNITS)}, as text: timedelta64(1, 'h')")
    return recorder.emit("constant", value=literal_from_numbers(TensorType(f"{kind}[{unit}]"), numbers))


CREATION: Mapping[str, Callable[..., Array]] = {
    "zeros": lambda recorder, shape, dtype=None: _full(recorder, shape, 0.0, dtype),
    "ones": lambda recorder, shape, dtype=None: _full(recorder, shape, 1.0, dtype),
    "full": _full,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "array": _array,
    "datetime64": _datetime,
    "timedelta64": _duration,
}

_OWN: Mapping[str, Callable[..., Any]] = {
    **{name: FUNCTIONS[f"linalg.{name}"] for name in ("norm", "solve", "inv", "det", "slogdet", "cholesky", "matrix_power")},
    "solve_triangular": solve_triangular,
    "convert": lambda x, dtype: x.convert(np.dtype(dtype)),
    "stop_gradient": lambda x: x.emit("stop_gradient"),
}
