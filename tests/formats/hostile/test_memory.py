"""What reading and writing large packed documents takes beside the document, as ratios to the file: NumPy and Python report theirs.

A file holds about what the columns in memory do.
"""

from __future__ import annotations

from collections import deque
from io import BytesIO

import pytest

from benchmarks.generate import WIDTH, dag
from tests.peaks import peak
from tidu_cli.formats.files import Source
from tidu_cli.formats.nodes import listed
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document, formatted
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import parse_key
from tidu_cli.transforms.linearize import linearize

N = 2**17


@pytest.fixture(scope="module")
def linearized() -> Document:
    return large(N)


def large(n: int) -> Document:
    """Three graphs that read one another."""
    return linearize(dag(n), [parse_key(f"x{k}") for k in range(WIDTH)])


@pytest.mark.check
def test_writing_takes_little(linearized: Document) -> None:
    size = len(format_document(linearized, "msgpack"))
    assert peak(lambda: deque(formatted(linearized, "msgpack"), 0)) < 0.5 * size


@pytest.mark.check
@pytest.mark.parametrize("n", [2**15, pytest.param(N, marks=pytest.mark.campaign)])
def test_writing_nodes_one_by_one_takes_less(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    linearized = large(n)
    monkeypatch.setattr(listed, "BLOCK", listed.BLOCK * n // N)  # nodes per block, in proportion to the size of the graph
    for format_ in ("json", "msgpack"):
        size = len(format_document(linearized, format_, listed=True))
        assert peak(lambda format_=format_: deque(formatted(linearized, format_, listed=True), 0)) < 0.1 * size


@pytest.mark.check
def test_reading_takes_little_more_than_the_columns(linearized: Document) -> None:
    data = format_document(linearized, "msgpack")
    assert peak(lambda: parse_document(Source(BytesIO(data)), "d")) < 2.5 * len(data)
