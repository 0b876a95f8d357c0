"""Operators of the domain com.microsoft, in which onnxruntime's optimizer puts what it fuses. Its documentation defines them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import name_of
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at, number
from tidu_cli.adapters.onnx.reading.operators.elementwise import gelu, relu, sigmoid
from tidu_cli.adapters.onnx.reading.operators.networks.convolution import OPERATORS as CONVOLUTIONS
from tidu_cli.adapters.onnx.reading.operators.normalization import by_deviation, by_root_mean_square, rms_normalization
from tidu_cli.adapters.onnx.reading.operators.quantization import OPERATORS as QUANTIZATION
from tidu_cli.adapters.onnx.reading.operators.reductions import gemm, matmul, times
from tidu_cli.graph.types import FLOATS


def given(node: Node, name: str, default: float) -> float:
    """An attribute, or what the documentation says it is where it is left out: the domain has no schemas here."""
    value = node[name]
    return default if value is None else value


def checked(function: Operator, whole: bool = False) -> Operator:
    """The operator, which refuses other operands than it takes, and, but where `whole`, a first one that is not of floats."""
    declared = list(inspect.signature(function).parameters.values())[1:]
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in declared)
    most = math.inf if declared[-1].kind is declared[-1].VAR_POSITIONAL else len(declared)

    def apply(node: Node, *operands: Value | None) -> Any:
        if not least <= len(operands) <= most:
            raise RefusedError(f"takes {least} inputs{'' if most == least else ' or more'}, and has {len(operands)}")
        missing = [k for k, p in enumerate(declared[: len(operands)]) if operands[k] is None and "None" not in str(p.annotation)]
        if missing:
            raise RefusedError(f"its input {missing[0]} is left out")
        first = operands[0]
        if first is not None and not whole and name_of(first.dtype) not in FLOATS:
            raise RefusedError(f"its first input is of {name_of(first.dtype)}, and not of floats")
        return function(node, *operands)

    return apply


def _plus(x: Value, *others: Value | None) -> Value:
    """The sum of those that there are."""
    for other in others:
        x = x if other is None else x + other
    return x


# Activations.


def _fast_gelu(node: Node, x: Value, bias: Value | None = None) -> Value:
    return gelu(node, _plus(x, bias), "tanh")


# Products.


def _batch_last(x: Value) -> Value:
    """The first axis put behind the others but the last."""
    return np.moveaxis(x, 0, -2)


def _fused_matmul(node: Node, x: Value, y: Value) -> Value:
    """alpha x y, of which each may be transposed, and before that have the axis of its rows ahead of those of the batch."""
    operands = []
    for value, letter in ((x, "A"), (y, "B")):
        turned = _batch_last(value) if node[f"transBatch{letter}"] and value.ndim > 2 else value
        operands.append(np.swapaxes(turned, -1, -2) if node[f"trans{letter}"] and value.ndim > 1 else turned)
    return times(matmul(node, *operands), given(node, "alpha", 1.0))


def _clip(x: Value, low: float, high: float) -> Value:
    return np.minimum(np.maximum(x, number(x, low)), number(x, high))


ACTIVATIONS: Mapping[str, Callable[..., Value]] = {
    "": lambda node, x: x,
    "Clip": lambda node, x, low, high: _clip(x, low, high),
    "HardSigmoid": lambda node, x, alpha=0.2, beta=0.5: _clip(x * number(x, alpha) + number(x, beta), 0, 1),
    "LeakyRelu": lambda node, x, alpha=0.01: np.where(x < number(x, 0), x * number(x, alpha), x),
    "Relu": lambda node, x: relu(x),
    "Sigmoid": sigmoid,
    "Tanh": lambda node, x: np.tanh(x),
}
"""What may follow a fused product, by its attribute `activation`, with its parameters."""


def activated(node: Node, x: Value) -> Value:
    """x after the activation that the node is fused with. Raises RefusedError for one that is not known."""
    name = node["activation"] or ""
    if name not in ACTIVATIONS:
        raise RefusedError(f"is fused with the activation '{name}' (known: {', '.join(filter(None, ACTIVATIONS))})")
    given = node["activation_params"] or [node[f"activation_{k}"] for k in ("alpha", "beta") if node.has(f"activation_{k}")]
    return ACTIVATIONS[name](node, x, *given)


def _fused_gemm(node: Node, a: Value, b: Value, c: Value | None = None) -> Value:
    return activated(node, gemm(node, a, b, c))


def _fused_conv(node: Node, x: Value, w: Value, bias: Value | None = None, z: Value | None = None) -> Value:
    return activated(node, _plus(CONVOLUTIONS["Conv"](node, x, w, bias), z))


# Normalizations.


def _skip_layer_normalization(
    node: Node, x: Value, skip: Value, gamma: Value, beta: Value | None = None, bias: Value | None = None
) -> list[Value]:
    added = _plus(x, skip, bias)
    return [*by_deviation(node, added, gamma, beta, (x.ndim - 1,), given(node, "epsilon", 1e-12)), added]


def _skip_simplified_layer_normalization(node: Node, x: Value, skip: Value, gamma: Value, bias: Value | None = None) -> list[Value]:
    added = _plus(x, skip, bias)
    y, inverse = by_root_mean_square(node, added, gamma, (x.ndim - 1,), given(node, "epsilon", 1e-12))
    return [y, None, inverse, added]


def _embed_layer_normalization(
    node: Node, input_ids: Value, segment_ids: Value | None, words: Value, positions: Value, segments: Value | None,
    gamma: Value, beta: Value, mask: Value | None = None, position_ids: Value | None = None,
) -> list[Value]:  # fmt: skip
    """The sum of embeddings of words, positions and segments, normalized; how many places the mask has; and that sum."""
    if input_ids.ndim != 2 or words.ndim != 2 or positions.ndim != 2:
        raise RefusedError(f"its input_ids have {input_ids.ndim} axes, its embeddings {words.ndim} and {positions.ndim}, and not 2")
    batch, sequence = input_ids.shape
    place = positions[:sequence] if position_ids is None else at(node, positions, position_ids)
    added = at(node, words, input_ids) + place
    if segment_ids is not None and segments is not None:
        added = added + at(node, segments, segment_ids)
    y = by_deviation(node, added, gamma, beta, (2,), given(node, "epsilon", 1e-12))[0]
    counted = np.zeros(batch, np.int32) if mask is None else np.sum(mask, 1, dtype=np.int32)
    return [y, counted, added]


OPERATORS: Mapping[str, Operator] = {
    "BiasGelu": checked(lambda node, x, bias: gelu(node, x + bias)),
    **{name: checked(QUANTIZATION[name], whole=True) for name in ("DequantizeLinear", "QuantizeLinear")},
    "EmbedLayerNormalization": checked(_embed_layer_normalization, whole=True),
    "FastGelu": checked(_fast_gelu),
    "FusedConv": checked(_fused_conv),
    "FusedGemm": checked(_fused_gemm, whole=True),
    "FusedMatMul": checked(_fused_matmul, whole=True),
    "Gelu": checked(lambda node, x: gelu(node, x)),
    "QuickGelu": checked(lambda node, x: x * sigmoid(node, times(x, given(node, "alpha", 1.702)))),
    "SimplifiedLayerNormalization": checked(rms_normalization),
    "SkipLayerNormalization": checked(_skip_layer_normalization),
    "SkipSimplifiedLayerNormalization": checked(_skip_simplified_layer_normalization),
    "TransposeMatMul": checked(_fused_matmul, whole=True),
}
