"""Ordinary faults, and the line that each gets: a page to read aloud.

`TIDU_RENEW=1 pytest tests/faults/test_messages.py` writes it.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.running import ROOT, invoke

PAGE = Path(__file__).with_name("messages.txt")
MODEL = """\
def loss(x):
    return x ** 2

def branch(x):
    return x if x > 0 else -x

def halves(x):
    return x[:x.shape[0] // 2] * x[x.shape[0] // 2:]

def total(x):
    return sum(x[k] for k in range(x.shape[0]))
"""

OPEN = """\
{"tidu": 1, SIZES
 "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[TYPE]"}], "nodes": [{"op": "mul", "inputs": [0, 0]}],
             "outputs": [{"key": "y", "value": 1}]}]}
"""
"""A square of open sizes."""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the commands of the page find where they run."""
    for name in ("f.json", "rosenbrock.json", "vector.json"):
        shutil.copy(ROOT / "samples" / name, tmp_path)
    (tmp_path / "broken.json").write_text('{"tidu": 1, "graphs": [')
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "model.py").write_text(MODEL)
    for name, sizes, shape in (
        ("open", "", "N"),
        ("within", '"sizes": {"N": {"min": 4, "max": 16, "multiple_of": 4}},', "N"),
        ("less", "", "N-5"),
        ("none", '"sizes": {"N": {"multiple_of": 0}},', "N"),
    ):
        (tmp_path / f"{name}.json").write_text(OPEN.replace("SIZES", sizes).replace("TYPE", shape))
    monkeypatch.chdir(tmp_path)


def test_messages_read_well(files: None) -> None:
    commands = [line.removeprefix("$ ") for line in PAGE.read_text().splitlines() if line.startswith("$ ")]
    assert len(commands) >= 30
    said = []
    for command in commands:
        result = invoke(*shlex.split(command)[1:])
        assert result.exit_code and not result.stdout, command
        said += [f"$ {command}", result.stderr.splitlines()[-1], ""]
    page = "\n".join(said)
    if os.environ.get("TIDU_RENEW") == "1":
        PAGE.write_text(page)
    assert PAGE.read_text() == page
