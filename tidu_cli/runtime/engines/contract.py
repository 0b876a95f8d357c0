"""What an engine is: a way to run graphs, of which documents know nothing.

An engine is a module `tidu_cli/runtime/engines/NAME/engine.py` with three functions, `refusal`, `program` and `batch`, which
`EngineModule` describes. Each gives what the plain interpreter gives, but for the roundings that docs/howto/engines.md states.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.runnable import Runnable

Run = Callable[[Mapping[Key, Any]], list[Any]]
"""From the inputs of a chunk, with the batch as their first axis, to the values of the outputs, None for structural zeros."""


class EngineModule(Protocol):
    """What the module of an engine has. It is imported when the engine is chosen, and its library when a graph is made ready."""

    def refusal(self, graph: Graph, primitives: PrimitiveSet) -> str | None:
        """Why it cannot run a self-contained graph: its first node that it cannot, in one line. Looks at cases alone."""

    def program(self, graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> Runnable:
        """The graph made ready, to compute these outputs (indices; None for all). Raises EvaluationError for what it refuses.

        `device` is what the user asked for, None for the engine's choice.
        """

    def batch(self, graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Run | None:
        """A run over `size` items of the inputs `keys` at once; None if the graph is to be vectorized, and run as any other.

        Raises EvaluationError if one item would take more than `max_memory` bytes; None means what `limits` say.
        """
