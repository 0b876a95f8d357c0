"""Shapes: what they are, and arrays of other shapes with the same elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, Value


def _constant(node: Node) -> Value:
    for name, dtype in (("value_float", "f4"), ("value_floats", "f4"), ("value_int", "i8"), ("value_ints", "i8")):
        if node.has(name):
            dtype = node.dtype(1) if dtype == "f4" else dtype
            return np.array(node[name], dtype)
    return node["value"]


def _shape(node: Node, x: Value) -> Any:
    return np.array(x.shape[slice(node["start"], node["end"])], np.int64)


def _reshape(node: Node, x: Value, shape: Value) -> Value:
    sizes = node.ints(shape, "shape")
    if not node["allowzero"]:
        sizes = [x.shape[k] if n == 0 else n for k, n in enumerate(sizes)]
    return np.reshape(x, sizes)


OPERATORS: Mapping[str, Operator] = {
    "Constant": _constant,
    "Identity": lambda node, x: x,
    "Reshape": _reshape,
    "Shape": _shape,
    "Transpose": lambda node, x: np.transpose(x, node["perm"]),
}
