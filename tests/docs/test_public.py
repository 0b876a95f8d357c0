"""The page about Python lists everything that is public."""

from __future__ import annotations

import re
from pathlib import Path

import tidu_cli

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_page_lists_everything_public() -> None:
    table = PAGE.read_text().partition("| | |")[2].partition("\n\n")[0]
    assert sorted(re.findall(r"`(\w+)`", table)) == sorted(tidu_cli.__all__)


def test_everything_public_says_what_it_is() -> None:
    for name in tidu_cli.__all__:
        assert getattr(tidu_cli, name).__doc__, name
