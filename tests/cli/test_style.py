"""Colours: at terminals and on demand only, and never where NO_COLOR is set. --quiet and --verbose."""

from __future__ import annotations

import pytest

from tests.cli.running import ENVIRONMENT, F, document, graph, process
from tidu_cli.cli.main import COMMANDS

PLAIN = {k: v for k, v in ENVIRONMENT.items() if k not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
FAILING = ("linearize", F, "--wrt", "z")
BOLD, RED = b"\x1b[1m", b"\x1b[31m"


@pytest.mark.parametrize(
    ("variables", "styled"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
    ],
)
def test_colours_of_pipes(variables, styled):
    environment = {**PLAIN, **variables}
    assert (RED in process(*FAILING, env=environment).stderr) == styled
    assert (BOLD in process("linearize", "--help", env=environment).stdout) == styled


def test_data_is_never_coloured():
    environment = {**PLAIN, "FORCE_COLOR": "1"}
    for args in (("convert", F), ("eval", F, "--set", "x=3"), ("dot", F), ("schema",)):
        assert b"\x1b" not in process(*args, env=environment).stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_quiet_and_verbose(command):
    shown = process(command, "--help").stdout
    assert b"\n  --quiet " in shown and b"\n  -v, --verbose " in shown


@pytest.mark.parametrize("args", [("-v", "linearize", F, "--wrt", "x"), ("linearize", F, "--wrt", "x", "--verbose")])
def test_verbose_tells_the_steps(args):
    done = process(*args)
    assert done.stdout == process("linearize", F, "--wrt", "x").stdout
    lines = done.stderr.decode().splitlines()
    assert all(line.startswith("tidu linearize: ") for line in lines)
    told = "\n".join(lines)
    for part in (
        f"read {F}: json, 251 bytes, 1 graph",
        "linearizing: 2 nodes, ",
        "'f@1' of 4 nodes, linear in pass 1",
        "wrote stdout: ",
    ):
        assert part in told


def test_quiet_leaves_errors_only():
    detached = process("linearize", F, "--wrt", "x", "--detach").stdout
    assert b": note: " in process("resolve", input=detached).stderr
    for args in (("resolve", "--quiet"), ("--quiet", "resolve")):
        assert process(*args, input=detached).stderr == b""
    assert b"error:" in process("--quiet", *FAILING).stderr


def test_the_last_one_counts():
    data = document(graph(outputs=[("y", 0)]))
    assert process("-v", "convert", "--quiet", input=data).stderr == b""
    assert process("--quiet", "convert", "-v", input=data).stderr != b""
