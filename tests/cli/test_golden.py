"""The command line, case by case: `cases/GROUP/NAME.cmd` beside what it must print.

NAME.cmd begins with a comment on what it shows, and runs in bash (-euo pipefail) in the root of the repository, with `tidu` on the
PATH and a fresh folder $TMP. NAME.stdout and NAME.stderr are what comes out, NAME.status the exit status: a file that is not there
means nothing, and 0. `TIDU_RENEW=1 pytest --tier check tests/cli/test_golden.py` writes them; then read the difference.

Cases whose lines all call tidu and need nothing of a shell run within this process (tests/pipelines.py): `make test` has all of
these, and some of the others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pipelines
from tests.programs import called_by, require
from tests.tiers import thin

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent / "cases"
COMMANDS = sorted(CASES.rglob("*.cmd"))
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
IN_BASH = 60
"""Cases in bash that `make test` has."""


def pytest_generate_tests(metafunc):
    if "command" in metafunc.fixturenames:
        here = [command for command in COMMANDS if pipelines.pipelines(command.read_text(), ROOT) is not None]
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
        ("tidu transpose f.json | tidu info\n", [["transpose", "f.json"], ["info"]]),
        ("tidu info f.json | head\n", None),
        ("tidu info f.json && exit 1\n", None),
        ("tidu info f.json 2> $TMP/out\n", None),
        ("tidu info < f.json\n", None),
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
    found = pipelines.pipelines(text, Path("FOLDER"))
    assert found == (None if calls is None else [pipelines.Pipeline(calls)])


def test_what_a_pipeline_of_this_process_does(tmp_path):
    """As bash does: each reads what the one before writes, and the script ends with the first line that fails."""
    text = 'tidu linearize samples/f.json --wrt x | tidu transpose > "$TMP/t.json"\ntidu info "$TMP/t.json" | tidu check\ntidu info'
    script = pipelines.pipelines(text, tmp_path)
    assert script is not None and [line.target for line in script] == [str(tmp_path / "t.json"), None, None]
    here, environment = pipelines.run(script, {}), {"TMP": str(tmp_path), "PATH": PATH}
    (command := tmp_path / "case.cmd").write_text(text)
    assert here == _in_bash(command, environment)
    assert here[2] == 1


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
        "PATH": PATH,
        "HOME": str(folder),
        "TMP": str(folder),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    script = pipelines.pipelines(text, folder)
    stdout, stderr, status = _in_bash(command, environment) if script is None else pipelines.run(script, environment)
    printed = {"stdout": stdout, "stderr": stderr}
    return {part: text.decode().replace(str(folder), "$TMP") for part, text in printed.items()} | {"status": f"{status}\n"}


def _in_bash(command: Path, environment: dict[str, str]) -> tuple[bytes, bytes, int]:
    require("bash")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    return done.stdout, done.stderr, done.returncode


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
