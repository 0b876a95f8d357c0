"""Arithmetic, comparisons and functions of one operand, with NumPy's broadcasting; activation functions.

The latter have forms whose derivatives neither overflow nor cancel. Kinks have the derivative of their lower side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, name_of
from tidu_cli.adapters.numpy.numpy.indexing import common_shape
from tidu_cli.adapters.onnx.loading import held
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number
from tidu_cli.adapters.onnx.reading.values import converted_to, rounded_straight
from tidu_cli.lax.names import names_in, ops_of


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


def _folded(function: Callable[[Any, Any], Any]) -> Operator:
    """A function of two operands, of any number of them from the left."""
    return lambda node, *operands: reduce(function, operands)


def _whole(x: Value) -> bool:
    """Whether elements are integers."""
    return np.dtype(x.dtype).kind in "iu"


def _broadcast(x: Value, y: Value) -> tuple[Value, Value]:
    shape = common_shape(np.shape(x), np.shape(y))
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
            shape = common_shape(x.shape, known.shape)
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


def _named(op: str) -> Operator:
    """NumPy's function of that operation, which computes what is known, or the primitive, of which NumPy has none."""
    ufunc = names_in("numpy").get(op)
    return _of(getattr(np, ufunc)) if ufunc else lambda node, *operands: computed(node, op, *operands)


def relu(x: Value) -> Value:
    """x where it is positive, else 0, of which the derivative is 0 at 0, too."""
    zero = number(x, 0)
    return np.where(x <= zero, zero, x)


def _exponential(node: Node, x: Value, alpha: float, scale: float = 1.0, width: float = 1.0) -> Value:
    """x where it is positive, else alpha (e^(x / width) - 1); all that scale times."""
    zero = number(x, 0)
    positive = x > zero
    inside = np.where(positive, zero, x)  # so that nothing overflows where it is not taken
    below = np.expm1(inside if width == 1 else inside / number(x, width)) * number(x, alpha * scale)
    return np.where(positive, x if scale == 1 else x * number(x, scale), below)


def sigmoid(node: Node, x: Value) -> Value:
    """1 / (1 + e^-x)."""
    return computed(node, "logistic", x)


def _between(node: Node, x: Value, alpha: float, beta: float) -> Value:
    """alpha x + beta, between 0 and 1."""
    return computed(node, "clamp", number(x, 0), x * number(x, alpha) + number(x, beta), number(x, 1))


def softplus(x: Value) -> Value:
    """ln(1 + eˣ), with its derivatives of all orders: where eˣ is too great for 1 to count, it is x."""
    import ml_dtypes  # whose finfo knows bf16, too

    eps = float(ml_dtypes.finfo(x.dtype).eps)  # type: ignore[no-untyped-call]
    large = x > number(x, -math.log(eps))
    return np.where(large, x, np.log1p(np.exp(np.where(large, number(x, 0), x))))


def _shrink(node: Node, x: Value) -> Value:
    lambd, bias, dtype = node["lambd"], node["bias"], x.dtype
    if _whole(x):
        x = converted(node, x, np.dtype(np.float64))
    low, high, by = (number(x, v) for v in (-lambd, lambd, bias))
    return converted(node, np.where(x < low, x + by, np.where(x > high, x - by, number(x, 0))), dtype)


def _swish(node: Node, x: Value) -> Value:
    return x * sigmoid(node, x if node["alpha"] == 1 else x * number(x, node["alpha"]))


def gelu(node: Node, x: Value, approximate: str = "none") -> Value:
    """x times the normal distribution function of it, of which "tanh" is an approximation.

    In few operations, as each is one of ONNX in a gradient. Doubles keep the digits of the left tail, which 1 + erf loses.
    """
    if approximate == "tanh":  # (1 + tanh z) / 2 is the logistic function of 2 z
        scale = math.sqrt(8 / math.pi)
        return x * sigmoid(node, x * (x * x * number(x, 0.044715 * scale) + number(x, scale)))
    if approximate != "none":
        raise RefusedError(f"its approximation is '{approximate}', and neither none nor tanh")
    if np.dtype(x.dtype) == np.float64:
        return x * number(x, 0.5) * computed(node, "erfc", x * number(x, -math.sqrt(0.5)))
    # Runtimes take this order of operations for their own kernel.
    return x * (computed(node, "erf", x / number(x, math.sqrt(2))) + number(x, 1)) * number(x, 0.5)


def _dropout(node: Node, x: Value, ratio: Value | None = None, training_mode: Value | None = None) -> list[Value]:
    """Inference: x itself, all of it kept. Raises RefusedError for training, which is random."""
    if training_mode is not None and node.known(training_mode, "training_mode").any():
        part = 0.5 if ratio is None else float(np.ravel(node.known(ratio, "ratio"))[0])
        if part:
            raise RefusedError(
                f"leaves out {part:g} of the elements by chance; export the model for inference: training_mode false"
            )
    return [x, np.broadcast_to(node.sized(np.ones((), x.dtype if node.version < 10 else np.bool_), x.shape), x.shape)]


def _round(node: Node, x: Value) -> Value:
    """Halves to even; with `straight_through` the derivative is 1."""
    y = np.rint(x)
    return np.where(np.isfinite(x), rounded_straight(x), y) if node.importing.straight_through and isinstance(x, Array) else y


OPERATORS: Mapping[str, Operator] = {
    **{name: _named(op) for name, op in ops_of("onnx").items()},
    **{name: _of(getattr(np, name.lower())) for name in ("Abs", "Add", "Ceil", "Equal", "Floor", "Greater", "Less")},
    **{name: _of(getattr(np, f"logical_{name.lower()}")) for name in ("And", "Not", "Or", "Xor")},
    **{f"Bitwise{name}": _of(getattr(np, f"bitwise_{name.lower()}")) for name in ("And", "Not", "Or", "Xor")},
    "BitShift": _bit_shift,
    "Clip": _clip,
    "Div": _div,
    "GreaterOrEqual": _of(np.greater_equal),
    "IsInf": _is_inf,
    "IsNaN": _of(np.isnan),
    "LessOrEqual": _of(np.less_equal),
    "Max": _folded(np.maximum),
    "Mean": _mean,
    "Min": _folded(np.minimum),
    "Mod": _mod,
    "Mul": _of(np.multiply),
    "PRelu": lambda node, x, slope: np.where(x < number(x, 0), x * slope, x),
    "Pow": _pow,
    "Reciprocal": _of(np.reciprocal),
    "Round": _round,
    "Sub": _of(np.subtract),
    "Sum": _folded(np.add),
    "Where": _of(np.where),
    "BitCast": _bit_cast,
    "Cast": lambda node, x: converted_to(node, x, held(node["to"])[1] or name_of(node.dtype(node["to"]))),
    "CastLike": lambda node, x, like: converted_to(node, x, node.kind(like)),
    "Celu": lambda node, x: _exponential(node, x, node["alpha"], 1.0, node["alpha"]),
    "Dropout": _dropout,
    "Elu": lambda node, x: _exponential(node, x, node["alpha"]),
    "Gelu": lambda node, x: gelu(node, x, node["approximate"]),
    "HardSigmoid": lambda node, x: _between(node, x, node["alpha"], node["beta"]),
    "HardSwish": lambda node, x: x * _between(node, x, 1 / 6, 0.5),
    "LeakyRelu": lambda node, x: np.where(x < number(x, 0), x * number(x, node["alpha"]), x),
    "Mish": lambda node, x: x * np.tanh(softplus(x)),
    "Relu": _of(relu),
    "Selu": lambda node, x: _exponential(node, x, node["alpha"], node["gamma"]),
    "Shrink": _shrink,
    "Sigmoid": sigmoid,
    "Softplus": _of(softplus),
    "Softsign": lambda node, x: x / (np.abs(x) + number(x, 1)),
    "SwiGLU": lambda node, x, y: _swish(node, x) * y,
    "Swish": _swish,
    "ThresholdedRelu": lambda node, x: np.where(x > number(x, node["alpha"]), x, number(x, 0)),
}
