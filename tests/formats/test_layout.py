"""The exact text of JSON documents."""

import json
import unicodedata

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.plain import read
from tests.tiers import examples
from tidu_cli.formats.json import json_text
from tidu_cli.formats.write import format_document

TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""The classes of characters that turn the order of others."""

EXAMPLE = """\
{"tidu": 1,
 "graphs": [
   {"name": "f",
    "inputs":  [{"key": "x", "type": "f64[]"}],
    "nodes":   [{"op": "add", "inputs": [0, 0]},
                {"op": "mul", "inputs": [1, 0]}],
    "outputs": [{"key": "y", "value": 2, "type": "f64[]"}]},
   {"name": "f@1", "linear": {"pass": 1},
    "inputs":  [{"key": {"tangent": {"of": "x", "pass": 1}}, "type": "f64[]"}],
    "nodes":   [{"op": "add", "inputs": [0, 0], "role": {"linearized": {"active_mask": [true, true]}}},
                {"op": "mul", "inputs": [[0, 1], 0], "role": {"linearized": {"active_mask": [false, true]}}},
                {"op": "mul", "inputs": [1, [0, 0]], "role": {"linearized": {"active_mask": [true, false]}}},
                {"op": "add", "inputs": [2, 3], "role": {"linearized": {"active_mask": [true, true]}}}],
    "outputs": [{"key": {"tangent": {"of": "y", "pass": 1}}, "value": 4, "type": "f64[]"}]}]}
"""

PACKED = """\
{"tidu": 1,
 "graphs": [
   {"name": "f",
    "inputs":  [{"key": "x", "type": "f64[]"}],
    "nodes":   {"table": [{"op": "add", "inputs": 2, "outputs": 1},
                          {"op": "mul", "inputs": 2, "outputs": 1}],
                "code": [0, 1],
                "args": [0, 0, 1, 0],
                "external": []},
    "outputs": [{"key": "y", "value": 2, "type": "f64[]"}]}]}
"""

EVERYTHING = """\
{"tidu": 1,
 "meta": {"by": "é"},
 "graphs": [
   {"name": "f", "meta": {"a": 1},
    "inputs":  [{"key": "x", "type": "f64[2]", "meta": {}},
                {"key": "a", "type": "f64[2]"}],
    "nodes":   [{"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[2]", "data": [0.1, "NaN"]}}, "meta": {"n": [1]}},
                {"op": "mul", "inputs": [2, "sha256:%s"], "types": ["f64[2]"]}],
    "outputs": [{"key": "y", "value": 3, "type": "f64[2]"},
                {"key": "z", "value": null, "type": "f32[]", "meta": {"zero": true}}]},
   {"name": "g",
    "inputs":  [{"key": "u", "type": "f64[2]"}],
    "nodes":   [],
    "outputs": []}],
 "bindings": [{"input": "u", "value": [0, 3]}]}
""" % ("5c" * 32)


def test_the_worked_example_byte_for_byte():
    assert format_document(read(EXAMPLE.encode()), "json").decode() == EXAMPLE


def test_every_optional_field_byte_for_byte():
    assert format_document(read(EVERYTHING.encode()), "json").decode() == EVERYTHING


def test_rows_of_the_table_have_no_types():
    inputs = [{"key": "x", "type": "f64[]"}, {"key": "z", "type": "c64[3]"}]
    nodes = [{"op": "sin", "inputs": [0]}, {"op": "sin", "inputs": [1]}, {"op": "cos", "inputs": [2]}]
    data = {"tidu": 1, "graphs": [{"name": "f", "inputs": inputs, "nodes": nodes, "outputs": []}]}
    packed = json.loads(format_document(read(data), "json", listed=False))["graphs"][0]["nodes"]
    assert [row["op"] for row in packed["table"]] == ["sin", "cos"] and packed["code"] == [0, 0, 1]


def test_packed_nodes_in_json_byte_for_byte():
    only_f = EXAMPLE.split(',\n   {"name": "f@1"')[0] + "]}\n"
    assert format_document(read(only_f.encode()), "json", listed=False).decode() == PACKED
    assert format_document(read(PACKED.encode()), "json").decode() == only_f
    assert format_document(read(PACKED.encode()), "json", listed=False).decode() == PACKED


@settings(max_examples=examples(2000, check=60))
@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
@example("\x7f\x80\x9b\x9f\u061c\u200e\u200f\u2028\u202e\u2066\u2069é\U0001f600")
def test_json_steers_no_terminal_and_says_the_same(value):
    text = json_text(value)
    assert json.loads(text) == value
    assert not {c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp") or unicodedata.bidirectional(c) in TURNING}
    assert [c for c in "é😀" if c in json.dumps(value, ensure_ascii=False) and c not in text] == []
