"""What all engines make of a graph: something that runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.graph.keys import Key

if TYPE_CHECKING:
    from tidu_cli.graph.graph import Graph, Input, Output
    from tidu_cli.rules.vocabulary import PrimitiveSet


Run = Callable[[Mapping[Key, Any]], list[Any]]
"""From the inputs of a chunk, with the batch as their first axis, to the values of the outputs, None for structural zeros."""


class Runnable(ABC):
    """A graph made ready to be run many times: `outputs` are what a run computes, and `inputs` what it needs for that.

    `graph` may be without its nodes; `primitives` are those of it.
    """

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def current(self) -> Runnable:
        """What runs: itself, but for one that tries others."""
        return self

    def run(self, inputs: Mapping[Key, Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`, in order, for values of the declared types (`evaluate` checks what users give).

        Times are arrays of the numbers that hold them, records tuples of their fields' values, in order. In those of tangents None
        stands for a field that is zero; results hold arrays of zeros there. The results belong to the caller: they share no memory
        with the inputs, which are left as they are, or one another. With `once` nothing need be kept for a later run. Raises
        EvaluationError when memory runs out.
        """
        return self.run_in_order([inputs[i.key] for i in self.inputs], once=once)

    @abstractmethod
    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        """Likewise, of the values of `inputs` in order. A call may take no longer than it takes to look up a few keys."""

    @abstractmethod
    def nbytes(self) -> int:
        """About how many bytes a run takes, with inputs and results."""
