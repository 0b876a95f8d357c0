"""Documents that are written as models of ONNX, and what other programs make of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from tidu_cli.adapters.onnx.writing.model import OPSET, onnx_bytes
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document


def checked_model(document: Document, opset: int = OPSET) -> Any:
    """The model of a document, which ONNX's checker accepts. Raises NoMeaningError."""
    model = onnx.load_from_string(onnx_bytes(document, opset))
    onnx.checker.check_model(model, full_check=True)
    return model


def require_round_trip(document: Document, model: Any = None) -> None:
    """Raises AssertionError unless the model is read as the document that it was written of."""
    data = (model or checked_model(document)).SerializeToString(deterministic=True)
    read, _ = parse_document(data, "model")
    assert format_document(read, "json") == format_document(document, "json")


def by_reference(model: Any, given: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model by the reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, dict(given))]


def by_runtime(model: Any, given: Mapping[str, Any]) -> list[Any]:
    """The outputs by onnxruntime. Raises its errors where it has no kernel."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(given)))
