"""What is to be done, task by task, in the order in which it is handed out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tidu_cli.cluster.items.plan import Items, Plan
from tidu_cli.cluster.work import add_up, run_chunk
from tidu_cli.graph.keys import Key

FAN_IN = 8
"""So many partial sums are added by one task."""

GROUP = FAN_IN**2
"""So many chunks are added up on workers, in two steps. Sums of groups come home and are added there, by `FAN_IN`.

While a sum is wanted a scheduler keeps all tasks that it came of, in case that a worker dies; so a tree of all chunks would be kept
to its end.
"""


@dataclass(frozen=True, slots=True)
class Task:
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


def sum_tasks(name: str, plan: Plan, given: Callable[[int, int], Mapping[Key, Items]], groups: Iterable[int]) -> Tasks:
    """Tasks that add up the chunks of each group, whose sum is wanted."""
    for g in groups:
        tops: list[Any] = []
        chunks = iter(range(g * GROUP, min((g + 1) * GROUP, max(len(plan), 1))))
        while some := list(islice(chunks, FAN_IN)):
            parts = []
            for k in some:
                start, stop = plan.range(k)
                parts.append((yield Task(run_chunk, (name, k, start, stop, given(start, stop)), chunk=k)))
            tops.append((yield Task(add_up, tuple(parts))))
        yield Task(add_up, tuple(tops), wanted=g)


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
