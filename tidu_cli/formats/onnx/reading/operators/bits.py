"""Conversions between dtypes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value


def cast(node: Node, x: Value, dtype: Any) -> Value:
    """x as another dtype. Known values may be strings of a model, which are none here."""
    return x if x.dtype == dtype else x.astype(dtype)


def _bit_cast(node: Node, x: Value) -> Value:
    if isinstance(x, Array):
        raise RefusedError("reads the bits of a value as another dtype; graphs know values and not their bits")
    return np.asarray(x).view(node.dtype(node["to"]))


OPERATORS: Mapping[str, Operator] = {
    "BitCast": _bit_cast,
    "Cast": lambda node, x: cast(node, x, node.dtype(node["to"])),
    "CastLike": lambda node, x, like: cast(node, x, like.dtype),
}
