"""Rules of own ops in any tangent type that the op's values admit: what they stand for is what they give in natural ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.custom.making import body, definition, graph_data, read, unary, using
from tests.graphs.interpret import evaluate
from tests.graphs.sketch import Sketch, document
from tidu_cli.errors import DocumentError
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.tangents import chosen
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

A, Z = parse_key("a"), parse_key("z0")
TYPES = {"Trip": {"at": "datetime[ms][2]", "n": "i32[]", "w": "f64[]", "on": "bool[]"}}
RECORDS = read({"tidu": 1, "types": TYPES, "graphs": [{"name": "f", "inputs": [], "nodes": [], "outputs": []}]})

PAIRS = [
    *(("f64[2]", t) for t in ("f16[2]", "bf16[2]", "f32[2]")),
    *((f"{t}[2]", "f32[2]") for t in ("i64", "i32", "u8")),
    ("f32[2]", "f64[2]"),
    ("c128[2]", "c64[2]"),
    ("duration[s][2]", "duration[ms][2]"),
    ("datetime[ms][2]", "duration[h][2]"),
    ("datetime[D][2]", "duration[ms][2]"),
    ("datetime[ms][2]", "{instant: {periods: f64[2]}}"),
    ("datetime[ms][2]", "{instant: {periods: duration[h][2]}}"),
    ("Trip", "{w: f64[]}"),
    ("Trip", "{n: f64[], w: f64[]}"),
    ("Trip", "{at: duration[h][2], w: f32[]}"),
    ("Trip", "{at: {instant: {periods: f64[2]}}, n: f32[], w: f64[]}"),
    ("{x: f64[], y: f64[2]}", "{x: f32[]}"),
    ("(f64[], datetime[s][])", "(f32[], duration[m][])"),
]


def types_of(primal, tangent):
    records = vocabulary(RECORDS.cases).records
    primal = parse_value_type(primal, records)
    return primal, chosen(primal, parse_value_type(tangent, records))


def value(type_, rng):
    """Small whole numbers, which every tangent type holds."""
    if hasattr(type_, "fields"):
        return tuple(value(t, rng) for _, t in type_.fields)
    return rng.integers(1, 9, type_.shape)


def identity(primal):
    cases = RECORDS.cases
    sketch = Sketch({"x": primal}, cases=cases, primitives=vocabulary(cases))
    return document(sketch.build("f", {"y": sketch.inputs[0]}))


def applied(own, primal):
    return read({**using({"o": own}, "o", str(primal)), "types": TYPES})


def pulled_back(doc, ct):
    vjp = transpose(linearize(doc, [A]))
    cotangents = evaluate(vjp, {Z.cotangent(1): ct}, primitives=vocabulary(doc.cases))
    return vjp.head.outputs[0].type, cotangents[A.cotangent(1)]


def same(values, expected):
    if isinstance(expected, tuple):
        assert len(values) == len(expected)
        for a, b in zip(values, expected, strict=True):
            same(a, b)
    else:
        np.testing.assert_allclose(0 if values is None else values, 0 if expected is None else expected, rtol=4e-16)


@pytest.mark.parametrize(("primal", "tangent"), PAIRS)
def test_backward_in_any_admitted_type(primal, tangent):
    primal, tangent = types_of(primal, tangent)
    forward = body("x", [], {"y": 0})
    made = identity(primal)
    x, y = parse_key("x"), parse_key("y")
    # The adjoint of y = x, as tidu itself writes it for tangents of that type.
    head = materialize(transpose(linearize(made, [x], tangent_types={x: tangent})), needed_inputs=True).head
    assert head.outputs[0].type == tangent
    own = unary(forward, str(primal), backward=graph_data(head, [y.cotangent(1)], [x.cotangent(1)]))
    type_, plain = pulled_back(applied(unary(forward, str(primal)), primal), ct := value_of_cotangent(made, x))
    natural, cotangent = pulled_back(applied(own, primal), ct)
    assert natural == type_
    same(cotangent, only_fields(plain, type_, tangent))


def value_of_cotangent(made, x):
    return value(linearize(made, [x]).head.inputs[0].type, np.random.default_rng(3))


def only_fields(cotangent, natural, tangent):
    """A natural cotangent, zero in the fields that another tangent type leaves out."""
    if not hasattr(natural, "fields"):
        return cotangent
    of = dict(tangent.fields)
    return tuple(
        only_fields(part, type_, of[name]) if name in of else np.zeros(type_.shape)
        for part, (name, type_) in zip(cotangent, natural.fields, strict=True)
    )


CONVERTED = [
    ("f64[2]", ("convert_element_type", 0, {"new_dtype": "f32"})),
    ("i32[2]", ("convert_element_type", 0, {"new_dtype": "f32"})),
    ("datetime[ms][2]", ("convert_element_type", 0, {"new_dtype": "duration[us]"})),
]


@pytest.mark.parametrize(("primal", "conversion"), CONVERTED)
@pytest.mark.parametrize("reverse", [False, True])
def test_jvp_in_any_admitted_type(primal, conversion, reverse):
    own = unary(body("x", [], {"y": 0}), primal, jvp=body("x@1", [conversion], {"y@1": 1}))
    doc = applied(own, primal)
    linear = linearize(doc, [A])
    linear, key, out = (transpose(linear), Z.cotangent(1), A.cotangent(1)) if reverse else (linear, A.tangent(1), Z.tangent(1))
    tangents = evaluate(linear, {key: np.array([3.0, 5.0])}, primitives=vocabulary(doc.cases))[out]
    assert tangents.tolist() == [3.0, 5.0] and linear.head.outputs[0].type == linear.head.inputs[0].type


def test_transpose_in_any_admitted_type():
    """y = w x, linear in x: the cotangent w y@-1 in f32."""
    own = definition(
        {"w": "f64[]", "x": "f64[]"},
        {"y": "f64[]"},
        body("w x", [("mul", 0, 1)], {"y": 2}),
        transpose=body("w y@-1", [("mul", 0, 1), ("convert_element_type", 2, {"new_dtype": "f32"})], {"x@-1": 3}),
    )
    doc = read(using({"o": own}, "o", "f64[]", "f64[]"))
    vjp = transpose(linearize(doc, [parse_key("b")]))
    cotangents = evaluate(vjp, {A: 0.5, parse_key("b"): 1.0, Z.cotangent(1): 3.0}, primitives=vocabulary(doc.cases))
    assert [str(o.type) for o in vjp.head.outputs] == ["f64[]"] and cotangents[parse_key("b@-1")] == 1.5


def test_other_types_are_refused_with_the_one_that_is_due():
    own = unary(
        body("x", [], {"y": 0}), "f64[2]", backward=body("y@-1", [("convert_element_type", 0, {"new_dtype": "c128"})], {"x@-1": 1})
    )
    with pytest.raises(DocumentError, match=r"its backward gives 'x@-1' the type c128\[2\], which must be f64\[2\]"):
        read(using({"o": own}, "o", "f64[2]"))
