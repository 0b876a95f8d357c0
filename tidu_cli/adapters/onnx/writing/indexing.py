"""Gathers and scatters, sorting and extrema by place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tidu_cli.adapters.onnx.writing.arrays import aligned_shape, as_i64
from tidu_cli.adapters.onnx.writing.lowering import Lowering, Rule, widened
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import FLOATS, TensorType


def _columns(low: Lowering, indices: str, rank: int, n: int) -> list[str]:
    """The entries of index vectors, each of the indices' shape with a last axis of one."""
    wide = as_i64(low, indices, low.operands[1].dtype)
    return low.emit_all("Split", [wide], n, axis=rank - 1, num_outputs=n) if n > 1 else [wide]


def _axes(low: Lowering) -> tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[int]]:
    """The axes of a gather's dimension numbers, or a scatter's, whose fields are in the same order."""
    windowed, left_out, start_map, batching, along = vars(low.attrs.dimension_numbers).values()
    return windowed, left_out, start_map, batching, along


def _full_indices(low: Lowering, indices: str, windows: Sequence[int], result_rank: int) -> tuple[str, str | None]:
    """For each element of the windows its place in the operand, [..., rank]; and where windows fit, None if all are moved to.

    The axes before the last are the result's: those of the batch, and `offset_dims`, which run over windows.
    """
    offset_dims, collapsed, start_map, batching, indices_batching = _axes(low)
    operand, index_shape = low.operand.shape, low.operands[1].shape
    batch_axes = [k for k in range(result_rank) if k not in offset_dims]
    mode = low.attrs.mode
    offsets = dict(zip([d for d in range(len(operand)) if d not in collapsed and d not in batching], offset_dims, strict=True))
    columns = _columns(low, indices, len(index_shape), index_shape[-1]) if start_map else []
    starts: dict[int, str] = {}
    fits: str | None = None
    for axis, column in zip(start_map, columns, strict=True):
        most = operand[axis] - windows[axis]
        start = low.reshape(column, aligned_shape([1] * result_rank, batch_axes, index_shape[:-1]))
        if mode == "fill":
            inside = low.emit(
                "And",
                low.emit("GreaterOrEqual", start, low.number(0, "i64")),
                low.emit("LessOrEqual", start, low.number(most, "i64")),
            )
            fits = inside if fits is None else low.emit("And", fits, inside)
        starts[axis] = low.emit("Min", low.emit("Max", start, low.number(0, "i64")), low.number(most, "i64"))
    sizes = {**dict(zip(batch_axes, index_shape[:-1], strict=True)), **{k: windows[d] for d, k in offsets.items()}}
    shape = [sizes[k] for k in range(result_rank)]
    parts = []
    for d in range(len(operand)):
        place: str | None = starts.get(d)
        if d in offsets and windows[d] != 1 and windows[d] != 0:
            counted = low.counted(windows[d], [-1 if k == offsets[d] else 1 for k in range(result_rank)])
            place = counted if place is None else low.emit("Add", place, counted)
        elif d in batching:
            k = batch_axes[indices_batching[list(batching).index(d)]]
            place = low.counted(operand[d], [-1 if a == k else 1 for a in range(result_rank)])
        parts.append(place or low.number(0, "i64"))
    wide = [low.emit("Unsqueeze", low.emit("Expand", p, low.ints(shape)), low.ints([result_rank])) for p in parts]
    return (low.emit("Concat", *wide, axis=result_rank) if len(wide) > 1 else wide[0]), fits


def _in_rows(low: Lowering, windows: Sequence[int]) -> list[int] | None:
    """The operand's axes with those in front along which places are counted, None where windows are parts of others."""
    _, _, start_map, batching, _ = _axes(low)
    shape = low.operand.shape
    behind = [d for d in range(len(shape)) if d not in start_map and d not in batching]
    whole = all(windows[d] == shape[d] for d in behind) and all(windows[d] == 1 for d in start_map)
    return [*batching, *start_map, *behind] if start_map and whole else None


def _rows(low: Lowering, indices: str, elements: bool) -> tuple[str, str | None]:
    """For each index vector the number of its row, [..., 1], among all or, if `elements`, along its axis; and where windows fit."""
    _, _, start_map, batching, indices_batching = _axes(low)
    shape, index_shape, mode = low.operand.shape, low.operands[1].shape, low.attrs.mode
    axes = [*batching, *start_map]
    steps = {axis: math.prod(shape[d] for d in axes[k + 1 :]) for k, axis in enumerate(axes)}
    place: str | None = None
    fits: str | None = None
    for axis, column in zip(start_map, _columns(low, indices, len(index_shape), index_shape[-1]), strict=True):
        part = column
        if mode != "promise_in_bounds" or len(axes) > 1:
            part = low.emit("Clip", column, low.number(0, "i64"), low.number(shape[axis] - 1, "i64"))
        if mode == "fill":
            same = low.emit("Equal", part, column)
            fits = same if fits is None else low.emit("And", fits, same)
        if steps[axis] != 1 and steps[axis] != 0:
            part = low.emit("Mul", part, low.number(steps[axis], "i64"))
        place = part if place is None else low.emit("Add", place, part)
    assert place is not None
    for axis, along in zip([] if elements else batching, indices_batching, strict=False):
        counted = low.counted(shape[axis], [-1 if k == along else 1 for k in range(len(index_shape))], steps[axis])
        place = low.emit("Add", place, counted)
    return place, fits


def _is_of_elements(low: Lowering) -> bool:
    """Whether places are those of elements along one axis, as GatherElements has them."""
    _, _, _, batching, along = _axes(low)
    rank = low.operand.rank
    return len(batching) == rank - 1 and tuple(batching) == tuple(along) and low.operands[1].rank == rank + 1


def _gather(low: Lowering, x: str, indices: str) -> str:
    attrs, operand, rank = low.attrs, low.operand, low.result.rank
    if not operand.rank:
        return low.emit("Expand", low.reshape(x, [1] * rank), low.ints(low.result.shape))
    if attrs.mode != "fill" and (axis := _along_one_axis(low)) is not None:
        return _gather_along(low, x, indices, axis)
    if (axes := _in_rows(low, attrs.slice_sizes)) is not None:
        return _gather_rows(low, x, indices, axes)
    full, fits = _full_indices(low, indices, attrs.slice_sizes, rank)
    taken = low.emit("GatherND", x, full)
    return taken if fits is None else _or_fill(low, fits, taken)


def _or_fill(low: Lowering, fits: str, taken: str) -> str:
    """What is taken where windows fit, and elsewhere what the attrs say."""
    from tidu_cli.lax.arrays.gather import filling  # which reading models does without

    dtype = low.operand.dtype
    return low.where(fits, taken, low.number(filling(np, dtype, low.attrs.fill_value)), dtype)


def _along_one_axis(low: Lowering) -> int | None:
    """The axis of a gather that takes whole slices of one axis, as Gather does."""
    offsets, collapsed, start_map, batching, _ = _axes(low)
    sizes, shape = low.attrs.slice_sizes, low.operand.shape
    if len(start_map) != 1 or batching:
        return None
    (axis,) = start_map
    n_index = len(low.operands[1].shape) - 1
    others = [k for k in range(low.result.rank) if not axis <= k < axis + n_index]
    whole = all(s == n for k, (s, n) in enumerate(zip(sizes, shape, strict=True)) if k != axis)
    fits = tuple(collapsed) == (axis,) and list(offsets) == others
    return axis if whole and fits and sizes[axis] == 1 else None


def _gather_along(low: Lowering, x: str, indices: str, axis: int) -> str:
    index_type = low.operands[1]
    flat = low.emit("Squeeze", indices, low.ints([index_type.rank - 1]))
    if index_type.dtype not in ("i32", "i64"):
        flat = as_i64(low, flat, index_type.dtype)
    if low.attrs.mode != "promise_in_bounds":
        dtype = index_type.dtype if index_type.dtype in ("i32", "i64") else "i64"
        flat = low.emit("Clip", flat, low.number(0, dtype), low.number(low.operand.shape[axis] - 1, dtype))
    return low.emit("Gather", x, flat, axis=axis)


def _gather_rows(low: Lowering, x: str, indices: str, axes: Sequence[int]) -> str:
    """By numbers of rows, and of elements along an axis where there is but one."""
    offsets, _, start_map, batching, _ = _axes(low)
    shape, batch, rank = low.operand.shape, low.operands[1].shape[:-1], low.result.rank
    elements = _is_of_elements(low)
    place, fits = _rows(low, indices, elements)
    behind = [shape[d] for d in axes[len(batching) + len(start_map) :]]
    if elements:
        taken = low.emit("GatherElements", x, low.reshape(place, batch), axis=start_map[0])
    elif behind:
        taken = low.emit("Gather", low.reshape(low.transpose(x, axes), [-1, *behind]), low.reshape(place, batch), axis=0)
    else:
        taken = low.emit("GatherElements", low.reshape(low.transpose(x, axes), [-1]), low.reshape(place, [-1]), axis=0)
    order = [*[k for k in range(rank) if k not in offsets], *offsets]
    if not elements or offsets:
        taken = low.reshape(taken, [low.result.shape[k] for k in order])
    if fits is not None:
        taken = _or_fill(low, low.reshape(fits, [*batch, *[1] * len(offsets)]), taken)
    return low.transpose(taken, sorted(range(rank), key=order.__getitem__))


def _scatter(reduction: str | None, low: Lowering, x: str, indices: str, updates: str) -> str:
    """Updates that do not fit go to an element after the last one, which is cut off."""
    windowed, inserted, _, batching, _ = _axes(low)
    operand, rank = low.operand, low.operands[2].rank
    if 0 in low.operands[2].shape:
        return low.emit("Identity", x)
    window_axes = [d for d in range(operand.rank) if d not in inserted and d not in batching]
    windows = [1] * operand.rank
    for d, k in zip(window_axes, windowed, strict=True):
        windows[d] = low.operands[2].shape[k]
    if low.case.op == "scatter-sub":
        updates = low.emit("Sub", low.number(0), updates)
    if not operand.rank:
        return _scalar(low, x, updates, reduction)
    if (axes := _in_rows(low, windows)) is not None:
        return _scatter_rows(low, (x, indices, updates), axes, reduction)
    full, fits = _full_indices(low, indices, windows, rank)
    if reduction is None:  # of updates of one element that of the last index counts
        order = sorted(range(rank), key=lambda k: (k in windowed, k))
        full, updates = low.transpose(full, [*order, rank]), low.transpose(updates, order)
        fits = fits and low.transpose(fits, order)
    if fits is None:
        return low.emit("ScatterND", x, full, updates, reduction=reduction)
    steps = [math.prod(operand.shape[k + 1 :]) for k in range(operand.rank)]
    flat = low.emit("ReduceSum", low.emit("Mul", full, low.ints(steps)), low.ints([rank]), keepdims=0)
    flat = low.emit("Where", fits, flat, low.number(operand.size, "i64"))
    longer = low.emit("Concat", low.reshape(x, [-1]), low.body.constant([0], operand.dtype), axis=0)
    flat, updates = low.reshape(flat, [-1]), low.reshape(updates, [-1])
    scattered = low.emit("ScatterElements", longer, flat, updates, axis=0, reduction=reduction)
    return low.reshape(low.emit("Slice", scattered, low.ints([0]), low.ints([operand.size])), operand.shape)


def _scatter_rows(low: Lowering, operands: Sequence[str], axes: Sequence[int], reduction: str | None) -> str:
    """To rows, or elements along an axis where there is but one. What does not fit goes to one more, which is cut off."""
    windows, _, start_map, batching, _ = _axes(low)
    operand, batch = low.operand, low.operands[1].shape[:-1]
    (x, indices, updates), dtype = operands, operand.dtype
    elements = _is_of_elements(low)
    place, fits = _rows(low, indices, elements)
    moved = [operand.shape[d] for d in axes]
    n_front = len(batching) + len(start_map)
    shape = list(operand.shape) if elements else [math.prod(moved[:n_front]), *moved[n_front:]]
    axis = start_map[0] if elements else 0
    n = shape[axis]
    order = [*[k for k in range(low.operands[2].rank) if k not in windows], *windows]
    updates = low.transpose(updates, order)
    if [low.operands[2].shape[k] for k in order] != (due := [*batch, *([] if elements else shape[1:])]):
        updates = low.reshape(updates, due)
    if not elements:
        x = low.transpose(x, axes)
        x = x if moved == shape else low.reshape(x, shape)
    if fits is not None:
        place = low.emit("Where", fits, place, low.number(n, "i64"))
        more = TensorType(dtype, tuple(1 if k == axis else size for k, size in enumerate(shape)))
        x = low.emit("Concat", x, low.filled(0, more), axis=axis)
    if elements:
        x = low.emit("ScatterElements", x, low.reshape(place, batch), updates, axis=axis, reduction=reduction)
    else:
        x = low.emit("ScatterND", x, place, updates, reduction=reduction)
    if fits is not None:
        x = low.emit("Slice", x, low.ints([0]), low.ints([n]), low.ints([axis]))
    if elements:
        return x
    x = x if moved == shape else low.reshape(x, moved)
    return low.transpose(x, sorted(range(operand.rank), key=axes.__getitem__))


def _scalar(low: Lowering, x: str, updates: str, reduction: str | None) -> str:
    n = low.operands[2].size
    is_open = isinstance(n, OpenSize)
    places = low.filled(0, TensorType("i64", (n,))) if is_open else low.body.constant(np.zeros(n, np.int64))
    scattered = low.emit("ScatterElements", low.reshape(x, [1]), places, low.reshape(updates, [n]), axis=0, reduction=reduction)
    return low.reshape(scattered, [])


def _extremum(op_type: str, low: Lowering, x: str) -> str:
    (axis,) = low.attrs.axes
    place = low.emit(op_type, x, axis=axis, keepdims=0)
    return place if low.result.dtype == "i64" else low.cast(place, low.result.dtype)


def _top_k(low: Lowering, x: str) -> list[str]:
    values, places = low.emit_all("TopK", [x, low.ints([low.attrs.k])], 2, axis=low.attrs.axis)
    return [values, places if low.results[1].dtype == "i64" else low.cast(places, low.results[1].dtype)]


def _sort(low: Lowering, *operands: str) -> list[str]:
    """By stable sorts from the last key to the first. TopK puts the first of equal elements first."""
    axis, n_keys = low.attrs.dimension, low.attrs.num_keys or 1
    n = low.operand.shape[axis]
    arrays = list(operands)
    for k in reversed(range(n_keys)):
        key, dtype = arrays[k], low.operands[k].dtype
        if dtype in FLOATS:
            key = low.emit("Where", low.emit("IsNaN", key), low.number(math.inf, dtype), key)
        elif dtype == "bool":
            key = low.cast(key, "i32")
        order = low.emit_all("TopK", [key, low.ints([n])], 2, axis=axis, largest=0)[1]
        arrays = [low.emit("GatherElements", x, order, axis=axis) for x in arrays]
        if dtype in FLOATS:  # NaN comes after infinity
            nan = low.cast(low.emit("IsNaN", arrays[k]), "i32")
            order = low.emit_all("TopK", [nan, low.ints([n])], 2, axis=axis, largest=0)[1]
            arrays = [low.emit("GatherElements", x, order, axis=axis) for x in arrays]
    return arrays


LOWERINGS: Mapping[str, Rule] = {
    "argmax": widened(partial(_extremum, "ArgMax"), bool="i32", i16="i32", u16="i32", u32="i64", bf16="f32"),
    "argmin": widened(partial(_extremum, "ArgMin"), bool="i32", i16="i32", u16="i32", u32="i64", bf16="f32"),
    "gather": _gather,
    "scatter": partial(_scatter, None),
    "scatter-add": widened(partial(_scatter, "add"), f16="f32", bf16="f32"),
    "scatter-max": widened(partial(_scatter, "max"), f16="f32", bf16="f32", bool="i32"),
    "scatter-min": widened(partial(_scatter, "min"), f16="f32", bf16="f32", bool="i32"),
    "scatter-mul": widened(partial(_scatter, "mul"), f16="f32", bf16="f32"),
    "scatter-sub": widened(partial(_scatter, "add"), f16="f32", bf16="f32"),
    "sort": widened(_sort, bf16="f32", u16="i32", u32="i64"),
    "top_k": widened(_top_k, bf16="f32", bool="i32", u16="i32", u32="i64"),
}
