"""Models of scikit-learn, as onnxruntime evaluates what skl2onnx exports of them."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import pytest
import sklearn.ensemble
import sklearn.gaussian_process
import sklearn.linear_model
import sklearn.neural_network
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.svm
import sklearn.tree

from tests.onnx.derivatives import require_right
from tests.onnx.node_tests import imported
from tidu_cli.api import evaluate
from tidu_cli.formats.onnx.loading import loaded

N, SIZE = 60, 4


def piped(model: Any, *first: Any) -> Any:
    return sklearn.pipeline.make_pipeline(*first, model)


PRE, LINEAR, SVM = sklearn.preprocessing, sklearn.linear_model, sklearn.svm

REGRESSORS: dict[str, Any] = {
    "linear": LINEAR.LinearRegression(),
    "ridge of several": LINEAR.Ridge(),
    "mlp": sklearn.neural_network.MLPRegressor(hidden_layer_sizes=(6, 5), activation="tanh", max_iter=20),
    "gaussian process": sklearn.gaussian_process.GaussianProcessRegressor(
        sklearn.gaussian_process.kernels.RBF(), alpha=0.1, optimizer=None
    ),
    "scaled": piped(LINEAR.LinearRegression(), PRE.StandardScaler(), PRE.Normalizer()),
    **{f"svr {kernel}": SVM.SVR(kernel=kernel, gamma=0.3, coef0=0.5) for kernel in ("linear", "poly", "rbf", "sigmoid")},
    "nusvr": SVM.NuSVR(),
}
TREES: dict[str, Any] = {
    "tree": sklearn.tree.DecisionTreeRegressor(max_depth=6),
    "forest": sklearn.ensemble.RandomForestRegressor(5, max_depth=4),
    "boosted": sklearn.ensemble.GradientBoostingRegressor(n_estimators=5),
}
CLASSIFIERS: dict[str, Any] = {
    "logistic": LINEAR.LogisticRegression(),
    "scaled logistic": piped(LINEAR.LogisticRegression(), PRE.StandardScaler()),
    "mlp": sklearn.neural_network.MLPClassifier(hidden_layer_sizes=(6,), activation="logistic", max_iter=20),
    **{f"svc {kernel}": SVM.SVC(kernel=kernel, gamma=0.3, coef0=0.5) for kernel in ("linear", "poly", "rbf", "sigmoid")},
    "nusvc": SVM.NuSVC(nu=0.3),
    "linear svc": SVM.LinearSVC(),
}
TREE_CLASSIFIERS: dict[str, Any] = {
    "tree": sklearn.tree.DecisionTreeClassifier(max_depth=6),
    "forest": sklearn.ensemble.RandomForestClassifier(5, max_depth=4),
    "boosted": sklearn.ensemble.GradientBoostingClassifier(n_estimators=5),
    "extra": sklearn.ensemble.ExtraTreesClassifier(5, max_depth=4),
}


@cache
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, SIZE)).astype(np.float32)
    return x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * x[:, 3]


def exported(model: Any, y: Any, **options: Any) -> Any:
    from skl2onnx import to_onnx

    x, _ = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        fitted = model.fit(x, y)
        return to_onnx(fitted, x[:7], options={id(fitted): options} if options else None, target_opset={"": 18, "ai.onnx.ml": 3})


def require_agreement(model: Any, rtol: float = 1e-4, atol: float = 1e-5) -> Any:
    x = data()[0][:9] * 1.1
    names = [o.name for o in model.graph.output]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(names, {"X": x})
    found = imported(loaded(model.SerializeToString()), {"X": x})
    values = evaluate(found.document, {"X": x})
    for name, due in zip(names, expected, strict=True):
        y = np.asarray(values[name])
        assert (y.dtype, y.shape) == (due.dtype, due.shape), name
        np.testing.assert_allclose(y, due, rtol, atol, err_msg=name)
    return found


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    y = data()[1]
    model = exported(REGRESSORS[name], np.stack([y, y**2], 1) if "several" in name else y)
    require_agreement(model)
    require_right(model, {"X": data()[0][:3]})


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str) -> None:
    found = require_agreement(exported(TREES[name], data()[1]))
    assert any("derivatives are 0" in note for note in found.notes)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("name", {**CLASSIFIERS, **{f"of trees: {k}": m for k, m in TREE_CLASSIFIERS.items()}})
def test_classifiers(name: str, n: int) -> None:
    y = data()[1]
    model = {**CLASSIFIERS, **{f"of trees: {k}": m for k, m in TREE_CLASSIFIERS.items()}}[name]
    labels = np.digitize(y, np.quantile(y, np.linspace(0, 1, n + 1)[1:-1])) + 3
    onnx_model = exported(model, labels) if name == "linear svc" else exported(model, labels, zipmap=False)
    require_agreement(onnx_model)
    if name == "logistic":
        require_right(onnx_model, {"X": data()[0][:3]})


@pytest.mark.parametrize("n", [2, 3, 4])
def test_probabilities_of_support_vectors(n: int) -> None:
    """Coupled exactly here; onnxruntime stops iterating where they are within 0.005 / n of the conditions."""
    y = data()[1]
    labels = np.digitize(y, np.quantile(y, np.linspace(0, 1, n + 1)[1:-1]))
    model = exported(SVM.SVC(probability=True), labels, zipmap=False)
    require_agreement(model, 0, 0.005 / n)


def test_outliers() -> None:
    require_agreement(exported(SVM.OneClassSVM(nu=0.2), None))


def test_labels_that_are_strings() -> None:
    x, y = data()
    model = exported(LINEAR.LogisticRegression(), np.where(y > 0, "high", "low"))
    found = imported(loaded(model.SerializeToString()), {"X": x[:7]})
    values = evaluate(found.document, {"X": x[:7]})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, maps = session.run(None, {"X": x[:7]})
    assert ["high", "low"][int(np.asarray(values["output_label"])[0])] == labels[0]
    np.testing.assert_allclose(np.asarray(values["output_probability"])[:, 1], [m["low"] for m in maps], 1e-5)
    assert any("1 is 'low'" in note for note in found.notes)
    assert any(note.startswith("ZipMap") for note in found.notes)
