"""A batch from beginning to end: its chunks computed, kept beside the file that they are for, and put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from tidu_cli.cluster.items import Plan
from tidu_cli.cluster.run import Batch, parts, summed_up
from tidu_cli.cluster.saved import Saved
from tidu_cli.cluster.work import Values
from tidu_cli.errors import LimitError, Remedy, counted
from tidu_cli.formats.files import format_of, is_chunked
from tidu_cli.formats.values import require_writable, write_values
from tidu_cli.formats.write import write_pieces
from tidu_cli.graph.graph import Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type, leaves
from tidu_cli.installed import scheduler as installed_scheduler
from tidu_cli.limits import format_size, limits, more_than
from tidu_cli.notes import detail, note
from tidu_cli.runtime.evaluate import outward
from tidu_cli.runtime.plans.interpreter import owned

_NOTED = 6
"""Chunks that are computed once more, of which notes say why."""


def put_together(batch: Batch, pieces: Iterable[tuple[int, Values]]) -> Values:
    """The results of a batch, of its parts in any order. Raises as `collected`."""
    return summed_up(batch, pieces) if batch.job.reduction else collected(pieces, batch.plan, batch.types)


def collected(chunks: Iterable[tuple[int, Values]], plan: Plan, types: Mapping[Key, Type]) -> Values:
    """The values of all items, of chunks in any order. Raises LimitError before anything runs if they would not fit in memory."""
    import numpy as np

    needed, allowed = sum(t.nbytes for type_ in types.values() for _, t in leaves(type_)), limits().bytes()
    if needed > allowed:
        way = f"write them to a file, {Remedy('out', 'out.zarr', flag='-o')}, or "
        raise LimitError(f"the results of all items: {format_size(needed)}, {more_than('memory', allowed, way)}")
    rooms = owned(np, [None] * len(types), [Output(key, None, type_) for key, type_ in types.items()])
    whole = {key: outward(type_, room) for (key, type_), room in zip(types.items(), rooms, strict=True)}
    for k, values in chunks:
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


def spread(
    batch: Batch,
    scheduler: Any,
    out: str | None = None,
    *,
    resume: bool = False,
    format_: str | None = None,
    types: Mapping[Key, Type] | None = None,
    collect: Callable[[Batch, Iterable[tuple[int, Values]]], Values] = put_together,
    may_stream: bool = True,
    quiet: bool = False,
) -> Values:
    """The results of a batch, put together by `collect`, of the types `types`, by default the batch's own.

    With `out`, a file, they are written there, too, in `format_`, by default the one of its name; chunks are kept beside it until
    it is written. Unless `may_stream` is false, values of items go to a file that takes chunks as they come, and none are returned.
    Where `quiet`, the scheduler's library logs nothing.
    Raises EvaluationError, DocumentError.
    """
    types = batch.types if types is None else types
    streamed = out is not None and may_stream and not batch.job.reduction and is_chunked(out)
    format_ = format_ or (None if out is None else str(format_of(out)))
    if format_ and not streamed:
        require_writable(format_, types)
    saved = None if out is None else Saved(batch, out, streamed=streamed, resume=resume)
    _say_what_is_there(saved, batch)
    with nullcontext() if saved is None else saved.open(), _connected(scheduler, quiet) as client:
        detail(f"{counted(len(batch.plan), 'chunk')} of {counted(batch.plan.chunk, 'item')}")
        if saved is not None and streamed:
            saved.fill(client)
            values: Values = {}
        else:
            values = collect(batch, parts(batch, client) if saved is None else saved.filled(client))
            write(values, types, format_, out)
    if streamed:
        detail(f"wrote {out}")
    return values


def write(values: Values, types: Mapping[Key, Type], format_: str | None, out: str | None) -> None:
    """Write values to a file, if there is one. Raises DocumentError."""
    if out is not None:
        length = write_pieces((write_values(values, format_ or str(format_of(out)), types),), out)
        detail(f"wrote {out}: {counted(length, 'byte')}")


def _say_what_is_there(saved: Saved | None, batch: Batch) -> None:
    if saved is None:
        return
    if saved.done:
        what = "sum" if batch.job.reduction else "chunk"
        detail(f"going on from {counted(len(saved.done), what)} of {len(saved.sink.manifest)} in {saved.sink.folder}")
    for name, reason in list(saved.again.items())[:_NOTED]:
        note(f"{name} is done again: {reason}")


@contextmanager
def _connected(scheduler: Any, quiet: bool) -> Iterator[Any]:
    """The client of a scheduler; None for this process."""
    if scheduler is None:
        yield None
        return
    machines = installed_scheduler()
    with machines.connected(scheduler, quiet=quiet) as client:
        detail(machines.described(client))
        yield client
