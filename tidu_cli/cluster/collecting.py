"""Results of chunks put together in memory, and a batch from beginning to end, for callers in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from tidu_cli import installed
from tidu_cli.cluster.items import Plan, from_files
from tidu_cli.cluster.run import Batch, batch_of, parts, summed_up
from tidu_cli.cluster.saved import Saved
from tidu_cli.cluster.work import Values
from tidu_cli.errors import LimitError, Remedy
from tidu_cli.formats.files import format_of, noting
from tidu_cli.formats.values import require_writable, write_values
from tidu_cli.formats.write import write_pieces
from tidu_cli.graph.graph import Graph, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type, leaves
from tidu_cli.limits import format_size, limits, more_than
from tidu_cli.runtime.evaluate import outward
from tidu_cli.runtime.plans.interpreter import owned


def put_together(batch: Batch, found: Iterable[tuple[int, Values]]) -> Values:
    """The results of a batch, of its parts in any order. Raises as `collected`."""
    return summed_up(batch, found) if batch.job.reduction else collected(found, batch.plan, batch.types)


def collected(found: Iterable[tuple[int, Values]], plan: Plan, types: Mapping[Key, Type]) -> Values:
    """The values of all items, of chunks in any order. Raises LimitError before anything runs if they would not fit in memory."""
    import numpy as np

    needed, allowed = sum(t.nbytes for type_ in types.values() for _, t in leaves(type_)), limits().bytes()
    if needed > allowed:
        way = f"write them to a file, {Remedy('out', 'out.zarr', flag='-o')}, or "
        raise LimitError(f"the results of all items: {format_size(needed)}, {more_than('memory', allowed, way)}")
    rooms = owned(np, [None] * len(types), [Output(key, None, type_) for key, type_ in types.items()])
    whole = {key: outward(type_, room) for (key, type_), room in zip(types.items(), rooms, strict=True)}
    for k, values in found:
        start, stop = plan.range(k)
        for key, room in whole.items():
            _fill(room, values[key], start, stop)
    return whole


def _fill(room: Any, value: Any, start: int, stop: int) -> None:
    if isinstance(room, dict):
        for name, field in room.items():
            _fill(field, value[name], start, stop)
    elif isinstance(room, tuple):
        for field, part in zip(room, value, strict=True):
            _fill(field, part, start, stop)
    else:
        room[start:stop] = value


@noting()
def mapped(
    graph: Graph,
    inputs: Mapping[Key, object],
    axes: Mapping[Key, int],
    scheduler: Any,
    out: str | None = None,
    resume: bool = False,
    **how: Any,
) -> Values:
    """The values of outputs for all items, or their sum or mean. `how` are options of `batch_of`. Raises EvaluationError.

    With `out` the values of items are written there, and none are returned; a sum or mean is both.
    """
    batch = batch_of(graph, {key: from_files(f"input {key}", x, key in axes) for key, x in inputs.items()}, axes, **how)
    if out is not None and batch.job.reduction:
        require_writable(str(format_of(out)), batch.types)
    saved = None if out is None else Saved(batch, out, streamed=not batch.job.reduction, resume=resume)
    with (
        nullcontext() if saved is None else saved.open(),
        nullcontext(None) if scheduler is None else installed.scheduler().connected(scheduler) as client,
    ):
        if saved is None:
            return put_together(batch, parts(batch, client))
        if not saved.streamed:
            found = put_together(batch, saved.filled(client))
            write_pieces((write_values(found, str(format_of(out)), batch.types),), out)
            return found
        saved.fill(client)
        return {}
