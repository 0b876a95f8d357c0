"""What options of commands say, arguments of functions say; and every misuse of a function is told in the words of Python."""

from __future__ import annotations

import gzip
import inspect
import json
import re

import click
import numpy as np
import pytest

import tidu
from tests.cli.running import ROOT, succeed
from tidu_cli.cli.main import COMMANDS, cli
from tidu_cli.errors import ArgumentError, DocumentError, EvaluationError, TiduError, UnknownNameError
from tidu_cli.formats.write import format_document
from tidu_cli.installed import declared_options

SAMPLES = ROOT / "samples"
FUNCTIONS = {
    "eval": ["evaluate"],
    "dot": ["to_dot"],
    "convert": ["save", "load", "load_onnx", "renumber", "bound_loops", "specialize"],
}
"""The functions of commands that are called otherwise."""

SPELLED = {
    "pass": {"linearize": "pass_number", "convert": "passes"}, "bound-loops": {"convert": "steps"}, "move": {"eval": "moves"},
    "dim": {"convert": "dims"}, "input-type": {"convert": "input_types"},
    "key": {"rename": "keys"}, "graph": {"rename": "graphs"}, "plugins": {}, "ops": {},
}  # fmt: skip
"""Options whose arguments are called otherwise."""

ELSEWHERE = {
    "o": "save, save_values", "format": "the suffix that save is given", "force": "save writes over files",
    "quiet": "no messages", "verbose": "no messages",
    "max-nodes": "tidu_cli.limits", "max-expansion": "tidu_cli.limits", "max-memory": "evaluate, and tidu_cli.limits",
    "max-steps": "evaluate, and tidu_cli.limits",
    "pipeline": "a text for shells", "ops": "load", "plugins": "load", "json": "the dict", "brief": "the dict's `same`",
    "limit": "for people, who wait for Graphviz", "expand": "DOT text is", "open": "of files", "depth": "of files",
    "init": "initial_state", "weights-from": "save_weights",
    "kinks": "kinks",
    "stream": "Compiled, called", "plain": "load", "static": "parts", "closure": "parts", "numeric": "parts", "all": "parts",
    "dim": "load_onnx", "input-type": "load_onnx", "input": "trace, formula", "jax": "from_jax", "types": "trace, formula",
    "batch": "evaluate",
    "dtype": "of primitives", "against": "of models of ONNX", "engine": "evaluate, compile", "device": "evaluate, compile",
    "scheduler": "Compiled.map", "resume": "Compiled.map", "chunk": "Compiled.map", "reduce": "Compiled.map",
}  # fmt: skip
"""Options that no argument of the command's own function is for, and what is."""

OF_FILES = {"set", "inputs"}
"""Options of commands that evaluate what they derive: evaluate takes the values."""

WITHOUT = {
    "build": "trace, formula and from_jax",
    "view": "a page for people",
    "ops": "docs",
    "completion": "shells",
    "help": "help()",
}
"""Commands that have no function of their name, and what there is instead."""


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in WITHOUT])
def test_every_option_is_an_argument_or_said_where(command):
    names = FUNCTIONS.get(command, [command])
    arguments = {k for name in names for k in inspect.signature(getattr(tidu, name)).parameters}
    arguments |= {*declared_options("writing")} if "save" in names else set()  # which takes those of the format
    declared = cli.get_command(click.Context(cli), command)
    assert declared is not None
    options = [o.opts[-1].lstrip("-") for o in declared.params if isinstance(o, click.Option)]
    for option in options:
        argument = SPELLED.get(option, {}).get(command, option.replace("-", "_"))
        assert argument in arguments or option in ELSEWHERE or option in OF_FILES, f"--{option}"


def text(document) -> bytes:
    return format_document(document, "json")


def test_recompute():
    chain = tidu.formula("sin(sin(sin(sin(sin(sin(sin(sin(x))))))))", x="f64[1000]")
    gradient = tidu.vjp(chain, "x")
    whole, less = tidu.materialize(gradient), tidu.materialize(gradient, recompute="sqrt")
    assert tidu.info(less)["evaluation"]["peak_bytes"] < tidu.info(whole)["evaluation"]["peak_bytes"]
    at = {"x": np.linspace(0, 1, 1000), "y@-1": np.ones(1000)}
    assert tidu.evaluate(less, at)["x@-1"].tolist() == tidu.evaluate(whole, at)["x@-1"].tolist()
    assert text(tidu.materialize(gradient, recompute=["cheap=0.25"])) == succeed(
        "materialize", "--recompute", "cheap=0.25", "--quiet", input=text(gradient)
    )
    assert text(tidu.materialize(chain, recompute=4)) == text(tidu.materialize(chain))  # nothing to gain
    for wrong in ("sqr", ["sqrt", "cheap"], 0, "cheap=little", "value=", [3.5]):
        with pytest.raises(TiduError):
            tidu.materialize(gradient, recompute=wrong)


def test_ops_of_a_library():
    user, library = (ROOT / "tests" / "cli" / "cases" / "own" / f"{name}.json" for name in ("user", "library"))
    with pytest.raises(DocumentError, match=re.escape("load(file, ops=FILE) brings those of a library")) as caught:
        tidu.load(user)
    assert "--" not in str(caught.value)
    assert text(tidu.load(user, ops=library)) == text(tidu.load(user, ops=[str(library)]))


def test_patterns_of_inputs():
    mlp = tidu.load(SAMPLES / "mlp.json")
    assert text(tidu.grad(mlp, ["W*", "b1"])) == succeed("grad", SAMPLES / "mlp.json", "--wrt", "W*", "--wrt", "b1")
    with pytest.raises(UnknownNameError, match="no input to differentiate by matches 'V\\*'"):
        tidu.linearize(mlp, "V*")


def test_jacobians_by_rows_and_by_columns():
    vector = tidu.load(SAMPLES / "vector.json")
    rows, columns = tidu.jacobian(vector, "x", reverse=True), tidu.jacobian(vector, "x", forward=True)
    assert (
        text(rows)
        == text(tidu.jacobian(vector, "x", forward=False))
        != text(columns)
        == text(tidu.jacobian(vector, "x", reverse=False))
    )
    with pytest.raises(ArgumentError, match="exclude each other"):
        tidu.jacobian(vector, "x", reverse=True, forward=True)
    for forward in ({"forward": True}, {"reverse": False}):
        with pytest.raises(ArgumentError, match="'strong_zeros' is of reverse mode"):
            tidu.jacobian(vector, "x", strong_zeros=True, **forward)


def test_save_has_the_options_of_convert(tmp_path):
    f = tidu.load(SAMPLES / "f.json")
    for arguments, options, name in [
        ({"types": True}, ["--types"], "f.json"),
        ({"nodes": "packed"}, ["--nodes", "packed"], "f.json"),
        ({"nodes": "list"}, ["--nodes", "list"], "f.msgpack"),
        ({"format": "msgpack"}, ["--format", "msgpack"], "f"),
        ({"opset": 18}, ["--opset", "18"], "f.onnx"),
    ]:
        tidu.save(f, tmp_path / f"ours.{name}", **arguments)
        succeed("convert", SAMPLES / "f.json", *options, "-o", tmp_path / f"its.{name}")
        assert (tmp_path / f"ours.{name}").read_bytes() == (tmp_path / f"its.{name}").read_bytes()
    tidu.save(f, tmp_path / "f.json.gz")
    assert gzip.decompress((tmp_path / "f.json.gz").read_bytes()) == text(tidu.load(tmp_path / "f.json.gz")) == text(f)
    for name, arguments, message in [
        ("f.json", {"format": "msgpack"}, "ends in '.json', and argument 'format' says 'msgpack'; leave out one of them"),
        ("f.json", {"opset": 18}, "argument 'opset' is for onnx, and the result is json"),
        ("f.onnx", {"types": True}, "argument 'types' is for json and msgpack, and the result is onnx"),
        ("g.json", {"types": True, "nodes": "packed"}, "packed nodes have no place for types"),
        ("g.json", {"nodes": "some"}, "argument 'nodes' takes one of 'list', 'packed', not text ('some')"),
        ("g.rb", {}, "ends in '.rb', which is not a format of documents"),
        ("g.csv", {"format": "json"}, "ends in '.csv', which is not a format of documents"),
    ]:
        with pytest.raises(ArgumentError, match=re.escape(message)):
            tidu.save(f, tmp_path / name, **arguments)
        assert name == "f.json" or not (tmp_path / name).exists()


@pytest.mark.parametrize("suffix", ["json", "npz", "msgpack", "npz.gz", "json.gz"])
def test_values_are_written_and_read_again(tmp_path, suffix):
    events = tidu.load(SAMPLES / "events.json")
    noon = np.datetime64("2026-01-01T12:00", "h")
    values = {"events": {"at": noon + np.arange(4), "weight": np.ones(4)}, "due": np.full(4, noon + 1)}
    assert set(values) == set(tidu.info(events)["graphs"][-1]["inputs"])
    file = tmp_path / f"v.{suffix}"
    tidu.save_values(values, file)
    assert tidu.evaluate(events, tidu.load_values(file, events)) == tidu.evaluate(events, values)
    tidu.save_values({"a": 1.5, "b@-1": np.arange(3)}, file)
    assert list(tidu.load_values(file)) == ["a", "b@-1"]


def test_values_that_are_none():
    for values, message in [
        ({"x": "text"}, "value of x: expected an array of numbers, got text"),
        ({"x": {"y": [None]}}, "value of x.y: expected an array of numbers"),
        ({"x": [[1], [2, 3]]}, "value of x: expected an array, got a ragged list"),
    ]:
        with pytest.raises(EvaluationError, match=re.escape(message)):
            tidu.save_values(values, "/tmp/never.json")
    for name in ("v.onnx", "v.h5", "v"):
        with pytest.raises(ArgumentError, match="which is not a format of values; end it in"):
            tidu.save_values({"x": 1.0}, f"/tmp/{name}")
    with pytest.raises(DocumentError, match="no such file"):
        tidu.load_values("/tmp/never.npz")


def test_formulas():
    made = tidu.formula("y = sum(x**2); z = a * y", {"x": "f64[3]"}, a="f64[]", output="z", name="g")
    assert text(made) == succeed(
        "build", "y = sum(x**2); z = a * y", "-i", "x:f64[3]", "-i", "a:f64[]", "--output", "z", "--name", "g"
    )
    with pytest.raises(TiduError, match="column"):
        tidu.formula("sin(x", x="f64[]")


def test_reports_are_what_the_commands_print():
    file, other = SAMPLES / "f.json", SAMPLES / "cube.json"
    f, cube = tidu.load(file), tidu.load(other)
    told = json.loads(succeed("info", file, "--json", "--digests"))
    assert {"format": "json", **tidu.info(f, digests=True)} == told
    assert {str(file): tidu.check(f, "all")} == json.loads(succeed("check", file, "--all", "--json"))
    assert tidu.check(f, ["numeric"], {"x": 3.0})["ok"]
    assert tidu.check(f) == tidu.check(f, "static") == {"ok": True, "static": []}
    assert tidu.diff(f, f, exact=True)["same"] and not tidu.diff(f, cube)["same"]
    assert tidu.schema() == json.loads(succeed("schema"))


F = tidu.load(SAMPLES / "f.json")
WRONG = [
    None, 3, 3.5, "nope", b"x", [], {}, [None], ["x", 3], {"x": None}, {3: 4}, object(), np.zeros(3), lambda x: x, True, F, (1, 2),
    {"x": "f64"}, float("nan"), set(), {"x": {}}, np.array(["a"]), "",
]  # fmt: skip
RIGHT = {
    "load": (str(SAMPLES / "f.json"),), "load_onnx": (str(SAMPLES / "f.json"),), "save": (F, "OUT.json"), "resolve": (F,),
    "renumber": (tidu.linearize(F, "x"), {1: 2}), "compose": (F,), "derivative": (F, "x"), "trace": (np.exp, "f64[]"),
    "scan": (lambda c, x: (c, x), 0.0, np.zeros(3)), "fori_loop": (0, 3, lambda i, x: x, 0.0), "schema": (), "ops": ("mul",),
    "while_loop": (lambda x: False, lambda x: x, 0.0), "root": (lambda x: x, 0.0), "fixed_point": (lambda x: x, 0.0),
    "linear_solve": (lambda x: x, 1.0), "bound_loops": (F, 3), "specialize": (F, {}),
    "sparse_array": ({"data": [1.0], "row": [0], "col": [0], "shape": [1, 1]},),
    "cond": (True, lambda x: x, lambda x: x, 1.0), "switch": (0, [lambda x: x], 1.0),
    "evaluate": (F, {"x": 3}), "transpose": (tidu.linearize(F, "x"),), "formula": ("x * x", {"x": "f64[]"}), "diff": (F, F),
    "save_values": ({"x": 3.0}, "OUT.json"), "load_values": (str(SAMPLES / "demo.json"),),
    "minimize": (F, "x", {"x": 3.0}),
    "matrix": (tidu.linearize(tidu.load(SAMPLES / "vector.json"), "x"),),
    **dict.fromkeys(("to_dot", "compile", "materialize", "info", "check", "show"), (F,)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in tidu.__all__ if n[0].islower() and "jax" not in n and n != "static"])
def test_every_misuse_is_told_in_one_line_of_python_s_words(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, right = getattr(tidu, name), RIGHT.get(name, (F, "x"))
    names = list(inspect.signature(function).parameters)
    calls = [((*right[:k], wrong, *right[k + 1 :]), {}) for k in range(len(right)) for wrong in WRONG]
    calls += [(right, {parameter: wrong}) for parameter in names[len(right) :] for wrong in WRONG]
    calls += [((), {}), (right, {"nonsense": 1}), ((*right, F) * 9, {})]
    for args, options in calls:
        try:
            function(*args, **options)
        except TiduError as error:
            told = str(error)
            assert told and "\n" not in told and not re.search(r"(^|\W)--\w|\btidu [a-z]", told), (args, options, told)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tidu.linearize(F),
            "linearize missing 1 required positional argument: 'wrt' (it takes document, wrt, output, pass_number, detach,",
        ),
        (
            lambda: tidu.grad(F, "x", values=True),
            "'values'; did you mean 'value'? (it takes document, wrt, output, value, strong_zeros, sum)",
        ),
        (lambda: tidu.transpose(F, True, 1), "2 positional arguments but 3 were given (it takes document, strong_zeros)"),
        (
            lambda: tidu.evaluate(F, outputs="y", x=3),
            "evaluate has no argument 'outputs', and the document no such input; did you mean",
        ),
        (lambda: tidu.evaluate(F), "missing inputs: x: f64[]; give them with {'x': ...}"),
        (lambda: tidu.compile(F)(), "missing inputs: x: f64[]; give them with {'x': ...}"),
        (lambda: tidu.evaluate(F, x=3, max_memory=8), "allow more with max_memory=, or os.environ['TIDU_MAX_MEMORY']"),
        (lambda: tidu.transpose(F), "graph 'f' is not a linear graph; transpose() takes the output of linearize()"),
        (lambda: tidu.resolve(), "resolve takes one document or more, and got none"),
        (lambda: tidu.resolve(F, F, names=["f"]), "resolve takes one name for each document: got 1 for 2 documents"),
        (lambda: tidu.compose(F, names=["f", "g"]), "compose takes one name for each document: got 2 for 1 document"),
        (lambda: tidu.compose([F, F]), "takes a document, not a value of type list; write *documents for a list of them"),
        (
            lambda: tidu.linearize([F, F], "x"),
            "a document, not a value of type list; write resolve(*documents) to link several",
        ),
        (lambda: tidu.save_values({"x": print}, "x.npz"), "value of x: expected an array of numbers, got a value of type builtin"),
        (lambda: tidu.formula("sin(lenght)", length="f64[3]"), "unknown name 'lenght'; did you mean 'length'?"),
        (lambda: tidu.formula("i * 2"), "write 1j for the imaginary unit, or give it a type with i='f64[]'"),
        (lambda: tidu.hessian(tidu.load(SAMPLES / "two_outputs.json"), "r"), "choose one with output='x'"),
        (lambda: tidu.check(F, "al"), "argument 'parts' takes one of 'static', 'closure', 'numeric', 'all', not text ('al')"),
    ],
)
def test_messages(call, message):
    with pytest.raises(TiduError, match=re.escape(message)):
        call()
