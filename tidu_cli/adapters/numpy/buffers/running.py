"""Which recording runs, for what recordings are made of."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from tidu_cli.adapters.numpy.arrays.array import Array

RUNNING: ContextVar[Any] = ContextVar("running", default=None)
"""The outermost one."""


def innermost_of(x: Array) -> Any:
    """The recording in which what is computed of a traced array is recorded now."""
    recording: Any = x.recorder
    return recording.open[-1]


LOADING: ContextVar[bool] = ContextVar("loading", default=False)
"""Whether a file is run whose function is to be traced."""


def buffers_wanted() -> bool:
    """Whether arrays that are made now may be met by a function that is traced."""
    return RUNNING.get() is not None or LOADING.get()


def innermost_running() -> Any:
    """The recording in which nodes are recorded now, None if nothing is traced."""
    recording = RUNNING.get()
    return recording.open[-1] if recording is not None else None
