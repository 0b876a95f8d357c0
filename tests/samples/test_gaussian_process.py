"""The likelihood of a Gaussian process: its derivatives through factorizations, against closed forms."""

from __future__ import annotations

import json
import runpy

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tests.samples.running import SAMPLES, arrays, follow, norm_error, tidu

FOLDER = SAMPLES / "gaussian_process"
INPUTS = "-i theta:f64[3] -i x:f64[32] -i y:f64[32]"
GIVEN = "--inputs samples/gaussian_process/data.json"


@pytest.mark.check
def test_readme(tmp_path):
    follow("gaussian_process", tmp_path)


def test_the_data_are_what_the_script_makes():
    assert json.loads((FOLDER / "data.json").read_text()) == runpy.run_path(str(FOLDER / "make_data.py"))["make_data"]()


@pytest.fixture(scope="module")
def problem():
    data = {k: np.array(v) for k, v in json.loads((FOLDER / "data.json").read_text()).items()}
    theta, x, y = (data[name] for name in ("theta", "x", "y"))
    amplitude, scale, noise = np.exp(theta)
    squares = ((x[:, None] - x) / scale) ** 2
    smooth = amplitude**2 * np.exp(-squares / 2)
    covariance = smooth + noise**2 * np.eye(32)
    return y, covariance, (2 * smooth, smooth * squares, 2 * noise**2 * np.eye(32))


@pytest.mark.check
@pytest.mark.parametrize("function", ["log_likelihood", "by_determinant"])
def test_the_gradient_is_the_closed_form(function, problem, tmp_path):
    y, covariance, derivatives = problem
    tidu(
        f"tidu build samples/gaussian_process/gp.py:{function} {INPUTS} | tidu grad --wrt theta --value {GIVEN} -o g.npz", tmp_path
    )
    results = arrays(tmp_path / "g.npz")
    inverse = np.linalg.inv(covariance)
    alpha = inverse @ y
    expected = [np.sum((np.outer(alpha, alpha) - inverse) * d) / 2 for d in derivatives]
    assert results["out"] == pytest.approx(multivariate_normal(cov=covariance).logpdf(y), rel=1e-12)
    assert norm_error(results["theta@-1"], expected) <= 1e-12


def test_gradients_by_the_observations_are_in_closed_form_too(problem, tmp_path):
    _, covariance, _ = problem
    tidu(f"tidu build samples/gaussian_process/gp.py:log_likelihood {INPUTS} | tidu hessian --wrt y {GIVEN} -o h.npz", tmp_path)
    assert norm_error(arrays(tmp_path / "h.npz")["out/y/y"], -np.linalg.inv(covariance)) <= 1e-12


@pytest.mark.check
def test_forward_and_reverse_hessians_agree_by_both_factorizations(tmp_path):
    hessians = []
    for function in ("log_likelihood", "by_determinant"):
        command = f"tidu build samples/gaussian_process/gp.py:{function} {INPUTS} | tidu hessian --wrt theta {GIVEN} -o h.npz"
        tidu(command, tmp_path)
        hessians.append(arrays(tmp_path / "h.npz")["out/theta/theta"])
    assert norm_error(hessians[0], hessians[1]) <= 1e-11
    assert norm_error(hessians[0], hessians[0].T) <= 1e-12
