"""Arithmetic, comparisons and functions of one operand, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.formats.onnx.reading.node import Node, Operator, Value


def _of(function: Callable[..., Any]) -> Operator:
    """NumPy's function of the operands."""
    return lambda node, *operands: function(*operands)


def _primitive(op: str) -> Operator:
    """A primitive of tidu's that has no name in NumPy."""
    return lambda node, *operands: node.emit(op, *operands)


def _folded(function: Callable[[Any, Any], Any]) -> Operator:
    """A function of two operands, of any number of them from the left."""
    return lambda node, *operands: reduce(function, operands)


def _div(node: Node, x: Value, y: Value) -> Value:
    """Integers are divided towards zero."""
    if np.dtype(x.dtype).kind in "iu":
        if isinstance(x, Array) or isinstance(y, Array):
            shape = np.broadcast_shapes(np.shape(x), np.shape(y))
            return node.emit("div", np.broadcast_to(x, shape), np.broadcast_to(y, shape))
        quotient = np.abs(x) // np.abs(np.where(y == 0, 1, y))
        return np.where((x < 0) != (y < 0), -quotient, quotient).astype(x.dtype)
    return x / y


def _cast(node: Node, x: Value, *likes: Value) -> Value:
    return x.astype(likes[0].dtype if likes else node.dtype(node["to"]))


OPERATORS: Mapping[str, Operator] = {
    "Abs": _of(np.abs),
    "Add": _of(np.add),
    "Cast": _cast,
    "CastLike": _cast,
    "Cos": _of(np.cos),
    "Div": _div,
    "Erf": _primitive("erf"),
    "Exp": _of(np.exp),
    "Max": _folded(np.maximum),
    "Min": _folded(np.minimum),
    "Mul": _of(np.multiply),
    "Neg": _of(np.negative),
    "Relu": _of(lambda x: np.maximum(x, x.dtype.type(0))),
    "Sqrt": _of(np.sqrt),
    "Sub": _of(np.subtract),
    "Sum": _folded(np.add),
    "Tanh": _of(np.tanh),
    "Where": _of(np.where),
}
