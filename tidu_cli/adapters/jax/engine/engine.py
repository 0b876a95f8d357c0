"""Any graph compiled by XLA, for the processor or a GPU: what the port of engines describes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Any

import jax
import numpy as np

from tidu_cli.adapters.jax.engine.executables import Executable, for_runs
from tidu_cli.errors import EvaluationError, MissingRuleError, TransformError, UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.columns.dataflow import column_of
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.limits import limits
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.runnable import Run, Runnable
from tidu_cli.runtime.plans.steps import needed_steps


def refusal(graph: Graph, primitives: PrimitiveSet) -> str | None:
    """Why it cannot run a graph: the first node that is of a package's operation, which only NumPy computes."""
    for code in dict.fromkeys(graph.code):
        for case in cases_within([graph.cases[code]]):
            if case.op not in BUILTIN.primitives and primitives[case.op].rules.inlined is None:
                node = list(graph.code).index(code)
                return f"{graph.describe(node)}: only NumPy computes {case.op}, of a package: choose the engine numpy"
    return None


def program(graph: Graph, primitives: PrimitiveSet, outputs: Sequence[int] | None, device: str | None) -> Runnable:
    """The graph compiled for a device, `cpu` or `gpu`, `gpu:1`; by default the one that JAX takes."""
    if len(graph.external):
        raise TransformError(f"graph '{graph.name}' reads values of other graphs; run tidu materialize first")
    uncounted = _uncounted(graph)
    told = refusal(graph, primitives) or (uncounted if limits().steps is not None else None)
    if told is not None:
        raise EvaluationError(f"the engine xla cannot run it: {told}")

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


# The devices of JAX by the names that users give them, and JAX started without noise.


PLATFORMS = ("cpu", "gpu", "cuda", "rocm", "tpu")

_PREALLOCATE, _LEAST_LOGGED = "XLA_PYTHON_CLIENT_PREALLOCATE", "TF_CPP_MIN_LOG_LEVEL"

_STARTING = Lock()
"""One thread at a time: the environment and loggers are the whole process's."""


def device_of(name: str | None) -> Any:
    """The device of JAX of a name, as `cpu`, `gpu` or `gpu:1`; for None that which JAX would take.

    Raises UnknownNameError for what is no name of a device, and EvaluationError for one that is not there or in a forked process.
    """
    platform, colon, number = ("cpu" if name is None else name).partition(":")
    if platform not in PLATFORMS or (colon and not (number.isdecimal() and number.isascii())):
        known = list(PLATFORMS)
        raise UnknownNameError(f"no device '{name}'{did_you_mean(platform, known)} (devices: cpu, gpu, gpu:1, ...)")
    require_own_process()
    with _STARTING, _quietly():
        try:
            import jax
        except ValueError as error:  # of a variable of the environment that is not understood
            raise EvaluationError(f"JAX does not start: {error}: change that, or choose the engine numpy") from None
        try:
            there = jax.devices()
        except (RuntimeError, AssertionError):  # the latter where what JAX_PLATFORMS names is known, and not here
            said = f"JAX_PLATFORMS='{jax.config.values['jax_platforms'] or ''}'"
            raise EvaluationError(f"JAX starts on no device, by {said}: set it to cpu, or choose the engine numpy") from None
        try:
            found = there if name is None else jax.devices(platform)
        except RuntimeError:
            here = ", ".join(dict.fromkeys(d.platform for d in there))
            way = f"choose {here}, or install JAX for it, as by pip install 'jax[cuda12]'"
            raise EvaluationError(f"no device {name}: JAX finds only {here} here; {way}") from None
    k = int(number or 0)
    if k >= len(found):
        those = ", ".join(f"{platform}:{n}" for n in range(len(found)))
        raise EvaluationError(f"no device {name}: there {'is' if len(found) == 1 else 'are'} {those}")
    return found[k]


def require_own_process() -> None:
    """Raises EvaluationError in a process forked from one that has used JAX: it lacks JAX's threads, and would wait for ever."""
    if _home() != os.getpid():
        way = "have processes start by spawn, as by multiprocessing.get_context('spawn'), or choose the engine numpy"
        raise EvaluationError(f"the engine xla cannot run in a process forked from one that has used it: {way}")


@cache
def _home() -> int:
    """The process that used JAX first."""
    return os.getpid()


@contextmanager
def _quietly() -> Iterator[None]:
    """JAX says nothing while it looks for devices, and takes memory of a GPU as it needs it, unless the environment says else."""
    if "jax" not in sys.modules:
        os.environ.setdefault(_LEAST_LOGGED, "3")  # as JAX itself does, with more that is said
    preallocate, logger = os.environ.get(_PREALLOCATE), logging.getLogger("jax._src.xla_bridge")
    os.environ.setdefault(_PREALLOCATE, "false")
    disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = disabled
        if preallocate is None:
            del os.environ[_PREALLOCATE]


# Programs of XLA: what is called with arrays of NumPy and gives such.


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
                found = [np.array(y) for y in self.executable(*values)]
        except (MemoryError, jax.errors.JaxRuntimeError) as error:
            if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
                raise EvaluationError(f"graph '{self.graph.name}': evaluation ran out of memory") from None
            raise EvaluationError(f"graph '{self.graph.name}': XLA cannot run it: {str(error).splitlines()[0]}") from None
        if self._has_records:
            arrays = iter(found)
            return [_value(o.type, arrays) for o in self.outputs]
        return found

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
