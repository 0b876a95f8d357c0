"""One graph at many values of some inputs: batches in chunks, each chunk one run of a graph that takes so many values at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from tidu_cli.errors import EvaluationError, Remedy, TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import RecordType, TensorType, Type, map_leaves, of_batch
from tidu_cli.runtime.choosing import NUMPY, PLAIN, Choice, engine_named, takes
from tidu_cli.runtime.evaluate import outward, require_given
from tidu_cli.runtime.inputs import input_value, is_zero_seed, record_fields, value_of_input
from tidu_cli.runtime.memory import check_memory, estimate_memory
from tidu_cli.runtime.plans.groups import Workspace
from tidu_cli.runtime.plans.interpreter import Run, each, owned
from tidu_cli.runtime.plans.program import grouped_program, needed_inputs, plain_program, prepared
from tidu_cli.runtime.sums import Partial, divided, require_reducible, summed
from tidu_cli.watching import watch

Vectorize = Callable[[Graph, Collection[Key], int], tuple[Graph, list[bool]]]
"""`tidu_cli.transforms.batch.vectorized`, which this layer may not import."""

Runs = dict[Any, Any]
"""What was made ready for batches of one graph, in the form of `evaluate_batch`."""

CACHE_BYTES = 2**20
"""What is alive at once in a chunk should take no more, where it can: about what a core has of cache to itself."""

CALL_BYTES = 2**13
"""A call whose result takes so much spends most of its time on numbers: 1,024 of f64."""

GROUP_ITEMS = 2**12
"""So many numbers to a group do the same where operands are gathered."""

MOST_BYTES = 2**28
"""What is alive at once in a chunk takes no more, even if calls cost most then."""


def evaluate_batch(
    graph: Graph,
    inputs: Mapping[Key, object],
    axes: Mapping[Key, int],
    vectorize: Vectorize,
    *,
    max_memory: int | None = None,
    chunk: int | None = None,
    engine: Choice = PLAIN,
    reduction: str | None = None,
    runs: Runs | None = None,
    tell: Callable[[str], object] | None = None,
) -> tuple[dict[Key, Any], dict[Key, Type]]:
    """The values of a graph's outputs for each item of a batch, and their types: all have the batch as their first axis.

    Inputs of `axes` have one more axis than declared, the batch, at the place that `axes` says; -1 is the last one. They say how
    many items there are, also where no output depends on them. The others are shared by all items. All else is as in `evaluate`.
    `chunk` items go through at once; by default as many as fit into cache. Where the arithmetic is elementwise the results are bit
    for bit those of the items one by one, but on XLA; sums and products of matrices may be added in another order. Raises
    EvaluationError for axes that are not there and batches of different sizes, and MissingRuleError.

    With the `reduction` "sum" or "mean" the outputs are those of all items together, see `sums`, and of their declared types.
    `runs` keeps what is made ready here for other batches of the same graph, one at a time. An engine that `auto` chose gives way
    to one that is quicker with the first chunk where `tell` is given, which hears of it.
    """
    runs = {} if runs is None else runs
    needed = runs.get("needed") or runs.setdefault("needed", needed_inputs(graph))
    if reduction:
        require_reducible(graph.outputs, reduction)
    require_given([i for i in graph.inputs if i.key in axes or i.key in needed], inputs)
    items: dict[Key, Any] = {}
    size_of: dict[Key, int] = {}
    for i in graph.inputs:
        if i.key not in axes and i.key not in needed:
            continue
        value = inputs[i.key]
        if i.key in axes and not is_zero_seed(i.key, i.type, value):
            items[i.key], size_of[i.key] = as_batch(f"input {i.key}", i.type, axes[i.key], value)
        else:
            items[i.key] = value_of_input(i.key, i.type, value)
    if not size_of:
        raise EvaluationError(f"graph '{graph.name}': no input of it has a batch; leave out ", Remedy("batch", python="batch"))
    size = max(size_of.values())
    if min(size_of.values()) < size:
        told = ", ".join(f"{key} has {n} along axis {axes[key]}" for key, n in size_of.items())
        raise EvaluationError(f"batches differ in size: {told}; give as many items of each")
    types = {o.key: o.type if reduction else batch_type(f"output {o.key}", o.type, size) for o in graph.outputs}
    asked = (frozenset(size_of), size, chunk, max_memory, engine)
    if asked not in runs:
        runs[asked] = _ready(graph, set(size_of), size, chunk, max_memory, vectorize, engine)
    run, chunk = runs[asked]

    def given(begin: int, chunk: int) -> dict[Key, Any]:
        some = itemgetter(slice(begin, begin + chunk))
        part = {key: each(np.ascontiguousarray, each(some, items[key])) for key in needed & size_of.keys()}
        return part | {key: items[key] for key in needed - size_of.keys()}

    first: list[Any] | None = None
    if tell is not None and engine.automatic and chunk < size:
        from tidu_cli.runtime.trial import quickest

        def ready(other: Choice, chunk: int) -> tuple[Run, int]:
            return _ready(graph, set(size_of), size, chunk, max_memory, vectorize, other)

        run, chunk, first = quickest(graph, engine, run, ready, partial(given, 0), size, chunk, tell)
    n_chunks = -(-size // chunk)
    results = owned(np, [None] * len(types), [replace(o, type=types[o.key]) for o in graph.outputs])
    sums = Partial()
    for k in watch("evaluating", n_chunks)(range(n_chunks)):
        begin = min(k * chunk, size - chunk)  # the last chunk takes items again rather than fewer
        values = run(given(begin, chunk)) if k or first is None else first
        if reduction:
            sums.take(tuple(_sum_of(value, k * chunk - begin, chunk) for value in values))
            continue
        for target, value in zip(results, values, strict=True):
            _fill(target, begin, begin + chunk, value)
    if reduction and size:
        total = sums.total() if reduction == "sum" else divided(sums.total(), size)
        results = [zero if value is None else value for zero, value in zip(results, total, strict=True)]
    return {key: outward(type_, value) for (key, type_), value in zip(types.items(), results, strict=True)}, types


def _ready(
    graph: Graph, keys: Collection[Key], size: int, chunk: int | None, max_memory: int | None, vectorize: Vectorize, engine: Choice
) -> tuple[Run, int]:
    """What runs a chunk, and of how many items it is."""
    if engine.name == NUMPY:
        by_rows = _by_rows(graph, size, chunk, max_memory)
        if by_rows is not None:
            return by_rows
    else:
        per_item = sum(t.nbytes for t in (*[i.type for i in graph.inputs if i.key in keys], *[o.type for o in graph.outputs]))
        items = _chunk(size, chunk, per_item, MOST_BYTES // max(per_item, 1), max_memory)
        run = engine_named(engine.name).batch(graph, keys, items, max_memory)
        if run is not None:
            return run, items
    return _vectorized(graph, keys, size, chunk, max_memory, vectorize, engine)


def _by_rows(graph: Graph, size: int, chunk: int | None, max_memory: int | None) -> tuple[Run, int] | None:
    """For a graph of scalars: each scalar is a row of items, and rows of equal steps are one array operation."""
    program = grouped_program(graph)
    if program is None or not program.of_scalars():
        return None
    n_steps, n_groups = program.n_steps, len(program.code)
    chunk = _chunk(size, chunk, program.nbytes(), -(-GROUP_ITEMS * n_groups // n_steps), max_memory)
    check_memory(program, max_memory)
    space = Workspace(program, (chunk,))
    return lambda part: space.run([part[i.key] for i in program.inputs]), chunk


def _vectorized(
    graph: Graph, keys: Collection[Key], size: int, chunk: int | None, max_memory: int | None, vectorize: Vectorize, engine: Choice
) -> tuple[Run, int]:
    """For any graph: the graph that its primitives' batch rules make of it."""
    alone = plain_program(graph)
    check_memory(alone, max_memory)
    sizes = [sum(t.nbytes for t in graph.cases[code].results) for code in alone.code]
    mean = max(sum(sizes) // max(len(sizes), 1), 1)
    chunk = _chunk(size, chunk, estimate_memory(alone).peak, -(-CALL_BYTES // mean), max_memory)
    batched, depend = vectorize(graph, keys, chunk)
    # What an engine takes of one item may be too much for it of many, which NumPy takes at once.
    too_much = engine.name != NUMPY and takes(engine_named(engine.name), graph) and not takes(engine_named(engine.name), batched)
    program, _ = prepared(batched, PLAIN if too_much else engine)
    check_memory(program, max_memory)

    def run(part: Mapping[Key, Any]) -> list[Any]:
        # What is the same for all items gets an axis for them.
        pairs = zip(program.run(part), depend, strict=True)
        return [value if depends else each(lambda x: x[None], value) for value, depends in pairs]

    return run, chunk


def _chunk(size: int, wanted: int | None, per_item: int, worthwhile: int, max_memory: int | None) -> int:
    """How many items go through at once, in chunks of about equal size. `worthwhile` are so many that calls cost little by then."""
    per_item = max(per_item, 1)
    chunk = wanted or max(CACHE_BYTES // per_item, min(worthwhile, MOST_BYTES // per_item))
    if max_memory is not None:
        chunk = min(chunk, max_memory // per_item)
    chunk = max(min(chunk, size), 1)
    return -(-size // -(-size // chunk)) if size else 1


def as_batch(place: str, type_: Type, axis: int, value: object) -> tuple[Any, int]:
    """A batch of values of a type, as arrays whose first axis it is, and its size. Raises EvaluationError that names the place."""
    size = batch_size(place, type_, axis, value)

    def with_batch(t: TensorType) -> TensorType:
        at = axis % (t.rank + 1)
        return t.with_shape((*t.shape[:at], size, *t.shape[at:]))

    return each(lambda x: np.moveaxis(x, axis, 0), input_value(place, map_leaves(type_, with_batch), value)), size


def batch_size(place: str, type_: Type, axis: int, value: object) -> int:
    """How many values of a type a batch of them holds, or what has its shapes. Raises EvaluationError that names the place."""
    sizes = dict.fromkeys(_sizes(place, type_, axis, value))
    if len(sizes) != 1:
        raise EvaluationError(f"{place}: its fields differ in size along the batch: {', '.join(map(str, sizes))}")
    (size,) = sizes
    batch_type(place, type_, size)
    return size


def batch_type(place: str, type_: Type, size: int) -> Type:
    """The type of `size` values of a type. Raises EvaluationError that names the place, where it is more than an array holds."""
    try:
        return of_batch(type_, size)
    except TypeRuleError as error:
        raise EvaluationError(f"{place}: {error}") from None


def _sizes(place: str, type_: Type, axis: int, value: object) -> Iterator[int]:
    """The size of the batch, as each tensor of a value has it."""
    if isinstance(type_, RecordType):
        fields = record_fields(place, type_, value)
        for name, field_type in type_.fields:
            if fields.get(name) is not None:
                yield from _sizes(f"{place}.{name}", field_type, axis, fields[name])
        return
    shape = _shape(value)
    if len(shape) != type_.rank + 1:
        raise EvaluationError(
            f"{place}: expected a batch of {type_}, {_axes(type_.rank + 1)}, got {_axes(len(shape))}; the batch is one more axis"
        )
    if not -len(shape) <= axis < len(shape):
        told = f"a batch of {type_}, {_axes(len(shape))}"
        raise EvaluationError(f"{place}: axis {axis} is out of range for {told}; the first is 0, the last -1")
    yield shape[axis]


def _sum_of(value: Any, begin: int, n: int) -> Any:
    """The sum of an output over the items of a chunk from `begin` on, `n` with those before; None for zero."""
    return summed(each(lambda x: np.broadcast_to(x, (n, *x.shape[1:]))[begin:], value))


def _axes(n: int) -> str:
    return f"{n} ax{'i' if n == 1 else 'e'}s"


def _shape(value: object) -> tuple[int, ...]:
    if isinstance(value, Literal):
        return value.type.shape
    if isinstance(value, list):
        return (len(value), *_shape(value[0])) if value else (0,)
    return tuple(getattr(value, "shape", ()))


def _fill(target: Any, begin: int, end: int, value: Any) -> None:
    if isinstance(target, tuple):
        for field, part in zip(target, value, strict=True):
            _fill(field, begin, end, part)
    elif value is not None:  # zeros are there
        target[begin:end] = value
