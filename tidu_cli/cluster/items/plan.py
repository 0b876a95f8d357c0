"""Which items go together: chunks, whose size follows from the work alone, so that no result depends on who does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tidu_cli.errors import EvaluationError, Remedy
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import leaves

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
            "there is no batch to be spread; say with ", Remedy("batch", "KEY=0", python="batch={KEY: 0}"), " which input has one"
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
