"""The command line is a face of the API: the same names, the same answers, the same words but for how an option is spelt."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import tidu_cli as tidu
from tests.cli.running import ROOT, F, invoke, succeed
from tests.programs import needs
from tidu_cli.cli.main import COMMANDS, cli
from tidu_cli.errors import ArgumentError
from tidu_cli.options import CHECKS, OPTIONS

FUNCTIONS = {name: getattr(tidu, {"eval": "evaluate", "dot": "draw"}.get(name, name), None) for name in COMMANDS}
"""The function of each command."""

SHELL = {
    *("file", "files", "input", "jax", "type_files", "ops", "plugins", "plain"),  # how a document is read
    *("out", "format_", "force", "as_json", "quiet", "verbose", "brief", "in_full", "tell"),  # how a result is written
    *("max_memory", "max_nodes", "max_expansion", "max_steps"),  # limits of a process
    *("settings", "move_files", "batches"),  # values, which Python has as they are
}
"""Parameters of commands for what Python has in hand, or does with the result."""

OWN = {
    "eval": {"scheduler", "chunk", "reduce", "resume", "stream", "kinks"},  # Compiled.map, Compiled called again and again, kinks
    "view": {"open_"},  # of a browser
    "check": {"subjects", "static", "closure", "numeric", "everything", "dtypes", "dims", "input_types", "set"},
    **{name: {"engine", "device"} for name in ("grad", "jvp", "vjp", "hvp", "derivative")},  # evaluate
    "jacobian": {"engine", "device", "scheduler", "chunk", "resume", "mode"},
    "hessian": {"engine", "device", "scheduler", "chunk", "resume"},
    "step": {"init"},  # initial_state
}
"""Options of commands that are parameters of other functions: `parts` of check, `reverse` of jacobian."""


def command(name: str) -> click.Command:
    subcommand = cli.get_command(click.Context(cli), name)
    assert subcommand is not None
    return subcommand


@pytest.mark.every
@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function])
def test_options_are_parameters(name: str) -> None:
    taken = {p.name for p in command(name).params if p.name} - SHELL - OWN.get(name, set())
    assert taken <= set(inspect.signature(FUNCTIONS[name]).parameters)


ELSEWHERE = {("check", "ops"), ("convert", "types"), ("derivative", "wrt"), ("build", "output")}
"""Options that mean something else in one command, and say so."""


@pytest.mark.every
@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_those_of_the_table(name: str) -> None:
    """Flag, help, and what Python takes under the name: one declaration."""
    for p in command(name).params:
        if isinstance(p, click.Option) and p.name in OPTIONS and (name, p.name) not in ELSEWHERE:
            known = OPTIONS[p.name]
            assert (p.opts, p.help, p.is_flag) == ([known.flag], known.help, known.is_flag), p.name
            assert p.multiple == (known.repeats or known.pairs)
            assert CHECKS[p.name] is known.check


def test_the_table_has_what_a_function_takes_that_has_a_command() -> None:
    """But for what only Python has in hand, and what is an option of a format or of the process."""
    taken = {p for f in FUNCTIONS.values() if f for p in inspect.signature(f).parameters}
    flags = {p.name for name in COMMANDS for p in command(name).params if isinstance(p, click.Option)}
    assert taken & flags - OPTIONS.keys() <= {"assume", "max_memory", "max_steps", "moves", "set"}


@pytest.mark.every
def test_every_command_that_is_listed_as_of_its_own_has_these_options() -> None:
    for name, own in OWN.items():
        assert own <= {p.name for p in command(name).params}, name


DOCUMENT = tidu.load(F)
CUBE = str(ROOT / "samples" / "cube.json")


def plain(report: dict[str, Any]) -> dict[str, Any]:
    """A report with lists for its arrays."""
    return report | {"values": {key: value.tolist() for key, value in report["values"].items()}}


ANSWERS = {
    "info": (("info", F), lambda: {"format": "json", **tidu.info(DOCUMENT)}),
    "diff": (("diff", F, F), lambda: tidu.diff(DOCUMENT, DOCUMENT)),
    "check": (("check", F, "--all"), lambda: {F: tidu.check(DOCUMENT, "all")}),
    "ops": (("ops", "mul", "scan"), lambda: tidu.ops("mul", "scan")),
    "eval": (
        ("eval", CUBE, "--set", "x=0", "--kinks"),
        lambda: {"values": {"y": 0.0}, "kinks": tidu.kinks(tidu.load(CUBE), {"x": 0.0})},
    ),
    "minimize": (("minimize", F, "--wrt", "x", "--set", "x=1"), lambda: plain(tidu.minimize(DOCUMENT, "x", {"x": 1.0}))),
}
"""Of each command with --json a call, and the API's answer to the same question."""


def test_every_command_with_json_is_compared() -> None:
    assert {name for name in COMMANDS if any(p.name == "as_json" for p in command(name).params)} == ANSWERS.keys()


@pytest.mark.every
@pytest.mark.parametrize("name", ANSWERS)
def test_json_is_what_the_function_gives(name: str) -> None:
    args, answer = ANSWERS[name]
    assert json.loads(succeed(*args, "--json")) == json.loads(json.dumps(answer()))


@pytest.mark.every
@pytest.mark.parametrize("kind", ["document", "library"])
def test_files_are_checked_alike(kind: str, tmp_path: Path) -> None:
    file = CUBE
    if kind == "library":
        ops = json.loads((ROOT / "samples" / "softplus.json").read_text())["ops"]
        (tmp_path / "library.json").write_text(json.dumps({"tidu": 1, "ops": ops}))
        file = str(tmp_path / "library.json")
    assert json.loads(succeed("check", file, "--all", "--json")) == {file: json.loads(json.dumps(tidu.check(file, "all")))}


@needs("onnx")
def test_a_model_is_checked_alike(tmp_path: Path) -> None:
    from onnx import save
    from onnx.parser import parse_model

    text = '<ir_version: 10, opset_import: ["": 18]> score (float[n] x) => (float y) { y = ReduceSumSquare <keepdims = 0> (x) }'
    save(parse_model(text), file := str(tmp_path / "score.onnx"))
    report = json.loads(succeed("check", file, "--all", "--json", "--dim", "n=3"))
    assert report == {file: json.loads(json.dumps(tidu.check(file, "all", dims={"n": 3})))}
    assert report[file]["model"]["nodes"] == "1 ReduceSumSquare"
    assert tidu.load(file, dims={"n": 3}).head.inputs == tidu.load_onnx(file, dims={"n": 3}).document.head.inputs
    with pytest.raises(ArgumentError, match="load has no argument 'dim'; did you mean 'dims'"):
        tidu.load(file, dim={"n": 3})


OTHERS = "against is for files of other systems; leave it out"


@pytest.mark.every
@pytest.mark.parametrize(
    ("document", "options", "says"),
    [
        (F, {"dims": {"n": 3}}, f"{F} is json, and {OTHERS.replace('against', 'dims')}"),
        (
            DOCUMENT,
            {"against": "onnxruntime"},
            "the document is in memory, and against is for files of other systems; leave it out",
        ),
        (DOCUMENT, {"dim": 3}, "check has no argument 'dim'; did you mean 'dims'?"),
        (3, {}, "argument 'document' takes a document, not a value of type int; load and trace give one"),
    ],
)
def test_what_check_does_not_take(document: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        tidu.check(document, **options)
    assert str(refused.value) == says


def test_a_difference_is_told_alike() -> None:
    result = invoke("diff", F, CUBE, "--exact", "--json")
    assert result.exit_code == 1
    difference = json.loads(result.stdout)
    assert difference == json.loads(json.dumps(tidu.diff(DOCUMENT, tidu.load(CUBE), exact=True)))
    assert not difference["same"]


DERIVED: dict[str, dict[str, object]] = {
    "linearize": {},
    "grad": {},
    "jvp": {"value": True},
    "vjp": {"strong_zeros": True},
    "hvp": {},
    "jacobian": {},
    "hessian": {},
    "derivative": {"order": 2},
    "step": {"optimizer": "adam", "clip_norm": 1.0, "accumulate": 2},
}


@pytest.mark.every
@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_are_those_of_the_function(name: str, tmp_path: Path) -> None:
    flags = [word for key, x in DERIVED[name].items() for word in ([f"--{key.replace('_', '-')}"] + [str(x)] * (x is not True))]
    tidu.save(getattr(tidu, name)(DOCUMENT, "x", **DERIVED[name]), tmp_path / "derived.json")
    assert succeed(name, F, "--wrt", "x", *flags) == (tmp_path / "derived.json").read_bytes()


VECTOR = str(ROOT / "samples" / "vector.json")


@pytest.mark.parametrize(
    "args",
    [
        ("grad", VECTOR),  # whose output is no number
        ("hvp", F, "--output", "nope"),
        ("jacobian", F, "--set", "q=1"),
        ("linearize", F, "--tangent", "q=f32"),
        ("derivative", VECTOR, "--order", "3"),
    ],
    ids=lambda args: args[0],
)
def test_a_wrong_wrt_is_told_before_what_depends_on_it(args: tuple[str, ...]) -> None:
    told = invoke(*args, "--wrt", "z").stderr
    assert told == f"tidu {args[0]}: error: no graph has an input 'z' (inputs: x)\n"


def test_ways_out_are_data_which_each_caller_spells() -> None:
    with pytest.raises(tidu.TiduError) as caught:
        tidu.grad(tidu.load(ROOT / "samples" / "two_outputs.json"), "r")
    assert [(r.option, r.value) for r in caught.value.remedies] == [("output", "x")]
    assert str(caught.value).endswith("choose one with output='x'")
    assert invoke("grad", ROOT / "samples" / "two_outputs.json", "--wrt", "r").stderr.endswith("choose one with --output x\n")


def test_names_in_capitals_are_text_in_python() -> None:
    document = tidu.rename(tidu.load(ROOT / "samples" / "two_outputs.json"), {"x": "X"})
    with pytest.raises(tidu.TiduError, match=r"choose one with output='X'$"):
        tidu.grad(document, "r")


@needs("dot")
def test_pictures_are_those_of_the_function() -> None:
    options = {"types": True, "highlight": "x"}
    assert succeed("dot", F, "--types", "--highlight", "x") == tidu.draw(DOCUMENT, "dot", **options)
    assert succeed("dot", F, "--types", "--highlight", "x") == tidu.to_dot(DOCUMENT, **options).encode()
    assert succeed("dot", F, "--depth", "1", "--format", "svg") == tidu.draw(DOCUMENT, depth=1)
    assert succeed("view", F, "--set", "x=3", "--expand") == tidu.view(DOCUMENT, {"x": 3.0}, expand=True).encode()
    assert succeed("view", F) == tidu.view(DOCUMENT).encode()
    assert tidu.draw(DOCUMENT) == tidu.draw(DOCUMENT, "svg") == succeed("dot", F, "--format", "svg")
    nested = tidu.trace(lambda p: p["a"] * p["b"], p={"a": "f64[]", "b": "f64[]"})
    assert tidu.view(nested, {"p": {"a": 2.0, "b": 3.0}}) == tidu.view(nested, {"p.a": 2.0, "p.b": 3.0})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"depth": -1}, "argument 'depth' takes an integer from 0 on, not a value of type int"),
        ({"opened": 3}, "argument 'opened' takes the name of a group, or a list of names, not a value of type int"),
        ({"format": "gif"}, "argument 'format' takes one of 'svg', 'png', 'pdf', 'dot', not text ('gif')"),
    ],
)
def test_what_draw_does_not_take(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ArgumentError) as refused:
        tidu.draw(DOCUMENT, **options)
    assert str(refused.value) == says


@needs("dot")
def test_what_is_too_large_to_draw_says_what_helps_as_python_has_it() -> None:
    large = tidu.trace(lambda x: sum(np.sin(k * x) for k in range(40)), "f64[]")
    with pytest.raises(tidu.TiduError, match=r"more than 20; collapse=True, limit=\d+ draws \d+; limit=\d+ draws all; info\(\)"):
        tidu.draw(large, limit=20)
    with pytest.raises(ArgumentError, match="opened and depth draw groups, expand and limit every node"):
        tidu.draw(large, depth=1, expand=True)
