"""The problems of ADBench through the command line, against values that were computed without tidu."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

from tests.samples.running import SAMPLES, arrays, follow, norm_error, tidu

FOLDER = SAMPLES / "adbench"


def gmm(k, d, n):
    return f"gmm.py:objective -i alphas:f64[{k}] -i means:f64[{k},{d}] -i icf:f64[{k},{d * (d + 1) // 2}] -i x:f64[{n},{d}]"


LSTM = "lstm.py:objective -i main:f64[4,56] -i extra:f64[3,14] -i state:f64[4,14] -i sequence:f64[1024,14]"
BA = "ba.py:reprojection_error -i cam:f64[11] -i point:f64[3] -i weight:f64[] -i feature:f64[2]"
GRADIENTS = {
    "gmm_test": (gmm(3, 2, 1), ("alphas", "means", "icf")),
    "gmm_d2_K5": (gmm(5, 2, 1000), ("alphas", "means", "icf")),
    "gmm_d10_K25": (gmm(25, 10, 1000), ("alphas", "means", "icf")),
    "lstm_l2_c1024": (LSTM, ("main", "extra")),
}


def assert_equal(values, expected):
    """To 1e-9 of the norm, and each element to 1e-9 of itself or 1e-14 of the greatest: what is left of sums whose terms cancel."""
    assert np.all(np.isfinite(values))
    assert norm_error(values, expected) <= 1e-9
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-14 * np.max(np.abs(expected)))


def derived(source, command, wrt, data, folder):
    keys = " ".join(f"--wrt {key}" for key in wrt)
    tidu(f"tidu build samples/adbench/{source} | tidu {command} {keys} --inputs samples/adbench/data/{data}.npz -o out.npz", folder)
    return arrays(folder / "out.npz")


@pytest.mark.check
@pytest.mark.parametrize("data", GRADIENTS)
def test_objective_and_gradient(data, tmp_path):
    source, wrt = GRADIENTS[data]
    results, expected = derived(source, "grad --value", wrt, data, tmp_path), arrays(FOLDER / "data" / f"{data}.npz")
    assert list(results) == ["y", *(f"{key}@-1" for key in wrt)]
    assert {f"expect.grad.{key}" for key in wrt} == {key for key in expected if key.startswith("expect.grad.")}
    assert_equal(results["y"], expected["expect.objective"])
    for key in wrt:
        assert_equal(results[f"{key}@-1"], expected[f"expect.grad.{key}"])


def test_gradient_of_the_cost_of_bundle_adjustment(tmp_path):
    wrt, expected = ("cam", "point", "weight"), arrays(FOLDER / "data" / "ba_test.npz")
    results = derived(BA.replace("reprojection_error", "cost"), "grad --value", wrt, "ba_test", tmp_path)
    error = expected["expect.reproj"]
    assert_equal(results["y"], error @ error / 2)
    for key in wrt:
        assert_equal(results[f"{key}@-1"], error @ expected[f"expect.jac.{key}"])


@pytest.mark.parametrize("mode", ["--forward", "--reverse"])
def test_jacobian_of_bundle_adjustment(mode, tmp_path):
    wrt, expected = ("cam", "point", "weight"), arrays(FOLDER / "data" / "ba_test.npz")
    blocks = derived(BA, f"jacobian {mode}", wrt, "ba_test", tmp_path)
    assert set(blocks) == {f"y/{key}" for key in wrt}
    for key in wrt:
        assert_equal(blocks[f"y/{key}"], expected[f"expect.jac.{key}"])


def test_value_of_bundle_adjustment(tmp_path):
    tidu(f"tidu build samples/adbench/{BA} | tidu eval --inputs samples/adbench/data/ba_test.npz -o y.npz", tmp_path)
    assert_equal(arrays(tmp_path / "y.npz")["y"], arrays(FOLDER / "data" / "ba_test.npz")["expect.reproj"])


def test_rotation_by_zero_has_its_derivatives(tmp_path):
    """To first order a rotation by r takes v to v + r × v: at r = 0 the columns of the Jacobian are e × v."""
    v = np.array([0.3, -1.2, 2.5])
    np.savez(tmp_path / "at.npz", rotation=np.zeros(3), v=v)
    build = "tidu build samples/adbench/ba.py:rotate -i rotation:f64[3] -i v:f64[3]"
    tidu(f"{build} | tidu jacobian --wrt rotation --inputs at.npz -o out.npz", tmp_path)
    np.testing.assert_allclose(arrays(tmp_path / "out.npz")["y/rotation"], np.cross(np.eye(3), v).T, rtol=1e-15)


@pytest.mark.check
def test_whole_sequence_of_the_lstm(tmp_path):
    """All 1,024 characters, in a loop of 2,046 cells: the gradient along a direction against a complex step in NumPy."""
    (tmp_path / "whole.py").write_text(
        "import sys\nsys.path.insert(0, 'samples/adbench')\nfrom lstm import objective\n"
        "def whole(main, extra, state, sequence):\n    return objective(main, extra, state, sequence, steps=1024)\n"
    )
    tidu(f"tidu build {LSTM.replace('lstm.py:objective', 'whole.py:whole')} -o whole.msgpack", tmp_path)
    data = "samples/adbench/data/lstm_l2_c1024.npz"
    tidu(f"tidu grad whole.msgpack --wrt main --wrt extra --inputs {data} -o out.npz", tmp_path)
    results, given = arrays(tmp_path / "out.npz"), arrays(FOLDER / "data" / "lstm_l2_c1024.npz")
    objective = runpy.run_path(str(FOLDER / "lstm.py"))["objective"]
    random = np.random.default_rng(0)
    main, extra = random.normal(size=(4, 56)), random.normal(size=(3, 14))
    stepped = objective(given["main"] + 1e-30j * main, given["extra"] + 1e-30j * extra, given["state"], given["sequence"], 1024)
    slope = np.sum(results["main@-1"] * main) + np.sum(results["extra@-1"] * extra)
    assert slope == pytest.approx(stepped.imag / 1e-30, rel=1e-10)


@pytest.mark.check
def test_readme(tmp_path):
    follow("adbench", tmp_path)
