"""Models with open sizes: one file of a gradient for all sizes, in onnxruntime, against the files of fixed sizes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

import tidu_cli as api
from tests.c.compiled import compiled
from tests.c.test_programs import CC
from tests.docs.blocks import ROOT
from tests.onnx.models_of_others import ocr
from tests.onnx.operators.evaluators import by_runtime
from tests.onnx.sizes.open_models import BATCHES, MODELS, convolutional
from tests.onnx.test_models import FITTED, OCR, model
from tests.tiers import few
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.formats.write import format_document
from tidu_cli.graph.open_sizes import bounds_to_file
from tidu_cli.graph.sizes.names import numbers_of
from tidu_cli.graph.types import FLOATS, TensorType


def read(proto: Any, shape: Any = None) -> Any:
    """The document of a model, with open sizes or for an input x of this shape."""
    types = {} if shape is None else {"x": TensorType("f32", tuple(shape))}
    return import_model(loaded(proto.SerializeToString()), Choices(types=types)).document


DERIVED = {
    "value": lambda document: document,
    "gradient": lambda document: api.grad(document, "x", "score"),
    "Hessian times a vector": lambda document: api.hvp(document, "x", "score"),
}


@cache
def written(name: str, what: str) -> Any:
    """A document with open sizes, and the bytes of its model."""
    document = DERIVED[what](read(MODELS[name][0]()))
    return document, onnx_bytes(document)


def inputs(document: Any, shape: Any) -> dict[str, Any]:
    rng = np.random.default_rng(sum(shape))
    return {str(i.key): rng.standard_normal(shape).astype("f4") for i in document.inputs.values()}


def agree(found: Any, due: Any, rtol: float = 1e-5) -> None:
    assert found.keys() == due.keys()
    for key, y in due.items():
        assert found[key].shape == np.shape(y)
        np.testing.assert_allclose(found[key], y, rtol, rtol * max(np.abs(y).max(initial=0), 1e-6), err_msg=key)


@pytest.mark.parametrize("what", DERIVED)
@pytest.mark.parametrize("name", MODELS)
def test_one_file_runs_at_all_sizes(name: str, what: str) -> None:
    document, data = written(name, what)
    onnx.checker.check_model(onnx.load_from_string(data))
    for shape in few(MODELS[name][1], 15):
        x = inputs(document, shape)
        agree(by_runtime(data, x), api.evaluate(document, x))


@CC
@pytest.mark.parametrize("name", MODELS)
def test_c_of_a_gradient_runs_at_all_sizes(name: str, tmp_path: Any) -> None:
    document = api.materialize(written(name, "gradient")[0])
    run = compiled(document, tmp_path, "-O0")
    for shape in few(MODELS[name][1], 15):
        given = inputs(document, shape)
        arrays = [given[str(i.key)] for i in document.head.inputs]
        shapes = [(str(i.key), i.type.shape, x.shape) for i, x in zip(document.head.inputs, arrays, strict=True)]
        sizes = numbers_of(shapes, {})
        made = run(*arrays, sizes=[sizes[size["key"]] for size in run.described["sizes"]])
        agree({str(o.key): x for o, x in zip(document.head.outputs, made, strict=True)}, api.evaluate(document, given))


@pytest.mark.parametrize("name", MODELS)
def test_it_is_what_the_files_of_fixed_sizes_are(name: str) -> None:
    document, data = written(name, "gradient")
    for shape in few(MODELS[name][1], 6):
        x = inputs(document, shape)
        fixed = api.grad(read(MODELS[name][0](), shape), "x", "score")
        agree(by_runtime(data, x), by_runtime(onnx_bytes(fixed), x))
        agree(api.evaluate(document, x), api.evaluate(fixed, x))


def test_weights_have_gradients_for_images_of_any_size() -> None:
    """Whose paddings depend on sizes, as a stride of 2 leaves some elements out."""
    proto = convolutional("h", "w")
    imported = import_model(loaded(proto.SerializeToString()), Choices(weights=True))
    names = [name for name in imported.weights if imported.weights[name].ndim == 4]
    gradient = api.grad(imported.document, names, "score")
    data, rng = onnx_bytes(gradient), np.random.default_rng(0)
    for shape in ((1, 2, 4, 6), (2, 2, 9, 8), (3, 2, 7, 13)):
        point = {**imported.weights, "x": rng.standard_normal(shape).astype("f4")}
        agree(by_runtime(data, point), api.evaluate(gradient, point), 1e-4)


@pytest.mark.parametrize("what", DERIVED)
@pytest.mark.parametrize("name", MODELS)
def test_files_are_read_back_as_the_same(name: str, what: str, tmp_path: Any) -> None:
    document, data = written(name, what)
    (tmp_path / "m.onnx").write_bytes(data)
    again = api.load(tmp_path / "m.onnx")
    assert format_document(again, "json") == format_document(document, "json")
    assert onnx_bytes(again) == data


# Of maxima of windows over axes of which two are open, a product of sizes would have to be seen to be positive.
@pytest.mark.parametrize("name", [name for name in MODELS if name != "images of any size"])
def test_they_mean_the_same_to_those_who_do_not_know_where_they_come_from(name: str) -> None:
    document, data = written(name, "gradient")
    stranger = onnx.load_from_string(data)
    del stranger.metadata_props[:]
    traced = import_model(stranger, Choices()).document
    assert [str(i.type) for i in traced.head.inputs] == [str(i.type) for i in document.head.inputs]
    x = inputs(document, few(MODELS[name][1], 3)[-1])
    agree(api.evaluate(traced, x), api.evaluate(document, x))


def test_each_size_is_computed_once_and_before_all_else() -> None:
    _, data = written("transformer", "Hessian times a vector")
    nodes = onnx.load_from_string(data).graph.node
    claims = [bool(node.metadata_props) for node in nodes]
    assert [node.op_type for node in nodes].count("Shape") == 2
    assert claims == sorted(claims)


def derivatives_of_chances(exporter: str, choices: Choices) -> list[Any]:
    """The gradient of the chances of a voice, and its derivative along a tangent."""
    path = ROOT / "samples" / "pytorch" / f"voice_{exporter}.onnx"
    gradient = api.vjp(import_model(loaded(path.read_bytes()), choices).document, "x", "chance")
    return [gradient, api.jvp(gradient, "x", "x@-1")]


@cache
def written_chances(exporter: str) -> Any:
    """Likewise, of open sizes, and their files."""
    opened = derivatives_of_chances(exporter, Choices())
    return opened, [onnx_bytes(document) for document in opened]


@pytest.mark.parametrize("rate", [16000, 8000])
@pytest.mark.parametrize("exporter", ["script", "dynamo"])
def test_a_detector_of_voices_is_for_any_batch_and_length(exporter: str, rate: int) -> None:
    """A branch for each sample rate: reflection, strided convolutions, and an LSTM over what these leave of a length."""
    opened, files = written_chances(exporter)
    assert bounds_to_file(opened[0])["sizes"] == {"samples": {"min": 8}}
    sizes = few([(n, m) for m in (8, 41, 100) for n in BATCHES], 5)
    for batch, samples in sizes:
        rng = np.random.default_rng(batch * samples)
        x, tangent, state = (rng.standard_normal(n).astype("f4") for n in (*[(batch, samples)] * 2, (2, batch, 4)))
        point = {"x": x, "state": state, "rate": np.asarray(rate), "chance@-1": np.ones((batch, 1), "f4"), "x@2": tangent}
        with_fixed = (batch, samples) in few(sizes, 1)
        chosen = Choices(sizes={"batch": batch, "samples": samples})
        fixed = derivatives_of_chances(exporter, chosen) if with_fixed else opened
        for data, general, special in zip(files, opened, fixed, strict=True):
            given = {key: point[key] for key in map(str, general.inputs)}
            values = by_runtime(data, given)
            agree(values, api.evaluate(general, given), 1e-4)
            if with_fixed:
                agree(values, by_runtime(onnx_bytes(special), given))


@pytest.mark.parametrize("name", FITTED)
def test_fitted_models_are_for_any_batch(name: str) -> None:
    given = model(name)
    document = import_model(loaded(given.data), Choices()).document
    assert str(document.head.inputs[0].type) == "f32[X_0,4]"
    output = next(str(o.key) for o in document.head.outputs if o.type.dtype in FLOATS)
    gradient = api.vjp(document, "X", output)
    data, rng = onnx_bytes(gradient), np.random.default_rng(0)
    for n in (1, 3, 7):
        x = rng.standard_normal((n, 4)).astype("f4")
        values = api.evaluate(document, {"X": x})
        agree(by_runtime(given.data, {"X": x}), values, 1e-4)
        cotangent = rng.standard_normal(np.shape(values[output])).astype("f4")
        point = {str(i.key): cotangent if i.key.path else x for i in gradient.inputs.values()}
        fixed = import_model(loaded(given.data), Choices(types={"X": TensorType("f32", (n, 4))})).document
        agree(by_runtime(data, point), by_runtime(onnx_bytes(api.vjp(fixed, "X", output)), point), 1e-4)


BOUNDS = {
    "classifier": {"x_2": {"min": 33}, "x_3": {"min": 3}},
    "recognizer": {"x_2": {"min": 33, "max": 80}, "p2o_DynamicDimension_1": {"min": 5}},
    "detector": {"p2o_DynamicDimension_1": {"multiple_of": 32}, "p2o_DynamicDimension_2": {"multiple_of": 32}},
}


@pytest.mark.check
@pytest.mark.parametrize("name", OCR)
def test_networks_for_text_are_for_images_of_any_size(name: str) -> None:
    """The recognizer alone takes images of few heights, as it makes one row of features of them."""
    data = ocr(*OCR[name]).data
    document = import_model(loaded(data), Choices()).document
    assert bounds_to_file(document)["sizes"] == BOUNDS[name]
    output = str(document.head.outputs[0].key)
    gradient = api.vjp(document, "x", output)
    written_, rng = onnx_bytes(gradient), np.random.default_rng(0)
    for shape in [(2, 3, 64, 40)] if name == "recognizer" else [(2, 3, 64, 96)]:
        x = rng.standard_normal(shape).astype("f4")
        y = by_runtime(data, {"x": x})[output]
        point = {str(i.key): rng.standard_normal(y.shape).astype("f4") if i.key.path else x for i in gradient.inputs.values()}
        fixed = import_model(loaded(data), Choices(types={"x": TensorType("f32", shape)})).document
        agree(by_runtime(written_, point), by_runtime(onnx_bytes(api.vjp(fixed, "x", output)), point), 1e-3)


@pytest.mark.check
def test_a_classifier_of_bytes_is_for_any_batch() -> None:
    """Its first and second derivatives, by what its first layer makes of bytes."""
    given = model("magika")

    def derivatives(choices: Choices) -> Any:
        document = import_model(loaded(given.data), choices).document
        gradient = api.vjp(document, given.wrt, "target_label")
        return gradient, api.jvp(gradient, given.wrt, f"{given.wrt}@-1")

    files = [onnx_bytes(document) for document in derivatives(Choices(cuts=(given.wrt,)))]
    rng = np.random.default_rng(0)
    for n in few((1, 3, 2, 7, 32), 2):
        fixed = derivatives(Choices(cuts=(given.wrt,), types={"bytes": TensorType("i32", (n, 2048))}))
        for data, document in zip(files, fixed, strict=True):
            shapes = {str(i.key): i.type.shape for i in document.inputs.values()}
            point = {key: rng.standard_normal(shape).astype("f4") for key, shape in shapes.items()}
            agree(by_runtime(data, point), by_runtime(onnx_bytes(document), point))
