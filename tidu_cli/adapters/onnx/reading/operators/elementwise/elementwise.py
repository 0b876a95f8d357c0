"""Arithmetic, comparisons and functions of one operand, with NumPy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number
from tidu_cli.lax.names import ops_of


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


def _of(function: Callable[..., Any]) -> Operator:
    """NumPy's function of the operands."""
    return lambda node, *operands: function(*operands)


def _primitive(op: str) -> Operator:
    """A primitive of tidu's that has no name in NumPy."""
    return lambda node, *operands: computed(node, op, *operands)


def _folded(function: Callable[[Any, Any], Any]) -> Operator:
    """A function of two operands, of any number of them from the left."""
    return lambda node, *operands: reduce(function, operands)


def _whole(x: Value) -> bool:
    """Whether elements are integers."""
    return np.dtype(x.dtype).kind in "iu"


def _broadcast(x: Value, y: Value) -> tuple[Value, Value]:
    shape = np.broadcast_shapes(np.shape(x), np.shape(y))
    return np.broadcast_to(x, shape), np.broadcast_to(y, shape)


def _div(node: Node, x: Value, y: Value) -> Value:
    """Integers are divided towards zero."""
    return computed(node, "div", *_broadcast(x, y)) if _whole(x) else x / y


def _mod(node: Node, x: Value, y: Value) -> Value:
    """The remainder with the sign of the divisor, or with fmod that of the dividend."""
    if node["fmod"]:
        return computed(node, "rem", *_broadcast(x, y))
    remainder = np.mod(x, y)
    if _whole(x):
        return remainder
    zero = np.where(y < number(x, 0), number(x, -0.0), number(x, 0))  # a remainder of zero, too, has the divisor's sign
    return np.where(remainder == number(x, 0), zero, remainder)


_MANY = 64
"""Known whole exponents up to this one, or down to its negative, are powers by multiplication."""


def _pow(node: Node, x: Value, y: Value) -> Value:
    """The power, of the base's dtype."""
    dtype, known = x.dtype, node.importing.known(y)
    if known is not None and np.size(known) == 1 and float(np.ravel(known)[0]).is_integer():
        exponent = int(np.ravel(known)[0])
        if 0 <= exponent <= _MANY or (exponent >= -_MANY and not _whole(x)):
            shape = np.broadcast_shapes(x.shape, known.shape)
            return np.broadcast_to(computed(node, "integer_pow", x, y=exponent), shape)
    if known is not None and np.ndim(known) == 0 and known == 0.5 and not _whole(x):
        return np.sqrt(x)
    if not _whole(y) and y.dtype != dtype:
        common = np.promote_types(np.float64 if _whole(x) else dtype, y.dtype)
        x, y = converted(node, x, common), converted(node, y, common)
    elif _whole(x):
        if _whole(y) and not isinstance(x, Array) and not isinstance(y, Array) and np.min(y, initial=0) >= 0:
            return np.power(x, y.astype(np.int64)).astype(dtype)
        x = converted(node, x, np.dtype(np.float64))
    return converted(node, computed(node, "pow", *_broadcast(x, y)), dtype)


def _bit_shift(node: Node, x: Value, y: Value) -> Value:
    direction = node["direction"]
    if direction not in ("LEFT", "RIGHT"):
        raise RefusedError(f"shifts in the direction '{direction}', which is neither LEFT nor RIGHT")
    return np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y)


def _mean(node: Node, *operands: Value) -> Value:
    return reduce(np.add, operands) / number(operands[0], len(operands)) if len(operands) > 1 else operands[0]


def _is_inf(node: Node, x: Value) -> Value:
    signs = (node["detect_negative"], node["detect_positive"])
    if all(signs):
        return np.isinf(x)
    if not any(signs):
        return np.zeros_like(x, dtype=bool)
    return x == number(x, -np.inf if signs[0] else np.inf)


def _clip(node: Node, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """x between bounds, those that there are; where they cross, the upper one. On a bound the derivative is 0."""
    if node.version < 11:
        low, high = (number(x, node[name]) for name in ("min", "max"))
    if any(b is not None and b.size != 1 for b in (low, high)):
        raise RefusedError("its bounds are one number each, and not arrays")
    low, high = (b if b is None else np.reshape(b, ()) for b in (low, high))
    if low is not None and high is not None:
        return computed(node, "clamp", low, x, high)
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _p_relu(node: Node, x: Value, slope: Value) -> Value:
    return np.where(x < number(x, 0), x * slope, x)


_UFUNCS = {op: ufunc for ufunc, op in ops_of("numpy").items()}


def _named(op: str) -> Operator:
    """NumPy's function of that operation, which computes what is known, or the primitive, of which NumPy has none."""
    return _of(getattr(np, _UFUNCS[op])) if op in _UFUNCS else _primitive(op)


OPERATORS: Mapping[str, Operator] = {
    **{name: _named(op) for name, op in ops_of("onnx").items()},
    "Abs": _of(np.abs),
    "Add": _of(np.add),
    "And": _of(np.logical_and),
    "BitShift": _bit_shift,
    "Ceil": _of(np.ceil),
    "Clip": _clip,
    "Div": _div,
    "Equal": _of(np.equal),
    "Floor": _of(np.floor),
    "Greater": _of(np.greater),
    "GreaterOrEqual": _of(np.greater_equal),
    "IsInf": _is_inf,
    "IsNaN": _of(np.isnan),
    "Less": _of(np.less),
    "LessOrEqual": _of(np.less_equal),
    "Max": _folded(np.maximum),
    "Mean": _mean,
    "Min": _folded(np.minimum),
    "Mod": _mod,
    "Mul": _of(np.multiply),
    "Not": _of(np.logical_not),
    "Or": _of(np.logical_or),
    "PRelu": _p_relu,
    "Pow": _pow,
    "Reciprocal": _of(np.reciprocal),
    "Round": _of(np.rint),
    "Sub": _of(np.subtract),
    "Sum": _folded(np.add),
    "Where": _of(np.where),
    "Xor": _of(np.logical_xor),
    "BitCast": _bit_cast,
    "BitwiseAnd": lambda node, x, y: np.bitwise_and(x, y),
    "BitwiseNot": lambda node, x: np.invert(x),
    "BitwiseOr": lambda node, x, y: np.bitwise_or(x, y),
    "BitwiseXor": lambda node, x, y: np.bitwise_xor(x, y),
    "Cast": lambda node, x: converted(node, x, node.dtype(node["to"])),
    "CastLike": lambda node, x, like: converted(node, x, like.dtype),
}
