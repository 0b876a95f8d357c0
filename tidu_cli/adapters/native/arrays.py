"""Small arrays: what moves elements takes no instruction, and what computes with them takes one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.native.layout import MOST_ELEMENTS, Entry, Layout, Lowered, Place, Rows, Words, computing, joined
from tidu_cli.adapters.native.machine import OPCODES
from tidu_cli.adapters.native.opcodes.table import Signature
from tidu_cli.adapters.native.selecting import elementwise, is_native
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import literal_array
from tidu_cli.rules.vocabulary import PrimitiveSet

MOVES = frozenset({
    "broadcast_in_dim", "reshape", "transpose", "stop_gradient", "optimization_barrier", "slice", "split", "concatenate",
    "squeeze", "expand_dims", "rev", "copy", "pad",
})  # fmt: skip
"""The operations whose results are elements of operands, at places that attrs say."""

MOST_INSTRUCTIONS = 2**12
"""An operation of arrays that would take more is left to NumPy."""

FOLDS: Mapping[str, str] = {
    "reduce_sum": "add", "reduce_prod": "mul", "reduce_max": "max", "reduce_min": "min",
    "reduce_and": "and", "reduce_or": "or", "reduce_xor": "xor",
}  # fmt: skip
"""Reductions, and the operation of two elements that each repeats."""


def moved(layout: Layout, primitives: PrimitiveSet, case: Case, reads: Sequence[Place]) -> Lowered | None:
    """A case that only moves elements, or a constant."""
    if case.op == "constant":
        literal: Any = case.attrs
        (type_,) = case.results
        if not isinstance(type_, TensorType) or not is_native(type_) or type_.size > MOST_ELEMENTS:
            return None
        return joined([]), [layout.constant(type_, literal_array(np, literal.value))]
    types = (*case.operands, *case.results)
    if case.op not in MOVES or any(isinstance(p, Entry) for p in reads) or not all(map(is_native, types)):
        return None
    if any(isinstance(t, TensorType) and t.size > MOST_ELEMENTS for t in case.results):
        return None
    # The kernel is run on the numbers of words themselves.
    operands, results = (tuple([t.with_dtype("i64") for t in some]) for some in (case.operands, case.results))  # type: ignore[union-attr]
    kernel = primitives[case.op].evaluation.kernel(np, case.attrs, operands, results)
    found = kernel(*reads)
    return joined([]), [np.asarray(x, np.int64) for x in (found if len(results) > 1 else (found,))]


def expanded(layout: Layout, case: Case, reads: Sequence[Place]) -> Lowered | None:
    """A case that computes element by element, or folds elements together."""
    (result,) = case.results if len(case.results) == 1 else (None,)
    words = [p for p in reads if not isinstance(p, Entry)]
    if not isinstance(result, TensorType) or len(words) < len(reads) or not all(map(is_native, (*case.operands, result))):
        return None
    if case.op in FOLDS:
        return _folded(layout, case, words[0])
    choice = elementwise(case)
    if choice is None or result.size > MOST_INSTRUCTIONS:
        return None
    if choice.last is not None:
        words.append(np.asarray(layout.number("f64", choice.last), np.int64))
    target = layout.new(result)
    assert not isinstance(target, Entry)
    shaped = [np.broadcast_to(w, result.shape) for w in words]
    return computing(choice.opcode, shaped, target), [target]


def _folded(layout: Layout, case: Case, words: Words) -> Lowered | None:
    attrs: Any = case.attrs
    (operand,), (result,) = case.operands, case.results
    assert isinstance(operand, TensorType) and isinstance(result, TensorType)
    axes = tuple(attrs.axes)
    kept = [k for k in range(operand.rank) if k not in axes]
    opcode = OPCODES.get(Signature(FOLDS[case.op], (operand.dtype,) * 2, operand.dtype))
    if opcode is None or operand.dtype != result.dtype or not 1 <= operand.size <= MOST_INSTRUCTIONS:
        return None
    columns = np.transpose(words, (*kept, *axes)).reshape(result.size, -1)
    if case.op == "reduce_sum" and operand.inexact:  # a sum begins at 0, and so none is -0
        columns = np.insert(columns, 0, layout.number(operand.dtype, 0.0), axis=1)
    parts: list[Rows] = []
    found = columns[:, 0]
    for k in range(1, columns.shape[1]):
        target = layout.new(replace(result, shape=(result.size,)))
        assert not isinstance(target, Entry)
        parts.append(computing(opcode, [found, columns[:, k]], target))
        found = target
    return joined(parts), [found.reshape(result.shape)]
