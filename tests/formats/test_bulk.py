"""Large graphs are read and written by columns as small ones are node by node: here all count as large, and nothing differs."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.hostile.mutations import mutated_structures
from tests.formats.plain import described, documents
from tests.tiers import examples
from tidu_cli.errors import DocumentError
from tidu_cli.formats.nodes import bulk
from tidu_cli.formats.nodes import listed as plain
from tidu_cli.formats.nodes.numbering import Pairs
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph import dataflow, large
from tidu_cli.graph.graph import Document, Externals

CONFORMANCE = Path(__file__).parents[2] / "samples" / "conformance"
SAMPLES = sorted(CONFORMANCE.glob("*valid/*"))


def outcome(data: bytes) -> object:
    """What reading gives, and writing again."""
    try:
        document, _ = parse_document(data, "d")
    except DocumentError as error:
        return str(error)
    return described(document), written(document)


def written(document: Document) -> list[bytes]:
    return [format_document(document, format_, listed=listed) for format_ in ("json", "msgpack") for listed in (False, True)]


def agree(data: bytes) -> None:
    node_by_node = outcome(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "is_large", lambda n: True)
        patch.setattr(dataflow, "BLOCK", 2)
        assert outcome(data) == node_by_node


@pytest.mark.parametrize("path", SAMPLES, ids=[path.name for path in SAMPLES])
def test_samples(path: Path) -> None:
    agree(path.read_bytes())


@settings(max_examples=examples(2000, check=10))
@given(documents())
def test_documents(data: dict[str, object]) -> None:
    document, _ = parse_document(json.dumps(data).encode(), "d")
    for made in written(document):
        agree(made)


@pytest.mark.check
@given(mutated_structures())
@settings(max_examples=examples(300, check=50))
def test_broken_documents(data: object) -> None:
    agree(json.dumps(data).encode())


def two_graphs(external: list[object], args: list[int]) -> bytes:
    """Graph g reads values of graph f by these externals, two a node."""
    row = {"op": "add", "inputs": 2, "outputs": 1}
    first = {"table": [row], "code": [0] * 3, "args": [0, 0, 1, 0, 2, 1], "external": []}
    second = {"table": [row], "code": [0] * (len(args) // 2), "args": args, "external": external}
    x = {"key": "x", "type": "f64[]"}
    graphs = [
        {"name": "f", "inputs": [x], "nodes": first, "outputs": []},
        {"name": "g", "inputs": [x], "nodes": second, "outputs": [{"key": "y", "value": [0, 1]}, {"key": "z", "value": [0, 3]}]},
    ]
    return json.dumps({"tidu": 1, "graphs": graphs}).encode()


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=2, max_size=2).map(lambda pair: [pair[0] // 4, pair[1]]), max_size=4),
    st.lists(st.integers(-5, 3), max_size=8).filter(lambda args: len(args) % 2 == 0),
)
def test_externals_in_any_order(external: list[object], args: list[int]) -> None:
    agree(two_graphs(external, args))


@pytest.mark.parametrize("wrong", [[0], [0, 1, 2], [0, True], [0, 2**70], [0, -1], [-1, 0], [1, 0], [0, 4], "sha256:x", None, {}])
def test_wrong_externals(wrong: object) -> None:
    agree(two_graphs([[0, 1], wrong], [-1, -2, 0, 0]))


def test_externals_as_they_are_written_need_no_loop() -> None:
    args = array("i", [-1, -2, 0, -1])

    def read(pairs: list[list[int]], args: array[int]) -> tuple[list[tuple[int, int]], array[int]] | None:
        distinct = bulk.distinct_externals(Pairs.of(pairs), args, [4])
        return distinct and (list(distinct[0]), distinct[1])

    assert read([[0, 2], [0, 1]], args) == ([(0, 2), (0, 1)], args)
    assert read([[0, 2], [0, 1], [0, 2]], array("i", [-1, 0, -2, -3])) == ([(0, 2), (0, 1)], array("i", [-1, 0, -2, -1]))
    externals = Externals(array("i", [0, 0]), array("i", [2, 1]))
    assert bulk.is_in_order(args, externals)
    for other in ([-2, -1, 0, 0], [-1, -1, 0, 0], [-1, -3, 0, 0], [0, 0, 0, 0]):
        assert read([[0, 2], [0, 1]], array("i", other)) is None
        assert not bulk.is_in_order(array("i", other), externals)
    assert read([[0, 2], [0, 4]], args) is None
    assert not bulk.is_in_order(args, Externals(array("i", [0, 0]), array("i", [2, 2])))
    assert not bulk.is_in_order(args, Externals(array("i", [0, Externals.DETACHED]), array("i", [2, 0])))


@pytest.mark.parametrize("way", [bulk, plain], ids=["bulk", "plain"])
def test_arguments_in_range_need_no_loop(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow, "BLOCK", 2)
    code, arity, n_results = array("i", [0, 1, 0, 1, 0]), [1, 2], [2, 1]

    def in_range(*args: int) -> bool:
        return way.args_in_range(code, array("i", args), arity, n_results, 1, 1)

    assert in_range(0, 2, -1, 3, 5, 4, 6)  # each the greatest that there is
    for wrong in [
        (1, 2, -1, 3, 5, 4, 6),
        (0, 2, 3, 3, 5, 4, 6),
        (0, 2, -1, 3, 5, 6, 6),
        (0, 2, -1, 3, 5, 4, 7),
        (0, 2, -2, 3, 5, 4, 6),
    ]:
        assert not in_range(*wrong)
