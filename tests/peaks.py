"""How much memory something takes, as Python and NumPy report theirs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def traced(work: Callable[[], T]) -> tuple[T, int]:
    """What work gives, and the bytes that were held for it at most, beyond those before."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak(work: Callable[[], object]) -> int:
    """The bytes alone."""
    return traced(work)[1]
