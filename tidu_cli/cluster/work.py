"""What runs on a worker: plain functions of chunks. A job is made ready once a process, and once for each of its threads."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from tidu_cli import __version__
from tidu_cli.cluster.items.plan import Items, chunk_name
from tidu_cli.cluster.job import Job, Parcel
from tidu_cli.custom.packages import known_with
from tidu_cli.errors import DocumentError, TiduError, called_in_shell
from tidu_cli.formats.read import parse_document
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.installed import scheduler
from tidu_cli.limits import Limits, limited
from tidu_cli.runtime.batches import Runs, evaluate_batch
from tidu_cli.runtime.sums import added
from tidu_cli.transforms.batch import vectorized
from tidu_cli.watching import listening


class Failure(Frozen, slots=False):
    """Why a chunk cannot be done, however often one tries: a line that names it."""

    reason: str


Values = dict[Key, Any]
"""What a chunk gives, by output: values as `evaluate` gives them."""

_kept: dict[str, Any] = {}  # parcels and jobs, by name
_wanted: Counter[str] = Counter()  # how many keep each
_graphs: dict[str, Graph] = {}
_lock = threading.RLock()  # as a run that was left is forgotten whenever its iterator is collected, in whatever goes on then
_threads = threading.local()


def keep(thing: Parcel | Job) -> None:
    """Have a parcel or a job at hand for tasks that name it, until it is forgotten as often as it is kept."""
    with _lock:
        _wanted[thing.name] += 1
        _kept[thing.name] = thing


def forget(name: str) -> None:
    """Let go of it, unless others keep it, too."""
    with _lock:
        _wanted[name] -= 1
        if _wanted[name] <= 0:
            for table in (_wanted, _kept, _graphs):
                table.pop(name, None)


def run_chunk(name: str, index: int, start: int, stop: int, given: Mapping[Key, Items]) -> Values | Failure:
    """The values of outputs for the items from `start` to `stop`, or their sum, of the job of this name.

    What would go wrong again is told as a Failure; OSError is raised, and the chunk is tried again.
    """
    job: Job = _kept[name]
    try:
        with (
            called_in_shell(job.in_shell),
            limited(Limits(memory=job.memory or _memory(), steps=job.steps)),
            listening(None),
        ):
            graph, runs = _ready(job.document)
            values = dict(job.shared)
            for key, items in (*job.items.items(), *given.items()):
                values[key] = _read(items, start, stop)
            axes = dict.fromkeys(job.batched, 0)
            found, _ = evaluate_batch(
                graph, values, axes, vectorized,
                max_memory=job.max_memory, engine=job.engine, reduction="sum" if job.reduction else None, runs=runs,
            )  # fmt: skip
            return found
    except TiduError as error:
        return Failure(f"{chunk_name(index, start, stop)}: {error}")
    except MemoryError:
        return Failure(f"{chunk_name(index, start, stop)}: out of memory on the worker; take smaller chunks")


def add_up(*parts: Values | Failure) -> Values | Failure:
    """The sum of partial sums, or the first failure among them."""
    for part in parts:
        if isinstance(part, Failure):
            return part
    found: Values = added(parts)
    return found


def _ready(name: str) -> tuple[Graph, Runs]:
    """The graph of a document, read once a process, and what was made ready of it, once a thread, as runs share nothing."""
    with _lock:
        if name not in _graphs:
            parcel: Parcel = _kept[name]
            if parcel.version != __version__:
                raise TiduError(f"this worker has tidu {__version__}, and who asks has {parcel.version}; install the same")
            document, _ = parse_document(parcel.data, "the document sent", known_with(parcel.plugins))
            _graphs[name] = document.head
        graph = _graphs[name]
    made: dict[str, Runs] = _threads.__dict__.setdefault("made", {})
    for other in made.keys() - _graphs.keys():
        del made[other]
    return graph, made.setdefault(name, {})


def _read(items: Any, start: int, stop: int) -> Any:
    try:
        return items.read(start, stop)
    except DocumentError as error:
        worker = scheduler().worker()
        if worker is None or all(map(os.path.exists, items.files(start, stop))):
            raise
        # It was there when the run began, for whoever asks.
        raise DocumentError(f"{error}, on the worker at {worker.address}; put it where all workers see it by this name") from None


def _memory() -> int | None:
    """What a task may take of this worker's memory; None where no worker runs it, or where it has no limit."""
    worker = scheduler().worker()
    return worker.memory if worker else None
