"""Strong zeros: products and quotients whose zeros stay zeros, whatever the slope that multiplies or divides them.

The cotangent of a branch that was not taken is 0, and its slope may be infinite or NaN: the product is to be 0. What is not NaN
has the bits of mul and div, zeros with their signs, too. Linear in the operand whose zeros are strong, these primitives stand for
linear nodes of mul and div where `transpose` has strong zeros (as Enzyme calls them).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import INEXACT
from tidu_cli.rules.batching import itself
from tidu_cli.rules.contract import Transposition
from tidu_cli.rules.families import bilinear, binary, computed, conj, elementwise_examples, of_one_type
from tidu_cli.rules.flops import dividing, multiplying, per_element
from tidu_cli.rules.terms import Term, op

eq, select_n, strong_div, strong_mul = map(op, ("eq", "select_n", "strong_div", "strong_mul"))


def _kept(np: Any, x: Any, result: Any) -> Any:
    """The result, but for 0 where it is NaN and x is 0."""
    return np.where((x == 0) & (result != result), result.dtype.type(0), result)


def _mul_adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term:
    # In x it is 0 where y is 0: the factor of ct is then 0, and strong.
    return strong_mul(conj(other), ct if active == 1 else select_n(eq(other, 0), ct, 0))


def _div_transpose(node: Transposition) -> Sequence[Term | None]:
    _, divisor = node.operands
    if divisor is None:
        raise MissingRuleError("missing transpose rule for strong_div with an active divisor: it is not linear in it")
    return [strong_div(node.cotangent, conj(divisor)), None]


PRIMITIVES = (
    bilinear(
        "strong_mul",
        of_one_type(INEXACT),
        computed(lambda np, x, y: _kept(np, y, np.multiply(x, y))),
        _mul_adjoint,
        batch=itself("strong_mul"),
        dtypes=INEXACT,
        one_type=True,
        fresh=True,
        examples=elementwise_examples(2),
        flops=per_element(multiplying),
        formula="x y; 0 where y is 0",
        summary="product; 0 where y is 0, also if x is infinite or NaN",
    ),
    binary(
        "strong_div",
        INEXACT,
        "x / y; 0 where x is 0",
        "quotient; 0 where x is 0, also if y is 0 or NaN",
        kernel=computed(lambda np, x, y: _kept(np, x, np.divide(x, y))),
        tangents=(lambda t, x, y, z: strong_div(t, y), lambda t, x, y, z: -strong_mul(t, strong_div(z, y))),
        transpose=_div_transpose,
        within=((-2.0, 2.0), (0.5, 2.0)),
        linear=((0, 1),),
        flops=per_element(dividing),
    ),
)
