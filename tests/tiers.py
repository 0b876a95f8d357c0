"""The tiers of the suite: `make test` while writing, `make check` before landing, `make campaign` for hours.

A file `check_*.py` and a test marked `check` run in `make check` alone. Of a test with many cases `make test` takes CASES, unless
it is marked `every`; of hypothesis' examples 15 for 200. `make check` gives each test function some three seconds of processor
time: where all cases or examples take longer, `few` and `examples` say how many it takes, and campaigns take all. With
`pytest --tier check` a tier is selected; a file `check_*.py` that the command line names runs in any.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

VARIABLE = "TIDU_TIER"
"""How the tier reaches modules at import, in workers of xdist too: pytest's option sets it."""

CASES = 6
"""Cases of one test function in `make test`."""

EXAMPLES = {"test": 15, "check": 200, "campaign": 2000}
"""Examples of hypothesis where a law says no number of its own: the same in each run of the first two, random in a campaign.
None has more in `make check`."""


def full() -> bool:
    """Whether the tier is `check` or `campaign`, in which nothing is thinned."""
    return os.environ.get(VARIABLE, "test") != "test"


def campaign() -> bool:
    """Whether hours may be taken."""
    return os.environ.get(VARIABLE) == "campaign"


def examples(wanted: int, check: int = EXAMPLES["check"]) -> int:
    """The number of hypothesis' examples for a law: as wanted in a campaign, 200 at most in `make check`, else 15 for 200.

    A law whose examples take long says how many `make check` takes: some three seconds' worth of processor time.
    """
    if campaign():
        return wanted
    most = min(wanted, EXAMPLES["check"])
    return min(check, most if full() else max(3, most * EXAMPLES["test"] // EXAMPLES["check"]))


def few(cases: Iterable[T], n: int) -> list[T]:
    """All cases in a campaign; in `make check` n of them, evenly spaced and the same in each run, in `make test` a third of that.

    For what one test tries of one thing: the samples of an operation, of which a few see what many see.
    """
    every = list(cases)
    n = len(every) if campaign() else n if full() else max(1, n // 3)
    return every if len(every) <= n else [every[k * len(every) // n] for k in range(n)]


def thin(cases: Iterable[T], n: int = CASES) -> list[T]:
    """All cases in `make check`; else at most n of them, evenly spaced and the same in each run."""
    every = list(cases)
    if full() or len(every) <= n:
        return every
    return [every[k * len(every) // n] for k in range(n)]
