"""Elements at computed places: gathers, scatters, extrema by their places, and places of what is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.indexing import normal_axis
from tidu_cli.adapters.numpy.recorder import innermost
from tidu_cli.adapters.onnx.reading.node import (
    Node,
    Operator,
    RefusedError,
    Value,
    computed,
    computed_all,
    counted,
    integer,
    number,
    require_size,
)
from tidu_cli.adapters.onnx.reading.open_sizes import is_open_shape
from tidu_cli.adapters.onnx.reading.operators.elementwise import converted
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers, ScatterDimensionNumbers, taking


def wrapped(indices: Value, sizes: int | Sequence[int]) -> Value:
    """Indices from 0 up, as i64: negative ones count from the end of an axis, or of the axes that entries of the last axis are of.

    Raises RefusedError for known ones that are out of range.
    """
    at = indices.astype(np.int64)
    if is_open_shape(sizes if isinstance(sizes, Sequence) else (sizes,)):
        return _wrapped_open(at, list(sizes) if isinstance(sizes, Sequence) else [sizes])
    n = np.asarray(sizes, np.int64)
    if not isinstance(at, Array):
        wrong = (at < -n) | (at >= n)
        if np.any(wrong):
            raise RefusedError(f"index {int(at[wrong].flat[0])} is out of range for axes of {np.ravel(n).tolist()} elements")
    return np.where(at < 0, at + n, at)


def _wrapped_open(at: Value, sizes: Sequence[int]) -> Value:
    """Likewise, where axes have open sizes: known places that are out of range are the user's to see to."""
    if not isinstance(at, Array):
        if np.all(at >= 0):
            return at
        recorder = innermost()
        assert recorder is not None
        at = recorder.constant(at)
    columns = [at] if len(sizes) == 1 else np.split(at, len(sizes), -1)
    counted = [np.where(column < 0, column + n, column) for column, n in zip(columns, sizes, strict=True)]
    return counted[0] if len(counted) == 1 else np.concatenate(counted, -1)


def gathered(
    node: Node, x: Value, vectors: Value, shape: Sequence[int], attrs: Mapping[str, Any], *, within: bool = False
) -> Value:
    """The primitive `gather`, whose result has this shape; traced places that are out of range are clipped, if some may be."""
    if not math.prod(shape):
        return np.zeros(shape, x.dtype)
    mode = "clip" if isinstance(vectors, Array) and not within else "promise_in_bounds"
    return computed(node, "gather", x, vectors, **{**attrs, "mode": mode})


def _gather(node: Node, x: Value, indices: Value) -> Value:
    axis = normal_axis(node["axis"], x.ndim)
    if isinstance(x.shape[axis], OpenSize) and not isinstance(indices, Array) and indices.size == 1:
        place = int(indices.ravel()[0])
        require_size(
            x.shape[axis] - (place + 1 if place >= 0 else -place),
            f"index {place} is out of range for an axis of {x.shape[axis]} elements",
        )
        taken = x[(slice(None),) * axis + (place,)]
        return np.expand_dims(taken, tuple(range(axis, axis + indices.ndim)))
    wrapped(indices, x.shape[axis])
    return np.take(node.traced(x) if isinstance(indices, Array) else x, indices, axis)


def cropped(x: Value, shape: Sequence[int], axis: int) -> Value:
    """The part of x that places of a shape reach along an axis. Raises RefusedError where they reach beyond x."""
    if x.ndim != len(shape) or any(n > m for k, (n, m) in enumerate(zip(shape, x.shape, strict=True)) if k != axis):
        raise RefusedError(f"indices of shape {list(shape)} do not fit an array of shape {list(x.shape)} along axis {axis}")
    return x[tuple(slice(None) if k == axis else slice(n) for k, n in enumerate(shape))]


def _gather_elements(node: Node, x: Value, indices: Value) -> Value:
    axis = normal_axis(node["axis"], x.ndim)
    places = wrapped(indices, x.shape[axis])
    reached = cropped(x, indices.shape, axis)
    attrs = taking(reached.shape, x.ndim, axis)
    return gathered(node, reached, np.reshape(places, (*indices.shape, 1)), indices.shape, attrs)


def _gather_nd(node: Node, x: Value, indices: Value) -> Value:
    batch = node["batch_dims"] or 0
    rank = indices.shape[-1] if indices.ndim else 0
    if not (0 <= batch < indices.ndim and 1 <= rank <= x.ndim - batch) or indices.shape[:batch] != x.shape[:batch]:
        raise RefusedError(
            f"indices of shape {list(indices.shape)} with batch_dims {batch} do not fit an array of shape {list(x.shape)}"
        )
    axes = tuple(range(batch, batch + rank))
    before, after = indices.shape[:-1], x.shape[batch + rank :]
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(len(before), len(before) + len(after))),
        collapsed_slice_dims=axes,
        start_index_map=axes,
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
    )
    attrs = {"dimension_numbers": numbers, "slice_sizes": (*[1] * (batch + rank), *after)}
    return gathered(node, x, wrapped(indices, [x.shape[k] for k in axes]), (*before, *after), attrs)


def _box(vectors: Value) -> list[int] | None:
    """Where index vectors that are known start, if they are the places of a box in order, and None if not.

    Exporters write an assigned slice as a list of all its places, which may be long.
    """
    if isinstance(vectors, Array) or not vectors.size or vectors.shape[-1] != vectors.ndim - 1:
        return None
    starts = vectors[(0,) * (vectors.ndim - 1)]
    counted = np.moveaxis(np.indices(vectors.shape[:-1]), 0, -1)
    return [int(n) for n in starts] if np.array_equal(vectors, starts + counted) else None


def _reverse_sequence(node: Node, x: Value, lengths: Value) -> Value:
    """The first elements of each sequence of a batch in reverse order, the others as they are."""
    time, batch = node["time_axis"], node["batch_axis"]
    if sorted((time, batch)) != [0, 1] or x.ndim < 2 or lengths.shape != (x.shape[batch],):
        raise RefusedError(
            f"time_axis {time}, batch_axis {batch} and lengths of shape {list(lengths.shape)} do not fit an array of "
            f"shape {list(x.shape)}"
        )
    known = node.importing.known(lengths)
    if known is not None and known.size and (known.min() < 0 or known.max() > x.shape[time]):
        raise RefusedError(f"a sequence of {known.max()} elements (or {known.min()}) does not fit an axis of {x.shape[time]}")
    step = np.expand_dims(counted(node, x.shape[time]), batch)
    n = np.expand_dims(lengths, time)
    places = np.where(step < n, n - 1 - step, step)
    return gathered(node, x, np.expand_dims(places, 2), x.shape, taking(x.shape, 2, time))


def _arg(op: str, node: Node, x: Value) -> Value:
    axis = normal_axis(node["axis"], x.ndim)
    if not x.shape[axis]:
        raise RefusedError(f"axis {axis} has no elements, and so no extreme one")
    places = extreme(node, op, x, axis, last=bool(node["select_last_index"]))
    return np.expand_dims(places, axis) if node["keepdims"] else places


def extreme(node: Node, op: str, x: Value, axis: int, last: bool = False) -> Value:
    """The place of the extreme element along an axis, the first or the last of them. NaN wins."""
    of = np.flip(x, axis) if last else x
    places = computed(node, op, of, axes=(axis,), index_dtype="i64")
    return np.int64(x.shape[axis] - 1) - places if last else places


def _hardmax(node: Node, x: Value) -> Value:
    """1 at the first of the greatest elements, 0 elsewhere. Before version 13 axes from one on are taken together."""
    axis = normal_axis(node["axis"], x.ndim)
    flat = np.reshape(x, (math.prod(x.shape[:axis]), -1 if x.size else 0)) if node.version < 13 else x
    along = 1 if node.version < 13 else axis
    if not flat.size:
        return x
    place = np.expand_dims(extreme(node, "argmax", flat, along), along)
    steps = np.reshape(counted(node, flat.shape[along]), [-1 if k == along else 1 for k in range(flat.ndim)])
    return np.reshape((place == steps).astype(x.dtype), x.shape)


def _one_hot(node: Node, indices: Value, depth: Value, values: Value) -> Value:
    """values[1] at the places, which count from the end if they are negative, values[0] elsewhere."""
    n = integer(node, depth, "depth")
    if n < 1 or values.shape != (2,):
        raise RefusedError(f"its depth is {n} and its values have the shape {list(values.shape)}, not a number and [2]")
    axis = normal_axis(node["axis"], indices.ndim + 1)
    at = converted(node, indices, np.dtype(np.int64))
    at = node.traced(at) if isinstance(n, OpenSize) else at
    at = np.expand_dims(np.where(at < 0, at + number(at, n), at), axis)
    steps = np.reshape(counted(node, n), [-1 if k == axis else 1 for k in range(at.ndim)])
    shape = [n if k == axis else m for k, m in enumerate(at.shape)]
    return np.where(node.sized(at, shape) == steps, values[1], values[0])


def _top_k(node: Node, x: Value, k: Value | None = None) -> list[Value]:
    """The extreme elements along an axis, of ties the first ones, and their places."""
    axis = normal_axis(node["axis"], x.ndim)
    n = node["k"] if k is None else integer(node, k, "k")
    if not 0 <= n <= x.shape[axis]:
        raise RefusedError(f"takes {n} of {x.shape[axis]} elements")
    if node["largest"] in (1, None):
        values, places = computed_all(node, "top_k", x, k=n, axis=axis)
        return [values, places.astype(np.int64)]
    steps = np.reshape(counted(node, x.shape[axis]), [-1 if a == axis else 1 for a in range(x.ndim)])
    keys = computed_all(node, "sort", x, np.broadcast_to(steps, x.shape), dimension=axis, num_keys=1, is_stable=True)
    return [v[(slice(None),) * axis + (slice(n),)] for v in keys]


def _non_zero(node: Node, x: Value) -> Any:
    known = node.known_for_shape(x)
    return np.stack(np.nonzero(np.atleast_1d(known))).astype(np.int64)


def _unique(node: Node, x: Value) -> list[Any]:
    known, axis = node.known_for_shape(x), node["axis"]
    if axis is not None:
        axis = normal_axis(axis, x.ndim)
    values, first, inverse, counts = np.unique(known, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = np.ravel(inverse)
    if not node["sorted"]:
        order = np.argsort(first)
        values = np.take(values, order, axis or 0)
        inverse, first, counts = np.argsort(order)[inverse], first[order], counts[order]
    return [values, *(v.astype(np.int64) for v in (first, inverse, counts))]


_INDEXING: Mapping[str, Operator] = {
    "ArgMax": partial(_arg, "argmax"),
    "ArgMin": partial(_arg, "argmin"),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Hardmax": _hardmax,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "ReverseSequence": _reverse_sequence,
    "TopK": _top_k,
    "Unique": _unique,
}


# Arrays with elements at computed places replaced, or joined with others by an operation.


_PRIMITIVES = {"none": "scatter", "add": "scatter-add", "mul": "scatter-mul", "max": "scatter-max", "min": "scatter-min"}


def scattered(node: Node, x: Value, vectors: Value, updates: Value, numbers: ScatterDimensionNumbers) -> Value:
    """x with updates at places, by the reduction of the node; updates at places out of range, which are an error, are left out."""
    reduction = node["reduction"] or "none"
    if reduction not in _PRIMITIVES:
        raise RefusedError(f"joins by '{reduction}', which is none of {', '.join(_PRIMITIVES)}")
    if not updates.size:
        return x
    op = _PRIMITIVES[reduction]
    attrs: dict[str, Any] = {"dimension_numbers": numbers, "mode": "fill" if isinstance(vectors, Array) else "promise_in_bounds"}
    if op in ("scatter", "scatter-mul") and not isinstance(vectors, Array) and _distinct(vectors, numbers):
        attrs["unique_indices"] = True
    return computed(node, op, x, vectors, updates, **attrs)


def _distinct(vectors: Any, numbers: ScatterDimensionNumbers) -> bool:
    """Whether no place is written to twice."""
    counts = np.indices(vectors.shape[:-1], sparse=True)
    steps = [np.broadcast_to(counts[k], vectors.shape[:-1]).ravel() for k in numbers.scatter_indices_batching_dims]
    rows = np.stack([*steps, *vectors.reshape(-1, vectors.shape[-1]).T], axis=1)
    return len(np.unique(rows, axis=0)) == len(rows)


def _scatter_elements(node: Node, x: Value, indices: Value, updates: Value) -> Value:
    axis = normal_axis(node["axis"], x.ndim)
    if updates.shape != indices.shape:
        raise RefusedError(f"has updates of shape {list(updates.shape)} for indices of shape {list(indices.shape)}")
    places = wrapped(indices, x.shape[axis])
    reached = cropped(x, indices.shape, axis)
    others = tuple(k for k in range(x.ndim) if k != axis)
    numbers = ScatterDimensionNumbers(
        update_window_dims=(),
        inserted_window_dims=(axis,),
        scatter_dims_to_operand_dims=(axis,),
        operand_batching_dims=others,
        scatter_indices_batching_dims=others,
    )
    written = scattered(node, reached, np.reshape(places, (*indices.shape, 1)), updates, numbers)
    return written if reached.shape == x.shape else computed(node, "dynamic_update_slice", x, written, *[np.int64(0)] * x.ndim)


def _scatter_nd(node: Node, x: Value, indices: Value, updates: Value) -> Value:
    rank = indices.shape[-1] if indices.ndim else 0
    if not 1 <= rank <= x.ndim or updates.shape != (*indices.shape[:-1], *x.shape[rank:]):
        raise RefusedError(
            f"indices of shape {list(indices.shape)} and updates of shape {list(updates.shape)} do not fit an array of "
            f"shape {list(x.shape)}"
        )
    vectors, axes = wrapped(indices, x.shape[:rank]), tuple(range(rank))
    if (starts := _box(vectors)) is not None and node["reduction"] in (None, "none") and updates.size:
        starts += [0] * (x.ndim - rank)
        return computed(node, "dynamic_update_slice", x, updates, *[np.int64(n) for n in starts])
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(indices.ndim - 1, updates.ndim)),
        inserted_window_dims=axes,
        scatter_dims_to_operand_dims=axes,
    )
    return scattered(node, x, vectors, updates, numbers)


def _tensor_scatter(node: Node, x: Value, update: Value, starts: Value | None = None) -> Value:
    """x with a part of one axis replaced, from another place on in each element of the batch."""
    axis, n = normal_axis(node["axis"], x.ndim), update.shape[node["axis"]] if update.ndim == x.ndim else 0
    expected = tuple(n if k == axis else size for k, size in enumerate(x.shape))
    if axis == 0 or update.shape != expected or n > x.shape[axis]:
        raise RefusedError(f"an update of shape {list(update.shape)} does not fit a cache of {list(x.shape)} along axis {axis}")
    first = np.zeros(x.shape[0], np.int64) if starts is None else starts
    if first.shape != x.shape[:1]:
        raise RefusedError(f"has {list(first.shape)} write_indices for a batch of {x.shape[0]}")
    places = np.expand_dims(first, 1) + counted(node, n)
    if node["mode"] not in ("linear", "circular"):
        raise RefusedError(f"its mode is '{node['mode']}', and neither linear nor circular")
    places = places % np.int64(max(x.shape[axis], 1)) if node["mode"] == "circular" else wrapped(places, x.shape[axis])
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(k for k in range(x.ndim) if k not in (0, axis)),
        inserted_window_dims=(axis,),
        scatter_dims_to_operand_dims=(axis,),
        operand_batching_dims=(0,),
        scatter_indices_batching_dims=(0,),
    )
    return scattered(node, x, np.expand_dims(places, 2), update, numbers)


_SCATTERING: Mapping[str, Operator] = {
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
}

OPERATORS: Mapping[str, Operator] = {**_INDEXING, **_SCATTERING}
