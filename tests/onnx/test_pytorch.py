"""The models of samples/pytorch: derivatives are what torch computed, in double precision, and so are the losses of a descent."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

import tidu_cli as tidu
from tests.docs.blocks import ROOT

FOLDER = ROOT / "samples" / "pytorch"
DATA = {"cnn_dynamo": "pictures", "cnn_script": "pictures", "gpt_dynamo": "counting", "gpt_script": "counting"}
RECORDED = json.loads((FOLDER / "losses.json").read_text())

Arrays = dict[str, Any]


@cache
def arrays(name: str) -> Arrays:
    with np.load(FOLDER / f"{name}.npz") as archive:
        return dict(archive)


def trainable(name: str) -> tuple[tidu.Document, Arrays]:
    """A model in double precision whose parameters are inputs, and the values of these. Statistics stay constants."""
    loaded = tidu.load_onnx(FOLDER / f"{name}.onnx", cast="f64", weights=True)
    statistics = {key: x for key, x in loaded.weights.items() if key.endswith(("running_mean", "running_var", "centers"))}
    document = tidu.materialize(loaded.document, set=statistics) if statistics else loaded.document
    return document, {key: x for key, x in loaded.weights.items() if key not in statistics}


def molecule() -> Arrays:
    recorded = arrays("potential")
    return {key: recorded[key] for key in ("species", "pairs")} | {"positions": recorded["positions"].astype("f8")}


def require_close(value: Any, expected: Any, of: str = "") -> None:
    """But for constants such as pi / 5, which the exporters have in single precision."""
    np.testing.assert_allclose(value, expected, rtol=0, atol=1e-6 * np.abs(expected).max(), err_msg=of)


def test_forces_and_hessian_vector_products() -> None:
    recorded, document = arrays("potential"), tidu.load(FOLDER / "potential.onnx", cast="f64")
    forces = tidu.evaluate(tidu.grad(document, ["positions"], value=True), molecule())
    require_close(forces["energy"], recorded["energy"])
    require_close(-forces["positions@-1"], recorded["force"])
    product = tidu.evaluate(tidu.hvp(document, ["positions"]), molecule() | {"positions@2": recorded["direction"]})
    require_close(product["positions@-1@2"], recorded["product"])


def test_slopes_of_an_error_of_forces() -> None:
    """Reverse over reverse, by every parameter."""
    recorded, (document, weights) = arrays("potential"), trainable("potential")
    error = tidu.formula("sum((slope + force)**2)", slope="f64[6,3]", force="f64[6,3]")
    matching = tidu.compose(tidu.grad(document, ["positions"]), error)
    names = [key.removeprefix("slope ") for key in recorded if key.startswith("slope ")]
    slopes = tidu.evaluate(tidu.grad(matching, names), molecule() | weights | {"force": recorded["direction"]})
    assert len(slopes) == len(names) == 9
    for name in names:
        require_close(slopes[f"{name}@-2"], recorded[f"slope {name}"], name)


@pytest.mark.parametrize("rate", [16000, 8000])
@pytest.mark.parametrize("exporter", ["script", "dynamo"])
def test_a_detector_of_voices_with_a_branch_for_each_rate(exporter: str, rate: int) -> None:
    """First derivatives by sound, state and parameters, and second ones by sound, at sizes that the file leaves open."""
    recorded, name = arrays("voice"), "at16k" if rate == 16000 else "at8k"
    loaded = tidu.load_onnx(FOLDER / f"voice_{exporter}.onnx", cast="f64", weights=True)
    point = {**loaded.weights, **{key: recorded[key] for key in ("x", "state")}, "rate": np.asarray(rate)}
    values = tidu.evaluate(loaded.document, point)
    require_close(values["chance"], recorded[f"{name} chance"])
    require_close(values["next"], recorded[f"{name} state"])
    along = point | {"chance@-1": np.ones((3, 1)), "x@2": recorded["direction"]}
    gradient = tidu.vjp(loaded.document, ["x"], "chance")
    product = tidu.evaluate(tidu.jvp(gradient, ["x"], "x@-1"), along)
    require_close(product["x@-1@2"], recorded[f"{name} product"])
    slopes = {key.removeprefix(f"{name} slope "): x for key, x in recorded.items() if key.startswith(f"{name} slope ")}
    kept = [
        key for key in slopes if exporter == "dynamo" or ".rnn." not in key
    ]  # of TorchScript's LSTM they are constants of nodes
    assert (len(slopes), len(kept)) in ((14, 14), (14, 10))
    found = tidu.evaluate(tidu.vjp(loaded.document, kept, "chance"), along)
    for key in kept:
        require_close(found[f"{key}@-1"], slopes[key], key)


def cross_entropy(logits: Any, labels: Any) -> Any:
    chosen = np.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    return np.mean(logsumexp(logits, axis=-1) - chosen)


@pytest.mark.parametrize("name", DATA)
def test_a_descent_has_the_losses_of_torch(name: str) -> None:
    """Batch norm by its statistics and, in `cnn_script`, by the batch; a tied embedding; both forms of GELU."""
    (document, weights), data = trainable(name), arrays(DATA[name])
    labels = data["labels"].shape[1:]
    classes = 3 if labels == (16,) else 12
    loss = tidu.trace(
        cross_entropy, logits=f"f64[{','.join(map(str, (*labels, classes)))}]", labels=f"i64[{','.join(map(str, labels))}]"
    )
    slopes = tidu.materialize(tidu.grad(tidu.compose(document, loss), list(weights), value=True))
    expected = RECORDED.get(name, RECORDED["gpt"])["sgd"]["f64"]
    for step in range(RECORDED["steps"]):
        results = tidu.evaluate(slopes, weights | {key: x[step % len(x)] for key, x in data.items()})
        require_close(results["y"], expected[step], f"step {step}")
        weights = {key: x - 0.05 * results[f"{key}@-1"] for key, x in weights.items()}
