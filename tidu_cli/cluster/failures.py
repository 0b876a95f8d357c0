"""What goes wrong on a cluster, in one line each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, counted

if TYPE_CHECKING:
    from distributed import Future


class SchedulerLostError(EvaluationError):
    """The scheduler, or the way to it, is gone."""

    def __init__(self) -> None:
        super().__init__("the scheduler does not answer any more")


def task_failure(future: Future[Any], name: str | None, told: Callable[[int], str]) -> EvaluationError:
    """Why a task was not done; `name` is how messages call its chunk, and `told` names chunks by index."""
    from distributed import KilledWorker

    if future.status in ("cancelled", "lost"):
        return SchedulerLostError()
    error = future.exception()
    if isinstance(error, KilledWorker):
        found = re.search(r"-chunk-(\d+)$", str(error.task))
        which = told(int(found[1])) if found else name or "a sum of chunks"
        return EvaluationError(
            f"{which}: {counted(error.allowed_failures + 1, 'worker')} died on it, and so it is given up; it may need more memory "
            "than they have: take smaller chunks"
        )
    reason = " ".join(str(error).split()) or type(error).__name__
    kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
    return EvaluationError(f"{name or 'a sum of chunks'}: {kind}{reason}")
