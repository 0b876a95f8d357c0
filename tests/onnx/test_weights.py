"""Weights of models: which an exporter made by folding constants, those that are left out, and values that derivatives stop at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.parser import parse_model

import tidu_cli
from tests.onnx.models import model
from tidu_cli.adapters.onnx.reading.inputs import folded
from tidu_cli.errors import DocumentError, UnknownNameError
from tidu_cli.notes import heard_by
from tidu_cli.port_data import Imported

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 4)).astype("f4")
V = RNG.normal(size=(4, 3)).astype("f4")


def net(folder: Any) -> str:
    """sum(tanh(x g.w) val_14), where val_14 is g.w's transpose, as of tied weights that were folded."""
    nodes = [
        helper.make_node("MatMul", ["x", "g.w"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("MatMul", ["t", "val_14"], ["s"]),
        helper.make_node("ReduceSum", ["s"], ["score"], keepdims=1),
    ]
    weights = [numpy_helper.from_array(x, name) for name, x in (("g.w", W), ("val_14", W.T.copy()))]
    path = folder / "net.onnx"
    path.write_bytes(model(nodes, [("x", [1, 3])], [("score", [1, 1])], initializer=weights).SerializeToString())
    return str(path)


X = np.array([[0.5, -1, 2]], "f4")


def test_what_folding_made_is_told_and_what_a_pattern_leaves(tmp_path) -> None:
    read = tidu_cli.load_onnx(net(tmp_path), weights=True)
    assert read.notes == (
        "the exporter made 1 weight of parameters: val_14 (a transpose of g.w); to differentiate by these, name them with wrt, or "
        "export the model without folding constants",
    )
    heard: list[str] = []
    with heard_by(heard.append):
        gradient = tidu_cli.grad(read.document, "g.*")
    assert heard == ["wrt takes 1 of 2 parameters and leaves 1: val_14"]
    assert [str(o.key) for o in gradient.head.outputs] == ["g.w@-1"]


def test_a_score_with_axes_is_a_number(tmp_path) -> None:
    gradient = tidu_cli.grad(tidu_cli.load(net(tmp_path)), "x", value=True)
    values = tidu_cli.evaluate(gradient, x=X)
    assert values["score"].shape == (1, 1)
    np.testing.assert_allclose(values["score"], np.sum(np.tanh(X @ W) @ W.T), rtol=1e-5)
    slope = (1 - np.tanh(X @ W) ** 2) * W.sum(axis=0)
    np.testing.assert_allclose(values["x@-1"], slope @ W.T, rtol=1e-5)


@pytest.mark.parametrize("wrt", ["g.*", "g.w", "g"])
def test_weights_that_are_constants_are_named(tmp_path, wrt) -> None:
    with pytest.raises(UnknownNameError, match=r"weights of the model are constants: g\.w; load_onnx\(MODEL, weights=True\) makes"):
        tidu_cli.grad(tidu_cli.load(net(tmp_path)), wrt)


def test_with_weights_nothing_is_said_of_constants(tmp_path) -> None:
    document = tidu_cli.load_onnx(net(tmp_path), weights=True).document
    assert document.head.meta == {"onnx": {"producer": "tests"}}
    with pytest.raises(UnknownNameError, match=r"\(inputs: g.w, val_14, x\)$"):
        tidu_cli.grad(document, "f.*")


@pytest.mark.parametrize(
    ("made", "how"),
    [
        (W.T.copy(), "a transpose"),
        (W.reshape(2, 6), "a reshape"),
        (W.astype("f8"), "a cast"),
        (W.astype("f2"), "a cast"),
        (W.astype("f8").T.copy(), "a transpose"),
        (np.asfortranarray(W), "a copy"),
    ],
)
@pytest.mark.parametrize("name", ["other", "val_3", "onnx::MatMul_27"])
def test_relations_are_recognised(made, how, name) -> None:
    for weights in ({"g.w": W, "v": V, name: made}, {name: made, "v": V, "g.w": W}):
        (told,) = folded(weights)
        first, _, last = weights
        derived, origin = (last, first) if name == "other" else (name, "g.w")  # a name that was made up, or the later one
        assert f": {derived} ({how} of {origin});" in told


def test_higher_ranks_are_turned_too() -> None:
    kernel = RNG.normal(size=(2, 3, 4, 5)).astype("f4")
    (told,) = folded({"k": kernel, "j": kernel.transpose(2, 3, 1, 0)})
    assert "j (a transpose of k)" in told


def test_other_weights_are_not_taken_for_folded_ones() -> None:
    rolled = np.roll(W, 1)  # the same numbers in another order
    assert folded({"w": W, "v": V, "rolled": rolled, "zeros": np.zeros(5, "f4"), "other": np.zeros(5, "f4"), "one": W[0, :1]}) == []
    assert folded({"none": W[:0], "nothing": W[:0]}) == []
    nans = np.full((2, 2), np.nan, "f4")
    assert folded({"nans": nans, "others": nans.copy(), "validate_3": W, "fc.val_3": V}) == []


@pytest.mark.parametrize("alike", [False, True])
def test_many_weights_of_one_size_are_compared_in_linear_time(monkeypatch, alike) -> None:
    """What may be the same has the same sum of bits; of those that have, each is compared with a few."""
    compared = []
    monkeypatch.setattr("tidu_cli.adapters.onnx.reading.inputs._relation", lambda *arrays: compared.append(arrays))
    weights = {f"w{k}": RNG.permutation(W) if alike else RNG.normal(size=(8, 8)).astype("f4") for k in range(300)}
    assert folded(weights) == []
    assert len(compared) <= (300 * 16 if alike else 0)


def loaded(folder: Any, stop: Any, **options: Any) -> Imported:
    return tidu_cli.load_onnx(net(folder), stop=stop, **options)


def test_derivatives_stop_at_a_value(tmp_path) -> None:
    read = loaded(tmp_path, "t", weights=True)
    gradient = tidu_cli.grad(read.document, ["g.w", "val_14"])
    values = tidu_cli.evaluate(gradient, x=X, **read.weights)
    assert not values["g.w@-1"].any()
    np.testing.assert_allclose(values["val_14@-1"], np.repeat(np.tanh(X @ W).T, 3, axis=1), rtol=1e-5)
    at = {"x": X, **read.weights}
    plain = tidu_cli.load_onnx(net(tmp_path), weights=True).document
    assert tidu_cli.evaluate(read.document, at) == tidu_cli.evaluate(plain, at)


@pytest.mark.parametrize("name", ["x", "g.w", "h", "t", "s", "score"])
def test_they_stop_at_inputs_weights_and_outputs_too(tmp_path, name) -> None:
    read = loaded(tmp_path, [name], weights=True)
    names = ["x", "g.w", "val_14"]
    values = tidu_cli.evaluate(tidu_cli.grad(read.document, names), x=X, **read.weights)
    before = {"x": ["x"], "g.w": ["g.w"], "h": ["x", "g.w"], "t": ["x", "g.w"]}.get(name, names)
    assert [key for key in names if not values[f"{key}@-1"].any()] == before


def test_a_name_that_is_not_there_has_a_hint(tmp_path) -> None:
    with pytest.raises(DocumentError, match=r"graph 'g': has no value 'scor' to stop derivatives at; did you mean 'score'\?"):
        loaded(tmp_path, ["h", "scor"])


def test_sizes_may_depend_on_what_they_stop_at(tmp_path) -> None:
    """Their numbers stay known."""
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest"),
        helper.make_node("ReduceSum", ["y"], ["score"], keepdims=0),
    ]
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], "f4"), "scales")
    path = tmp_path / "resize.onnx"
    path.write_bytes(model(nodes, [("x", [1, 1, 2, 2])], [("score", [])], initializer=[scales]).SerializeToString())
    document = tidu_cli.load_onnx(path, weights=True, stop="scales").document
    x = np.ones((1, 1, 2, 2), "f4")
    assert tidu_cli.evaluate(tidu_cli.grad(document, "x"), {"x": x, "scales": np.array([1, 1, 2, 2], "f4")})["x@-1"].tolist() == [
        [[[4, 4], [4, 4]]]
    ]


def test_tokens_are_refused_and_a_cut_is_the_way(tmp_path) -> None:
    nodes = [
        helper.make_node("Gather", ["table", "tokens"], ["embedded"]),
        helper.make_node("ReduceSum", ["embedded"], ["score"], keepdims=0),
    ]
    inputs = [("tokens", [2], TensorProto.INT64)]
    path = tmp_path / "tokens.onnx"
    made = model(nodes, inputs, [("score", [])], initializer=[numpy_helper.from_array(W, "table")])
    path.write_bytes(made.SerializeToString())
    with pytest.raises(tidu_cli.TiduError, match=r"input 'tokens', i64\[2\], is zero.*\(gather\).*load_onnx\(MODEL, cut=NAME\)"):
        tidu_cli.grad(tidu_cli.load(path), "tokens")
    assert [str(o.key) for o in tidu_cli.grad(tidu_cli.load_onnx(path, cut="embedded").document, "embedded").head.outputs]


INNER = """<ir_version: 10, opset_import: ["": 18]> m (float[2] x, bool which) => (float y)
{
    yes = Constant <value = bool {1}> ()
    n = Constant <value = int64 {3}> ()
    z = Loop <body = b (int64 i, bool c, float[2] v) => (bool c2, float[2] w) {
        c2 = Identity (c)  u = Sin (v)  w = Mul (u, x) }> (n, yes, x)
    q = If (which) <then_branch = t () => (float[2] a) { s = Sin (z)  a = Mul (s, x) },
        else_branch = e () => (float[2] b) { s = Cos (z)  b = Mul (s, x) }>
    y = ReduceSum <keepdims = 0> (q)
}"""


@pytest.mark.parametrize("name", ["u", "steps/body/u", "v", "q/then_branch/s", "a", "q/else_branch/s"])
def test_they_stop_within_loops_and_branches(name, tmp_path) -> None:
    """By a name that no other value has, or by node, attribute and name."""
    proto = parse_model(INNER)
    proto.graph.node[2].name = "steps"
    path = tmp_path / "inner.onnx"
    path.write_bytes(proto.SerializeToString())
    x = np.array([1, 2], "f4")
    (slope,) = tidu_cli.evaluate(tidu_cli.grad(tidu_cli.load_onnx(path, stop=name).document, "x"), x=x, which=True).values()
    last = x * np.sin(x * np.sin(x * np.sin(x)))  # z, with its steps from within
    before = x * np.sin(x * np.sin(x))
    whole = np.sin(before) + x * np.cos(before) * (np.sin(x * np.sin(x)) + x * np.cos(x * np.sin(x)) * (np.sin(x) + x * np.cos(x)))
    step = np.sin(before)  # of z by the x that each step multiplies by
    held = {"u": step, "v": step, "steps/body/u": step, "q/else_branch/s": whole}
    expected = {"q/then_branch/s": np.sin(last), "a": 0 * x}.get(name)
    if expected is None:
        expected = np.sin(last) + x * np.cos(last) * held[name]
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_a_name_of_several_values_within_nodes_is_refused(tmp_path) -> None:
    path = tmp_path / "inner.onnx"
    path.write_bytes(parse_model(INNER).SerializeToString())
    told = r"has 2 values 's' to stop derivatives at, within nodes; name one as 'q/then_branch/s', 'q/else_branch/s'"
    with pytest.raises(DocumentError, match=told):
        tidu_cli.load_onnx(path, stop="s")


CONSTANTS = """<ir_version: 10, opset_import: ["": 18]> m (float[2] x) => (float y) INITIALIZERS
{
    w = Constant <value = float[2] {3, 4}> ()
    one = Constant <value = float {1}> ()
    axes = Constant <value = int64[2] {0, 1}> ()
    u = Mul (w, x)
    v = Add (u, B)
    y = ReduceSum <keepdims = 0> (v)
}"""


@pytest.mark.parametrize("has_weights", [False, True])
def test_parameters_in_nodes_are_counted(tmp_path, has_weights) -> None:
    """Where weights are made inputs, and where one is asked for; numbers, and integers, are no parameters."""
    text = CONSTANTS.replace("INITIALIZERS", "<float[2] b = {1, 2}>" if has_weights else "")
    path = tmp_path / "m.onnx"
    path.write_bytes(parse_model(text.replace("B", "b" if has_weights else "one")).SerializeToString())
    none = "" if has_weights else "it has no initializers of floats, and so no weights; "
    told = f"{none}1 tensor of floats, 2 numbers in all, is a constant of nodes: w; cut=NAME makes an input of one"
    read = tidu_cli.load_onnx(path, weights=True)
    assert read.notes == (told,)
    for document in (read.document, tidu_cli.load(path)):
        with pytest.raises(
            UnknownNameError, match=r"nodes of the model have constants w; load_onnx\(MODEL, cut='w'\) makes an input"
        ):
            tidu_cli.grad(document, "w")
    cut = tidu_cli.load_onnx(path, cut="w", weights=has_weights)
    assert not cut.notes and str(tidu_cli.grad(cut.document, "w").head.outputs[0].key) == "w@-1"
