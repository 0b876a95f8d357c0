"""Networks that PyTorch exported, trained by steps that are documents: losses and weights are those that PyTorch recorded."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

import tidu_cli as td
from tests.cli.running import ROOT, invoke, succeed
from tests.peaks import peak
from tests.programs import needs
from tidu_cli.adapters.onnx.weights import taken_apart, with_weights
from tidu_cli.adapters.onnx.writing.model import files_of, onnx_bytes

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


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_weights_go_back_into_the_model(dtype: str, tmp_path: Path) -> None:
    """The model is what it was but for them, and computes what the document computes with them."""
    name = "cnn_dynamo"
    losses, weights = trained(name, "adam", dtype, by_numpy)
    model = RECORDED / f"{name}.onnx"
    td.save_weights(model, {"step": 20, "loss": losses[-1], **weights, "mu.head.bias": np.zeros(3)}, tmp_path / "trained.onnx")
    before, after = (onnx.load(path) for path in (model, tmp_path / "trained.onnx"))
    stored = {t.name: onnx.numpy_helper.to_array(t) for t in after.graph.initializer}
    for t in before.graph.initializer:
        array = onnx.numpy_helper.to_array(t)
        np.testing.assert_array_equal(stored[t.name], weights.get(t.name, array).astype(array.dtype))
    for graph in (before.graph, after.graph):
        graph.ClearField("initializer")
    assert before == after
    images = np.load(RECORDED / "pictures.npz")["images"][0]
    reread = td.evaluate(td.load(tmp_path / "trained.onnx"), images=images)["logits"]
    document, _ = network(name, "f32")
    labels = np.argmax(reread, -1)
    expected = td.evaluate(document, {**stored, "images": images, "labels": labels})["loss"]
    shifted = reread - reread.max(-1, keepdims=True)
    assert np.isclose(np.mean(np.log(np.exp(shifted).sum(-1)) - shifted.max(-1)), expected, 1e-5)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"head.wieght": np.ones((3, 8))}, "has no initializer 'head.wieght'; did you mean 'head.weight'? (it has conv1.weight, "),
        ({"head.weight": np.ones((8, 3))}, "initializer 'head.weight': is f32[3,8], and the value is f64[8,3]"),
        ({"head.bias": np.ones(3, "c8")}, "initializer 'head.bias': is f32[3], and the value is c64[3]"),
        ({"step": 3, "mu.head.bias": np.ones(3)}, "none of the values is of an initializer (it has conv1.weight, "),
        ({"head.bias": np.ones(3), "x": np.ones(3)}, "has no initializer 'x' (it has conv1.weight, "),
    ],
)
def test_what_does_not_fit_is_not_written(values: dict[str, Any], says: str, tmp_path: Path) -> None:
    model = RECORDED / "cnn_dynamo.onnx"
    (tmp_path / "old.onnx").write_bytes(model.read_bytes())
    with pytest.raises(td.TiduError) as refused:
        td.save_weights(model, values, tmp_path / "old.onnx")
    assert str(refused.value).startswith(f"{model}: {says}")
    assert (tmp_path / "old.onnx").read_bytes() == model.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["old.onnx"]


def test_large_weights_lie_beside_the_model() -> None:
    data = (RECORDED / "cnn_dynamo.onnx").read_bytes()
    written, beside = files_of(onnx.load_from_string(data), "m.data", most=1)
    assert all(t.external_data for t in onnx.load_from_string(written).graph.initializer if t.dims and np.prod(t.dims) >= 256)
    assert len(beside) == sum(4 * np.prod(t.dims) for t in onnx.load_from_string(data).graph.initializer if np.prod(t.dims) >= 256)


def test_a_model_may_be_written_over_itself(tmp_path: Path) -> None:
    """As documents are replaced by documents; the values are not."""
    model = tmp_path / "model.onnx"
    model.write_bytes((RECORDED / "cnn_dynamo.onnx").read_bytes())
    np.savez(tmp_path / "w.npz", **{"head.bias": np.ones(3, "f4")})
    succeed("convert", model, "--weights-from", tmp_path / "w.npz", "-o", model)
    (bias,) = (t for t in onnx.load(model).graph.initializer if t.name == "head.bias")
    assert onnx.numpy_helper.to_array(bias).tolist() == [1, 1, 1]
    (tmp_path / "w.json").write_text('{"head.bias": [2, 2, 2]}')
    (tmp_path / "w").symlink_to("w.json")
    result = invoke("convert", model, "--weights-from", tmp_path / "w", "-o", tmp_path / "w")
    assert result.exit_code and (tmp_path / "w.json").read_text() == '{"head.bias": [2, 2, 2]}'


LARGE = {name: np.arange(1024, dtype="f4").reshape(32, 32) * k for k, name in enumerate(("u", "v", "w"), 1)}


def large(folder: Path, external: bool = False, opset: int = 17, n: int = 32) -> Path:
    """A model of three weights, in its file or beside it."""
    weights = [onnx.numpy_helper.from_array(np.resize(x, (n, n)), name) for name, x in LARGE.items()]
    nodes = [onnx.helper.make_node("Sum", ["x", *LARGE], ["y"])]
    ports = [onnx.helper.make_tensor_value_info(name, 1, [n, n]) for name in ("x", "y")]
    graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(proto, folder / "large.onnx", save_as_external_data=external, location="large.data", size_threshold=64)
    return folder / "large.onnx"


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize(("opset", "most"), [(6, 2**31), (17, 2**31), (17, 1)])
def test_weights_of_any_size_are_put_where_they_belong(external: bool, opset: int, most: int, tmp_path: Path) -> None:
    """In one file or two, also if the model is of an old opset, and whether its data lie in it."""
    model = large(tmp_path, external, opset)
    expected = LARGE | {"v": np.random.default_rng(0).normal(size=(32, 32))}
    written, left_out = with_weights(model.read_bytes(), "m", str(model), {"v": expected["v"], "step": 1}, "other.data", most)
    (tmp_path / "other.onnx").write_bytes(b"".join(written.pieces))
    assert left_out == ["step"] and (written.beside is None) == (most > 1)
    (tmp_path / "other.data").write_bytes(b"".join(written.beside or ()))
    proto = onnx.load(tmp_path / "other.onnx")
    onnx.checker.check_model(proto)
    assert [t.name for t in proto.graph.initializer] == ["u", "v", "w"]
    for t in proto.graph.initializer:
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(t), expected[t.name].astype("f4"))
    assert proto.graph.node == onnx.load(model).graph.node


def test_weights_may_be_nests(tmp_path: Path) -> None:
    """As values of records are; also in files, where arrays may be typed."""
    graph = onnx.load(RECORDED / "cnn_dynamo.onnx")
    expected = {
        t.name: onnx.numpy_helper.to_array(t) + np.float32(1) for t in graph.graph.initializer if t.name.startswith("head.")
    }
    nest = {"head": {name.partition(".")[2]: x for name, x in expected.items()}}
    td.save_weights(RECORDED / "cnn_dynamo.onnx", {**nest, "mu": nest, "step": 3}, tmp_path / "nest.onnx")
    typed = {
        "head": {"bias": {"type": "f32[3]", "data": expected["head.bias"].tolist()}, "weight": expected["head.weight"].tolist()}
    }
    (tmp_path / "w.json").write_text(json.dumps(typed))
    succeed("convert", RECORDED / "cnn_dynamo.onnx", "--weights-from", tmp_path / "w.json", "-o", tmp_path / "json.onnx")
    for name in ("nest", "json"):
        stored = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(tmp_path / f"{name}.onnx").graph.initializer}
        for key, x in expected.items():
            np.testing.assert_array_equal(stored[key], x)


def test_weights_are_not_copied(tmp_path: Path) -> None:
    """Beside the values that are given there is the file that is read, once, and what reading allots in advance."""
    model = large(tmp_path, n=1024)
    weights = {name: np.zeros((1024, 1024), "f4") for name in LARGE}
    assert peak(lambda: td.save_weights(model, weights, tmp_path / "other.onnx")) < 1.4 * model.stat().st_size
    assert not any(onnx.numpy_helper.to_array(t).any() for t in onnx.load(tmp_path / "other.onnx").graph.initializer)


def test_what_is_damaged_is_refused_whole(tmp_path: Path) -> None:
    """Wherever it ends, and where it holds two graphs, which protobuf would join."""
    data = large(tmp_path).read_bytes()
    rest, taken = taken_apart(data)
    assert set(taken) == set(LARGE) and len(rest) < len(data) - sum(map(len, taken.values()))
    for broken in [*(data[:n] for n in range(1, len(data), 97)), data + data]:
        with pytest.raises(td.TiduError):
            with_weights(broken, "m", None, {"v": LARGE["v"]}, None)
