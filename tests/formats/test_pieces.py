"""Large JSON is read in pieces as it is read as a whole: here all counts as large, pieces are small, and nothing differs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.formats.hostile.mutations import mutated_bytes, mutated_structures
from tests.formats.plain import documents, read
from tests.formats.test_bulk import SAMPLES, outcome
from tests.tiers import examples
from tidu_cli.errors import DocumentError
from tidu_cli.formats import json as json_reader
from tidu_cli.formats.files import Source
from tidu_cli.formats.nodes import pieces
from tidu_cli.formats.nodes import reader as nodes
from tidu_cli.formats.nodes.listed import Listed
from tidu_cli.formats.read import parse
from tidu_cli.formats.write import format_document
from tidu_cli.graph import large

LAYOUTS: list[Callable[[object], str]] = [
    json.dumps,
    lambda data: json.dumps(data, separators=(",", ":"), ensure_ascii=False),
    lambda data: json.dumps(data, indent=3, separators=(" ,", " : ")),
    lambda data: json.dumps(data, sort_keys=True, indent="\t", separators=("\r\n,", "\n:")),
    lambda data: json.dumps({key: data[key] for key in reversed(data)} if isinstance(data, dict) else data),
]


@contextmanager
def small_pieces(size: int = 1) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "LARGE", 0)
        patch.setattr(pieces, "PIECE", size)
        yield


def agree(data: bytes) -> None:
    whole = outcome(data)
    for size in (1, 80):
        with small_pieces(size):
            assert outcome(data) == whole
    with small_pieces(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "is_large", lambda n: True)
        assert outcome(data) == whole


def lists_in(data: bytes, size: int = 1) -> list[bool]:
    """Of each graph whether its nodes come as columns."""
    with small_pieces(size):
        plain, _ = parse(Source(data))
    return [isinstance(graph["nodes"], Listed) for graph in plain["graphs"]]


def plainly(data: bytes) -> object:
    """What is parsed, with lists as lists; or the message."""

    def in_full(value: object) -> object:
        if isinstance(value, Listed):
            return list(value)
        if isinstance(value, dict):
            return {key: in_full(part) for key, part in value.items()}
        return [in_full(part) for part in value] if isinstance(value, list) else value

    try:
        return in_full(parse(Source(data))[0])
    except DocumentError as error:
        return str(error)


def parses_alike(data: bytes) -> None:
    # As text, where 1, 1.0 and true differ.
    whole = plainly(data)
    for size in (1, 30):
        with small_pieces(size):
            assert json.dumps(plainly(data), sort_keys=True) == json.dumps(whole, sort_keys=True)


@pytest.mark.parametrize("path", SAMPLES, ids=[path.name for path in SAMPLES])
def test_samples(path):
    agree(path.read_bytes())


@settings(max_examples=examples(2000, check=60))
@given(documents(), st.sampled_from(LAYOUTS))
def test_documents(data, layout):
    agree(layout(data).encode())


@given(mutated_structures(), st.sampled_from(LAYOUTS))
@settings(max_examples=examples(500, check=20))
def test_broken_documents(data, layout):
    agree(layout(data).encode())


@given(mutated_bytes)
@settings(max_examples=examples(500))
def test_broken_bytes(data):
    agree(data)


NODES = [
    {"op": "add", "inputs": [0, 0]},
    {"op": "sin", "inputs": [1], "types": ["f64[]"], "meta": {"nodes": [{"a": 1}, {"b": {"c": "d: e"}}]}},
    {"op": "integer_pow", "inputs": [2], "attrs": {"y": 2}},
    {"op": "integer_pow", "inputs": [2], "attrs": {"y": -2}, "meta": {"é": [{}, {"x": "ü"}]}},
    {"op": "add", "inputs": [0, 0]},
]
LINEAR = [
    {"op": "mul", "inputs": [[0, 1], 0], "role": {"linearized": {"active_mask": [False, True]}}},
    {"op": "mul", "inputs": [1, [0, 0]], "role": {"linearized": {"active_mask": [True, False]}}},
    {"op": "integer_pow", "inputs": [[0, 1]], "attrs": {"y": 2}},
    {"op": "neg", "inputs": [0], "role": {"linearized": {"active_mask": [True]}}, "types": ["f64[]"]},
]


def document(*graphs: list[object], **fields: object) -> dict[str, object]:
    inputs = [{"key": "x", "type": "f64[]"}]
    named = [{"name": f"{g}", "inputs": inputs, "nodes": nodes, "outputs": []} for g, nodes in enumerate(graphs)]
    return {"tidu": 1, "graphs": named, **fields}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lists_of_nodes_come_as_columns(layout):
    # Else all of these laws would hold of nothing.
    data = layout(document(NODES, LINEAR, [])).encode()
    assert lists_in(data) == [True, True, False]
    agree(data)
    parses_alike(data)


def test_what_tidu_writes_comes_as_columns():
    data = format_document(read(document(NODES, LINEAR)), "json")
    assert lists_in(data) == [True, True]
    agree(data)


def test_columns_take_no_other_way(monkeypatch):
    # `read_listed` is for lists, and to say what is wrong.
    data = json.dumps(document(NODES, LINEAR, [{"op": "sin", "inputs": [[1, 2]]}] * 3)).encode()
    expected = outcome(data)
    monkeypatch.setattr(nodes.NodeReader, "read_listed", None)
    for is_large in (False, True):
        monkeypatch.setattr(large, "is_large", lambda n, is_large=is_large: is_large)
        with small_pieces():
            assert outcome(data) == expected


def test_ops_of_several_results():
    ports = {"inputs": [{"key": "x", "type": "f64[]"}], "outputs": [{"key": "y", "type": "f64[]"}, {"key": "z", "type": "f64[]"}]}
    forward = {
        "inputs": [{"key": "x"}],
        "nodes": [{"op": "sin", "inputs": [0]}, {"op": "cos", "inputs": [0]}],
        "outputs": [{"key": "y", "value": 1}, {"key": "z", "value": 2}],
    }
    triples = [{"op": "both", "inputs": [0]}, {"op": "both", "inputs": [2]}, {"op": "add", "inputs": [4, 3]}] * 3
    data = json.dumps(document(triples, ops={"both": {**ports, "forward": forward}})).encode()
    # The nodes of the definition must be a list: if they are as long as a piece, all is read as a whole.
    assert lists_in(data) == [False]
    assert lists_in(data, size=80) == [True]
    agree(data)


@pytest.mark.parametrize(
    "wrong",
    [
        {"op": "sin", "inputs": [9]},
        {"op": "sin", "inputs": [-1]},
        {"op": "sin", "inputs": [True]},
        {"op": "sin", "inputs": [2**31]},
        {"op": "sin", "inputs": [[0]]},
        {"op": "sin", "inputs": [[0, -1]]},
        {"op": "sin", "inputs": [[0, 9]]},
        {"op": "sin", "inputs": [[0, 2**40]]},
        {"op": "sin", "inputs": [[1, 0]]},
        {"op": "sin", "inputs": [[False, 0]]},
        {"op": "sin", "inputs": ["sha256:" + "0" * 64], "types": ["f64[]"]},
        {"op": "sin", "inputs": [{"a": 1}]},
        {"op": "sin", "inputs": {"a": 1}},
        {"op": "sin", "inputs": "0"},
        {"op": "sin", "inputs": [0, 0]},
        {"op": "sine", "inputs": [0]},
        {"op": 1, "inputs": [0]},
        {"op": [], "inputs": [0]},
        {"op": "sin"},
        {"op": "sin", "inputs": [0], "other": 1},
        {"op": "sin", "inputs": [0], "attrs": []},
        {"op": "sin", "inputs": [0], "attrs": None},
        {"op": "sin", "inputs": [0], "attrs": {"y": 1}},
        {"op": "integer_pow", "inputs": [0], "attrs": {"y": 2.0}},
        {"op": "integer_pow", "inputs": [0], "attrs": {"y": True}},
        {"op": "sin", "inputs": [0], "types": None},
        {"op": "sin", "inputs": [0], "types": ["f32[]"]},
        {"op": "sin", "inputs": [0], "types": ["f64"]},
        {"op": "sin", "inputs": [0], "types": [1]},
        {"op": "sin", "inputs": [0], "meta": 1},
        {"op": "sin", "inputs": [0], "meta": {"a": 2**70}},
        {"op": "sin", "inputs": [0], "role": {"linearized": {"active_mask": [1]}}},
        {"op": "sin", "inputs": [0], "role": {"linearized": {"active_mask": [1.0]}}},
        {"op": "sin", "inputs": [0], "role": {"linearized": {"active_mask": "1"}}},
        {"op": "sin", "inputs": [0], "role": {"linearized": {"active_mask": {"a": 1}}}},
        {"op": "sin", "inputs": [0], "role": {"linearized": {"active_mask": [True], "other": 1}}},
        {"op": "sin", "inputs": [0], "role": {"linearized": {"active_mask": [True]}, "other": 1}},
        {"op": "sin", "inputs": [0], "role": {"linearized": [True]}},
        {"op": "sin", "inputs": [0], "role": None},
        {"op": "sin", "inputs": [0], "role": {}},
        1,
        "x",
        None,
        [],
        ["op", "inputs"],
    ],
    ids=json.dumps,
)
def test_one_node_of_many(wrong):
    good = [{"op": "neg", "inputs": [0], "role": {"linearized": {"active_mask": [True]}}}, {"op": "sin", "inputs": [[0, 0]]}]
    data = json.dumps(document(NODES, [*good, wrong, *good])).encode()
    agree(data)
    parses_alike(data)
    agree(json.dumps(document(NODES, [wrong, *good])).encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"op": "sin"', '{"op": "sin", "op": "sin"'),
        ('{"op": "sin"', r'{"op": "sin", "\u006fp": "sin"'),
        ('"attrs": {"y": 2}', '"attrs": {"y": 2, "y": 2}'),
        ('"attrs": {"y": 2}', '"attrs": {"y": 2}, "attrs": {"y": 2}'),
        ('"c": "d: e"', '"c": "d: e", "c": "d: e"'),
        ('"c": "d: e"', '"c": {"c": 1}, "c" : ":"'),
        ('"active_mask": [true]', '"active_mask": [true], "active_mask": [true]'),
        ('"linearized": ', '"linearized": {"active_mask": [false]}, "linearized": '),
        ('"name": "1"', '"nodes": [], "name": "1"'),
        ('"name": "1"', '"name": "1", "name": "1"'),
        ('"tidu": 1', '"tidu": 1, "tidu": 1'),
        ('"y": 2', '"y": NaN'),
        ('"y": 2', '"y": -Infinity'),
        ('"y": 2', '"y": 1e999'),
        ('"y": 2', '"y": ' + "9" * 5000),
        ('"y": 2', '"y": 02'),
        ('"a": 1', '"a": NaN'),
        ('"a": 1', r'"a": "\ud800"'),
        ('"a": 1', r'"a": "\ud835\udd38"'),
        ('"a": 1', '"a": "\t"'),
        ('"c": "d: e"', '"c": ":"'),
        ('"a": 1', r'"a": "}, {\"op\": \""'),
        ('"a": 1', '"a": [{"op": 1}, {"op": "}, {"}]'),
        ('"a": 1', r'"a": "\": \":"'),
        ('"name": "1"', '"name": "NaN"'),
        ('"name": "1"', '"name": NaN'),
        ('"name": "1"', r'"name": "\"nodes\": [{}, {}]"'),
        ('"name": "1"', '"name": "1", "meta": {"nodes": [{"op": "a", "inputs": [1]}, {"op": "a", "inputs": [1]}]}'),
        ('"name": "1"', '"name": "1", "meta": {"nodes": "NaN"}'),
        ("}, {", "}, , {"),
        ("}, {", "}\f, {"),
        ("}, {", "},\v{"),
        ("}, {", "} {"),
        ("}]", "},]"),
        ("}]", "}}"),
        ("}]", "}"),
        ("[{", "[,{"),
        ('"nodes": [', '"nodes": -['),
        ('"nodes": [', '"nodes" ['),
        ('"nodes": [', '"nodes": [[]'),
    ],
)
def test_text_that_is_like_json(old, new):
    text = json.dumps(document(NODES, LINEAR), ensure_ascii=False)
    assert old in text
    for count in (1, -1):
        changed = text.replace(old, new, count).encode()
        agree(changed)
        parses_alike(changed)
    at = text.rindex(old)
    agree((text[:at] + new + text[at + len(old) :]).encode())


@st.composite
def _texts_with_repeated_keys(draw):
    """JSON in which keys may be repeated, and strings are made of what JSON is made of."""
    strings = st.text(':",{}[]\\ nodeé\u2028', max_size=5).map(lambda text: json.dumps(text, ensure_ascii=draw(st.booleans())))
    keys = st.sampled_from(['"op"', '"a"', '"\\u0061"', '"nodes"', '"a:"', '"\\":"']) | strings
    colon = st.sampled_from([":", ": ", " :", "\n : "])

    def containers(inner):
        entry = st.tuples(keys, colon, inner).map("".join)
        objects = st.lists(entry, max_size=3).map(lambda entries: "{" + ", ".join(entries) + "}")
        return objects | st.lists(inner, max_size=3).map(lambda entries: "[" + ", ".join(entries) + "]")

    value = st.recursive(st.sampled_from(["1", "null", "-0.5", "true"]) | strings, containers, max_leaves=5)
    extra = st.tuples(st.sampled_from(["meta", "attrs", "types", "op", "inputs", "role"]), colon, value)
    listed = []
    for _ in range(draw(st.integers(2, 4))):
        fields = [
            '"op": "sin"',
            '"inputs": [0]',
            *(f'"{key}"{colon}{text}' for key, colon, text in draw(st.lists(extra, max_size=2))),
        ]
        listed.append("{" + ", ".join(draw(st.permutations(fields))) + "}")
    return json.dumps(document(["HERE"])).replace('"HERE"', ", ".join(listed)).encode()


@given(_texts_with_repeated_keys())
@settings(max_examples=examples(1000, check=65))
@example(b'{"nodes": [{"op": "a", "inputs": []}, {"op": "a", "inputs": []}], "graphs": [{"nodes": 1}]}')
def test_keys_that_occur_twice(data):
    parses_alike(data)


@pytest.mark.parametrize("field", ["attrs", "types", "meta", "other"])
@pytest.mark.parametrize("value", [None, False, 0, {}, [], ""])
def test_fields_that_stand_for_one_another(field, value):
    node = {"op": "sin", "inputs": [0]}
    alike = [{**node, other: same} for other in ("attrs", "types", "meta", "role") for same in (None, {}, [])]
    for other in alike:
        parses_alike(json.dumps(document([other, {**node, field: value}])).encode())
        parses_alike(json.dumps(document([node, other, {**node, field: value}, node])).encode())


def test_work_in_vain_is_bounded(monkeypatch):
    # Many beginnings of lists that are none must not be looked at to the end each.
    looked_at = []
    long_list = pieces._long_list

    def counted(data, begin, *settings):
        nodes, end = long_list(data, begin, *settings)
        looked_at.append(end - begin)
        return nodes, end

    monkeypatch.setattr(pieces, "_long_list", counted)
    data = json.dumps({"tidu": 1, "graphs": [], "meta": {f"{k}": {"nodes": []} for k in range(10_000)}}).encode()
    parse(Source(data))
    assert len(looked_at) > 1 and sum(looked_at) < 3 * len(data)
