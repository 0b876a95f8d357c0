"""Functions in files: their inputs, and what cannot be traced is told with its place."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.build.comparing import run
from tidu_cli.adapters.numpy.tracing import build_function, trace
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import parse_type
from tidu_cli.rules.vocabulary import PrimitiveSet

MODEL = """import functools
import math
from dataclasses import dataclass

import numpy as np

import other

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
    return np.roots(x)


def assigned(x):
    y = np.zeros(3)
    y[0] = x
    return y


def changed(x):
    x[0] = "one"
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


def stored_row(x):
    y = np.zeros((2, 3))
    y[0] = x
    return y


def stored_slice(x):
    y = np.zeros((2, 3))
    y[:, 1:2] = x
    return y


def looked_up(x):
    return np.arange(5.0)[x]


def recursive(x):
    return recursive(x)


def raises(x):
    raise ValueError("two\\nlines")


def generator(x):
    yield x


async def later(x):
    return x


def untraceable_object(x):
    return np.array([object()])


def text(x):
    return {"a": x, "b": "text"}


def none_at_all(x):
    return []


def twice(x):
    return {"a": {"b": x}, "a.b": x}


def misfit(x):
    return x @ np.ones(7)


def misspelt(x):
    return x.summ()


def at(x):
    y = np.zeros(3)
    np.add.at(y, [0, 1, 1], x)
    return y


def loop(x):
    return [k for k in range(x)]


class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        return x * self.by


scaled = Scaled(3.0)
partial = functools.partial(lambda by, x: x * by, 3.0)
imported = other.triple
bound = Scaled(3.0).__call__


def rebound(x):
    y = x
    x += x
    x *= 1.5
    return x


def aliased(x):
    y = x
    x += 1
    return y


def untouched(x):
    return {"x": x, "again": x, "constant": np.ones(2), "number": 3}


def changes_its_inputs(p):
    p["w"] = p["w"] * 2
    del p["b"]
    return p


def prints(x):
    print("x is", f"{x:.3f}")
    return x


def interrupted(x):
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit("run as a script")
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "other.py").write_text("def triple(x):\n    return 3 * x\n")
    monkeypatch.delitem(sys.modules, "other", raising=False)
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
    "branch": ("f64[]", "model.py:29: a branch on a value"),
    "unknown": ("f64[2,2]", "model.py:39: np.roots cannot be traced"),
    "changed": ("f64[3]", "model.py:49: ValueError: could not convert string to float"),
    "masked": ("f64[3]", "model.py:64: indexing with a mask"),
    "exits": ("f64[3]", "model.py:68: SystemExit"),
    "nothing": ("f64[3]", "output 'y' is None"),
    "brunch": ("f64[3]", "model.py has no function 'brunch'; did you mean 'branch'?"),
    "recursive": ("f64[]", "RecursionError"),
    "raises": ("f64[]", "ValueError: two lines"),
    "generator": ("f64[]", "generator is a generator or async function"),
    "later": ("f64[]", "later is a generator or async function"),
    "untraceable_object": ("f64[]", "dtype object has no place in a graph"),
    "text": ("f64[]", "output 'b' is a str"),
    "none_at_all": ("f64[]", "the function returns nothing"),
    "twice": ("f64[]", "two outputs are called 'a.b'"),
    "misfit": ("f64[3]", "axis 0 of f64[3] has 3 elements, axis 0 of f64[7] has 7"),
    "misspelt": ("f64[3]", "a traced array has no .summ; did you mean 'sum'?"),
    "loop": ("i64[]", "an integer (as for range(), a slice or an axis) needs the value"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name):
    type_, message = REFUSED[name]
    with pytest.raises(TiduError) as refusal:
        build(name, x=type_)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("model")
def test_inputs_that_do_not_fit():
    for types, message in (
        ({"x": "f64[]", "z": "f64[]"}, "branch has no parameter 'z'"),
        ({}, "branch needs 'x'"),
        ({"x_a": "f64[]", "x": "f64[]"}, "is given twice, or holds others"),
    ):
        with pytest.raises(TiduError, match=message):
            build("branch", **types)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("name", ["scaled", "partial", "imported", "bound", "rebound"])
def test_whatever_can_be_called(name):
    assert run(build(name, x="f64[2]"), {"x": [1.0, 2.0]})["y"].tolist() == [3, 6]


@pytest.mark.usefixtures("model")
def test_in_place_operators_change_what_all_names_see():
    assert run(build("aliased", x="f64[2]"), {"x": [1.0, 2.0]})["y"].tolist() == [2, 3]


@pytest.mark.usefixtures("model")
def test_inputs_and_constants_may_be_outputs():
    values = run(build("untouched", x="f64[2]"), {"x": [1.0, 2.0]})
    assert {k: v.tolist() for k, v in values.items()} == {"x": [1, 2], "again": [1, 2], "constant": [1, 1], "number": 3}


@pytest.mark.usefixtures("model")
def test_a_function_may_change_its_dict():
    values = run(build("changes_its_inputs", p_w="f64[2]", p_b="f64[2]"), {"p.w": [1.0, 2.0], "p.b": [0.0, 0.0]})
    assert {k: v.tolist() for k, v in values.items()} == {"w": [2, 4]}


@pytest.mark.usefixtures("model")
def test_output_goes_to_standard_error(capfd):
    build("prints", x="f64[2]")
    out, err = capfd.readouterr()
    assert out == "" and "x is <traced f64[2]>" in err


@pytest.mark.usefixtures("model")
def test_an_interrupt_is_nobodys_error():
    with pytest.raises(KeyboardInterrupt):
        build("interrupted", x="f64[]")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"def f(x:\n", "model.py:1: "),
        (b"# \xff\n", "model.py"),
        (b"import nothing_of_that_name\n", "model.py:1: ModuleNotFoundError"),
        (b"x = 1\nraise SystemExit(2)\n", "model.py:2: SystemExit: 2"),
        (b"x = 1 / 0\n", "model.py:1: ZeroDivisionError"),
        (b"\x00", "model.py"),
        (b"", "no function 'f' (functions: none)"),
    ],
)
def test_files_that_do_not_run(tmp_path, monkeypatch, source, message):
    (tmp_path / "model.py").write_bytes(source)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TiduError) as refusal:
        build("f", x="f64[]")
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_file_does_not_stand_in_for_pythons(tmp_path, monkeypatch):
    """A model in random.py, say."""
    (tmp_path / "random.py").write_text("def f(x):\n    return x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "random", raising=False)
    build_function("random.py:f", {"x": parse_type("f64[]")})
    import random

    assert hasattr(random, "Random")


def test_types_are_inferred_once_a_case(monkeypatch):
    """Tracing is linear in the number of operations, with little work for each: cases are few, nodes many."""
    inferred = []
    case = PrimitiveSet.case
    monkeypatch.setattr(PrimitiveSet, "case", lambda self, *args: (inferred.append(args), case(self, *args))[1])

    def step(x):
        for _ in range(3000):
            x = x * 0.5 + np.sin(x[::-1])
        return x

    assert trace(step, x="f64[4]").head.n_nodes > 9000
    assert len(inferred) < 20
