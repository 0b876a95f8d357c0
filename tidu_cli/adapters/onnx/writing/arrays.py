"""Shapes, slices and joining."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

import numpy as np

from tidu_cli.adapters.onnx.writing.lowering import Lowering, Rule, widened
from tidu_cli.graph.graph import Case
from tidu_cli.graph.sizes.open import OpenSize, surely
from tidu_cli.lax.arrays.structural import literal_array

LARGEST_IOTA = 4096
"""Countings of more elements are computed, not stored."""

SHORT, MANY_ROWS = 16, 2048
"""Broadcasting along a last axis of at most `SHORT` elements, over `MANY_ROWS` rows or more, is not left to operators, which would
take three times as long."""


def aligned_shape(shape: Sequence[int], axes: Sequence[int], operand: Sequence[int]) -> list[int]:
    """The shape of an operand whose axes are these of a broadcast shape, so that it broadcasts as NumPy has it."""
    sizes = [1] * len(shape)
    for axis, n in zip(axes, operand, strict=True):
        sizes[axis] = n
    return sizes


def aligned_of(case: Case) -> list[int]:
    """Likewise, of a case of broadcast_in_dim."""
    return aligned_shape(case.results[0].shape, case.attrs.broadcast_dimensions, case.operands[0].shape)  # type: ignore[union-attr, attr-defined]


def is_wide(shape: Sequence[int], due: Sequence[int]) -> bool:
    """Whether a broadcast repeats many elements along a short last axis, and does nothing else."""
    return (
        bool(shape)
        and not any(isinstance(n, OpenSize) for n in shape)
        and 1 < shape[-1] <= SHORT
        and math.prod(shape[:-1]) >= MANY_ROWS
        and [*due] == [*shape[:-1], 1]
    )


def _wide(low: Lowering, x: str) -> str:
    """Such a broadcast as the transpose of whole rows: runtimes copy these at once, and broadcast a short axis row by row."""
    *rows, n = low.result.shape
    size = math.prod(rows)
    turned = low.emit("Transpose", low.emit("Expand", low.reshape(x, [1, size]), low.ints([n, size])), perm=[1, 0])
    return low.reshape(turned, [*rows, n]) if len(rows) > 1 else turned


def _broadcast(low: Lowering, x: str) -> str:
    shape, operand = low.result.shape, low.operand.shape
    due = aligned_of(low.case)
    if is_wide(shape, due):
        return _wide(low, x)
    stripped = due[len(due) - len(operand) :] if len(due) >= len(operand) else due
    if math.prod(shape) == math.prod(operand) and list(shape) == due:
        return low.reshape(x, shape)
    if stripped != list(operand):
        x = low.reshape(x, due)
    there = [1] * (len(shape) - len(due)) + due
    return low.emit(
        "Expand", x, low.ints([1 if isinstance(n, OpenSize) and n == m else n for n, m in zip(shape, there, strict=True)])
    )


def aligned(low: Lowering, x: str) -> str:
    """A broadcast of which only the axes are put in place: those who read it broadcast themselves."""
    due = aligned_of(low.case)
    if due[len(due) - low.operand.rank :] == list(low.operand.shape):
        return low.emit("Identity", x)
    return low.reshape(x, due)


def _pad(low: Lowering, x: str, value: str) -> str:
    config, shape = low.attrs.padding_config, list(low.operand.shape)
    for axis, (_, _, interior) in enumerate(config):
        if interior and shape[axis] not in (0, 1):
            x = spread(low, x, shape, axis, interior, value)
            shape[axis] = (shape[axis] - 1) * (interior + 1) + 1
    low_, high = [c[0] for c in config], [c[1] for c in config]
    if all(n == 0 for n in (*low_, *high)):
        return x if shape != list(low.operand.shape) else low.emit("Identity", x)
    if any(isinstance(n, OpenSize) for n in (*chain(*config), *shape)):  # then Pad takes off what widths below 0 say
        return low.emit("Pad", x, low.ints([*low_, *high]), value)
    if min(*low_, *high) < 0:
        starts, cuts = [max(-a, 0) for a in low_], [max(-b, 0) for b in high]
        if any(a + b > n for a, b, n in zip(starts, cuts, shape, strict=True)):  # what comes in is cut, too
            wide = [max(a, 0) + n + max(b, 0) for a, n, b in zip(low_, shape, high, strict=True)]
            x = low.emit("Pad", x, low.ints([max(a, 0) for a in (*low_, *high)]), value)
            return _sliced(low, x, starts, [n - b for n, b in zip(wide, cuts, strict=True)], [1] * len(shape))
        ends = [n - b for n, b in zip(shape, cuts, strict=True)]
        x = _sliced(low, x, starts, ends, [1] * len(shape))
        low_, high = [max(a, 0) for a in low_], [max(b, 0) for b in high]
        if not any(low_) and not any(high):
            return x
    return low.emit("Pad", x, low.ints([*low_, *high]), value)


def spread(low: Lowering, x: str, shape: Sequence[int], axis: int, interior: int, *value: str) -> str:
    """x with `interior` copies of a value, or of 0, between neighbouring elements of an axis."""
    split = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    rank = len(split)
    pads = [0] * (2 * rank)
    pads[rank + axis + 1] = interior
    wide = low.emit("Pad", low.reshape(x, split), low.ints(pads), *value)
    n = shape[axis] * (interior + 1)
    flat = low.reshape(wide, [*shape[:axis], n, *shape[axis + 1 :]])
    return low.emit("Slice", flat, low.ints([0]), low.ints([n - interior]), low.ints([axis]))


def _sliced(low: Lowering, x: str, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> str:
    return low.emit("Slice", x, low.ints(starts), low.ints(ends), low.ints(range(len(starts))), low.ints(steps))


def _slice(low: Lowering, x: str) -> str:
    attrs = low.attrs
    if not low.operand.rank:
        return low.emit("Identity", x)
    steps = attrs.strides or [1] * low.operand.rank
    if not any(isinstance(n, OpenSize) for n in low.operand.shape):
        return _sliced(low, x, attrs.start_indices, attrs.limit_indices, steps)
    parts = zip(attrs.start_indices, attrs.limit_indices, steps, low.operand.shape, strict=True)
    cut = [(k, part[:3]) for k, part in enumerate(parts) if part[:3] != (0, part[3], 1)]
    if not cut:
        return low.emit("Identity", x)
    starts, ends, by = zip(*[part for _, part in cut], strict=True)
    return low.emit("Slice", x, low.ints(starts), low.ints(ends), low.ints([k for k, _ in cut]), low.ints(by))


def reversed_along(low: Lowering, x: str, axes: Sequence[int]) -> str:
    """x with these axes turned round."""
    if not axes:
        return low.emit("Identity", x)
    ends = [np.iinfo(np.int64).min] * len(axes)
    return low.emit("Slice", x, low.ints([-1] * len(axes)), low.ints(ends), low.ints(axes), low.ints([-1] * len(axes)))


def as_i64(low: Lowering, x: str, dtype: str) -> str:
    """Indices as i64, where the largest of u64 would be negative."""
    if dtype == "u64":
        x = low.emit("Min", x, low.number(2**63 - 1, "u64"))
    return x if dtype == "i64" else low.cast(x, "i64")


def clamped_starts(low: Lowering, indices: Sequence[str], sizes: Sequence[int], shape: Sequence[int]) -> str:
    """The starts of a slice, as one vector of i64 in which the slice fits."""
    types = low.operands[-len(indices) :]
    parts = [low.reshape(as_i64(low, i, t.dtype), [1]) for i, t in zip(indices, types, strict=True)]
    starts = low.emit("Concat", *parts, axis=0)
    most = low.ints([n - s for n, s in zip(shape, sizes, strict=True)])
    return low.emit("Min", low.emit("Max", starts, low.ints([0])), most)


def _dynamic_slice(low: Lowering, x: str, *indices: str) -> str:
    sizes = low.attrs.slice_sizes
    if not sizes:
        return low.emit("Identity", x)
    starts = clamped_starts(low, indices, sizes, low.operand.shape)
    return low.emit("Slice", x, starts, low.emit("Add", starts, low.ints(sizes)), low.ints(range(len(sizes))))


def _dynamic_update_slice(low: Lowering, x: str, update: str, *indices: str) -> str:
    sizes = low.operands[1].shape
    if not sizes or 0 in sizes:
        return low.emit("Identity", x if sizes else update)
    partial = [d for d, (n, m) in enumerate(zip(sizes, low.operand.shape, strict=True)) if n != m]
    if not partial:
        return low.emit("Identity", update)
    # Axes behind the last one that is replaced in part make rows. The numbers of rows are sums of one vector an axis.
    n_front, shape = partial[-1] + 1, low.operand.shape
    steps = [math.prod(shape[d + 1 : n_front]) if d < n_front else 0 for d in range(len(shape))]
    starts = low.emit("Mul", clamped_starts(low, indices, sizes, shape), low.ints(steps))
    place = low.emit("ReduceSum", starts, low.ints([0]), keepdims=0)
    for d in range(n_front):
        along = [-1 if k == d else 1 for k in range(n_front + 1)]
        place = low.emit("Add", place, low.counted(sizes[d], along, steps[d]))
    rows = low.reshape(x, [math.prod(shape[:n_front]), *shape[n_front:]])
    return low.reshape(low.emit("ScatterND", rows, place, update), shape)


def _iota(low: Lowering) -> str:
    shape, axis, dtype = low.result.shape, low.attrs.dimension, low.result.dtype
    n = shape[axis]
    along = [n if k == axis else 1 for k in range(len(shape))]
    if surely(lambda: math.prod(shape) <= LARGEST_IOTA):
        counted = np.broadcast_to(np.arange(n).reshape(along), shape)
        return low.emit("Identity", low.body.constant(counted, dtype))
    numbers = low.emit("Range", *[low.number(k, "i64") for k in (0, n, 1)])
    return low.emit("Expand", low.reshape(low.cast(numbers, dtype), along), low.ints(shape))


def _of_dimensions(op_type: str, low: Lowering, x: str) -> str:
    """One operator of the dimensions that the attrs name, if they do."""
    return low.emit(op_type, x, low.ints(low.attrs.dimensions)) if low.attrs.dimensions else low.emit("Identity", x)


def _split(low: Lowering, x: str) -> list[str]:
    sizes = low.attrs.sizes
    return low.emit_all("Split", [x, low.ints(sizes)], len(sizes), axis=low.attrs.axis)


def _transpose(low: Lowering, x: str) -> str:
    axes, shape = list(low.attrs.permutation), low.result.shape
    long = [axis for axis in axes if low.operand.shape[axis] != 1]
    if axes and long == sorted(long) and sum(isinstance(n, OpenSize) for n in shape) < 2:
        return low.reshape(x, shape)  # which copies nothing
    return low.emit("Transpose", x, perm=axes) if axes else low.emit("Identity", x)


LOWERINGS: Mapping[str, Rule] = {
    "constant": lambda low: low.body.constant(literal_array(np, low.attrs.value)),
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda low, *operands: low.emit("Concat", *operands, axis=low.attrs.dimension),
    "dynamic_slice": _dynamic_slice,
    "size": lambda low: low.emit("Identity", low.number(low.attrs.expression, low.attrs.dtype)),
    "dynamic_update_slice": _dynamic_update_slice,
    "expand_dims": partial(_of_dimensions, "Unsqueeze"),
    "iota": _iota,
    "pad": widened(_pad, i16="i32", u16="i32"),
    "reshape": lambda low, x: low.reshape(x, low.result.shape),
    "rev": lambda low, x: reversed_along(low, x, low.attrs.dimensions),
    "slice": _slice,
    "split": _split,
    "squeeze": partial(_of_dimensions, "Squeeze"),
    "transpose": _transpose,
}
