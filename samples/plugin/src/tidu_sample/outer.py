"""outer, the product of each element of x with each of y: a bilinear primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import INEXACT, TensorType
from tidu_cli.rules.batching import stacked
from tidu_cli.rules.contract import Batching, Example, Transposition
from tidu_cli.rules.families import bilinear, conj, require_dtype
from tidu_cli.rules.terms import Term, op

_dot_general = op("dot_general")


def _types(attrs: Any, operands: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    require_dtype(INEXACT, operands)
    x, y = operands
    if x.rank != 1 or y.rank != 1 or x.dtype != y.dtype:
        raise TypeRuleError(f"takes two vectors of one dtype, got {x} and {y}")
    return (x.with_shape((*x.shape, *y.shape)),)


def _kernel(np: Any, attrs: Any, operands: Any, results: Any) -> Callable[[Any, Any], Any]:
    return lambda x, y: np.multiply.outer(x, y)


def _adjoint(node: Transposition, active: int, other: Term, ct: Term) -> Term:
    # Sum over the axis of the other operand; its conjugate, since the adjoint is that for Re(conj(a) b).
    return _dot_general(ct, conj(other), dimension_numbers=[[[1 - active], [0]], [[], []]])


def _batch(node: Batching) -> Sequence[Term]:
    # Outer products of as many pairs: dot_general contracts no axis, and the first is that of the batch.
    return [_dot_general(stacked(node, 0), stacked(node, 1), dimension_numbers=[[[], []], [[0], [0]]])]


OUTER = bilinear(
    "outer",
    _types,
    _kernel,
    _adjoint,
    batch=_batch,
    dtypes=INEXACT,
    examples=(Example(("T[2]", "T[3]")),),
    formula="x_i y_j",
    summary="outer product of two vectors",
)
