"""Results of chunks put together in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidu_cli.cluster.items.plan import Plan
from tidu_cli.cluster.run import Batch, summed_up
from tidu_cli.cluster.work import Values
from tidu_cli.errors import LimitError, worded
from tidu_cli.graph.graph import Output
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
        way = worded("write them to a file, -o out.zarr, or ", "write them to a file, out='out.zarr', or ")
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
