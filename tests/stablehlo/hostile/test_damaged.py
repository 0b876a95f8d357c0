"""Damaged modules are refused in one line: no traceback, no end of the process that reads, and in bounded time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.stablehlo.hostile.mutants import mutant
from tests.waiting import LIMIT
from tidu_cli.adapters.stablehlo.files import read_stablehlo
from tidu_cli.errors import DocumentError


def outcomes(first: int, last: int) -> dict[int, str]:
    """What reading each of these mutants comes to: ended, where MLIR ended the process, from which another goes on."""
    by_number: dict[int, str] = {}
    while first < last:
        command = [sys.executable, "-m", "tests.stablehlo.hostile.mutants", str(first), str(last)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, errors="replace")
        lines = [line.partition(" ") for line in done.stdout.splitlines() if line]
        assert lines, done.stderr
        by_number.update((int(number), what or "ended") for number, _, what in lines)
        first = int(lines[-1][0]) + 1
    return by_number


def require_told(by_number: dict[int, str]) -> None:
    """Raises AssertionError unless each is read, refused, or ended a process other than the one that reads."""
    wrong = {number: what for number, what in by_number.items() if what.startswith("wrong")}
    assert not wrong, wrong
    for number in [number for number, what in by_number.items() if what == "ended"][:3]:
        with pytest.raises(DocumentError, match=r"^m.mlir: is a damaged module"):
            read_stablehlo(*mutant(number), "m.mlir")


def test_some_mutants() -> None:
    require_told(outcomes(0, 60))


@pytest.mark.campaign
def test_many_mutants() -> None:
    require_told(outcomes(1000, 6000))
