"""What other languages and textbooks call things, and what formulas write for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tidu_cli.errors import Remedy, did_you_mean

FUNCTIONS: Mapping[str, str] = {
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
    if plain in FUNCTIONS:
        return f"; write {FUNCTIONS[plain]}"
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
