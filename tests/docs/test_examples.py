"""The examples of the README and of docs/ run, and print what they say. TIDU_RENEW=1 writes what they print into the pages."""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import forking
from tests.docs.blocks import PAGES, ROOT, Block, agrees, blocks, run
from tests.docs.svg import content
from tests.programs import called_by, missing, require
from tests.tiers import full
from tidu_cli.formats.read import parse_document
from tools.console import Step

RENEW = os.environ.get("TIDU_RENEW") == "1"

TRIED = PAGES if full() or RENEW else [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what examples may read, in which they may write."""
    folder = tmp_path / "tidu"
    for name in ("README.md", "docs", "samples", "schemas", "benchmarks"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            folder.mkdir(exist_ok=True)
            shutil.copy(source, folder / name)
    return folder


def _ids(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", TRIED, ids=_ids)
def test_commands_print_what_the_page_shows(page: Path, copy: Path) -> None:
    text = page.read_text()
    lines, wrong = text.split("\n"), []
    renewed: list[tuple[Block, list[str]]] = []
    needed: list[str] = []
    for block in blocks(text):
        where = f"{page.name}:{block.first + 1}"
        has_commands = any(line.startswith("$ ") for line in block.lines)
        if block.title:
            (copy / block.title).write_text("\n".join(block.lines) + "\n")
        assert has_commands or block.not_run or block.language != "console", f"{where}: no command after '$ '"
        if block.language in ("console", "sh") and has_commands and not block.not_run:
            fresh: list[str] = []
            for step in block.steps():
                needed += called_by(step.command)
                output, complaint = _run_step(step, copy)
                fresh += [*step.shown, *output]
                wrong += [f"{where}: $ {step.command}\n{complaint}"] if complaint else []
            renewed.append((block, fresh))
    pictures = _pictures(text, page, copy)
    if not RENEW:
        assert not wrong, "\n\n".join(wrong)
        for shown, drawn in pictures:
            assert content(shown.read_text()) == content(drawn.read_text()), f"{shown.name}: not what the page's commands draw"
        require(*needed)  # those of its commands that need no more have been tried
        return
    for shown, drawn in pictures:
        if not shown.exists() or content(shown.read_text()) != content(drawn.read_text()):
            shutil.copy(drawn, shown)
    for block, fresh in reversed(renewed):
        lines[block.first : block.first + len(block.lines)] = fresh
    if "\n".join(lines) != text:
        page.write_text("\n".join(lines))


def _pictures(text: str, page: Path, folder: Path) -> list[tuple[Path, Path]]:
    """The pictures that a page shows and its commands draw: a command that writes NAME.svg draws images/NAME.svg."""
    linked = [(page.parent / link).resolve() for link in re.findall(r"\]\(((?:[^()\s]+/)?images/[^()\s]+\.svg)\)", text)]
    return [(shown, folder / shown.name) for shown in linked if (folder / shown.name).exists()]


def _run_step(step: Step, folder: Path) -> tuple[Sequence[str], str]:
    """What the page should show for a command, and what is wrong with what it does show, if anything."""
    if missing(*called_by(step.command)):
        return step.output, ""
    status, printed = run(step.command, folder, os.environ | {"PATH": forking.path()})
    if not agrees(step.output, printed):
        return printed, f"shows:\n{_indented(step.output)}\nbut prints:\n{_indented(printed)}"
    if status and not any("error:" in line for line in step.output):
        return step.output, f"has status {status}"
    return step.output, ""


def _indented(lines: Sequence[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_documents_are_valid(page: Path) -> None:
    for block in blocks(page.read_text()):
        if block.language == "json" and "".join(block.lines).startswith('{"tidu"') and not block.not_run:
            parse_document("\n".join(block.lines).encode(), f"{page.name}:{block.first + 1}")


@pytest.mark.parametrize("page", TRIED, ids=_ids)
def test_python_runs(page: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page share their names; with `>>>` prompts they are doctests."""
    monkeypatch.chdir(copy)
    names: dict[str, object] = {}
    for block in blocks(page.read_text()):
        if block.language == "python" and not block.not_run and not block.title:
            _run_python(block, page, names)


def _run_python(block: Block, page: Path, names: dict[str, object]) -> None:
    source = "\n".join(block.lines) + "\n"
    where = f"{page.name}:{block.first + 1}"
    if not source.startswith(">>> "):
        exec(compile(source, where, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(source, names, where, str(page), block.first)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)


def test_the_first_document_of_the_tutorial_is_the_sample() -> None:
    """The tutorial prints the file that its commands read."""
    page = ROOT / "docs" / "tutorial.md"
    first = next(block for block in blocks(page.read_text()) if block.language == "json")
    assert json.loads("\n".join(first.lines)) == json.loads((ROOT / "samples" / "f.json").read_text())
