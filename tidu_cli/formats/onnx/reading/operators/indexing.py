"""Elements at computed places: gathers, scatters, extrema and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.formats.onnx.reading.node import Node, Operator, Value


def _gather(node: Node, x: Value, indices: Value) -> Value:
    return np.take(node.traced(x) if isinstance(indices, Array) else x, indices, node["axis"])


OPERATORS: Mapping[str, Operator] = {
    "Gather": _gather,
}
