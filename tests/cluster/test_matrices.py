"""Jacobians and Hessians by chunks of columns or rows: those of one process, bit for bit, and of the whole matrix at once."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tidu_cli as tidu
from tests.cli.running import ROOT, succeed
from tests.cluster.clusters import needs_dask

pytestmark = needs_dask


def save(document, folder):
    path = folder / "f.json"
    tidu.save(document, path)
    return path


def blocks(*words, out):
    """The blocks that a command writes, by key."""
    succeed(*words, "-o", out)
    with np.load(out) as archive:
        return {key: archive[key] for key in archive}


def assert_spread(command, client, folder, inputs, *words):
    """By chunks of one, three, and more than there are; on the cluster and here; and beside the matrix at once."""
    values = folder / "at.npz"
    np.savez(values, **inputs)
    words = (command, folder / "f.json", *words, "--inputs", values)
    whole = blocks(*words, out=folder / "whole.npz")
    assert whole
    for chunk in (1, 3, 1000):
        there = blocks(*words, "--scheduler", client.scheduler.address, "--chunk", chunk, out=folder / f"there{chunk}.npz")
        here = blocks(*words, "--chunk", chunk, out=folder / f"here{chunk}.npz")
        assert list(there) == list(here) == list(whole)
        for key, block in whole.items():
            assert (there[key].dtype, there[key].shape) == (block.dtype, block.shape)
            assert there[key].tobytes() == here[key].tobytes()
            np.testing.assert_allclose(there[key], block, rtol=1e-13, atol=1e-13)
    return whole


@pytest.mark.parametrize("mode", ["--forward", "--reverse"])
def test_jacobians(mode, client, tmp_path):
    document = tidu.trace(lambda x, w: {"a": np.sin(x @ w), "b": (x * x).sum(), "c": w * 2}, x="f64[2,3]", w="f64[3]")
    save(document, tmp_path)
    rng = np.random.default_rng(0)
    at = {"x": rng.normal(size=(2, 3)), "w": rng.normal(size=3)}
    matrices = assert_spread("jacobian", client, tmp_path, at, "--wrt", "x", "--wrt", "w", mode)
    np.testing.assert_allclose(matrices["b/x"], 2 * at["x"], rtol=1e-15)
    np.testing.assert_array_equal(matrices["c/w"], 2 * np.eye(3))
    assert not matrices["c/x"].any() and matrices["c/x"].shape == (3, 2, 3)


@pytest.mark.parametrize("mode", ["--forward", "--reverse"])
def test_complex_jacobians(mode, client, tmp_path):
    document = tidu.trace(lambda z: {"y": z * z[::-1] + np.exp(1j * z)}, z="c128[4]")
    save(document, tmp_path)
    z = np.array([1 + 2j, 0.5 - 1j, -1j, 0.25])
    matrices = assert_spread("jacobian", client, tmp_path, {"z": z}, "--wrt", "z", "--holomorphic", mode)
    due = np.diag(z[::-1]) + np.diag(z)[:, ::-1] + np.diag(1j * np.exp(1j * z))
    np.testing.assert_allclose(matrices["y/z"], due, rtol=1e-14)


def test_complex_numbers_of_real_ones(client, tmp_path):
    document = tidu.trace(lambda x: {"y": x * np.array([1 + 2j, 3j]) + x[0] * 1j}, x="f64[2]")
    save(document, tmp_path)
    matrices = assert_spread("jacobian", client, tmp_path, {"x": np.array([1.0, 2.0])}, "--wrt", "x")
    np.testing.assert_array_equal(matrices["y/x"], [[1 + 3j, 0], [1j, 3j]])


def test_hessians(client, tmp_path):
    document = tidu.trace(lambda x, y: {"f": (x**3).sum() * y + y**2}, x="f64[5]", y="f64[]")
    save(document, tmp_path)
    x = np.arange(1.0, 6)
    matrices = assert_spread("hessian", client, tmp_path, {"x": x, "y": np.array(2.0)}, "--wrt", "x", "--wrt", "y")
    np.testing.assert_allclose(matrices["f/x/x"], np.diag(12 * x), rtol=1e-14)
    np.testing.assert_allclose(matrices["f/x/y"], 3 * x**2, rtol=1e-14)


@pytest.mark.parametrize("mode", ["--forward", "--reverse"])
def test_jacobians_of_records(mode, client):
    ends = json.dumps({"a": {"x": 0, "y": 0}, "b": {"x": 3, "y": 4}})
    words = ("jacobian", ROOT / "samples" / "segment.json", "--wrt", "s", mode, "--set", f"s={ends}")
    whole = json.loads(succeed(*words))
    for chunk in (1, 3):
        there = json.loads(succeed(*words, "--chunk", chunk, "--scheduler", client.scheduler.address))
        assert there == json.loads(succeed(*words, "--chunk", chunk))
        assert there == whole
