"""Graphs of scalars, and loops of such, as instructions of one machine-code function: what the port of engines describes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tidu_cli.adapters.native.batches import batched
from tidu_cli.adapters.native.loops import LOOPS
from tidu_cli.adapters.native.lowering import is_own, written_out
from tidu_cli.adapters.native.program import NativeProgram, native_program
from tidu_cli.errors import EvaluationError, TransformError
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.dataflow import array_of, counts
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.memory import allowed_bytes, check_memory
from tidu_cli.runtime.plans.runnable import Run


def refusal(graph: Graph, primitives: PrimitiveSet) -> str | None:
    """Why it is no engine for a graph: it leaves to NumPy what it has no instruction for, and that is most of the nodes."""
    cases = graph.cases
    n = counts(array_of(graph.code), len(cases))
    used = np.flatnonzero(n).tolist()
    others = [number for number in used if not is_own(cases[number]) and written_out(cases[number], primitives) is None]
    if 2 * sum(int(n[number]) for number in others) <= graph.n_nodes:
        return None
    node = int(np.flatnonzero(np.isin(array_of(graph.code), others))[0])
    case = cases[int(graph.code[node])]
    lacking = next((inner.op for inner in cases_within([case]) if inner.op not in LOOPS and not is_own(inner)), case.op)
    what = f"{graph.describe(node)} has no native instruction{f' for {lacking}' if lacking != case.op else ''}"
    return f"{what}, as most nodes of this graph: choose the engine numpy, or xla"


def takes(case: Case, primitives: PrimitiveSet) -> str:
    """By what a node of a case is computed."""
    if is_own(case):
        return "machine code"
    return "NumPy's kernel" if written_out(case, primitives) is None else "machine code of its definition"


def program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> NativeProgram:
    """The graph made ready to run on one core of the processor."""
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    if device not in (None, "cpu"):
        raise EvaluationError(f"the engine native has no device '{device}', only cpu")
    told = refusal(graph, primitives)
    if told is not None:
        raise EvaluationError(f"the engine native cannot run it: {told}")
    chosen = tuple(graph.outputs if outputs is None else (graph.outputs[k] for k in outputs))
    return native_program(graph, primitives, chosen)


def batch(graph: Graph, keys: Collection[Key], size: int, max_memory: int | None = None) -> Run | None:
    """A run over items of the inputs `keys`, on all cores; None if NumPy is needed, which takes many items at once."""
    primitives = vocabulary(graph.cases)
    if refusal(graph, primitives) is not None:
        return None
    made = native_program(graph, primitives, graph.outputs)
    check_memory(made, max_memory)
    return batched(made, keys, size, allowed_bytes(max_memory))
