"""Tasks on a cluster, so many chunks at a time: no more are handed out than have come back, however many there are."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from tidu_cli.adapters.dask.scheduler import SchedulerLostError, task_failure
from tidu_cli.cluster.work import Task, Tasks

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 2
"""So often a task is tried again that failed for a reason that may pass: of those that will not, workers tell in their results."""

_RECOUNT = 10.0  # seconds between looks how wide the window may be, as workers come and go
_LOOK = 0.5  # seconds between looks whether the scheduler is still there, while nothing comes
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)


class Window:
    """What is under way on a cluster: at most as many chunks as `width` says, done but not taken home ones among them."""

    def __init__(self, client: Client, name: str, width: Callable[[], int], told: Callable[[int], str]) -> None:
        self.client = client
        self.name = name
        self._width = width
        self._room = width()
        self._looked = time.monotonic()
        self.told = told
        """How messages call a chunk."""
        self.most = 0
        """As many chunks were under way at once."""
        self._chunks = 0
        self._under_way: dict[Future[Any], Task] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()

    def run(self, tasks: Tasks) -> Iterator[tuple[int, Any]]:
        """The results that are wanted, in the order in which they come.

        Raises EvaluationError for a task that cannot be done, and SchedulerLostError; whatever is under way is cancelled then, and
        also when the iterator is closed.
        """
        numbers = iter(range(2**62))
        future: Any = None
        try:
            while True:
                try:
                    task = tasks.send(future)
                except StopIteration:
                    break
                future = self._submit(task, next(numbers))
                while self._chunks >= self._wide():
                    yield from self._taken()
            del future
            while self._under_way:
                yield from self._taken()
        finally:
            if self._under_way and self.client.status == "running":
                self.client.cancel(list(self._under_way), force=True)
            self._under_way.clear()

    def _submit(self, task: Task, number: int) -> Future[Any]:
        what = number if task.chunk is None else f"chunk-{task.chunk}"
        future = self.client.submit(
            task.function, *task.args, key=f"{self.name}-{what}", retries=RETRIES, pure=False, priority=int(task.chunk is None)
        )
        self._under_way[future] = task
        self._chunks += task.chunk is not None
        self.most = max(self.most, self._chunks)
        future.add_done_callback(self._done.put)
        return future

    def _wide(self) -> int:
        if time.monotonic() > self._looked + _RECOUNT:
            self._room, self._looked = self._width(), time.monotonic()
        return self._room

    def _taken(self) -> Iterator[tuple[int, Any]]:
        """Wait for tasks, and give the results that are wanted of those which are done by then: they are fetched together."""
        wanted: list[tuple[Task, Future[Any]]] = []
        failed: list[tuple[Task, Future[Any]]] = []
        for future in self._next():
            self._await_again(future)
            task = self._under_way.pop(future)
            if future.status != "finished":
                failed.append((task, future))
            elif task.wanted is not None:
                wanted.append((task, future))
            else:
                self._chunks -= task.chunk is not None
        yield from self._fetched(wanted)
        if failed:
            (task, future), *others = failed
            name = None if task.chunk is None else self.told(task.chunk)
            raise task_failure(future, name, [*(other for _, other in others), *self._under_way], self.told)

    def _fetched(self, wanted: list[tuple[Task, Future[Any]]]) -> Iterator[tuple[int, Any]]:
        try:
            results = self.client.gather([future for _, future in wanted]) if wanted else []
        except (*_CANCELLED, OSError) as error:  # they went with their workers or the scheduler as they were fetched
            raise SchedulerLostError from error
        for _, future in wanted:
            future.release()
        results.reverse()
        for task, _ in wanted:
            self._chunks -= task.chunk is not None
            yield task.wanted, results.pop()  # type: ignore[misc]

    def _await_again(self, future: Future[Any]) -> None:
        """Wait for a task whose worker died with the result: another one does it now."""
        from distributed import wait

        while future.status in ("lost", "pending"):
            with suppress(TimeoutError, *_CANCELLED), self.client.as_current():
                wait(future, timeout=_LOOK)
            if self.client.status != "running":
                raise SchedulerLostError

    def _next(self) -> list[Future[Any]]:
        """The tasks that are done: one at least, which is waited for."""
        while True:
            try:
                tasks = [self._done.get(timeout=_LOOK)]
                break
            except Empty:
                if self.client.status != "running":
                    raise SchedulerLostError from None
        with suppress(Empty):
            while True:
                tasks.append(self._done.get_nowait())
        return tasks
