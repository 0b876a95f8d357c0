"""Items that are at hand, and travel with the tasks that need them."""

from __future__ import annotations

import hashlib
from typing import Any

from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Input
from tidu_cli.graph.types import Path, Type
from tidu_cli.runtime.batches import as_batch, batch_type
from tidu_cli.runtime.evaluate import outward


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
