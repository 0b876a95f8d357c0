"""Functions in files: their inputs, and what cannot be traced is told with its place."""

from __future__ import annotations

import numpy as np
import pytest

import tidu_cli
from tests.build.comparing import run
from tidu_cli.build.tracing import build_function
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import parse_type

MODEL = """import math
from dataclasses import dataclass

import numpy as np

print("to standard error")


@dataclass
class Params:
    w: object
    b: object


def affine(params: Params, x, scale=2.0):
    return (params.w @ x + params.b) * scale


def mlp(layers, x):
    for layer in layers:
        x = np.tanh(layer["w"] @ x + layer["b"])
    return {"out": x, "norm": np.linalg.norm(x)}


def branch(x):
    if x > 0:
        return x
    return -x


def number(x):
    return math.sin(x)


def unknown(x):
    return np.linalg.inv(x)


def assigned(x):
    y = np.zeros(3)
    y[0] = x
    return y


def changed(x):
    x[0] = 1.0
    return x


def inplace(x):
    y = np.zeros(3)
    y += x
    return y


def made(x):
    return np.array([x, x])


def masked(x):
    return x[x > 0]


def exits(x):
    raise SystemExit(3)


def nothing(x):
    pass
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)


def build(name, **types):
    return build_function(f"model.py:{name}", {k.replace("_", "."): parse_type(t) for k, t in types.items()})


@pytest.mark.usefixtures("model")
def test_a_dataclass_and_a_default(capfd):
    document = build("affine", params_w="f64[2,3]", params_b="f64[2]", x="f64[3]")
    assert [str(i.key) for i in document.head.inputs] == ["params.w", "params.b", "x"]
    values = {"params.w": np.ones((2, 3)), "params.b": np.ones(2), "x": np.ones(3)}
    assert run(document, values)["y"].tolist() == [8, 8]
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("model")
def test_a_list_of_dicts():
    document = build("mlp", layers_0_w="f64[2,3]", layers_0_b="f64[2]", x="f64[3]")
    assert [str(o.key) for o in document.head.outputs] == ["out", "norm"]


REFUSED = {
    "branch": ("f64[]", "model.py:26: a branch on a value"),
    "number": ("f64[]", "model.py:32: float() (as math"),
    "unknown": ("f64[2,2]", "model.py:36: np.linalg.inv cannot be traced"),
    "assigned": ("f64[]", "model.py:41: float() (as"),
    "changed": ("f64[3]", "model.py:46: assignment to elements"),
    "inplace": ("f64[3]", "model.py:52: np.add would write into an array"),
    "made": ("f64[3]", "model.py:57: a NumPy array"),
    "masked": ("f64[3]", "model.py:61: indexing with a mask"),
    "exits": ("f64[3]", "model.py:65: SystemExit"),
    "nothing": ("f64[3]", "output 'y' is a NoneType"),
    "brunch": ("f64[3]", "model.py has no function 'brunch'; did you mean 'branch'?"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name):
    type_, message = REFUSED[name]
    with pytest.raises(TiduError) as found:
        build(name, x=type_)
    assert message in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.usefixtures("model")
def test_inputs_that_do_not_fit():
    for types, message in (
        ({"x": "f64[]", "z": "f64[]"}, "branch has no parameter 'z'"),
        ({}, "branch needs 'x'"),
        ({"x_a": "f64[]", "x": "f64[]"}, "is given twice, or holds others"),
    ):
        with pytest.raises(TiduError, match=message):
            build("branch", **types)


def test_the_api(tmp_path):
    def loss(x, w):
        return np.sum(np.tanh(x @ w) ** 2)

    document = tidu_cli.trace(loss, x="f64[4,3]", w=np.ones(3))
    gradient = tidu_cli.materialize(tidu_cli.transpose(tidu_cli.linearize(document, "w")))
    file = tmp_path / "gradient.msgpack"
    tidu_cli.save(gradient, file)
    x = np.linspace(-1, 1, 12).reshape(4, 3)
    found = tidu_cli.evaluate(tidu_cli.load(file), {"y@-1": 1.0}, x=x, w=np.ones(3))
    t = np.tanh(x @ np.ones(3))
    np.testing.assert_allclose(found["w@-1"], x.T @ (2 * t * (1 - t**2)), rtol=1e-10)
    assert "digraph" in tidu_cli.to_dot(gradient)
    assert tidu_cli.resolve(document).head.name == "loss"
    with pytest.raises(AttributeError):
        tidu_cli.nothing  # noqa: B018
