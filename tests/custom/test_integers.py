"""Integers that are numbers, through own ops: their tangents are floats, in users' graphs too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cli.running import invoke, succeed
from tests.custom.making import body, definition, encoded, read, unary, using
from tests.graphs.interpret import evaluate
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.types import parse_type, tangent_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

A, B, Z = parse_key("a"), parse_key("b"), parse_key("z0")


def as_float(slot: int, dtype: str) -> tuple:
    return ("convert_element_type", slot, {"new_dtype": dtype})


def cube(integer: str, number: str, kind: str) -> dict:
    """n³ x, of an integer n and a float x."""
    ports = {"n": f"{integer}[...]", "x": f"{number}[...]"}, {"y": f"{number}[...]"}
    forward = body("n x", [as_float(0, number), ("integer_pow", 2, {"y": 3}), ("mul", 3, 1)], {"y": 4})
    rules = {
        "forward": {},
        # dy = 3 n² x dn + n³ dx
        "jvp": {
            "jvp": body(
                "n x n@1 x@1",
                [
                    as_float(0, number),
                    as_float(2, number),  # tangents of integers are f64
                    ("integer_pow", 4, {"y": 2}),
                    ("mul", 6, 1),
                    ("mul", 7, 5),
                    ("add", 8, 8),
                    ("add", 9, 8),
                    ("integer_pow", 4, {"y": 3}),
                    ("mul", 11, 3),
                    ("add", 10, 12),
                ],
                {"y@1": 13},
            )
        },
        "backward": {
            "backward": body(
                "n x y@-1",
                [
                    as_float(0, number),
                    ("integer_pow", 3, {"y": 2}),
                    ("mul", 4, 1),
                    ("mul", 5, 2),
                    ("add", 6, 6),
                    ("add", 7, 6),
                    ("integer_pow", 3, {"y": 3}),
                    ("mul", 9, 2),
                ],
                {"n@-1": 8, "x@-1": 10},
            )
        },
    }
    return definition(*ports, forward, **rules[kind])


KINDS = ("forward", "jvp", "backward")
DTYPES = [("i64", "f64", 1e-14), ("u8", "f32", 1e-6)]


def transformed(document, path: str, format_: str):
    """Differentiated by both inputs: f for forward, r for reverse, from left to right, through files."""
    for step in path:
        document = linearize(document, [A, B])
        document = transpose(document) if step == "r" else document
        document = parse_document(format_document(document, format_), "test")[0]
    return document


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("integer", "number", "tolerance"), DTYPES)
@pytest.mark.parametrize("path", ["f", "r", "ff", "fr", "rf", "rr", "fff", "ffr", "frf", "rff", "rrf", "rrr"])
def test_derivatives_are_those_of_the_graph_written_out(kind, integer, number, tolerance, path):
    document = read(using({"o": cube(integer, number, kind)}, "o", f"{integer}[2]", f"{number}[2]"))
    own = transformed(document, path, "json" if len(path) % 2 else "msgpack")
    plain = transformed(inline(document), path, "json")
    rng = np.random.default_rng(len(path))
    at = {i.key: rng.uniform(0.5, 1.5, i.type.shape).astype(numpy_dtype(np, number)) for g in own.graphs for i in g.inputs}
    at |= {A: np.array([2, 3], numpy_dtype(np, integer))}
    results, expected = (evaluate(d, at, primitives=vocabulary(d.cases)) for d in (own, plain))
    assert results.keys() == expected.keys() and [o.type for o in own.head.outputs] == [o.type for o in plain.head.outputs]
    for key, value in expected.items():
        scale = max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(results[key], value, rtol=0, atol=40 * tolerance * scale, err_msg=str(key))


@pytest.mark.parametrize("kind", KINDS)
def test_the_third_derivative_by_an_integer(kind):
    """(n³ x)''' = 6 x."""
    document = read(using({"o": cube("i64", "f64", kind)}, "o", "i64[]", "f64[]"))
    for _ in range(3):
        document = linearize(document, [A])
    at = {A: np.int64(5), B: np.float64(1.25)} | {A.tangent(p): np.float64(1) for p in (1, 2, 3)}
    results = evaluate(document, at, primitives=vocabulary(document.cases))
    assert float(results[Z.tangent(1).tangent(2).tangent(3)]) == 6 * 1.25


SQUARE = body("x", [("mul", 0, 0)], {"y": 1})
OF_INTEGERS = {
    "jvp": unary(SQUARE, "i64[...]", jvp=body("x x@1", [as_float(0, "f64"), ("mul", 2, 1), ("add", 3, 3)], {"y@1": 4})),
    "backward": unary(SQUARE, "i64[...]", backward=body("x y@-1", [as_float(0, "f64"), ("mul", 2, 1), ("add", 3, 3)], {"x@-1": 4})),
}


@pytest.mark.parametrize("kind", OF_INTEGERS)
def test_ops_from_integers_to_integers(kind):
    document = read(using({"o": OF_INTEGERS[kind]}, "o", "i64[3]"))
    linear = linearize(document, [A])
    assert [o.type for o in linear.head.outputs] == [tangent_type(parse_type("i64[3]"))]
    n, ones = np.array([-2, 0, 3]), np.ones(3)
    for derived, key, at in (
        (linear, Z.tangent(1), {A.tangent(1): ones}),
        (transpose(linear), A.cotangent(1), {Z.cotangent(1): ones}),
    ):
        results = evaluate(derived, {A: n, **at}, primitives=vocabulary(derived.cases))
        assert results[key].tolist() == [-4.0, 0.0, 6.0]
        second = linearize(derived, [A])
        results = evaluate(second, {A: n, A.tangent(2): ones, **at}, primitives=vocabulary(second.cases))
        assert results[key.tangent(2)].tolist() == [2.0] * 3
        third = transpose(linearize(second, [A]))
        assert all(o.value is None for o in third.head.outputs)


def test_an_index_has_no_cotangent():
    """x[n]: an integer that says where. Its cotangent is null, whichever graph says so."""
    read_at = {"slice_sizes": [1]}
    forward = body("x n", [("dynamic_slice", 0, 1, read_at)], {"y": 2})
    jvp = body("x n x@1 n@1", [("dynamic_slice", 2, 1, read_at)], {"y@1": 4})
    back = body(
        "x n y@-1",
        [("constant", {"value": {"type": "f64[4]", "data": [0, 0, 0, 0]}}), ("dynamic_update_slice", 3, 2, 1)],
        {"x@-1": 4, "n@-1": None},
    )
    for rules in ({}, {"jvp": jvp}, {"backward": back}):
        op = definition({"x": "f64[4]", "n": "i64[]"}, {"y": "f64[1]"}, forward, **rules)
        data = using({"o": op}, "o", "f64[4]", "i64[]")
        gradient = transpose(linearize(read(data), [A, B]))
        assert [o.value is None for o in materialize(gradient).head.outputs] == [False, True]
        cotangents = evaluate(
            gradient, {A: np.zeros(4), B: np.int64(2), Z.cotangent(1): np.array([5.0])}, primitives=vocabulary(gradient.cases)
        )
        assert cotangents[A.cotangent(1)].tolist() == [0.0, 0.0, 5.0, 0.0]
        succeed("check", "--numeric", input=encoded(data))


@pytest.mark.parametrize("kind", KINDS)
def test_right_rules_pass(kind):
    succeed("check", "--numeric", input=encoded(using({"o": cube("i64", "f64", kind)}, "o", "i64[2]", "f64[2]")))


@pytest.mark.parametrize("kind", OF_INTEGERS)
def test_right_rules_from_integers_to_integers_pass(kind):
    succeed("check", "--numeric", input=encoded(using({"o": OF_INTEGERS[kind]}, "o", "i64[2]")))


WRONG = {
    "jvp": unary(SQUARE, "i64[...]", jvp=body("x x@1", [as_float(0, "f64"), ("mul", 2, 1)], {"y@1": 3})),
    "backward": unary(SQUARE, "i64[...]", backward=body("x y@-1", [as_float(0, "f64"), ("mul", 2, 1)], {"x@-1": 3})),
    "null": unary(SQUARE, "i64[...]", backward=body("x y@-1", [], {"x@-1": None})),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_for_integers_are_named(name):
    result = invoke("check", "--numeric", input=encoded(using({"o": WRONG[name]}, "o", "i64[2]")))
    kind = "backward" if name == "null" else name
    assert result.exit_code == 1 and f"op o(i64[2]): its {kind} does not fit its forward" in result.stderr, result.stderr
