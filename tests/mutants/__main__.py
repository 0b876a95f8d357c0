"""Run a campaign: see tests/mutants/__init__.py.

A folder named with --folder is kept, and a campaign that was cut off goes on in it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.mutants.running import IN_TEST, ROOT, RUNS, Campaign
from tests.mutants.sites import chosen

REPORT = ROOT / "build" / "mutants.txt"
LEAST = 0.95
"""Of the mutants that `make check` kills, `make test` kills this part at least."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Measure which faults in the sources the tests see."
    )
    parser.add_argument("--seed", type=int, default=1, help="of the choice of mutants (default: 1)")
    parser.add_argument("--mutants", type=int, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--runs", nargs="+", choices=tuple(RUNS), default=list(RUNS), help="which runs of the tests (default: all)")
    parser.add_argument("--folder", type=Path, help="where to work, and to go on (default: a temporary folder)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidu-mutants-") as temporary:
        folder = (given.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(folder, chosen(ROOT, given.mutants, given.seed))
        for run in given.runs:
            campaign.judge(run)
        lines, enough = report(campaign)
    print(text := "\n".join(lines))
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(text + "\n")
    return 0 if enough else 1


def report(campaign: Campaign) -> tuple[list[str], bool]:
    """A line for each mutant and the figures; and whether `make test` kills its part."""
    killed = campaign.killed()
    lines = []
    for number, mutant in campaign.mutants.items():
        run, test = killed.get(number, ("", ""))
        what = f"killed by {test} ({run})" if run else f"survived {campaign.reached(number)} tests"
        lines.append(f"{number}\t{mutant}\t{what}")
    n, in_test = len(campaign.mutants), sum(run in IN_TEST for run, _ in killed.values())
    part = in_test / max(len(killed), 1)
    lines += [
        f"{n} mutants: {in_test} killed by make test, {len(killed) - in_test} more by make check, {n - len(killed)} survived",
        f"make test kills {part:.1%} of those that make check kills; it shall be {LEAST:.0%} at least",
    ]
    return lines, part >= LEAST


raise SystemExit(main())
