"""How long commands take to start, compared to importing what they cannot do without.

    python benchmarks/startup.py --markdown

All programs are run in turn, so that a change of the machine's speed hits all alike. Times are medians by the clock.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline import rendered

SAMPLE = Path(__file__).parents[1] / "samples" / "f.json"
BASELINES = ("import click", "import click, msgpack, pydantic")
"""What start-up times are compared to: what a command line cannot do without, and what is used for documents."""

_IMPORTS = "import click, msgpack; from pydantic import BaseModel"
PROGRAMS = {
    "pass": "pass",
    "import click": "import click",
    "import click, msgpack": "import click, msgpack",
    "import click, msgpack, pydantic": _IMPORTS,
    "the same, and one pydantic model": f"{_IMPORTS}\nclass Model(BaseModel):\n  x: int",
    "import numpy": "import numpy",
}
CALLS = (
    "--version",
    "linearize f.json --wrt x",
    "transpose f@1.json",
    "materialize f@-1.json",
    "resolve f.json",
    "convert f.json --format msgpack",
    "check f.json",
    "info f.json",
    "eval f.json --set x=3",
)


def start_up(rounds: int) -> list[tuple[str, float]]:
    """The median seconds of small programs and commands over so many rounds."""
    tidu = str(Path(sys.executable).with_name("tidu"))
    commands = {name: [sys.executable, "-c", program] for name, program in PROGRAMS.items()}
    commands |= {f"tidu {call}": [tidu, *call.split()] for call in CALLS}
    taken: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(SAMPLE, scratch)
        for call in ("linearize f.json --wrt x -o f@1.json", "transpose f@1.json -o f@-1.json"):
            subprocess.run([tidu, *call.split()], check=True, cwd=scratch)
        for _ in range(rounds + 1):  # the first one warms the caches up, and does not count
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=scratch)
                taken[name].append(time.perf_counter() - start)
    return [(name, statistics.median(times[1:])) for name, times in taken.items()]


def start_table(commands: Sequence[tuple[str, float]]) -> list[list[str]]:
    """A row a command: milliseconds, and ratios to two baselines."""
    seconds = dict(commands)
    rows = [["program", "ms", *(f"× {name}" for name in BASELINES)]]
    for name, taken in commands:
        rows.append([name, f"{1e3 * taken:.0f}", *(f"{taken / seconds[base]:.2f}" for base in BASELINES)])
    return rows


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure how long commands take to start.")
    parser.add_argument("--rounds", type=int, default=21, help="how often each program is run")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    chosen = parser.parse_args()
    print("\n".join(rendered(start_table(start_up(chosen.rounds)), markdown=chosen.markdown)))


if __name__ == "__main__":
    main()
