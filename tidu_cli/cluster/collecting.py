"""A batch from beginning to end: its chunks computed, kept beside the file that they are for, and put together.

Jacobians and Hessians are batches, too: a linear graph evaluated for unit tangents, in order, by chunks of columns or rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Any

from tidu_cli.cluster.items import Items, Plan, tensor_at
from tidu_cli.cluster.run import Batch, parts, summed_up
from tidu_cli.cluster.saved import Saved
from tidu_cli.cluster.work import Values
from tidu_cli.errors import LimitError, Remedy, counted
from tidu_cli.formats.files import format_of, is_chunked
from tidu_cli.formats.values import require_writable, write_values
from tidu_cli.formats.write import write_pieces
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Path, RecordType, TensorType, Type, leaves
from tidu_cli.installed import scheduler as installed_scheduler
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.limits import format_size, limits, more_than, require
from tidu_cli.notes import detail, note
from tidu_cli.runtime.evaluate import outward
from tidu_cli.runtime.plans.interpreter import owned
from tidu_cli.runtime.plans.program import needed_inputs

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


class Units(Frozen):
    """The unit tangents of one input, as items: of `size` in all, those from `first` on are its own, and the others are zero."""

    type: Type
    first: int
    size: int

    def read(self, start: int, stop: int) -> Any:
        """Those from `start` to `stop`."""
        return self._of(self.type, self.first, start, stop)

    def identity(self) -> str:
        """What says which these are."""
        return f"{self.type} from {self.first} of {self.size}"

    def _of(self, type_: Type, first: int, start: int, stop: int) -> Any:
        import numpy as np

        if isinstance(type_, RecordType):
            fields = {}
            for name, field in type_.fields:
                fields[name] = self._of(field, first, start, stop)
                first += sum(t.size for _, t in leaves(field))
            return tuple(fields.values()) if type_.is_tuple else fields
        units = np.zeros((stop - start, type_.size), numpy_dtype(np, type_.dtype))
        mine = np.arange(max(start, first), min(stop, first + type_.size))
        units[mine - start, mine - first] = 1
        return units.reshape(stop - start, *type_.shape)


class _Array(Frozen):
    """An array of an input or output of a linear graph; its units are those from `first` on, None where nothing reads it."""

    key: Key
    path: Path
    type: TensorType
    first: int | None = None


class Blocks(Frozen, slots=False):
    """The blocks of a matrix, `types` by key, and the arrays of inputs and outputs of the linear map that each is of."""

    types: Mapping[Key, Type]
    ends: Sequence[tuple[_Array, _Array]]
    by_rows: bool
    units: Mapping[Key, Items]

    def collected(self, chunks: Iterable[tuple[int, Values]], plan: Plan) -> Values:
        """The blocks, of the images of unit tangents, by chunks in any order. Raises LimitError if they would not fit in memory."""
        import numpy as np

        arrays = {key: type_ for key, type_ in self.types.items() if isinstance(type_, TensorType)}
        require("memory", sum(t.nbytes for t in arrays.values()), "the blocks of the matrix")
        blocks = {key: np.zeros(t.shape, numpy_dtype(np, t.dtype)) for key, t in arrays.items()}
        for k, values in chunks:
            start, stop = plan.range(k)
            for block, (unit, image) in zip(blocks.values(), self.ends, strict=True):
                if unit.first is None:
                    continue
                low, high = max(start, unit.first), min(stop, unit.first + unit.type.size)
                if low < high:
                    value = tensor_at(values[image.key], image.path)
                    rows = value[low - start : high - start].reshape(high - low, image.type.size)
                    self._put(block, rows, low - unit.first, unit.type.size)
        return dict(blocks)

    def _put(self, block: Any, rows: Any, at: int, n_units: int) -> None:
        if self.by_rows:  # the adjoint's rows are conjugates
            block.reshape(n_units, -1)[at : at + len(rows)] = rows.conj() if rows.dtype.kind == "c" else rows
        else:
            block.reshape(-1, n_units)[:, at : at + len(rows)] = rows.T


def blocks_of(linear: Graph, matrix: Graph, inputs: Sequence[Input], outputs: Sequence[Output]) -> Blocks:
    """How the outputs of `matrix` come of the self-contained graph `linear` of the same map.

    `inputs` and `outputs` are those of the map, as `transforms.matrix` had it.
    """
    needed = needed_inputs(linear)
    by_rows = all(i.key.path[-1] < 0 for i in inputs)
    live = [i for i in inputs if i.key in needed]
    size = sum(t.size for i in live for _, t in leaves(i.type))
    units = list(_arrays(inputs, needed))
    images = [_Array(o.key, path, type_) for o in outputs for path, type_ in leaves(o.type)]
    pairs = product(units, images) if by_rows else ((unit, image) for image, unit in product(images, units))
    first = {unit.key: unit.first for unit in reversed(units)}
    given: dict[Key, Items] = {i.key: Units(i.type, first[i.key] or 0, size) for i in live}
    return Blocks({o.key: o.type for o in matrix.outputs}, list(pairs), by_rows, given)


def _arrays(inputs: Iterable[Input], needed: set[Key]) -> Iterator[_Array]:
    first = 0
    for i in inputs:
        for path, type_ in leaves(i.type):
            yield _Array(i.key, path, type_, first if i.key in needed else None)
            first += type_.size if i.key in needed else 0
