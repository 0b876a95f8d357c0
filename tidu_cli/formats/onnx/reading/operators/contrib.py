"""Operators of the domain com.microsoft, in which onnxruntime's optimizer puts what it fuses. Its documentation defines them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tidu_cli.formats.onnx.reading.folding import at, number
from tidu_cli.formats.onnx.reading.node import Node, Operator, RefusedError, Value
from tidu_cli.formats.onnx.reading.operators.activations import gelu, relu, sigmoid
from tidu_cli.formats.onnx.reading.operators.contraction import gemm, matmul, times
from tidu_cli.formats.onnx.reading.operators.normalization import by_deviation, by_root_mean_square, rms_normalization


def given(node: Node, name: str, default: float) -> float:
    """An attribute, or what the documentation says it is where it is left out: the domain has no schemas here."""
    found = node[name]
    return default if found is None else found


def _plus(x: Value, *others: Value | None) -> Value:
    """The sum of those that there are."""
    for other in others:
        x = x if other is None else x + other
    return x


# Activations.


def _fast_gelu(node: Node, x: Value, bias: Value | None = None) -> Value:
    return gelu(node, _plus(x, bias), "tanh")


def _quick_gelu(node: Node, x: Value) -> Value:
    return x * sigmoid(node, times(x, given(node, "alpha", 1.702)))


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


ACTIVATIONS: Mapping[str, Callable[[Node, Value], Value]] = {
    "": lambda node, x: x,
    "LeakyRelu": lambda node, x: np.where(x < number(x, 0), times(x, given(node, "activation_alpha", 0.01)), x),
    "Relu": lambda node, x: relu(x),
    "Sigmoid": sigmoid,
    "Tanh": lambda node, x: np.tanh(x),
}
"""What may follow a fused product, by its attribute `activation`."""


def activated(node: Node, x: Value) -> Value:
    """x after the activation that the node is fused with. Raises RefusedError for one that is not known."""
    name = node["activation"] or ""
    if name not in ACTIVATIONS:
        raise RefusedError(f"is fused with the activation '{name}' (known: {', '.join(filter(None, ACTIVATIONS))})")
    return ACTIVATIONS[name](node, x)


def _fused_gemm(node: Node, *operands: Value) -> Value:
    return activated(node, gemm(node, *operands))


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
    batch, sequence = input_ids.shape
    place = positions[:sequence] if position_ids is None else at(node, positions, position_ids)
    added = at(node, words, input_ids) + place
    if segment_ids is not None and segments is not None:
        added = added + at(node, segments, segment_ids)
    y = by_deviation(node, added, gamma, beta, (2,), given(node, "epsilon", 1e-12))[0]
    counted = np.zeros(batch, np.int32) if mask is None else np.sum(mask, 1, dtype=np.int32)
    return [y, counted, added]


OPERATORS: Mapping[str, Operator] = {
    "BiasGelu": lambda node, x, bias: gelu(node, x + bias),
    "EmbedLayerNormalization": _embed_layer_normalization,
    "FastGelu": _fast_gelu,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "Gelu": lambda node, x: gelu(node, x),
    "QuickGelu": _quick_gelu,
    "SimplifiedLayerNormalization": rms_normalization,
    "SkipLayerNormalization": _skip_layer_normalization,
    "SkipSimplifiedLayerNormalization": _skip_simplified_layer_normalization,
    "TransposeMatMul": _fused_matmul,
}
