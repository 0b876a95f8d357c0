"""What is to be undone before a signal ends the process: a file beside the one that is replaced, a bar on the terminal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""An interrupt (Ctrl-C), a request to end, and a terminal that closes."""


class _Handler:
    """Undoes, and then lets the signal do what it did before."""

    def __init__(self, undo: Callable[[], None], before: _Handler | signal.Handlers) -> None:
        self.undo = undo
        self.before = before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.undo()
        if isinstance(self.before, _Handler):
            self.before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


@contextmanager
def undone_by_signals(undo: Callable[[], None]) -> Iterator[None]:
    """Within the block, `undo` is called before a signal ends the process; the process ends by the signal all the same.

    Concerns signals that would end it at once. Where a program has handlers of its own, as Python's that raises KeyboardInterrupt,
    they stay; so does everything in threads other than the main one, which get no signals.
    """
    replaced: list[tuple[int, _Handler | signal.Handlers]] = []
    if threading.current_thread() is threading.main_thread():
        for number in _ENDING:
            before = signal.getsignal(number)
            if isinstance(before, _Handler) or before is signal.SIG_DFL:
                replaced.append((number, before))
                signal.signal(number, _Handler(undo, before))
    try:
        yield
    finally:
        for number, before in replaced:
            signal.signal(number, before)
