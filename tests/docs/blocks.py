"""Fenced blocks of Markdown files, and running those that show commands.

A console block holds commands after `$ ` (`tools/console.py` says how), each followed by what it prints; there a line `...` stands
for any lines. A block that is not to be run has the reason right above it: `<!-- not run: REASON -->`. A block with a title, as in
```` ```make title="Makefile" ````, is a file of that name, which the commands after it find in their folder.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.programs import called_by, require
from tests.waiting import LIMIT
from tools.console import Step, steps

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
TITLE = re.compile(r' title="([\w.-]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its first line within the fences (from 0), its language, lines, reason not to be run, title."""

    first: int
    language: str
    lines: tuple[str, ...]
    not_run: str | None
    title: str | None

    def steps(self) -> Iterator[Step]:
        """The commands of a console block."""
        try:
            yield from steps(self.lines)
        except ValueError as error:
            raise AssertionError(f"line {self.first + 1}: {error}") from None


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    lines = text.split("\n")
    start: int | None = None
    for k, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = k + 1
            continue
        reason = NOT_RUN.fullmatch(lines[start - 2]) if start >= 2 else None
        language, _, _ = lines[start - 1].removeprefix("```").partition(" ")
        title = TITLE.search(lines[start - 1])
        yield Block(start, language, tuple(lines[start:k]), reason and reason[1], title and title[1])
        start = None
    assert start is None, f"the fence in line {start} is not closed"


MAKES_OWN = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
"""What make tells the makes that it calls: none of a reader's, who calls it first."""


def run(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, list[str]]:
    """Status and output, standard error included, of a command as a reader would type it."""
    require("bash", *called_by(command))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={k: v for k, v in environment.items() if k not in MAKES_OWN},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, lines_of(done.stdout)


def lines_of(printed: str) -> list[str]:
    """The lines of what a command prints, as a page shows them."""
    return [line.rstrip() for line in printed.rstrip("\n").split("\n")] if printed else []


def agrees(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether a page shows what was printed, up to the last digits of long floats, which differ between machines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(_rounded(line.rstrip())) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(_rounded(line) + "\n" for line in printed)) is not None


def _rounded(line: str) -> str:
    return re.sub(r"\d+\.\d{11,}(?:e[-+]\d+)?", lambda number: f"{float(number[0]):.11g}", line)
