"""Advice names only options that the command at hand has, or another command that has them."""

from __future__ import annotations

import json
import re

import click
import numpy as np
import pytest

from tests.cli.running import F, document, graph, invoke
from tests.custom.making import body, unary
from tidu_cli.cli.main import COMMANDS, cli

GREATEST = 2**53 - 1
TANGENT = {"tangent": {"of": "x", "pass": GREATEST}}

SHORTHANDS = ("grad", "jvp", "vjp", "hvp", "jacobian", "hessian", "derivative")
READERS = tuple(name for name in COMMANDS if name not in ("build", "schema", "ops", "completion", "help"))
ASKED = {
    "diff": (F,),
    **dict.fromkeys(("linearize", *SHORTHANDS), ("--wrt", "x")),
    "step": ("--wrt", "x", "--init"),
    "eval": ("--set", "x=1"),
    "minimize": ("--wrt", "x", "--set", "x=1"),
    "view": ("--set", "x=1"),
}
"""What commands cannot do without."""


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {o for p in command.params if isinstance(p, click.Option) for o in (*p.opts, *p.secondary_opts)}


def advised(message: str) -> set[tuple[str | None, str]]:
    """The options that a message names, each with the command that it names before, if any."""
    options = set()
    for clause in re.split(r"[;:,] |\. ", message):
        named = re.search(r"tidu ([a-z]+)", clause)
        options |= {(named[1] if named else None, option) for option in re.findall(r"(?<!\S)(--[a-z-]+)", clause)}
    return options


ONE = document(graph([("sin", 0)], outputs=[("y", 1)]))
TWO = document(graph([("sin", 0), ("cos", 0)], [("x", "f64[2]"), ("z", "f64[]")], [("y", 2), ("w", 3)]))
COMPLEX = document(graph([("sin", 0)], [("x", "c128[]")], [("y", 1)]))
DETACHED = f"sha256:{0:064}"
REST = [{"key": "y", "value": 1}]
LAST_PASS = {**graph([("sin", 0)], [], [("y", 1)]), "inputs": [{"key": "x", "type": "f64[]"}, {"key": TANGENT, "type": "f64[]"}]}
LAST_PASS["nodes"] = [{"op": "mul", "inputs": [0, 1]}]
LAST_PASS["outputs"] = [{"key": "y", "value": 2}]
OPS = {"o": unary(body("x", [("sin", k) for k in range(9)], {"y": 9}), "f64[]")}
LIBRARY = json.dumps({"tidu": 1, "ops": OPS}).encode()

TROUBLES = {
    "an unknown op": (document(graph([("nope", 0)], outputs=[("y", 1)])), ()),
    "a library": (LIBRARY, ()),
    "no pass left": (document(LAST_PASS), ()),
    "several outputs": (TWO, ()),
    "complex inputs": (COMPLEX, ()),
    "too many nodes": (document(graph([("sin", k) for k in range(9)], outputs=[("y", 9)])), ("--max-nodes", "8")),
    "too little memory": (ONE, ("--max-memory", "1")),
    "not enough values": (document(graph([("mul", 0, 1)], [("x", "f64[]"), ("z", "f64[]")], [("y", 2)])), ()),
    "a picture too large": (document(graph([("sin", k) for k in range(600)], outputs=[("y", 600)])), ()),
    "zero outputs": (document({**graph([], [("x", "f64[]")]), "outputs": [{"key": "y", "value": None, "type": "f64[]"}]}), ()),
    "a detached value": (document({**graph([]), "nodes": [{"op": "sin", "inputs": [DETACHED]}], "outputs": REST}), ()),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_options_that_messages_name_are_there(trouble, name):
    source, more = TROUBLES[trouble]
    result = invoke(name, "-", *ASKED.get(name, ()), *more, input=source)
    for command, option in advised(result.stderr):
        assert option in options_of(command or name), result.stderr


@pytest.mark.parametrize("name", [name for name in READERS if "--inputs" in options_of(name)])
def test_options_that_messages_about_values_name_are_there(tmp_path, name):
    np.save(tmp_path / "x.npy", np.float64(1))
    (tmp_path / "wrong.json").write_text('{"x": {"type": "f64"}}')
    asked = [part for part in ASKED.get(name, ()) if not part.startswith(("--set", "x="))]
    for file in ("x.npy", "wrong.json"):
        result = invoke(name, "-", *asked, *(["--numeric"] if name == "check" else []), "--inputs", tmp_path / file, input=ONE)
        assert result.exit_code == 1
        for command, option in advised(result.stderr):
            assert option in options_of(command or name), result.stderr


@pytest.mark.check
def test_the_test_sees_advice():
    message = "tidu grad: error: no; choose with --output, or tidu linearize --pass 3"
    assert advised(message) == {(None, "--output"), ("linearize", "--pass")}
    seen = {trouble for trouble in TROUBLES for name in READERS if advised(stderr_of(trouble, name))}
    assert seen >= {"too many nodes", "too little memory", "several outputs", "complex inputs", "no pass left", "an unknown op"}


def stderr_of(trouble: str, name: str) -> str:
    source, more = TROUBLES[trouble]
    return invoke(name, "-", *ASKED.get(name, ()), *more, input=source).stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_limits(name):
    assert {"--max-memory", "--max-nodes", "--max-expansion", "--max-steps"} <= options_of(name)
