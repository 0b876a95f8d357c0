"""Custom operations in loops, and loops in custom operations."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import invoke, succeed
from tests.graphs.loops import F64, document, graph, node

TWOFOLD = {
    "inputs": [{"key": "x", "type": "f64[...]"}],
    "outputs": [{"key": "y", "type": "f64[...]"}],
    "forward": {"inputs": [{"key": "x"}], "nodes": [node("mul", 0, 0)], "outputs": [{"key": "y", "value": 1}]},
}
BODY = graph({"x": F64}, [node("twofold", 0)], {"x": 1})
IN_A_BODY = document(
    graph({"x": F64}, [node("scan", 0, length=3, num_consts=0, num_carry=1, body=BODY)], {"y": 1}), ops={"twofold": TWOFOLD}
)
LOOP = {
    "inputs": [{"key": "x", "type": F64}],
    "outputs": [{"key": "y", "type": F64}],
    "attrs": {"steps": 1},
    "forward": {
        "inputs": [{"key": "x"}],
        "nodes": [node("scan", 0, length={"attr": "steps"}, num_consts=0, num_carry=1, body=BODY)],
        "outputs": [{"key": "y", "value": 1}],
    },
}
A_LOOP = document(graph({"x": F64}, [node("loop", 0, steps=3)], {"y": 1}), ops={"twofold": TWOFOLD, "loop": LOOP})


@pytest.mark.parametrize("data", [IN_A_BODY, A_LOOP])
def test_values_derivatives_and_forms(data):
    assert json.loads(succeed("eval", "--set", "x=2", input=data)) == {"y": 256.0}
    assert json.loads(succeed("grad", "--wrt", "x", "--set", "x=2", input=data)) == {"x@-1": 8 * 2.0**7}
    inlined = succeed("materialize", "--inline", input=data)
    assert b"twofold" not in inlined and b'"loop"' not in inlined and b'"ops"' not in inlined
    assert json.loads(succeed("eval", "--set", "x=2", input=inlined)) == {"y": 256.0}
    packed = succeed("convert", "--format", "msgpack", input=data)
    assert json.loads(succeed("convert", "--format", "json", input=packed)) == json.loads(succeed("convert", input=data))


def test_an_op_in_a_body_is_kept_with_its_definition():
    gradient = succeed("transpose", input=succeed("linearize", "--wrt", "x", input=IN_A_BODY))
    assert set(json.loads(gradient)["ops"]) == {"twofold"}


def test_an_op_is_not_made_of_itself_by_way_of_a_body():
    within = graph({"x": F64}, [node("twofold", 0)], {"x": 1})
    own = {**TWOFOLD, "inputs": [{"key": "x", "type": F64}], "outputs": [{"key": "y", "type": F64}]}
    own["forward"] = {**TWOFOLD["forward"], "nodes": [node("scan", 0, length=1, num_consts=0, num_carry=1, body=within)]}
    result = invoke("check", input=document(graph({"x": F64}, [], {"x": 0}), ops={"twofold": own}))
    assert result.exit_code == 1 and "op 'twofold': its forward is of twofold; an op may not be defined by itself" in result.stderr


def test_errors_in_an_op_name_the_place():
    wrong = {**LOOP, "forward": json.loads(json.dumps(LOOP["forward"]).replace('"twofold"', '"threefold"'))}
    result = invoke("check", input=document(graph({"x": F64}, [], {"x": 0}), ops={"twofold": TWOFOLD, "loop": wrong}))
    assert result.exit_code == 1
    assert "op 'loop': its forward: node 0 (scan), body, node 0 (threefold): unknown op 'threefold'" in result.stderr


def test_what_ops_in_bodies_stand_for_is_limited():
    ops = {"op0": {**TWOFOLD}}
    for k in range(1, 30):
        forward = {
            **TWOFOLD["forward"],
            "nodes": [node(f"op{k - 1}", 0), node(f"op{k - 1}", 1)],
            "outputs": [{"key": "y", "value": 2}],
        }
        ops[f"op{k}"] = {**TWOFOLD, "forward": forward}
    body = graph({"x": F64}, [node("op29", 0)], {"x": 1})
    data = document(graph({"x": F64}, [node("scan", 0, length=1, num_consts=0, num_carry=1, body=body)], {"y": 1}), ops=ops)
    result = invoke("eval", "--set", "x=1", input=data)
    assert result.exit_code == 1 and "op 'op29': it is of ops of ops" in result.stderr
