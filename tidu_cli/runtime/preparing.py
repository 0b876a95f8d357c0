"""Graphs made ready to be run by the engine that was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli import installed
from tidu_cli.errors import TiduError
from tidu_cli.graph.graph import Graph
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.runtime.choosing import NUMPY, PLAIN, Choice, engine_named
from tidu_cli.runtime.memory import fits
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.program import compile_graph, plain_program
from tidu_cli.runtime.plans.runnable import Runnable


def prepared(
    graph: Graph, choice: Choice = PLAIN, outputs: Sequence[int] | None = None, max_memory: int | None = None
) -> tuple[Runnable, Choice]:
    """A self-contained graph made ready to compute these outputs (indices; None for all), and by which engine it is.

    That is NumPy where `auto` chose one that fails. NumPy runs groups of scalars step by step where they would not fit into
    `max_memory` bytes. Raises EvaluationError, TransformError if the graph reads values of others, and LimitError.
    """
    if choice.name != NUMPY:
        primitives = vocabulary(graph.cases)
        primitives.require_written_out([graph])
        try:
            with installed.blaming(choice.name, port="engines"):
                program = engine_named(choice.name).program(graph, primitives, outputs, choice.device)
            return _Brought(program, choice.name) if choice.name in installed.brought_engines() else program, choice
        except (TiduError, ImportError, OSError, RuntimeError) as error:
            if not choice.automatic:
                raise
            choice = Choice(NUMPY, f"as the engine {choice.name} failed: {error}")
    program = compile_graph(graph, outputs=outputs)
    if isinstance(program, GroupedProgram) and not fits(program, max_memory):
        return plain_program(graph, outputs=outputs), choice  # which lets go of what it has used
    return program, choice


class _Brought(Runnable):
    """A program of another package's engine: what goes wrong in a run is told as that package's."""

    def __init__(self, program: Runnable, engine: str) -> None:
        self._program, self._engine = program, engine
        self.graph, self.primitives, self.inputs, self.outputs = program.graph, program.primitives, program.inputs, program.outputs

    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        with installed.blaming(self._engine, port="engines"):
            return self._program.run_in_order(values, once=once)

    def nbytes(self) -> int:
        with installed.blaming(self._engine, port="engines"):
            return self._program.nbytes()
