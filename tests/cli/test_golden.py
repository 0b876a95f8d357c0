"""The command line, case by case: `cases/GROUP/NAME.cmd` beside what it must print.

NAME.cmd begins with a comment on what it shows, and runs in bash (-euo pipefail) in the root of the repository, with `tidu` on the
PATH and a fresh folder $TMP. NAME.stdout and NAME.stderr are what comes out, NAME.status the exit status: a file that is not there
means nothing, and 0. `TIDU_RENEW=1 pytest --tier check tests/cli/test_golden.py` writes them; then read the difference.

Cases whose lines all call tidu and need nothing of a shell run within this process, which saves starting one: `make test` has all
of these, and some of the others.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.programs import called_by, require
from tests.tiers import thin
from tidu_cli.cli.main import cli

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent / "cases"
COMMANDS = sorted(CASES.rglob("*.cmd"))
IN_BASH = 60
"""Cases in bash that `make test` has."""

OF_A_PROCESS = re.compile(
    r"\.py\b|--(engine|scheduler|plugins|jax|against|help)\b| -h\b|^tidu( help.*)?$"
    r"|\*|\?|(?<!')\{|`|'[^']*\$[^']*'|\\\n|^\s|<<",
    re.M,
)
"""What needs a shell or a process of its own: patterns, substitutions, long lines, modules, engines, help as wide as COLUMNS."""


def pytest_generate_tests(metafunc):
    if "command" in metafunc.fixturenames:
        here = [command for command in COMMANDS if calls_of_tidu(command.read_text(), ROOT) is not None]
        cases = here + thin([command for command in COMMANDS if command not in here], IN_BASH)
        metafunc.parametrize("command", cases, ids=[str(path.relative_to(CASES).with_suffix("")) for path in cases])


@pytest.mark.every
def test_case(command, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    printed = run(command, tmp_path)
    if os.environ.get("TIDU_RENEW") == "1":
        renew(command, printed)
    assert printed == expected(command)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("# why\ntidu eval f.json --set 'x=[1, 2]'\n", [["eval", "f.json", "--set", "x=[1, 2]"]]),
        ('tidu info "$TMP/f.json"\n', [["info", "FOLDER/f.json"]]),
        ("tidu info f.json | head\n", None),
        ("tidu info f.json > $TMP/out\n", None),
        ("tidu info f.json && exit 1\n", None),
        ("tidu info '$TMP'\n", None),
        ("tidu info $HOME\n", None),
        ("tidu info *.json\n", None),
        ("cat f.json\n", None),
        ("tidu\n", None),
        ("tidu eval --help\n", None),
        ("tidu eval f.json --engine native\n", None),
    ],
)
def test_what_needs_a_shell(text, calls):
    assert calls_of_tidu(text, Path("FOLDER")) == calls


def test_every_expectation_belongs_to_a_command():
    stray = [path for ending in ("stdout", "stderr", "status") for path in CASES.rglob(f"*.{ending}")]
    assert [path for path in stray if not path.with_suffix(".cmd").exists()] == []


def test_every_error_is_one_line_and_has_a_status():
    for path in CASES.rglob("*.stderr"):
        lines = path.read_text().splitlines()
        status = expected(path.with_suffix(".cmd"))["status"]
        if status == "1\n":
            assert [": error: " in line for line in lines] == [True], path
        elif status == "2\n" and not lines[0].startswith("tidu diff: error: "):  # whose 1 says that documents differ
            assert lines[0].startswith("Usage: tidu") and lines[-1].startswith(("Error: ", "  help ")), path


def run(command: Path, folder: Path) -> dict[str, str]:
    """What the command prints, and its status as text. The path of its folder is written $TMP."""
    text = command.read_text()
    require(*called_by(text))
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "TMP": str(folder),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    calls = calls_of_tidu(text, folder)
    stdout, stderr, status = _in_bash(command, environment) if calls is None else _here(calls, environment)
    printed = {"stdout": stdout, "stderr": stderr}
    return {part: text.decode().replace(str(folder), "$TMP") for part, text in printed.items()} | {"status": f"{status}\n"}


def calls_of_tidu(text: str, folder: Path) -> list[list[str]] | None:
    """The arguments of each line, if every line calls tidu and needs nothing of a shell."""
    calls = []
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if any(OF_A_PROCESS.search(line) for line in [*lines, text]):
        return None
    for line in lines:
        written = re.sub(r"\$TMP\b|\$\{TMP\}", str(folder), line)
        words = shlex.shlex(written, posix=True, punctuation_chars="|&;<>()")
        words.whitespace_split = True
        words.commenters = ""
        call = list(words)
        if call[0] != "tidu" or "$" in written or any(set(word) <= set("|&;<>()") for word in call if word):
            return None
        calls.append(call[1:])
    return calls


def _in_bash(command: Path, environment: dict[str, str]) -> tuple[bytes, bytes, int]:
    require("bash")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.stdout, done.stderr, done.returncode


def _here(calls: Sequence[Sequence[str]], environment: dict[str, str]) -> tuple[bytes, bytes, int]:
    """One call after another, until one fails."""
    others = dict.fromkeys(set(os.environ) - set(environment))
    stdout = stderr = b""
    for call in calls:
        result = CliRunner().invoke(cli, list(call), env={**others, **environment}, prog_name="tidu")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        stdout, stderr = stdout + result.stdout_bytes, stderr + result.stderr_bytes
        if result.exit_code:
            return stdout, stderr, result.exit_code
    return stdout, stderr, 0


def expected(command: Path) -> dict[str, str]:
    files = {part: command.with_suffix(f".{part}") for part in ("stdout", "stderr", "status")}
    read = {part: file.read_bytes().decode() if file.exists() else "" for part, file in files.items()}
    return {**read, "status": read["status"] or "0\n"}


def renew(command: Path, printed: dict[str, str]) -> None:
    for part, text in printed.items():
        file = command.with_suffix(f".{part}")
        if text in ("", "0\n"):
            file.unlink(missing_ok=True)
        else:
            file.write_bytes(text.encode())
