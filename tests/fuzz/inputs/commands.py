"""Command lines: any words for any command end with status 0, 1 or 2, one line on stderr for 1, and files whole or untouched."""

from __future__ import annotations

import json
import tempfile
from contextlib import chdir
from functools import cache
from pathlib import Path

import click
from click.testing import CliRunner

from tests.fuzz.choices import Choices
from tests.fuzz.inputs.documents import sources
from tests.fuzz.mutation import mutate_bytes
from tests.fuzz.target import Target
from tidu_cli.cli.main import COMMANDS, cli

WORDS = (
    *(
        "x",
        "y",
        "x@1",
        "y@-1",
        "x@-1",
        "y/x",
        "t",
        "",
        "@",
        "x@0",
        "x@99999999999999999999",
        "é",
        "\x1b[31m",
        "x\ny",
        "sha256:" + "0" * 64,
    ),
    *(
        "x=1",
        "x=3",
        "y=2",
        "x=[1,2]",
        "x=",
        "=x",
        "x=1e400",
        "y@-1=1",
        "x@1=1",
        "x=@f.npy",
        "x=nan",
        "x=NaN",
        "x=y",
        "x=0",
        "x=f64[2]",
    ),
    *("0", "1", "-1", "2", "1.5", "1K", "9" * 25, "sqrt", "json", "msgpack", "npz", "svg", "dot", "name", "position", "f64", "f32"),
    *(
        "in.json",
        "other.json",
        "nowhere.json",
        "-",
        ".",
        "out.json",
        "out.msgpack",
        "out.svg",
        "out.py",
        "out",
        "/dev/null",
        "kept.json",
    ),
    *("sin(x) * y", "x + ", "add", "mul", "nothing", "1=2", "bash", "values.json"),
)


@cache
def options(name: str) -> tuple[tuple[str, bool], ...]:
    """All options of a command, and whether a word belongs to each."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    params = [p for p in command.params if isinstance(p, click.Option)]
    return tuple((o, not p.is_flag and not p.count) for p in params for o in (*p.opts, *p.secondary_opts))


def make(choices: Choices) -> bytes:
    """A command line as JSON: words, and what stands in stdin, in.json and other.json, as texts of latin-1."""
    name = choices.pick([c for c in COMMANDS if c not in ("completion", "help")])
    words = [name]
    for _ in range(choices.below(5)):
        if choices.one_in(5):
            words.append(choices.pick(WORDS))
            continue
        option, takes_word = choices.pick(options(name))
        words += [option, choices.pick(WORDS)] if takes_word else [option]
        if (name, option) == ("check", "--ops"):
            words.append(choices.pick(("add", "sin", "nothing")))  # without a name all primitives are tried: nine seconds of work
    if choices.below(4):
        words.insert(1, choices.pick(("in.json", "in.json", "-")))
    files = []
    for _ in range(3):
        data = choices.pick(sources())
        files.append((mutate_bytes(choices, data) if choices.one_in(6) else data).decode("latin-1"))
    return json.dumps([words, *files]).encode()


def judge(case: bytes) -> str:
    """Run the command within this process, in a folder of its own."""
    words, *contents = json.loads(case)
    stdin, first, second = (text.encode("latin-1") for text in contents)
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name)
        folder.joinpath("in.json").write_bytes(first)
        folder.joinpath("other.json").write_bytes(second)
        folder.joinpath("kept.json").write_bytes(b"of the user")
        folder.joinpath("values.json").write_bytes(b'{"x": 1, "y": 2}')
        before = {f.name: f.read_bytes() for f in folder.iterdir()}
        result = CliRunner().invoke(cli, words, input=stdin, prog_name="tidu")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        after = {f.name: f.read_bytes() for f in folder.iterdir()}
    errors = result.stderr.splitlines()
    assert result.exit_code in (0, 1, 2), f"status {result.exit_code}"
    assert "internal error" not in result.stderr, f"internal error: {errors}"
    assert "Traceback" not in result.stderr, f"traceback: {errors}"
    assert "out of memory" not in result.stderr, f"memory ran out: {errors}"
    assert not [line for line in errors if not line.isprintable()], f"raw control characters: {errors}"
    if result.exit_code == 1 and words[0] not in ("diff", "check"):
        assert len([line for line in errors if ": error: " in line]) == 1, f"not one error: {errors}"
        assert after == before, "files changed though the command failed"
    named = {word.partition("=")[2] if word.startswith("-") and "=" in word else word.removeprefix("-o") for word in words}
    changed = {f for f in after if after.get(f) != before.get(f)} | (before.keys() - after.keys())
    assert changed <= named, f"files changed that nobody named: {changed - named}"
    return f"status {result.exit_code}"


COMMAND_LINES = Target("commands", ".command", make, judge)
