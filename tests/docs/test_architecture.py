"""The page on architecture: its rooms are those whose imports are tested, and a command goes the way that it says.

TIDU_RENEW=1 draws the picture anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.svg import content
from tests.docs.test_examples import RENEW
from tests.programs import needs, require
from tests.test_layers import COMMON, MAY_IMPORT

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

SPY = """
import sys
from tidu_cli.__main__ import main

called = {}

def see(frame, event, argument):
    code = frame.f_code
    if event == "call" and "/tidu_cli/" in code.co_filename:
        called.setdefault((code.co_filename.rpartition("/tidu_cli/")[2], code.co_qualname))

sys.setprofile(see)
sys.argv[0] = "tidu"
try:
    main()
finally:
    sys.setprofile(None)
    print(*(" ".join(call) for call in called), sep="\\n")
"""


def rooms() -> dict[str, set[str]]:
    """Each room of the page's table, and what it imports."""
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([\w, ]*)\|$", PAGE.read_text(), flags=re.M)
    return {room: set(re.findall(r"\w+", imports)) for room, imports in rows}


def way(heading: str = "The way of a command") -> list[tuple[str, str]]:
    """The steps of the list below a heading of the page: module and function."""
    below = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/.]+)` `([\w.]+)`", below, flags=re.M)


def test_the_rooms_are_those_that_are_tested() -> None:
    tested = {room: imports - COMMON for room, imports in MAY_IMPORT.items() if room not in COMMON and not room.startswith("__")}
    assert {room: imports - COMMON for room, imports in rooms().items()} == tested


def require_way(steps: list[tuple[str, str]], *command: str | Path) -> None:
    """The command calls these functions in this order."""
    done = subprocess.run([sys.executable, "-c", SPY, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    calls = iter([tuple(line.split()) for line in done.stdout.splitlines()])
    for step in steps:
        assert step in calls, f"{step} is not called, or not in this order"
    assert len(steps) >= 15


def test_the_command_goes_this_way(tmp_path: Path) -> None:
    require_way(way(), "linearize", "samples/f.json", "--wrt", "x", "-o", tmp_path / "g.json")


@needs("onnx")
def test_a_model_goes_this_way(tmp_path: Path) -> None:
    model = "tests/cli/cases/onnx/rounding.onnx"
    require_way(way("The way of a model"), "grad", model, "--wrt", "x", "--output", "y", "-o", tmp_path / "gradient.onnx")


def drawn() -> str:
    """The rooms in DOT, with arrows to what they import but for those that other arrows imply, and the numbers of steps."""
    imports = rooms()
    steps: dict[str, list[int]] = {}
    for number, (module, _) in enumerate(way(), 1):
        steps.setdefault(module.split("/")[0].removesuffix(".py"), []).append(number)

    def lines() -> Iterator[str]:
        yield 'digraph architecture { node [shape=box style=rounded fontname="sans-serif"] edge [color=gray]'
        for room in imports:
            numbers = ", ".join(map(str, steps.get(room, ())))
            yield f'  "{room}" [label="{room}{chr(92)}n{numbers}"]' if numbers else f'  "{room}"'
        for room, below in imports.items():
            implied = set().union(*(imports.get(b, set()) for b in below))
            yield from (f'  "{room}" -> "{b}"' for b in sorted(below - implied - COMMON))
        yield "}"

    return "\n".join(lines())


def test_the_picture_is_current() -> None:
    require("dot")
    svg = subprocess.run(["dot", "-Tsvg"], input=drawn(), capture_output=True, text=True, check=True).stdout
    if RENEW:
        if not PICTURE.exists() or content(PICTURE.read_text()) != content(svg):
            PICTURE.write_text(svg)
        return
    assert content(PICTURE.read_text()) == content(svg)
