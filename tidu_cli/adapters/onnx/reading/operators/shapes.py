"""Shapes: what they are, constants of a shape, and arrays of other shapes with the same elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.numpy.indexing import common_shape, normal_axes
from tidu_cli.adapters.onnx.loading import HELD, array_of, dense
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, as_sizes, counted, integer, number
from tidu_cli.adapters.onnx.reading.open_sizes import is_open_shape, not_same, reshaped
from tidu_cli.graph.sizes.open import OpenSize, larger


def _axes(node: Node, given: Value | None) -> list[int] | None:
    """The axes that an attribute or, in newer versions, an input gives; None if neither does."""
    return node["axes"] if given is None else node.ints(given, "axes")


_NUMBERS = {"value_float": 1, "value_floats": 1, "value_int": 7, "value_ints": 7}


def _constant(node: Node) -> Value:
    for name, code in _NUMBERS.items():
        if node.has(name):
            return np.array(node[name], node.dtype(code))
    if node.has("sparse_value"):
        return dense(node["sparse_value"].sparse_tensor, node.importing.cast)
    if getattr(node["value"], "data_type", None) in HELD:
        tensor = node["value"]
        return node.importing.standing(array_of(tensor, node.importing.cast), HELD[tensor.data_type][0])
    if not isinstance(node["value"], np.ndarray):
        raise RefusedError("has a value of text, and tidu has arrays of numbers only" if node.attributes else "has no value")
    return node["value"]


def _constant_of_shape(node: Node, shape: Value) -> Value:
    value = np.zeros((), node.dtype(1)) if node["value"] is None else node["value"]
    if not isinstance(value, np.ndarray):
        raise RefusedError("its attribute 'value' is of a type that tidu has no arrays of; cast what it makes instead")
    if np.size(value) != 1:
        raise RefusedError(f"its attribute 'value' has {np.size(value)} elements, and not one")
    return filled(node, np.reshape(value, ()), node.ints(shape, "shape"))


def filled(node: Node, value: Value, shape: Sequence[int]) -> Value:
    """An array of one value. Raises RefusedError for negative sizes."""
    if any(n < 0 for n in shape):
        raise RefusedError(f"would make an array of shape {list(shape)}")
    return np.broadcast_to(node.sized(value, shape), tuple(shape))


def _reshape(node: Node, x: Value, shape: Value) -> Value:
    sizes = node.ints(shape, "shape")
    if not node["allowzero"]:
        if any(n == 0 for n in sizes[x.ndim :]):
            raise RefusedError(f"keeps the size of axis {x.ndim}, and an array of shape {list(x.shape)} has none")
        sizes = [x.shape[k] if n == 0 else n for k, n in enumerate(sizes)]
    elif 0 in sizes and -1 in sizes:
        raise RefusedError(f"with allowzero, the shape {sizes} has a 0, and -1 may be any number")
    if -1 in sizes and 0 in sizes and math.prod(sizes) == 0 and sizes.count(-1) == 1:
        raise RefusedError(f"in the shape {sizes}, -1 may be any number")
    if is_open_shape((*x.shape, *sizes)):
        return np.reshape(x, reshaped(x.shape, sizes))
    if -1 not in sizes and math.prod(sizes) != x.size:
        raise ValueError(f"{x.size} elements, of shape {list(x.shape)}: does not reshape to {sizes}")
    return np.reshape(x, sizes)


def _flatten(node: Node, x: Value) -> Value:
    axis = node["axis"]
    if not -x.ndim <= axis <= x.ndim:
        raise RefusedError(f"axis {axis} is out of range for an array of {x.ndim} axes")
    at = axis + x.ndim if axis < 0 else axis
    return np.reshape(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])))


def _squeeze(node: Node, x: Value, axes: Value | None = None) -> Value:
    given = _axes(node, axes)
    gone = [k for k, n in enumerate(x.shape) if n == 1] if given is None else normal_axes(given, x.ndim)
    for k in gone:
        if x.shape[k] != 1:
            told = f"axis {k} of an array of shape {list(x.shape)} has more than one element"
            raise RefusedError(told) if not isinstance(x.shape[k], OpenSize) else not_same(x.shape[k], 1, told)
    return np.reshape(x, [n for k, n in enumerate(x.shape) if k not in gone])


def _unsqueeze(node: Node, x: Value, axes: Value | None = None) -> Value:
    given = _axes(node, axes) or []
    new = normal_axes(given, x.ndim + len(given))
    sizes = iter(x.shape)
    return np.reshape(x, [1 if k in new else next(sizes) for k in range(x.ndim + len(new))])


def _expand(node: Node, x: Value, shape: Value) -> Value:
    given = tuple(node.ints(shape, "shape"))
    try:
        sizes = common_shape(x.shape, given)
    except ValueError as error:
        if hasattr(error, "same"):
            raise
        raise RefusedError(f"shapes {list(x.shape)} and {list(given)} do not broadcast together") from None
    return np.broadcast_to(node.sized(x, sizes), sizes)


def _transpose(node: Node, x: Value) -> Value:
    axes = node["perm"]
    if axes is not None and sorted(axes) != list(range(x.ndim)):
        raise RefusedError(f"perm {axes} is not a permutation of {x.ndim} axes")
    return np.transpose(x, axes)


def _range(node: Node, start: Value, limit: Value, delta: Value) -> Value:
    named = ((start, "start"), (limit, "limit"), (delta, "delta"))
    if any(node.importing.sizes(x) is not None for x, _ in named):
        return _open_range(node, start.dtype, [node.ints(x, name) for x, name in named])
    numbers = [node.known(x, name) for x, name in named]
    if any(x.size != 1 for x in numbers):
        raise RefusedError("start, limit and delta are one number each")
    first, last, step = (np.reshape(x, ())[()] for x in numbers)
    whole = first.dtype.kind in "iu"
    a, b, by = (int(x) if whole else float(x) for x in (first, last, step))
    if by == 0 or not all(map(math.isfinite, (a, b, by))):
        raise RefusedError(f"from {a} to {b} by {by} has no number of elements")
    n = max(-((b - a) // -by) if whole else math.ceil((b - a) / by), 0)
    return (counted(node, int(n), np.int64 if whole else np.float64) * by + a).astype(first.dtype)


def _open_range(node: Node, dtype: Any, given: Sequence[Sequence[int]]) -> Value:
    (first,), (last,), (step,) = given
    count = larger((last - first + step - 1) // step if step > 0 else (first - last - step - 1) // -step, 0)
    numbers = node.traced(counted(node, count))
    numbers = numbers * step if step != 1 else numbers
    return (numbers + first if first != 0 else numbers).astype(dtype)


def _diagonal(node: Node, rows: int, columns: int) -> Value:
    """For each place of a matrix its column less its row."""
    down, across = np.reshape(counted(node, rows), (rows, 1)), counted(node, columns)
    return node.sized(across, (rows, columns)) - down


def _eye_like(node: Node, x: Value) -> Value:
    if x.ndim != 2:
        raise RefusedError(f"is like an array of shape {list(x.shape)}, which is not a matrix")
    dtype = x.dtype if node["dtype"] is None else node.dtype(node["dtype"])
    return (_diagonal(node, *x.shape) == np.int64(node["k"])).astype(dtype)


def _trilu(node: Node, x: Value, k: Value | None = None) -> Value:
    """The part of matrices from a diagonal up, or up to it; 0 elsewhere."""
    if x.ndim < 2:
        raise RefusedError(f"takes matrices, not an array of shape {list(x.shape)}")
    first = 0 if k is None else integer(node, k, "k")
    rows, columns = x.shape[-2:]
    first = max(min(first, columns + 1), -rows - 1)
    along = _diagonal(node, rows, columns)
    kept = along >= np.int64(first) if node["upper"] else along <= np.int64(first)
    return np.where(kept, x, number(x, 0))


def _blocks(node: Node, x: Value) -> tuple[int, bool]:
    """The size of blocks, and whether channels count the places in a block first, or their depth."""
    n, mode = node["blocksize"], node["mode"] or "DCR"
    if x.ndim != 4 or n < 1:
        raise RefusedError(f"takes images, [N, C, H, W], in blocks of 1 or more, not {n} and an array of shape {list(x.shape)}")
    if mode not in ("DCR", "CRD"):
        raise RefusedError(f"its mode is '{mode}', and neither DCR nor CRD")
    return n, mode == "DCR"


def _depth_to_space(node: Node, x: Value) -> Value:
    (n, place_first), (batch, c, h, w) = _blocks(node, x), x.shape
    if c % (n * n):
        raise RefusedError(f"{c} channels are not a multiple of {n} times {n}")
    depth = c // (n * n)
    split, axes = ((n, n, depth), (0, 3, 4, 1, 5, 2)) if place_first else ((depth, n, n), (0, 1, 4, 2, 5, 3))
    return np.reshape(np.transpose(np.reshape(x, (batch, *split, h, w)), axes), (batch, depth, h * n, w * n))


def _space_to_depth(node: Node, x: Value) -> Value:
    (n, place_first), (batch, c, h, w) = _blocks(node, x), x.shape
    if h % n or w % n:
        raise RefusedError(f"images of {h} times {w} do not divide into blocks of {n}")
    split = np.reshape(x, (batch, c, h // n, n, w // n, n))
    axes = (0, 3, 5, 1, 2, 4) if place_first else (0, 1, 3, 5, 2, 4)
    return np.reshape(np.transpose(split, axes), (batch, c * n * n, h // n, w // n))


OPERATORS: Mapping[str, Operator] = {
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Identity": lambda node, x: [x],
    "Range": _range,
    "Reshape": _reshape,
    "Shape": lambda node, x: as_sizes(np.array(x.shape[slice(node["start"], node["end"])], object), np.int64),
    "Size": lambda node, x: as_sizes(np.array(math.prod(x.shape), object), np.int64),
    "SpaceToDepth": _space_to_depth,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}
