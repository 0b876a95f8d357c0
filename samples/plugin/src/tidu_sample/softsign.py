"""softsign, x / (1 + |x|): a member of the elementwise family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidu_cli.graph.types import FLOATS
from tidu_cli.rules.families import unary
from tidu_cli.rules.terms import Term, op

_abs = op("abs")


def _tangent(t: Term, x: Term, y: Term) -> Term:
    # Its derivative is 1 / (1 + |x|)². In terms of y that would be (1 - |y|)², which cancels where |x| is large.
    denominator = 1 + _abs(x)
    return t / (denominator * denominator)


def _kernel(np: Any, attrs: Any, operands: Any, results: Any) -> Callable[[Any], Any]:
    return lambda x: x / (1 + np.abs(x))


SOFTSIGN = unary(
    "softsign",
    FLOATS,
    tangent=_tangent,
    kernel=_kernel,
    formula="x / (1 + |x|)",
    summary="a sigmoid with tails like 1/x",
)
