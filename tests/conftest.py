"""What holds for all tests: what was skipped is listed in the end, or is a failure (TIDU_TEST_ALL=1); and no time is measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

# By itself hypothesis fails tests of which an example takes 0.2 s, as one may on a busy machine.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ALL = "TIDU_TEST_ALL"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    return _judged((yield))


def _judged(report: Any) -> Any:
    """A report, which has failed if it is of what was skipped and nothing may be. What is expected to fail is another matter."""
    if os.environ.get(ALL) == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = _reason(report)
        report.outcome, report.longrepr = "failed", f"{ALL}=1, and this was skipped: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reasons = Counter(map(_reason, terminalreporter.stats.get("skipped", ())))
    if reasons:
        terminalreporter.section("skipped")
        for reason, n in sorted(reasons.items()):
            terminalreporter.write_line(f"{n} test{'s' if n > 1 else ''}: {reason}")


def _reason(report: Any) -> str:
    found = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return found.removeprefix("Skipped: ")
