"""What functions have to say besides their results: a command prints it as notes; in Python nobody listens unless told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], object]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Within the block, notes go to this function, a line each."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def note(text: str) -> None:
    """Tell whoever listens."""
    if (listener := _listener.get()) is not None:
        listener(text)
