"""Broken input never gives a traceback: whatever is done to a document, reading it works or raises one line."""

import json
import re

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.hostile.mutations import CONTENTS, VALID, mutated_bytes, mutated_structures
from tests.formats.plain import described, read
from tests.tiers import examples
from tidu_cli.errors import DocumentError
from tidu_cli.formats.files import Source
from tidu_cli.formats.read import parse, parse_document
from tidu_cli.formats.write import format_document


def reads_or_says_why(data: bytes) -> None:
    try:
        document, _ = parse_document(data, "f")
    except DocumentError as error:
        message = str(error)
        assert re.match(r"f:(\d+:\d+:)? ", message) and message.isprintable() and len(message) <= 600
    else:
        for format, listed in (("json", True), ("json", False), ("msgpack", True), ("msgpack", False)):
            assert described(read(format_document(document, format, listed=listed))) == described(document)


@given(mutated_bytes)
@settings(max_examples=examples(500))
def test_mutated_bytes(data):
    reads_or_says_why(data)


@given(st.binary(max_size=64))
@example(b"\x81\xa4tidu\xd6\xff\x00\x00\x00\x00")  # msgpack's timestamp, which the library makes an object of
@example(b'{"tidu": 1' + b", " * 5)
@example(b'{"tidu": ' + b"9" * 5000 + b"}")
@example(b'{"tidu": "\\ud800"}')
@example(b"ML\xefR")  # bytecode of MLIR that ends at once
@example(b"module")
def test_any_bytes(data):
    reads_or_says_why(data)


@given(mutated_structures())
@settings(max_examples=examples(500, check=75))
def test_mutated_structure(data):
    reads_or_says_why(json.dumps(data).encode())
    try:
        packed = msgpack.packb(data)
    except OverflowError:
        return
    reads_or_says_why(packed)


@pytest.mark.parametrize("data", CONTENTS, ids=[path.name for path in VALID])
def test_every_beginning_of_a_document_is_refused(data):
    for end in range(0, len(data.rstrip()), 7):
        with pytest.raises(DocumentError):
            parse_document(data[:end], "f")


@pytest.mark.parametrize("depth", [100, 300, 900, 1100, 5000, 100_000])
@pytest.mark.parametrize("place", ['{"tidu": %s}', '{"tidu": 1, "graphs": %s}', '{"tidu": 1, "graphs": [], "meta": {"a": %s}}'])
def test_deep_nesting_anywhere_is_refused(place, depth):
    reads_or_says_why((place % ("[" * depth + "]" * depth)).encode())
    reads_or_says_why((place % ('{"a":' * depth + "1" + "}" * depth)).encode())


@pytest.mark.parametrize("depth", [3, 300, 900, 1100])
@pytest.mark.parametrize(
    "field", ['"inputs": [%s]', '"inputs": [0], "attrs": {"y": %s}', '"inputs": [0], "role": %s', '"inputs": [0], "types": %s']
)
def test_deep_nesting_in_nodes_is_refused(field, depth):
    node = '{"op": "integer_pow", ' + field % ("[" * depth + "]" * depth) + "}"
    graph = '{"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": [' + node + '], "outputs": []}'
    text = '{"tidu": 1, "graphs": [' + graph + "]}"
    with pytest.raises(DocumentError):
        parse_document(text.encode(), "f")


def test_deep_nesting_just_within_what_the_parser_takes():
    # What comes after parsing, such as quoting the value in a message, must not need more of the stack.
    for depth in range(800, 1000, 3):
        node = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[1]", "data": ["DEEP"]}}}
        graph = {"name": "f", "inputs": [], "nodes": [node], "outputs": []}
        text = json.dumps({"tidu": 1, "graphs": [graph]}).replace('"DEEP"', "[" * depth + "]" * depth)
        with pytest.raises(DocumentError):
            parse_document(text.encode(), "f")


def test_a_timestamp_is_no_attr():
    node = {"op": "integer_pow", "inputs": [0], "attrs": {"y": msgpack.Timestamp(0)}}
    graph = {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": [node], "outputs": []}
    with pytest.raises(DocumentError, match=r"graph 'f', node 0 \(integer_pow\): attrs .* a value that JSON does not have"):
        parse_document(msgpack.packb({"tidu": 1, "graphs": [graph]}), "f")


def test_a_table_cannot_claim_more_results_than_there_are():
    row = {"op": "sin", "inputs": 1, "outputs": 2**31 - 1}
    nodes = {"table": [row], "code": [0] * 9, "args": [0] * 9, "external": []}
    data = {"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": nodes, "outputs": []}]}
    with pytest.raises(DocumentError, match=r"graph 'f', node 0 \(sin\): table row 0 has outputs 2147483647; it must be 1"):
        read(data)


@pytest.mark.parametrize("data", [b"[" * 100_000, b"\x81\xa1a" * 2000], ids=["json", "msgpack"])
def test_the_parser_alone_refuses_deep_nesting(data):
    with pytest.raises(DocumentError, match="nests too deeply"):
        parse(Source(data))
