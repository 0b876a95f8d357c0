"""The pages hang together: links resolve, every command is explained, and the picture is that of today's code."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from tests.docs.blocks import NOT_RUN, PAGES, ROOT, blocks
from tidu_cli.cli.main import COMMANDS
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.types import UNITS
from tidu_cli.render.dot import to_dot
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose
from tools.reference import to_markdown

LINK = re.compile(r"\]\(([^()\s]+)\)|(?:href|src)=\"([^\"]+)\"")
PROSE = {page: re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S) for page in PAGES}


def _ids(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_relative_links_resolve(page: Path) -> None:
    missing = []
    for match in LINK.finditer(PROSE[page]):
        link = match[1] or match[2]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            missing.append(link)
    assert not missing


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ +(.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_in_the_docs(command: str) -> None:
    assert any(f"tidu {command}" in page.read_text() for page in PAGES)


def test_the_command_reference_is_current() -> None:
    assert (ROOT / "docs" / "commands.md").read_text() == to_markdown(), "make generated writes it"


def test_every_command_has_a_section() -> None:
    assert re.findall(r"^## tidu (.+)$", to_markdown(), flags=re.M) == list(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=_ids)
def test_only_blocks_have_reasons_not_to_run(page: Path) -> None:
    """A reason that stands anywhere else than right above a block would do nothing."""
    assert len(NOT_RUN.findall(page.read_text())) == sum(block.not_run is not None for block in blocks(page.read_text()))


def test_the_numbers_are_those_of_the_performance_page() -> None:
    measured = {}
    for row in (ROOT / "docs" / "performance.md").read_text().partition("DAG of 64 inputs")[2].partition("\n### ")[0].split("\n"):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) == 8 and re.fullmatch(r"[\d.]+", cells[5]):
            measured[cells[0]] = float(cells[5]), cells[6]  # µs a node are seconds for a million nodes
    section = (ROOT / "README.md").read_text().partition("## Numbers\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| (\d+) \|$", section, flags=re.M)
    assert len(shown) == 3
    for stage, seconds, peak in shown:
        assert abs(float(seconds) - measured[stage][0]) <= 0.051
        assert peak == measured[stage][1]


@pytest.mark.parametrize("page", ["format.md", "howto/records.md"])
def test_pages_list_the_units_of_time(page: str) -> None:
    listed = re.search(r"[Tt]he units are (?:NumPy's: )?((?:\w+, )+\w+(?: and \w+)?)[.,]", (ROOT / "docs" / page).read_text())
    assert listed is not None
    assert tuple(re.split(", | and ", listed[1])) == UNITS


def test_the_picture_is_current() -> None:
    """The SVG has just the edges and colours that `tidu dot` draws; where Graphviz puts them depends on its version."""
    document, _ = parse_document((ROOT / "samples" / "f.json").read_bytes(), "f.json")
    text = to_dot(transpose(linearize(document, [parse_key("x")])))
    default = re.search(r"^  edge \[.*? color=\"(#\w+)\"", text, flags=re.M)
    assert default is not None
    edges = [
        (f"{source}->{target}", next(iter(re.findall(r"[ \[]color=\"(#\w+)\"", attrs)), default[1]))
        for source, target, attrs in re.findall(r"^  (\w+) -> (\w+)(.*);$", text, flags=re.M)
    ]
    svg = unescape((ROOT / "docs" / "images" / "f-reverse.svg").read_text())
    assert sorted(re.findall(r"<title>(\w+->\w+)</title>\s*<path [^>]*stroke=\"(#\w+)\"", svg)) == sorted(edges)
    labels = set(re.findall(r"<text[^>]*>(.*?)</text>", svg))
    assert {"x: f64[]", "y@-1: f64[]", "x@-1: f64[]", "add", "mul", "f", "f@-1 (linear, pass 1, head)"} <= labels
