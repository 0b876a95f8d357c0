"""Losses of classes, whose labels are integers and may be inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, number
from tidu_cli.adapters.onnx.reading.operators.arrays.indexing import gathered, wrapped
from tidu_cli.adapters.onnx.reading.operators.sums.reductions import log_softmax, mean, total
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers, taking


def _negative_log_likelihood(node: Node, log_prob: Value, labels: Value, weights: Value | None = None) -> Value:
    """Minus the logarithm of each label's probability. Those of the label to ignore are 0, and count for nothing in the mean."""
    if log_prob.ndim < 2 or labels.shape != (log_prob.shape[0], *log_prob.shape[2:]):
        raise RefusedError(f"labels of shape {list(labels.shape)} do not fit classes, axis 1, of shape {list(log_prob.shape)}")
    if weights is not None and weights.shape != (log_prob.shape[1],):
        raise RefusedError(f"weights of shape {list(weights.shape)} do not fit {log_prob.shape[1]} classes")
    reduction, ignored = node["reduction"], None
    if reduction not in ("none", "sum", "mean"):
        raise RefusedError(f"its reduction is '{reduction}', and not none, sum or mean")
    if node["ignore_index"] is not None:
        ignored = labels == number(labels, node["ignore_index"])
        labels = np.where(ignored, number(labels, 0), labels)
    places = np.expand_dims(labels.astype(np.int64) if isinstance(labels, Array) else wrapped(labels, log_prob.shape[1]), -1)
    losses = -gathered(node, log_prob, places, labels.shape, _of_labels(log_prob))
    counted = None
    if weights is not None:
        counted = gathered(node, weights, places, labels.shape, taking(weights.shape, 1, 0))
        losses = losses * counted
    if ignored is not None:
        zero, one = number(log_prob, 0), number(log_prob, 1)
        losses, counted = np.where(ignored, zero, losses), np.where(ignored, zero, one if counted is None else counted)
    if reduction == "none":
        return losses
    axes = tuple(range(losses.ndim))
    if reduction == "mean" and counted is None:
        return np.reshape(mean(losses, axes), ())
    found = total(losses, axes)
    return np.reshape(found / total(counted, axes) if reduction == "mean" else found, ())


def _of_labels(x: Value) -> Mapping[str, Any]:
    """The attrs of a gather along axis 1, at places that have the other axes, and one more."""
    axes = tuple(range(x.ndim - 1))
    numbers = GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0, *range(2, x.ndim)),
        start_indices_batching_dims=axes,
    )
    return {"dimension_numbers": numbers, "slice_sizes": (1,) * x.ndim}


def _softmax_cross_entropy(node: Node, scores: Value, labels: Value, weights: Value | None = None) -> list[Value]:
    """The loss of the scores' log softmax along axis 1, and that itself."""
    log_prob = log_softmax(node, scores, (1,)) if scores.ndim > 1 else scores
    return [_negative_log_likelihood(node, log_prob, labels, weights), log_prob]


OPERATORS: Mapping[str, Operator] = {
    "NegativeLogLikelihoodLoss": _negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": _softmax_cross_entropy,
}
