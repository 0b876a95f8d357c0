"""Dask behind the port of schedulers, and its arrays in and out.

Blocks of arrays are taken where they lie, and results are as lazy as they are. The package distributed is imported where a cluster
is asked for, Dask where an array of Dask's is given.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tidu_cli.cluster.items import Held, Items, filed, from_files, held, is_place
from tidu_cli.cluster.work import Failure, Job, Parcel, Values, fan_in, forget, keep, parcel_of, run_chunk
from tidu_cli.errors import EvaluationError, counted
from tidu_cli.graph.graph import Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.port_data import Worker
from tidu_cli.runtime.evaluate import outward, require_given
from tidu_cli.runtime.inputs import input_value, is_zero_seed, value_of_input
from tidu_cli.runtime.plans.program import needed_inputs
from tidu_cli.runtime.sums import added, divided, require_reducible

if TYPE_CHECKING:
    import dask.array as da


def is_dask_array(value: object) -> bool:
    """Whether it is an array of Dask's, or a record with such a field. Dask is not imported for that."""
    if isinstance(value, Mapping | tuple):
        return any(map(is_dask_array, value.values() if isinstance(value, Mapping) else value))
    return type(value).__module__.startswith("dask.array") and hasattr(value, "__dask_graph__")


def lazily(
    graph: Graph, inputs: Mapping[Key, Any], axes: Mapping[Key, int], reduction: str | None = None, **how: Any
) -> dict[Key, da.Array]:
    """What `evaluate_batch` gives, as arrays of Dask's, where some inputs of `axes` are such.

    Their blocks along the batch are the chunks, those of the first such input; nothing is computed yet. `how` are fields of `Job`.
    Raises EvaluationError for inputs that do not fit, and for records among the outputs.
    """
    import dask.array as da
    from dask.delayed import delayed

    if reduction:
        require_reducible(graph.outputs, reduction)
    needed = needed_inputs(graph)  # a batch says how many items there are, also where no output depends on it
    wanted = [i for i in graph.inputs if i.key in axes or i.key in needed or is_dask_array(inputs.get(i.key))]
    require_given(wanted, inputs)
    blocks: dict[Key, da.Array] = {}
    others: dict[Key, Held] = {}
    elsewhere: dict[Key, Items] = {}
    shared: dict[Key, Any] = {}
    for i in wanted:
        value = from_files(f"input {i.key}", inputs[i.key], i.key in axes)
        if is_dask_array(value):
            blocks[i.key] = _by_items(i, axes, value)
        elif i.key not in axes or is_zero_seed(i.key, i.type, value):
            shared[i.key] = value
            value_of_input(i.key, i.type, value)  # which may be refused
        elif is_place(value):
            elsewhere[i.key] = filed(i, axes[i.key], value)
        else:
            others[i.key] = held(i, axes[i.key], value)
    sizes = next(iter(blocks.values())).chunks[0]
    total = sum(sizes)
    read = {**others, **elsewhere}
    for key, n in {**{k: x.shape[0] for k, x in blocks.items()}, **{k: x.size for k, x in read.items()}}.items():
        if n != total:
            raise EvaluationError(f"batches differ in size: {key} has {n}, and others {total}; give as many items of each")
    parcel = parcel_of(graph)
    job = Job(parcel.name, (*blocks, *read), shared, reduction, items=elsewhere, **how)
    things = delayed(parcel, name=parcel.name, traverse=False), delayed(job, name=job.name, traverse=False)
    columns = [x.rechunk({0: sizes}).to_delayed().ravel() for x in blocks.values()]
    parts, start = [], 0
    for k, n in enumerate(sizes):
        slices = {key: x.part(start, start + n) for key, x in others.items()}
        call = delayed(_run_block)(*things, k, start, n, slices, list(blocks), *(column[k] for column in columns))
        parts.append(call)
        start += n
    if reduction:
        fan = fan_in(sum(o.type.nbytes for o in graph.outputs))
        while len(parts) > 1:
            parts = [delayed(added)(parts[k : k + fan]) for k in range(0, len(parts), fan)]
        last = delayed(divided)(parts[0], total) if reduction == "mean" and total else parts[0]
        return {o.key: _array(da, last[o.key], o.type) for o in graph.outputs}
    return {
        o.key: da.concatenate([_array(da, part[o.key], o.type, n) for part, n in zip(parts, sizes, strict=True)])
        for o in graph.outputs
    }


def _by_items(declared: Input, axes: Mapping[Key, int], x: Any) -> Any:
    """An array of Dask's whose first axis is the batch, the only one along which it has several blocks."""
    import dask.array as da
    import numpy as np

    key, type_ = declared.key, declared.type
    if key not in axes:
        raise EvaluationError(
            f"input {key} is an array of Dask's without a batch; give batch={{{str(key)!r}: 0}}, or its compute()"
        )
    if not isinstance(type_, TensorType):
        raise EvaluationError(f"input {key} is of {type_}, and arrays of Dask's hold no records; compute() them before")
    if x.ndim != type_.rank + 1 or not -x.ndim <= axes[key] < x.ndim:
        raise EvaluationError(f"input {key}: expected a batch of {type_} along axis {axes[key]}, got an array of shape {x.shape}")
    x = da.moveaxis(x, axes[key], 0)
    if math.isnan(sum(x.shape)):
        raise EvaluationError(f"input {key}: its blocks are of unknown sizes; call compute_chunk_sizes() on it before")
    if x.shape[1:] != type_.shape:
        raise EvaluationError(f"input {key}: expected items of {type_}, got shape {list(x.shape[1:])}")
    input_value(f"input {key}", type_, np.zeros(type_.shape, x.dtype))  # refuses other dtypes
    return x.rechunk(dict.fromkeys(range(1, x.ndim), -1))


def _array(da: Any, part: Any, type_: Any, *batch: int) -> Any:
    import numpy as np

    if not isinstance(type_, TensorType):
        raise EvaluationError(f"an output is of {type_}, and arrays of Dask's hold no records; choose its fields as outputs")
    dtype = outward(type_, np.zeros((), numpy_dtype(np, type_.dtype))).dtype
    return da.from_delayed(part, shape=(*batch, *type_.shape), dtype=dtype)


def _run_block(parcel: Any, job: Any, index: int, start: int, n: int, slices: Any, keys: list[Key], *blocks: Any) -> Values:
    """A chunk of which some inputs are given as blocks. Raises EvaluationError."""
    keep(parcel)  # for good, as other blocks and later arrays are of the same document
    keep(job)
    given = {**slices, **{key: Held(block, n, start) for key, block in zip(keys, blocks, strict=True)}}
    try:
        outcome = run_chunk(job.name, index, start, start + n, given)
    finally:
        forget(job.name)
    if isinstance(outcome, Failure):
        raise EvaluationError(outcome.reason)
    return outcome


class _Dask:
    """Clusters of Dask's."""

    @contextmanager
    def connected(self, scheduler: Any, *, quiet: bool = False) -> Iterator[Any]:
        """As `scheduler.connected` does, with all that Dask logs silenced where `quiet`."""
        if find_spec("distributed") is None:
            raise EvaluationError("clusters need the packages dask and distributed: pip install 'tidu[dask]'")
        from tidu_cli.adapters.dask.scheduler import connected, silence

        if quiet:
            silence()
        with connected(scheduler) as client:
            yield client

    def described(self, client: Any) -> str:
        """The number of threads and the address."""
        return f"{counted(self.n_threads(client), 'thread')} at {client.scheduler_info()['address']}"

    def n_threads(self, client: Any) -> int:
        """Those of all workers that are there now."""
        return sum(client.nthreads().values())

    def kept(self, client: Any, parcel: Parcel, job: Job) -> AbstractContextManager[None]:
        """As `scheduler.kept` does."""
        from tidu_cli.adapters.dask.scheduler import kept

        return kept(client, parcel, job)

    def window(self, client: Any, name: str, width: Callable[[], int], told: Callable[[int], str]) -> Any:
        """A `Window`."""
        from tidu_cli.adapters.dask.window import Window

        return Window(client, name, width, told)

    lazily = staticmethod(lazily)
    is_lazy = staticmethod(is_dask_array)

    def worker(self) -> Worker | None:
        """The worker of Dask's that runs this task."""
        if "distributed" not in sys.modules:
            return None
        from distributed import get_worker

        try:
            worker = get_worker()
        except ValueError:
            return None
        allowed = worker.memory_manager.memory_limit
        return Worker(worker.address, allowed // max(worker.state.nthreads, 1) if allowed else None)


DASK = _Dask()
