"""Batches in chunks: on a cluster, or one after the other in this process, with the same results bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tidu_cli.cluster import work
from tidu_cli.cluster.items import Held, Items, Plan, bytes_per_item, common_size, filed, held, is_place, planned
from tidu_cli.errors import EvaluationError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type
from tidu_cli.installed import scheduler
from tidu_cli.limits import limits
from tidu_cli.runtime.batches import batch_type
from tidu_cli.runtime.evaluate import require_given
from tidu_cli.runtime.inputs import is_zero_seed
from tidu_cli.runtime.plans.program import needed_inputs
from tidu_cli.runtime.sums import Partial, divided, require_reducible
from tidu_cli.watching import telling

AHEAD = 4
"""So many chunks are under way for each thread: one at work, and others on their way there and back."""


class Batch(Frozen, slots=False):
    """A graph, the items that it is to be evaluated for, and their chunks."""

    graph: Graph
    parcel: work.Parcel
    job: work.Job
    plan: Plan
    items: Mapping[Key, Items]

    @property
    def types(self) -> dict[Key, Type]:
        """The types of the results of all items."""
        if self.job.reduction:
            return {o.key: o.type for o in self.graph.outputs}
        return {o.key: batch_type(f"output {o.key}", o.type, self.plan.size) for o in self.graph.outputs}

    @property
    def n_groups(self) -> int:
        """How many groups of chunks are added up by themselves, where sums are wanted."""
        return max(-(-len(self.plan) // work.GROUP), 1)

    def group(self, g: int) -> tuple[int, int]:
        """The chunks of a group: the first, and the last."""
        return g * work.GROUP, max(min((g + 1) * work.GROUP, len(self.plan)) - 1, 0)

    def part_range(self, k: int) -> tuple[int, int]:
        """The items of a chunk or, where sums are wanted, of a group: the first, and the one after the last."""
        first, last = self.group(k) if self.job.reduction else (k, k)
        return self.plan.range(first)[0], self.plan.range(last)[1]

    def part_name(self, k: int) -> str:
        """How messages call a chunk or a group."""
        if not self.job.reduction:
            return self.plan.name(k)
        (first, last), (start, stop) = self.group(k), self.part_range(k)
        return f"the sum of chunks {first} to {last} (items {start} to {stop - 1})"

    def given(self, start: int, stop: int) -> dict[Key, Items]:
        """The items from `start` to `stop` that are at hand, to be sent."""
        return {key: items.part(start, stop) for key, items in self.items.items() if isinstance(items, Held)}

    def width(self, n_threads: int) -> int:
        """How many chunks are under way at once: what they hold is half of the memory allowed, or less."""
        room = limits().bytes() // 2
        held = {key: items for key, items in self.items.items() if isinstance(items, Held)}  # others do not come by here
        chunk = self.plan.chunk * max(sum(bytes_per_item(self.graph, held, self.job.reduction)), 1)
        return max(min(AHEAD * n_threads, room // chunk), 1)


def batch_of(
    graph: Graph,
    inputs: Mapping[Key, object],
    axes: Mapping[Key, int],
    *,
    chunk: int | None = None,
    reduction: str | None = None,
    plugins: tuple[str, ...] = (),
    **how: Any,
) -> Batch:
    """A graph's evaluation for a batch, as `evaluate_batch` takes it.

    Inputs of `axes` may also be `Items`, whose axis is known, or places in files, see `filed`, where workers read them. `how` are
    other fields of `Job`. Raises EvaluationError.
    """
    if reduction:
        require_reducible(graph.outputs, reduction)
    needed = needed_inputs(graph)
    wanted = [i for i in graph.inputs if i.key in axes or i.key in needed]
    require_given(wanted, inputs)
    items: dict[Key, Items] = {}
    shared: dict[Key, Any] = {}
    for i in wanted:
        value: Any = inputs[i.key]
        if i.key not in axes or is_zero_seed(i.key, i.type, value):
            shared[i.key] = value
        else:
            items[i.key] = _items(i, axes[i.key], value)
    plan = planned(graph, tuple(items), common_size(items), reduction, chunk)
    parcel = work.parcel_of(graph, plugins)
    elsewhere = {key: x for key, x in items.items() if not isinstance(x, Held)}
    return Batch(graph, parcel, work.Job(parcel.name, tuple(items), shared, reduction, items=elsewhere, **how), plan, items)


def _items(declared: Input, axis: int, value: Any) -> Items:
    if is_place(value):
        return filed(declared, axis, value)
    return value if hasattr(value, "read") else held(declared, axis, value)


def parts(batch: Batch, client: Any, todo: Iterable[int] | None = None) -> Iterator[tuple[int, work.Values]]:
    """The values of each chunk of `todo`, by default of all, with its index, in the order in which they are done.

    Where sums are wanted, the sum of each group. Raises EvaluationError that names a chunk which fails. What is under way is given
    up when the iterator is closed.
    """
    wanted = list(range(batch.n_groups if batch.job.reduction else len(batch.plan)) if todo is None else todo)
    done = telling("evaluating", sum(stop - start for start, stop in map(batch.part_range, wanted)), "item")
    how = batch.job.name, batch.plan, batch.given, wanted
    fan = work.fan_in(sum(o.type.nbytes for o in batch.graph.outputs))
    for k, values in _run(batch, client, work.sum_tasks(*how, fan) if batch.job.reduction else work.chunk_tasks(*how)):
        start, stop = batch.part_range(k)
        done(stop - start)
        yield k, values


def summed_up(batch: Batch, groups: Iterable[tuple[int, work.Values]]) -> work.Values:
    """The sum or mean over all items, of the sums of groups in any order, on which it does not depend."""
    early: dict[int, work.Values] = {}
    partial, taken = Partial(), 0
    for g, values in groups:
        early[g] = values
        while taken in early:
            partial.take(early.pop(taken))
            taken += 1
    total: work.Values = partial.total()
    return divided(total, batch.plan.size) if batch.job.reduction == "mean" and batch.plan.size else total


def _run(batch: Batch, client: Any, tasks: work.Tasks) -> Iterator[tuple[int, work.Values]]:
    done = _here(batch, tasks) if client is None else _there(batch, client, tasks)
    for k, values in done:
        if isinstance(values, work.Failure):
            raise EvaluationError(values.reason)
        yield k, values


def _here(batch: Batch, tasks: work.Tasks) -> Iterator[tuple[int, Any]]:
    for thing in (batch.parcel, batch.job):
        work.keep(thing)
    try:
        yield from work.run_here(tasks)
    finally:
        for thing in (batch.parcel, batch.job):
            work.forget(thing.name)


def _there(batch: Batch, client: Any, tasks: work.Tasks) -> Iterator[tuple[int, Any]]:
    machines = scheduler()
    with machines.kept(client, batch.parcel, batch.job):
        window = machines.window(client, batch.job.name, lambda: batch.width(machines.n_threads(client)), batch.plan.name)
        yield from window.run(tasks)
