"""The losses of samples/losses: their formulas, at numbers of any size, in f32 and f64, and gradients that are finite there."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

import tidu_cli as td
from tests.samples.running import SAMPLES

LOSSES = runpy.run_path(str(SAMPLES / "losses" / "losses.py"))


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def huber(e):
    return np.where(np.abs(e) < 1, e * e / 2, np.abs(e) - 0.5)


def cross_entropy(x, labels):
    counted = (labels >= 0) & (labels < x.shape[-1])
    chosen = np.take_along_axis(log_softmax(x), np.where(counted, labels, 0)[..., None], -1)[..., 0]
    return -np.sum(chosen * counted) / max(np.sum(counted), 1)


EXPECTED = {
    "mse": lambda x, y: np.mean((x - y) ** 2),
    "mae": lambda x, y: np.mean(np.abs(x - y)),
    "huber": lambda x, y: np.mean(huber(x - y)),
    "binary_cross_entropy": lambda x, y: np.mean(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))) - y * x),
    "cross_entropy": cross_entropy,
}


@pytest.mark.parametrize("scale", [1, 1e4])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", EXPECTED)
def test_losses_are_their_formulas(name, dtype, scale):
    rng = np.random.default_rng(0)
    x = (scale * rng.standard_normal((2, 5, 3))).astype({"f32": "f4", "f64": "f8"}[dtype])
    labels = np.array([[0, 2, -100, 1, 1], [2, 2, 0, 3, -1]])
    y = labels if name == "cross_entropy" else rng.random(x.shape).astype(x.dtype)
    loss = td.trace(LOSSES[name], f"{dtype}[2,5,3]", "i64[2,5]" if name == "cross_entropy" else f"{dtype}[2,5,3]")
    values = dict(zip(map(str, loss.inputs), (x, y), strict=True))
    given = td.evaluate(loss, values)["loss"]
    assert given.dtype == x.dtype
    np.testing.assert_allclose(given, EXPECTED[name](x.astype("f8"), y), 2e-6 if dtype == "f32" else 1e-12)
    (slope,) = td.evaluate(td.grad(loss, next(iter(values))), values).values()
    assert np.isfinite(slope).all() and np.abs(slope).max() > 0


def test_where_no_label_is_a_class_the_loss_is_zero():
    loss = td.trace(LOSSES["cross_entropy"], logits="f32[2,3]", labels="i64[2]")
    values = {"logits": np.ones((2, 3), "f4"), "labels": np.array([-100, 3])}
    assert td.evaluate(loss, values)["loss"] == 0
    assert not td.evaluate(td.grad(loss, "logits"), values)["logits@-1"].any()


@pytest.mark.parametrize("least", [-800, -np.inf])
@pytest.mark.parametrize(("dtype", "close"), [("f32", 2e-6), ("f64", 1e-12)])
def test_ctc_is_that_of_pytorch(dtype, close, least):
    """Repeated labels, with as much time as they take and less, padding, no labels, classes of probability 0, no path at all."""
    with np.load(SAMPLES / "pytorch" / "alignments.npz") as archive:
        values = dict(archive)
    expected, slope = values.pop("loss"), values.pop("slope")
    logits = np.where(values["logits"] == -800, least, values["logits"])  # whose slope torch has as NaN at -inf
    values["logits"] = logits.astype({"f32": "f4", "f64": "f8"}[dtype])
    types = {key: f"{'i64' if x.dtype.kind == 'i' else dtype}{list(x.shape)}".replace(" ", "") for key, x in values.items()}
    given = td.evaluate(td.grad(td.trace(LOSSES["ctc"], **types), "logits", value=True), values)
    assert given["loss"].dtype == values["logits"].dtype
    np.testing.assert_allclose(given["loss"], expected, close)
    np.testing.assert_allclose(given["logits@-1"], slope, 0, close)
