"""Which recording runs, for what recordings are made of."""

from __future__ import annotations

from contextvars import ContextVar

from tidu_cli.build.arrays.array import Recording

RUNNING: ContextVar[Recording | None] = ContextVar("running", default=None)
"""The outermost one."""

LOADING: ContextVar[bool] = ContextVar("loading", default=False)
"""Whether a file is run whose function is to be traced."""


def buffers_wanted() -> bool:
    """Whether arrays that are made now may be met by a function that is traced."""
    return RUNNING.get() is not None or LOADING.get()


def innermost_running() -> Recording | None:
    """The recording in which nodes are recorded now, if any is."""
    recording = RUNNING.get()
    return recording.open[-1] if recording is not None else None
