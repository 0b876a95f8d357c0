"""The way to a cluster: the scheduler at an address, one that is started here, or a client that is there."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any
from weakref import WeakKeyDictionary

from distributed import Client, Future, KilledWorker, LocalCluster, Worker, WorkerPlugin

from tidu_cli import __version__
from tidu_cli.cluster.work import Job, Parcel, forget, keep
from tidu_cli.errors import ArgumentError, EvaluationError, counted
from tidu_cli.watching import watch

# What goes wrong on a cluster, in one line each.


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
        chunks = [int(match[1]) for e in filter(_is_killed, errors) if (match := re.search(r"-chunk-(\d+)$", str(e.task)))]
        which = told(min(chunks)) if chunks else name or "a sum of chunks"
        if chunks and max(chunks) > min(chunks):
            which += f", or one up to {told(max(chunks))}"
        return EvaluationError(
            f"{which}: {counted(error.allowed_failures + 1, 'worker')} died on it, and so it is given up; it may need more memory "
            "than they have: take smaller chunks"
        )
    reason = " ".join(str(error).split()) or type(error).__name__
    kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
    return EvaluationError(f"{name or 'a sum of chunks'}: {kind}{reason}")


_MEANWHILE = 0.5  # seconds; within them come the reports of all tasks that died with one worker


def _is_killed(error: Any) -> bool:
    return isinstance(error, KilledWorker)


TIMEOUT = 10
"""Seconds after which a scheduler that does not answer, or has no workers, is given up."""

_LOCAL = re.compile(r"local(?::([1-9][0-9]{0,3}))?")


def require_scheduler(text: str) -> str:
    """The address of a scheduler, or `local`, or `local:N`. Raises EvaluationError for anything else."""
    if not isinstance(text, str):
        told = type(text).__name__
        raise ArgumentError(f"argument 'scheduler' takes an address, 'local' or a distributed.Client, not a value of type {told}")
    address = r"([a-z+]+://)?[^\s/:]+:[0-9]+|[a-z+]+://\S+|\[[0-9a-f:]+\]:[0-9]+"
    if _LOCAL.fullmatch(text) or (re.fullmatch(address, text) and not text.startswith("local:")):
        return text
    raise EvaluationError(
        f"'{text}' is not a scheduler: write its address, such as tcp://head:8786, or local, or local:4 for 4 processes here"
    )


@contextmanager
def connected(scheduler: str | Client) -> Iterator[Client]:
    """A client of a scheduler, whose workers have this version of tidu; one that was made here is closed at the end.

    Raises EvaluationError.
    """
    watch("connecting")
    with ExitStack() as stack:
        client = scheduler if isinstance(scheduler, Client) else stack.enter_context(_started(require_scheduler(scheduler)))
        _require_workers(client)
        try:
            yield client
        finally:
            if client is not scheduler:
                _let_go(client)


def silence() -> None:
    """Have Dask log nothing in this process, for programs that tell in lines of their own what goes wrong. It must be installed."""
    for name in [*logging.root.manager.loggerDict, "distributed", "tornado"]:
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


@contextmanager
def _started(scheduler: str) -> Iterator[Client]:
    with ExitStack() as stack:
        address: Any = scheduler
        if local := _LOCAL.fullmatch(scheduler):
            n = int(local[1]) if local[1] else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
            with _out_of_reach_of_interrupts():
                cluster = LocalCluster(
                    n_workers=n,
                    threads_per_worker=1,
                    silence_logs=logging.CRITICAL + 1,
                    dashboard_address="127.0.0.1:0",  # None is Dask's own port, which another cluster here may have
                    scheduler_kwargs={"dashboard": False},
                )
            address = stack.enter_context(cluster)
        try:
            if isinstance(address, str):
                _require_answer(address)
            client = Client(address, timeout=TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise EvaluationError(
                f"no scheduler answers at {scheduler} ({_line(error)}); `dask scheduler` starts one, and --scheduler local one here"
            ) from None
        yield stack.enter_context(client)


def _require_answer(address: str) -> None:
    """Raises OSError or ValueError soon where no scheduler is: a client would go on asking who never answers, or in other words."""
    if match := re.fullmatch(r"(?:tcp://)?\[?([^/\]]+)\]?:([0-9]+)", address):
        socket.create_connection((match[1], int(match[2])), TIMEOUT).close()
    try:
        with ThreadPoolExecutor(1) as pool:  # as this thread may have an event loop of its own
            kind = pool.submit(asyncio.run, asyncio.wait_for(_identity(address), TIMEOUT)).result()
    except TimeoutError:
        raise ValueError(f"no answer in {TIMEOUT} s") from None
    except MemoryError:  # for a message whose length is made of other words
        kind = "something else"
    if kind != "a Scheduler":
        raise ValueError(f"it is {kind.lower()}")


async def _identity(address: str) -> str:
    from distributed.core import rpc

    async with rpc(address) as there:
        return f"a {(await there.identity())['type']}"


@contextmanager
def _out_of_reach_of_interrupts() -> Iterator[None]:
    """Threads that begin within the block, and processes that these start, get no interrupts: Ctrl-C is for who started them.

    A terminal sends them to all processes of a command. One that comes meanwhile is delivered at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let interrupts through again, when the first process is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _require_workers(client: Client) -> None:
    """Raises EvaluationError if there are no workers, or some that lack tidu, or have another version of it."""
    if client.status != "running":
        raise EvaluationError(f"the client given as scheduler is {client.status}; make another one")
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        address = client.scheduler_info()["address"]
        raise EvaluationError(f"the scheduler at {address} has no workers; `dask worker {address}` starts one") from None
    # By its text, as a function of tidu would be looked for where there may be none.
    with asking():
        versions = client.run(eval, "__import__('tidu_cli').__version__", on_error="return")
    wrong = {address: version for address, version in versions.items() if version != __version__}
    for address, version in wrong.items():
        others = f" (and {counted(len(wrong) - 1, 'more worker')})" if len(wrong) > 1 else ""
        if isinstance(version, ImportError):
            raise EvaluationError(f"the worker at {address} lacks tidu{others}: pip install tidu=={__version__} there")
        had = _line(version) if isinstance(version, Exception) else f"has tidu {version}"
        raise EvaluationError(f"the worker at {address} {had}{others}, and here is {__version__}; install the same")


@contextmanager
def kept(client: Client, parcel: Parcel, job: Job) -> Iterator[None]:
    """Within the block every worker has the parcel and the job, also those that come later.

    The parcel stays until the client maps another document, so that steps of an iteration do not send it again.
    """
    mine = f"{parcel.name}-{client.id}"  # as other clients may map the same document, and end before
    with _lock:
        documents = _documents.setdefault(client, {})
        _let_go(client, but=mine)
        if mine not in documents:
            with asking():
                client.register_plugin(Keeping(parcel), name=mine)
            documents[mine] = set()
        documents[mine].add(job.name)
    try:
        with asking():
            client.register_plugin(Keeping(job), name=job.name)
        try:
            yield
        finally:
            _unregister(client, job.name)
    finally:
        documents[mine].discard(job.name)


_documents: WeakKeyDictionary[Client, dict[str, set[str]]] = WeakKeyDictionary()
"""What the plugins of its documents are called, and the jobs under way of each, as several threads may map with one client."""

_lock = threading.Lock()


def _let_go(client: Client, but: str | None = None) -> None:
    """Have workers forget the documents of which no job is under way."""
    documents = _documents.get(client, {})
    for name in [name for name, jobs in documents.items() if not jobs and name != but]:
        _unregister(client, name)
        del documents[name]


def _unregister(client: Client, name: str) -> None:
    if client.status == "running":
        with suppress(OSError, ValueError):  # the scheduler went in between
            client.unregister_worker_plugin(name)


def _line(error: BaseException) -> str:
    told = getattr(error, "strerror", None) or str(error)
    return " ".join(told.split()) or type(error).__name__


# What workers keep, as a plugin of Dask's: its scheduler gives it to each worker once, whenever that comes.


class Keeping(WorkerPlugin):
    """A worker that has this plugin has the parcel or the job."""

    def __init__(self, thing: Parcel | Job) -> None:
        self.thing = thing

    def setup(self, worker: Worker) -> None:
        """Called once on every worker."""
        keep(self.thing)

    def teardown(self, worker: Worker) -> None:
        """Called when it is not needed any more."""
        forget(self.thing.name)
