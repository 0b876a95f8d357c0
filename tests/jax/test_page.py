"""The table of differences to JAX in docs/differences.md is the one that the tests use. TIDU_RENEW=1 writes it there."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.jax.differences import COMPARED_WITH, DIFFERENCES, to_markdown
from tidu_cli.lax.vocabulary import BUILTIN

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
TABLE = re.compile(r"\A# Differences to JAX\n.*?^(TABLE|\|.*?)\n(?=\n)", flags=re.M | re.S)


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text()
    table = TABLE.search(text)
    assert table is not None
    if os.environ.get("TIDU_RENEW") == "1":
        PAGE.write_text(text[: table.start(1)] + to_markdown() + text[table.end(1) :])
        return
    assert table[1] == to_markdown()
    assert f"JAX {COMPARED_WITH}" in table[0]


def test_the_table_is_about_primitives_that_there_are() -> None:
    assert {op for row in DIFFERENCES for op in row.ops} <= {primitive.name for primitive in BUILTIN}
