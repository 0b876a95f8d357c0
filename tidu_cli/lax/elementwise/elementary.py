"""Elementary functions: exponentials, logarithms and roots; trigonometric and hyperbolic functions with their inverses.

The branch cuts of the inverses, and which side of a cut belongs to which sign of zero, are those of C99 and NumPy, after W. Kahan,
"Branch cuts for complex elementary functions, or: Much ado about nothing's sign bit" (1987). The derivatives are written so that
they lie on the same side as the values: z - (-1) keeps the sign of Im z = -0, where z + 1 and 1 - z lose it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from tidu_cli.graph.types import COMPLEXES, FLOATS, INEXACT, NUMERIC
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.rules.analysis import multiplying, per_element
from tidu_cli.rules.contract import JVP, Kernel, KinksRule, Types
from tidu_cli.rules.families import elementwise, numpy_function, summed, through_f32, unary
from tidu_cli.rules.terms import Term, op

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

_abs, cos, cosh, is_finite, maximum, rsqrt, select_n, sin, sinh, square, stop_gradient = map(
    op, ("abs", "cos", "cosh", "is_finite", "max", "rsqrt", "select_n", "sin", "sinh", "square", "stop_gradient")
)


def _asin_slope(x: Term, y: Term) -> Term:
    # (1 - x)(1 + x) keeps its digits where 1 - x^2 would lose them, near the branch points.
    if x.type.complex:
        return rsqrt(-(x - 1)) * rsqrt(x - -1)
    return rsqrt((1 - x) * (1 + x))


def _atan_slope(x: Term, y: Term) -> Term:
    return 1 / (x - 1j) / (x + 1j) if x.type.complex else 1 / (square(x) + 1)


def _asinh_slope(x: Term, y: Term) -> Term:
    return rsqrt((x - 1j) * (x - complex(0, -1))) if x.type.complex else rsqrt(square(x) + 1)


def _acosh_slope(x: Term, y: Term) -> Term:
    if x.type.complex:
        return rsqrt(x - 1) * rsqrt(x - -1)  # not the root of the product, which has the wrong sign where Re z < 0
    return rsqrt((x - 1) * (x + 1))


def _atanh_slope(x: Term, y: Term) -> Term:
    return 1 / (1 + x) / (1 - x)


def _complex_atan2(np: Any, y: Any, x: Any) -> Any:
    # -i log(e^it), where e^it = (x + iy) / r; near it = 0 the logarithm has lost its digits, and t is 2 atan(y / (r + x)).
    shape = np.shape(x)
    y, x = np.atleast_1d(y, x)  # operators on NumPy's complex scalars round otherwise
    size = np.maximum(np.abs(x), np.abs(y))
    x, y = x / size, y / size
    r = np.sqrt(np.square(x) + np.square(y))
    turn = (x + 1j * y) / r
    angle = np.where((x / r).real > 0, 2 * np.arctan(y / (r + x)), -1j * np.log(turn))
    return angle.astype(r.dtype, copy=False).reshape(shape)


def _atan2_jvp(node: JVP) -> Sequence[Term | None]:
    # d atan2(y, x) = (x dy - y dx) / (x^2 + y^2).
    (y, x), (ty, tx), size = node.operands, node.tangents, None
    if not x.type.complex:
        # Scaled, so that the squares neither overflow nor vanish. As the scale drops out, so does its derivative.
        size = maximum(_abs(stop_gradient(x)), _abs(stop_gradient(y)))
        size = select_n(is_finite(size), 1, size)
        y, x = y / size, x / size
    norm = square(x) + square(y)

    def weight(part: Term) -> Term:
        return part / norm if size is None else part / norm / size

    return [summed([None if ty is None else weight(x) * ty, None if tx is None else -weight(y) * tx])]


def _steep(*places: float, pytorch: str | None = None, onnx: str | None = "") -> KinksRule:
    return lambda k: [k.Kink(k.at(*places), f"operand is {' or '.join(map(str, places))}", "infinite", pytorch=pytorch, onnx=onnx)]


_INSIDE, _RIGHT = ((-0.75, 0.75),), ((1.5, 3.0),)

PRIMITIVES = (
    unary("exp", INEXACT, "e^x", "exponential", slope=lambda x, y: y),
    unary("exp2", INEXACT, "2^x", "exponential with base 2", slope=lambda x, y: y * math.log(2), kernel=_EXP2),
    # Not y + 1, which has lost its digits far on the left.
    unary("expm1", INEXACT, "e^x - 1", "exponential less 1, accurate near x = 0", slope=lambda x, y: exp(x), kernel=_EXPM1),
    unary(
        "log", INEXACT, "ln x", "natural logarithm", tangent=lambda t, x, y: t / x, within=((0.5, 2.0),), kinks=_steep(0, onnx=None)
    ),
    unary(
        "log1p",
        INEXACT,
        "ln(1 + x)",
        "logarithm, accurate near x = 0",
        tangent=lambda t, x, y: t / (x + 1),
        kernel=_LOG1P,
        kinks=_steep(-1),
        within=((-0.5, 2.0),),
    ),
    unary("logistic", INEXACT, "1 / (1 + e^-x)", "logistic sigmoid", slope=lambda x, y: y * (1 - y), kernel=_logistic_kernel),
    unary(
        "sqrt",
        INEXACT,
        "x^(1/2)",
        "square root",
        slope=lambda x, y: 0.5 / y,
        within=((0.5, 2.0),),
        kinks=_steep(0, pytorch="infinite; norm 0", onnx=None),
    ),
    unary(
        "rsqrt",
        INEXACT,
        "x^(-1/2)",
        "reciprocal of the square root",
        slope=lambda x, y: y / x * -0.5,
        kernel=_rsqrt_kernel,
        kinks=_steep(0),
        within=((0.5, 2.0),),
    ),
    unary(
        "cbrt",
        FLOATS,
        "x^(1/3)",
        "cube root; of negative numbers the negative one",
        slope=lambda x, y: integer_pow(y, y=-2) * (1 / 3),
        kinks=_steep(0, pytorch=""),
        within=((0.5, 2.0),),
    ),
    unary("square", NUMERIC, "x^2", "square", slope=lambda x, y: x * 2.0, kernel=_SQUARE, flops=per_element(multiplying)),
    unary("sin", INEXACT, "sin x", "sine", slope=lambda x, y: cos(x)),
    unary("cos", INEXACT, "cos x", "cosine", slope=lambda x, y: -sin(x)),
    unary("tan", INEXACT, "tan x", "tangent", slope=lambda x, y: square(y) + 1, within=((-1.0, 1.0),)),
    unary("asin", INEXACT, "arcsin x", "inverse sine", slope=_asin_slope, kernel="arcsin", within=_INSIDE, kinks=_steep(-1, 1)),
    unary(
        "acos",
        INEXACT,
        "arccos x",
        "inverse cosine",
        slope=lambda x, y: -_asin_slope(x, y),
        kernel="arccos",
        within=_INSIDE,
        kinks=_steep(-1, 1),
    ),
    unary("atan", INEXACT, "arctan x", "inverse tangent", slope=_atan_slope, kernel="arctan", within=_INSIDE),
    elementwise(
        "atan2",
        2,
        INEXACT,
        _atan2_jvp,
        kernel=numpy_function("arctan2", COMPLEXES, _complex_atan2),
        within=((-2.0, 2.0), (0.5, 2.0)),
        formula="arctan(x / y), in the quadrant of the point (y, x)",
        kinks=lambda k: [k.Kink(k.origin, "both operands are 0", "NaN", pytorch="0", onnx="")],
        summary="angle of a point, its ordinate first; of complex numbers -i ln((y + ix) / √(x^2 + y^2))",
    ),
    unary("sinh", INEXACT, "sinh x", "hyperbolic sine", slope=lambda x, y: cosh(x)),
    unary("cosh", INEXACT, "cosh x", "hyperbolic cosine", slope=lambda x, y: sinh(x)),
    # (1 - y)(1 + y) keeps its digits where 1 - y^2 would lose them, y near 1.
    unary("tanh", INEXACT, "tanh x", "hyperbolic tangent", slope=lambda x, y: (1 - y) * (1 + y)),
    unary("asinh", INEXACT, "arsinh x", "inverse hyperbolic sine", slope=_asinh_slope, kernel="arcsinh", within=_INSIDE),
    unary(
        "acosh",
        INEXACT,
        "arcosh x",
        "inverse hyperbolic cosine",
        slope=_acosh_slope,
        kernel="arccosh",
        within=_RIGHT,
        kinks=_steep(1),
    ),
    unary(
        "atanh",
        INEXACT,
        "artanh x",
        "inverse hyperbolic tangent",
        slope=_atanh_slope,
        kernel="arctanh",
        within=_INSIDE,
        kinks=_steep(-1, 1),
    ),
)
