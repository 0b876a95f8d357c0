"""Open sizes where documents are used: evaluated, called, held open, checked, fixed and refused."""

from __future__ import annotations

import json
from itertools import product

import msgpack
import numpy as np
import pytest

import tidu_cli
from tests.cli.running import invoke, succeed
from tests.programs import needs
from tidu_cli.errors import ArgumentError, EvaluationError, TiduError, TransformError, UnknownNameError
from tidu_cli.formats.write import format_document

STEP = {
    "inputs": [{"key": "w", "type": "f64[3,3]"}, {"key": "h", "type": "f64[B,3]"}, {"key": "x", "type": "f64[B,3]"}],
    "nodes": [
        {"op": "dot_general", "inputs": [1, 0], "attrs": {"dimension_numbers": [[[1], [0]], [[], []]]}},
        {"op": "add", "inputs": [3, 2]},
        {"op": "tanh", "inputs": [4]},
    ],
    "outputs": [{"key": "h", "value": 5}, {"key": "y", "value": 5}],
}
RECURRENT = {
    "tidu": 1,
    "graphs": [
        {
            "name": "rnn",
            "inputs": [{"key": "w", "type": "f64[3,3]"}, {"key": "h", "type": "f64[B,3]"}, {"key": "x", "type": "f64[T,B,3]"}],
            "nodes": [
                {"op": "scan", "inputs": [0, 1, 2], "attrs": {"length": "T", "num_consts": 1, "num_carry": 1, "body": STEP}},
                {"op": "mul", "inputs": [4, 4]},
                {"op": "reduce_sum", "inputs": [5], "attrs": {"axes": [0, 1, 2]}},
                {"op": "size", "inputs": [], "attrs": {"expression": "B*T", "dtype": "f64"}},
                {"op": "div", "inputs": [6, 7]},
            ],
            "outputs": [{"key": "loss", "value": 8}],
        }
    ],
}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "rnn.json"
    file.write_text(json.dumps(RECURRENT))
    return str(file)


@pytest.fixture
def rnn(path):
    return tidu_cli.load(path)


def inputs(batch, steps):
    rng = np.random.default_rng([batch, steps])
    names = {"w": (3, 3), "h": (batch, 3), "x": (steps, batch, 3), "w@1": (3, 3), "w@2": (3, 3)}
    return {key: rng.normal(size=shape) for key, shape in names.items()}


@pytest.mark.parametrize("change", [
    lambda f: f,
    lambda f: tidu_cli.grad(f, wrt=["w", "h", "x"]),
    lambda f: tidu_cli.jvp(f, wrt=["w"]),
    lambda f: tidu_cli.hvp(f, wrt=["w"]),
    lambda f: tidu_cli.jacobian(f, wrt=["h"]),
    lambda f: tidu_cli.hessian(f, wrt=["h"]),
    lambda f: tidu_cli.materialize(tidu_cli.grad(f, wrt=["w"]), recompute=3),
    lambda f: tidu_cli.materialize(tidu_cli.grad(f, wrt=["w"]), simplify=True),
])  # fmt: skip
def test_a_loop_of_open_length_and_batch(rnn, change):
    """A graph with open sizes, evaluated, is the graph of these sizes, in each way of evaluating it."""
    open_one = change(rnn)
    compiled = tidu_cli.compile(open_one, engine="numpy")
    for batch, steps in product((1, 2, 3), (1, 2, 7)):
        given = inputs(batch, steps)
        sizes = {"B": batch, "T": steps}
        fixed = change(tidu_cli.specialize(rnn, sizes))
        due = tidu_cli.evaluate(fixed, given, engine="numpy")
        for found in (tidu_cli.evaluate(open_one, given, engine="numpy"), compiled(given)):
            assert found.keys() == due.keys()
            for key, value in due.items():
                np.testing.assert_allclose(found[key], value, rtol=1e-13, atol=1e-13)
        assert format_document(tidu_cli.specialize(open_one, sizes), "json").count(b'"B') == 0


def test_values_are_those_of_numpy(rnn):
    given = inputs(3, 4)
    h, squares = given["h"], 0.0
    for x in given["x"]:
        h = np.tanh(h @ given["w"] + x)
        squares += (h * h).sum()
    assert tidu_cli.evaluate(rnn, given)["loss"] == pytest.approx(squares / 12, rel=1e-14)


def test_sizes_that_decide_nothing_leave_the_same_file(rnn):
    gradient = tidu_cli.grad(rnn, wrt=["w", "x"])
    fixed = tidu_cli.grad(tidu_cli.specialize(rnn, {"B": 2, "T": 5}), wrt=["w", "x"])
    specialized = tidu_cli.specialize(gradient, {"B": 2, "T": 5})
    due, found = (format_document(tidu_cli.materialize(f), "json") for f in (fixed, specialized))
    assert json.loads(found)["graphs"][0]["inputs"] == json.loads(due)["graphs"][0]["inputs"]
    assert tidu_cli.diff(specialized, fixed)["same"]


@pytest.mark.parametrize("format_", ["json", "msgpack"])
def test_files_keep_sizes_and_bounds(rnn, tmp_path, format_):
    file = str(tmp_path / f"g.{format_}")
    bounded = tidu_cli.specialize(rnn, {"T": "T+1"})
    tidu_cli.save(bounded, file)
    assert format_document(tidu_cli.load(file), "json") == format_document(bounded, "json")
    assert b'"f64[T+1,B,3]"' in format_document(bounded, "json")


def test_plans_are_kept_by_sizes(rnn, monkeypatch):
    from tidu_cli.runtime.sizing import Plans

    monkeypatch.setattr(Plans, "MOST", 2)
    f = tidu_cli.compile(rnn, engine="numpy")
    assert f.engine == "numpy" and "f64[T,B,3]" in repr(f)
    for batch in (1, 2, 3, 1):
        assert f(inputs(batch, 2))["loss"].shape == ()
    assert len(f._plans._kept) == 2 and f.engine == "numpy"
    assert f.inputs["x"] == "f64[T,B,3]" and f.outputs == {"loss": "f64[]"}
    given = {key: value for key, value in inputs(2, 3).items() if "@" not in key}
    mapped = f.map({**given, "w": np.stack([given["w"], given["w"]])}, batch={"w": 0})
    assert mapped["loss"].shape == (2,) and mapped["loss"][0] == f(given)["loss"]


def test_inputs_that_disagree_are_refused(rnn):
    with pytest.raises(EvaluationError, match=r"input x: the size B is 2 \(B=2 by input h\), got 3"):
        tidu_cli.evaluate(rnn, inputs(2, 3) | {"x": np.ones((3, 3, 3))})
    with pytest.raises(EvaluationError, match=r"missing inputs: x: f64\[T,B,3\]"):
        tidu_cli.evaluate(rnn, {"w": np.ones((3, 3)), "h": np.ones((2, 3))})
    with pytest.raises(EvaluationError, match=r"input x: expected f64\[T,B,3\], got an array of shape \[2, 3\]"):
        tidu_cli.evaluate(rnn, {"w": np.ones((3, 3)), "h": np.ones((2, 3)), "x": np.ones((2, 3))})
    with pytest.raises(EvaluationError, match=r"input w: expected f64\[3,3\], got f64\[3,4\]"):
        tidu_cli.evaluate(rnn, inputs(2, 3) | {"w": np.ones((3, 4))})


def test_what_specializing_refuses(rnn):
    with pytest.raises(UnknownNameError, match=r"no open size 'N' \(open sizes: B, T\)"):
        tidu_cli.specialize(rnn, {"N": 3})
    with pytest.raises(TransformError, match="B=0: the size B is at least 1, and 0 is less"):
        tidu_cli.specialize(rnn, {"B": 0})
    for size in (True, 2.0, np.True_, np.float64(2)):
        with pytest.raises(ArgumentError, match=f"'size' takes an integer, not a value of type {type(size).__name__}"):
            tidu_cli.specialize(rnn, {"B": size})
    assert str(tidu_cli.specialize(rnn, {"B": np.int32(2)}).head.inputs[1].type) == "f64[2,3]"
    with pytest.raises(TransformError, match="and T-1 may be less"):
        tidu_cli.specialize(rnn, {"T": "T-1+0*B"} | {"B": "B"})


UNDECIDED = {
    "tidu": 1,
    "graphs": [
        {
            "name": "f",
            "inputs": [{"key": "x", "type": "f64[N]"}, {"key": "y", "type": "f64[M]"}],
            "nodes": [
                {"op": "slice", "inputs": [0], "attrs": {"start_indices": [0], "limit_indices": [5], "strides": None}},
                {"op": "add", "inputs": [2, 1]},
            ],
            "outputs": [{"key": "z", "value": 3}],
        }
    ],
}


def test_what_is_undecided_is_read_with_the_sizes_that_decide_it(tmp_path):
    file = tmp_path / "f.json"
    file.write_text(json.dumps(UNDECIDED))
    refused = invoke("convert", file)
    assert "cannot decide whether N < 5" in refused.stderr and "tidu convert --size N=32" in refused.stderr
    numbers = succeed("convert", file, "--size", "N=32", "--size", "M=5")
    assert [i["type"] for i in json.loads(numbers)["graphs"][0]["inputs"]] == ["f64[32]", "f64[5]"]
    with pytest.raises(TiduError, match=r"size=\{'N': 32\} in load or specialize"):
        tidu_cli.load(file)
    with pytest.raises(TiduError, match="cannot decide whether N < 5"):
        tidu_cli.load(file, size={"M": 5})
    document = tidu_cli.load(file, size={"N": "K+5", "M": 5})
    assert [str(i.type) for i in document.head.inputs] == ["f64[K+5]", "f64[5]"]
    with pytest.raises(TiduError, match=r"no open size 'Q' \(open sizes: K\)"):
        tidu_cli.load(file, size={"N": "K+5", "M": 5, "Q": 1})


@pytest.mark.parametrize("format_", ["json", "msgpack"])
def test_a_size_that_is_not_admitted_is_refused_before_what_comes_of_it(format_, tmp_path):
    (graph,) = UNDECIDED["graphs"]
    iota = {"op": "iota", "inputs": [], "attrs": {"dtype": "f64", "shape": ["N"], "dimension": 0}}
    graph = {**graph, "inputs": [], "nodes": [iota, {**graph["nodes"][0], "inputs": [0]}], "outputs": [{"key": "z", "value": 1}]}
    document, file = {"tidu": 1, "sizes": {"N": {"min": 4, "multiple_of": 2}}, "graphs": [graph]}, tmp_path / "f"
    file.write_bytes(json.dumps(document).encode() if format_ == "json" else msgpack.packb(document))
    assert error("convert", file, "--size", "N=2").endswith("f: N=2: the size N is at least 4, and 2 is less\n")
    with pytest.raises(TiduError, match="f: N=7: the size N is a multiple of 2, and 7 is not"):
        tidu_cli.load(file, size={"N": 7})
    with pytest.raises(TiduError, match="limit index 5 exceeds axis 0"):
        tidu_cli.load(file, size={"N": 4})


def test_what_is_compiled_is_called_by_names(rnn):
    run, values = tidu_cli.compile(rnn), inputs(2, 3)
    assert run(**values)["loss"] == run(values)["loss"]
    with pytest.raises(EvaluationError, match="missing inputs: w"):
        run()


def square(name: str, key: str, **bounds: int) -> dict:
    node = {"op": "mul", "inputs": [0, 0]}
    graph = {"name": name, "inputs": [{"key": key, "type": "f64[N]"}], "nodes": [node], "outputs": [{"key": "y", "value": 1}]}
    return {"tidu": 1, **({"sizes": {"N": bounds}} if bounds else {}), "graphs": [graph]}


def test_bounds_tell_types_apart(tmp_path):
    free, even, empty = (tmp_path / f"{k}.json" for k in range(3))
    free.write_text(json.dumps(square("f", "x")))
    even.write_text(json.dumps(square("g", "y", min=2, max=8, multiple_of=2)))
    empty.write_text(json.dumps(square("h", "x", min=0)))
    told = error("compose", free, even)
    assert "is f64[N] (N at least 1) and input 'y' of graph 'g' is f64[N] (N from 2 to 8 and a multiple of 2)" in told
    assert "give the names in it the same bounds in both, or a number: tidu convert --size N=32" in told
    assert "(N at least 1) in graph 'f' and f64[N] (N at least 0)" in error("resolve", free, empty)
    assert "f64[N] (N at least 1) in A, f64[N] (N at least 0) in B" in invoke("diff", free, empty).stdout
    assert succeed("eval", empty, "--set", "x=[]") == b'{"y": []}\n'
    even.write_text(json.dumps(square("g", "y", multiple_of=0)))
    assert "'multiple_of' is a whole number of at least 1" in error("info", even)


def test_sparse_derivatives_are_of_the_sizes_that_values_have(path):
    stated = ["--set", "w=[[1,0,0],[0,1,0],[0,0,1]]", "--set", "h=[[1,2,3]]", "--set", "x=[[[1,2,3]],[[1,2,3]]]"]
    fixed = succeed("convert", path, "--size", "B=1", "--size", "T=2")
    for command in ("jacobian", "hessian"):
        told = succeed(command, path, "--wrt", "x", "--sparse", *stated)
        assert told == succeed(command, "-", "--wrt", "x", "--sparse", *stated, input=fixed)
        assert "missing inputs: x: f64[T,1,3]" in error(command, path, "--wrt", "h", "--sparse", *stated[:4])
        assert "patterns of sparse derivatives have fixed sizes" in error(command, path, "--wrt", "x", "--sparse")
    assert "missing inputs: x: f64[T,1,3]" in error("minimize", path, "--wrt", "h", *stated[:4])


def test_pages_show_values_of_the_sizes_that_they_have(rnn):
    assert "f64[T,B,3]" in tidu_cli.view(rnn) and "f64[2,1,3]" in tidu_cli.view(rnn, inputs(1, 2))
    with pytest.raises(EvaluationError, match=r"input x: expected f64\[T,1,3\], got an array of shape \[2, 3\]"):
        tidu_cli.view(rnn, inputs(1, 2) | {"x": np.ones((2, 3))})


def error(*args) -> str:
    result = invoke(*args)
    assert result.exit_code == 1 and not result.stdout
    return result.stderr


@needs("dask", "distributed")
def test_a_jacobian_in_chunks(path):
    by_rows = succeed("jacobian", path, "--wrt", "x", *STATED)
    assert succeed("jacobian", path, "--wrt", "x", "--scheduler", "local", "--chunk", "2", *STATED) == by_rows
    assert "missing inputs: h" in error("jacobian", path, "--wrt", "x", "--chunk", "2", *STATED[:2])


@needs("llvmlite")
def test_engines_see_numbers(rnn):
    given = {key: value for key, value in inputs(2, 3).items() if "@" not in key}
    due = tidu_cli.evaluate(rnn, given, engine="numpy")["loss"]
    assert tidu_cli.evaluate(rnn, given, engine="native")["loss"] == pytest.approx(due, rel=1e-14)


STATED = ["--set", "w=[[1,0,0],[0,1,0],[0,0,1]]", "--set", "h=[[1,2,3]]", "--set", "x=[[[1,2,3]],[[1,2,3]]]"]


def test_commands(path, tmp_path):
    stated = STATED
    value = json.loads(succeed("eval", path, *stated))["loss"]
    lines = "".join(json.dumps({"h": [[1, 2, 3]], "x": [[[1, 2, 3]]] * n}) + "\n" for n in (2, 1, 2))
    answers = succeed("eval", path, *stated[:2], "--stream", input=lines.encode()).splitlines()
    assert [json.loads(a)["loss"] for a in answers] == [value, json.loads(answers[1])["loss"], value]
    told = succeed("info", path).decode()
    assert "open sizes: B, T" in told and "peak memory open" in told
    assert json.loads(succeed("info", path, "--json"))["sizes"] == {"B": {}, "T": {}}
    told = succeed("check", path, "--numeric").decode()
    lines = [line for line in told.splitlines() if "adjoint" in line]
    assert [line.partition(": jvp")[0] for line in lines] == ["  numeric: at B=1, T=1", "  numeric: at B=3, T=4"]
    assert "no node is at a kink" in invoke("eval", path, *stated, "--kinks").stderr
    assert "size[expression=B*T, dtype=f64]" in succeed("show", path).decode()
    fixed = succeed("convert", path, "--size", "B=1", "--size", "T=2").decode()
    assert "f64[2,1,3]" in fixed and '"B' not in fixed
    report = json.loads(invoke("minimize", path, "--wrt", "h", *stated, "--max-iterations", "3", "--json").stdout)
    assert report["cost"] <= value
    told = error("sparsity", path, "--wrt", "x")
    assert "patterns of sparse derivatives have fixed sizes, and the size B is open" in told and "--size B=32" in told
    slope = json.loads(succeed("grad", path, "--wrt", "h", *stated))["h@-1"]
    assert np.shape(slope) == (1, 3) and np.shape(json.loads(succeed("jacobian", path, "--wrt", "h", *stated))["loss/h"]) == (1, 3)
    succeed("view", path, *stated, "-o", tmp_path / "page.html")
    assert "f64[2,1,3]" in (tmp_path / "page.html").read_text()
    gradient = tmp_path / "g.json"
    gradient.write_bytes(succeed("grad", path, "--wrt", "w"))
    assert "the size T is open" in error("materialize", str(gradient), "--recompute", "sqrt")
