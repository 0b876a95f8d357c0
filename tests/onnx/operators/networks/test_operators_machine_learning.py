"""Models of scikit-learn, as onnxruntime evaluates what skl2onnx exports of them."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import onnx
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

from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.node_tests import imported
from tidu_cli.adapters.onnx.loading import loaded
from tidu_cli.api import evaluate

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
    reading = imported(loaded(model.SerializeToString()), {"X": x})
    values = evaluate(reading.document, {"X": x})
    for name, due in zip(names, expected, strict=True):
        y = np.asarray(values[name])
        assert (y.dtype, y.shape) == (due.dtype, due.shape), name
        np.testing.assert_allclose(y, due, rtol, atol, err_msg=name)
    return reading


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    y = data()[1]
    model = exported(REGRESSORS[name], np.stack([y, y**2], 1) if "several" in name else y)
    require_agreement(model)
    require_right(model, {"X": data()[0][:3]})


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str) -> None:
    reading = require_agreement(exported(TREES[name], data()[1]))
    assert any("derivatives are 0" in note for note in reading.notes)


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
    reading = imported(loaded(model.SerializeToString()), {"X": x[:7]})
    values = evaluate(reading.document, {"X": x[:7]})
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    labels, maps = session.run(None, {"X": x[:7]})
    assert ["high", "low"][int(np.asarray(values["output_label"])[0])] == labels[0]
    np.testing.assert_allclose(np.asarray(values["output_probability"])[:, 1], [m["low"] for m in maps], 1e-5)
    assert any("1 is 'low'" in note for note in reading.notes)
    assert any(note.startswith("ZipMap") for note in reading.notes)


def alone(op: str, x: Any, version: int = 3, outputs: int = 1, **attrs: Any) -> Any:
    """A model of one operator of the domain."""
    helper = onnx.helper
    node = helper.make_node(op, ["X"], [f"y{k}" for k in range(outputs)], domain="ai.onnx.ml", **attrs)
    declared = helper.make_tensor_value_info("X", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    given = [onnx.ValueInfoProto(name=f"y{k}") for k in range(outputs)]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(helper.make_graph([node], "g", [declared], given), opset_imports=opsets, ir_version=8)


def require_alone(model: Any, x: Any, rtol: float = 1e-5) -> None:
    inferred = onnx.shape_inference.infer_shapes(model)
    expected = onnxruntime.InferenceSession(inferred.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"X": x})
    values = evaluate(imported(model, {"X": x}).document, {"X": x})
    for k, due in enumerate(expected):
        y = np.asarray(values[f"y{k}"])
        assert (y.dtype, y.shape) == (due.dtype, due.shape)
        np.testing.assert_allclose(y, due, rtol, 1e-6)


TREE = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2, 3, 4],
    "nodes_featureids": [0, 0, 0, 1, 2, 0, 0, 0],
    "nodes_values": [0.1, 0.0, 0.0, 0.2, -0.3, 0.0, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0, 1, 2, 0, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 4, 3, 0, 0, 0],
}
WEIGHTS = {
    "treeids": [0, 0, 0, 1, 1, 1],
    "nodeids": [1, 2, 2, 2, 3, 4],
    "ids": [0, 0, 1, 1, 0, 1],
    "weights": [0.25, 0.5, -0.75, 0.125, -0.5, 0.375],
}
POST = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
COMPARED = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def points() -> Any:
    x = data()[0][:12, :3].copy()
    x[0, 0], x[1, 1], x[2, 2], x[3, 0] = 0.1, 0.2, -0.3, np.nan
    return x


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize("missing", [None, [1, 0, 0, 0, 1, 0, 0, 0]])
def test_regressions_of_trees(aggregate: str, post: str, missing: list[int] | None) -> None:
    for k, mode in enumerate(COMPARED):
        modes = [mode, "LEAF", "LEAF", mode, COMPARED[k - 1], "LEAF", "LEAF", "LEAF"]
        attrs: dict[str, Any] = {**TREE, "nodes_modes": modes, **{f"target_{name}": v for name, v in WEIGHTS.items()}}
        attrs |= {"aggregate_function": aggregate, "post_transform": post, "n_targets": 2}
        attrs |= {"nodes_missing_value_tracks_true": missing} if missing else {}
        require_alone(alone("TreeEnsembleRegressor", points(), **attrs), points())


@pytest.mark.parametrize("post", POST)
@pytest.mark.parametrize(
    ("labels", "ids"),  # of two classes that both have weights onnxruntime gives the numbers, and not the labels
    [([3, 5], [0] * 6), ([3, 5], [1] * 6), ([3, 5, 9], [0] * 6), ([3, 5, 9], [1] * 6), ([3, 5, 9], [0, 0, 1, 1, 0, 1])],
)
@pytest.mark.parametrize("is_positive", [False, True])
def test_classes_of_trees(post: str, labels: list[int], ids: list[int], is_positive: bool) -> None:
    weights = [abs(w) if is_positive else w for w in WEIGHTS["weights"]]
    attrs: dict[str, Any] = {**TREE, "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "BRANCH_LEQ", *["LEAF"] * 3]}
    attrs |= {f"class_{name}": v for name, v in {**WEIGHTS, "ids": ids, "weights": weights}.items()}
    require_alone(
        alone("TreeEnsembleClassifier", points(), outputs=2, classlabels_int64s=labels, post_transform=post, **attrs), points()
    )


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("Normalizer", {"norm": "MAX"}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]}),
        ("Scaler", {"offset": [1.0], "scale": [0.5]}),
        ("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0], "replaced_value_float": 0.5}),
        ("Imputer", {"imputed_value_floats": [1.0], "replaced_value_float": float("nan")}),
        ("Binarizer", {"threshold": 0.25}),
        ("LabelEncoder", {"keys_floats": [0.5, 1.0], "values_floats": [7.0, 8.0], "default_float": -2.0}),
        ("LabelEncoder", {"keys_floats": [0.5, 1.0], "values_int64s": [7, 8]}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, -1.0, 0.5, 0.25, 3.0], "targets": 2, "intercepts": [0.5, 0.75]}),
        *[("LinearClassifier", {"coefficients": [1.0, 2.0, -1.0], "intercepts": [0.5], "classlabels_ints": [4, 6],
                                "post_transform": post}) for post in POST[:1] + POST[2:3]],
        *[("LinearClassifier", {"coefficients": [1.0, 2.0, -1.0, 0.5, 0.25, 3.0], "intercepts": [0.5, 0.0],
                                "classlabels_ints": [4, 6], "post_transform": post}) for post in POST],
    ],
)  # fmt: skip
def test_operators_alone(op: str, attrs: dict[str, Any]) -> None:
    x = np.array([[0.5, 1.0, -2.0], [0.0, 0.0, 0.0], [0.25, 3.0, 0.5]], np.float32)
    if op == "Imputer":
        x[1, 1] = np.nan
    require_alone(alone(op, x, outputs=2 if "Classifier" in op else 1, **attrs), x)
