"""Arrays with elements at computed places replaced, or joined with others by an operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.primitives import normal_axis
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, counted
from tidu_cli.adapters.onnx.reading.operators.arrays.indexing import cropped, wrapped
from tidu_cli.lax.arrays.windows import ScatterDimensionNumbers

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
    found = scattered(node, reached, np.reshape(places, (*indices.shape, 1)), updates, numbers)
    return found if reached.shape == x.shape else computed(node, "dynamic_update_slice", x, found, *[np.int64(0)] * x.ndim)


def _scatter_nd(node: Node, x: Value, indices: Value, updates: Value) -> Value:
    rank = indices.shape[-1] if indices.ndim else 0
    if not 1 <= rank <= x.ndim or updates.shape != (*indices.shape[:-1], *x.shape[rank:]):
        raise RefusedError(
            f"indices of shape {list(indices.shape)} and updates of shape {list(updates.shape)} do not fit an array of "
            f"shape {list(x.shape)}"
        )
    axes = tuple(range(rank))
    numbers = ScatterDimensionNumbers(
        update_window_dims=tuple(range(indices.ndim - 1, updates.ndim)),
        inserted_window_dims=axes,
        scatter_dims_to_operand_dims=axes,
    )
    return scattered(node, x, wrapped(indices, x.shape[:rank]), updates, numbers)


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


OPERATORS: Mapping[str, Operator] = {
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
}
