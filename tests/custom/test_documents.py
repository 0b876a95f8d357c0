"""Definitions as files: attrs, libraries, digests, linking, and what a definition may refer to."""

from __future__ import annotations

import json
import time

import pytest

from tests.cli.running import invoke, succeed
from tests.custom.making import COSINE, SINE, body, definition, encoded, primitives_of, read, unary, using
from tidu_cli.formats.write import format_document
from tidu_cli.graph.identity import digests
from tidu_cli.transforms.linking.resolve import resolve

MUTUAL = {
    "s": unary(SINE, jvp=body("x x@1", [("c", 0), ("mul", 2, 1)], {"y@1": 3})),
    "c": unary(COSINE, jvp=body("x x@1", [("s", 0), ("mul", 2, 1), ("neg", 3)], {"y@1": 4})),
}


def pipeline(data: bytes, *commands: list[str]) -> bytes:
    for command in commands:
        data = succeed(*command, input=data)
    return data


def value(data: bytes, *settings: str) -> object:
    (result,) = json.loads(pipeline(data, ["eval", *[part for s in settings for part in ("--set", s)]])).values()
    return result


def test_ops_whose_derivatives_are_one_another():
    third = pipeline(encoded(using(MUTUAL, "s", "f64[]")), *[["linearize", "--wrt", "a"]] * 3)
    assert b'"op": "c"' in third
    assert value(third, "a=0", "a@1=1", "a@2=1", "a@3=1") == -1


def test_an_op_that_is_its_own_derivative():
    ops = {"e": unary(body("x", [("exp", 0)], {"y": 1}), jvp=body("x x@1", [("e", 0), ("mul", 2, 1)], {"y@1": 3}))}
    second = pipeline(encoded(using(ops, "e", "f64[]")), ["linearize", "--wrt", "a"], ["transpose"], ["linearize", "--wrt", "a"])
    assert value(second, "a=0", "z0@-1=1", "a@2=1") == 1


@pytest.mark.parametrize("kind", ["jvp", "backward", "transpose"])
def test_linear_ops_may_be_defined_through_themselves(kind):
    keys = {"jvp": ("x@1", "y@1"), "backward": ("y@-1", "x@-1"), "transpose": ("y@-1", "x@-1")}[kind]
    ops = {"o": unary(body("x", [("neg", 0)], {"y": 1})) | {kind: body(keys[0], [("o", 0)], {keys[1]: 1})}}
    data = pipeline(encoded(using(ops, "o", "f64[]")), ["linearize", "--wrt", "a"], ["transpose"])
    assert value(data, "z0@-1=2") == -2
    assert value(pipeline(data, ["materialize", "--inline"]), "z0@-1=2") == -2


@pytest.mark.parametrize("name", ["op", "self", "operands", "attrs"])
def test_attrs_have_any_names(name):
    """Also where a rule emits the derivative of an op, with the op's attrs."""
    ops = {"o": unary(SINE, "f64[]", backward=body("x y@-1", [("cos", 0), ("mul", 2, 1)], {"x@-1": 3}), attrs={name: 1})}
    assert pipeline(encoded(using(ops, "o", "f64[]")), ["linearize", "--wrt", "a"], ["transpose"])


def test_attrs_are_passed_on_and_have_defaults():
    power = unary(body("x", [("integer_pow", 0, {"y": {"attr": "n"}})], {"y": 1}), attrs={"n": 3})
    outer = unary(body("x", [("power", 0, {"n": {"attr": "m"}})], {"y": 1}), attrs={"m": None})
    ops = {"power": power, "outer": outer}
    assert value(encoded(using(ops, "power", "f64[]")), "a=2") == 8
    assert value(encoded(using(ops, "outer", "f64[]", attrs={"m": 2})), "a=3") == 9
    derived = pipeline(encoded(using(ops, "outer", "f64[]", attrs={"m": 4})), ["linearize", "--wrt", "a"])
    assert value(derived, "a=2", "a@1=1") == 32
    # what is the default and what is given are one op, the same value
    given, left_out = (read(using(ops, "power", "f64[]", attrs=attrs)) for attrs in ({"n": 3}, {}))
    assert digests(given) == digests(left_out)


def test_outputs_that_are_zero():
    """A derivative of null, of one of two outputs."""
    op = definition(
        {"x": "f64[n]", "k": "i32[n]"},
        {"y": "f64[n]", "r": "f64[n]"},
        body("x k", [("sin", 0), ("floor", 0)], {"y": 2, "r": 3}),
        backward=body("x y@-1", [("cos", 0), ("mul", 2, 1)], {"x@-1": 3, "k@-1": None}),
    )
    data = pipeline(encoded(using({"o": op}, "o", "f64[0]", "i32[0]", n_outputs=2)), ["linearize", "--wrt", "a"], ["transpose"])
    results = json.loads(succeed("eval", "--set", "a=[]", "--set", "b=[]", "--set", "z0@-1=[]", "--set", "z1@-1=[]", input=data))
    assert results == {"a@-1": []}


def test_libraries_give_what_is_used_and_no_more(tmp_path):
    library, user = tmp_path / "lib.json", using({}, "outer", "f64[3]")
    del user["ops"]
    ops = {"inner": unary(), "unused": unary(), "outer": unary(body("x", [("inner", 0)], {"y": 1}))} | MUTUAL
    library.write_bytes(encoded({"tidu": 1, "ops": ops}))
    resolved = json.loads(succeed("resolve", "--ops", library, "-", input=encoded(user)))
    assert list(resolved["ops"]) == ["inner", "outer"]
    assert invoke("convert", input=encoded(user)).exit_code == 1
    # through msgpack, with nothing lost
    packed = succeed("convert", "--ops", library, "--format", "msgpack", input=encoded(user))
    assert json.loads(succeed("convert", "--format", "json", input=packed))["ops"] == resolved["ops"]


def test_meta_is_kept():
    ops = {"o": unary(meta={"by": ["me"]})}
    data = pipeline(
        encoded(using(ops, "o", "f64[3]")), ["linearize", "--wrt", "a"], ["convert", "--format", "msgpack"], ["materialize"]
    )
    assert json.loads(succeed("convert", "--format", "json", input=data))["ops"]["o"]["meta"] == {"by": ["me"]}


def test_digests_tell_definitions_apart():
    one, same, other = (read(using({"o": unary(forward)}, "o", "f64[3]")) for forward in (SINE, SINE, COSINE))
    with_meta = read(using({"o": unary(SINE, meta={"a": 1})}, "o", "f64[3]"))
    assert digests(one) == digests(same) == digests(with_meta) != digests(other)
    # what an op uses belongs to it
    through = [read(using({"i": unary(f), "o": unary(body("x", [("i", 0)], {"y": 1}))}, "o", "f64[3]")) for f in (SINE, COSINE)]
    assert digests(through[0]) != digests(through[1])


def test_resolve_merges_equal_definitions_and_refuses_different_ones(tmp_path):
    paths = []
    for k, forward in enumerate((SINE, SINE, COSINE)):
        data = using({"o": unary(forward)}, "o", "f64[3]")
        data["graphs"][0]["name"] = f"g{k}"
        paths.append(tmp_path / f"{k}.json")
        paths[-1].write_bytes(encoded(data))
    merged = json.loads(succeed("resolve", *paths[:2]))
    assert list(merged["ops"]) == ["o"] and len(merged["graphs"]) == 2
    result = invoke("resolve", paths[0], paths[2])
    assert result.exit_code == 1 and "op 'o'" in result.stderr and result.stderr.count("\n") == 1


def test_the_derivative_op_in_a_primal_graph():
    """`o.jvp` is an op like others: it has a value, and derivatives."""
    ops = {"o": unary(backward=body("x y@-1", [("cos", 0), ("mul", 2, 1)], {"x@-1": 3}))}
    data = using(ops, "o", "f64[]", "f64[]")
    data["graphs"][0]["nodes"] = [
        {"op": "o", "inputs": [0]},
        {"op": "o.jvp", "inputs": [0, 2, 1], "attrs": {"active": [True]}},
    ]
    data["graphs"][0]["outputs"][0]["value"] = 3
    assert value(encoded(data), "a=0", "b=2") == 2
    succeed("check", "--all", input=encoded(data))
    for attrs in ({"active": [1]}, {"active": [True, True]}, {"active": []}, {}, {"active": [False]}):
        data["graphs"][0]["nodes"][1]["attrs"] = attrs
        result = invoke("convert", input=encoded(data))
        assert result.exit_code == 1 and "graph 'f', node 1 (o.jvp)" in result.stderr


@pytest.mark.campaign
def test_many_ops_and_long_definitions_are_read_in_linear_time():
    def seconds(n: int) -> float:
        ops = {f"o{k}": unary() for k in range(n)} | {"long": unary(body("x", [("sin", k) for k in range(10 * n)], {"y": 10 * n}))}
        document = using(ops, "long", "f64[3]")
        document["graphs"][0]["nodes"] = [{"op": f"o{k}", "inputs": [k]} for k in range(n)]
        start = time.process_time()
        digests(parsed := read(document))
        format_document(parsed, "json")
        return time.process_time() - start

    seconds(10)
    small, large = min(seconds(200) for _ in range(3)), min(seconds(1600) for _ in range(2))
    assert large < 8 * small * 3


def test_a_rule_runs_once_a_case():
    """Nodes of an own op are stamped out: many cost little more than as many of a primitive."""
    ops = {"o": unary(backward=body("x y@-1", [("cos", 0), ("mul", 2, 1)], {"x@-1": 3}))}
    data = using(ops, "o", "f64[3]")
    data["graphs"][0]["nodes"] = [{"op": "o", "inputs": [k]} for k in range(1000)]
    primitives = primitives_of(ops)
    calls = []
    derived = read(data)
    from dataclasses import replace

    from tidu_cli.graph.keys import Key
    from tidu_cli.rules.families import changed
    from tidu_cli.transforms.linearize import linearize

    rule = primitives["o"].rules.jvp
    counted = changed(primitives["o"], jvp=lambda node: (calls.append(1), rule(node))[1])
    patched = replace(primitives, primitives={**primitives.primitives, "o": counted})
    linearize(derived, [Key("a")], primitives=patched)
    assert len(calls) == 1


def test_documents_of_one_op_can_be_linked_in_python():
    a, b = (read(using({"o": unary()}, "o", "f64[3]")) for _ in range(2))
    assert len(resolve([a, b]).graphs) == 1
