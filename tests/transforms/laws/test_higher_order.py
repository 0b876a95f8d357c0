"""Derivatives of higher order against closed forms, in every mix of forward and reverse."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.graphs.interpret import Values, evaluate
from tests.graphs.sketch import Value, function, key, op
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X = key("x")
exp, tanh, dot_general, integer_pow = map(op, ("exp", "tanh", "dot_general", "integer_pow"))
A = np.array([0.3, -1.2, 0.7])
MATRIX = np.array([[0.5, -0.3, 0.8], [1.1, 0.4, -0.6]])


def dot(a: Value, b: Value) -> Value:
    return dot_general(a, b, dimension_numbers=(([a.type.rank - 1], [0]), ([], [])))


def forward(doc: Document, order: int, wrt: Key = X) -> Document:
    for _ in range(order):
        doc = linearize(doc, [wrt])
    return doc


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("as_products", [True, False])
def test_the_nth_derivative_of_a_monomial_is_n_factorial(order: int, as_products: bool) -> None:
    def power(x: Value) -> Value:
        if not as_products:
            return integer_pow(x, y=order)
        result = x
        for _ in range(order - 1):
            result = result * x
        return result

    doc = forward(function("f", {"x": "f64[]"}, power), order)
    single = materialize(doc)
    assert single.head.name == "f" + "".join(f"@{n + 1}" for n in range(order))
    tangents = {Key("x", (n + 1,)): 1.0 for n in range(order)}
    for x in (3.0, 0.0, -2.0):
        (value,) = evaluate(single, {X: x} | tangents).values()
        assert value == float(np.prod(range(1, order + 1)))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_one_derivative_more_than_the_degree_is_zero(order: int) -> None:
    doc = forward(function("f", {"x": "f64[]"}, lambda x: integer_pow(x, y=order)), order + 1)
    (output,) = doc.head.outputs
    assert output.value is None
    assert doc.head.n_nodes == 0


def exp_of_dot() -> Document:
    return function("f", {"x": "f64[3]", "a": "f64[3]"}, lambda x, a: exp(dot(a, x)))


def second_order(mode: str) -> Document:
    """The second derivative of exp(a x) in a mode such as FoR, forward over reverse."""
    doc = linearize(exp_of_dot(), [X])
    if mode.endswith("R"):
        doc = transpose(doc)
    doc = linearize(doc, [X])
    return transpose(doc) if mode.startswith("R") else doc


def test_exp_of_a_dot_product_in_all_four_modes() -> None:
    rng = np.random.default_rng(4)
    x, u, v = rng.normal(size=(3, 3))
    w = 1.7
    value = np.exp(A @ x)
    along_u = w * value * (A @ u) * A
    at: Values = {X: x, key("a"): A}
    expected = {
        "FoF": ({"x@1": u, "x@2": v}, "y@1@2", value * (A @ u) * (A @ v)),
        "FoR": ({"y@-1": np.float64(w), "x@2": u}, "x@-1@2", along_u),
        "RoF": ({"x@1": u, "y@1@-2": np.float64(w)}, "x@-2", along_u),
        "RoR": ({"y@-1": np.float64(w), "x@-1@-2": u}, "x@-2", along_u),
    }
    for mode, (given, output, closed_form) in expected.items():
        doc = second_order(mode)
        for d in (doc, materialize(doc)):
            results = evaluate(d, at | {key(k): a for k, a in given.items()})
            assert list(map(str, results)) == [output], mode
            np.testing.assert_allclose(results[key(output)], closed_form, rtol=1e-12, err_msg=mode)


def vector_function() -> Document:
    def body(x: Value, a: Value, e0: Value, e1: Value, e2: Value) -> dict[str, Value]:
        b = dot(a, x)
        return {"exp": exp(b), "fourth": integer_pow(b, y=4), "product": dot(e0, x) * dot(e1, x) * dot(e2, x)}

    return function("F", {"x": "f64[3]", "a": "f64[2,3]", "e0": "f64[3]", "e1": "f64[3]", "e2": "f64[3]"}, body)


def test_every_third_derivative_of_a_vector_function() -> None:
    single = materialize(forward(vector_function(), 3))
    x, unit = np.array([0.4, -0.9, 1.3]), np.eye(3)
    at: Values = {X: x, key("a"): MATRIX, key("e0"): unit[0], key("e1"): unit[1], key("e2"): unit[2]}
    b = MATRIX @ x
    for i, j, k in product(range(3), repeat=3):
        derivatives = evaluate(single, at | {key("x@1"): unit[i], key("x@2"): unit[j], key("x@3"): unit[k]})
        slopes = MATRIX[:, i] * MATRIX[:, j] * MATRIX[:, k]
        np.testing.assert_allclose(derivatives[key("exp@1@2@3")], np.exp(b) * slopes, rtol=1e-12)
        np.testing.assert_allclose(derivatives[key("fourth@1@2@3")], 24 * b * slopes, rtol=1e-12)
        assert derivatives[key("product@1@2@3")] == pytest.approx(float({i, j, k} == {0, 1, 2}), abs=1e-12)


@pytest.mark.parametrize("modes", ["".join(modes) for modes in product("FR", repeat=4)])
def test_the_fourth_derivative_of_tanh_in_all_sixteen_modes(modes: str) -> None:
    doc = function("f", {"x": "f64[]"}, tanh)
    for mode in modes:
        doc = linearize(doc, [X])
        doc = transpose(doc) if mode == "R" else doc
    single = materialize(doc)
    x = 0.3
    given = {i.key: np.float64(1) for i in single.head.inputs} | {X: np.float64(x)}
    (value,) = evaluate(single, given).values()
    y = np.tanh(x)
    # d/dx acts on polynomials in y as (1 - y²) d/dy: y, 1 - y², -2y + 2y³, -2 + 8y² - 6y⁴, 16y - 40y³ + 24y⁵.
    assert value == pytest.approx(16 * y - 40 * y**3 + 24 * y**5, rel=1e-12)


def test_differentiating_in_a_tangent() -> None:
    doc = linearize(function("f", {"x": "f64[]"}, exp), [X])
    again = linearize(doc, [key("x@1")])
    assert [str(i.key) for i in again.head.inputs] == ["x@1@2"]
    assert [str(o.key) for o in again.head.outputs] == ["y@1@2"]
    assert evaluate(again, {X: 0.5, key("x@1@2"): 3.0})[key("y@1@2")] == pytest.approx(3 * np.exp(0.5))
    both = linearize(doc, [X, key("x@1")])
    tangents = evaluate(both, {X: 0.5, key("x@1"): 2.0, key("x@2"): 5.0, key("x@1@2"): 3.0})
    assert tangents[key("y@1@2")] == pytest.approx((3 + 2 * 5) * np.exp(0.5))
