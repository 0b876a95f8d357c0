"""The quick check of shapes is the models': what it takes they take, in the same meaning, and the other way round."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings

from tests.formats.hostile.mutations import CONTENTS, VALID, mutated_structures
from tests.formats.plain import documents
from tests.tiers import examples
from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.formats.declarations import record_types
from tidu_cli.formats.files import Source
from tidu_cli.formats.nodes.listed import accepted, judged, outline
from tidu_cli.formats.read import columns_for_lists, parse, parse_document
from tidu_cli.formats.shape import DocumentData, type_reader
from tidu_cli.formats.write import format_document
from tidu_cli.rules.validation import read_by_model

INVALID = sorted((Path(__file__).parents[3] / "samples" / "conformance" / "invalid").iterdir())


def agrees(plain: object) -> bool:
    """Whether the models take a document; the quick check must say the same, and read the same from it."""
    read_type = type_reader({})
    if not isinstance(plain, dict) or type(plain.get("tidu")) is not int:
        return False  # versions are looked at before, and so are types
    if isinstance(plain, dict) and "types" in plain:
        try:
            read_type = type_reader(record_types(plain["types"], {}))
        except TiduError:
            return False
    with_columns = deepcopy(plain)
    columns_for_lists(with_columns)
    try:
        judged(plain, read_type)
    except DocumentError:
        assert accepted(plain, read_type) is None and accepted(with_columns, read_type) is None
        return False
    for data in (plain, with_columns):
        assert accepted(data, read_type) == read_by_model(DocumentData, outline(data), read_type)
    return True


@settings(max_examples=examples(2000, check=30))
@given(documents())
def test_documents_are_taken(data):
    assert agrees(data)
    packed = json.loads(format_document(parse_document(json.dumps(data).encode(), "d")[0], "json", listed=False))
    assert agrees(packed)


@given(mutated_structures())
@settings(max_examples=examples(500, check=45))
def test_mutated_documents_are_taken_by_both_or_neither(data):
    agrees(data)
    try:
        packed = msgpack.packb(data)
    except OverflowError:
        return
    agrees(msgpack.unpackb(packed))


@pytest.mark.parametrize("data", CONTENTS, ids=[path.name for path in VALID])
def test_valid_samples_are_taken(data):
    assert agrees(parse(Source(data))[0])


@pytest.mark.parametrize("path", INVALID, ids=[path.name for path in INVALID])
def test_invalid_samples_are_judged_alike(path):
    try:
        plain, _ = parse(Source(path.read_bytes()))
    except TiduError:
        return
    agrees(plain)


@pytest.mark.parametrize("field", ["op", "inputs", "attrs", "role", "types", "meta"])
@pytest.mark.parametrize("value", [None, 1, True, "x", [], {}, [1], {"x": 1}, {"linearized": {"active_mask": [1]}}, b"x"])
def test_one_node_of_many(field, value):
    # Kinds of values are gathered from all nodes: one that differs must not hide among the others.
    node = {"op": "sin", "inputs": [0]}
    nodes = [node, {**node, field: value}, {**node, "attrs": {}, "role": {"linearized": {"active_mask": [True]}}}, node]
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": nodes, "outputs": []}
    agrees({"tidu": 1, "graphs": [graph]})


def test_what_only_the_models_take_is_read_by_them(monkeypatch):
    data = CONTENTS[0]
    expected = format_document(parse_document(data, "d")[0], "json")
    monkeypatch.setattr("tidu_cli.formats.read.accepted", lambda plain, read_type: None)
    assert format_document(parse_document(data, "d")[0], "json") == expected
