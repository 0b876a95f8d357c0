"""Statistics that batch norms in training mode update: outputs by their names, which a step's loop feeds back."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx.parser import parse_model

import tidu_cli as td
from tests.cli.running import ROOT
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.reading.importer import import_model
from tidu_cli.errors import ArgumentError

RECORDED = ROOT / "samples" / "pytorch"
STATISTICS = [f"norm{k}.running_{what}" for k in (1, 2) for what in ("mean", "var")]


def test_a_loop_of_steps_leaves_the_statistics_of_pytorch(tmp_path: Path) -> None:
    """But for the variance, which ONNX updates by that of the batch, and PyTorch by n / (n - 1) of it."""
    model = td.load_onnx(RECORDED / "cnn_script.onnx", weights=True, statistics=True)
    assert [str(o.key) for o in model.document.head.outputs] == ["logits", *STATISTICS] and not model.notes
    cross_entropy = runpy.run_path(str(ROOT / "samples/losses/losses.py"))["cross_entropy"]
    document = td.compose(model.document, td.trace(cross_entropy, logits="f32[16,3]", labels="i64[16]"))
    wrt = [key for key in map(str, document.inputs) if key.endswith((".weight", ".bias"))]
    first = {key: np.full_like(x, "var" in key) for key, x in model.weights.items() if key in STATISTICS}  # as before the export
    state = td.initial_state(document, wrt, "adamw", values={**model.weights, **first})
    step = td.compile(td.step(document, wrt, optimizer="adamw", lr=1e-3), engine="numpy")
    pictures, losses = np.load(RECORDED / "pictures.npz"), []
    for k in range(20):
        after = step({**state, "images": pictures["images"][k % 4], "labels": pictures["labels"][k % 4]})
        state = {key: after[key] for key in state}
        losses.append(float(after["loss"]))
    recorded = json.loads((RECORDED / "losses.json").read_text())["cnn_script"]["adamw"]["f32"]
    np.testing.assert_allclose(losses, recorded, 0, 1e-6)
    torch = np.load(RECORDED / "cnn_script_adamw.npz")
    for k, n in ((1, 16 * 8 * 8), (2, 16 * 4 * 4)):
        mean, variance = (state[f"norm{k}.running_{what}"] for what in ("mean", "var"))
        np.testing.assert_allclose(mean, torch[f"norm{k}.running_mean"], 0, 2e-6)
        unbiased = 0.9**20 + (variance - 0.9**20) * n / (n - 1)
        np.testing.assert_allclose(unbiased, torch[f"norm{k}.running_var"], 0, 2e-6)
    td.save_weights(RECORDED / "cnn_script.onnx", state, tmp_path / "trained.onnx")
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(tmp_path / "trained.onnx").graph.initializer}
    assert all((stored[key] == state[key]).all() for key in STATISTICS)


NORM = "BatchNormalization <training_mode = 1, momentum = 0.75>"
HEAD = """<ir_version: 10, opset_import: ["": 18]> m (float[4,2] x) => (OUT)
    <float[2] w = {1, 2}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1}>"""
TWICE = HEAD.replace("OUT", "float[4,2] z") + "{ y, m1, v1 = NORM (x, w, b, m, v)  z, m2, v2 = NORM (y, w, b, $m, $v) }"


def read(text: str, second: tuple[str, str] = ("", ""), **choices: Any) -> Any:
    text = text.replace("NORM", NORM).replace("$m", second[0]).replace("$v", second[1])
    return import_model(parse_model(text), Choices.of(weights=True, **choices))


X = np.arange(8, dtype="f4").reshape(4, 2) ** 2


def test_outputs_that_are_such_have_the_names_of_weights() -> None:
    """In the place that they have."""
    text = HEAD.replace("OUT", "float[2] new, float[4,2] y") + "{ y, new, v1 = NORM (x, w, b, m, v) }"
    told = read(text)
    assert [str(o.key) for o in told.document.head.outputs] == ["new", "y"]
    assert told.notes == ("it updates m, v; statistics=True makes outputs of their new values",)
    fresh = read(text, statistics=True)
    assert [str(o.key) for o in fresh.document.head.outputs] == ["m", "y", "v"] and not fresh.notes
    values = td.evaluate(fresh.document, {"x": X, **fresh.weights})
    np.testing.assert_allclose(values["m"], 0.25 * X.mean(0), 1e-6)
    np.testing.assert_allclose(values["v"], 0.75 + 0.25 * X.var(0), 1e-6)


def test_what_is_updated_twice_in_turn_has_its_last_value() -> None:
    document = read(TWICE, ("m1", "v1"), statistics=True).document
    values = td.evaluate(
        document, {"x": X, "w": np.array([1, 2], "f4"), "b": np.ones(2, "f4"), "m": np.zeros(2, "f4"), "v": np.ones(2, "f4")}
    )
    np.testing.assert_allclose(values["m"], 0.75 * 0.25 * X.mean(0) + 0.25 * np.ones(2), 1e-5)


def test_what_two_nodes_update_is_left_and_told() -> None:
    """As exporters make one tensor of statistics that begin alike."""
    shared = read(TWICE, ("m", "v"), statistics=True)
    assert [str(o.key) for o in shared.document.head.outputs] == ["z"]
    assert shared.notes == ("statistics=True changes nothing: one weight is that of several nodes",)
    partly = read(TWICE, ("m", "v1"), statistics=True)
    assert [str(o.key) for o in partly.document.head.outputs] == ["z", "v"]
    assert partly.notes == ("several nodes update m, which is therefore not an output; export each with a value of its own",)


def test_a_model_that_updates_nothing_says_so() -> None:
    text = HEAD.replace("OUT", "float[4,2] y") + "{ y = BatchNormalization (x, w, b, m, v) }"
    assert read(text, statistics=True).notes == ("statistics=True changes nothing: it updates no weights",)
    assert not read(text).notes
    with pytest.raises(ArgumentError, match="statistics=True goes with weights=True"):
        Choices.of(statistics=True)
