"""How far long work has come, for those who want to know.

Loops that see every node say what they are at and how much there is; whoever listens (the command line's progress bar, a program
of one's own) is told every few thousand items. This knows no terminal. While nobody listens a watched loop is the loop itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

T = TypeVar("T")

CHUNK = 2**12
"""A listener is told once every so many items: milliseconds of work, and no cost per item that one could measure."""


class Listener(Protocol):
    """Who is told. Stages follow one another, and do not nest: one ends where the next begins."""

    def begin(self, stage: str, total: int | None, unit: str = "node") -> None:
        """A stage begins; it has `total` items, or an unknown number. `unit` is what one is called, where it is no node."""
        ...

    def advance(self, n: int) -> None:
        """`n` more items of this stage are done."""
        ...


class Watched(Protocol):
    """What `watch` gives: it passes items on, each when it is asked for: what comes next may depend on what is done with it."""

    def __call__(self, items: Iterable[T], /) -> Iterable[T]:
        """The same items in the same order."""
        ...


_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Within the block, `listener` is told of all work that is watched; None: nobody is, as it is part of a stage."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def watch(stage: str, total: int | None = None) -> Watched:
    """Begin a stage of `total` items. Its loops, one or several, iterate over what the result gives for theirs.

    watched = watch("linearizing", n_nodes)
    for graph in graphs:
        for node, code in enumerate(watched(graph.code)):
    """
    listener = _listener.get()
    if listener is None:
        return _same
    listener.begin(stage, total)

    def watched(items: Iterable[T], /) -> Iterable[T]:
        done = 0
        for done, item in enumerate(items, 1):
            yield item
            if done % CHUNK == 0:
                listener.advance(CHUNK)
        if done % CHUNK:
            listener.advance(done % CHUNK)

    return watched


def telling(stage: str, total: int, unit: str) -> Callable[[int], None]:
    """Begin a stage whose items are done many at a time: what is to be called with the number of those that are done."""
    listener = _listener.get()
    if listener is None:
        return lambda n: None
    listener.begin(stage, total, unit)
    return listener.advance


def _same(items: Iterable[T], /) -> Iterable[T]:
    return items
