"""Parts of arrays, and arrays put together, repeated and padded; sequences of arrays, and optional values.

Sequences and optional values are lists when a model is read: how many arrays there are is known then. A sequence is a list of
arrays. An optional value is the array or the sequence, or EMPTY.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.indexing import normal_axes, normal_axis
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number, require_size
from tidu_cli.adapters.onnx.reading.open_sizes import is_open_shape
from tidu_cli.graph.sizes.open import OpenSize, larger, smaller

EMPTY: list[Any] = []
"""An optional value that is none."""


def _place(node: Node, sequence: list[Value], position: Value, most: int) -> int:
    """A known position in a sequence, from 0 up, below `most`."""
    k = int(node.known(position, "position").item())
    if not -len(sequence) <= k < most:
        raise RefusedError(f"position {k} of a sequence of {len(sequence)} arrays")
    return k + len(sequence) if k < 0 else k


def _insert(node: Node, sequence: list[Value], x: Value, position: Value = None) -> list[Any]:
    k = len(sequence) if position is None else _place(node, sequence, position, len(sequence) + 1)
    return [[*sequence[:k], x, *sequence[k:]]]


def _erase(node: Node, sequence: list[Value], position: Value = None) -> list[Any]:
    if not sequence:
        raise RefusedError("erases of a sequence of no arrays")
    k = len(sequence) - 1 if position is None else _place(node, sequence, position, len(sequence))
    return [[*sequence[:k], *sequence[k + 1 :]]]


def _split_to_sequence(node: Node, x: Value, split: Value = None) -> list[Any]:
    axis = normal_axis(node["axis"], x.ndim)
    n = x.shape[axis]
    if split is None:
        sizes = [1] * n
    elif not np.shape(split):
        size = int(node.known(split, "split").item())
        if size <= 0:
            raise RefusedError(f"splits into parts of {size}")
        sizes = [min(size, n - k) for k in range(0, n, size)]
    else:
        sizes = node.ints(split, "split")
    if sum(sizes) != n or min(sizes, default=0) < 0:
        raise RefusedError(f"splits an axis of {n} into {sizes[:8]}")
    parts = parted(x, axis, sizes)
    if split is None and not node["keepdims"]:
        parts = [np.squeeze(part, axis) for part in parts]
    return [parts]


def _concat_from_sequence(node: Node, sequence: list[Value]) -> Value:
    return np.stack(sequence, node["axis"]) if node["new_axis"] else np.concatenate(sequence, node["axis"])


def _map(node: Node, sequence: list[Value], *others: Any) -> list[Any]:
    body = node.body("body")
    rows = [body(x, *[o[k] if isinstance(o, list) else o for o in others]) for k, x in enumerate(sequence)]
    return [[row[k] for row in rows] for k in range(node.n_outputs)]


def _element(node: Node, x: Any) -> list[Any]:
    if x is EMPTY:
        raise RefusedError("takes the value of an optional one that is none")
    return [x]


def _concat(node: Node, *arrays: Value) -> Value:
    axis = normal_axis(node["axis"], arrays[0].ndim)
    return np.concatenate(arrays, axis) if len(arrays) > 1 else arrays[0]


def part(x: Value, axis: int, taken: slice) -> Value:
    """What a slice takes along an axis."""
    return x[(slice(None),) * axis + (taken,)]


def parted(x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """x in parts of these sizes along an axis."""
    return [part(x, axis, slice(a, b)) for a, b in pairwise([0, *accumulate(sizes)])]


def _split(node: Node, x: Value, sizes: Value | None = None) -> list[Value]:
    axis = normal_axis(node["axis"] or 0, x.ndim)
    given = node["split"] if sizes is None else node.ints(sizes, "split")
    parts = _sizes(node, x.shape[axis]) if given is None else given
    if sum(parts) != x.shape[axis] or any(n < 0 for n in parts):
        raise RefusedError(f"parts of {parts} elements do not make up axis {axis} of an array of shape {list(x.shape)}")
    return parted(x, axis, parts)


def _sizes(node: Node, n: int) -> list[int]:
    """Parts of one size, as many as there are outputs; the last ones are less where that does not come out even."""
    count = node["num_outputs"] or node.n_outputs
    if node["num_outputs"] is not None and count != node.n_outputs:
        raise RefusedError(f"has num_outputs {count}, and {node.n_outputs} outputs")
    if node.version < 18 and n % count != 0:
        raise RefusedError(f"{n} elements do not split into {count} equal parts")
    each = (n + count - 1) // count
    return [larger(smaller(each, n - k * each), 0) for k in range(count)]


def _slice(node: Node, x: Value, *inputs: Value) -> Value:
    names = ("starts", "ends", "axes", "steps")
    given = {name: node.ints(v, name) for name, v in zip(names, inputs, strict=False) if v is not None}
    if not inputs:
        given = {name: node[name] for name in names if node[name] is not None}
    starts, ends = given["starts"], given["ends"]
    axes, steps = given.get("axes", list(range(len(starts)))), given.get("steps", [1] * len(starts))
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise RefusedError(f"has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    if 0 in steps:
        raise RefusedError("has a step of 0")
    index = [slice(None)] * x.ndim
    for axis, start, end, step in zip(normal_axes(axes, x.ndim), starts, ends, steps, strict=True):
        index[axis] = _taken(x.shape[axis], start, end, step)
        if step < 0 and is_open_shape([x.shape[axis], start, end]):
            x = np.flip(node.traced(x), axis)
    if is_open_shape([n for part in index for n in (part.start, part.stop)]):
        x = node.traced(x)
    return x[tuple(index)]


def _taken(n: int, start: int, end: int, step: int) -> slice:
    """A slice of an axis of n elements. Unlike Python's, one that starts before the first element and goes back has that one."""
    if is_open_shape((n, start, end)):
        return _taken_open(n, start, end, step)
    low, high = (0, n) if step > 0 else (-1, n - 1)
    first, last = (max(min(k + n if k < 0 else k, high), low) for k in (start, end))
    return slice(max(first, 0), last if last >= 0 else None, max(min(step, n + 1), -n - 1))


_FAR = 10**9
"""Exporters write this, or more, for an end that is that of the axis, whatever its size."""


def _taken_open(n: Any, start: Any, end: Any, step: int) -> slice:
    """Likewise, where sizes are open; with a step below 0 of the axis turned round."""
    high, low = (n, 0) if step > 0 else (n - 1, -1)

    def place(k: Any) -> Any:
        if not isinstance(k, OpenSize) and abs(k) >= _FAR:
            return high if k > 0 else low
        return larger(smaller(k + n if k < 0 else k, high), low)

    first, last = larger(place(start), 0), place(end)
    return slice(first, last, step) if step > 0 else slice(n - 1 - first, n - 1 - last, -step)


def _tile(node: Node, x: Value, repeats: Value) -> Value:
    counts = node.ints(repeats, "repeats")
    if len(counts) != x.ndim or any(n < 0 for n in counts):
        raise RefusedError(f"repeats {counts} are not a number for each of {x.ndim} axes")
    return np.tile(node.sized(x, [n * c for n, c in zip(x.shape, counts, strict=True)]), counts)


def _pad(node: Node, x: Value, pads: Value | None = None, value: Value | None = None, axes: Value | None = None) -> Value:
    widths = node["pads"] if pads is None else node.ints(pads, "pads")
    on = tuple(range(x.ndim)) if axes is None else normal_axes(node.ints(axes, "axes"), x.ndim)
    if len(widths) != 2 * len(on):
        raise RefusedError(f"has {len(widths)} pads for {len(on)} axes, of which each needs two")
    sides = {axis: (widths[k], widths[k + len(on)]) for k, axis in enumerate(on)}
    each = [sides.get(k, (0, 0)) for k in range(x.ndim)]
    if pads is None and node["value"]:
        value = np.asarray(node["value"], x.dtype)
    return padded(node, x, each, node["mode"], value)


def padded(node: Node, x: Value, widths: Sequence[tuple[int, int]], mode: str = "constant", value: Value | None = None) -> Value:
    """x with so many elements before and after it on each axis; negative numbers take as many away."""
    if mode == "constant" and is_open_shape([n for pair in widths for n in pair]):  # of either sign, perhaps
        fill = number(x, 0) if value is None else np.reshape(value, ())
        return computed(node, "pad", x, fill, padding_config=tuple((a, b, 0) for a, b in widths))
    for axis, (before, after) in enumerate(widths):
        n = x.shape[axis]
        if smaller(before, 0) + smaller(after, 0) < -n:
            raise RefusedError(f"pads of {before} and {after} take more than the {n} elements of axis {axis}")
        if before < 0 or after < 0:
            x = part(x, axis, slice(larger(-before, 0), n - larger(-after, 0)))
    more = [(larger(a, 0), larger(b, 0)) for a, b in widths]
    if not any(n != 0 for pair in more for n in pair):
        return x
    x = node.sized(x, [n + a + b for n, (a, b) in zip(x.shape, more, strict=True)])
    if mode != "constant":
        if mode not in ("reflect", "edge", "wrap"):
            raise RefusedError(f"pads by '{mode}' (modes: constant, edge, reflect, wrap)")
        for n, pair in zip(x.shape, more, strict=True):
            if is_open_shape((n, *pair)) and any(k != 0 for k in pair):
                from tidu_cli.adapters.numpy.arrays.sizes import ends_needed

                require_size(n - ends_needed(pair, mode), f"pads by '{mode}' an axis of {n} elements, by {pair[0]} and {pair[1]}")
        return np.pad(x, more, mode=mode)  # type: ignore[call-overload]
    fill = x.dtype.type(0) if value is None else np.reshape(value, ())
    if isinstance(fill, Array):
        x = node.traced(x)
    return np.pad(x, more, constant_values=fill)


def _center_crop_pad(node: Node, x: Value, shape: Value) -> Value:
    sizes = node.ints(shape, "shape")
    axes = normal_axes(node["axes"], x.ndim)
    if len(sizes) != len(axes) or min(sizes, default=0) < 0:
        raise RefusedError(f"the shape {sizes} is not a size for each of {len(axes)} axes")
    widths = [(0, 0)] * x.ndim
    for axis, n in zip(axes, sizes, strict=True):
        less = n - x.shape[axis]
        before = less // 2 if less > 0 else -(-less // 2)
        widths[axis] = (before, less - before)
    return padded(node, x, widths)


def _compress(node: Node, x: Value, condition: Value) -> Value:
    kept = np.flatnonzero(node.known_for_shape(condition))
    axis = node["axis"]
    if axis is None:
        x, axis = np.reshape(x, (-1,)), 0
    axis = normal_axis(axis, x.ndim)
    if kept.size and kept[-1] >= x.shape[axis]:
        raise RefusedError(f"its condition is true at {kept[-1]}, and axis {axis} has {x.shape[axis]} elements")
    return np.take(x, kept, axis)


OPERATORS: Mapping[str, Operator] = {
    "CenterCropPad": _center_crop_pad,
    "Compress": _compress,
    "Concat": _concat,
    "ConcatFromSequence": _concat_from_sequence,
    "Optional": lambda node, x=None: [EMPTY if x is None else x],
    "OptionalGetElement": _element,
    "OptionalHasElement": lambda node, x=None: np.array(x is not None and x is not EMPTY),
    "Pad": _pad,
    "SequenceAt": lambda node, sequence, position: [sequence[_place(node, sequence, position, len(sequence))]],
    "SequenceConstruct": lambda node, *arrays: [list(arrays)],
    "SequenceEmpty": lambda node: [[]],
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": lambda node, sequence: np.array(len(sequence), np.int64),
    "SequenceMap": _map,
    "Slice": _slice,
    "Split": _split,
    "SplitToSequence": _split_to_sequence,
    "Tile": _tile,
}

TAKING = frozenset(("Identity", "If", "Loop", *[name for name in OPERATORS if "Sequence" in name or "Optional" in name]))
"""Operators that take sequences."""
