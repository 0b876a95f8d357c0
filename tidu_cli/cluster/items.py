"""The items of a batch: how many there are, how they are cut into chunks, and where each is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Protocol

from tidu_cli.errors import EvaluationError, Remedy
from tidu_cli.formats.chunks.sources import Source
from tidu_cli.formats.values.text import value_at
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import Path, Type, leaves
from tidu_cli.runtime.batches import as_batch, batch_size, batch_type
from tidu_cli.runtime.evaluate import outward
from tidu_cli.runtime.inputs import input_value

# Which items go together: chunks, whose size follows from the work alone, so that no result depends on who does it.


CHUNK_BYTES = 2**26
"""The inputs and results of a chunk take about so many bytes: they travel in a tenth of a second."""

CHUNK_NUMBERS = 2**29
"""The steps of a chunk compute about so many numbers: a second or so of work, beside which a task costs nothing."""


class Items(Protocol):
    """The items of a batch of one input, wherever they lie. It travels to workers, and should be small."""

    @property
    def size(self) -> int:
        """How many there are."""

    def read(self, start: int, stop: int) -> Any:
        """Those from `start` to `stop`, with the batch as their first axis."""

    def identity(self) -> str:
        """What says which items these are."""


class Plan(Frozen):
    """`size` items in chunks of `chunk`, of which the last may be smaller."""

    size: int
    chunk: int

    def __len__(self) -> int:
        return -(-self.size // self.chunk)

    def range(self, index: int) -> tuple[int, int]:
        """The items of a chunk: the first, and the one after the last."""
        return index * self.chunk, min((index + 1) * self.chunk, self.size)

    def name(self, index: int) -> str:
        """How messages call a chunk."""
        return chunk_name(index, *self.range(index))


def chunk_name(index: int, start: int, stop: int) -> str:
    """How messages call a chunk."""
    return f"chunk {index} (item {start})" if stop - start == 1 else f"chunk {index} (items {start} to {stop - 1})"


def common_size(batches: Mapping[Key, Items]) -> int:
    """The number of items that all of these have. Raises EvaluationError if they differ, or there is none."""
    if not batches:
        raise EvaluationError(
            "no batch to spread; say with ", Remedy("batch", "KEY=0", python="batch={KEY: 0}"), " which input has one"
        )
    sizes = {key: items.size for key, items in batches.items()}
    if len(set(sizes.values())) > 1:
        told = listed([f"{key} has {n}" for key, n in sizes.items()])
        raise EvaluationError(f"batches differ in size: {told}; give as many items of each")
    return next(iter(sizes.values()))


def bytes_per_item(graph: Graph, batched: Mapping[Key, object] | tuple[Key, ...], reduction: str | None) -> tuple[int, int]:
    """What an item takes on its way: bytes of inputs, and of results where these are not added up."""
    given = sum(i.type.nbytes for i in graph.inputs if i.key in batched)
    return given, 0 if reduction else sum(o.type.nbytes for o in graph.outputs)


def planned(graph: Graph, batched: tuple[Key, ...], size: int, reduction: str | None, chunk: int | None = None) -> Plan:
    """The items in chunks of `chunk`, or of as many as make a task worth its while."""
    if chunk is None:
        numbers = [sum(t.size for r in case.results for _, t in leaves(r)) for case in graph.cases.cases]
        work = sum(max(numbers[code], 1) for code in graph.code)
        per_item = max(sum(bytes_per_item(graph, batched, reduction)), 1)
        chunk = min(CHUNK_BYTES // per_item, CHUNK_NUMBERS // max(work, 1))
    return Plan(size, max(min(chunk, size), 1))


# Items that lie in files, and are read by whoever needs them.


Place = Source | Mapping[str, Any]
"""Where values lie: an array in files, of a record such a place for each field."""


class Filed(Frozen):
    """Items at a place, along an axis of each array there, which may be counted from the last one."""

    place: Place
    axis: int
    size: int

    def read(self, start: int, stop: int) -> Any:
        """Those from `start` to `stop`, with the batch as their first axis. Raises DocumentError that names the file."""
        return _read(self.place, self.axis, start, stop)

    def files(self, start: int, stop: int) -> Iterator[str]:
        """The files, or directories, that these lie in."""
        for source in _sources(self.place):
            yield from source.files(start, stop, self.axis % len(source.shape))

    def identity(self) -> str:
        """What says which items these are, as far as names, dtypes and shapes say it."""
        return hashlib.sha256(repr((self.place, self.axis)).encode()).hexdigest()


def is_place(value: object) -> bool:
    """Whether it is a place in files, and no value itself."""
    return any(map(is_place, value.values())) if isinstance(value, Mapping) else hasattr(value, "files")


def from_files(where: str, value: Any, in_parts: bool) -> Any:
    """A value, with paths in it as the arrays that are there, or, `in_parts`, as where these lie. Raises DocumentError."""
    if isinstance(value, Mapping):
        return {name: from_files(f"{where}.{name}", field, in_parts) for name, field in value.items()}
    return value_at(str(value), where, in_parts=in_parts) if isinstance(value, PurePath) else value


def filed(declared: Input, axis: int, place: Place) -> Filed:
    """An input's items at a place, of which the first one is read. Raises EvaluationError where it does not fit, DocumentError."""
    where = f"input {declared.key}"
    if not all(hasattr(source, "files") for source in _sources(place)):
        raise EvaluationError(
            f"{where}: some of its fields lie in files of which parts are read, and others do not; give all alike"
        )
    size = batch_size(where, declared.type, axis, place)
    input_value(where, declared.type, _first(_read(place, axis, 0, 1)))
    return Filed(place, axis, size)


def _first(items: Any) -> Any:
    """The first of items that were read, of zeros if there is none."""
    import numpy as np

    if isinstance(items, dict):
        return {name: _first(field) for name, field in items.items()}
    return items[0] if len(items) else np.zeros(items.shape[1:], items.dtype)


def _read(place: Place, axis: int, start: int, stop: int) -> Any:
    import numpy as np

    if isinstance(place, Mapping):
        return {name: _read(field, axis, start, stop) for name, field in place.items()}
    at = axis % len(place.shape)
    return np.moveaxis(place.read(start, stop, at), at, 0)


def _sources(place: Place) -> Iterator[Source]:
    if isinstance(place, Mapping):
        for field in place.values():
            yield from _sources(field)
    else:
        yield place


# Items that are at hand, and travel with the tasks that need them.


class Held(Frozen):
    """Items from the number `first` on, with the batch as their first axis: an array, of a record one for each field."""

    value: Any
    size: int
    first: int = 0

    def read(self, start: int, stop: int) -> Any:
        """Those from `start` to `stop`."""
        return _sliced(self.value, slice(start - self.first, stop - self.first))

    def part(self, start: int, stop: int) -> Held:
        """Those from `start` to `stop` alone, to be sent."""
        return Held(self.read(start, stop), self.size, start)

    def identity(self) -> str:
        """What says which items these are."""
        return digest(self.value)


def held(declared: Input, axis: int, value: object) -> Held:
    """A user's value of an input, many along an axis. Raises EvaluationError for what does not fit."""
    place = f"input {declared.key}"
    array, size = as_batch(place, declared.type, axis, value)
    type_: Type = batch_type(place, declared.type, size)
    return Held(outward(type_, array), size)


def tensor_at(value: Any, path: Path) -> Any:
    """A tensor of a record, and of what is none itself."""
    for name in path:
        value = value[int(name) if isinstance(value, tuple) else name]
    return value


def digest(value: Any) -> str:
    """Of an array, its dtype, shape and numbers; of a record those of its fields; None is zero."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple):
        told = b"".join(digest(field).encode() for field in value)
    else:
        told = b"" if value is None else f"{value.dtype} {value.shape} ".encode() + value.tobytes()
    return hashlib.sha256(told).hexdigest()


def _sliced(value: Any, chosen: slice) -> Any:
    if isinstance(value, dict):
        return {name: _sliced(field, chosen) for name, field in value.items()}
    if isinstance(value, tuple):
        return tuple(_sliced(field, chosen) for field in value)
    return value[chosen]
