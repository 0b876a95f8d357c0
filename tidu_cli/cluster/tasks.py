"""What is to be done, task by task, in the order in which it is handed out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from tidu_cli.cluster.items.plan import Items, Plan
from tidu_cli.cluster.work import add_up, run_chunk
from tidu_cli.frozen import Frozen
from tidu_cli.graph.keys import Key

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
