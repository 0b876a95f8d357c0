"""docs/onnx.md: its tables are those of today's operators."""

from __future__ import annotations

import re

import onnx
import pytest

from tests.docs.blocks import ROOT
from tidu_cli.adapters.onnx.reading.operators.index import operators
from tools.operators import DOMAINS, renewed

PAGE = (ROOT / "docs" / "onnx.md").read_text()
VERSION = re.search(r"tests of onnx ([\d.]+)", PAGE)


@pytest.mark.campaign
def test_the_tables_are_current() -> None:
    """With another version of the package, which has other operators and tests, it is for `make generated` to say what there is."""
    assert VERSION is not None
    if onnx.__version__ == VERSION[1]:
        assert renewed(PAGE) == PAGE, "make generated writes it"


def test_every_operator_that_is_read_is_in_the_tables() -> None:
    sections = dict(re.findall(r"<!-- ([\w.]+): make generated -->(.*?)<!-- end -->", PAGE, flags=re.S))
    for name, domain in DOMAINS.items():
        assert set(operators(domain)) <= set(re.findall(r"^\| `(\w+)` \| yes \|", sections[name], flags=re.M))
