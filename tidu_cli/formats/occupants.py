"""Which files a command has read, and as what: a result is not to take their place by mistake."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal

Kind = Literal["document", "weights", "data"]
"""What a file is for a command: a document, the weights beside a model of ONNX, or anything else, such as values or a library."""

_noted: ContextVar[dict[tuple[int, int], Kind] | None] = ContextVar("_noted", default=None)

_overwriting: ContextVar[bool] = ContextVar("_overwriting", default=False)


@contextmanager
def noting(*, overwriting: bool = False) -> Iterator[None]:
    """Within the block files that are read are noted; with `overwriting` results may replace them, and any other file."""
    tokens = _noted.set({}), _overwriting.set(overwriting)
    try:
        yield
    finally:
        _noted.reset(tokens[0])
        _overwriting.reset(tokens[1])


def is_overwriting() -> bool:
    """Whether results may replace whatever is there."""
    return _overwriting.get()


def note_read(file: Any, kind: Kind = "data") -> None:
    """Note that a file, open or by its path, is read. What is no regular file is never replaced."""
    noted = _noted.get()
    if noted is None:
        return
    with suppress(OSError, AttributeError, ValueError):  # what has no descriptor is no file
        state = os.stat(file if isinstance(file, str) else file.fileno())
        if stat.S_ISREG(state.st_mode):
            place = state.st_dev, state.st_ino
            noted[place] = kind if noted.get(place, kind) == kind else "data"


def kind_read(path: str) -> Kind | None:
    """What a file was read as, by whatever name or link; None if it was not read."""
    state = os.stat(path)
    return (_noted.get() or {}).get((state.st_dev, state.st_ino))
