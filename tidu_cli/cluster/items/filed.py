"""Items that lie in files, and are read by whoever needs them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from tidu_cli.errors import EvaluationError
from tidu_cli.formats.chunks.sources import Source
from tidu_cli.formats.values.places import value_at
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Input
from tidu_cli.runtime.batches import batch_size
from tidu_cli.runtime.inputs import input_value

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
