"""Which recording runs, for what recordings are made of."""

from __future__ import annotations

from contextvars import ContextVar

from tidu_cli.build.arrays.array import Recording

RUNNING: ContextVar[Recording | None] = ContextVar("running", default=None)
"""The outermost one."""


def innermost_running() -> Recording | None:
    """The recording in which nodes are recorded now, if any is."""
    recording = RUNNING.get()
    return recording.open[-1] if recording is not None else None
