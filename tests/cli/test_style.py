"""Colours: at terminals and on demand only, and never where NO_COLOR is set. --quiet and --verbose."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import ENVIRONMENT, F, document, graph, invoke, process
from tidu_cli.cli.main import COMMANDS

PLAIN = {k: v for k, v in ENVIRONMENT.items() if k not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}
FAILING = ("linearize", F, "--wrt", "z")
BOLD, RED = b"\x1b[1m", b"\x1b[31m"


@pytest.mark.check
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


@pytest.mark.check
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


STEERING = "\x1b[31m\n\r\x07\u202e\x9b2J"
X, Y, NAMES = f"x{STEERING}", f"y{STEERING}", {f"m{STEERING}": STEERING, "name": STEERING, "source": STEERING}
STEERED = document(
    graph([("mul", 0, 0)], inputs=[(X, "f64[]"), ("z", "f64[]")], outputs=[(Y, 2)], name=f"f{STEERING}", meta=NAMES), meta=NAMES
)
LINES = [
    *("info", "show", "show --formula", "check", "check --numeric", "convert", "dot", "matrix", "rename --graph g=h"),
    *("diff - F", "diff F -", "resolve F -", "resolve --bind X=X", "compose F - --by position", "compose - -", "transpose", "eval"),
    *("linearize --wrt X", "linearize --wrt XX", "linearize --wrt z -v", "linearize --wrt X --detach"),
    "derivative --wrt X --pipeline",
    *(f"eval --inputs V --format {format_}" for format_ in ("json", "csv", "table")),
    *(f"{verb} --wrt X --inputs V{more}" for verb in ("grad", "hessian") for more in ("", " --format table", " --pipeline")),
    *("eval --inputs V -v", "eval --set XX=1", "eval --output XX --inputs V", "eval --inputs XX", "build XX -i X:f64[]"),
    *("build -i X X", "convert XX.json", "convert -o XX/f.json", "schema XX", "XX", "ops XX", "help XX"),
]


def test_no_name_steers_the_terminal_from_the_head_of_a_page():
    assert not set(STEERING) - {*"[312mJ\n"} & set(invoke("view", input=STEERED).stdout.partition("<main>")[0])


@pytest.mark.parametrize("line", LINES)
def test_no_name_steers_the_terminal(line, tmp_path):
    (tmp_path / "v.json").write_text(json.dumps({X: 1, "z": 2, f"w{STEERING}": 3}))
    meant = {"F": F, "V": tmp_path / "v.json", "X": X, "XX": f"X{STEERING}", "X=X": f"{X}={Y}", "XX=1": f"X{STEERING}=1"}
    words = [meant.get(word, word.replace("X", X)) for word in line.split()]
    result = invoke(*words, input=STEERED)
    for text in (result.stdout, result.stderr):
        assert all(part.isprintable() for part in text.split("\n")), ascii(text)
