"""Any graph compiled by XLA, for the processor or a GPU: what the port of engines describes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tidu_cli.errors import EvaluationError, MissingRuleError, TransformError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.dataflow import column_of
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.lax.recipes.index import Recipe
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import limits
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.runnable import Run, Runnable
from tidu_cli.runtime.plans.steps import needed_steps


def refusal(graph: Graph, primitives: PrimitiveSet) -> str | None:
    """Why it cannot run a graph: its first node that only NumPy computes, of a package or of a parameter that is too large."""
    for code in dict.fromkeys(graph.code):
        for case in cases_within([graph.cases[code]]):
            definition = primitives[case.op].in_terms_of_others
            reason = ""
            if case.op not in BUILTIN.primitives and definition is None:
                reason = f"only NumPy computes {case.op}, of a package"
            elif isinstance(definition, Recipe):
                reason = definition.refusal(case.attrs)  # type: ignore[arg-type]
            if reason:
                return f"{graph.describe(list(graph.code).index(code))}: {reason}: choose the engine numpy"
    return None


def program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> Runnable:
    """The graph compiled for a device, `cpu` or `gpu`, `gpu:1`; by default the one that JAX takes."""
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    uncounted = _uncounted(graph)
    told = refusal(graph, primitives) or (uncounted if limits().steps is not None else None)
    if told is not None:
        raise EvaluationError(f"the engine xla cannot run it: {told}")
    from tidu_cli.adapters.jax.engine.devices import device_of

    place = device_of(device)  # which imports JAX, quietly
    from tidu_cli.adapters.jax.engine.executables import executable
    from tidu_cli.adapters.jax.engine.program import XlaProgram

    declared, needed = Graph(graph.name, graph.inputs, graph.outputs, graph.cases), _needed(graph, outputs)
    try:
        return XlaProgram(declared, primitives, needed.inputs, needed.outputs, executable(needed, place), uncounted)
    except (MissingRuleError, NotImplementedError, RuntimeError) as error:
        raise EvaluationError(f"the engine xla cannot run it: {str(error).splitlines()[0]}: choose the engine numpy") from None


_LOOPS = ("scan", "while", "root", "fixed_point", "linear_solve")
"""Operations that run as loops. Those of equations do so in their solvers."""


def _uncounted(graph: Graph) -> str | None:
    """Why it cannot keep to a limit on steps: what XLA has begun runs to its end."""
    for code in dict.fromkeys(graph.code):
        within = [case.op for case in cases_within([graph.cases[code]])]
        if any(op in _LOOPS or op not in BUILTIN.primitives for op in within):
            place = graph.describe(list(graph.code).index(code))
            return f"{place} has loops, whose steps only numpy and native count: choose one of these, or set no limit on steps"
    return None


def batch(graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Run | None:
    """None: graphs are vectorized by tidu's rules."""
    del graph, keys, size, max_memory
    return None


def _needed(graph: Graph, outputs: Sequence[int] | None) -> Graph:
    """The graph of what these outputs need, each value once."""
    chosen = tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))
    steps = needed_steps(graph, chosen)
    return replace(
        graph,
        inputs=tuple([graph.inputs[k] for k in steps.inputs]),
        outputs=tuple([replace(o, value=value) for o, value in zip(chosen, steps.outputs, strict=True)]),
        code=column_of(steps.code),
        args=column_of(steps.args),
    )
