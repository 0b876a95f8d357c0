"""Branches and loops.

A Loop of a known number of steps is a scan, which has a reverse mode; one whose condition depends on inputs is a while loop, which
has none. Where the types of what it carries change, or where its graph needs numbers, it is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.control_flow.while_loop import cond
from tidu_cli.adapters.numpy.numpy.indexing import normal_axis
from tidu_cli.adapters.onnx.contents import label
from tidu_cli.adapters.onnx.reading.inputs import read_by
from tidu_cli.adapters.onnx.reading.node import (
    NeedsValueError,
    Node,
    Operator,
    RefusedError,
    Value,
    counted,
    quoted,
    setting,
)
from tidu_cli.adapters.onnx.reading.operators.loop_counts import Count, count_of
from tidu_cli.adapters.onnx.reading.operators.networks import recurrent
from tidu_cli.graph.sizes.open import larger
from tidu_cli.graph.types import TensorType

MOST_UNROLLED = 256
"""Loops of this many steps are unrolled where they cannot be scans; loops of known numbers alone are computed for as many."""

MOST_STEPS = 2**31
"""A scan has fewer steps than this."""


def _single(x: Value, what: str) -> Any:
    """An array of one element without axes. Raises RefusedError for another."""
    if np.size(x) != 1:
        raise RefusedError(f"its {what} has {np.size(x)} elements, and should have one")
    return x.reshape(()) if x.shape else x


def _if(node: Node, condition: Value) -> list[Value]:
    condition = _single(condition, "condition")
    known = node.importing.known(condition)
    if known is not None:
        return node.body("then_branch" if known else "else_branch")()
    wanted = [k for k in range(node.n_outputs) if node.wants(k)]

    def branch(name: str) -> Callable[[], dict[str, Value]]:
        def run() -> dict[str, Value]:
            values = node.body(name)()
            if len(values) != node.n_outputs:
                raise RefusedError(f"its graph '{name}' has {len(values)} outputs, and the node has {node.n_outputs}")
            return {node.outputs[k]: node.settled(values[k]) for k in wanted}

        run.__name__ = name
        return run

    results = cond(condition, branch("then_branch"), branch("else_branch"))
    return [results.get(name) for name in node.outputs]


# Loop.


def _loop(node: Node, trip: Value = None, condition: Value = None, *initial: Value) -> list[Value]:
    if any(x is None for x in initial):
        raise RefusedError("its initial values are left out, but tidu knows their types by them")
    initial = tuple(map(node.settled, initial))
    length = None
    if trip is not None:
        sizes = node.importing.sizes(trip)
        length = None if sizes is None or sizes.size != 1 else sizes.array.ravel()[0]
        trip = _single(node.settled(trip), "trip count")
    start = np.array(True) if condition is None else _single(condition, "condition")
    known_start = node.importing.known(start)
    steps = None if trip is None else node.importing.known(trip)
    n = None if steps is None else max(int(steps), 0)
    if known_start is not None and not known_start:
        n = 0
    is_listed = any(isinstance(x, list) for x in initial)
    if known_start is not None and (is_listed or not _reads_traced(node, initial)):
        results = _unrolled(node, n, initial, required=is_listed)
        if results is not None:
            return results
    if length is not None and known_start is not None and known_start:
        return _sized(node, length, initial)
    count = Count(n if n == 0 else None, [*node.importing.sources(start), *node.importing.sources(trip)])
    if not count.inputs and known_start is not None and n != 0:
        count = count_of(node, n, initial)
    try:
        if count.steps is not None and count.steps < MOST_STEPS:
            return _counted(node, count.steps, initial)
        return _while(node, _recorded(node, initial), trip, start, initial, count.inputs)
    except (recurrent.ChangesTypeError, NeedsValueError) as error:
        if trip is not None and not getattr(error, "inputs", ()):  # with these values it could be unrolled
            node.known(trip, "trip count")
            node.known(start, "condition")
        results = _unrolled(node, n, initial, required=False) if known_start is not None else None
        if results is None:
            raise
        return results


def _sized(node: Node, length: Any, initial: Sequence[Value]) -> list[Value]:
    """A loop of as many steps as an axis has, whose condition holds throughout. Raises RefusedError for another condition."""
    if count_of(node, 2, initial).steps != 2:
        raise RefusedError(f"runs {length} steps, or until its condition ends it, and a scan has a number of steps")
    return _counted(node, larger(length, 0), initial)


def _counted(node: Node, n: int, initial: Sequence[Value]) -> list[Value]:
    """A loop of n steps, a scan."""
    recording = _recorded(node, initial)
    _, *results = recording.results
    if n == 0:  # which no open size is
        return [*initial, *[np.zeros((0, *x.shape), x.dtype) for x in results]]
    changing = _changing(node, initial)
    wanted = [node.wants(len(initial) + k) for k in range(len(results))]
    recording.results = [x for x, is_wanted in zip(results, wanted, strict=True) if is_wanted]
    after, stacked = recurrent.scanned(node, recording, [initial[k] for k in changing], [counted(node, n), None], n)
    rows = iter(stacked)
    return [*_filled(initial, changing, after), *[next(rows) if is_wanted else None for is_wanted in wanted]]


def _while(
    node: Node, recording: recurrent.Recorded, trip: Value, start: Value, initial: Sequence[Value], inputs: Sequence[str]
) -> list[Value]:
    """A loop that ends by its condition, whose number of steps is not known, but depends on these inputs of the model."""
    n_results = node.n_outputs - len(initial)
    inputs = list(dict.fromkeys(inputs))
    dtypes = {name: getattr(node.scope.get(name), "dtype", np.dtype(np.float32)) for name in inputs}
    sizes = [name for name, dtype in dtypes.items() if np.dtype(dtype).kind in "biu"]
    if any(node.wants(len(initial) + k) for k in range(n_results)):
        told = f"stacks results of steps, whose number depends on {quoted(inputs) or 'inputs'}; shapes are known here: "
        settable = sizes or [*node.importing.sources(trip), *node.importing.sources(start)]
        if settable:
            raise NeedsValueError(f"{told}{setting(settable)}", inputs)
        raise RefusedError(f"{told}give it a trip count, and a condition that depends on no input")
    loop = f"Loop '{node.name}'" if node.name else f"the Loop of '{label('', node.outputs)}'"
    node.importing.ends_by(loop, inputs, sizes[0] if sizes else None)
    if sizes:
        told = f"runs as many steps as {quoted(inputs)} says, and so has no reverse mode; {setting(sizes)} makes it a scan"
        name = f" '{node.name}'" if node.name else ""
        node.importing.note(f"Loop{name}: {told}")
    changing = _changing(node, initial)
    with recording.body.going_on():
        recording.carried = [*recording.carried, recording.arguments[-2] + 1, recording.results[0]]

    def goes_on(carried: Sequence[Array]) -> Array:
        *_, step, condition = carried
        return condition if trip is None else np.logical_and(condition, step < trip)

    first = [*[initial[k] for k in changing], np.array(0, np.int64), start]
    after = recurrent.repeated(node, recording, first, goes_on)
    return [*_filled(initial, changing, after), *[None] * n_results]


def _recorded(node: Node, initial: Sequence[Value]) -> recurrent.Recorded:
    """A step: its arguments are what changes, the step's number and the condition; its results the condition, and the graph's.

    A step is done where the condition holds, and so its graph has it as a known value.
    """
    changing = _changing(node, initial)

    def step(*arguments: Array) -> tuple[list[Value], list[Value]]:
        *carried, number, _ = arguments
        goes_on, after, results = _step(node, number, _filled(initial, changing, carried))
        return [after[k] for k in changing], [goes_on, *results]

    named = [(node["body"].input[2 + k].name, initial[k]) for k in changing]
    return recurrent.recorded(step, named, [TensorType("i64"), TensorType("bool")])


def _step(node: Node, number: Value, states: Sequence[Value]) -> tuple[Value, list[Value], list[Value]]:
    """Whether the loop goes on after a step, what it carries on, and its results."""
    outputs = node.body("body")(number, np.array(True), *states)
    n = len(states)
    if len(outputs) < n + 1 or node.n_outputs > len(outputs) - 1:
        raise RefusedError(f"its graph has {len(outputs)} outputs for {n} carried values and {node.n_outputs} outputs of the node")
    outputs = [*map(node.settled, outputs)]
    return _single(outputs[0], "condition"), outputs[1 : n + 1], outputs[n + 1 :]


def _unrolled(node: Node, n: int | None, initial: Sequence[Value], required: bool) -> list[Value] | None:
    """A loop as its steps, one after the other. None, or RefusedError if it is `required`, if they are too many, or unknown."""
    states: list[Value] = list(initial)
    rows: list[list[Value]] = []
    for number in count():
        if n is not None and number >= n:
            break
        too_many = number >= MOST_UNROLLED or (n or 0) > MOST_UNROLLED
        goes_on, known = None, None
        if not too_many:
            goes_on, states, results = _step(node, np.array(number, np.int64), states)
            rows.append(results)
            known = node.importing.known(goes_on)
        if known is None:
            if required:
                told = f"more than {MOST_UNROLLED}" if too_many else "a number that depends on inputs"
                raise RefusedError(f"carries sequences, or arrays whose shapes change, through {told} of steps")
            return None
        if not known:
            break
    if not rows and node.n_outputs > len(initial):
        return None
    return [*states, *[np.stack(column) for column in zip(*rows, strict=True)]]


def _changing(node: Node, initial: Sequence[Value]) -> list[int]:
    """The carried values that a step does not just hand on."""
    graph = node["body"]
    if graph is None or len(graph.input) < len(initial) + 2 or len(graph.output) < len(initial) + 1:
        told = f"{len(graph.input)} inputs and {len(graph.output)} outputs" if graph is not None else "not even that"
        raise RefusedError(f"its graph has {told} for {len(initial)} carried values")
    same = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "Identity" and len(n.input) == len(n.output) == 1}

    def is_handed_on(k: int) -> bool:
        name = graph.output[1 + k].name
        while name in same:
            name = same.pop(name)
        return bool(name == graph.input[2 + k].name)

    return [k for k in range(len(initial)) if not is_handed_on(k)]


def _filled(values: Sequence[Value], places: Sequence[int], new: Sequence[Value]) -> list[Value]:
    """The values, with new ones at places."""
    changed = dict(zip(places, new, strict=False))
    return [changed.get(k, x) for k, x in enumerate(values)]


def _reads_traced(node: Node, initial: Sequence[Value]) -> bool:
    """Whether a loop begins with, or its graph reads, what is traced."""
    graph = node["body"]
    read = () if graph is None else (*(o.name for o in graph.output), *(name for proto in graph.node for name in read_by(proto)))
    return any(isinstance(x, Array) for x in (*initial, *map(node.scope.get, read)))


# Scan.


def _scan(node: Node, *operands: Value) -> list[Value]:
    if node.version < 9:
        return _batched_scan(node, *operands)
    n = node["num_scan_inputs"]
    states, xs = list(operands[: len(operands) - n]), list(operands[len(operands) - n :])
    n_results = node.n_outputs - len(states)
    directions, back = _listed(node, "scan_input_directions", n), _listed(node, "scan_output_directions", n_results)
    axes, placed = _listed(node, "scan_input_axes", n), _listed(node, "scan_output_axes", n_results)
    xs = [np.moveaxis(x, normal_axis(axis, x.ndim), 0) for x, axis in zip(xs, axes, strict=True)]
    is_reverse = bool([*directions, *back]) and all([*directions, *back])
    if not is_reverse:
        xs = [np.flip(x, 0) if is_back else x for x, is_back in zip(xs, directions, strict=True)]
    after, ys = _scanned(node, states, xs, is_reverse)
    if not is_reverse:
        ys = [np.flip(y, 0) if is_back else y for y, is_back in zip(ys, back, strict=True)]
    return [*after, *[np.moveaxis(y, 0, normal_axis(axis, y.ndim)) for y, axis in zip(ys, placed, strict=True)]]


def _scanned(node: Node, states: Sequence[Value], xs: Sequence[Value], is_reverse: bool) -> tuple[list[Value], list[Value]]:
    """What the scan of the node's graph carries out, and its results, over slices along the first axis."""
    n = len(states)

    def step(*arguments: Value) -> tuple[list[Value], list[Value]]:
        outputs = node.body("body")(*arguments)
        if len(outputs) != node.n_outputs:
            raise RefusedError(f"its graph has {len(outputs)} outputs, and the node has {node.n_outputs}")
        outputs = [*map(node.settled, outputs)]
        return outputs[:n], outputs[n:]

    return recurrent.scan(node, step, _named(node, states), xs, _length(xs), is_reverse)


def _named(node: Node, states: Sequence[Value]) -> list[tuple[str, Value]]:
    graph = node["body"]
    return [(graph.input[k].name if graph is not None and k < len(graph.input) else "", x) for k, x in enumerate(states)]


def _listed(node: Node, name: str, n: int) -> list[int]:
    """An attribute with a number for each of n arrays, all 0 by default."""
    numbers = node[name] or [0] * n
    if len(numbers) != n:
        raise RefusedError(f"its attribute '{name}' has {len(numbers)} numbers for {n} arrays")
    return list(numbers)


def _length(xs: Sequence[Value]) -> int:
    sizes = {x.shape[0] if x.ndim else -1 for x in xs}
    if len(sizes) != 1 or -1 in sizes:
        told = ", ".join(str(list(x.shape)) for x in xs)
        raise RefusedError(f"scans over slices of arrays of the shapes {told}; all have one number of them")
    return sizes.pop()


def _batched_scan(node: Node, lengths: Value, *operands: Value) -> list[Value]:
    """Scan of opset 8: a scan over a batch, of scans. Steps behind the end of a sequence change nothing, and give zeros."""
    n = node["num_scan_inputs"]
    n_states = len(operands) - n
    directions = _listed(node, "directions", n)

    def one(*slices: Value) -> tuple[list[Value], list[Value]]:
        *arrays, length = slices
        xs = [_back(x, None if lengths is None else length) if d else x for x, d in zip(arrays[n_states:], directions, strict=True)]
        states = arrays[:n_states]
        after, ys = _scanned(node, states, xs, False) if lengths is None else _masked(node, states, xs, length)
        return [], [*after, *ys]

    batch = operands[0].shape[0]
    counts = np.zeros(batch, np.int64) if lengths is None else lengths
    return recurrent.scan(node, one, [], [*operands, counts], batch)[1]


def _back(x: Value, length: Value) -> Value:
    """Slices in the reverse order, the first `length` of them."""
    if length is None:
        return np.flip(x, 0)
    place = np.arange(x.shape[0])
    return np.take(x, np.where(place < length, length - 1 - place, place), 0)


def _masked(node: Node, states: Sequence[Value], xs: Sequence[Value], length: Value) -> tuple[list[Value], list[Value]]:
    n, n_steps = len(states), _length(xs)

    def step(*arguments: Value) -> tuple[list[Value], list[Value]]:
        *given, number = arguments
        outputs = node.body("body")(*given)
        on = number < length
        kept = [np.where(on, new, old) for new, old in zip(outputs[:n], given[:n], strict=True)]
        return kept, [np.where(on, y, np.zeros((), y.dtype)) for y in outputs[n:]]

    return recurrent.scan(node, step, _named(node, states), [*xs, counted(node, n_steps)], n_steps)


OPERATORS: Mapping[str, Operator] = {"If": _if, "Loop": _loop, "Scan": _scan}
