"""Elements of other types, and operations on their bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.onnx.reading.folding import computed
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value


def converted(node: Node, x: Value, dtype: Any) -> Value:
    """x as another dtype: floats become integers towards zero, and clamped."""
    return x if x.dtype == dtype else computed(node, "convert_element_type", x, new_dtype=name_of(dtype))


def _bit_cast(node: Node, x: Value) -> Value:
    dtype = node.dtype(node["to"])
    if x.dtype.itemsize != dtype.itemsize:
        raise RefusedError(f"elements of {name_of(x.dtype)} have not as many bits as those of {name_of(dtype)}")
    if not isinstance(x, Array):
        return x.view(dtype)
    if x.dtype == dtype:
        return x
    if x.dtype.kind in "biu" and dtype.kind in "biu":
        return x.astype(dtype)
    raise RefusedError(f"the bits of {name_of(x.dtype)} as {name_of(dtype)} have no primitive, but of values that are known")


OPERATORS: Mapping[str, Operator] = {
    "BitCast": _bit_cast,
    "BitwiseAnd": lambda node, x, y: np.bitwise_and(x, y),
    "BitwiseNot": lambda node, x: np.invert(x),
    "BitwiseOr": lambda node, x, y: np.bitwise_or(x, y),
    "BitwiseXor": lambda node, x, y: np.bitwise_xor(x, y),
    "Cast": lambda node, x: converted(node, x, node.dtype(node["to"])),
    "CastLike": lambda node, x, like: converted(node, x, like.dtype),
}
