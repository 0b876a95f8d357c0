"""Where values are, numbers in words of the machine's registers, all else in a list of Python's; and which opcode computes a case.

An array is an array of the numbers of the words that its elements are in, of its shape. So what only moves elements takes no
instruction: its results are other arrays of the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidu_cli.adapters.native.machine import FIELDS, OPCODES
from tidu_cli.adapters.native.opcodes import COMPLEXES, TYPES, Signature
from tidu_cli.errors import LimitError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype

# Which opcode computes a case of scalars.


NATIVE = frozenset({*TYPES, *COMPLEXES})
"""The dtypes whose numbers the machine computes with."""


class Choice(NamedTuple):
    """An opcode, and a last operand that is the same for all nodes of a case, as a double."""

    opcode: int
    last: float | None = None


def width(dtype: str) -> int:
    """The words that a number takes."""
    return 2 if dtype == "c128" else 1


def is_native(type_: Type | None) -> bool:
    """Whether values of a type are, or are made of, numbers that the machine computes with."""
    return isinstance(type_, TensorType) and type_.dtype in NATIVE


def elementwise(case: Case) -> Choice | None:
    """The opcode for each element of a case that works element by element; None if there is none."""
    if len(case.results) != 1 or not case.operands or len(case.operands) > 3:
        return None
    if not all(map(is_native, (*case.operands, case.results[0]))):
        return None
    op, last = _variant(case.op, case.attrs)
    dtypes = tuple([t.dtype for t in case.operands if isinstance(t, TensorType)])
    given = dtypes if last is None else (*dtypes, "f64")
    (result,) = case.results
    assert isinstance(result, TensorType)
    opcode = OPCODES.get(Signature(op, given, result.dtype))
    return None if opcode is None else Choice(opcode, last)


_DIRECT = (-1, 1, 2, 3, 4)
"""Exponents for which there are opcodes."""


def _variant(op: str, attrs: Any) -> tuple[str, float | None]:
    """The name of an operation in the table, with what of its attrs makes another of it; and an operand that attrs hold."""
    if op == "integer_pow":
        return (f"{op} {attrs.y}", None) if attrs.y in _DIRECT else (op, float(attrs.y))
    return (f"{op} {attrs.rounding_method}", None) if op == "round" else (op, None)


Words = NDArray[np.int64]
Rows = NDArray[np.int32]
"""Instructions, one beside the other."""

MOST_ELEMENTS = 2**24
"""An array of more is kept as it is."""

MOST_WORDS = 2**31 - 1
"""Fields of instructions hold the numbers of words."""


class Entry(Frozen):
    """A value in the list."""

    number: int


Place = Words | Entry

Lowered = tuple[Rows, Sequence[Place]]
"""The instructions of a step, and where its results are."""


class Escape(Frozen):
    """A step that the machine leaves to Python: a kernel, where its operands and its results are, and of which types."""

    kernel: Callable[[], Callable[..., Any]]
    reads: tuple[tuple[Type, Place], ...]
    writes: tuple[tuple[Type, Place], ...]


@dataclass(slots=True)
class Layout:
    """What is laid out so far: how many words and entries there are, what is constant among them, and what Python does."""

    n_words: int = 1  # the first one is the machine's
    n_entries: int = 0
    constants: list[tuple[TensorType, Words, Any]] = field(default_factory=list)
    escapes: list[Escape] = field(default_factory=list)
    known: dict[tuple[str, bytes], Words] = field(default_factory=dict)
    uniform: bool = True
    """Whether all values of inputs go through the same instructions."""

    def take(self, n: int) -> int:
        """The first of so many new words. Raises LimitError."""
        begin = self.n_words
        self.n_words += n
        if self.n_words > MOST_WORDS:
            raise LimitError("the engine native has no room for this many numbers: choose the engine numpy, or xla")
        return begin

    def block(self, dtype: str, n: int) -> int:
        """The first of the words of so many new numbers that lie side by side."""
        return self.take(n * width(dtype))

    def new(self, type_: Type) -> Place:
        """A place for a value of a type."""
        if not is_native(type_) or (isinstance(type_, TensorType) and type_.size > MOST_ELEMENTS):
            self.n_entries += 1
            return Entry(self.n_entries - 1)
        assert isinstance(type_, TensorType)
        step = width(type_.dtype)
        begin = self.block(type_.dtype, type_.size)
        return np.arange(begin, begin + type_.size * step, step).reshape(type_.shape)

    def constant(self, type_: TensorType, value: Any) -> Words:
        """The place of a constant; of numbers that are used again the one that there is."""
        array = np.asarray(value, numpy_dtype(np, type_.dtype))
        key = (str(type_), array.tobytes())
        if key not in self.known:
            place = self.new(type_)
            assert not isinstance(place, Entry)
            self.constants.append((type_, place, array))
            self.known[key] = place
        return self.known[key]

    def number(self, dtype: str, value: Any) -> int:
        """The word of a constant number."""
        return int(self.constant(TensorType(dtype), value))


def index_of(words: Words) -> int | slice | Words:
    """What picks these words: a number, a slice where they are evenly spaced, else all of their numbers in a row."""
    if not words.ndim:
        return int(words)
    flat = words.reshape(-1)
    step = int(flat[1] - flat[0]) if flat.size > 1 else 1
    if flat.size and step > 0 and np.array_equal(flat, np.arange(flat[0], flat[0] + step * flat.size, step)):
        return slice(int(flat[0]), int(flat[-1]) + 1, step)
    return flat


def rows(opcode: int | Any, left: Any = 0, right: Any = 0, target: Any = 0) -> Rows:
    """Instructions of these opcodes and fields, arrays of numbers or numbers."""
    fields = np.broadcast_arrays(*[np.asarray(x).reshape(-1) for x in (opcode, left, right, target)])
    return np.stack(fields, axis=1).astype(np.int32)


def joined(parts: Sequence[Rows]) -> Rows:
    """Instructions one after the other."""
    return np.concatenate(parts) if parts else np.empty((0, FIELDS), np.int32)


def computing(opcode: int, reads: Sequence[Words], target: Words) -> Rows:
    """The instructions of an opcode for each element of operands of one shape."""
    instructions = rows(opcode, reads[0], reads[1] if len(reads) > 1 else 0, target)
    if len(reads) < 3:
        return instructions
    pairs = np.zeros((len(instructions), 2, FIELDS), np.int32)
    pairs[:, 0], pairs[:, 1, 1] = instructions, reads[2].reshape(-1)
    return pairs.reshape(-1, FIELDS)
