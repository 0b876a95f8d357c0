"""Derivatives of graphs with records: structural tangents, fields that are folded, and zeros that stay symbolic."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.graphs.interpret import difference_quotient, evaluate, inner, random_inputs, random_value
from tests.graphs.sketch import Value, function, key, listing, op, ports
from tidu_cli.errors import TransformError, TypeRuleError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType, tangent_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

sin, mul = op("sin"), op("mul")


def declared(**types: str) -> dict[str, RecordType]:
    records: dict[str, RecordType] = {}
    for name, text in types.items():
        spelled = parse_value_type(text, records)
        assert isinstance(spelled, RecordType)
        records[name] = RecordType(name, spelled.fields)
    return records


SET = replace(
    BUILTIN,
    records=declared(
        Point="{x: f64[], y: f64[]}", Segment="{a: Point, b: Point}", Mixed="{n: i64[2], flag: bool[], w: f64[2], t: f32[]}"
    ),
)


def field(record: Value, *names: str) -> Value:
    for name in names:
        record = record.sketch.apply("field", record, name=name)
    return record


def record(type_: str, *values: Value, fields: list[str] | None = None) -> Value:
    return values[0].sketch.apply("record", *values, type=type_, fields=fields)


def graph(inputs: dict[str, str], body: object) -> Document:
    return function("f", inputs, body, primitives=SET)  # type: ignore[arg-type]


def squared_length(s: Value) -> Value:
    dx, dy = field(s, "b", "x") - field(s, "a", "x"), field(s, "b", "y") - field(s, "a", "y")
    return dx * dx + dy * dy


SEGMENT = graph({"s": "Segment"}, squared_length)
AT = {key("s"): ((1.0, 2.0), (4.0, 6.0))}


def ops(document: Document) -> list[str]:
    return [document.head.case(n).op for n in range(document.head.n_nodes)]


def test_a_record_has_a_record_of_tangents() -> None:
    linear = linearize(SEGMENT, [key("s")])
    (declared_input,) = linear.head.inputs
    assert str(declared_input.type) == "Segment{a: Point{x: f64[], y: f64[]}, b: Point{x: f64[], y: f64[]}}"
    tangents = evaluate(linear, AT | {key("s@1"): ((1.0, 0.0), (0.0, 1.0))})
    assert tangents[key("y@1")] == -6 + 8  # 2 dx (0 - 1) + 2 dy (1 - 0), for dx = 3 and dy = 4


def test_the_gradient_by_a_record_is_one_record() -> None:
    gradient = transpose(linearize(SEGMENT, [key("s")]))
    assert str(gradient.head.outputs[0].type) == "Segment{a: Point{x: f64[], y: f64[]}, b: Point{x: f64[], y: f64[]}}"
    assert evaluate(gradient, AT | {key("y@-1"): 1.0})[key("s@-1")] == ((-6.0, -8.0), (6.0, 8.0))
    assert ops(gradient).count("record") == 3 and "field" not in ops(gradient)  # of the segment and its two points


def test_fields_that_nothing_reads_are_symbolic_zeros() -> None:
    document = graph({"s": "Segment"}, lambda s: sin(field(s, "b", "x")))
    gradient = transpose(linearize(document, [key("s")]))
    made = [gradient.head.case(n).attrs.to_data(binary=False).get("fields") for n in range(gradient.head.n_nodes)]
    assert listing(gradient.head) == ["mul([1,0], 0) FT", "record(1) T", "record(2) T"]
    assert made[1:] == [["x"], ["b"]]
    assert evaluate(gradient, AT | {key("y@-1"): 2.0})[key("s@-1")] == ((0.0, 0.0), (2 * np.cos(4.0), 0.0))


def test_a_field_of_a_record_made_here_is_folded() -> None:
    """Neither a record nor a field is in the linear graph of what is put together and taken apart again."""

    def body(x: Value, c: Value) -> Value:
        p = record("Point", sin(x), c)
        return field(p, "x") * field(p, "y")

    linear = linearize(graph({"x": "f64[]", "c": "f64[]"}, body), [key("x")])
    assert listing(linear.head) == ["mul([1,0], 0) FT", "mul(1, [0,5]) TF"]


def test_a_field_with_a_zero_tangent_is_a_structural_zero() -> None:
    def body(x: Value, c: Value) -> dict[str, Value]:
        p = record("Point", sin(x), c)
        return {"p": p, "c": sin(field(p, "y"))}

    linear = linearize(graph({"x": "f64[]", "c": "f64[]"}, body), [key("x")])
    assert ports(linear.head)[1] == {"p@1": 2, "c@1": None}
    assert listing(linear.head) == ["mul([1,0], 0) FT", "record(1) T"]
    assert evaluate(linear, {key("x"): 0.0, key("c"): 1.0, key("x@1"): 3.0}) == {key("p@1"): (3.0, 0.0), key("c@1"): 0.0}


def test_fields_without_tangents_are_left_out() -> None:
    assert str(tangent_type(SET.records["Mixed"])) == "Mixed{n: f64[2], w: f64[2], t: f32[]}"

    def body(m: Value) -> dict[str, Value]:
        n = m.sketch.apply("convert_element_type", field(m, "n"), new_dtype="f64")
        chosen = m.sketch.apply("select_n", field(m, "flag"), field(m, "w"), n * field(m, "w"))
        return {"y": chosen, "flag": field(m, "flag"), "m": m}

    gradient = transpose(linearize(graph({"m": "Mixed"}, body), [key("m")]))
    at = {key("m"): ([2, 3], True, [5.0, 7.0], 1.0), key("y@-1"): [1.0, 10.0], key("m@-1"): ([0.0, 0.5], [0.0, 0.0], 9.0)}
    (cotangent,) = evaluate(gradient, at).values()
    assert [x.tolist() for x in cotangent] == [[5.0, 70.5], [2.0, 30.0], 9.0]


def test_contributions_to_nested_fields_add_up_field_by_field() -> None:
    """Also those that come through different nodes for one inner record, and whole records beside fields."""

    def body(s: Value) -> dict[str, Value]:
        a, again = field(s, "a"), field(s, "a")
        return {"u": field(a, "x") * field(again, "x"), "v": field(again, "y"), "w": s}

    gradient = transpose(linearize(graph({"s": "Segment"}, body), [key("s")]))
    cotangents = {key("u@-1"): 1.0, key("v@-1"): 10.0, key("w@-1"): ((0.5, 0.25), (3.0, 4.0))}
    assert evaluate(gradient, AT | cotangents)[key("s@-1")] == ((2.5, 10.25), (3.0, 4.0))


def test_a_record_of_n_fields_costs_n() -> None:
    """Each of n fields read once: n nodes of each kind, and one record."""
    n = 200
    wide = replace(BUILTIN, records=declared(Wide="{" + ", ".join(f"x{k}: f64[]" for k in range(n)) + "}"))

    def body(w: Value) -> Value:
        total = sin(field(w, "x0"))
        for k in range(1, n):
            total = total + sin(field(w, f"x{k}"))
        return total

    gradient = transpose(linearize(function("f", {"w": "Wide"}, body, primitives=wide), [key("w")]))
    assert len(ops(gradient)) == n + 1 and ops(gradient)[-1] == "record"


def test_transposing_twice_is_the_identity() -> None:
    linear = linearize(SEGMENT, [key("s")])
    again = transpose(transpose(linear))
    at = AT | {key("s@1"): ((0.5, -1.0), (2.0, 3.0))}
    assert [(i.key, i.type) for i in again.head.inputs] == [(i.key, i.type) for i in linear.head.inputs]
    assert evaluate(again, at) == evaluate(linear, at)


def test_third_order_by_a_record() -> None:
    """d^3/dx^2 dy of sin(x y), both fields of a point, against the formula."""
    document = graph({"p": "Point"}, lambda p: sin(mul(field(p, "x"), field(p, "y"))))
    x, y = 0.7, 1.3
    third = document
    for _ in range(3):
        third = linearize(third, [key("p")])
    at = {key("p"): (x, y), key("p@1"): (1.0, 0.0), key("p@2"): (1.0, 0.0), key("p@3"): (0.0, 1.0)}
    due = -2 * y * np.sin(x * y) - x * y * y * np.cos(x * y)
    for form in (third, materialize(third)):
        assert evaluate(form, at)[key("y@1@2@3")] == pytest.approx(due, rel=1e-14)
    mixed = materialize(linearize(linearize(transpose(linearize(document, [key("p")])), [key("p")]), [key("p")]))
    at = {key("p"): (x, y), key("y@-1"): 1.0, key("p@2"): (1.0, 0.0), key("p@3"): (0.0, 1.0)}
    assert evaluate(mixed, at)[key("p@-1@2@3")][0] == pytest.approx(due, rel=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_a_function_of_records_to_records(seed: int) -> None:
    """Derivative, adjoint and difference quotient of a map from records and tuples to both."""

    def body(s: Value, t: Value) -> dict[str, Value]:
        mixed = record("Point", field(s, "a", "x") * field(t, "1"), sin(field(s, "b", "y")))
        pair = record("(f64[], Point)", squared_length(s), mixed)
        return {"pair": pair, "point": field(pair, "1"), "s": record("Segment", mixed, field(s, "a"))}

    document = graph({"s": "Segment", "t": "(f64[2], f64[])"}, body)
    at = random_inputs(document, seed)
    rng = np.random.default_rng(seed + 100)
    wrt = [key("s"), key("t")]
    linear = linearize(document, wrt)
    v = {i.key: random_value(i.type, rng) for i in linear.head.inputs}
    u = {o.key: random_value(o.type, rng) for o in linear.head.outputs}
    jv = evaluate(linear, at | v)
    quotient = difference_quotient(document, at, {key("s"): v[key("s@1")], key("t"): v[key("t@1")]})
    for name, value in quotient.items():
        apart = inner(subtracted(jv[name.tangent(1)], value), subtracted(jv[name.tangent(1)], value))
        assert apart < 1e-18
    cotangents = evaluate(transpose(linear), at | {k.dual(): value for k, value in u.items()})
    left = sum(inner(u[k], jv[k]) for k in u)
    right = sum(inner(cotangents[k.dual()], v[k]) for k in v)
    assert left == pytest.approx(right, rel=1e-13)


def subtracted(a: object, b: object) -> object:
    if isinstance(a, tuple):
        return tuple(subtracted(x, y) for x, y in zip(a, b, strict=True))  # type: ignore[arg-type]
    return np.asarray(a) - np.asarray(b)


class TestChosenTypes:
    """linearize's choice among the tangent types of a record."""

    @staticmethod
    def linear(text: str) -> Document:
        chosen = parse_value_type(text, SET.records, open_shapes=True)
        return linearize(SEGMENT, [key("s")], tangent_types={key("s"): chosen})

    def test_fields_that_are_left_out_have_zero_tangents(self) -> None:
        linear = self.linear("{b: {x: f64}}")
        assert str(linear.head.inputs[0].type) == "Segment{b: Point{x: f64[]}}"
        assert listing(linear.head) == [
            "field(0) T",
            "field(1) T",
            "mul([0,5], 2) FT",
            "mul(2, [0,5]) TF",
            "add(3, 4) TT",
        ]
        gradient = transpose(linear)
        assert evaluate(gradient, AT | {key("y@-1"): 1.0}) == {key("s@-1"): ((6.0,),)}

    def test_fields_may_have_other_types(self) -> None:
        linear = self.linear("Segment{a: Point{x: f32, y: f64}, b: {y: f32[]}}")
        assert str(linear.head.inputs[0].type) == "Segment{a: Point{x: f32[], y: f64[]}, b: Point{y: f32[]}}"
        assert evaluate(linear, AT | {key("s@1"): ((1.0, 0.5), (2.0,))})[key("y@1")] == -6 - 4 + 16
        cotangent = evaluate(transpose(linear), AT | {key("y@-1"): 1.0})[key("s@-1")]
        assert cotangent == ((-6.0, -8.0), (8.0,)) and cotangent[0][0].dtype == np.float32

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{c: {x: f64}}", "has no field 'c' (fields: a, b)"),
            (
                "{a: {x: c128}}",
                "has the field 'a' of type Point, which has the field 'x' of type f64[], which admits no tangent c128;",
            ),
            ("{a: f64}", "has the field 'a' of type Point, which admits no tangent f64; choose Point{x: f64[], y: f64[]}, or"),
            ("f64", "admits no tangent f64; choose Segment{a: Point{x: f64[], y: f64[]}, b: Point{x: f64[], y: f64[]}}, or"),
            ("{}", "admits no tangent without fields; choose some of"),
            ("Point{x: f64}", "admits no tangent Point{x: f64}; choose Segment{"),
        ],
    )
    def test_what_is_not_admitted_is_refused(self, text: str, message: str) -> None:
        with pytest.raises(TransformError, match=re.escape(f"input 's' has type Segment, which {message}")):
            self.linear(text)


class TestRefusals:
    """Graphs that cannot be."""

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (lambda p, q, x: sin(p), "input 0 is a record, Point, but it takes arrays; take its fields with the op 'field'"),
            (lambda p, q, x: field(p, "z"), "Point has no field 'z': x, y"),
            (lambda p, q, x: field(q, "aa"), "Segment has no field 'aa'; did you mean 'a'?"),
            (lambda p, q, x: field(x, "x"), "input 0 has type f64[], but it takes a record"),
            (lambda p, q, x: record("Point", x), "takes 2 fields of Point (x, y), got 1 inputs"),
            (lambda p, q, x: record("Point", x, p), "input 1 has type Point, but field 'y' of Point is f64[]"),
            (
                lambda p, q, x: record("Point", x, fields=["y"]),
                "field 'x' of Point is missing; only records of tangents may leave fields out, as zero",
            ),
            (lambda p, q, x: record("Pont", x), "attr 'type': unknown type 'Pont'; did you mean 'Point'?"),
            (lambda p, q, x: record("f64[]", x), "attr 'type': the type of a record is due, such as {x: f64[]}, not f64[]"),
            (lambda p, q, x: record("Point{x: f64[]}", x, x, fields=["x", "x"]), "attr 'fields': fields repeat: x, x"),
            (lambda p, q, x: p + q, "Segment"),
        ],
    )
    def test_types_that_do_not_fit(self, body: object, message: str) -> None:
        with pytest.raises(TypeRuleError, match=re.escape(message)):
            graph({"p": "Point", "q": "Segment", "x": "f64[]"}, body)

    def test_adding_tangents_of_different_records_names_both(self) -> None:
        types = {"u": "Point{x: f64[], y: f64[]}", "v": "{x: f64[], y: f64[]}"}
        with pytest.raises(TypeRuleError, match=re.escape("Point{x: f64[], y: f64[]}") + ".*" + re.escape(" {x: f64[], y: f64[]}")):
            graph(types, lambda u, v: u + v)
