"""Networks that PyTorch exported, trained by steps that are documents: losses and weights are those that PyTorch recorded."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import tidu_cli as td
from tests.cli.running import ROOT
from tests.programs import needs
from tidu_cli.adapters.onnx.writing.model import onnx_bytes

RECORDED = ROOT / "samples" / "pytorch"
NETWORKS = {
    "cnn_dynamo": ("cnn_dynamo", "pictures"),  # in evaluation mode
    "cnn_script": ("cnn_script", "pictures"),  # in training mode
    "gpt_dynamo": ("gpt", "counting"),
    "gpt_script": ("gpt", "counting"),
}
"""Of each exported network the name under which its losses are, and its data."""

RATES = {"sgd": 0.05, "momentum": 0.02, "adam": 1e-3, "adamw": 1e-3}
Step = Callable[[dict[str, Any]], dict[str, Any]]


@cache
def network(name: str, dtype: str) -> tuple[td.Document, dict[str, Any]]:
    """The cross entropy of a network, and its weights."""
    model = td.load_onnx(RECORDED / f"{name}.onnx", weights=True, cast=dtype)
    (logits,) = model.document.head.outputs
    labels = td.formula("y = convert(x[..., 0], i64)", x=logits.type).head.outputs[0].type
    loss = td.trace(runpy.run_path(str(ROOT / "samples/losses/losses.py"))["cross_entropy"], logits=logits.type, labels=labels)
    return td.compose(model.document, loss), dict(model.weights)


def weights_of(document: td.Document) -> list[str]:
    return [key for key in map(str, document.inputs) if key.endswith((".weight", ".bias"))]


def trained(name: str, optimizer: str, dtype: str, run: Callable[[td.Document], Step]) -> tuple[list[float], dict[str, Any]]:
    """The losses of twenty steps, and the weights after them."""
    document, weights = network(name, dtype)
    wrt = weights_of(document)
    step = run(td.step(document, wrt, (), optimizer, RATES[optimizer]))
    state, losses = weights | td.initial_state(document, wrt, optimizer, values=weights), []
    batches = dict(np.load(RECORDED / f"{NETWORKS[name][1]}.npz"))
    wide = {key: x.astype("f8") if x.dtype.kind == "f" and dtype == "f64" else x for key, x in batches.items()}
    for k in range(20):
        after = step({**{key: x[k % len(x)] for key, x in wide.items()}, **state})
        losses.append(float(after["loss"]))
        state |= {key: x for key, x in after.items() if key in state}
    return losses, {key: state[key] for key in wrt}


def by_numpy(document: td.Document) -> Step:
    return td.compile(document, engine="numpy")


def by_runtime(document: td.Document) -> Step:
    """The step as a model, in onnxruntime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(onnx_bytes(document), options, providers=["CPUExecutionProvider"])
    names, outputs = [i.name for i in session.get_inputs()], [o.name.removesuffix(":out") for o in session.get_outputs()]
    return lambda values: dict(zip(outputs, session.run(None, {name: values[name] for name in names}), strict=True))


@pytest.mark.parametrize("optimizer", RATES)
@pytest.mark.parametrize("name", NETWORKS)
def test_twenty_steps_are_those_of_pytorch(name: str, optimizer: str) -> None:
    """In f64 to the digits that the order of sums leaves; in f32 both round, PyTorch by some 1e-6."""
    recorded = json.loads((RECORDED / "losses.json").read_text())[NETWORKS[name][0]][optimizer]
    np.testing.assert_allclose(trained(name, optimizer, "f32", by_numpy)[0], recorded["f32"], 0, 1e-6)
    losses, weights = trained(name, optimizer, "f64", by_numpy)
    np.testing.assert_allclose(losses, recorded["f64"], 0, 1e-9)
    if optimizer == "adamw":  # rounded to f32
        stored = dict(np.load(RECORDED / f"{NETWORKS[name][0]}_adamw.npz"))
        for key, x in weights.items():
            np.testing.assert_allclose(x, stored[key], 1e-6, 2e-7, err_msg=key)


@needs("onnxruntime")
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_runs_in_onnxruntime(name: str, optimizer: str) -> None:
    recorded = json.loads((RECORDED / "losses.json").read_text())[NETWORKS[name][0]][optimizer]["f32"]
    np.testing.assert_allclose(trained(name, optimizer, "f32", by_runtime)[0], recorded, 0, 2e-6)
