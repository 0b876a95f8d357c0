"""The command line, case by case: `cases/GROUP/NAME.cmd` beside what it must print.

NAME.cmd begins with a comment on what it shows, and runs in bash (-euo pipefail) in the root of the repository, with `tidu` on the
PATH and a fresh folder $TMP. NAME.stdout and NAME.stderr are what comes out, NAME.status the exit status: a file that is not there
means nothing, and 0. `TIDU_RENEW=1 pytest --tier check tests/cli/test_golden.py` writes them; then read the difference.

`tidu` is forked from a process that has imported it (tests/forking.py).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import forking
from tests.programs import called_by, require

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent / "cases"
COMMANDS = sorted(CASES.rglob("*.cmd"))


@pytest.mark.every
@pytest.mark.parametrize("command", COMMANDS, ids=[str(path.relative_to(CASES).with_suffix("")) for path in COMMANDS])
def test_case(command, tmp_path):
    printed = run(command, tmp_path)
    if os.environ.get("TIDU_RENEW") == "1":
        renew(command, printed)
    assert printed == expected(command)


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
    require("bash", *called_by(text))
    environment = {
        "PATH": forking.path(),
        "HOME": str(folder),
        "TMP": str(folder),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    script = ["bash", "-euo", "pipefail", command]
    done = subprocess.run(script, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    printed = {"stdout": done.stdout, "stderr": done.stderr}
    return {part: text.decode().replace(str(folder), "$TMP") for part, text in printed.items()} | {"status": f"{done.returncode}\n"}


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
