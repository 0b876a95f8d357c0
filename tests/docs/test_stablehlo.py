"""docs/stablehlo.md: its tables are those of today's operations and primitives."""

from __future__ import annotations

import re

import jaxlib
import pytest

from tests.docs.blocks import ROOT
from tools.stablehlo import known_operations, renewed

PAGE = (ROOT / "docs" / "stablehlo.md").read_text()


@pytest.mark.jax
def test_the_tables_are_current() -> None:
    """Another version of jaxlib may lower some case otherwise: then it is for `make generated` to say how."""
    if jaxlib.__version__ == re.search(r"jaxlib ([\d.]+)", PAGE)[1]:  # type: ignore[index]
        assert renewed(PAGE) == PAGE, "make generated writes it"


def test_every_operation_is_in_the_tables() -> None:
    assert set(known_operations()) <= set(re.findall(r"`((?:stablehlo|chlo)\.[\w-]+)`", PAGE))
