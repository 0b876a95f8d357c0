"""Arithmetic, comparisons and functions of one operand, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from tidu_cli.build.arrays.array import Array
from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value


def _of(function: Callable[..., Any]) -> Operator:
    """NumPy's function of the operands."""
    return lambda node, *operands: function(*operands)


def _primitive(op: str) -> Operator:
    """A primitive of tidu's that has no name in NumPy."""
    return lambda node, *operands: node.emit(op, *operands)


def _folded(function: Callable[[Any, Any], Any]) -> Operator:
    """A function of two operands, of any number of them from the left."""
    return lambda node, *operands: reduce(function, operands)


def is_integer(x: Value) -> bool:
    """Whether x is of integers."""
    return np.dtype(x.dtype).kind in "iu"


def emitted(node: Node, op: str, *operands: Value) -> Value:
    """A primitive of operands that are broadcast together: computed at once where all are known."""
    shape = np.broadcast_shapes(*map(np.shape, operands))
    return node.emit(op, *[np.broadcast_to(x, shape) for x in operands])


def is_traced(*operands: Value) -> bool:
    """Whether an operand is traced."""
    return any(isinstance(x, Array) for x in operands)


def _div(node: Node, x: Value, y: Value) -> Value:
    """Integers are divided towards zero."""
    if not is_integer(x):
        return x / y
    if is_traced(x, y):
        return emitted(node, "div", x, y)
    whole, rest = np.divmod(x, np.where(y == 0, 1, y).astype(x.dtype))
    return np.where((rest != 0) & ((x < 0) != (y < 0)), whole + 1, whole).astype(x.dtype)


def _mod(node: Node, x: Value, y: Value) -> Value:
    if node["fmod"]:
        return emitted(node, "rem", x, y) if is_traced(x, y) else np.fmod(x, y)
    return np.remainder(x, y)


def _pow(node: Node, x: Value, y: Value) -> Value:
    """The result has the dtype of x. A known whole exponent has derivatives everywhere."""
    known = node.importing.known(y)
    if known is not None and known.size == 1 and not is_integer(x) and float(known.item()).is_integer() and abs(known.item()) <= 64:
        return np.broadcast_to(x, np.broadcast_shapes(x.shape, known.shape)) ** int(known.item())
    if is_integer(x) and is_integer(y):
        return _integer_power(x, y)
    if is_integer(x):
        return np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    return np.power(x, y.astype(x.dtype))


def _integer_power(x: Value, y: Value) -> Value:
    """By squaring: exponents have at most 31 bits here, and powers of integers wrap around long before."""
    power = np.ones_like(x)
    for bit in range(min(np.dtype(y.dtype).itemsize * 8 - 1, 31)):
        power = np.where((y >> y.dtype.type(bit)) & y.dtype.type(1) != 0, power * x, power)
        x = x * x
    return power


def _shift(node: Node, x: Value, y: Value) -> Value:
    """Shifts by the number of bits or more give 0, or the sign to the right."""
    left = node["direction"] == "LEFT"
    bits = np.dtype(x.dtype).itemsize * 8
    shifted = (np.left_shift if left else np.right_shift)(x, np.minimum(y, y.dtype.type(bits - 1)))
    if not left and np.dtype(x.dtype).kind == "i":
        return shifted
    return np.where(y >= y.dtype.type(bits), x.dtype.type(0), shifted)


def _clip(node: Node, x: Value, low: Value = None, high: Value = None) -> Value:
    if node.version < 11:
        low, high = (x.dtype.type(node[name]) if node.has(name) else None for name in ("min", "max"))
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _mean(node: Node, *operands: Value) -> Value:
    total = reduce(np.add, operands)
    return total / total.dtype.type(len(operands)) if len(operands) > 1 else total


def _is_inf(node: Node, x: Value) -> Value:
    infinite = np.isinf(x)
    if not node["detect_negative"]:
        infinite = infinite & (x > 0)
    return infinite if node["detect_positive"] else infinite & (x < 0)


def _equal(node: Node, x: Value, y: Value) -> Value:
    if x.dtype != y.dtype:
        raise RefusedError(f"compares {x.dtype} with {y.dtype}")
    return x == y


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
    "BitShift": _shift,
    "BitwiseAnd": _of(np.bitwise_and),
    "BitwiseNot": _of(np.invert),
    "BitwiseOr": _of(np.bitwise_or),
    "BitwiseXor": _of(np.bitwise_xor),
    "Ceil": _of(np.ceil),
    "Clip": _clip,
    "Cos": _of(np.cos),
    "Cosh": _of(np.cosh),
    "Div": _div,
    "Equal": _equal,
    "Erf": _primitive("erf"),
    "Exp": _of(np.exp),
    "Floor": _of(np.floor),
    "Greater": _of(np.greater),
    "GreaterOrEqual": _of(np.greater_equal),
    "IsInf": _is_inf,
    "IsNaN": _of(np.isnan),
    "Less": _of(np.less),
    "LessOrEqual": _of(np.less_equal),
    "Log": _of(np.log),
    "Max": _folded(np.maximum),
    "Mean": _mean,
    "Min": _folded(np.minimum),
    "Mod": _mod,
    "Mul": _of(np.multiply),
    "Neg": _of(np.negative),
    "Not": _of(np.logical_not),
    "Or": _of(np.logical_or),
    "Pow": _pow,
    "Reciprocal": _of(lambda x: 1 / x),
    "Round": _of(np.round),
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
