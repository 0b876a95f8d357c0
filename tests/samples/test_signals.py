"""The convolutional network and the Wiener filter: what their pages show, and derivatives against NumPy by hand."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest

import tidu_cli
from benchmarks import convolution as benchmark
from tests.samples.running import SAMPLES, arrays, follow, norm_error

CONVNET, WIENER = SAMPLES / "convnet", SAMPLES / "wiener"


@pytest.mark.check
@pytest.mark.parametrize("sample", ["convnet", "wiener"])
def test_readme(sample, tmp_path):
    follow(sample, tmp_path)


def test_the_files_are_what_the_scripts_make():
    made = runpy.run_path(str(CONVNET / "make_params.py"))["make_params"]()
    stored = arrays(CONVNET / "params.npz")
    assert made.keys() == stored.keys() and all((made[k] == stored[k]).all() for k in made)
    assert json.loads((WIENER / "data.json").read_text()) == runpy.run_path(str(WIENER / "make_data.py"))["make_data"]()


@pytest.fixture(scope="module")
def convnet():
    return runpy.run_path(str(CONVNET / "convnet.py"))


@pytest.fixture(scope="module")
def digits():
    data = arrays(SAMPLES / "network" / "data.npz")
    return data["images"][:20], data["labels"][:20]


def test_the_network_is_sums_over_windows(convnet, digits):
    params = {k.removeprefix("params."): v for k, v in arrays(CONVNET / "params.npz").items()}
    hidden = digits[0].reshape(-1, 1, 8, 8) / 16
    for k in "12":
        padded = np.pad(hidden, [(0, 0), (0, 0), (1, 1), (1, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        features = np.einsum("nchwij,ocij->nohw", windows, params[f"w{k}"]) + params[f"b{k}"][:, None, None]
        n, c, h, w = features.shape
        hidden = np.maximum(features, 0).reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))
    expected = hidden.reshape(20, -1) @ params["w3"] + params["b3"]
    assert norm_error(convnet["forward"](params, digits[0]), expected) < 1e-14


def test_the_gradient_of_the_network_is_that_of_differences(convnet, digits):
    random = np.random.default_rng(1)
    params = {k.removeprefix("params."): v + 0.01 * random.normal(size=v.shape) for k, v in arrays(CONVNET / "params.npz").items()}
    step = {k: random.normal(size=v.shape) for k, v in params.items()}
    document = tidu_cli.trace(convnet["loss"], params=params, images=digits[0], labels=digits[1], output="y")
    gradient = tidu_cli.grad(document, [f"params.{k}" for k in params])
    given = {f"params.{k}": v for k, v in params.items()} | {"images": digits[0], "labels": digits[1]}
    cotangents = tidu_cli.evaluate(gradient, given | {"y@-1": 1.0})
    along = sum(np.sum(cotangents[f"params.{k}@-1"] * v) for k, v in step.items())
    ends = [convnet["loss"]({k: v + h * step[k] for k, v in params.items()}, *digits) for h in (1e-6, -1e-6)]
    assert along == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


def test_the_gradient_of_the_benchmark_is_that_by_hand():
    random = np.random.default_rng(2)
    shapes = {"w1": (3, 1, 3, 3), "b1": (3,), "w2": (4, 3, 3, 3), "b2": (4,), "w3": (4 * 4, 10), "b3": (10,)}
    params = {k: random.normal(size=shape) for k, shape in shapes.items()}
    images, labels = random.normal(size=(5, 1, 14, 14)), random.integers(0, 10, 5)
    document = tidu_cli.trace(benchmark.loss, params=params, images=images, labels=labels, output="y")
    gradient = tidu_cli.grad(document, [f"params.{k}" for k in params])
    given = {f"params.{k}": v for k, v in params.items()} | {"images": images, "labels": labels, "y@-1": 1.0}
    cotangents, expected = tidu_cli.evaluate(gradient, given), benchmark.gradient_by_hand(params, images, labels)
    assert all(norm_error(cotangents[f"params.{k}@-1"], v) < 1e-12 for k, v in expected.items())


@pytest.fixture(scope="module")
def filtering():
    functions = runpy.run_path(str(WIENER / "wiener.py"))
    return functions, {k: np.array(v) for k, v in json.loads((WIENER / "data.json").read_text()).items()}


def test_the_filter_is_least_squares_with_a_penalty(filtering):
    functions, data = filtering
    width, ratio = np.exp(data["theta"])
    offset = np.abs(np.subtract.outer(np.arange(64), np.arange(64)))
    blur = np.exp(-((np.minimum(offset, 64 - offset) / width) ** 2) / 2)
    blur /= blur[0].sum()
    expected = np.linalg.solve(blur.T @ blur + ratio * np.eye(64), blur.T @ data["observed"])
    assert norm_error(functions["restore"](data["theta"], data["observed"]), expected) < 1e-11


def test_newtons_steps_lead_to_the_minimum(filtering):
    functions, data = filtering
    document = tidu_cli.trace(functions["error"], **data, output="e")
    gradient, hessian = tidu_cli.grad(document, "theta"), tidu_cli.hessian(document, "theta")
    theta = data["theta"]
    for _ in range(12):
        at = data | {"theta": theta}
        slope = tidu_cli.evaluate(gradient, at | {"e@-1": 1.0})["theta@-1"]
        theta = theta - np.linalg.solve(tidu_cli.evaluate(hessian, at)["e/theta/theta"], slope)
    assert np.abs(slope).max() < 1e-15
    assert np.exp(theta[0]) == pytest.approx(2.08, abs=0.005)
    assert functions["error"](theta, data["observed"], data["truth"]) == pytest.approx(0.0083, abs=5e-5)
