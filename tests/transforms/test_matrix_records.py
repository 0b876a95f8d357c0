"""Matrices of functions of records: a block for each array, and how they are named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import Value, function, key, op
from tidu_cli import load
from tidu_cli.errors import TransformError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import RecordType
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.shorthands import derivative, grad, hessian, hvp, jacobian, vjp
from tidu_cli.transforms.transpose import transpose

SEGMENT = load("samples/segment.json")
S, LENGTH, MIDDLE = Key("s"), Key("length"), Key("middle")
AT = {S: ((1.0, 2.0), (4.0, 6.0))}
POINTS = ("a.x", "a.y", "b.x", "b.y")
sin = op("sin")


def field(record: Value, name: str) -> Value:
    return record.sketch.apply("field", record, name=name)


def names(doc: Document) -> list[str]:
    return [str(o.key) for o in doc.head.outputs]


def run(doc: Document, values: dict[Key, object]) -> dict[str, object]:
    return {str(k): x for k, x in evaluate(doc, values, primitives=doc.cases.vocabulary).items()}


def test_a_block_for_each_array_of_input_and_output() -> None:
    document = jacobian(SEGMENT, [S]).document
    assert names(document) == [f"{y}/s.{x}" for y in ("length", "middle.x", "middle.y") for x in POINTS]
    values = list(run(document, AT).values())
    assert np.allclose(values[:4], [-0.6, -0.8, 0.6, 0.8], rtol=0, atol=1e-15)
    assert values[4:] == [0.5, 0, 0.5, 0, 0, 0.5, 0, 0.5]


def test_a_field_that_is_left_out_has_null_blocks() -> None:
    def body(x: Value, c: Value) -> Value:
        return x.sketch.apply("record", sin(x), c, type="{a: f64[2], b: f64[]}")

    document = function("f", {"x": "f64[2]", "c": "f64[]"}, body)
    linear = linearize(document, [key("x")])
    for head in (linear, transpose(linear)):
        outputs = {str(o.key): (str(o.type), o.value is None) for o in matrix(head).head.outputs}
        assert outputs["y.a/x"] == ("f64[2,2]", False)
        assert head is not linear or outputs["y.b/x"] == ("f64[2]", True)
    assert np.array_equal(run(matrix(linear), {key("x"): [0.0, 1.0], key("c"): 1.0})["y.a/x"], np.diag(np.cos([0.0, 1.0])))


def test_no_record_is_made_where_only_its_arrays_are_wanted() -> None:
    graph = matrix(linearize(SEGMENT, [S], outputs=[MIDDLE])).head
    ops = [graph.case(n).op for n in range(graph.n_nodes)]
    assert "field" in ops and ops.count("record") == 3  # the units: of the segment and its two points


def test_record_types_of_batches_are_spelled_out() -> None:
    """A declared type with other shapes would lie."""
    graph = matrix(linearize(SEGMENT, [S])).head
    types = [t for n in range(graph.n_nodes) for t in graph.case(n).results if isinstance(t, RecordType)]
    assert types and all(t.tangent or not t.name for t in types)
    assert {str(t) for t in types} >= {"Point{x: f64[4], y: f64[4]}"}


def test_hessians_have_a_block_for_any_two_arrays() -> None:
    document = hessian(SEGMENT, [S], [LENGTH]).document
    assert names(document) == [f"length/s.{x}/s.{z}" for x in POINTS for z in POINTS]
    h = np.reshape(list(run(document, AT).values()), (4, 4))
    d = np.array([-3.0, -4.0, 3.0, 4.0]) / 5
    projection = np.kron([[1, -1], [-1, 1]], np.eye(2)) / 5
    assert np.allclose(h, projection - np.outer(d, d) / 5, rtol=0, atol=1e-15)


def test_gradients_and_products_are_records() -> None:
    gradient = grad(SEGMENT, [S], [LENGTH]).document
    (cotangent,) = run(gradient, AT).values()
    assert np.allclose(np.ravel(cotangent), [-0.6, -0.8, 0.6, 0.8], rtol=0, atol=1e-15)
    v = ((1.0, 0.0), (0.0, 0.0))
    (product,) = run(hvp(SEGMENT, [S], [LENGTH]).document, AT | {S.tangent(2): v}).values()
    assert np.allclose(np.ravel(product), [0.128, -0.096, -0.128, 0.096], rtol=0, atol=1e-15)
    (pulled,) = run(vjp(SEGMENT, [S], [MIDDLE]).document, AT | {MIDDLE.cotangent(1): (1.0, 10.0)}).values()
    assert np.ravel(pulled).tolist() == [0.5, 5.0, 0.5, 5.0]


def test_rows_and_columns_agree() -> None:
    linear = linearize(SEGMENT, [S])
    columns, rows = (run(matrix(doc), AT) for doc in (linear, transpose(linear)))
    assert columns.keys() == rows.keys()
    assert all(np.allclose(columns[k], rows[k], rtol=0, atol=1e-15) for k in rows)


def test_times_are_counted() -> None:
    """In units of y per unit of x, by columns and by rows: no type has their quotient for a unit."""

    def body(t: Value, d: Value) -> dict[str, Value]:
        apart = t.sketch.apply("sub", t, t.sketch.apply("retract", t, d))
        return {"y": t.sketch.apply("convert_element_type", apart, new_dtype="duration[s]")}

    linear = linearize(function("f", {"t": "datetime[ms][2]", "d": "duration[h][2]"}, body), [key("d")])
    values = {key("t"): np.array([5, 7]), key("d"): np.array([1.0, 2.0])}
    for head in (linear, transpose(linear)):
        derived = matrix(head)
        assert [str(o.type) for o in derived.head.outputs] == ["f64[2,2]"]
        assert np.array_equal(run(derived, values)["y/d"], np.diag([-3600.0, -3600.0]))


def test_names_that_clash_are_refused() -> None:
    document = function("f", {"p": "{x: f64[]}", "p.x": "f64[]"}, lambda p, q: field(p, "x") * q)
    with pytest.raises(TransformError, match=r"two blocks of its matrix would be 'y/p.x'; rename an input or output"):
        matrix(linearize(document, [key("p"), key("p.x")]))


def test_complex_arrays_are_named() -> None:
    document = function("f", {"p": "{x: f64[], z: c128[]}"}, lambda p: field(p, "z"))
    with pytest.raises(TransformError, match=r"graph 'f@1': 'p@1.z' is c128\[\], and derivatives by complex numbers"):
        matrix(linearize(document, [key("p")]))


def test_derivatives_by_one_number_and_of_one_number() -> None:
    with pytest.raises(TransformError, match="input 's' is Segment; a derivative is by one number"):
        derivative(SEGMENT, [S], [LENGTH])
    with pytest.raises(
        TransformError, match=r"a gradient is of one real number, and output 'middle' is a record, Point; jacobian\(\) takes it"
    ):
        grad(SEGMENT, [S], [MIDDLE])


def test_the_derivative_by_a_time_is_per_unit() -> None:
    document = function("f", {"d": "duration[h][]"}, lambda d: sin(d.sketch.apply("convert_element_type", d, new_dtype="f64")))
    second = derivative(document, [key("d")], order=2).document
    assert run(second, {key("d"): 1.0}) == {"y@1@2": -np.sin(1.0)}


def test_types_of_records_may_nest() -> None:
    inner = parse_value_type("({a: f64[2]}, f64[])")
    document = function("f", {"p": str(inner)}, lambda p: {"q": p, "y": sin(field(p, "1"))})
    derived = jacobian(document, [key("p")]).document
    assert names(derived) == ["q.0.a/p.0.a", "q.0.a/p.1", "q.1/p.0.a", "q.1/p.1", "y/p.0.a", "y/p.1"]
    values = run(derived, {key("p"): ((np.array([1.0, 2.0]),), 0.0)})
    assert np.array_equal(values["q.0.a/p.0.a"], np.eye(2)) and values["y/p.1"] == 1
