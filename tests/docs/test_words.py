"""Plain words in messages, help and pages: the turns of phrase that readers stumbled over stay out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "tidu_cli").rglob("*.py"))

STUMBLES = re.compile(
    r"\b(?:is|are) told\b|\banew\b|of which there|\bso many\b|\bmended\b|\bwhat is no\b"
    r"|(?<!there )(?<!There )\b(?:is|are) no (?!more|longer|less|harder|lower|one\b|later|larger|greater|way|derivative)"
)


def stumbles(text: str) -> list[str]:
    """Where a text has one of these, each with some words around it."""
    return [text[max(m.start() - 30, 0) : m.end() + 30].replace("\n", " ") for m in STUMBLES.finditer(text)]


@pytest.mark.every
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_pages(page: Path) -> None:
    assert stumbles(page.read_text()) == []


def test_messages() -> None:
    """Text in the sources; docstrings only where they are the help of commands."""
    faults = []
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        alone = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr) and path.parent.name != "commands"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
                faults += [f"{path.relative_to(ROOT)}:{node.lineno}: {words}" for words in stumbles(node.value)]
    assert faults == []


def test_the_lint_sees_them() -> None:
    assert len(stumbles("'x' is no number; so many of them are told anew")) == 4
    assert stumbles("there is no number, and it is no longer than that") == []
