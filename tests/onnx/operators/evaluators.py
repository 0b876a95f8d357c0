"""What other programs compute of models that tidu writes: onnx's reference evaluator, and onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

import tidu_cli as api
from tidu_cli.graph.graph import Document

ROUNDING = {"f16": 2e-3, "bf16": 2e-2, "f32": 2e-5, "f64": 1e-12}
"""How much results may differ, relative to the greatest: some hundred roundings, as sums go in other orders."""


def by_reference(data: bytes, values: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a model by name, from the reference evaluator, which raises what it likes for what it lacks."""
    from onnx.reference import ReferenceEvaluator

    model = onnx.load_from_string(data)
    names = {i.name for i in model.graph.input}
    with np.errstate(all="ignore"):
        outputs = ReferenceEvaluator(model).run(None, {k: x for k, x in values.items() if k in names})
    return dict(zip([o.name for o in model.graph.output], map(np.asarray, outputs), strict=True))


def by_runtime(data: bytes, values: Mapping[str, Any]) -> dict[str, Any]:
    """Likewise, from onnxruntime. Raises its NotImplemented, InvalidGraph or Fail for what it lacks."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    outputs = session.run(None, {k: values[k] for k in names})
    return dict(zip([o.name for o in session.get_outputs()], map(np.asarray, outputs), strict=True))


def difference(document: Document, others: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """What differs between results of tidu's and others, by the rounding that is due; empty if nothing does."""
    expected = api.evaluate(document, values)
    for output in document.head.outputs:
        key = str(output.key)
        x, y = np.asarray(expected[key]), others[key if key in others else f"{key}:out"]
        if x.shape != y.shape or x.dtype != y.dtype:
            return f"{key}: {y.dtype}{list(y.shape)}, not {x.dtype}{list(x.shape)}"
        tolerance = ROUNDING.get(output.type.dtype, 0)  # type: ignore[union-attr]
        x, y = (v.astype(np.float64) if v.dtype.kind == "V" or v.dtype.name == "bfloat16" else v for v in (x, y))
        scale = np.abs(np.where(np.isfinite(x), x, 0)).max(initial=1) if tolerance else 0
        if not np.allclose(y, x, tolerance, tolerance * scale, equal_nan=True):
            return f"{key}: {y} is not {x}"
    return ""


def require_same_values(document: Document, data: bytes, values: Mapping[str, Any]) -> None:
    """Raises AssertionError unless the reference evaluator computes of a model what tidu computes of its document, or onnxruntime.

    The former lacks some attributes, and counts places in windows of images of several axes in a way of its own.
    """
    try:
        told = difference(document, by_reference(data, values), values)
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
        told = str(error)
    if told:
        told = difference(document, by_runtime(data, values), values)
    assert not told, told
