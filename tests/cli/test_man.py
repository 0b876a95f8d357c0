"""The man pages: in every wheel, complete, and what formatters accept."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import PurePath

import pytest

from tests.cli.running import ROOT
from tests.programs import needs
from tidu_cli.cli.main import COMMANDS
from tools.manual import escaped, pages

PAGES = dict(pages())


@pytest.mark.check
def test_a_wheel_has_the_pages(tmp_path):
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        read = {PurePath(name).name: packed.read(name).decode() for name in packed.namelist() if "/share/man/man1/" in name}
    assert read == PAGES


def test_there_is_a_page_for_each_command_with_all_its_options():
    assert set(PAGES) == {"tidu.1", *(f"tidu-{name}.1" for name in COMMANDS)}
    for name in COMMANDS:
        page = PAGES[f"tidu-{name}.1"]
        assert "\\-\\-verbose" in page and "\\-h, \\-\\-help" in page and ".SH EXAMPLES" in page


@needs("groff", "mandoc")
@pytest.mark.parametrize("name", PAGES)
def test_formatters_have_nothing_to_complain_of(name):
    source = PAGES[name].encode()
    groff = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=source, capture_output=True, check=True)
    assert groff.stderr == b""
    mandoc = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=source, capture_output=True, check=False)
    # Pages have no date on purpose: they would change with each day that they are written.
    assert [line for line in mandoc.stdout.decode().splitlines() if "missing date" not in line] == []


@needs("mandoc")
@pytest.mark.parametrize("text", [".B bold", "'request", "a\\b", "x^2 ~ `y`", "-0", 'say "so"', "é → ∂"])
def test_text_comes_out_as_it_went_in(text):
    source = f".TH T 1\n.SH S\n{escaped(text)}\n".encode()
    shown = subprocess.run(["mandoc", "-Tutf8"], input=source, capture_output=True, check=True).stdout.decode()
    assert f"     {text}" in shown or f"       {text}" in shown
