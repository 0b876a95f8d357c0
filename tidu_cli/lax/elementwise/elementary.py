"""Elementary functions: exponentials, logarithms and roots, and what is made of them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tidu_cli.graph.types import COMPLEXES, FLOATS, INEXACT, NUMERIC
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.contract import Kernel, Types
from tidu_cli.rules.families import numpy_function, through_f32, unary
from tidu_cli.rules.flops import multiplying, per_element
from tidu_cli.rules.terms import op

exp, integer_pow = op("exp"), op("integer_pow")


def _complex_exp2(np: Any, z: Any) -> Any:
    # By parts, as a product with ln 2 would cost 2^Re z its digits; in double, so that it does not cost c64 those of the angle.
    size, angle = np.exp2(z.real, dtype=np.float64), z.imag * np.float64(math.log(2))
    power = np.empty(np.shape(z), z.dtype)
    power.real, power.imag = size * np.cos(angle), np.where(angle == 0, z.imag, size * np.sin(angle))
    return power


def _complex_expm1(np: Any, z: Any) -> Any:
    from scipy import special  # type: ignore[import-untyped]  # slow to import

    return special.expm1(z)  # infinite parts as C99 has them for exp, where NumPy's gives NaN


def _complex_log1p(np: Any, z: Any) -> Any:
    from scipy import special

    # NumPy's loses Re near z = 0. SciPy's does not, but loses the sign of Im z = -0, which is the side of the branch cut.
    logarithm = np.array(special.log1p(z))
    logarithm.imag = np.copysign(logarithm.imag, z.imag)
    return logarithm


def _complex_logistic(np: Any, z: Any) -> Any:
    right = z.real >= 0
    e = np.exp(np.where(right, -z, z))
    return (np.where(right, np.ones_like(e), e) / (1 + e)).astype(z.dtype, copy=False)


def _logistic_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    """Kernels of exp of a negative number only: nothing overflows, and the far left tail keeps its digits."""
    if operands[0].complex:
        return partial(_complex_logistic, np)
    dtype = numpy_dtype(np, operands[0].dtype)
    one, exp = dtype.type(1), through_f32(np, np.exp) if operands[0].dtype == "f16" else np.exp

    def of_scalar(x: Any) -> Any:
        e = exp(-abs(x))
        return (one if x >= 0 else e) / (one + e)

    def of_array(x: Any) -> Any:
        e = exp(-np.abs(x))
        return np.maximum(e, (x >= 0).astype(dtype)) / (one + e)  # e is at most 1

    return of_array if operands[0].rank else of_scalar


def _rsqrt_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    if not operands[0].complex:
        return lambda x: 1 / np.sqrt(x)

    def rsqrt(z: Any) -> Any:
        inverse = np.array(1 / np.sqrt(z))
        inverse[z == 0], inverse[np.isinf(z)] = complex(np.inf, np.nan), 0
        return inverse

    return rsqrt


def _complex_square(np: Any, z: Any) -> Any:
    # x^2 - y^2 would cancel, and overflow too soon.
    square = np.empty(np.shape(z), z.dtype)
    square.real, square.imag = (z.real - z.imag) * (z.real + z.imag), 2 * (z.real * z.imag)
    return square


_EXP2 = numpy_function("exp2", COMPLEXES, _complex_exp2)
_EXPM1 = numpy_function("expm1", COMPLEXES, _complex_expm1)
_LOG1P = numpy_function("log1p", COMPLEXES, _complex_log1p)
_SQUARE = numpy_function("square", COMPLEXES, _complex_square)

PRIMITIVES = (
    unary("exp", INEXACT, "e^x", "exponential", slope=lambda x, y: y),
    unary("exp2", INEXACT, "2^x", "exponential with base 2", slope=lambda x, y: y * math.log(2), kernel=_EXP2),
    # Not y + 1, which has lost its digits far on the left.
    unary("expm1", INEXACT, "e^x - 1", "exponential less 1, accurate near x = 0", slope=lambda x, y: exp(x), kernel=_EXPM1),
    unary("log", INEXACT, "ln x", "natural logarithm", tangent=lambda t, x, y: t / x, within=((0.5, 2.0),)),
    unary(
        "log1p",
        INEXACT,
        "ln(1 + x)",
        "logarithm, accurate near x = 0",
        tangent=lambda t, x, y: t / (x + 1),
        kernel=_LOG1P,
        within=((-0.5, 2.0),),
    ),
    unary("logistic", INEXACT, "1 / (1 + e^-x)", "logistic sigmoid", slope=lambda x, y: y * (1 - y), kernel=_logistic_kernel),
    unary("sqrt", INEXACT, "x^(1/2)", "square root", slope=lambda x, y: 0.5 / y, within=((0.5, 2.0),)),
    unary(
        "rsqrt",
        INEXACT,
        "x^(-1/2)",
        "reciprocal of the square root",
        slope=lambda x, y: y / x * -0.5,
        kernel=_rsqrt_kernel,
        within=((0.5, 2.0),),
    ),
    unary(
        "cbrt",
        FLOATS,
        "x^(1/3)",
        "cube root; of negative numbers the negative one",
        slope=lambda x, y: integer_pow(y, y=-2) * (1 / 3),
        within=((0.5, 2.0),),
    ),
    unary("square", NUMERIC, "x^2", "square", slope=lambda x, y: x * 2.0, kernel=_SQUARE, flops=per_element(multiplying)),
)
