"""Bytes that come in: from a file, a pipe or memory, once and in order."""

from __future__ import annotations

from io import BytesIO
from typing import BinaryIO


class Source:
    """What is read. Its beginning can be looked at first; so a reader is chosen, and bytes need not be held by those who choose.

    Reading raises OSError, as the file does.
    """

    def __init__(self, file: BinaryIO | bytes) -> None:
        self._file = BytesIO(file) if isinstance(file, bytes) else file
        self._head = b""
        self.n_read = 0
        """The number of bytes that have been read."""

    def head(self, n: int) -> bytes:
        """The next `n` bytes, or all if there are fewer. They are still to be read."""
        if len(self._head) < n:
            self._head += self._file.read(n - len(self._head))
        return self._head[:n]

    def read(self, n: int = -1) -> bytes:
        """The next `n` bytes, or all if there are fewer or `n` is negative."""
        if self._head:
            data, self._head = (self._head, b"") if n < 0 else (self._head[:n], self._head[n:])
            data += self._file.read(n - len(data) if n >= 0 else -1)
        else:
            data = self._file.read(n)
        self.n_read += len(data)
        return data
