"""Machine code for graphs of numbers behind the port of engines. llvmlite is imported where a graph is compiled."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any

from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.rules.vocabulary import PrimitiveSet

_PLAN, _START, _NUMBER = 0.35e-6, 0.1, 0.01e-6
"""Seconds to compile a node, to load llvmlite, and for an operation on numbers (docs/performance.md, Engines)."""


class _Native:
    """Operations on numbers compiled, those on arrays by NumPy."""

    name, package, extra, devices = "native", "llvmlite", "native", False

    def seconds(self, n_nodes: int, n_calls: int, n_numbers: int, runs: int, call: float) -> float:
        """Operations on arrays take what they take in NumPy."""
        return (
            (_START if "llvmlite" not in sys.modules else 0.0)
            + n_nodes * _PLAN
            + runs * (n_numbers * _NUMBER + (n_calls - n_numbers) * call)
        )

    def refusal(self, graph: Graph, primitives: PrimitiveSet) -> str | None:
        """As `engine.refusal` does."""
        from tidu_cli.adapters.native import engine

        return engine.refusal(graph, primitives)

    def program(self, graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> Any:
        """As `engine.program` does."""
        from tidu_cli.adapters.native import engine

        return engine.program(graph, primitives, outputs, device)

    def batch(self, graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Any:
        """As `engine.batch` does."""
        from tidu_cli.adapters.native import engine

        return engine.batch(graph, keys, size, max_memory)

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """As `engine.takes` does."""
        from tidu_cli.adapters.native import engine

        return engine.takes(case, primitives)


NATIVE = _Native()
