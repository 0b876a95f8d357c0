"""Choices from bytes, so that random bytes, a smaller string of bytes and a fuzzer guided by coverage all make cases in one way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads choices off bytes. Where these end every choice is the first one, so that every string of bytes makes a case."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def below(self, n: int) -> int:
        """An integer from 0 to before n."""
        width = max(1, ((n - 1).bit_length() + 7) // 8)
        taken = self.data[self.at : self.at + width]
        self.at += width
        return int.from_bytes(taken, "little") % n

    def pick(self, options: Sequence[T]) -> T:
        """One of the options."""
        return options[self.below(len(options))]

    def one_in(self, n: int) -> bool:
        """True once in n times; False where the bytes have ended."""
        return self.below(n) == n - 1

    def rest(self, length: int) -> bytes:
        """So many bytes as they are, or what is left."""
        taken = self.data[self.at : self.at + length]
        self.at += length
        return taken
