"""What goes wrong on a cluster, in one line each."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, counted

if TYPE_CHECKING:
    from distributed import Future


class SchedulerLostError(EvaluationError):
    """The scheduler, or the way to it, is gone."""

    def __init__(self) -> None:
        super().__init__("the scheduler does not answer any more")


@contextmanager
def asking() -> Iterator[None]:
    """Within the block the scheduler is asked: that it goes meanwhile is said, and not which function of Dask's waited."""
    try:
        yield
    except OSError:
        raise SchedulerLostError from None


def task_failure(
    future: Future[Any], name: str | None, others: Iterable[Future[Any]], told: Callable[[int], str]
) -> EvaluationError:
    """Why a task was not done; `name` is how messages call its chunk, and `told` names chunks by index.

    With a worker die all tasks that it has, among `others` too; nobody knows which of them it was at.
    """
    if future.status in ("cancelled", "lost"):
        return SchedulerLostError()
    error = future.exception()
    if _is_killed(error):
        time.sleep(_MEANWHILE)
        errors = [error, *(other.exception() for other in others if other.status == "error")]
        found = [int(match[1]) for e in filter(_is_killed, errors) if (match := re.search(r"-chunk-(\d+)$", str(e.task)))]
        which = told(min(found)) if found else name or "a sum of chunks"
        if found and max(found) > min(found):
            which += f", or one up to {told(max(found))}"
        return EvaluationError(
            f"{which}: {counted(error.allowed_failures + 1, 'worker')} died on it, and so it is given up; it may need more memory "
            "than they have: take smaller chunks"
        )
    reason = " ".join(str(error).split()) or type(error).__name__
    kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
    return EvaluationError(f"{name or 'a sum of chunks'}: {kind}{reason}")


_MEANWHILE = 0.5  # seconds in which it is told of all tasks that died with one worker


def _is_killed(error: Any) -> bool:
    from distributed import KilledWorker

    return isinstance(error, KilledWorker)


def require_dask() -> None:
    """Raises EvaluationError that says what to install, if Dask is missing."""
    if find_spec("distributed") is None:
        raise EvaluationError("clusters need the packages dask and distributed: pip install 'tidu[dask]'")
