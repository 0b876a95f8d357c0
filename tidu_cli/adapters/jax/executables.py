"""Graphs compiled by XLA ahead of calls, and kept on disk: a later process neither traces, nor lowers, nor compiles.

What is compiled is called with arrays of NumPy, and gives such.
"""

from __future__ import annotations

import os
import pickle
import platform
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any

import jax
import numpy as np

from tidu_cli import __version__
from tidu_cli.adapters.jax.devices import require_own_process
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.dataflow import array_of
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.identity import case_digests
from tidu_cli.graph.types import TensorType, Type, leaves
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.limits import allowed_steps
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.caches import cached, keep
from tidu_cli.runtime.plans.interpreter import Runnable

Executable = Any
"""`jax.stages.Compiled`: from the arrays of inputs, those of records one by one, to a tuple of those of outputs."""

# To its simplifier floats are real numbers: |NaN| >= 0, x + c - c is x, and log(x**y) is y log(x), wherever that may overflow.
# A processor's programs are as fast without. Those of GPUs are made with it throughout.
_OPTIONS: Mapping[str, Any] = {"cpu": {"xla_disable_hlo_passes": "algsimp"}}
"""What XLA is told when it compiles, by platform."""

_COMPILING = Lock()
"""One thread at a time: filters of warnings are the whole process's."""


def executable(graph: Graph, device: Any) -> Executable:
    """A self-contained graph compiled for a device of JAX. Raises MissingRuleError, and what JAX raises where it cannot."""
    name = file_name(graph, device)
    program = _loaded(cached(name), graph, device)
    if program is None:
        program = _compiled(graph, device)
        data = _data(program)
        if data is not None:
            keep(name, data)
    return program


def _compiled(graph: Graph, device: Any) -> Executable:
    given = [jax.ShapeDtypeStruct(t.shape, numpy_dtype(np, t.dtype)) for t in _tensors([i.type for i in graph.inputs])]
    there = jax.sharding.SingleDeviceSharding(device)
    # A processor reads the caller's arrays where they are; other devices have copies, which are ours to overwrite.
    donated = () if device.platform == "cpu" else tuple(range(len(given)))
    with _COMPILING, for_traces(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some inputs are not of use for results
        made = jax.jit(_function(graph), in_shardings=there, out_shardings=there, donate_argnums=donated, keep_unused=True)
        return made.lower(*given).compile(_OPTIONS.get(device.platform))


# A graph as a function of the arrays that its inputs hold.


def _function(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """From the arrays of all inputs to those of all outputs."""
    from tidu_cli.adapters.jax.lowering.functions import document_function
    from tidu_cli.adapters.jax.lowering.structured import fields, pytree, zeros

    function = document_function(graph, precise=True)

    def call(*arrays: Any) -> tuple[Any, ...]:
        given = iter(arrays)
        values = function(*[pytree(i.type, _value(i.type, given)) for i in graph.inputs])
        results = [zeros(o.type) if y is None else y for o, y in zip(graph.outputs, values, strict=True)]
        return tuple([x for o, y in zip(graph.outputs, results, strict=True) for x in _arrays(o.type, fields(o.type, y))])

    return call


def _tensors(types: Sequence[Type]) -> list[TensorType]:
    return [leaf for t in types for _, leaf in leaves(t)]


# On disk.


def _data(compiled: Executable) -> bytes | None:
    """What a file holds: whether LAPACK is called, and the program; None if JAX cannot tell."""
    from jax.experimental.serialize_executable import serialize

    try:
        calls_lapack = re.search(r'custom_call_target="lapack_', compiled.as_text()) is not None
        return pickle.dumps((calls_lapack, serialize(compiled)[0]))
    except (NotImplementedError, ValueError, TypeError, RuntimeError):
        return None


def _loaded(data: bytes | None, graph: Graph, device: Any) -> Executable | None:
    """What a file holds, ready to be called; None if there is none, or this JAX does not take it."""
    if data is None:
        return None
    from jax.experimental.serialize_executable import deserialize_and_load

    n_given, n_results = (len(_tensors([end.type for end in ends])) for ends in (graph.inputs, graph.outputs))
    trees = jax.tree.structure(((0,) * n_given, {})), jax.tree.structure((0,) * n_results)
    try:
        calls_lapack, program = pickle.loads(data)
        if calls_lapack:
            _prepare_lapack()
        return deserialize_and_load(program, *trees, backend=device.client, execution_devices=[device])
    except Exception:  # whatever it is, the program is made again
        return None


def _prepare_lapack() -> None:
    """Have jaxlib look up the functions of LAPACK, as it does when calls of them are lowered: else a program calls address 0."""
    from jaxlib import lapack

    lapack.prepare_lapack_call("potrf_ffi", np.dtype("float64"))


_PACKAGE = Path(__file__).parents[2]


def file_name(graph: Graph, device: Any) -> str:
    """The name of the file that keeps a graph compiled for a device of JAX. Keys are no part of it. Linear in the graph's size."""
    digest = sha256(_surroundings())
    digest.update("\n".join((device.device_kind, device.client.platform_version, str(device.id))).encode())
    # Cases are numbered as they come: numbers in tables depend on what else is in them.
    codes, first, inverse = np.unique(array_of(graph.code), return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int32)
    number[order] = np.arange(len(order))
    of_case = case_digests(graph.cases, codes.tolist())
    for code in codes[order].tolist():
        case = graph.cases[code]
        # As repr has types: of a record str has no more than the name.
        digest.update(of_case[code] + f"{case.operands!r}{case.results!r}\n".encode())
    ends = [[i.type for i in graph.inputs], [(o.type, o.value) for o in graph.outputs], graph.n_nodes]
    digest.update(f"{ends}\n".encode())
    digest.update(number[inverse].tobytes())
    digest.update(array_of(graph.args).astype(np.int32, copy=False).tobytes())
    return f"xla-{digest.hexdigest()[:32]}.bin"


@cache
def _surroundings() -> bytes:
    """All but the graph and the device: versions, what tidu makes of primitives, the processor, and what the environment says."""
    import jaxlib.version

    versions = (__version__, jax.__version__, jaxlib.version.__version__, np.__version__, platform.platform(), _processor())
    digest = sha256("\n".join((*versions, str(os.cpu_count()), os.environ.get("XLA_FLAGS", ""))).encode())
    for folder in ("lax", "adapters/jax"):
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.digest()


def _processor() -> str:
    """Its name and features, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "CPU part", "Features"))}))


_RUNS: dict[str, bool | str] = {
    "enable_x64": True,
    "debug_nans": False,  # NaN and infinities are results like others
    "debug_infs": False,
    "disable_jit": False,
    "transfer_guard_host_to_device": "allow",
    "transfer_guard_device_to_host": "allow",
}
"""What runs need, by the names of JAX's context managers. None is what JAX itself takes, which is the same."""

_TRACES: dict[str, bool | str] = {
    "default_matmul_precision": "highest",
    "numpy_dtype_promotion": "standard",
    "numpy_rank_promotion": "allow",
}
"""What the tracing of graphs needs as well."""

_USUAL = (False, False, False, None, None)
_settings = attrgetter(*[f"jax_{name}" for name in _RUNS][1:])
"""The settings but the first, which are as usual unless the user has changed them."""


def for_runs() -> AbstractContextManager[None]:
    """64 bits, all values and all transfers. Each setting takes some µs of a run that may take ten: only others are changed."""
    if _settings(jax.config) == _USUAL:
        return jax.enable_x64(True)  # type: ignore[no-any-return, unused-ignore]
    return _set({name: value for name, value in _RUNS.items() if getattr(jax.config, f"jax_{name}") not in (value, None)})


def for_traces() -> AbstractContextManager[None]:
    """Likewise, with all digits of products, and NumPy's rules of what goes together."""
    return _set({**_RUNS, **_TRACES})


@contextmanager
def _set(settings: dict[str, bool | str]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in settings.items():
            stack.enter_context(getattr(jax, name)(value))
        yield


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
