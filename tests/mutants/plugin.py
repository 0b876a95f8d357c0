"""What pytest does besides in a campaign: it notes how long each test took, or runs chosen ones in their order.

TIDU_MUTANT_TIMES names the file for the seconds of each test that passed. Before each of these, recorded rules and results of
cached functions are forgotten, so that the test reaches what it would reach alone. TIDU_MUTANT_TESTS names the file of the tests to
run, a line each, and TIDU_MUTANT_FAILED the one for those that fail.
"""

from __future__ import annotations

import functools
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

_TIMES, _TESTS, _FAILED = (os.environ.get(f"TIDU_MUTANT_{name}") for name in ("TIMES", "TESTS", "FAILED"))
_seconds: dict[str, float] = defaultdict(float)
_others: set[str] = set()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if _TESTS:
        rank = {name: n for n, name in enumerate(Path(_TESTS).read_text().split("\n"))}
        items[:] = sorted((item for item in items if item.nodeid in rank), key=lambda item: rank[item.nodeid])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    if _TIMES:
        forget()


def forget() -> None:
    """Empty what tidu keeps within a process: templates of rules, and results of cached functions."""
    for name, module in list(sys.modules.items()):
        if name.startswith("tidu_cli"):
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()
    if builtin := sys.modules.get("tidu_cli.lax.vocabulary"):
        builtin.BUILTIN.templates.clear()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration
    if not report.passed:
        _others.add(report.nodeid)
    _note_failure(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note_failure(report)


def _note_failure(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.failed and _FAILED:
        with open(_FAILED, "a") as file:
            file.write(f"{report.nodeid}\n")


def pytest_sessionfinish() -> None:
    if _TIMES and "PYTEST_XDIST_WORKER" not in os.environ:
        lines = [f"{seconds:.4f}\t{name}\n" for name, seconds in _seconds.items() if name not in _others]
        Path(_TIMES).write_text("".join(lines))
