"""Loops and branches whose graphs the machine runs, as jumps and copies of what is carried; and small arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.native.layout import (
    MOST_ELEMENTS,
    Entry,
    Layout,
    Lowered,
    Place,
    Rows,
    Words,
    computing,
    elementwise,
    is_native,
    joined,
    rows,
    width,
)
from tidu_cli.adapters.native.machine import COPY, JUMP, JUMP_BACK, JUMP_UNLESS, LOAD, OPCODES, STORE
from tidu_cli.adapters.native.opcodes import Signature
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import literal_array, numpy_dtype
from tidu_cli.rules.vocabulary import PrimitiveSet

LowerGraph = Callable[[Graph, Sequence[Place]], Lowered]
"""From a closed graph and where its inputs are to its instructions, and where its outputs are."""

Lower = Callable[[Layout, LowerGraph, Case, Sequence[Place]], Lowered]


class NotWordsError(Exception):
    """Some value in a loop is none of words."""


_ADD = OPCODES[Signature("add", ("i64", "i64"), "i64")]
_LESS = OPCODES[Signature("lt", ("i64", "i64"), "bool")]


def _scan(layout: Layout, lower: LowerGraph, case: Case, reads: Sequence[Place]) -> Lowered:
    attrs: Any = case.attrs
    n, end, length = attrs.num_consts, attrs.num_consts + attrs.num_carry, attrs.length
    places = _words_of([*reads, *[layout.new(t) for t in case.results]])
    operands, results = places[: len(reads)], places[len(reads) :]
    carry, stacks = results[: attrs.num_carry], results[attrs.num_carry :]
    dtypes = [t.dtype for t in case.operands if isinstance(t, TensorType)]
    parts = [copies(layout, list(zip(dtypes[n:], operands[n:end], carry, strict=False)))]
    if length == 0:
        return joined(parts), results
    counters = _Counters(layout, length, reverse=attrs.reverse)
    body_types = attrs.body.input_types
    slices, loads, stores = [], [], []
    for k in range(end, len(operands)):
        begun, stack = _side_by_side(layout, dtypes[k], operands[k])
        parts.append(begun)
        item = _words(layout.new(body_types[k]))
        index, first = counters.index(stack, length), stack.reshape(length, -1)[0]
        loads += [rows(LOAD, first + part, index, item.reshape(-1) + part) for part in range(width(dtypes[k]))]
        slices.append(item)
    inner, outputs = lower(attrs.body.graph, [*operands[:n], *carry, *slices])
    values = _words_of(outputs)
    for stack, value, type_ in zip(stacks, values[attrs.num_carry :], case.results[attrs.num_carry :], strict=True):
        assert isinstance(type_, TensorType)
        index, first = counters.index(stack, length), stack.reshape(length, -1)[0]
        stores += [rows(STORE, value.reshape(-1) + part, index, first + part) for part in range(width(type_.dtype))]
    moves = copies(layout, list(zip(dtypes[n:], values, carry, strict=False)))
    body = joined([*loads, inner, *stores, moves, counters.advance()])
    return joined([*parts, counters.start(), body, counters.repeat(len(body))]), results


def _while(layout: Layout, lower: LowerGraph, case: Case, reads: Sequence[Place]) -> Lowered:
    attrs: Any = case.attrs
    layout.uniform = False
    places = _words_of([*reads, *[layout.new(t) for t in case.results]])
    of_condition, of_body, begin = attrs.split(places[: len(reads)])
    carry = places[len(reads) :]
    dtypes = [t.dtype for t in case.results if isinstance(t, TensorType)]
    test, (holds,) = lower(attrs.condition.graph, [*of_condition, *carry])
    inner, outputs = lower(attrs.body.graph, [*of_body, *carry])
    values = _words_of(outputs)
    start = copies(layout, list(zip(dtypes, begin, carry, strict=True)))
    body = joined([inner, copies(layout, list(zip(dtypes, values, carry, strict=True)))])
    leave = rows(JUMP_UNLESS, _words(holds), 0, len(body) + 2)
    return joined([start, test, leave, body, rows(JUMP_BACK, 0, 0, -len(test) - 1 - len(body))]), carry


def _cond(layout: Layout, lower: LowerGraph, case: Case, reads: Sequence[Place]) -> Lowered:
    attrs: Any = case.attrs
    layout.uniform = False
    places = _words_of([*reads, *[layout.new(t) for t in case.results]])
    index, operands, results = places[0], places[1 : len(reads)], places[len(reads) :]
    dtypes = [t.dtype for t in case.results if isinstance(t, TensorType)]
    bodies = []
    for branch in attrs.branches[: _greatest(case.operands[0]) + 1]:
        inner, outputs = lower(branch.graph, operands)
        values = _words_of(outputs)
        bodies.append(joined([inner, copies(layout, list(zip(dtypes, values, results, strict=True)))]))
    choice = bodies[-1]
    for k in reversed(range(len(bodies) - 1)):
        # Unless it is the branch of this number, or of one below, it is one of those that follow.
        test, holds = _at_most(layout, case.operands[0], index, k)
        own = joined([bodies[k], rows(JUMP, 0, 0, len(choice) + 1)])
        choice = joined([test, rows(JUMP_UNLESS, holds, 0, len(own) + 1), own, choice])
    return choice, results


def _greatest(type_: Any) -> int:
    """The greatest index of a type, of branches that may be more."""
    return 1 if type_.dtype == "bool" else int(np.iinfo(numpy_dtype(np, type_.dtype)).max)


def _at_most(layout: Layout, type_: Any, index: Words, number: int) -> tuple[Rows, int]:
    """The instructions that find whether an index is at most a number, and the word of that."""
    holds = layout.block("bool", 1)
    if type_.dtype == "bool":
        return rows(OPCODES[Signature("not", ("bool",), "bool")], index, 0, holds), holds
    opcode = OPCODES[Signature("le", (type_.dtype,) * 2, "bool")]
    return rows(opcode, index, layout.number(type_.dtype, number), holds), holds


class _Counters:
    """The words that a scan counts in: its steps, and for each size of a slice where that of the step begins."""

    def __init__(self, layout: Layout, length: int, *, reverse: bool) -> None:
        self.layout, self.length, self.reverse = layout, length, reverse
        self.steps, self.goes_on = layout.block("i64", 1), layout.block("bool", 1)
        self.indices: dict[int, int] = {}

    def index(self, stack: Words, length: int) -> int:
        """The word of where in a stack of slices that of the step begins, from where the first does."""
        rows_of = stack.reshape(length, -1)
        size = int(rows_of[1, 0] - rows_of[0, 0]) if length > 1 and rows_of.size else 0
        if size not in self.indices:
            self.indices[size] = self.layout.block("i64", 1)
        return self.indices[size]

    def _number(self, value: int) -> int:
        return self.layout.number("i64", value)

    def start(self) -> Rows:
        """Instructions that set them to the first step."""
        parts = [rows(COPY, self._number(1), 0, self.steps)]
        for size, word in self.indices.items():
            parts.append(rows(COPY, self._number(size * (self.length - 1) if self.reverse else 0), 0, word))
        # The first step takes fuel as those do that are jumped back to, so that fuel counts all.
        return joined([*parts, rows(JUMP_BACK, 0, 0, 1)])

    def advance(self) -> Rows:
        """Instructions that set them to the next one."""
        steps = [(-size if self.reverse else size, word) for size, word in self.indices.items() if size]
        return joined([rows(_ADD, word, self._number(step), word) for step, word in steps])

    def repeat(self, n_rows: int) -> Rows:
        """Instructions that go back over so many, unless this was the last step."""
        return joined([
            rows(_LESS, self.steps, self._number(self.length), self.goes_on),
            rows(_ADD, self.steps, self._number(1), self.steps),
            rows(JUMP_UNLESS, self.goes_on, 0, 2),
            rows(JUMP_BACK, 0, 0, -n_rows - 3),
        ])  # fmt: skip


def copies(layout: Layout, moves: Sequence[tuple[str, Words, Words]]) -> Rows:
    """Instructions that copy numbers of a dtype from words to words, all at once: what is read may be written, too."""
    before, after = [], []
    written = np.concatenate([np.empty(0, np.int64), *[_parts(t, new) for t, _, new in moves]])
    for dtype, old, new in moves:
        old, new = _parts(dtype, old), _parts(dtype, new)
        moving = old != new
        old, new = old[moving], new[moving]
        clashing = np.isin(old, written)
        if clashing.any():
            n = int(clashing.sum())
            aside = layout.block("i64", n) + np.arange(n)
            before.append(rows(COPY, old[clashing], 0, aside))
            old = old.copy()
            old[clashing] = aside
        after.append(rows(COPY, old, 0, new))
    return joined([*before, *after])


def _parts(dtype: str, words: Words) -> Words:
    """All words that numbers take."""
    flat = words.reshape(-1)
    return np.concatenate([flat, flat + 1]) if width(dtype) > 1 else flat


def _side_by_side(layout: Layout, dtype: str, words: Words) -> tuple[Rows, Words]:
    """The words of an array whose elements lie side by side, and the instructions that bring them there."""
    step = width(dtype)
    flat = words.reshape(-1)
    if flat.size == 0 or np.array_equal(flat, flat[0] + step * np.arange(flat.size)):
        return joined([]), words
    begin = layout.block(dtype, words.size)
    new = np.arange(begin, begin + step * words.size, step).reshape(words.shape)
    return copies(layout, [(dtype, words, new)]), new


def _words(place: Place) -> Words:
    assert not isinstance(place, Entry)
    return place


def _words_of(places: Sequence[Place]) -> list[Words]:
    """Places that are all words. Raises NotWordsError if some are not."""
    words = [p for p in places if not isinstance(p, Entry)]
    if len(words) < len(places):
        raise NotWordsError
    return words


LOOPS: Mapping[str, Lower] = {"scan": _scan, "while": _while, "cond": _cond}
"""How operations that hold graphs become instructions. They raise NotWordsError."""


# Small arrays: what moves elements takes no instruction, and what computes with them takes one for each.


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
    numbers = kernel(*reads)
    return joined([]), [np.asarray(x, np.int64) for x in (numbers if len(results) > 1 else (numbers,))]


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
    target = _words(layout.new(result))
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
    folded = columns[:, 0]
    for k in range(1, columns.shape[1]):
        target = _words(layout.new(replace(result, shape=(result.size,))))
        parts.append(computing(opcode, [folded, columns[:, k]], target))
        folded = target
    return joined(parts), [folded.reshape(result.shape)]
