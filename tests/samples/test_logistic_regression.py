"""The logistic regression: derivatives through the command line against NumPy, the optimum against scikit-learn."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import forking
from tests.samples.running import follow
from tests.waiting import LIMIT

FOLDER = Path(__file__).parents[2] / "samples" / "logistic_regression"
SCALES = [0.0, 0.01, 1.0, 100.0]  # of the random weights: margins of 0, small, moderate, and past where exp overflows


@pytest.mark.check
def test_readme(tmp_path):
    follow("logistic_regression", tmp_path)


def environment():
    return os.environ | {"TIDU": str(forking.client())}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    made = {}
    for script in ("gradient", "hessian_vector"):
        made[script] = folder / f"{script}.json"
        subprocess.run(
            ["sh", FOLDER / f"{script}.sh", made[script]],
            env=environment(),
            check=True,
            timeout=LIMIT,
        )
    return made


@pytest.fixture(scope="module")
def data():
    with np.load(FOLDER / "data.npz") as arrays:
        return dict(arrays)


def evaluated(graph, tmp_path, **inputs):
    np.savez(tmp_path / "point.npz", **inputs)
    command = [forking.client(), "eval", graph, "--inputs", FOLDER / "data.npz", "--inputs", tmp_path / "point.npz"]
    process = subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)
    assert process.stderr == b""
    ((_, value),) = json.loads(process.stdout).items()
    return np.array(value)


def weights(scale):
    return scale * np.random.default_rng(7).normal(size=31)


def probability(data, w):
    return 0.5 * (1 + np.tanh(data["X"] @ w / 2))


def gradient(data, w):
    return data["X"].T @ (probability(data, w) - (1 + data["t"]) / 2) + data["penalty"] * w


def close(values, expected):
    return np.max(np.abs(values - expected)) <= 1e-10 * np.max(np.abs(expected))


def test_data_is_what_the_script_makes(data):
    made = runpy.run_path(str(FOLDER / "make_data.py"))["make"]()
    assert {k: (a.dtype, a.shape) for k, a in data.items()} == {k: (a.dtype, a.shape) for k, a in made.items()}
    for name, array in made.items():
        np.testing.assert_allclose(data[name], array, rtol=0, atol=1e-12, err_msg=name)


def test_data_is_standardised(data):
    from sklearn.datasets import load_breast_cancer

    features, benign = load_breast_cancer(return_X_y=True)
    x = data["X"]
    assert x.shape == (569, 31)
    assert (x[:, 0] == 1).all()
    np.testing.assert_allclose(x[:, 1:].mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose((x[:, 1:] ** 2).mean(axis=0), 1, rtol=1e-13)
    for k in range(30):
        assert np.corrcoef(x[:, 1 + k], features[:, k])[0, 1] == pytest.approx(1, abs=1e-13)
    np.testing.assert_array_equal(data["t"] > 0, benign == 1)
    assert set(data["t"]) == {-1.0, 1.0}
    assert data["penalty"].tolist() == [0.0] + [1.0] * 30


@pytest.mark.parametrize("scale", SCALES)
def test_loss(data, tmp_path, scale):
    w = weights(scale)
    expected = np.logaddexp(0, -data["t"] * (data["X"] @ w)).sum() + (data["penalty"] * w**2).sum() / 2
    assert close(evaluated(FOLDER / "loss.json", tmp_path, w=w), expected)


@pytest.mark.check
@pytest.mark.parametrize("scale", SCALES)
def test_gradient(graphs, data, tmp_path, scale):
    w = weights(scale)
    cotangent = evaluated(graphs["gradient"], tmp_path, w=w, **{"loss@-1": 1.0})
    assert close(cotangent, gradient(data, w))


@pytest.mark.parametrize("scale", SCALES)
def test_hessian_vector(graphs, data, tmp_path, scale):
    w, v = weights(scale), np.random.default_rng(8).normal(size=31)
    p = probability(data, w)
    expected = data["X"].T @ (p * (1 - p) * (data["X"] @ v)) + data["penalty"] * v
    product = evaluated(graphs["hessian_vector"], tmp_path, w=w, **{"loss@-1": 1.0, "w@2": v})
    assert close(product, expected)


@pytest.mark.check
def test_optimum_is_that_of_scikit_learn(graphs, data):
    from sklearn.linear_model import LogisticRegression

    command = [sys.executable, FOLDER / "newton_cg.py", graphs["gradient"], graphs["hessian_vector"]]
    process = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True, timeout=LIMIT)
    w = np.array(json.loads(process.stdout)["w"])
    assert np.linalg.norm(gradient(data, w)) <= 1e-8
    assert len([line for line in process.stderr.splitlines() if line.startswith("iteration")]) <= 20, process.stderr

    model = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    model.fit(data["X"][:, 1:], data["t"])
    np.testing.assert_allclose(w, [model.intercept_[0], *model.coef_[0]], rtol=0, atol=1e-8)
