"""Elementary functions: exp, log, the trigonometric and hyperbolic ones, logistic, square root."""

from __future__ import annotations

from typing import Any

from tidu_cli.graph.types import INEXACT
from tidu_cli.primitives.contract import Kernel, Types
from tidu_cli.primitives.families import unary
from tidu_cli.primitives.trace import op

cos, sin = op("cos"), op("sin")


def _logistic_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    if operands[0].complex:
        return lambda z: 1 / (1 + np.exp(-z))

    def logistic(x: Any) -> Any:
        # exp of a negative number only: nothing overflows, and the far left tail keeps its digits.
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype, copy=False)

    return logistic


PRIMITIVES = (
    unary("exp", INEXACT, tangent=lambda t, x, y: y * t, formula="e^x", summary="exponential"),
    unary("log", INEXACT, tangent=lambda t, x, y: t / x, within=((0.5, 2.0),), formula="ln x", summary="natural logarithm"),
    unary(
        "log1p",
        INEXACT,
        tangent=lambda t, x, y: t / (x + 1),
        within=((-0.5, 2.0),),
        formula="ln(1 + x)",
        summary="logarithm, accurate near x = 0",
    ),
    unary("sin", INEXACT, tangent=lambda t, x, y: cos(x) * t, formula="sin x", summary="sine"),
    unary("cos", INEXACT, tangent=lambda t, x, y: -sin(x) * t, formula="cos x", summary="cosine"),
    # (1 - y)(1 + y) keeps its digits where 1 - y^2 would lose them, y near 1.
    unary("tanh", INEXACT, tangent=lambda t, x, y: (1 - y) * (1 + y) * t, formula="tanh x", summary="hyperbolic tangent"),
    unary(
        "logistic",
        INEXACT,
        tangent=lambda t, x, y: y * (1 - y) * t,
        kernel=_logistic_kernel,
        formula="1 / (1 + e^-x)",
        summary="logistic sigmoid",
    ),
    unary("sqrt", INEXACT, tangent=lambda t, x, y: 0.5 / y * t, within=((0.5, 2.0),), formula="x^(1/2)", summary="square root"),
)
