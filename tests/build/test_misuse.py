"""Misuse of the Python API is a TiduError in the words of Python, of one line, and nothing from the inside."""

from __future__ import annotations

import atexit
import inspect
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidu_cli
from tests.cli.running import ROOT
from tests.onnx.models import network
from tests.tiers import few
from tidu_cli.errors import ArgumentError, KeyTextError, TiduError
from tidu_cli.graph.keys import Key

DOCUMENT = tidu_cli.load(ROOT / "samples" / "rosenbrock.json")
LINEAR = tidu_cli.linearize(DOCUMENT, "x")
COMPILED = tidu_cli.compile(DOCUMENT)
MODEL = Path(tempfile.mkstemp(suffix=".onnx")[1])
MODEL.write_bytes(network().SerializeToString())
atexit.register(MODEL.unlink)


def a_function(x):
    return x * 2


class Odd:
    """Nothing that tidu knows."""


HOSTILE = [
    None, True, -1, 3, 2.5, float("nan"), 10**30, 1j, "", "x", "x@@@", "x@0", "@1", "nowhere", "samples/f.json", "512Q", b"x",
    Path("nowhere.json"), a_function, lambda: 1, type, Odd, Odd(), np, np.ones(3), np.float64(2), np.datetime64("2020"), [], {}, (),
    [None], [3], ["x", 3], [["x"]], [DOCUMENT], [DOCUMENT, DOCUMENT], (DOCUMENT,), DOCUMENT, COMPILED, range(3), {1: 2}, {None: 1},
    {"x": None}, {"x": Odd()}, {"x": "f99"}, {"x": [1, {"a": Odd()}]}, {"x": a_function}, {"x": -7}, {"x": 10**30}, {"x": [[1], 2]},
    {"x": {"y": 1}}, {"x": b"1"}, {"x": DOCUMENT}, {"nowhere": 1.0}, {"x@@@": 1}, {Key("x"): Odd()}, {("x",): 1},
    [("x",)], [("x", 3)], [("x", "nowhere")], {"x", "y"}, object(),
]  # fmt: skip

GOOD: dict[str, dict[str, Any]] = {
    "load": {"file": ROOT / "samples" / "f.json"},
    "load_onnx": {"file": MODEL, "dims": {"batch": 2}},
    "save": {"document": DOCUMENT, "file": os.devnull},
    "trace": {"function": a_function, "args": ("f64[]",)},
    "from_jax": {"function": a_function, "args": ("f32[]",)},
    "resolve": {"documents": (DOCUMENT,)},
    "compose": {"documents": (DOCUMENT, DOCUMENT)},
    "transpose": {"document": LINEAR},
    "renumber": {"document": LINEAR, "passes": {1: 2}},
    "bound_loops": {"document": DOCUMENT, "steps": 3},
    "matrix": {"document": LINEAR},
    "evaluate": {"document": DOCUMENT, "inputs": {"x": 1.0, "y": 2.0}},
    "minimize": {"document": DOCUMENT, "inputs": {"x": 1.0, "y": 2.0}},
    "scan": {"f": lambda c, x: (c, x), "init": 0.0, "xs": np.ones(3)},
    "fori_loop": {"lower": 0, "upper": 3, "body_fun": lambda i, c: c, "init_val": 0.0},
    "while_loop": {"cond_fun": lambda c: False, "body_fun": lambda c: c, "init_val": 1},
    "root": {"f": lambda x: x, "x0": 0.0},
    "fixed_point": {"f": lambda x: x, "x0": 0.0},
    "linear_solve": {"matvec": lambda x: x, "b": 1.0},
    "cond": {"pred": True, "true_fun": lambda *x: 1.0, "false_fun": lambda *x: 2.0, "operands": ()},
    "switch": {"index": 0, "branches": [lambda *x: 1.0], "operands": ()},
    "Compiled": {"program": 3},
    "Compiled.__call__": {"self": COMPILED, "inputs": {"x": 1.0, "y": 2.0}},
}
"""Arguments with which a function works, where they are not a document and `wrt`."""

LOOPS = ("scan", "fori_loop", "while_loop", "cond", "switch", "root", "fixed_point", "linear_solve")
FUNCTIONS = [*(name for name in tidu_cli.__all__ if name[0].islower()), "Compiled", "Compiled.__call__"]
FROM_THE_INSIDE = re.compile(r"has no attribute|object is not|argument of type|must be \w+, not")


def function_of(name):
    member: Any = tidu_cli
    for part in name.split("."):
        member = getattr(member, part)
    return member


def called(name, parameter, value):
    """Call the function with good arguments but for one."""
    function = function_of(name)
    arguments = dict(GOOD.get(name, {"document": DOCUMENT}))
    signature = inspect.signature(function)
    if "wrt" in signature.parameters:
        arguments["wrt"] = "x"
    if signature.parameters[parameter].kind is inspect.Parameter.VAR_KEYWORD:
        value = {"x": value}
    elif signature.parameters[parameter].kind is inspect.Parameter.VAR_POSITIONAL:
        value = (*arguments.get(parameter, ())[1:], value)
    arguments[parameter] = value
    bound = signature.bind_partial()
    bound.arguments.update({k: arguments[k] for k in signature.parameters if k in arguments})
    return function(*bound.args, **bound.kwargs)


PARAMETERS = [
    (name, p)
    for name in FUNCTIONS
    for p in inspect.signature(function_of(name)).parameters
    if p not in ("self", "operands") and name != "static"  # which takes whatever there is
]


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hostile_arguments_are_told_in_one_line(name, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told, k = {}, PARAMETERS.index((name, parameter))
    for value in few([*HOSTILE[k % 4 :], *HOSTILE[: k % 4]], 17):
        if value is type and name in LOOPS:
            continue  # what functions raise that are called with plain values is theirs
        if value is True and parameter == "backends":
            continue  # which starts JAX, and other tests fork
        try:
            called(name, parameter, value)
        except TiduError as error:
            told[repr(value)] = str(error)
    assert told
    assert not {k: text for k, text in told.items() if "\n" in text or FROM_THE_INSIDE.search(text)}


OF_DOCUMENTS = [
    n for n in FUNCTIONS if next(iter(inspect.signature(function_of(n)).parameters), "") in ("document", "documents", "a")
]


@pytest.mark.parametrize("name", OF_DOCUMENTS)
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (a_function, r"takes a document, not a function; write trace\(function, 'f64\[3\]', ...\)"),
        ("samples/f.json", r"takes a document, not text \('samples/f.json'\); write load\(file\) to read one"),
        ([1.0, 2.0], "takes a document, not a value of type list; load and trace give one"),
        (None, "takes a document, not None"),
    ],
)
def test_what_is_no_document_is_told_what_to_write(name, value, words):
    if name == "check" and isinstance(value, str):
        assert tidu_cli.check(value)["ok"]  # it takes files, too
        return
    if value is a_function and name in ("grad", "value_and_grad", "jacobian", "hessian"):
        assert called(name, "document", value)(3.0) is not None  # they take functions, too
        return
    if value is a_function and name in ("jvp", "vjp", "hvp"):
        words = "of a function has no argument 'wrt'"  # as these do, by all arguments
    parameters = inspect.signature(function_of(name)).parameters
    with pytest.raises(ArgumentError, match=words):
        called(name, next(iter(parameters)), value)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tidu_cli.grad([DOCUMENT], "x"), ArgumentError, r"write resolve\(\*documents\) to link several"),
        (lambda: tidu_cli.grad(DOCUMENT, 3), ArgumentError, "'wrt' takes a key, text such as 'x' or 'y@-1', or a list"),
        (lambda: tidu_cli.grad(DOCUMENT, ["x", None]), ArgumentError, "argument 'wrt' takes a key, .* not None"),
        (lambda: tidu_cli.grad(DOCUMENT, "x@@@"), KeyTextError, "x@@@"),
        (lambda: tidu_cli.grad(DOCUMENT, "x", value="yes"), ArgumentError, "argument 'value' takes True or False, not text"),
        (lambda: tidu_cli.derivative(DOCUMENT, ["x", "y"]), ArgumentError, "'wrt' takes a key, .* type list"),
        (lambda: tidu_cli.derivative(DOCUMENT, "x", order=2.5), ArgumentError, "'order' takes an integer, not .* type float"),
        (lambda: tidu_cli.evaluate(DOCUMENT, [1.0, 2.0]), ArgumentError, "'inputs' takes a dict, .* not .* type list"),
        (lambda: COMPILED([1.0, 2.0]), ArgumentError, "argument 'inputs' takes a dict, .* type list"),
        (lambda: COMPILED({"x": 1.0, "y": 1.0}, out=[1]), ArgumentError, "argument 'out' takes a dict, .* type list"),
        (lambda: tidu_cli.evaluate(DOCUMENT, {1: 2.0}), ArgumentError, "takes a key, .* not a value of type int"),
        (lambda: tidu_cli.trace("f.py:f"), ArgumentError, "argument 'function' takes a function of NumPy arrays, not text"),
        (lambda: tidu_cli.load(3), ArgumentError, "argument 'file' takes the name of a file, .* not a value of type int"),
        (lambda: tidu_cli.Compiled(DOCUMENT), ArgumentError, r"write compile\(document\)"),
    ],
)  # fmt: skip
def test_words(call, kind, words):
    with pytest.raises(kind, match=words) as refusal:
        call()
    assert kind is not ArgumentError or isinstance(refusal.value, TypeError)


def test_keys_may_be_in_any_collection():
    expected = tidu_cli.evaluate(tidu_cli.grad(DOCUMENT, ["x", "y"]), x=2.0, y=1.0)
    for wrt in (("x", "y"), iter(["x", Key("y")]), np.array(["x", "y"])):
        assert tidu_cli.evaluate(tidu_cli.grad(DOCUMENT, wrt), x=2.0, y=1.0) == expected
