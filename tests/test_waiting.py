"""No test is decided by the clock: on a machine that does other work, all take longer."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
ITS_OWN = (
    "waiting.py",
    "fuzz/guard.py",
    "render/chromium.py",
    "test_waiting.py",
    "faults/test_commands.py",
    "cluster/test_deaths.py",
)
"""Where LIMIT is applied; and where a moment is chosen to kill what runs, which may take longer for it."""

OF_THE_CLOCK = re.compile(r"perf_counter|time\.monotonic\(\)|timeout=\d|\.wait\(\d")


def test_what_reads_the_clock() -> None:
    """Costs are CPU time (`waiting.cpu_seconds`), and waits have the one limit of `tests.waiting`."""
    readers = {}
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS).as_posix()
        lines = [line.strip() for line in path.read_text().splitlines() if OF_THE_CLOCK.search(line)]
        if lines and name not in ITS_OWN:
            readers[name] = lines
    assert readers == {}
