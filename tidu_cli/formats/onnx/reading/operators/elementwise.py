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


OPERATORS: Mapping[str, Operator] = {
    "Abs": _of(np.abs),
    "Acos": _of(np.arccos),
    "Acosh": _of(np.arccosh),
    "Add": _of(np.add),
    "And": _of(np.logical_and),
    "Asin": _of(np.arcsin),
    "Asinh": _of(np.arcsinh),
    "Atan": _of(np.arctan),
    "Atanh": _of(np.arctanh),
    "Ceil": _of(np.ceil),
    "Cos": _of(np.cos),
    "Cosh": _of(np.cosh),
    "Div": _div,
    "Equal": _of(np.equal),
    "Erf": _primitive("erf"),
    "Exp": _of(np.exp),
    "Floor": _of(np.floor),
    "Greater": _of(np.greater),
    "GreaterOrEqual": _of(np.greater_equal),
    "IsNaN": _of(np.isnan),
    "Less": _of(np.less),
    "LessOrEqual": _of(np.less_equal),
    "Log": _of(np.log),
    "Max": _folded(np.maximum),
    "Min": _folded(np.minimum),
    "Mul": _of(np.multiply),
    "Neg": _of(np.negative),
    "Not": _of(np.logical_not),
    "Or": _of(np.logical_or),
    "Reciprocal": _of(np.reciprocal),
    "Relu": _of(lambda x: np.maximum(x, x.dtype.type(0))),
    "Round": _of(np.rint),
    "Sign": _of(np.sign),
    "Sin": _of(np.sin),
    "Sinh": _of(np.sinh),
    "Sqrt": _of(np.sqrt),
    "Sub": _of(np.subtract),
    "Sum": _folded(np.add),
    "Tan": _of(np.tan),
    "Tanh": _of(np.tanh),
    "Where": _of(np.where),
    "Xor": _of(np.logical_xor),
}
