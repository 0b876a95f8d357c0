"""Fenced blocks of Markdown files, and running those that show commands.

A console block holds commands after `$ ` (going on while a line ends in a backslash or a pipe), each followed by what it prints;
there a line `...` stands for any lines. A block that is not to be run has the reason right above it: `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOT_RUN = re.compile(r"<!-- not run: (.+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its first line within the fences (from 0), its language, lines, and reason not to be run."""

    first: int
    language: str
    lines: tuple[str, ...]
    not_run: str | None


@dataclass(frozen=True)
class Step:
    """A command of a console block, its own lines there and those of its output."""

    command: str
    shown: tuple[str, ...]
    output: tuple[str, ...]


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
        language = lines[start - 1].removeprefix("```")
        yield Block(start, language, tuple(lines[start:k]), reason and reason[1])
        start = None
    assert start is None, f"the fence in line {start} is not closed"


def steps(block: Block) -> Iterator[Step]:
    """The commands of a console block."""
    k = 0
    while k < len(block.lines):
        assert block.lines[k].startswith("$ "), f"line {block.first + k + 1}: a console block starts with a command after '$ '"
        first = k
        while block.lines[k].endswith(("\\", "|")):
            k += 1
        command, output = block.lines[first : k + 1], k + 1
        k = output
        while k < len(block.lines) and not block.lines[k].startswith("$ "):
            k += 1
        yield Step("\n".join(command).removeprefix("$ "), command, block.lines[output:k])


def run(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, list[str]]:
    """Status and output, standard error included, of a command as a reader would type it."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")] if done.stdout else []


def agrees(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether a page shows what was printed, up to the last digits of long floats, which differ between machines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(_rounded(line.rstrip())) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(_rounded(line) + "\n" for line in printed)) is not None


def _rounded(line: str) -> str:
    return re.sub(r"\d+\.\d{11,}(?:e[-+]\d+)?", lambda number: f"{float(number[0]):.11g}", line)
