"""Shapes: what they are, and arrays of other shapes with the same elements; arrays made from shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.formats.onnx.tensors import dense
from tidu_cli.limits import require


def axes_of(node: Node, given: Value, rank: int) -> list[int] | None:
    """The axes that an attribute or, in newer operator sets, an input gives, from 0 up; None if neither does."""
    axes = node["axes"] if given is None else node.ints(given, "axes")
    return None if axes is None else normal(axes, rank)


def normal(axes: Any, rank: int) -> list[int]:
    """Axes from 0 up. Raises RefusedError for those that there are not."""
    wrong = next((k for k in axes if not -rank <= k < rank), None)
    if wrong is not None:
        raise RefusedError(f"axis {wrong} of an array of {rank} axes")
    return [k % rank for k in axes]


def _constant(node: Node) -> Value:
    for name in ("value_float", "value_floats", "value_int", "value_ints"):
        if node.has(name):
            return np.array(node[name], node.dtype(1) if "float" in name else np.int64)
    if node.has("sparse_value"):
        return dense(node["sparse_value"].sparse_tensor, node.importing.cast)
    value = node["value"]
    if not isinstance(value, np.ndarray):
        raise RefusedError("is a constant of strings, or of nothing")
    return value


def filled(node: Node, value: Any, shape: list[int]) -> Value:
    """An array of one number: known if it is small."""
    if min(shape, default=0) < 0:
        raise RefusedError(f"makes an array of shape {shape}")
    return np.broadcast_to(node.sized(np.asarray(value), shape), shape)


def _constant_of_shape(node: Node, shape: Value) -> Value:
    value = node["value"] if node.has("value") else np.zeros(1, node.dtype(1))
    return filled(node, value.reshape(()), node.ints(shape, "shape"))


def _shape(node: Node, x: Value) -> Any:
    return np.array(x.shape[slice(node["start"], node["end"])], np.int64)


def _reshape(node: Node, x: Value, shape: Value) -> Value:
    sizes = node.ints(shape, "shape")
    if not node["allowzero"]:
        sizes = [x.shape[k] if n == 0 and k < x.ndim else n for k, n in enumerate(sizes)]
    elif -1 in sizes and 0 in sizes:
        raise RefusedError(f"to the shape {sizes}, in which -1 may be anything")
    return np.reshape(x, sizes)


def _flatten(node: Node, x: Value) -> Value:
    axis = node["axis"] + (x.ndim if node["axis"] < 0 else 0)
    return np.reshape(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(node: Node, x: Value, axes: Value = None) -> Value:
    chosen = axes_of(node, axes, x.ndim)
    return np.squeeze(x, tuple(chosen) if chosen is not None else None)


def _unsqueeze(node: Node, x: Value, axes: Value = None) -> Value:
    given = node["axes"] if axes is None else node.ints(axes, "axes")
    return np.expand_dims(x, tuple(normal(given, x.ndim + len(given))))


def _expand(node: Node, x: Value, shape: Value) -> Value:
    sizes = np.broadcast_shapes(x.shape, tuple(node.ints(shape, "shape")))
    return np.broadcast_to(node.sized(x, sizes), sizes)


def _eye_like(node: Node, x: Value) -> Value:
    rows, columns = x.shape
    require("memory", rows * columns * 8, f"a matrix of shape {[rows, columns]}")
    return np.eye(rows, columns, node["k"], dtype=node.dtype(node["dtype"]) if node.has("dtype") else x.dtype)


def _range(node: Node, start: Value, limit: Value, delta: Value) -> Value:
    first, end, step = (node.known(x, what).item() for x, what in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if not step:
        raise RefusedError("goes in steps of 0")
    n = max(math.ceil((end - first) / step), 0)
    require("memory", n * 8, f"a range of {n} numbers")
    return (first + np.arange(n) * step).astype(start.dtype)


def _trilu(node: Node, x: Value, k: Value = None) -> Value:
    diagonal = 0 if k is None else int(node.known(k, "k").item())
    bound = max(x.shape[-2:])
    diagonal = min(max(diagonal, -bound - 1), bound + 1)
    return (np.triu if node["upper"] else np.tril)(x, diagonal)


def _depth_to_space(node: Node, x: Value) -> Value:
    n, c, h, w = x.shape
    b = node["blocksize"]
    if node["mode"] == "CRD":
        return x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // b**2, h * b, w * b)
    return x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)


def _space_to_depth(node: Node, x: Value) -> Value:
    n, c, h, w = x.shape
    b = node["blocksize"]
    order = (0, 1, 3, 5, 2, 4) if node["mode"] == "CRD" else (0, 3, 5, 1, 2, 4)
    return x.reshape(n, c, h // b, b, w // b, b).transpose(order).reshape(n, c * b**2, h // b, w // b)


OPERATORS: Mapping[str, Operator] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Identity": lambda node, x: x,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": lambda node, x: np.array(math.prod(x.shape), np.int64),
    "SpaceToDepth": _space_to_depth,
    "Squeeze": _squeeze,
    "Transpose": lambda node, x: np.transpose(x, node["perm"]),
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
