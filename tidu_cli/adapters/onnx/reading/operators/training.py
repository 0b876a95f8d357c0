"""Operators of training, the domain ai.onnx.preview.training: all refused."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.adapters.onnx.reading.node import Operator

OPERATORS: Mapping[str, Operator] = {}

_STEP = "is a step of an optimizer, which takes gradients; export the model alone, and its gradients are tidu's: tidu grad"

REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("Adagrad", "Adam", "Momentum"), _STEP),
    "Gradient": "stands for a gradient; export the model alone, and its gradients are tidu's: tidu grad",
}
"""Why they are not read."""
