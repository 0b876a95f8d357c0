"""Special functions, in f64, which results are rounded from: to a few units in the last place but for what is near zeros."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tidu_cli.adapters.onnx.writing.lowering import Lowering, Rule, widened
from tidu_cli.adapters.onnx.writing.lowerings.bits import odd, of_doubles, polynomial

# fmt: off
SCALED = (
    4.2514714447963895e-10, 3.1114333809799254e-10, -5.1739902140113095e-09, -3.744210080962018e-09, 3.8675334242222354e-08,
    2.3263508708859124e-08, -2.5866850716155884e-07, -5.7218230603224086e-08, 1.751637648849062e-06, -9.73559896736775e-07,
    -1.1444146237700524e-05, 2.238423915508223e-05, 5.164909889268241e-05, -0.0002901540805408417, 0.0002937136655913448,
    0.0017556258528952954, -0.009746579558029276, 0.028362277418956406, -0.05869339858963677, 0.09230432116037748,
    -0.10880393014174886, 0.0822767384901452, 0.0035854154854644293, -0.14024059858554697, 1.2375126308378275,
)
"""(1 + 2 x) erfcx(x) for x >= 0 in t = 1 - 7.5 / (x + 3.75), from 50 digits in the Chebyshev basis.

The form is that of M. Shepherd and J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x" (1981).
"""

ERF = (
    5.958930743134941e-11, -1.1373902296430911e-09, 1.4660051998394848e-08, -1.6350354461959655e-07, 1.6461004480962034e-06,
    -1.4925595519506043e-05, 0.00012055331122299266, -0.0008548326981129666, 0.005223977624823223, -0.026866170645077334,
    0.11283791670954882, -0.3761263890318375, 1.1283791670955126,
)
"""erf(x) / x for |x| <= 1 in x^2, made likewise."""

QUANTILE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
    0.246640727, 1.50140941,
)
"""The inverse of erf over x to seven digits in -log(1 - x^2) - 2.5 below 5 (M. Giles, "Approximating the erfinv function")."""

STIRLING = (
    -0.029550653594771242, 0.00641025641025641, -0.0019175269175269176, 0.0008417508417508417, -0.0005952380952380953,
    0.0007936507936507937, -0.002777777777777778, 0.08333333333333333,
)
"""B_2k / (2k (2k - 1)) from k = 8 down: Stirling's series of log gamma (DLMF 5.11.1)."""

PSI = (
    -0.4432598039215686, 0.08333333333333333, -0.021092796092796094, 0.007575757575757576, -0.004166666666666667,
    0.003968253968253968, -0.008333333333333333, 0.08333333333333333,
)
"""B_2k / 2k from k = 8 down: the series of its derivative (DLMF 5.11.2)."""
# fmt: on

SHIFT = 10
"""Arguments below this are moved up by as much, where the series have sixteen digits."""


def _gauss(low: Lowering, x: str, sign: float) -> str:
    """exp(sign x^2) for |x| up to 30, by a square that is exact and the small rest."""
    high = low.cast(low.cast(x, "f32"), "f64")
    rest = low.emit("Mul", low.emit("Sub", x, high), low.emit("Add", x, high))
    powers = [low.emit("Exp", low.emit("Mul", part, low.number(sign))) for part in (low.emit("Mul", high, high), rest)]
    return low.emit("Mul", *powers)


def _scaled(low: Lowering, x: str) -> str:
    """exp(x^2) erfc(x) for x >= 0."""
    t = low.emit("Sub", low.number(1), low.emit("Div", low.number(7.5), low.emit("Add", x, low.number(3.75))))
    return low.emit("Div", polynomial(low, SCALED, t), low.emit("Add", low.emit("Add", x, x), low.number(1)))


def _erfc_of_positive(low: Lowering, x: str) -> str:
    near = low.emit("Min", x, low.number(30))  # where nothing is left of it
    return low.emit("Mul", _gauss(low, near, -1), _scaled(low, near))


def _erfc(low: Lowering, x: str) -> str:
    tail = _erfc_of_positive(low, low.emit("Abs", x))
    other = low.emit("Sub", low.number(2), tail)
    near = low.emit("Sub", low.number(1), _erf_near(low, x))  # which does not cancel below 1/2
    far = low.emit("Where", low.emit("Less", x, low.number(0)), other, tail)
    return low.emit("Where", low.emit("Less", low.emit("Abs", x), low.number(0.25)), near, far)


def _erfcx(low: Lowering, x: str) -> str:
    scaled = _scaled(low, low.emit("Abs", x))
    near = low.emit("Max", x, low.number(-30))
    twice = low.emit("Mul", low.number(2), _gauss(low, low.emit("Min", near, low.number(0)), 1))
    return low.emit("Where", low.emit("Less", x, low.number(0)), low.emit("Sub", twice, scaled), scaled)


def _erf_near(low: Lowering, x: str) -> str:
    return low.emit("Mul", x, polynomial(low, ERF, low.emit("Mul", x, x)))


def _erf_of_positive(low: Lowering, x: str) -> str:
    near = _erf_near(low, low.emit("Min", x, low.number(1)))
    return low.emit("Where", low.emit("Less", x, low.number(0.8)), near, low.emit("Sub", low.number(1), _erfc_of_positive(low, x)))


def _quantile(low: Lowering, p: str, q: str) -> str:
    """Where erf is p and erfc q = 1 - p, of which p is read to 1/2 and q from there on: by Newton's method."""
    one = low.number(1)
    w = low.emit("Neg", low.emit("Log", low.emit("Mul", q, low.emit("Sub", low.number(2), q))))
    start = low.emit("Mul", p, polynomial(low, QUANTILE, low.emit("Sub", w, low.number(2.5))))
    size = low.emit("Neg", low.emit("Log", q))  # far out erfc y is about exp(-y^2) / (y sqrt(pi))
    root = low.emit("Sqrt", size)
    log_size = low.emit("Log", low.emit("Mul", root, low.number(math.sqrt(math.pi))))
    far = low.emit("Sqrt", low.emit("Sub", size, log_size))
    slope = low.number(math.sqrt(math.pi) / 2)

    inner = low.emit("Sub", _erf_near(low, start), p)
    inner = low.emit("Mul", low.emit("Mul", inner, slope), low.emit("Exp", low.emit("Mul", start, start)))
    inner = low.emit("Sub", start, low.emit("Div", inner, low.emit("Add", one, low.emit("Mul", start, inner))))

    y = low.emit("Where", low.emit("Less", w, low.number(5)), start, far)
    for _ in range(3):  # of log(erfc(y)) - log(q)
        scaled = _scaled(low, y)
        excess = low.emit("Add", low.emit("Sub", low.emit("Log", scaled), low.emit("Mul", y, y)), size)
        y = low.emit("Add", y, low.emit("Mul", low.emit("Mul", excess, slope), scaled))
    outer = low.emit("Where", low.emit("Equal", q, low.number(0)), low.number(math.inf), y)
    return low.emit("Where", low.emit("Less", p, low.number(0.5)), inner, outer)


def _erf_inv_of_positive(low: Lowering, x: str) -> str:
    return _quantile(low, x, low.emit("Sub", low.number(1), x))


def _erfc_inv(low: Lowering, x: str) -> str:
    one = low.number(1)
    upper = low.emit("Greater", x, one)
    q = low.emit("Where", upper, low.emit("Sub", low.number(2), x), x)
    found = _quantile(low, low.emit("Abs", low.emit("Sub", one, x)), q)
    return low.emit("Where", upper, low.emit("Neg", found), found)


def _moved(low: Lowering, size: str) -> tuple[str, str]:
    """Whether x >= 0 is moved up, and where to."""
    is_small = low.emit("Less", size, low.number(SHIFT))
    return is_small, low.emit("Where", is_small, low.emit("Add", size, low.number(SHIFT)), size)


def _series(low: Lowering, coefficients: tuple[float, ...], z: str) -> tuple[str, str]:
    """1 / z and a series in its square."""
    inverse = low.emit("Reciprocal", z)
    return inverse, polynomial(low, coefficients, low.emit("Mul", inverse, inverse))


def _product(low: Lowering, size: str, is_small: str) -> str:
    """x (x + 1) ... (x + 9) where x is small, else 1."""
    found = x = low.emit("Where", is_small, size, low.number(1))
    for k in range(1, SHIFT):
        found = low.emit("Mul", found, low.emit("Add", x, low.number(k)))
    return low.emit("Where", is_small, found, low.number(1))


def _sin_pi(low: Lowering, size: str) -> tuple[str, str]:
    """|sin(pi x)|, and the distance of x from the nearest integer."""
    rest = low.emit("Sub", size, low.emit("Round", size))
    return low.emit("Abs", low.emit("Sin", low.emit("Mul", rest, low.number(math.pi)))), rest


def _lgamma(low: Lowering, x: str) -> str:
    """log|gamma(x)|: Stirling's series, the recurrence below it, and the reflection of negative numbers (DLMF 5.5.3)."""
    size = low.emit("Abs", x)
    is_small, z = _moved(low, size)
    inverse, series = _series(low, STIRLING, z)
    rest = low.emit("Add", low.emit("Mul", inverse, series), low.number(math.log(2 * math.pi) / 2 - 0.5))
    log_z = low.emit("Sub", low.emit("Log", z), low.number(1))
    found = low.emit("Add", low.emit("Mul", low.emit("Sub", z, low.number(0.5)), log_z), rest)
    found = low.emit("Sub", found, low.emit("Log", _product(low, size, is_small)))
    infinity = low.number(math.inf)
    sine, _ = _sin_pi(low, size)
    logs = low.emit("Add", low.emit("Log", low.emit("Div", sine, low.number(math.pi))), low.emit("Log", size))
    reflected = low.emit("Neg", low.emit("Add", logs, found))
    reflected = low.emit("Where", low.emit("Equal", sine, low.number(0)), infinity, reflected)
    found = low.emit("Where", low.emit("Less", x, low.number(0)), reflected, found)
    return low.emit("Where", low.emit("Equal", size, infinity), infinity, found)


def _gamma(low: Lowering, x: str) -> str:
    """gamma, by Stirling's series, the recurrence and the reflection; NaN at negative integers."""
    size, zero, one = low.emit("Abs", x), low.number(0), low.number(1)
    is_small, z = _moved(low, size)
    inverse, series = _series(low, STIRLING, z)
    half = low.emit("Mul", low.emit("Sub", z, low.number(0.5)), low.number(0.5))
    root = low.emit("Pow", z, half)  # of z^(z - 1/2), which overflows before the result does
    scale = low.emit("Mul", low.emit("Exp", low.emit("Mul", inverse, series)), low.number(math.sqrt(2 * math.pi)))
    found = low.emit("Mul", low.emit("Mul", low.emit("Mul", root, low.emit("Exp", low.emit("Neg", z))), root), scale)
    found = low.emit("Div", found, _product(low, size, is_small))
    found = low.emit("Where", low.emit("Greater", size, low.number(172)), low.number(math.inf), found)
    sine, rest = _sin_pi(low, size)
    halves = low.emit("Mul", low.emit("Round", size), low.number(0.5))
    is_odd = low.emit("Greater", low.emit("Sub", halves, low.emit("Floor", halves)), zero)
    is_up = low.emit("Equal", is_odd, low.emit("Less", rest, zero))  # whether sin(pi |x|) is positive
    signed = low.emit("Where", is_up, low.emit("Neg", sine), sine)
    reflected = low.emit("Div", low.emit("Div", low.emit("Div", low.number(math.pi), found), signed), size)
    reflected = low.emit("Where", low.emit("Equal", sine, zero), low.number(math.nan), reflected)
    found = low.emit("Where", low.emit("Less", x, zero), reflected, found)
    return low.emit("Where", low.emit("Equal", x, zero), low.emit("Div", one, x), found)


def _digamma(low: Lowering, x: str) -> str:
    """The derivative of log gamma, likewise; NaN at zero and negative integers."""
    size = low.emit("Abs", x)
    is_small, z = _moved(low, size)
    inverse, series = _series(low, PSI, z)
    square = low.emit("Mul", inverse, inverse)
    correction = low.emit("Add", low.emit("Mul", inverse, low.number(0.5)), low.emit("Mul", square, series))
    found = low.emit("Sub", low.emit("Log", z), correction)
    start = low.emit("Where", is_small, size, low.number(1))
    below = low.emit("Reciprocal", low.emit("Add", start, low.number(SHIFT - 1)))
    for k in reversed(range(SHIFT - 1)):
        below = low.emit("Add", below, low.emit("Reciprocal", low.emit("Add", start, low.number(k))))
    found = low.emit("Where", is_small, low.emit("Sub", found, below), found)
    _, rest = _sin_pi(low, size)
    angle = low.emit("Mul", rest, low.number(math.pi))
    turn = low.emit("Mul", low.number(math.pi), low.emit("Div", low.emit("Cos", angle), low.emit("Sin", angle)))
    reflected = low.emit("Add", low.emit("Add", found, low.emit("Reciprocal", size)), turn)
    reflected = low.emit("Where", low.emit("Equal", rest, low.number(0)), low.number(math.nan), reflected)
    return low.emit("Where", low.emit("LessOrEqual", x, low.number(0)), reflected, found)


SINGLE = {"f16": "f64", "bf16": "f64", "f32": "f64"}

LOWERINGS: Mapping[str, Rule] = {
    "digamma": widened(_digamma, **SINGLE),
    "erf": of_doubles(odd(_erf_of_positive), widened(lambda low, x: low.emit("Erf", x), bf16="f32")),
    "erf_inv": widened(odd(_erf_inv_of_positive), **SINGLE),
    "erfc": widened(_erfc, **SINGLE),
    "erfc_inv": widened(_erfc_inv, **SINGLE),
    "erfcx": widened(_erfcx, **SINGLE),
    "gamma": widened(_gamma, **SINGLE),
    "lgamma": widened(_lgamma, **SINGLE),
}
