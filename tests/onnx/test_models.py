"""Models of others: values, derivatives, and gradients as ONNX."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import tidu_cli as api
from tests.onnx.models_of_others import Model, doubled, fitted, magika, ocr
from tests.onnx.operators.derivatives import require_derivatives
from tests.onnx.operators.evaluators import by_runtime
from tests.waiting import cpu_seconds
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.graph.types import FLOATS

FITTED = ("mlp", "mlp classifier", "logistic", "gaussian process", "kernel", "svm")
OCR = {
    "classifier": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", 48, 96),
    "recognizer": ("ch_PP-OCRv4_rec_infer.onnx", 48, 64),
    "detector": ("ch_PP-OCRv4_det_infer.onnx", 64, 160),
}
NAMES = ("magika", *OCR, *FITTED)


@cache
def model(name: str) -> Model:
    if name == "magika":
        return magika()
    return ocr(*OCR[name]) if name in OCR else fitted(name)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_onnxruntime(name: str) -> None:
    given = model(name)
    expected = by_runtime(given.data, given.inputs)
    values = api.evaluate(given.read().document, given.inputs)
    for key, y in expected.items():
        assert np.abs(values[key] - y).max() <= 1e-4 * max(np.abs(y).max(), 1e-3), key


# The evaluator has no doubles of ai.onnx.ml, and of magika's model it does not get past a Squeeze.
@pytest.mark.check
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("kernel", "svm", "logistic", "magika")])
def test_in_double_precision_values_are_those_of_the_reference_evaluator(name: str) -> None:
    given = model(name)
    wide = {k: x.astype(np.float64) if x.dtype == np.float32 else x for k, x in given.inputs.items()}
    with np.errstate(all="ignore"):
        session = ReferenceEvaluator(doubled(given.data))
        expected = dict(zip(session.output_names, session.run(None, wide), strict=True))
    values = api.evaluate(given.read("f64").document, wide)
    for key, y in expected.items():
        np.testing.assert_allclose(values[key], y, 1e-10, 1e-10 * np.abs(y).max())


@pytest.mark.check
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_values(name: str) -> None:
    given = model(name)
    document = given.read("f64", given.cut).document
    point = {str(i.key): value(given, str(i.key), "f64") for i in document.inputs.values()}
    floats = [str(o.key) for o in document.head.outputs if o.type.dtype in FLOATS]
    require_derivatives(document, point, [given.wrt], floats, n_directions=1, reach=2**-12)


def value(given: Model, key: str, cast: str | None = None):  # type: ignore[no-untyped-def]
    """An input, or the value where the model is cut, which another model has as its output."""
    x = given.inputs.get(key)
    if x is None:
        import onnx

        inner = onnx.load_from_string(given.data)
        inner.graph.output.append(onnx.ValueInfoProto(name=key))
        x = by_runtime(inner.SerializeToString(), given.inputs)[key]
    return x.astype(np.float64) if cast and x.dtype == np.float32 else x


@pytest.mark.check
@pytest.mark.parametrize("name", NAMES)
def test_gradients_run_in_onnxruntime(name: str) -> None:
    given = model(name)
    document = given.read(cut=given.cut).document
    output = next(str(o.key) for o in document.head.outputs if o.type.dtype in FLOATS)
    gradient = api.vjp(document, given.wrt, output)
    rng = np.random.default_rng(1)
    point = {
        str(i.key): rng.standard_normal(i.type.shape).astype(np.float32) if i.key.path else value(given, str(i.key))
        for i in gradient.inputs.values()
    }
    expected = api.evaluate(gradient, point)
    values = by_runtime(onnx_bytes(gradient), point)
    for key, y in expected.items():
        assert np.abs(values[key] - y).max() <= 1e-3 * np.abs(y).max(), key
        assert np.abs(y).max() > 0


def test_a_network_is_read_and_its_gradient_written_in_seconds() -> None:
    given = ocr("ch_PP-OCRv4_rec_infer.onnx", 48, 320)
    made: list[Any] = []
    reading = cpu_seconds(lambda: made.append(given.read().document))
    writing = cpu_seconds(lambda: made.append(onnx_bytes(api.vjp(made[0], "x", "softmax_11.tmp_0"))))
    assert len(made[1]) > len(given.data)
    assert reading <= 2, f"reading takes {reading:.1f} s"
    assert writing <= 3, f"the gradient takes {writing:.1f} s"
