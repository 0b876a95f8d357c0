"""The Python API: each function does what its command does, with the command's names in the command's order."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys

import click
import numpy as np
import pytest

import tidu_cli
from tests.cli.running import ROOT
from tidu_cli.cli.main import cli
from tidu_cli.errors import ArgumentError, DocumentError, EvaluationError, TiduError
from tidu_cli.formats.write import format_document

COMMANDS = {
    "load": None, "save": None, "trace": None, "static": None,
    "stop_gradient": None, "value_and_grad": "grad", "Compiled": None, "compile": None, "to_dot": "dot", "draw": "dot",
    "evaluate": "eval", "load_onnx": "convert", "renumber": "convert", "bound_loops": "convert",
    "specialize": "convert", "from_jax": None, "to_jax": None,
    "check": "check", "kinks": "eval", "info": "info", "diff": "diff", "schema": "schema", "show": "show",
    "formula": None, "sparse_array": None, "load_values": None, "save_values": None, "save_weights": None,
    "initial_state": None, "Document": None, "Key": None, "TiduError": None,
    **dict.fromkeys(("scan", "fori_loop", "while_loop", "cond", "switch", "root", "fixed_point", "linear_solve")),
}  # fmt: skip
"""The commands of functions that are called otherwise, None where there is none."""

DOCUMENTS = {"document", "documents", "a", "b", "file", "files", "function", "inputs", "parts", "more", "names", "options"}
PARAMETERS = {
    "pass_number": "pass",
    "passes": "pass",
    "steps": "bound-loops",
    "one_pass": "one-pass",
    "max_memory": "max-memory",
    "max_steps": "max-steps",
    "needed_inputs": "needed-inputs",
    "dims": "dim",
    "input_types": "input-type",
    "keys": "key",
    "graphs": "graph",
    "strong_zeros": "strong-zeros",
    "straight_through": "straight-through",
    "max_iterations": "max-iterations",
    "clip_norm": "clip-norm",
    "weight_decay": "weight-decay",
    "opened": "open",
}


@pytest.fixture
def f():
    return tidu_cli.load(ROOT / "samples" / "f.json")


def text(document) -> bytes:
    return format_document(document, "json")


@pytest.mark.parametrize("name", [n for n in tidu_cli.__all__ if COMMANDS.get(n, n) is not None])
def test_parameters_are_the_commands_options(name: str) -> None:
    command = cli.get_command(click.Context(cli), COMMANDS.get(name, name))
    assert command is not None
    options = [o.lstrip("-") for p in command.params if isinstance(p, click.Option) for o in p.opts if o.startswith("--")]
    parameters = [k for k in inspect.signature(getattr(tidu_cli, name)).parameters if k not in DOCUMENTS]
    places = {k: options.index(PARAMETERS.get(k, k)) for k in parameters}
    of_all = ("max_memory", "max_steps")  # which all commands have, after options of their own
    order = [at for k, at in places.items() if k not in of_all]
    if name in ("resolve", "linearize", "transpose", "materialize", "evaluate"):  # of these, parameters may be positional
        assert order == sorted(order)


def test_load_and_save(tmp_path, f) -> None:
    for suffix in ("json", "msgpack"):
        file = tmp_path / f"copy.{suffix}"
        tidu_cli.save(f, file)
        assert text(tidu_cli.load(str(file))) == text(f)
    with pytest.raises(DocumentError):
        tidu_cli.load(tmp_path / "missing.json")


def test_the_pipeline(f) -> None:
    linear = tidu_cli.linearize(f, "x")
    assert [g.name for g in linear.graphs] == ["f", "f@1"]
    gradient = tidu_cli.materialize(tidu_cli.transpose(linear))
    assert tidu_cli.evaluate(gradient, {"x": 3, "y@-1": 1})["x@-1"] == 12
    second = tidu_cli.materialize(tidu_cli.linearize(gradient, ["x"]))
    assert tidu_cli.evaluate(second, {"y@-1": 1.0}, x=3.0, output=[], max_memory="1M", **{"x@2": 1.0}) == {"x@-1@2": 4.0}
    assert [g.name for g in tidu_cli.linearize(f, "x", pass_number=7).graphs] == ["f", "f@7"]


def test_linearize_detached_and_resolve(f) -> None:
    alone = tidu_cli.linearize(f, "x", detach=True)
    assert [g.name for g in alone.graphs] == ["f@1"]
    assert text(tidu_cli.resolve(f, alone)) == text(tidu_cli.linearize(f, "x"))


@pytest.mark.parametrize("bind", [{"x": "z"}, [("x", "z")]])
def test_resolve_binds_inputs(f, bind) -> None:
    inner = tidu_cli.trace(lambda u: 5 * u, u="f64[]", name="inner", output="z")
    composed = tidu_cli.resolve(inner, f, bind=bind)
    assert tidu_cli.evaluate(composed, u=2.0, output="y") == {"y": 200.0}
    with pytest.raises(TiduError, match="no"):
        tidu_cli.resolve(inner, f, bind={"x": "nothing"})


def test_materialize_chooses_outputs() -> None:
    document = tidu_cli.trace(lambda x: {"a": x, "b": np.exp(x)}, x="f64[]")
    assert [str(o.key) for o in tidu_cli.materialize(document, "b").head.outputs] == ["b"]


def test_materialize_writes_own_ops_out_and_makes_constants() -> None:
    document = tidu_cli.load("samples/softplus.json")
    written_out = tidu_cli.materialize(document, inline=True)
    ops = {written_out.head.case(node).op for node in range(written_out.head.n_nodes)}
    assert "softplus" in {document.head.case(node).op for node in range(document.head.n_nodes)} and "softplus" not in ops
    fixed = tidu_cli.materialize(tidu_cli.load("samples/rosenbrock.json"), set={"y": 2})
    assert [str(i.key) for i in fixed.head.inputs] == ["x"] and tidu_cli.evaluate(fixed, x=1.0) == {"f": 100.0}


def test_inputs_stay_whether_outputs_depend_on_them_or_not() -> None:
    gradient = tidu_cli.grad(tidu_cli.trace(lambda x, y: 2 * x, x="f64[]", y="f64[2]"), "x")
    for document, inputs in ((gradient, ["x", "y"]), (tidu_cli.materialize(gradient, needed_inputs=True), [])):
        compiled = tidu_cli.compile(document)
        assert [str(i.key) for i in document.head.inputs] == list(compiled.inputs) == inputs
        assert tidu_cli.evaluate(document) == tidu_cli.evaluate(document, x=1.0) == compiled() == compiled(x=1.0) == {"x@-1": 2.0}
    with pytest.raises(TiduError, match="no graph has an input 'x'"):
        tidu_cli.evaluate(tidu_cli.materialize(gradient, needed_inputs=True), x=[1.0], batch={"x": 0})


def test_evaluate(f) -> None:
    assert tidu_cli.evaluate(f, x=3.0) == tidu_cli.evaluate(f, {"x": 3.0, "unused": 1.0}) == {"y": 18.0}
    with pytest.raises(EvaluationError, match="missing inputs: x"):
        tidu_cli.evaluate(f)
    for limit in (8, "8"):
        with pytest.raises(EvaluationError, match="memory"):
            tidu_cli.evaluate(tidu_cli.trace(np.exp, "f64[100]"), {"x": np.ones(100)}, max_memory=limit)


def test_to_dot(f) -> None:
    assert tidu_cli.to_dot(f).startswith("digraph")
    assert "f64[]" in tidu_cli.to_dot(f, types=True)


def test_trace_names() -> None:
    document = tidu_cli.trace(lambda u, v=2.0: u * v, "f32[3]", name="scaled", output="w")
    assert document.head.name == "scaled"
    assert [str(i.key) for i in document.head.inputs] == ["u"]
    assert [str(o.key) for o in document.head.outputs] == ["w"]


def test_unknown_names() -> None:
    with pytest.raises(AttributeError):
        tidu_cli.nothing  # noqa: B018


def test_tangent_types_as_text_and_constants_of_records() -> None:
    document = tidu_cli.load(ROOT / "samples" / "events.json")
    hours = tidu_cli.linearize(document, "events", tangent={"events": "{at: duration[h]}"})
    assert str(hours.head.inputs[0].type) == "Events{at: duration[h][4]}"
    assert text(tidu_cli.linearize(document, "events", tangent={"events": hours.head.inputs[0].type})) == text(hours)
    noon = np.datetime64("2026-01-01T12", "h")
    events = {"at": noon + np.arange(4), "weight": [1.0, 1.0, 1.0, 1.0]}
    fixed = tidu_cli.materialize(document, set={"events": events, "due": np.full(4, noon)})
    assert [str(i.key) for i in fixed.head.inputs] == []
    assert (
        tidu_cli.evaluate(fixed)["loss"]
        == tidu_cli.evaluate(document, events=events, due=[noon.item().isoformat()] * 4)["loss"]
        == 14
    )


def test_a_suffix_of_another_format_is_refused_and_nothing_is_written(f, tmp_path):
    for name in ("f.h5", "f.rb", "f.npz"):
        (tmp_path / name).write_text("of the user")
        with pytest.raises(
            ArgumentError,
            match=r"which is not a format of documents; end it in \.json, \.msgpack, \.onnx, \.mlir, \.mlirbc, \.c or \.py",
        ):
            tidu_cli.save(f, tmp_path / name)
        assert (tmp_path / name).read_text() == "of the user"
    tidu_cli.save(f, tmp_path / "F.MSGPACK")
    assert format_document(tidu_cli.load(tmp_path / "F.MSGPACK"), "json") == format_document(f, "json")


def test_patterns_and_first_parts_of_names() -> None:
    def f(params, x, n):
        y = x * params["w"][0] + params["w"][1] * params["b"]
        return {"y": y, "aux": {"a": y * 2, "b": y + n}}

    document = tidu_cli.trace(f, {"w": ["f64[]", "f64[]"], "b": "f64[]"}, "f64[]", "i64[]")

    def tangents(wrt) -> list[str]:
        return [str(i.key).removesuffix("@1") for i in tidu_cli.linearize(document, wrt, "y").head.inputs]

    assert tangents("params.*") == tangents("params") == ["params.w.0", "params.w.1", "params.b"]
    assert tangents(["params.w.[1]", "x", "params.w"]) == ["params.w.1", "x", "params.w.0"]
    assert tangents("*") == ["params.w.0", "params.w.1", "params.b", "x"], "no integers"
    assert tangents(["n", "x"]) == ["n", "x"], "an integer that is named is taken"

    def outputs(keys) -> list[str]:
        return [str(o.key) for o in tidu_cli.materialize(document, keys).head.outputs]

    assert outputs("aux") == outputs("aux.*") == ["aux.a", "aux.b"]
    assert outputs(["aux.b", "?", "aux"]) == ["aux.b", "y", "aux.a"]
    assert list(tidu_cli.compile(document, "a*").outputs) == ["aux.a", "aux.b"]
    for function, key, message in (
        (tidu_cli.linearize, "q*", r"no input to differentiate by matches 'q\*'"),
        (tidu_cli.linearize, "n*", r"'n\*' stands for n, which are integers"),
        (tidu_cli.linearize, "para", "no graph has an input 'para'"),
        (tidu_cli.materialize, "q*", r"no output matches 'q\*' \(outputs: y, aux.a, aux.b\)"),
        (tidu_cli.materialize, "au", "no graph has an output 'au'"),
    ):
        with pytest.raises(TiduError, match=message):
            function(document, key)
    exact = tidu_cli.trace(lambda **inputs: inputs["a*"] * inputs["ab"], **{"a*": "f64[]", "ab": "f64[]"})
    assert [str(i.key) for i in tidu_cli.linearize(exact, "a*").head.inputs] == ["a*@1"], "the key itself goes first"


BARE = """
import sys

sys.modules.update(dict.fromkeys(("jax", "jaxlib", "llvmlite", "onnx")))  # so that importing them fails
import tidu

(sin,) = tidu.ops("sin", backends=True)
print(sin["backends"])
"""


def test_backends_whose_packages_are_missing_say_so() -> None:
    ran = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True)
    ways = ast.literal_eval(ran.stdout)
    assert [way.partition("package ")[2].split()[0] for name, way in ways.items() if name not in ("C", "Python")] == [
        "llvmlite",
        "jax",
        "onnx:",
        "jax",
    ]
