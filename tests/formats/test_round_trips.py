"""Laws of reading and writing: nothing is lost on any way through the formats, and writing is stable byte for byte."""

import pytest
from hypothesis import given, settings

from tests.formats.plain import described, documents, read
from tests.tiers import examples
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.identity import digests

FORMS = [("json", True), ("json", False), ("msgpack", True), ("msgpack", False)]


@settings(max_examples=examples(2000, check=80))
@given(documents())
def test_every_form_describes_the_same_document(data):
    document = read(data)
    expected = described(document), digests(document)
    for format, listed in FORMS:
        again, kind = parse_document(format_document(document, format, listed=listed), "again")
        assert (described(again), digests(again), kind) == (*expected, format)


@settings(max_examples=examples(2000, check=45))
@given(documents())
def test_writing_what_was_read_gives_the_same_bytes(data):
    for format, listed in FORMS:
        once = format_document(read(data), format, listed=listed)
        assert format_document(read(once), format, listed=listed) == once


@settings(max_examples=examples(2000, check=70))
@given(documents())
def test_bytes_do_not_depend_on_the_way_a_document_came(data):
    document = read(data)
    expected = format_document(document, "json")
    for format, listed in FORMS:
        assert format_document(read(format_document(document, format, listed=listed)), "json") == expected


@settings(max_examples=examples(2000, check=30))
@given(documents(detached=False))
def test_types_written_on_nodes_are_those_inferred(data):
    document = read(data)
    for format in ("json", "msgpack"):
        assert described(read(format_document(document, format, types=True))) == described(document)


def test_types_are_on_every_node_and_only_when_asked_for():
    data = {
        "tidu": 1,
        "graphs": [
            {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": [{"op": "sin", "inputs": [0]}] * 3, "outputs": []}
        ],
    }
    assert format_document(read(data), "json", types=True).count(b'"types": ["f64[]"]') == 3
    assert b"types" not in format_document(read(data), "json")


def test_an_unknown_format_is_refused():
    with pytest.raises(ValueError, match="yaml"):
        format_document(read({"tidu": 1, "graphs": [{"name": "f", "inputs": [], "nodes": [], "outputs": []}]}), "yaml")


def big(types: list[str], n: int) -> dict:
    """A chain for each type, one node of each in turn."""
    ops = [["add", "mul", "sub"][i % 3] for i in range(n)]
    nodes = [{"op": op, "inputs": [i, i]} for i, op in enumerate(ops)]
    inputs = [{"key": f"x{k}", "type": t} for k, t in enumerate(types)]
    return {"tidu": 1, "graphs": [{"name": "f", "inputs": inputs, "nodes": nodes, "outputs": []}]}


@pytest.mark.parametrize("types", [["f64[]"], ["f64[]", "f32[]"]], ids=["one type", "two types"])
def test_packed_and_listed_nodes_read_alike_in_large_graphs(types):
    document = read(big(types, 5000))
    packed = read(format_document(document, "msgpack"))
    assert described(packed) == described(document)
    assert packed.head.type_of(packed.head.n_values - 1) == document.head.type_of(document.head.n_values - 1)
