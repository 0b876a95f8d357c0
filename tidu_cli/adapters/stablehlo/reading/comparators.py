"""What the comparators of sorts say: by which operands, in which order.

A comparator takes two elements of each operand and says whether the first come before. JAX compares floats in their total order,
and makes one of all NaNs and of both zeros before: that is how `sort` compares, so what does so is taken away here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tidu_cli.adapters.stablehlo.module import Block, Operation
from tidu_cli.adapters.stablehlo.reading.site import array_of
from tidu_cli.frozen import Frozen

MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


class SortKey(Frozen, slots=False):
    """An operand by its number, and whether the greatest of it comes first; of complex numbers, which `part`, or both for None."""

    operand: int
    descending: bool
    part: str | None = None


def sort_keys(block: Block, known: Callable[[int], Any]) -> list[SortKey] | None:
    """The keys of a comparator, the one that counts most first. None if it is no comparator of keys.

    `known` gives arrays for those values from around it that are known.
    """
    found = _Comparator(block, known).keys(block.results[0])
    return None if found is None else _whole(found)


def _whole(keys: list[SortKey]) -> list[SortKey] | None:
    """Real and imaginary parts of a complex number as the number."""
    found: list[SortKey] = []
    rest = list(keys)
    while rest:
        key = rest.pop(0)
        if key.part == "real":
            if not rest or rest.pop(0) != SortKey(key.operand, key.descending, "imag"):
                return None
            key = SortKey(key.operand, key.descending)
        elif key.part is not None:
            return None
        found.append(key)
    return found


class _Comparator:
    """The operations of a comparator by the values that they make."""

    def __init__(self, block: Block, known: Callable[[int], Any]) -> None:
        self.first = block.first
        self.known = known
        self.arguments = range(block.first, block.first + len(block.arguments))
        self.made = {o.first + k: o for o in block.operations for k in range(len(o.results))}

    def keys(self, value: int) -> list[SortKey] | None:
        """The keys of what a value says: a < b; or a < b or (a = b and what is said of further keys)."""
        operation = self.made.get(value)
        if operation is None:
            return None
        if operation.name == "stablehlo.compare":
            return self.compared(operation, ("LT", "GT"))
        if operation.name == "stablehlo.or":
            return self.either(*operation.operands) or self.either(*reversed(operation.operands))
        if operation.name == "stablehlo.select":
            which, same, differ = operation.operands
            return self.then(which, differ, same)
        return None

    def either(self, first: int, other: int) -> list[SortKey] | None:
        """The keys where the one says that a < b, and the other that they are the same, and more."""
        both = self.made.get(other)
        if both is None or both.name != "stablehlo.and":
            return None
        x, y = both.operands
        return self.then(x, first, y) or self.then(y, first, x)

    def then(self, same: int, differ: int, more: int) -> list[SortKey] | None:
        """The keys where elements are compared, and then others where they are the same."""
        key, equal = self.keys(differ), self.equal(same)
        rest = self.keys(more) if key is not None and equal is not None else None
        if key is None or equal is None or rest is None or len(key) != 1:
            return None
        return [*key, *rest] if (key[0].operand, key[0].part) == equal else None

    def equal(self, value: int) -> tuple[int, str | None] | None:
        """The operand whose two elements a value says to be the same."""
        operation = self.made.get(value)
        keys = self.compared(operation, ("EQ",)) if operation is not None and operation.name == "stablehlo.compare" else None
        return (keys[0].operand, keys[0].part) if keys else None

    def compared(self, operation: Operation, directions: tuple[str, ...]) -> list[SortKey] | None:
        """The key of a comparison of an operand's two elements."""
        direction = str(operation.attributes["comparison_direction"])
        x, y = (self.element(v) for v in operation.operands)
        if x is None or y is None:
            return None
        if x[0] % 2:
            x, y, direction = y, x, MIRRORED[direction]
        if direction not in directions or x[0] % 2 or y != (x[0] + 1, x[1]):
            return None
        return [SortKey(x[0] // 2, direction == "GT", x[1])]

    def element(self, value: int) -> tuple[int, str | None] | None:
        """The argument that a value is, and the part of it, but for what makes one of all NaNs, and of zeros."""
        part = None
        while value not in self.arguments:
            operation = self.made.get(value)
            if operation is None:
                return None
            if operation.name in ("stablehlo.real", "stablehlo.imag") and part is None:
                part = operation.name.rpartition(".")[2]
                value = operation.operands[0]
            elif operation.name == "stablehlo.select" and self.is_tidying(operation):
                value = operation.operands[2]
            else:
                return None
        return value - self.first, part

    def is_tidying(self, operation: Operation) -> bool:
        """Whether a choice is of NaN where a number is NaN, or of 0 where it is 0."""
        which, constant, _ = operation.operands
        test, due = self.made.get(which), self.constant(constant)
        if test is None or test.name != "stablehlo.compare" or due is None:
            return False
        x, y = test.operands
        direction = test.attributes["comparison_direction"]
        if math.isnan(due):
            return direction == "NE" and x == y
        return direction == "EQ" and due == 0 and 0 in (self.constant(x), self.constant(y))

    def constant(self, value: int) -> Any:
        """The number that a value is, None for others."""
        operation = self.made.get(value)
        if operation is not None and operation.name == "stablehlo.constant":
            array: Any = array_of(operation.attributes["value"])[0]
        else:
            array = self.known(value) if value < self.first else None
        return float(array) if array is not None and array.ndim == 0 and np.isrealobj(array) else None
