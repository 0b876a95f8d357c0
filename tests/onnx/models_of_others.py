"""Models of others, as their packages bring them, and models that are fitted here; with inputs like what they were made for."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.graph.types import TensorType
from tidu_cli.port_data import Imported


@dataclass(frozen=True)
class Model:
    """A model, the inputs by name, and the value to differentiate by: an input, or one within it where it is cut."""

    data: bytes
    inputs: dict[str, Any]
    wrt: str
    cut: bool = False

    def read(self, cast: str | None = None, cut: bool = False) -> Imported:
        """The document, for inputs of these shapes."""
        model = loaded(self.data)
        declared = {i.name: i.type.tensor_type.elem_type for i in model.graph.input}
        dtypes = {1: cast or "f32", 6: "i32", 7: "i64"}
        types = {name: TensorType(dtypes[declared[name]], x.shape) for name, x in self.inputs.items()}
        return import_model(model, Choices(types=types, cast=cast, cuts=(self.wrt,) if cut else ()))


def file_of(package: str, name: str) -> bytes:
    """A file of a package."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.rglob(name)).read_bytes()


def written(height: int, width: int) -> Any:
    """An image of a word, f32[1, 3, height, width] from -1 to 1."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, height), (245, 245, 245))
    ImageDraw.Draw(image).text((4, height // 8), "gradient", (20, 20, 20), ImageFont.load_default(height * 0.6))
    noise = 0.01 * np.random.default_rng(3).standard_normal((height, width, 3))
    return ((np.asarray(image) / 255 - 0.5) / 0.5 + noise).transpose(2, 0, 1)[np.newaxis].astype(np.float32)


def magika() -> Model:
    """A classifier of bytes: they are integers, so it is cut at what the first layer makes of them."""
    text = np.random.default_rng(0).integers(32, 127, 2048).astype(np.int32)
    cut = "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/Dense_0/AddV2:0"
    return Model(file_of("magika", "model.onnx"), {"bytes": text[np.newaxis]}, cut, cut=True)


def ocr(name: str, height: int, width: int) -> Model:
    """A convolutional network of rapidocr's."""
    return Model(file_of("rapidocr_onnxruntime", name), {"x": written(height, width)}, "x")


def fitted(kind: str) -> Model:
    """A model of scikit-learn's, fitted to a small problem, as skl2onnx writes it."""
    from skl2onnx import to_onnx
    from sklearn import gaussian_process, linear_model, neural_network, pipeline, preprocessing, svm

    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 4))
    y = np.sin(x[:, 0]) + x[:, 1] ** 2 - x[:, 2]
    classes = (y > 0.5).astype(int) + (y > 1.5)
    estimators: dict[str, tuple[Any, Any]] = {
        "mlp": (neural_network.MLPRegressor(hidden_layer_sizes=(8,), activation="tanh", max_iter=60, random_state=0), y),
        "mlp classifier": (
            neural_network.MLPClassifier(hidden_layer_sizes=(8,), activation="logistic", max_iter=60, random_state=0),
            classes,
        ),
        "logistic": (pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()), classes),
        "gaussian process": (gaussian_process.GaussianProcessRegressor(gaussian_process.kernels.RBF(1.5), alpha=1e-2), y),
        "kernel": (svm.SVR(kernel="rbf", gamma=0.3), y),
        "svm": (svm.SVC(kernel="poly", degree=3), classes),
    }
    estimator, target = estimators[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(x, target)
        options = {id(estimator): {"zipmap": False}} if kind in ("mlp classifier", "logistic", "svm") else None
        model = to_onnx(estimator, x[:1].astype(np.float32), target_opset={"": 18, "ai.onnx.ml": 3}, options=options)
    return Model(model.SerializeToString(), {"X": x[:3].astype(np.float32)}, "X")


def doubled(data: bytes) -> onnx.ModelProto:
    """A model with doubles in place of floats, for the reference evaluator."""
    # Of batch normalizations of older operator sets the evaluator takes the statistics of the batch.
    model = version_converter.convert_version(onnx.load_from_string(data), 17)
    single, double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

    def wide(tensor: Any) -> None:
        if tensor.data_type == single:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(np.float64), tensor.name))

    for tensor in model.graph.initializer:
        wide(tensor)
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == single:
            value.type.tensor_type.elem_type = double
    for node in model.graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR:
                wide(a.t)
            if node.op_type == "Cast" and a.name == "to" and a.i == single:
                a.i = double
    return model
