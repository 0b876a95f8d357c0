"""Items that are at hand, and travel with the tasks that need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tidu_cli.graph.graph import Input
from tidu_cli.graph.types import Type
from tidu_cli.runtime.batches import as_batch, batch_type
from tidu_cli.runtime.evaluate import outward


@dataclass(frozen=True, slots=True)
class Held:
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


def held(declared: Input, axis: int, value: object) -> Held:
    """A user's value of an input, many along an axis. Raises EvaluationError for what does not fit."""
    place = f"input {declared.key}"
    array, size = as_batch(place, declared.type, axis, value)
    type_: Type = batch_type(place, declared.type, size)
    return Held(outward(type_, array), size)


def _sliced(value: Any, chosen: slice) -> Any:
    if isinstance(value, dict):
        return {name: _sliced(field, chosen) for name, field in value.items()}
    if isinstance(value, tuple):
        return tuple(_sliced(field, chosen) for field in value)
    return value[chosen]
