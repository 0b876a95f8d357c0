"""What functions have to say besides their results: a command prints it on stderr; in Python only who listens hears it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], object]

_listeners: ContextVar[tuple[Listener, Listener]] = ContextVar("listeners", default=(str, str))  # which do nothing


@contextmanager
def heard_by(listener: Listener, details: Listener = str) -> Iterator[None]:
    """Within the block, notes go to the first function and details to the second, a line each."""
    token = _listeners.set((listener, details))
    try:
        yield
    finally:
        _listeners.reset(token)


def note(text: str) -> None:
    """Say something that whoever called should know."""
    _listeners.get()[0](text)


def detail(text: str) -> None:
    """Say what was done, for those who want to know every step."""
    _listeners.get()[1](text)
