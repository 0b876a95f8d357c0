"""Waiting for what must come. No test is decided by the clock: a busy machine takes longer; LIMIT ends a test that hangs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT = 900.0
"""Seconds after which a test fails that waits for a process, a worker or a file."""


def until(happened: Callable[[], T], what: str = "what was waited for") -> T:
    """Wait until a function gives something that is true, and give that. Raises AssertionError after LIMIT."""
    end = time.monotonic() + LIMIT
    while not (value := happened()):
        assert time.monotonic() < end, f"{what} did not come in {LIMIT:.0f} s"
        time.sleep(0.02)
    return value


def cpu_seconds(work: Callable[[], object]) -> float:
    """What a call takes of this process' processors, which other processes do not slow down much."""
    start = time.process_time()
    work()
    return time.process_time() - start
