"""Steps of a function in the making, and the places in the workspace of what is between them."""

from __future__ import annotations

from typing import Any

from tidu_cli.adapters.c.kernel import Kernel
from tidu_cli.graph.sizes.open import OpenSize


class Pool:
    """The workspace for one dtype: places that are free, by their sizes, and how far it reaches."""

    def __init__(self) -> None:
        self.size = 0
        self._free: dict[int, list[int]] = {}

    def take(self, n: int) -> int:
        """The first of `n` places: those that were given back, if they are as many, or are the least more of numbers of them."""
        free = self._free.get(n)
        if not free:
            numbers = () if isinstance(n, OpenSize) or n <= 1 else self._free.items()
            larger = min((size for size, places in numbers if type(size) is int and size > n and places), default=0)
            if not larger:
                self.size += n
                return self.size - n
            begin = self._free[larger].pop()
            self.give(begin + n, larger - n)
            return begin
        return free.pop()

    def give(self, begin: int, n: int) -> None:
        """Give places back."""
        self._free.setdefault(n, []).append(begin)


class Item:
    """A loop, of statements for each element; or a kernel. A statement is a root, a template and operands."""

    def __init__(self, shape: tuple[int, ...] = (), kernel: Kernel | None = None) -> None:
        self.shape, self.kernel = shape, kernel
        self.statements: list[tuple[int, str, Any]] = []
        """Their operands are views; where the loop is of numbers, roots of such, or -1 - k for the function's `views[k]`."""
        self.is_of_numbers = not shape and kernel is None
        self.placed: list[int] = []
        """Those that get places in the workspace."""
        self.last: list[int] = []
        """The roots in the workspace that nothing reads after it."""
        self.used: dict[str, None] = {}
        """The parameters that it names."""

    @property
    def n_statements(self) -> int:
        """How long it is."""
        return len(self.statements) or 20
