"""Activation functions. Those of one formula follow the specification's function, with fewer nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value


def number(x: Value, value: float) -> Value:
    """A number in the dtype of x."""
    return x.dtype.type(value)


def relu(x: Value) -> Value:
    """max(x, 0)."""
    return np.maximum(x, number(x, 0))


def sigmoid(node: Node, x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    return node.emit("logistic", x)


def softplus(x: Value) -> Value:
    """log(1 + exp(x)), which does not overflow."""
    return np.logaddexp(x, number(x, 0))


def leaky_relu(x: Value, alpha: float) -> Value:
    """x where it is not negative, else alpha x."""
    return np.where(x < 0, number(x, alpha) * x, x)


def elu(x: Value, alpha: float) -> Value:
    """x where it is positive, else alpha (exp(x) - 1)."""
    return np.where(x > 0, x, number(x, alpha) * np.expm1(np.minimum(x, number(x, 0))))


def hard_sigmoid(x: Value, alpha: float, beta: float) -> Value:
    """alpha x + beta, cut off at 0 and 1."""
    return np.minimum(np.maximum(number(x, alpha) * x + number(x, beta), number(x, 0)), number(x, 1))


def softsign(x: Value) -> Value:
    """x / (1 + |x|)."""
    return x / (number(x, 1) + np.abs(x))


def thresholded_relu(x: Value, alpha: float) -> Value:
    """x above alpha, else 0."""
    return np.where(x > number(x, alpha), x, number(x, 0))


def _selu(node: Node, x: Value) -> Value:
    return number(x, node["gamma"]) * elu(x, node["alpha"])


def _celu(node: Node, x: Value) -> Value:
    alpha, zero = number(x, node["alpha"]), number(x, 0)
    return np.maximum(x, zero) + alpha * np.expm1(np.minimum(x, zero) / alpha)


def _shrink(node: Node, x: Value) -> Value:
    bias, bound = number(x, node["bias"]), number(x, node["lambd"])
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, number(x, 0)))


def gelu(node: Node, x: Value, approximate: str = "none") -> Value:
    """x times the normal distribution at x, or its approximation by tanh (Hendrycks and Gimpel, 2016)."""
    half = number(x, 0.5)
    if approximate == "tanh":
        return half * x * (number(x, 1) + np.tanh(number(x, np.sqrt(2 / np.pi)) * (x + number(x, 0.044715) * x**3)))
    return half * x * (number(x, 1) + node.emit("erf", x / number(x, np.sqrt(2))))


def _prelu(node: Node, x: Value, slope: Value) -> Value:
    return np.where(x < 0, slope * x, x)


def _dropout(node: Node, x: Value, ratio: Value = None, training: Value = None) -> list[Value]:
    """In inference form: the values as they are, and a mask that keeps all."""
    if training is not None and bool(node.known(training, "training_mode").item()):
        share = 0.5 if ratio is None else float(node.known(ratio, "ratio").item())
        if share:
            raise RefusedError("drops out at random in training mode; export the model for inference")
    return [x, np.broadcast_to(np.True_ if node.version >= 10 else number(x, 1), x.shape)]


OPERATORS: Mapping[str, Operator] = {
    "Celu": _celu,
    "Dropout": _dropout,
    "Elu": lambda node, x: elu(x, node["alpha"]),
    "Gelu": lambda node, x: gelu(node, x, node["approximate"]),
    "HardSigmoid": lambda node, x: hard_sigmoid(x, node["alpha"], node["beta"]),
    "HardSwish": lambda node, x: x * hard_sigmoid(x, 1 / 6, 0.5),
    "LeakyRelu": lambda node, x: leaky_relu(x, node["alpha"]),
    "Mish": lambda node, x: x * np.tanh(softplus(x)),
    "PRelu": _prelu,
    "Relu": lambda node, x: relu(x),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": sigmoid,
    "Softplus": lambda node, x: softplus(x),
    "Softsign": lambda node, x: softsign(x),
    "Swish": lambda node, x: x * sigmoid(node, number(x, node["alpha"]) * x),
    "ThresholdedRelu": lambda node, x: thresholded_relu(x, node["alpha"]),
}
