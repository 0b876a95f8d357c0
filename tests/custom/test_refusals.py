"""Bad definitions are refused where they are read or differentiated: in one line that names the op and the place, with status 1."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.running import invoke
from tests.custom.making import SINE, body, definition, encoded, unary, using
from tests.tiers import examples

ONE = {"value": {"type": "f64[3]", "data": [1, 1, 1]}}
CONSTANT = ("constant", ONE)


def jvp(nodes, value, inputs="x x@1"):
    return unary(jvp=body(inputs, nodes, {"y@1": value}))


def backward(nodes, value):
    return unary(backward=body("x y@-1", nodes, {"x@-1": value}))


DIFFERENTIATED = {
    "jvp, affine": (
        jvp([("cos", 0), ("mul", 2, 1), ("add", 3, 0)], 4),
        "its jvp: node 2 (add): not known to be linear in the tangents",
    ),
    "jvp, constant added": (jvp([CONSTANT, ("add", 1, 2)], 3), "its jvp: node 1 (add): not known to be linear"),
    "jvp, quadratic": (jvp([("mul", 1, 1)], 2), "its jvp: node 0 (mul): not known to be linear"),
    "jvp, step": (jvp([("floor", 1)], 2), "its jvp: node 0 (floor): not known to be linear"),
    "jvp, selecting": (jvp([("gt", 1, 0), ("select_n", 2, 1, 0)], 3), "its jvp: node 0 (gt): not known to be linear"),
    "jvp, selecting a constant": (
        jvp([("gt", 0, 0), ("select_n", 2, 1, 0)], 3),
        "its jvp: node 1 (select_n): not known to be linear",
    ),
    "jvp, independent of tangents": (jvp([("cos", 0)], 2), "its jvp: a result does not depend on the tangents, and is not zero"),
    "jvp, through itself": (jvp([("o", 1)], 2), "its jvp: node 0 (o): not known to be linear"),
    "jvp, wrong type": (jvp([("reduce_sum", 1, {"axes": [0]})], 2), "its jvp gives 'y@1' the type f64[], which must be f64[3]"),
    "jvp, ill-typed": (jvp([("and", 1, 1)], 2), "its jvp: node 0 (and): input 0 has type f64[3]"),
    "backward, affine": (backward([("sub", 1, 0)], 2), "its backward: node 0 (sub): not known to be linear in the cotangents"),
    "backward, wrong type": (backward([("reduce_sum", 1, {"axes": [0]})], 2), "its backward gives 'x@-1' the type f64[]"),
    "transpose of what is not linear": (
        unary(transpose=body("y@-1", [], {"x@-1": 0})),
        "its forward: node 0 (sin): not known to be linear in the input x",
    ),
    "transpose of what is affine": (
        unary(body("x", [CONSTANT, ("add", 0, 1)], {"y": 2}), transpose=body("y@-1", [], {"x@-1": 0})),
        "its forward: node 1 (add): not known to be linear in the input x",
    ),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_what_linearize_refuses(name):
    op, message = DIFFERENTIATED[name]
    data = encoded(using({"o": op}, "o", "f64[3]"))
    result = invoke("linearize", "--wrt", "a", input=data)
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("tidu linearize: error: graph 'f', node 0 (o): ") and message in result.stderr
    assert result.stderr.count("\n") == 1
    # check says so without being asked for derivatives
    result = invoke("check", input=data)
    assert result.exit_code == 1 and message in result.stderr and "op o(f64[3])" in result.stderr
    # and where the types have no variables, every command does
    typed = json.loads(data.decode().replace("f64[...]", "f64[3]"))
    result = invoke("convert", input=encoded(typed))
    assert result.exit_code == 1 and message in result.stderr and "op 'o': " in result.stderr


READ = {
    "recursion": ({"o": unary(body("x", [("o", 0)], {"y": 1}))}, "op 'o': its forward is of o; an op may not be defined by itself"),
    "mutual recursion": (
        {"o": unary(body("x", [("p", 0)], {"y": 1})), "p": unary(body("x", [("o", 0)], {"y": 1}))},
        "op 'o': its forward is of p of o",
    ),
    "recursion through the derivative": (
        {"o": unary(body("x", [("o.jvp", 0, 0, 0, {"active": [True]})], {"y": 1}), backward=body("x y@-1", [], {"x@-1": 1}))},
        "op 'o': its forward is of o.jvp of o",
    ),
    "backward through its own transpose": (
        {"o": unary(backward=body("x y y@-1", [("o.jvp", 0, 1, 2, {"active": [True]})], {"x@-1": 3}))},
        "op 'o': its backward is of o.jvp",
    ),
    "deep": (
        {"o": unary()} | {f"o{k}": unary(body("x", [(f"o{k - 1}" if k else "o", 0)], {"y": 1})) for k in range(100)},
        "it is of ops of ops, more than 64 deep",
    ),
    "output missing": ({"o": unary(body("x", [], {}))}, "op 'o': its forward does not give 'y'"),
    "output unknown": ({"o": unary(body("x", [], {"y": 0, "z": 0}))}, "op 'o': its forward gives 'z', which is none of y"),
    "input unknown": ({"o": unary(body("w", [], {"y": 0}))}, "op 'o': its forward takes 'w'"),
    "jvp takes a cotangent": ({"o": jvp([], 1, "x x@-1")}, "op 'o': its jvp takes 'x@-1'"),
    "jvp in another pass": ({"o": jvp([], 1, "x x@2")}, "op 'o': its jvp takes 'x@2'"),
    "jvp gives no tangent": ({"o": unary(jvp=body("x x@1", [], {"y": 1}))}, "op 'o': its jvp does not give 'y@1'"),
    "transpose of nothing": ({"o": unary(transpose=body("y@-1", [], {}))}, "op 'o': its transpose gives no cotangent"),
    "unknown op": ({"o": unary(body("x", [("sine", 0)], {"y": 1}))}, "op 'o': its forward, node 0: unknown op 'sine'"),
    "reference": ({"o": unary(body("x", [("sin", 1)], {"y": 1}))}, "op 'o': its forward, node 0 (sin): refers to value 1"),
    "output reference": ({"o": unary(body("x", [("sin", 0)], {"y": 7}))}, "op 'o': its forward, output 'y': refers to value 7"),
    "negative reference": ({"o": unary(body("x", [("sin", -1)], {"y": 1}))}, "op 'o'"),
    "arity": ({"o": unary(body("x", [("sin", 0, 0)], {"y": 1}), type_="f64[3]")}, "node 0 (sin): takes 1 input, got 2"),
    "attrs": ({"o": unary(body("x", [("sin", 0, {"axis": 0})], {"y": 1}), type_="f64[3]")}, "node 0 (sin): unknown attr 'axis'"),
    "attr that the op lacks": (
        {"o": unary(body("x", [("reduce_sum", 0, {"axes": {"attr": "n"}})], {"y": 1}), type_="f64[3]", attrs={"m": 1})},
        "the op has no attr 'n'",
    ),
    "two derivatives": (
        {"o": jvp([], 1) | {"backward": body("y@-1", [], {"x@-1": 0})}},
        "op 'o': has jvp, backward; one of them says what its derivative is",
    ),
    "a built-in name": ({"sin": unary()}, "op 'sin': there is a primitive of this name already"),
    "a dot": ({"o.jvp": unary()}, "op 'o.jvp': a name is of letters"),
    "an empty name": ({"": unary()}, "op '': a name is of letters"),
    "ports of one name": ({"o": definition({"x": "f64[]"}, {"x": "f64[]"}, body("x", [], {"x": 0}))}, "'x' names two of its"),
    "an input twice": ({"o": unary(body("x x", [], {"y": 0}))}, "op 'o': its forward declares the input 'x' twice"),
    "no inputs": ({"o": definition({}, {"y": "f64[]"}, body("", [CONSTANT], {"y": 0}))}, "op 'o'"),
    "no forward": ({"o": {k: v for k, v in unary().items() if k != "forward"}}, "op 'o': missing field 'forward'"),
    "unknown field": ({"o": unary() | {"vjp": SINE}}, "op 'o': unknown field 'vjp'"),
    "forward gives null": ({"o": unary(body("x", [], {"y": None}), type_="f64[3]")}, "its forward gives null for the output 'y'"),
    "forward gives another type": (
        {"o": definition({"x": "f64[3]"}, {"y": "f64[2]"}, body("x", [("sin", 0)], {"y": 1}))},
        "op 'o': its forward gives 'y' the type f64[3], which does not fit f64[2]",
    ),
    "a pattern with two dots": ({"o": unary(type_="f64[..]")}, "op 'o', input 'x': type: unknown type 'f64[..]'"),
    "a pattern with axes twice": ({"o": unary(type_="f64[...,...]")}, "'...' may stand once"),
    "a pattern with capitals": ({"o": unary(type_="f64[N]")}, "a size is a number, a name of small letters"),
    "a pattern of no dtype": ({"o": unary(type_="f65[3]")}, "unknown type 'f65[3]'; did you mean"),
    "attr named active": ({"o": unary(attrs={"active": 1})}, "op 'o': the attr name 'active' is taken"),
}  # fmt: skip


@pytest.mark.every
@pytest.mark.parametrize("name", READ)
def test_what_readers_refuse(name):
    ops, message = READ[name]
    result = invoke("convert", input=encoded(using(ops, next(iter(ops)), "f64[3]")))
    assert result.exit_code == 1 and result.stdout == ""
    assert message in result.stderr and result.stderr.startswith("tidu convert: error: stdin: ") and result.stderr.count("\n") == 1


USED = {
    "types that do not fit": (unary(), ("f64[3]", {}), "(o)", None),
    "another dtype": (unary(), ("f32[3]", {}), "input 'x' is f32[3], which does not fit f64[...]", None),
    "an unknown attr": (unary(), ("f64[3]", {"k": 1}), "unknown attr 'k'", None),
    "a missing attr": (unary(attrs={"k": None}), ("f64[3]", {}), "missing attr 'k'", None),
    "a forward that does not fit": (
        unary(body("x", [("reduce_sum", 0, {"axes": [1]})], {"y": 1})), ("f64[3]", {}), "its forward: node 0 (reduce_sum)", None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in USED if n != "types that do not fit"])
def test_what_uses_are_refused(name):
    op, (type_, attrs), message, _ = USED[name]
    result = invoke("convert", input=encoded(using({"o": op}, "o", type_, attrs=attrs)))
    assert result.exit_code == 1 and result.stdout == "" and message in result.stderr
    assert "graph 'f', node 0 (o)" in result.stderr and result.stderr.count("\n") == 1


def test_sizes_of_one_name_are_one_size():
    op = definition({"x": "f64[n]", "w": "f64[n]"}, {"y": "f64[n]"}, body("x w", [("add", 0, 1)], {"y": 2}))
    result = invoke("convert", input=encoded(using({"o": op}, "o", "f64[3]", "f64[4]")))
    assert result.exit_code == 1 and "input 'w' is f64[4], which does not fit f64[n], where n is 3" in result.stderr


VALID = using(
    {
        "o": unary(jvp=body("x x@1", [("cos", 0), ("mul", 2, 1)], {"y@1": 3}), meta={"by": "me"}),
        "p": unary(backward=body("x y@-1", [("o", 0), ("mul", 2, 1)], {"x@-1": 3}), attrs={"k": 1}),
    },
    "o",
    "f64[3]",
)
JUNK = st.sampled_from(
    [None, True, -1, 0, 1, 2, 3, 99, 1.5, "", "x", "y", "o", "p.jvp", "sin", "mul", "T[n]", "f64[]", [], {}, [[]], {"attr": "k"}]
)


@settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_broken_definitions_never_give_a_traceback(data):
    broken = copy.deepcopy(VALID)
    for _ in range(data.draw(st.integers(1, 3))):
        at = broken["ops"]
        while isinstance(at, dict | list) and at:
            key = data.draw(st.sampled_from(sorted(at)) if isinstance(at, dict) else st.integers(0, len(at) - 1))
            inner = at[key]
            if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 4)) == 0:
                how = data.draw(st.sampled_from(["replace", "drop", "add"]))
                if how == "drop":
                    del at[key]
                elif how == "replace" or isinstance(at, list):
                    at[key] = copy.deepcopy(data.draw(JUNK))  # it may be broken further
                else:
                    at[data.draw(st.sampled_from(["x", "jvp", "op", "o"]))] = inner
                break
            at = inner
    for command in (["linearize", "--wrt", "a"], ["check", "--static"]):
        result = invoke(*command, input=encoded(broken))
        assert result.exit_code in (0, 1), result.stderr
        assert "internal error" not in result.stderr and "Traceback" not in result.stderr
        if result.exit_code:
            assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("value", [2**31, 2**64])
def test_a_local_id_has_31_bits_also_where_the_number_of_values_waits_for_attrs(value):
    forward = {
        "inputs": [{"key": "x"}],
        "nodes": [{"op": "integer_pow", "inputs": [0], "attrs": {"y": {"attr": "n"}}}],
        "outputs": [{"key": "y", "value": value}],
    }
    document = using({"o": {**unary(forward), "attrs": {"n": None}}}, "o")
    result = invoke("check", "-", input=encoded(document))
    assert result.exit_code == 1 and "op 'o', output 'y': 'value' must be less than 2147483648" in result.stdout + result.stderr


@pytest.mark.parametrize("inner", [lambda n: n, lambda n: [n], lambda n: {"a": [{"b": n}]}])
@pytest.mark.parametrize(("value", "is_read"), [(2**64, False), (-(2**63) - 1, False), (2**64 - 1, True), (-(2**63), True)])
def test_integers_in_attrs_are_those_that_every_format_holds(inner, value, is_read):
    document = using({"o": {**unary(), "attrs": {"n": None}}}, "o", "f64[]", attrs={"n": inner(value)})
    for words in (["convert", "--format", "msgpack"], ["linearize", "--wrt", "a"], ["info", "--digests"]):
        result = invoke(*words, input=encoded(document))
        message = "(o): attr 'n': holds an integer beyond 64 bits, which msgpack cannot; write it as a string\n"
        assert (result.exit_code, result.stderr.endswith(message)) == ((0, False) if is_read else (1, True)), result.stderr
