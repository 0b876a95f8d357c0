"""Programs: graphs compiled, which is to know what has to be computed, and in which of the two ways that suits its shape."""

from __future__ import annotations

from collections.abc import Sequence

from tidu_cli.errors import TransformError
from tidu_cli.graph.graph import Graph, Output
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.grouping import grouped
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.interpreter import Program as Program
from tidu_cli.runtime.plans.slots import allocated
from tidu_cli.runtime.plans.steps import needed_steps


def compile_graph(
    graph: Graph, primitives: PrimitiveSet | None = None, outputs: Sequence[int] | None = None
) -> Program | GroupedProgram:
    """The program that computes these outputs (indices into `graph.outputs`; by default all) of a self-contained graph.

    Scalars run in groups where many of them do not wait for one another, and everything else step by step; results are the same,
    bit for bit. Linear in the graph's size. Raises TransformError if the graph reads values of other graphs, and LimitError if its
    custom operations stand for too much.
    """
    primitives = primitives or vocabulary(graph.cases)
    primitives.require_written_out([graph])
    chosen = _chosen(graph, outputs)
    steps = needed_steps(graph, chosen)
    return grouped(steps, primitives, chosen) or allocated(steps, primitives, chosen)


def plain_program(graph: Graph, outputs: Sequence[int] | None = None) -> Program:
    """The program that runs node after node, whatever the graph. Raises as `compile_graph`."""
    chosen = _chosen(graph, outputs)
    return allocated(needed_steps(graph, chosen), vocabulary(graph.cases), chosen)


def grouped_program(graph: Graph) -> GroupedProgram | None:
    """The program that runs in groups whatever can be, however small they are; None if most cannot. Raises as `compile_graph`."""
    chosen = _chosen(graph, None)
    return grouped(needed_steps(graph, chosen), vocabulary(graph.cases), chosen, always=True)


def needed_inputs(graph: Graph) -> set[Key]:
    """The inputs of a self-contained graph that its outputs depend on. Raises as `compile_graph`."""
    return {graph.inputs[k].key for k in needed_steps(graph, _chosen(graph, None)).inputs}


def _chosen(graph: Graph, outputs: Sequence[int] | None) -> tuple[Output, ...]:
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    return tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))
