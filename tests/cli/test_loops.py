"""What the commands say of the graphs within loops and branches: where things are, in words that name the nested place."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from tests.cli.running import invoke, succeed
from tests.graphs.loops import F64, NESTED, SCAN, WHILE, document, graph, node


def changed(data: bytes, *path: Any, to: Any) -> bytes:
    """A document with something within its head's first node changed."""
    plain = deepcopy(json.loads(data))
    place = plain["graphs"][0]["nodes"][0]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(plain).encode()


BODY = ("attrs", "body")
INNERMOST = (*BODY, "nodes", 0, "attrs", "branches", 0, "nodes", 0, "attrs", "body", "nodes", 0)
DEEP = "graph 'f', node 0 (scan), body, node 0 (cond), branches[0], node 0 (scan), body, node 0 "


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(SCAN, *BODY, "nodes", 1, "op", to="mull"), "graph 'f', node 0 (scan), body, node 1 (mull): unknown op 'mull'"),
        (changed(SCAN, *BODY, "nodes", 1, "inputs", to=[0, 9]), "body, node 1 (mul): input 1: refers to value 9, but only 4"),
        (changed(SCAN, *BODY, "inputs", 0, "type", to="f32[]"), "body, node 1 (mul): type mismatch: input 0 is f32[], input 1 is"),
        (changed(SCAN, *BODY, "own", to=1), "node 0 (scan), body: unknown field 'own'"),
        (changed(SCAN, *BODY, "nodes", 0, "own", to=1), "node 0 (scan), body: node 0 (sin): unknown field 'own'"),
        (
            changed(SCAN, *BODY, "nodes", 1, "role", to={"linearized": {"active_mask": [True, False]}}),
            "body, node 1 (mul): has a role",
        ),
        (
            changed(SCAN, *BODY, "nodes", 1, "inputs", to=["sha256:" + "0" * 64, 1]),
            "body, node 1 (mul): refers to a value of another",
        ),
        (
            changed(SCAN, *BODY, "nodes", 1, "inputs", to=[[0, 0], 1]),
            "body, node 1 (mul): input 0: refers to graph 0, but no graph",
        ),
        (changed(SCAN, *BODY, "outputs", 0, to={"key": "s", "value": None, "type": F64}), "body, output 's': is null"),
        (changed(SCAN, *BODY, to=1), "node 0 (scan), body: is a graph: an object of inputs, nodes and outputs"),
        (changed(SCAN, "attrs", "length", to=3), "node 0 (scan): input 2 has type f64[4], but the body takes f64[3] as 'x'"),
        (changed(SCAN, "inputs", to=[]), "node 0 (scan): takes at least 1 input, got 0"),
        (changed(NESTED, *INNERMOST, "op", to="mull"), DEEP + "(mull): unknown op 'mull'"),
        (changed(NESTED, *INNERMOST, "inputs", to=[0]), DEEP + "(mul): takes 2 inputs, got 1"),
    ],
)
def test_readers_name_the_place_within(data, message):
    result = invoke("check", input=data)
    assert result.exit_code == 1 and message in result.stderr and result.stderr.count("\n") == 1


def nested(levels: int) -> bytes:
    body = graph({"x": F64}, [node("neg", 0)], {"y": 1})
    for _ in range(levels):
        body = graph({"x": F64}, [node("scan", 0, length=1, num_consts=0, num_carry=1, body=body)], {"y": 1})
    return document(body)


def test_nesting_is_limited_and_what_nests_too_deeply_is_read_once():
    succeed("check", input=nested(64))
    result = invoke("check", input=nested(100))
    assert result.exit_code == 1
    assert result.stderr.strip().endswith("graphs within graphs nest deeper than 64 levels")


@pytest.mark.parametrize("data", [SCAN, WHILE, NESTED])
def test_formats_keep_graphs_and_meta(data):
    noted = json.loads(data)
    for name, graph_ in noted["graphs"][0]["nodes"][0]["attrs"].items():
        if isinstance(graph_, dict):
            graph_ |= {"name": name, "meta": {"note": [1]}}
            graph_["nodes"][0]["meta"] = {"line": 3}
            graph_["inputs"][0]["meta"] = {"unit": "m"}
            graph_["outputs"][0]["meta"] = {"unit": "s"}
    data = json.dumps(noted).encode()
    packed = succeed("convert", "--format", "msgpack", input=data)
    back = succeed("convert", "--format", "json", input=packed)
    assert json.loads(back)["graphs"] == json.loads(succeed("convert", input=data))["graphs"]
    assert b"line" in packed and json.loads(back)["graphs"][0]["nodes"][0]["attrs"]["body"]["meta"] == {"note": [1]}


def test_info_tells_of_graphs_within():
    rows = [line for line in succeed("info", input=NESTED).decode().splitlines() if "node 0" in line]
    assert [row.split(", ")[-1].split()[0] for row in rows] == ["body", "branches[0]", "body", "branches[1]"]
    assert [len(row) - len(row.lstrip()) for row in rows] == [7, 9, 11, 9]
    (summary,) = json.loads(succeed("info", "--json", input=NESTED))["graphs"]
    (body,) = summary["within"]
    assert body["place"] == "node 0 (scan), body" and summary["flops"] == 5 * body["flops"] == 15
    assert [inner["place"] for inner in body["within"]] == ["node 0 (cond), branches[0]", "node 0 (cond), branches[1]"]


def test_memory_counts_what_a_step_needs():
    wide = graph(
        {"s": F64},
        [
            node("broadcast_in_dim", 0, shape=[1000, 1000], broadcast_dimensions=[]),
            node("sin", 1),
            node("reduce_sum", 2, axes=[0, 1]),
        ],
        {"s": 3},
    )
    data = document(graph({"s": F64}, [node("scan", 0, length=3, num_consts=0, num_carry=1, body=wide)], {"s": 1}))
    assert json.loads(succeed("info", "--json", input=data))["evaluation"]["peak_bytes"] > 16_000_000


def test_differences_within_are_named_by_place(tmp_path):
    def told(a: bytes, b: bytes) -> str:
        (tmp_path / "a.json").write_bytes(a)
        return invoke("diff", tmp_path / "a.json", "-", "--exact", input=b).stdout

    other = changed(NESTED, *INNERMOST, "op", to="add")
    text = told(NESTED, other)
    place = "body, node 0 (cond), branches[0], node 0 (scan), body, node 0 (mul) has op add in B"
    assert f"output 'y', {place}:" in text
    assert f"graph 0 'f': node 0 (scan), {place}" in text
    assert "values: 2 in both, 0 only in A, 0 only in B" in told(NESTED, changed(NESTED, *BODY, "inputs", 0, "key", to="b"))


def test_useless_parts_of_bodies_are_told():
    body = graph({"k": F64, "s": F64, "q": F64}, [node("sin", 0), node("mul", 1, 1)], {"s": 4})
    data = document(
        graph(
            {"k": F64, "s": F64, "qs": "f64[3]"}, [node("scan", 0, 1, 2, length=3, num_consts=1, num_carry=1, body=body)], {"s": 3}
        )
    )
    text = succeed("check", input=data).decode()
    assert "graph 'f', node 0 (scan), body, node 0 (sin): no output depends on it" in text
    assert "graph 'f', node 0 (scan), body: no output depends on input 'k'" in text
    assert "no output" not in succeed("check", input=NESTED).decode()
