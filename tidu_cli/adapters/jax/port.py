"""Functions of JAX behind the port of sources, and XLA behind that of engines. JAX is imported where either works."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tidu_cli.adapters.numpy.port import FUNCTION
from tidu_cli.graph.graph import Case, Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.port_data import Data, Given
from tidu_cli.rules.vocabulary import PrimitiveSet


class _Jax:
    """FILE.py:FUNCTION, a function of JAX, which JAX traces."""

    names, functions, written = FUNCTION.names, FUNCTION.functions, FUNCTION.written

    def build(
        self, text: str, given: Mapping[str, Given], *, data: Data | None, name: str | None, outputs: Sequence[str], **how: Any
    ) -> Document:
        """As `build_jax_function` does."""
        from tidu_cli.adapters.jax.functions.function import build_jax_function

        return build_jax_function(text, given, data=data, name=name, outputs=outputs, **how)

    def notes(self, document: Document) -> Sequence[str]:
        """None: JAX keeps loops as loops."""
        return ()


_PLAN, _START, _CALL, _RUN = 1e-3, 1.0, 0.02e-6, 20e-6
"""Seconds to compile a node, to load XLA, for an operation, and for a run by itself (docs/performance.md, Engines)."""

_NODES = 5000
"""With more nodes XLA takes longer for each."""


class _Xla:
    """XLA by way of JAX."""

    name, package, extra, devices = "xla", "jax", "jax", True

    def seconds(self, n_nodes: int, n_calls: int, n_numbers: int, runs: int, call: float) -> float:
        """Compilation takes most of it; where JAX runs already, its start costs nothing more."""
        running = getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None)
        return (0.0 if running else _START) + n_nodes * _PLAN * (1 + n_nodes / _NODES) + runs * (_RUN + n_calls * _CALL)

    def refusal(self, graph: Graph, primitives: PrimitiveSet) -> str | None:
        """As `engine.refusal` does."""
        from tidu_cli.adapters.jax.engine import engine

        return engine.refusal(graph, primitives)

    def program(self, graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> Any:
        """As `engine.program` does. A name that is not one of a device is refused before JAX is imported."""
        from tidu_cli.adapters.jax.engine.devices import named

        named(device)
        from tidu_cli.adapters.jax.engine import engine

        return engine.program(graph, primitives, outputs, device)

    def batch(self, graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Any:
        """As `engine.batch` does."""
        from tidu_cli.adapters.jax.engine import engine

        return engine.batch(graph, keys, size, max_memory)

    def takes(self, case: Case, primitives: PrimitiveSet) -> str:
        """As `functions.takes` does."""
        from tidu_cli.adapters.jax.lowering.functions import takes

        return takes(case, primitives, precise=True)


JAX, XLA = _Jax(), _Xla()
