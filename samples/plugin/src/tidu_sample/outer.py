"""outer, the product of each element of x with each of y: a primitive with all its rules written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import INEXACT, TensorType
from tidu_cli.rules.batching import stacked
from tidu_cli.rules.contract import EACH, JVP, Batching, Example, Transposition
from tidu_cli.rules.families import conj, only_active, primitive, require_dtype, summed
from tidu_cli.rules.recording import Term, op

_outer, _dot_general = op("outer"), op("dot_general")


def _types(attrs: Any, operands: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
    require_dtype(INEXACT, operands)
    x, y = operands
    if x.rank != 1 or y.rank != 1 or x.dtype != y.dtype:
        raise TypeRuleError(f"takes two vectors of one dtype, got {x} and {y}")
    return (x.with_shape((*x.shape, *y.shape)),)


def _kernel(np: Any, attrs: Any, operands: Any, results: Any) -> Callable[[Any, Any], Any]:
    return lambda x, y: np.multiply.outer(x, y)


def _jvp(node: JVP) -> Sequence[Term | None]:
    (x, y), (dx, dy) = node.operands, node.tangents
    return [summed([None if dx is None else _outer(dx, y), None if dy is None else _outer(x, dy)])]


def _transpose(node: Transposition) -> Sequence[Term | None]:
    active = only_active(node, "outer")
    ((ct,), other) = node.cotangents, node.operands[1 - active]
    assert ct is not None and other is not None
    # Sum over the axis of the other operand; its conjugate, since the adjoint is that for Re(conj(a) b).
    return [_dot_general(ct, conj(other), dimension_numbers=[[[1 - k], [0]], [[], []]]) if k == active else None for k in range(2)]


def _batch(node: Batching) -> Sequence[Term]:
    # Outer products of as many pairs: dot_general contracts no axis, and the first is that of the batch.
    return [_dot_general(stacked(node, 0), stacked(node, 1), dimension_numbers=[[[], []], [[0], [0]]])]


OUTER = primitive(
    "outer",
    2,
    _types,
    _kernel,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    dtypes=INEXACT,
    linear=EACH,
    examples=(Example(("T[2]", "T[3]")),),
    formula="x_i y_j",
    summary="outer product of two vectors",
)
