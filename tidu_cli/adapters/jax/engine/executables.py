"""Functions of JAX compiled by XLA ahead of calls, and kept on disk: a later process neither traces, nor lowers, nor compiles."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

from tidu_cli.adapters.jax.engine.identity import file_name
from tidu_cli.adapters.jax.engine.settings import for_traces
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.types import TensorType, Type, leaves
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.runtime.engines.caches import cached, keep

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
    found = _loaded(cached(name), graph, device)
    if found is None:
        found = _compiled(graph, device)
        data = _data(found)
        if data is not None:
            keep(name, data)
    return found


def _compiled(graph: Graph, device: Any) -> Executable:
    import jax
    import numpy as np

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
    from tidu_cli.adapters.jax.lowering.primitives.records import zeros

    function = document_function(graph, precise=True)

    def call(*arrays: Any) -> tuple[Any, ...]:
        given = iter(arrays)
        found = function(*[_put_together(i.type, given) for i in graph.inputs])
        results = [zeros(o.type) if y is None else y for o, y in zip(graph.outputs, found, strict=True)]
        return tuple([array for o, y in zip(graph.outputs, results, strict=True) for array in _taken_apart(o.type, y)])

    return call


def _put_together(type_: Type, arrays: Iterator[Any]) -> Any:
    from tidu_cli.adapters.jax.lowering.primitives.records import made

    if isinstance(type_, TensorType):
        return next(arrays)
    return made(type_, [_put_together(t, arrays) for _, t in type_.fields])


def _taken_apart(type_: Type, value: Any) -> Iterator[Any]:
    if isinstance(type_, TensorType):
        yield value
        return
    for k, (name, t) in enumerate(type_.fields):
        yield from _taken_apart(t, value[k if isinstance(value, tuple) else name])


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
    import jax
    from jax.experimental.serialize_executable import deserialize_and_load

    n_given, n_found = (len(_tensors([end.type for end in ends])) for ends in (graph.inputs, graph.outputs))
    trees = jax.tree.structure(((0,) * n_given, {})), jax.tree.structure((0,) * n_found)
    try:
        calls_lapack, program = pickle.loads(data)
        if calls_lapack:
            _prepare_lapack()
        return deserialize_and_load(program, *trees, backend=device.client, execution_devices=[device])
    except Exception:  # whatever it is, the program is made again
        return None


def _prepare_lapack() -> None:
    """Have jaxlib look up the functions of LAPACK, as it does when calls of them are lowered: else a program calls address 0."""
    import numpy as np
    from jaxlib import lapack

    lapack.prepare_lapack_call("potrf_ffi", np.dtype("float64"))
