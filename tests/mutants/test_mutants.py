"""The campaign of mutants (`make mutants`): its faults change what they should and no line, and it knows which tests reach them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import Any

import pytest

from tests.mutants.running import PROBE, restore_devices, within
from tests.mutants.sites import mutants_of, rewritten

SOURCE = """def f(x, y):  # é
    '''No 1 - 2 here.'''
    assert x + 1, f"{x - 1}"
    if x < 5 and y > 2:
        raise ValueError(x - y)
    return g(x -
             y, axis=-1)

def g(x, axis): return [x, axis][1:], -x if x else 0
h = dict(n_results=lambda n: n)
"""

FAULTS = [
    ("axis", "-1 - 1", (5, 2), ([-2], -3)),
    ("bound", "1 + 1", (5, 2), ([], -3)),
    ("bound", "2 + 1", (4, 3), ([-1], -1)),
    ("bound", "5 + 1", (5, 3), "error"),
    ("bound", "x <= 5", (5, 3), "error"),
    ("bound", "y >= 2", (4, 2), "error"),
    ("mask", "0 if x else -x", (5, 2), ([-1], 0)),
    ("mask", "x < 5 or y > 2", (5, 3), "error"),
    ("n_results", "n + 1", (3,), 4),
    ("operand", "y - x", (5, 2), ([-1], 3)),
    ("sign", "x", (5, 2), ([-1], 3)),
    ("sign", "x + y", (5, 2), ([-1], -7)),
    ("term", "x", (5, 2), ([-1], -5)),
]
"""What stands for what in SOURCE, arguments that show it, and the result then: of f, or of n_results."""


def result(source: str, args: tuple[int, ...], on: bool) -> Any:
    names: dict[str, Any] = {"mutant_on": lambda k: on and k == 7}
    exec(source, names)
    try:
        return names["f"](*args) if len(args) == 2 else names["h"]["n_results"](*args)
    except ValueError:
        return "error"


def test_faults_are_where_functions_compute() -> None:
    assert sorted((m.kind, m.mutated) for m in mutants_of(SOURCE)) == [(kind, mutated) for kind, mutated, *_ in FAULTS]


@pytest.mark.every
@pytest.mark.parametrize(("kind", "mutated", "args", "expected"), FAULTS)
def test_a_source_with_one_fault(kind: str, mutated: str, args: tuple[int, ...], expected: object) -> None:
    (mutant,) = [m for m in mutants_of(SOURCE) if (m.kind, m.mutated) == (kind, mutated)]
    source = rewritten(SOURCE, {7: mutant})
    changed = [n for n, lines in enumerate(zip(source.split("\n"), SOURCE.split("\n"), strict=True)) if lines[0] != lines[1]]
    assert changed and changed[0] == mutant.line - 1 and len(changed) <= 2  # a pair of parentheses around two lines, at most
    assert result(source, args, on=True) == expected
    assert result(source, args, on=False) == result(SOURCE, args, on=False) != expected


def test_processes_note_which_test_reaches_a_switch(tmp_path) -> None:
    program = f"{PROBE.read_text()}\nprint(mutant_on(3), mutant_on(4), mutant_on(3))"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDU_MUTANT")}  # of a campaign
    environment = {**inherited, "PYTEST_CURRENT_TEST": "tests/t.py::test[a (b)] (call)", "TIDU_MUTANT": "3"}

    def printed(**added: str) -> str:
        command = [sys.executable, "-S", "-c", program]
        return subprocess.run(command, env=environment | added, capture_output=True, text=True, check=True).stdout

    assert printed() == "True False True\n"
    assert printed(TIDU_MUTANT_NOTES=str(tmp_path)) == "False False False\n"
    (notes,) = tmp_path.iterdir()
    assert notes.read_text() == "3\ttests/t.py::test[a (b)]\n4\ttests/t.py::test[a (b)]\n"


def test_the_quickest_tests_within_a_budget() -> None:
    assert within({"a": 2.0, "b": 1.0, "c": 3.0}, 3.5) == ["b", "a"]
    assert within({"a": 2.0}, 1.0) == ["a"]


def test_a_device_that_was_replaced_is_put_back(tmp_path) -> None:
    """By root, whose mutants alone may replace one."""
    (replaced := tmp_path / "null").write_text("what a mutant wrote")
    restore_devices({str(replaced): 3})
    assert stat.S_ISCHR(replaced.stat().st_mode) == (os.geteuid() == 0)
