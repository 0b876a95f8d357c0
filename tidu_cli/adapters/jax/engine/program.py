"""Programs of XLA: what is called with arrays of NumPy and gives such."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from tidu_cli.adapters.jax.engine.devices import require_own_process
from tidu_cli.adapters.jax.engine.executables import Executable, for_runs
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.limits import allowed_steps
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.runnable import Runnable


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
        if self.uncounted and allowed_steps() is not None:
            raise EvaluationError(f"the engine xla cannot run it: {self.uncounted}")
        if self._has_records:
            values = [array for i, value in zip(self.inputs, values, strict=True) for array in _arrays(i.type, value)]
        try:
            with for_runs():  # until the arrays are there
                outputs = [np.asarray(y).copy() for y in self.executable(*values)]
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
