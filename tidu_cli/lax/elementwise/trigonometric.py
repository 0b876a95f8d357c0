"""Trigonometric and hyperbolic functions: with their inverses.

The branch cuts of the inverses, and which side of a cut belongs to which sign of zero, are those of C99 and NumPy, after W. Kahan,
"Branch cuts for complex elementary functions, or: Much ado about nothing's sign bit" (1987). The derivatives are written so that
they lie on the same side as the values: z - (-1) keeps the sign of Im z = -0, where z + 1 and 1 - z lose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.graph.types import COMPLEXES, INEXACT
from tidu_cli.rules.contract import JVP
from tidu_cli.rules.families import elementwise, numpy_function, summed, unary
from tidu_cli.rules.terms import Term, op

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


_INSIDE, _RIGHT = ((-0.75, 0.75),), ((1.5, 3.0),)

PRIMITIVES = (
    unary("sin", INEXACT, "sin x", "sine", slope=lambda x, y: cos(x)),
    unary("cos", INEXACT, "cos x", "cosine", slope=lambda x, y: -sin(x)),
    unary("tan", INEXACT, "tan x", "tangent", slope=lambda x, y: square(y) + 1, within=((-1.0, 1.0),)),
    unary("asin", INEXACT, "arcsin x", "inverse sine", slope=_asin_slope, kernel="arcsin", within=_INSIDE),
    unary("acos", INEXACT, "arccos x", "inverse cosine", slope=lambda x, y: -_asin_slope(x, y), kernel="arccos", within=_INSIDE),
    unary("atan", INEXACT, "arctan x", "inverse tangent", slope=_atan_slope, kernel="arctan", within=_INSIDE),
    elementwise(
        "atan2",
        2,
        INEXACT,
        _atan2_jvp,
        kernel=numpy_function("arctan2", COMPLEXES, _complex_atan2),
        within=((-2.0, 2.0), (0.5, 2.0)),
        formula="arctan(x / y), in the quadrant of the point (y, x)",
        summary="angle of a point, its ordinate first; of complex numbers -i ln((y + ix) / √(x^2 + y^2))",
    ),
    unary("sinh", INEXACT, "sinh x", "hyperbolic sine", slope=lambda x, y: cosh(x)),
    unary("cosh", INEXACT, "cosh x", "hyperbolic cosine", slope=lambda x, y: sinh(x)),
    # (1 - y)(1 + y) keeps its digits where 1 - y^2 would lose them, y near 1.
    unary("tanh", INEXACT, "tanh x", "hyperbolic tangent", slope=lambda x, y: (1 - y) * (1 + y)),
    unary("asinh", INEXACT, "arsinh x", "inverse hyperbolic sine", slope=_asinh_slope, kernel="arcsinh", within=_INSIDE),
    unary("acosh", INEXACT, "arcosh x", "inverse hyperbolic cosine", slope=_acosh_slope, kernel="arccosh", within=_RIGHT),
    unary("atanh", INEXACT, "artanh x", "inverse hyperbolic tangent", slope=_atanh_slope, kernel="arctanh", within=_INSIDE),
)
