"""Standard output is for data: what else is printed, by Python or by libraries in C, goes to standard error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import Any, TextIO

STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
"""The paths that mean standard output. Opened by name they would be stderr (`take_descriptor`)."""

_MAX_LINKS = 40

_data: ContextVar[TextIO | None] = ContextVar("data")


def is_stdout(path: str | None) -> bool:
    """Whether a path means standard output, as none does, and a link that leads there."""
    for _ in range(_MAX_LINKS):
        if path is None or path in STDOUT:
            return True
        try:
            path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        except OSError:
            return False
    return False


def data_stream() -> TextIO | None:
    """The stream that data is written to, standard output; None if it is closed."""
    return _data.get(sys.stdout)


@contextmanager
def data_alone() -> Iterator[None]:
    """Within the block `print` writes to standard error, and only `data_stream` to standard output."""
    token = _data.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _data.reset(token)


def take_descriptor() -> None:
    """Give this process's stdout a descriptor that only it knows, and point 1, which LAPACK and XLA print to, to standard error.

    Children get 1 as theirs. A terminal stays as it is: data and messages are seen together there.
    """
    out = sys.stdout
    try:
        if out is not None and (not isinstance(out, io.TextIOWrapper) or out.fileno() != 1 or out.isatty()):
            return
        # Opened first, as it takes the place of a closed descriptor 2, which is not to be that of data.
        elsewhere = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
        if out is None:  # closed: the next file that is opened would be 1
            os.dup2(elsewhere, 1)
            return
        out.flush()
        raw = io.FileIO(os.dup(1), "wb", closefd=False)  # as Python's own is
        os.dup2(elsewhere, 1)
    except OSError:  # a stream that is no file, or closed behind Python's back
        return
    unbuffered = isinstance(out.buffer, io.RawIOBase)  # as with PYTHONUNBUFFERED
    buffer: Any = raw if unbuffered else io.BufferedWriter(raw)
    sys.stdout = io.TextIOWrapper(buffer, out.encoding, out.errors, write_through=unbuffered)
    sys.__stdout__ = sys.stdout  # type: ignore[misc]  # final by annotation
