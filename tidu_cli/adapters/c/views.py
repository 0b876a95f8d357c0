"""Arrays as they lie in memory: where an element is, as a sum of indices times strides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from tidu_cli.errors import UndecidedSizeError
from tidu_cli.graph.types import ITEMSIZE

CTYPES = {
    "bool": "unsigned char", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "f32": "float", "f64": "double",
    "f16": "float", "bf16": "float", "c64": "k_c64", "c128": "k_c128",
}  # fmt: skip
"""The types of C by dtype, in which values are computed with."""

HALVES = frozenset({"f16", "bf16"})
STORED = {d: "uint16_t" if d in HALVES else t for d, t in CTYPES.items()}
"""Those in which values lie in memory."""

PASSED = STORED | {"c64": "float", "c128": "double"}
"""Those in which callers have them: complex numbers as pairs."""

CONSTANT, COUNT = -1, -2
"""In place of a root: all elements are one number, or each is the place of itself, offset and strides being those of a count."""


def bits(dtype: str) -> int:
    """How many bits an element takes."""
    return 8 * ITEMSIZE[dtype]


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array that lies in memory row by row."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


class View(NamedTuple):
    """An array: elements of the root with this number, from `offset` on. `text` is the number of a constant."""

    dtype: str
    root: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    text: str = ""

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def is_dense(self) -> bool:
        """Whether its elements lie in a row, in order."""
        step = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1:
                if stride != step:
                    return False
                step *= n
        return self.root >= 0

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides of axes of more than one element."""
        return tuple([s for n, s in zip(self.shape, self.strides, strict=True) if n != 1])

    def moved(self, shape: Iterable[int], strides: Iterable[int], offset: int = 0) -> View:
        """A view of the same memory."""
        return self._replace(shape=tuple(shape), strides=tuple(strides), offset=self.offset + offset)

    def transposed(self, order: Sequence[int]) -> View:
        """With its axes in another order."""
        return self.moved([self.shape[k] for k in order], [self.strides[k] for k in order])

    def broadcast(self, shape: Sequence[int], axes: Sequence[int]) -> View:
        """With the axis `axes[k]` for axis k, and repeated along the others."""
        strides = [0] * len(shape)
        for axis, n, stride in zip(axes, self.shape, self.strides, strict=True):
            strides[axis] = stride if n != 1 else 0
        return self.moved(shape, strides)

    def reshaped(self, shape: Sequence[int]) -> View | None:
        """With its elements in another shape, None where no strides say that."""
        try:
            view = self._reshaped(shape)
        except UndecidedSizeError:  # whether one open size is a multiple of another
            view = None
        return self.moved(shape, row_major(shape)) if view is None and self.is_dense else view

    def _reshaped(self, shape: Sequence[int]) -> View | None:
        if 0 in self.shape:
            return self.moved(shape, [0] * len(shape))
        blocks: list[list[int]] = []  # sizes and strides of axes that lie in a row, from the last one on
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and blocks and stride == blocks[-1][0] * blocks[-1][1]:
                blocks[-1][0] *= n
            elif n != 1:
                blocks.append([n, stride])
        strides, block, left, step = [], iter(blocks), 1, 0
        for n in reversed(shape):
            if n == 1:
                strides.append(0)
                continue
            if left == 1:
                left, step = next(block)
            if left % n != 0:
                return None
            strides.append(step)
            left, step = left // n, step * n
        return self.moved(shape, reversed(strides))

    def part(self, starts: Sequence[int], shape: Sequence[int], steps: Sequence[int]) -> View:
        """From these indices on in steps."""
        strides = [s * k for s, k in zip(self.strides, steps, strict=True)]
        return self.moved(shape, strides, sum(i * s for i, s in zip(starts, self.strides, strict=True)))


def merged(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Axes along which all of these arrays lie in a row, made one: fewer loops."""
    kept: list[int] = []
    columns: list[list[int]] = []
    for axis, n in enumerate(sizes):
        column = [s[axis] for s in strides]
        if kept and all(outer == n * inner for outer, inner in zip(columns[-1], column, strict=True)):
            kept[-1] *= n
            columns[-1] = column
        else:
            kept.append(n)
            columns.append(column)
    return kept, [[c[k] for c in columns] for k in range(len(strides))]


def place(offset: int, strides: Sequence[int], indices: Sequence[str]) -> str:
    """The text of an index."""
    terms = [i if s == 1 else f"{s} * {i}" for s, i in zip(strides, indices, strict=True) if s != 0 and i != "0"]
    return " + ".join([*([f"{offset}"] if offset != 0 or not terms else []), *terms])


def loops(axes: Iterable[tuple[str, int]], body: Sequence[str]) -> list[str]:
    """A body within loops; none for axes of one element, whose index is 0."""
    lines = list(body)
    for name, n in reversed(list(axes)):
        if name != "0":
            lines = [f"for (long {name} = 0; {name} < {n}; ++{name}) {{", *(f"    {line}" for line in lines), "}"]
    return lines


def indices(letter: str, shape: Sequence[int]) -> list[str]:
    """Names of the indices of an array: `0` along axes of one element."""
    return [f"{letter}{k}" if n != 1 else "0" for k, n in enumerate(shape)]
