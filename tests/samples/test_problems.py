"""Rosenbrock's function, the orbit and the network through the command line, against SciPy, NumPy and closed forms."""

from __future__ import annotations

import itertools
import json
import runpy
import sys

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess_prod

from tests.samples.running import SAMPLES, arrays, follow, norm_error, tidu


@pytest.mark.check
@pytest.mark.parametrize("sample", ["rosenbrock_1000", "ode", "network"])
def test_readme(sample, tmp_path):
    follow(sample, tmp_path)


# Rosenbrock's function.


def test_the_usual_starting_point():
    given = arrays(SAMPLES / "rosenbrock_1000" / "x.npz")
    np.testing.assert_array_equal(given["x"], np.tile([-1.2, 1], 500))
    np.testing.assert_array_equal(given["x@2"], 1 / np.arange(1, 1001))


@pytest.mark.check
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_rosenbrock(scale, tmp_path):
    random = np.random.default_rng(3)
    x, v = scale * random.normal(size=1000), random.normal(size=1000)
    np.savez(tmp_path / "x.npz", **{"x": x, "x@2": v})
    formula = "sum(100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)"
    tidu(f"tidu build '{formula}' -i x:f64[1000] -o f.json", tmp_path)
    tidu("tidu grad f.json --wrt x --value --inputs x.npz -o g.npz; tidu hvp f.json --wrt x --inputs x.npz -o h.npz", tmp_path)
    gradient, product = arrays(tmp_path / "g.npz"), arrays(tmp_path / "h.npz")
    assert gradient["y"] == pytest.approx(rosen(x), rel=1e-13)
    assert norm_error(gradient["x@-1"], rosen_der(x)) <= 1e-14
    assert norm_error(product["x@-1@2"], rosen_hess_prod(x, v)) <= 1e-14


# The orbit.


@pytest.fixture(scope="module")
def jacobians(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ode")
    tidu("tidu build samples/ode/kepler.py:orbit -i state:f64[4] -o orbit.msgpack", folder)
    for mode in ("forward", "reverse"):
        command = f"tidu jacobian orbit.msgpack --wrt state --{mode} --inputs samples/ode/state.json -o {mode}.npz"
        tidu(command, folder)
    return {mode: arrays(folder / f"{mode}.npz")["y/state"] for mode in ("forward", "reverse")}


@pytest.fixture(scope="module")
def start():
    return np.array(json.loads((SAMPLES / "ode" / "state.json").read_text())["state"])


@pytest.mark.check
def test_the_gradient_of_the_distance_is_a_row_of_the_jacobian(jacobians, start, tmp_path):
    command = "tidu build samples/ode/kepler.py:distance -i state:f64[4] | tidu grad --wrt state --value -o g.npz"
    tidu(f"{command} --inputs samples/ode/state.json", tmp_path)
    results = arrays(tmp_path / "g.npz")
    end = runpy.run_path(str(SAMPLES / "ode" / "kepler.py"))["orbit"](start)[:2]
    assert results["y"] == pytest.approx(np.linalg.norm(end), rel=1e-14)
    assert norm_error(results["state@-1"], end @ jacobians["forward"][:2] / np.linalg.norm(end)) <= 1e-12


@pytest.mark.check
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_orbit_is_differentiated_as_it_is_computed(jacobians, start, mode):
    """Against the product of the steps' Jacobians, each by a complex step, which has no error of truncation."""
    step = runpy.run_path(str(SAMPLES / "ode" / "kepler.py"))["orbit"]
    h, product = 2 * np.pi / 1000, np.eye(4)
    for _ in range(1000):
        columns = [step(start + 1e-30j * e, h, 1).imag / 1e-30 for e in np.eye(4)]
        product, start = np.transpose(columns) @ product, step(start, h, 1)
    assert norm_error(jacobians[mode], product) <= 1e-10


def test_orbit_obeys_keplers_third_law(jacobians, start):
    """The derivative of the exact flow over a period, 1 - 3 T z' (grad E)^T; the method's error, h^4 times derivatives, is 1e-5."""
    q, v = start[:2], start[2:]
    pull = q / np.linalg.norm(q) ** 3
    exact = np.eye(4) - 6 * np.pi * np.outer([*v, *-pull], [*pull, *v])
    assert 1e-9 < norm_error(jacobians["forward"], exact) <= 1e-5


def test_orbit_is_symplectic_within_the_error_of_the_method(jacobians):
    form = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    m = jacobians["forward"]
    assert np.max(np.abs(m.T @ form @ m - form)) <= 1e-5 * np.max(np.abs(m))


# The network.

KEYS = ("params.w1", "params.b1", "params.w2", "params.b2")


def backpropagated(params, images, labels, decay=1e-4):
    """Loss and gradient by hand."""
    w1, b1, w2, b2 = (params[key] for key in KEYS)
    x = images / 16
    hidden = np.tanh(x @ w1 + b1)
    scores = hidden @ w2 + b2
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    right = np.arange(len(labels)), labels
    loss = -np.log(probabilities[right]).mean() + decay / 2 * ((w1**2).sum() + (w2**2).sum())
    error = probabilities.copy()
    error[right] -= 1
    error /= len(labels)
    back = error @ w2.T * (1 - hidden**2)
    return loss, (x.T @ back + decay * w1, back.sum(axis=0), hidden.T @ error + decay * w2, error.sum(axis=0))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    types = ("f64[64,32]", "f64[32]", "f64[32,10]", "f64[10]")
    inputs = " ".join(f"-i {key}:{type_}" for key, type_ in zip(KEYS, types, strict=True))
    wrt = " ".join(f"--wrt {key}" for key in KEYS)
    source = f"samples/network/network.py:loss {inputs} -i images:u8[1797,64] -i labels:i64[1797]"
    tidu(f"tidu build {source} | tidu grad {wrt} --value -o gradient.json", folder)
    return folder


def test_network_gradient(network):
    files = [SAMPLES / "network" / name for name in ("data.npz", "params.npz")]
    data, params = map(arrays, files)
    tidu("tidu eval gradient.json --inputs samples/network/data.npz --inputs samples/network/params.npz -o out.npz", network)
    results, (loss, gradient) = arrays(network / "out.npz"), backpropagated(params, data["images"], data["labels"])
    assert results["y"] == pytest.approx(loss, rel=1e-13)
    for key, expected in zip(KEYS, gradient, strict=True):
        assert norm_error(results[f"{key}@-1"], expected) <= 1e-12, key


@pytest.mark.check
def test_descent_lowers_the_loss(network):
    printed = tidu(f"{sys.executable} samples/network/descend.py gradient.json --steps 4 -o trained.npz", network)
    losses = [float(line.rpartition(" ")[2]) for line in printed]
    assert len(losses) == 4 and all(b < a for a, b in itertools.pairwise(losses))
    data = arrays(SAMPLES / "network" / "data.npz")
    assert backpropagated(arrays(network / "trained.npz"), data["images"], data["labels"])[0] < losses[-1]


def test_digits_are_what_the_script_makes():
    made = runpy.run_path(str(SAMPLES / "network" / "make_data.py"))
    for file, make in (("data.npz", "make_data"), ("params.npz", "make_params")):
        stored, expected = arrays(SAMPLES / "network" / file), made[make]()
        assert {k: v.dtype for k, v in stored.items()} == {k: v.dtype for k, v in expected.items()}
        for key, array in expected.items():
            np.testing.assert_array_equal(stored[key], array, err_msg=key)
