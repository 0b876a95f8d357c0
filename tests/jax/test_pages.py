"""The examples of docs/ that need JAX, and so do not run with the others."""

from __future__ import annotations

import pytest

from tests.docs.blocks import PAGES, Block, blocks

pytestmark = pytest.mark.jax
EXAMPLES = [block for page in PAGES for block in blocks(page.read_text()) if block.not_run == "needs JAX"]


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("block", EXAMPLES, ids=lambda block: str(block.first))
def test_example_runs(block: Block) -> None:
    exec(compile("\n".join(block.lines), "page", "exec"), {})
