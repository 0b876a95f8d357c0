"""Elements chosen and put by index, and orders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.formats.onnx.reading.operators.elementwise import is_traced
from tidu_cli.formats.onnx.reading.operators.shapes import normal
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers
from tidu_cli.limits import require

SCATTERS = {"none": "scatter", "add": "scatter-add", "mul": "scatter-mul", "max": "scatter-max", "min": "scatter-min"}
"""The primitives of reductions."""


def _gather(node: Node, x: Value, indices: Value) -> Value:
    return np.take(x, indices, normal([node["axis"]], x.ndim)[0])


def _gather_elements(node: Node, x: Value, indices: Value) -> Value:
    if x.ndim != indices.ndim:
        raise RefusedError(f"has indices of {indices.ndim} axes for an array of {x.ndim}")
    axis = normal([node["axis"]], x.ndim)[0]
    return x[tuple(indices if k == axis else place for k, place in enumerate(grid(indices.shape)))]


def grid(shape: tuple[int, ...]) -> list[Any]:
    """For each axis of a shape the places along it, to be broadcast together."""
    return [np.arange(n).reshape([-1 if k == d else 1 for d in range(len(shape))]) for k, n in enumerate(shape)]


def _gather_nd(node: Node, x: Value, indices: Value) -> Value:
    batch, depth = node["batch_dims"] or 0, indices.shape[-1]
    if depth + batch > x.ndim or batch >= indices.ndim:
        raise RefusedError(f"has indices of {depth} numbers for an array of {x.ndim} axes, {batch} of which are a batch")
    places = grid(indices.shape[:-1])[:batch]
    return x[(*places, *[indices[..., k] for k in range(depth)])] if depth else x


def _scattered(node: Node, op: str, x: Value, places: list[Value], updates: Value, n_tail: int) -> Value:
    """x with updates put at places, each of an axis before the last `n_tail`; negative ones count from the end."""
    shape = np.broadcast_shapes(*map(np.shape, places))
    require("memory", math.prod(shape) * len(places) * 8, f"indices of shape {list(shape)}")
    counted = [
        np.where(p < 0, p + n, p) if is_traced(p) or np.min(p, initial=0) < 0 else p for p, n in zip(places, x.shape, strict=False)
    ]
    indices = np.stack([np.broadcast_to(p, shape).astype(np.int64) for p in counted], -1)
    axes = tuple(range(len(places)))
    tail = tuple(range(len(shape), len(shape) + n_tail))
    numbers = ScatterDimensionNumbers(update_window_dims=tail, inserted_window_dims=axes, scatter_dims_to_operand_dims=axes)
    return node.emit(op, x, indices, updates, dimension_numbers=numbers, mode="fill")


def _reduction(node: Node, x: Value) -> str:
    kind = node["reduction"] or "none"
    if kind not in SCATTERS:
        raise RefusedError(f"reduces by '{kind}', which is none of {', '.join(SCATTERS)}")
    if x.dtype == bool and kind != "none":
        raise RefusedError(f"reduces bools by '{kind}'")
    return SCATTERS[kind]


def _scatter_elements(node: Node, x: Value, indices: Value, updates: Value) -> Value:
    axis = normal([node["axis"]], x.ndim)[0]
    if indices.shape != updates.shape or indices.ndim != x.ndim:
        raise RefusedError(f"has indices of shape {list(indices.shape)} and updates of shape {list(updates.shape)}")
    places = [indices if k == axis else place for k, place in enumerate(grid(indices.shape))]
    return _scattered(node, _reduction(node, x), x, places, updates, 0) if x.ndim else updates


def _scatter_nd(node: Node, x: Value, indices: Value, updates: Value) -> Value:
    depth = indices.shape[-1]
    if depth > x.ndim:
        raise RefusedError(f"has indices of {depth} numbers for an array of {x.ndim} axes")
    places = [indices[..., k] for k in range(depth)]
    return _scattered(node, _reduction(node, x), x, places, updates, x.ndim - depth)


def _tensor_scatter(node: Node, past: Value, update: Value, starts: Value = None) -> Value:
    """Caches of keys and values, each of a batch written from its own place on."""
    axis = normal([node["axis"] if node["axis"] is not None else -2], past.ndim)[0]
    if axis == 0:
        raise RefusedError("writes along the axis of the batch")
    n, length = past.shape[axis], update.shape[axis]
    first = np.zeros(past.shape[0], np.int64) if starts is None else starts
    along = np.reshape(first, (-1, *[1] * (past.ndim - 1))) + grid(update.shape)[axis]
    places = [along if k == axis else place for k, place in enumerate(grid(update.shape))]
    if node["mode"] == "circular":
        places[axis] = along % n
    elif length > n:
        raise RefusedError(f"writes {length} elements along an axis of {n}")
    return _scattered(node, "scatter", past, places, update, 0)


def _one_hot(node: Node, indices: Value, depth: Value, values: Value) -> Value:
    n = int(node.known(depth, "depth").item())
    require("memory", max(n, 0) * math.prod(indices.shape) * 8, f"one-hot vectors of {n} elements")
    axis = normal([node["axis"]], indices.ndim + 1)[0]
    shape = [1] * (indices.ndim + 1)
    shape[axis] = n
    numbers = indices.astype(np.int64) if indices.dtype != np.int64 else indices
    chosen = np.expand_dims(np.where(numbers < 0, numbers + n, numbers), axis) == np.arange(n).reshape(shape)
    return np.where(chosen, values[1], values[0])


def _non_zero(node: Node, x: Value) -> Value:
    found = np.array(np.nonzero(np.atleast_1d(node.known(x, "X"))), np.int64)
    return found if x.ndim else np.zeros((0, found.shape[1]), np.int64)


def _unique(node: Node, x: Value) -> list[Value]:
    values = node.known(x, "X")
    axis = normal([node["axis"]], x.ndim)[0] if node.has("axis") else None
    found, first, inverse, counts = np.unique(values, True, True, True, axis)
    order = np.arange(len(first)) if node["sorted"] else np.argsort(first)
    rank = np.argsort(order)
    unique = np.take(found, order, 0 if axis is None else axis)
    return [unique, *(v.astype(np.int64) for v in (first[order], rank[np.ravel(inverse)], counts[order]))]


def _top_k(node: Node, x: Value, k: Value = None) -> list[Value]:
    n = node["k"] if k is None else int(node.known(k, "K").item())
    axis = normal([node["axis"]], x.ndim)[0]
    if not 0 <= n <= x.shape[axis]:
        raise RefusedError(f"takes {n} of {x.shape[axis]} elements")
    largest = node["largest"] in (1, None)
    places = np.broadcast_to(grid(x.shape)[axis], x.shape)
    # Sorting is stable: so the first of equal elements come first.
    order = node.emit_all("sort", _descending(node, x) if largest else x, places, dimension=axis, is_stable=True, num_keys=1)[1]
    chosen = order[(*[slice(None)] * axis, slice(0, n))]
    at = [chosen if d == axis else place for d, place in enumerate(grid(chosen.shape))]
    return [x[tuple(at)], chosen]


def _descending(node: Node, x: Value) -> Value:
    """Keys that ascend where x descends."""
    return ~x if np.dtype(x.dtype).kind in "iub" else -x


def _extremum(op: str) -> Operator:
    def run(node: Node, x: Value) -> Value:
        axis = normal([node["axis"]], x.ndim)[0]
        if node["select_last_index"]:
            x = np.flip(x, axis)
        found = node.emit(op, x, axes=(axis,), index_dtype="i64")
        if node["select_last_index"]:
            found = x.shape[axis] - 1 - found
        return np.expand_dims(found, axis) if node["keepdims"] else found

    return run


def _hardmax(node: Node, x: Value) -> Value:
    axis = normal([node["axis"]], x.ndim)[0]
    flat = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:])) if node.version < 13 else np.moveaxis(x, axis, -1)
    first = np.expand_dims(node.emit("argmax", flat, axes=(flat.ndim - 1,), index_dtype="i64"), -1)
    found = (first == np.arange(flat.shape[-1])).astype(x.dtype)
    return found.reshape(x.shape) if node.version < 13 else np.moveaxis(found, -1, axis)


def _reverse_sequence(node: Node, x: Value, lengths: Value) -> Value:
    time, batch = node["time_axis"], node["batch_axis"]
    if sorted((time, batch)) != [0, 1]:
        raise RefusedError(f"has time_axis {time} and batch_axis {batch}; these are 0 and 1")
    place = grid(x.shape[:2])
    n = lengths[np.newaxis, :] if time == 0 else lengths[:, np.newaxis]
    along = np.where(place[time] < n, n - 1 - place[time], place[time])
    return x[(along, place[batch]) if time == 0 else (place[batch], along)]


OPERATORS: Mapping[str, Operator] = {
    "ArgMax": _extremum("argmax"),
    "ArgMin": _extremum("argmin"),
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Hardmax": _hardmax,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "ReverseSequence": _reverse_sequence,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    "TopK": _top_k,
    "Unique": _unique,
}
