"""What runs on a worker: plain functions of chunks. A job is made ready once a process, and once for each of its threads."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from tidu_cli import __version__
from tidu_cli.cluster.items import Items, Plan, chunk_name
from tidu_cli.custom.packages import known_with
from tidu_cli.errors import DocumentError, TiduError, called_in_shell, is_called_in_shell
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.installed import scheduler
from tidu_cli.limits import Limits, limited, limits
from tidu_cli.runtime.batches import Runs, evaluate_batch
from tidu_cli.runtime.choosing import PLAIN, Choice
from tidu_cli.runtime.sums import added
from tidu_cli.transforms.batch import vectorized
from tidu_cli.watching import listening

# What workers are to do, in parcels that travel once to each worker: tasks name them.


class Parcel(Frozen, slots=False):
    """A self-contained document of one graph as bytes, by a name that follows from them."""

    name: str
    data: bytes
    plugins: tuple[str, ...] = ()
    version: str = __version__


class Job(Frozen, slots=False):
    """How the document of a parcel is run: the inputs that have items, and the values of all others.

    `items` are those that every worker can read by itself; others come with the tasks. `memory` and `steps` are the limits that the
    user set, None for each worker's own memory, and for any number of steps; `name` is what tasks call it.
    """

    document: str
    batched: tuple[Key, ...]
    shared: Mapping[Key, Any]
    reduction: str | None = None
    engine: Choice = PLAIN
    max_memory: int | None = None
    memory: int | None = field(default_factory=lambda: limits().memory)
    steps: int | None = field(default_factory=lambda: limits().steps)
    items: Mapping[Key, Items] = field(default_factory=dict)
    in_shell: bool = field(default_factory=is_called_in_shell)
    name: str = field(default_factory=lambda: f"tidu-{os.urandom(8).hex()}")


def parcel_of(graph: Graph, plugins: tuple[str, ...] = ()) -> Parcel:
    """A self-contained graph on its way."""
    with listening(None):
        data = format_document(Document((graph,), graph.cases), "msgpack")
    return Parcel(f"tidu-document-{hashlib.sha256(data).hexdigest()[:32]}", data, plugins)


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
        with called_in_shell(job.in_shell), limited(Limits(memory=job.memory or _memory(), steps=job.steps)), listening(None):
            graph, runs = _ready(job.document)
            values = dict(job.shared)
            for key, items in (*job.items.items(), *given.items()):
                values[key] = _read(items, start, stop)
            axes = dict.fromkeys(job.batched, 0)
            results, _ = evaluate_batch(
                graph, values, axes, vectorized,
                max_memory=job.max_memory, engine=job.engine, reduction="sum" if job.reduction else None, runs=runs,
            )  # fmt: skip
            return results
    except TiduError as error:
        return Failure(f"{chunk_name(index, start, stop)}: {error}")
    except MemoryError:
        return Failure(f"{chunk_name(index, start, stop)}: out of memory on the worker; take smaller chunks")


def add_up(*parts: Values | Failure) -> Values | Failure:
    """The sum of partial sums, or the first failure among them."""
    for part in parts:
        if isinstance(part, Failure):
            return part
    total: Values = added(parts)
    return total


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


# What is to be done, task by task, in the order in which it is handed out.


FAN_IN = 8
"""So many partial sums are added by one task, unless they are large."""

LARGE = 2**22
"""Sums of more bytes are added two by two, as soon as there are two: a worker holds all that a task adds."""

GROUP = FAN_IN**2
"""So many chunks are added up on workers. Sums of groups come home and are added there.

While a sum is wanted a scheduler keeps all tasks that it came of, in case that a worker dies; so a tree of all chunks would be kept
to its end.
"""


class Task(Frozen):
    """A call: `chunk` is the index of the one that it computes; a result that is `wanted` comes home, as that of this index."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    chunk: int | None = None
    wanted: int | None = None


Tasks = Generator[Task, Any, None]
"""Tasks; what stands for the result of one is sent in before the next is taken, and may be an argument of later ones."""


def chunk_tasks(name: str, plan: Plan, given: Callable[[int, int], Mapping[Key, Items]], todo: Iterable[int]) -> Tasks:
    """A task for each chunk of `todo`, all wanted. `given` are the items of a chunk, or where they lie."""
    for k in todo:
        start, stop = plan.range(k)
        yield Task(run_chunk, (name, k, start, stop, given(start, stop)), chunk=k, wanted=k)


def fan_in(nbytes: int) -> int:
    """How many partial sums of so many bytes a task adds. The sum is the same, bit for bit: `added` does it in pairs."""
    return FAN_IN if nbytes <= LARGE else 2


def sum_tasks(
    name: str, plan: Plan, given: Callable[[int, int], Mapping[Key, Items]], groups: Iterable[int], fan: int = FAN_IN
) -> Tasks:
    """Tasks that add up the chunks of each group, `fan` by `fan`; its sum is wanted."""

    def summed(chunks: range, wanted: int | None = None) -> Generator[Task, Any, Any]:
        """The tasks of a sum, each after those of what it adds; gives what stands for the result."""
        if len(chunks) == 1 and wanted is None:
            start, stop = plan.range(chunks[0])
            return (yield Task(run_chunk, (name, chunks[0], start, stop, given(start, stop)), chunk=chunks[0]))
        size = 1
        while size * fan < len(chunks):
            size *= fan
        parts = []
        for begin in range(0, len(chunks), size):
            parts.append((yield from summed(chunks[begin : begin + size])))
        return (yield Task(add_up, tuple(parts), wanted=wanted))

    for g in groups:
        yield from summed(range(g * GROUP, min((g + 1) * GROUP, max(len(plan), 1))), wanted=g)


def run_here(tasks: Tasks) -> Iterator[tuple[int, Any]]:
    """The results that are wanted, of tasks done one after the other in this process."""
    value: Any = None
    while True:
        try:
            task = tasks.send(value)
        except StopIteration:
            return
        value = task.function(*task.args)
        if task.wanted is not None:
            yield task.wanted, value
