"""Any graph compiled by XLA, for the processor or a GPU: what the port of engines describes.

A program of XLA is called with arrays of NumPy and gives such.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from tidu_cli.adapters.jax.engine.devices import require_own_process
from tidu_cli.adapters.jax.engine.executables import Executable, for_runs
from tidu_cli.errors import EvaluationError, MissingRuleError, TransformError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.dataflow import column_of
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
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

    declared, needed = Graph(graph.name, graph.inputs, graph.outputs, graph.cases), _needed(graph, outputs)
    try:
        return XlaProgram(declared, primitives, needed.inputs, needed.outputs, executable(needed, place), uncounted)
    except (MissingRuleError, NotImplementedError, RuntimeError) as error:
        raise EvaluationError(f"the engine xla cannot run it: {str(error).splitlines()[0]}: choose the engine numpy") from None


def _uncounted(graph: Graph) -> str | None:
    """Why it cannot keep to a limit on steps: what XLA has begun runs to its end."""
    for code in dict.fromkeys(graph.code):
        within = [case.op for case in cases_within([graph.cases[code]])]
        if any(op in ("scan", "while") or op not in BUILTIN.primitives for op in within):
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


@dataclass(frozen=True, eq=False)
class XlaProgram(Runnable):
    """A graph compiled by XLA for a device: the inputs that the outputs need, and these outputs.

    `uncounted` is why it cannot keep to a limit on steps, None if it can; one may be set after it was compiled.
    """

    graph: Graph
    primitives: PrimitiveSet
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    executable: Executable
    uncounted: str | None

    @cached_property
    def _has_records(self) -> bool:
        types = [i.type for i in self.inputs] + [o.type for o in self.outputs]
        return not all(isinstance(t, TensorType) for t in types)

    def run_in_order(self, values: Sequence[Any], *, once: bool = False) -> list[Any]:
        """The values of `outputs`, as `Program` gives them, but for roundings."""
        del once
        require_own_process()
        if self.uncounted and limits().steps is not None:
            raise EvaluationError(f"the engine xla cannot run it: {self.uncounted}")
        if self._has_records:
            values = [array for i, value in zip(self.inputs, values, strict=True) for array in _arrays(i.type, value)]
        try:
            with for_runs():  # until the arrays are there
                outputs = [np.array(y) for y in self.executable(*values)]
        except (MemoryError, jax.errors.JaxRuntimeError) as error:
            if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
                raise EvaluationError(f"graph '{self.graph.name}': evaluation ran out of memory") from None
            raise EvaluationError(f"graph '{self.graph.name}': XLA cannot run it: {str(error).splitlines()[0]}") from None
        if self._has_records:
            arrays = iter(outputs)
            return [_value(o.type, arrays) for o in self.outputs]
        return outputs

    def nbytes(self) -> int:
        """About how many bytes a run takes, with inputs and results: what XLA says, and the results once more."""
        told = self.executable.memory_analysis()
        ends = sum(t.nbytes for t in (*[i.type for i in self.inputs], *[o.type for o in self.outputs]))
        return ends + sum(o.type.nbytes for o in self.outputs) + (told.temp_size_in_bytes if told is not None else 0)


def _arrays(type_: Type, value: Any) -> Iterator[Any]:
    """The arrays of a value, None in which is zeros."""
    if isinstance(type_, TensorType):
        yield np.zeros(type_.shape, numpy_dtype(np, type_.dtype)) if value is None else value
        return
    parts = (None,) * len(type_.fields) if value is None else value
    for (_, t), part in zip(type_.fields, parts, strict=True):
        yield from _arrays(t, part)


def _value(type_: Type, arrays: Iterator[Any]) -> Any:
    """The value of these arrays."""
    return next(arrays) if isinstance(type_, TensorType) else tuple([_value(t, arrays) for _, t in type_.fields])
