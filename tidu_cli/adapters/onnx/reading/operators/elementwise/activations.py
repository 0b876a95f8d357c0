"""Activation functions, in forms whose derivatives neither overflow nor cancel. Kinks have the derivative of their lower side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, computed, number
from tidu_cli.adapters.onnx.reading.operators.elementwise.elementwise import converted


def relu(x: Value) -> Value:
    """x where it is positive, else 0, of which the derivative is 0 at 0, too."""
    zero = number(x, 0)
    return np.where(x <= zero, zero, x)


def _leaky_relu(node: Node, x: Value) -> Value:
    return np.where(x < number(x, 0), x * number(x, node["alpha"]), x)


def _exponential(node: Node, x: Value, alpha: float, scale: float = 1.0, width: float = 1.0) -> Value:
    """x where it is positive, else alpha (e^(x / width) - 1); all that scale times."""
    zero = number(x, 0)
    positive = x > zero
    inside = np.where(positive, zero, x)  # so that nothing overflows where it is not taken
    below = np.expm1(inside if width == 1 else inside / number(x, width)) * number(x, alpha * scale)
    return np.where(positive, x if scale == 1 else x * number(x, scale), below)


def _elu(node: Node, x: Value) -> Value:
    return _exponential(node, x, node["alpha"])


def _selu(node: Node, x: Value) -> Value:
    return _exponential(node, x, node["alpha"], node["gamma"])


def _celu(node: Node, x: Value) -> Value:
    return _exponential(node, x, node["alpha"], 1.0, node["alpha"])


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


def _softsign(node: Node, x: Value) -> Value:
    return x / (np.abs(x) + number(x, 1))


def _thresholded_relu(node: Node, x: Value) -> Value:
    return np.where(x > number(x, node["alpha"]), x, number(x, 0))


def _shrink(node: Node, x: Value) -> Value:
    lambd, bias, dtype = node["lambd"], node["bias"], x.dtype
    if np.dtype(dtype).kind in "iu":
        x = converted(node, x, np.dtype(np.float64))
    low, high, by = (number(x, v) for v in (-lambd, lambd, bias))
    return converted(node, np.where(x < low, x + by, np.where(x > high, x - by, number(x, 0))), dtype)


def _swish(node: Node, x: Value) -> Value:
    return x * sigmoid(node, x if node["alpha"] == 1 else x * number(x, node["alpha"]))


def gelu(node: Node, x: Value, approximate: str = "none") -> Value:
    """x times the normal distribution function of it, of which "tanh" is an approximation."""
    if approximate == "tanh":
        inner = (x + x * x * x * number(x, 0.044715)) * number(x, math.sqrt(2 / math.pi))
        return x * number(x, 0.5) * (np.tanh(inner) + number(x, 1))
    if approximate != "none":
        raise RefusedError(f"its approximation is '{approximate}', and neither none nor tanh")
    return x * number(x, 0.5) * computed(node, "erfc", x * number(x, -math.sqrt(0.5)))


def _dropout(node: Node, x: Value, ratio: Value | None = None, training_mode: Value | None = None) -> list[Value]:
    """Inference: x itself, all of it kept. Raises RefusedError for training, which is random."""
    if training_mode is not None and node.known(training_mode, "training_mode").any():
        part = 0.5 if ratio is None else float(np.ravel(node.known(ratio, "ratio"))[0])
        if part:
            raise RefusedError(
                f"leaves out {part:g} of the elements by chance; export the model for inference: training_mode false"
            )
    return [x, np.broadcast_to(node.sized(np.ones((), x.dtype if node.version < 10 else np.bool_), x.shape), x.shape)]


def _of(function: Callable[[Any], Any]) -> Operator:
    return lambda node, x: function(x)


OPERATORS: Mapping[str, Operator] = {
    "Celu": _celu,
    "Dropout": _dropout,
    "Elu": _elu,
    "Gelu": lambda node, x: gelu(node, x, node["approximate"]),
    "HardSigmoid": lambda node, x: _between(node, x, node["alpha"], node["beta"]),
    "HardSwish": lambda node, x: x * _between(node, x, 1 / 6, 0.5),
    "LeakyRelu": _leaky_relu,
    "Mish": lambda node, x: x * np.tanh(softplus(x)),
    "Relu": _of(relu),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": sigmoid,
    "Softplus": _of(softplus),
    "Softsign": _softsign,
    "SwiGLU": lambda node, x, y: _swish(node, x) * y,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
}
