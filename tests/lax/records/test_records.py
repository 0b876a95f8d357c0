"""Records in primitives: what `record`, `field`, and `add` of records give, their derivatives, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.graphs.interpret import evaluate, inner, random_value
from tests.graphs.templates import apply, make_case
from tidu_cli.checking.numeric.trials import example_cases, one_node_document
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType, moves
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

ONE, TWO = np.float64(1), np.float64(2)
XY = "{x: f64[], y: f64[]}"


def value(op, types, operands, **attrs):
    case = make_case(op, attrs, map(parse_value_type, types))
    return str(case.results[0]), apply(case, operands)[0]


def test_a_record_is_the_tuple_of_its_fields():
    assert value("record", ["f64[]", "f64[]"], [ONE, TWO], type=XY) == (XY, (ONE, TWO))
    assert value("record", ["f64[]", "f64[]"], [ONE, TWO], type=XY, fields=["y", "x"]) == (XY, (TWO, ONE))
    assert value("record", ["f64[]"], [ONE], type=XY, fields=["y"]) == (XY, (None, ONE))
    assert value("record", ["f64[]"], [ONE], type="(f64[],)") == ("(f64[],)", (ONE,))


def test_fields_that_are_structurally_zero_are_zeros():
    assert value("field", [XY], [(None, ONE)], name="y") == ("f64[]", ONE)
    assert value("field", [XY], [(None, ONE)], name="x") == ("f64[]", 0)
    assert value("field", ["{p: {x: f64[], d: duration[h][]}}"], [(None,)], name="p") == (
        "{x: f64[], d: duration[h][]}",
        (None, None),
    )


def test_records_add_up_field_by_field():
    x, y = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    type_ = "{a: f64[2], b: (duration[h][2], f64[2])}"
    _, (a, (b, c)) = value("add", [type_] * 2, [(x, (None, x)), (y, (y, None))])
    assert (a.tolist(), b is y, c is x) == ([11, 22], True, True)
    assert value("add", [type_] * 2, [(None, None), (None, None)])[1] == (None, None)


@pytest.mark.parametrize(
    ("op", "types", "attrs", "message"),
    [
        (
            "add", [XY, "{x: f64[]}"], {},
            "type mismatch: input 0 is {x: f64[], y: f64[]}, input 1 is {x: f64[]}; only records of one type add up",
        ),
        ("add", [XY, "f64[]"], {}, "type mismatch: input 0 is {x: f64[], y: f64[]}, input 1 is f64[]"),
        (
            "add", ["{x: f64[], e: {at: datetime[s][]}}"] * 2, {},
            "inputs are of type {x: f64[], e: {at: datetime[s][]}}, whose field 'e.at' is datetime[s][], which has no sum",
        ),
        ("add", ["(bool[],)"] * 2, {}, "inputs are of type (bool[],), whose field '0' is bool[], which has no sum"),
        ("exp", [XY], {}, f"input 0 is a record, {XY}, but it takes arrays; take its fields with the op 'field'"),
        ("field", [XY], {"name": "z"}, "{x: f64[], y: f64[]} has no field 'z'"),
        ("record", ["f64[]"], {"type": XY}, "takes 2 fields of {x: f64[], y: f64[]} (x, y), got 1 input"),
        ("record", ["i32[]"], {"type": "{n: i32[], x: f64[]}", "fields": ["n"]}, "field 'x' of {n: i32[], x: f64[]} is missing"),
    ],
)  # fmt: skip
def test_what_records_refuse(op, types, attrs, message):
    with pytest.raises(TypeRuleError) as caught:
        make_case(op, attrs, map(parse_value_type, types))
    assert message in str(caught.value)


def test_two_record_types_of_the_same_fields_do_not_add_up():
    fields = parse_value_type(XY).fields
    declared = {name: RecordType(name, fields) for name in ("Point", "Vector")}
    primitives = replace(BUILTIN, records=declared)
    with pytest.raises(TypeRuleError, match="input 0 is Point, input 1 is Vector; only records of one type add up"):
        primitives.case("add", primitives.parse_attrs("add", {}), None, list(declared.values()))


@pytest.mark.parametrize("name", ["record", "field", "add", "optimization_barrier"])
def test_derivatives_are_adjoint_to_their_transposes(name):
    rng = np.random.default_rng(8)
    cases = [case for _, case in example_cases(BUILTIN, BUILTIN[name])]
    if name == "add":
        cases = [make_case("add", {}, [parse_value_type("{a: f64[2], n: i64[], b: (duration[h][2], c128[2])}")] * 2)]
    for case in cases:
        moving = [k for k, t in enumerate(case.operands) if moves(t)]
        if not moving or not any(map(moves, case.results)):
            continue
        document = one_node_document(case)
        at = {Key(f"x{k}"): random_value(t, rng) for k, t in enumerate(case.operands)}
        wrt = [Key(f"x{k}") for k in moving]
        linear = linearize(document, wrt)
        given = {i.key: random_value(i.type, rng) for i in linear.head.inputs}
        image = evaluate(linear, at | given)
        turned = transpose(linear)
        cotangents = {i.key: random_value(i.type, rng) for i in turned.head.inputs}
        pulled = evaluate(turned, at | cotangents)
        outputs = [o.key for o in document.head.outputs if moves(o.type)]
        left = sum(inner(image[y.tangent(1)], cotangents[y.cotangent(1)]) for y in outputs)
        right = sum(inner(given[x.tangent(1)], pulled[x.cotangent(1)]) for x in wrt)
        np.testing.assert_allclose(left, right, *((1e-2, 1e-2) if "16" in str(case) else (1e-5, 1e-5)))
