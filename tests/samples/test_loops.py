"""The samples with loops: the orbit, the Kalman filter and the LSTM, against loops that are unrolled and closed forms."""

from __future__ import annotations

import json
import runpy
import sys
from functools import partial

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import tidu_cli
from tests.samples.running import SAMPLES, arrays, follow, norm_error, tidu


def functions(sample, file, monkeypatch):
    """What a file of a sample defines, which imports its neighbours."""
    monkeypatch.setattr(sys, "path", [str(SAMPLES / sample), *sys.path])
    return runpy.run_path(str(SAMPLES / sample / file))


# The orbit.


@pytest.mark.check
def test_the_orbit_is_the_unrolled_one(monkeypatch):
    start = np.array(json.loads((SAMPLES / "ode" / "state.json").read_text())["state"])
    loop, kepler = functions("ode", "loops.py", monkeypatch), functions("ode", "kepler.py", monkeypatch)
    documents = [tidu_cli.trace(partial(some["orbit"], steps=200), "f64[4]") for some in (loop, kepler)]
    values = [tidu_cli.evaluate(d, state=start)["y"] for d in documents]
    assert norm_error(*values) <= 1e-12
    for reverse in (False, True):
        jacobian, expected = (
            tidu_cli.evaluate(tidu_cli.jacobian(d, "state", reverse=reverse), state=start)["y/state"] for d in documents
        )
        assert norm_error(jacobian, expected) <= 1e-12


def test_the_loop_is_as_long_for_any_number_of_steps(monkeypatch):
    orbit = functions("ode", "loops.py", monkeypatch)["orbit"]
    nodes = [tidu_cli.trace(partial(orbit, steps=n), "f64[4]").head.n_nodes for n in (10, 10_000)]
    assert nodes[0] == nodes[1] <= 2


@pytest.mark.check
def test_the_adaptive_orbit_obeys_keplers_third_law(tmp_path):
    """Its derivative, too, within a few hundred times the tolerance of a step, as errors add up and grow along the orbit."""
    build = "tidu build samples/ode/loops.py:adaptive_orbit -i state:f64[4]"
    tidu(f"{build} | tidu jacobian --forward --wrt state --inputs samples/ode/state.json -o j.npz", tmp_path)
    start = np.array(json.loads((SAMPLES / "ode" / "state.json").read_text())["state"])
    q, v = start[:2], start[2:]
    pull = q / np.linalg.norm(q) ** 3
    exact = np.eye(4) - 6 * np.pi * np.outer([*v, *-pull], [*pull, *v])
    assert norm_error(arrays(tmp_path / "j.npz")["y/state"], exact) <= 1e-5


def test_the_adaptive_orbit_is_the_loop_on_numbers(monkeypatch):
    start = np.array(json.loads((SAMPLES / "ode" / "state.json").read_text())["state"])
    orbit = functions("ode", "loops.py", monkeypatch)["adaptive_orbit"]
    state = tidu_cli.evaluate(tidu_cli.trace(orbit, "f64[4]"), state=start)["y"]
    assert norm_error(state, orbit(start)) <= 1e-12
    coarse, fine = (np.linalg.norm(orbit(start, tolerance=t) - start) for t in (1e-5, 1e-8))
    assert 1e-8 < fine < coarse / 50 < 1e-2


# The Kalman filter.


@pytest.fixture(scope="module")
def observed():
    data = json.loads((SAMPLES / "kalman" / "data.json").read_text())
    return np.array(data["theta"]), np.array(data["y"])


def covariances(n, monkeypatch):
    """Of all n places at once: of where the point begins, and of what pushes it with strength 1."""
    motion, push, seen = functions("kalman", "kalman.py", monkeypatch)["model"]()
    begins, pushed = np.zeros((n, 2, n, 2)), np.zeros((n, 2, n, 2))
    first, later = np.eye(4), np.zeros((4, 4))
    for k in range(n):
        from_first, from_later = first, later
        for j in range(k, n):
            for whole, part in ((begins, from_first), (pushed, from_later)):
                whole[j, :, k, :] = seen @ part @ seen.T
                whole[k, :, j, :] = whole[j, :, k, :].T
            from_first, from_later = motion @ from_first, motion @ from_later
        first, later = motion @ first @ motion.T, motion @ later @ motion.T + push
    return begins.reshape(2 * n, 2 * n), pushed.reshape(2 * n, 2 * n)


@pytest.mark.check
def test_the_filter_gives_the_density_of_all_observations(observed, monkeypatch, tmp_path):
    """They are normal together; the gradient is tr((a aT - 1/K) dK)/2 with a = K \\ y."""
    theta, y = observed
    begins, pushed = covariances(len(y), monkeypatch)
    strength, noise = np.exp(2 * theta)
    parts = [strength * pushed, noise * np.eye(2 * len(y))]
    whole = begins + sum(parts)
    build = "tidu build samples/kalman/kalman.py:log_likelihood -i theta:f64[2] -i y:f64[50,2] --output lp"
    tidu(f"{build} | tidu grad --wrt theta --value --inputs samples/kalman/data.json -o g.npz", tmp_path)
    results = arrays(tmp_path / "g.npz")
    assert results["lp"] == pytest.approx(multivariate_normal(cov=whole).logpdf(y.ravel()), rel=1e-12)
    inverse = np.linalg.inv(whole)
    a = inverse @ y.ravel()
    gradient = [np.sum((np.outer(a, a) - inverse) * part) for part in parts]
    assert norm_error(results["theta@-1"], np.array(gradient)) <= 1e-10


def test_the_data_are_what_the_script_makes(monkeypatch):
    made = functions("kalman", "make_data.py", monkeypatch)["make_data"]()
    assert json.loads((SAMPLES / "kalman" / "data.json").read_text()) == made


# The LSTM.


@pytest.mark.check
@pytest.mark.parametrize("steps", [8, 64, pytest.param(1024, marks=pytest.mark.campaign)])
def test_the_lstm_is_the_unrolled_one(steps, monkeypatch):
    given = arrays(SAMPLES / "adbench" / "data" / "lstm_l2_c1024.npz")
    types = {"main": "f64[4,56]", "extra": "f64[3,14]", "state": "f64[4,14]", "sequence": "f64[1024,14]"}
    at = {key: given[key] for key in types}
    loop, plain = (functions("adbench", f, monkeypatch)["objective"] for f in ("lstm_scan.py", "lstm.py"))
    document = tidu_cli.trace(partial(loop, steps=steps), **types)
    assert document.head.n_nodes < 40
    results = tidu_cli.evaluate(tidu_cli.grad(document, ["main", "extra"], value=True), at)
    assert results["y"] == pytest.approx(plain(**at, steps=steps), rel=1e-12)
    assert loop(**at, steps=steps) == pytest.approx(plain(**at, steps=steps), rel=1e-12)
    unrolled = tidu_cli.trace(partial(plain, steps=steps), **types)
    expected = tidu_cli.evaluate(tidu_cli.grad(unrolled, ["main", "extra"]), at)
    for key in ("main", "extra"):
        assert norm_error(results[f"{key}@-1"], expected[f"{key}@-1"]) <= 1e-11
        if steps == 8:
            assert norm_error(results[f"{key}@-1"], given[f"expect.grad.{key}"]) <= 1e-9


@pytest.mark.check
def test_readme(tmp_path):
    follow("kalman", tmp_path)
