"""Reductions: products with zeros, ties, what comes first, nothing to reduce, and messages."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.graphs.templates import inner, make_case
from tests.lax.orders import Orders
from tests.lax.sampling.sample import draw
from tests.lax.test_edges import tangent, value
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import parse_type

NAN, INF = math.nan, math.inf


def derivative_of_product(x, *directions):
    """Σ over distinct i, j, …: t[i] s[j] … times the product of all other elements."""
    total = 0
    for places in itertools.permutations(range(x.size), len(directions)):
        others = np.prod([x.flat[k] for k in range(x.size) if k not in places])
        total += others * np.prod([t.flat[k] for t, k in zip(directions, places, strict=True)])
    return total


@pytest.mark.parametrize("dtype", ["f64", "c128"])
@pytest.mark.parametrize(("shape", "axes"), [((4,), [0]), ((2, 3), [1, 0]), ((5,), [0]), ((2, 1, 2), [0, 1, 2])])
@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_products_with_zeros(dtype, shape, axes, zeros):
    x = draw(dtype, shape, 1)
    x.flat[:zeros] = 0
    directions = [draw(dtype, shape, 2 + k) for k in range(3)]
    product = Orders("reduce_prod", [x], axes=axes)
    for order in (1, 2, 3):
        derivative = product.jvp(*([t] for t in directions[:order]))
        np.testing.assert_allclose(derivative, derivative_of_product(x, *directions[:order]), 1e-13, 1e-14)


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_backwards(zeros):
    x, ct = draw("c128", (5,), 1), 0.5 + 2j
    x[:zeros] = 0
    t, s = draw("c128", (5,), 2), draw("c128", (5,), 3)
    product = Orders("reduce_prod", [x], axes=[0])
    (gradient,) = product.vjp(ct)
    np.testing.assert_allclose(gradient, ct * np.conj([derivative_of_product(x, e) for e in np.eye(5)]), 1e-13, 1e-14)
    expected = inner(derivative_of_product(x, t, s), ct)
    (moved,) = product.hvp(ct, [s])
    np.testing.assert_allclose(inner(t, moved), expected, 1e-13)
    (back,) = product.ror(ct, [t])
    np.testing.assert_allclose(inner(back, s), expected, 1e-13)


def test_products_reduce_some_axes_only():
    x, t = draw("f64", (2, 3, 4), 1), draw("f64", (2, 3, 4), 2)
    x[0, 1, 2] = 0
    expected = [derivative_of_product(x[:, k], t[:, k]) for k in range(3)]
    np.testing.assert_allclose(Orders("reduce_prod", [x], axes=[2, 0]).jvp([t]), expected, 1e-13)
    assert tangent("reduce_prod", [x], [t], axes=[]).tolist() == t.tolist()
    assert tangent("reduce_prod", [np.ones((0, 2))], [np.ones((0, 2))], axes=[0]).tolist() == [0, 0]


def test_an_infinite_factor_does_not_spoil_its_neighbours():
    assert Orders("reduce_prod", [[INF, 2.0, 3.0]], axes=[0]).vjp(1.0)[0].tolist() == [6, INF, INF]
    assert Orders("reduce_prod", [[0.0, 2.0, 0.0]], axes=[0]).vjp(1.0)[0].tolist() == [0, 0, 0]


def test_reduce_min_shares_among_ties():
    x, t = np.array([[1.0, 2.0, 1.0], [3.0, 0.0, -0.0]]), np.array([[1.0, 3.0, 5.0], [1.0, 10.0, 2.0]])
    assert tangent("reduce_min", [x], [t], axes=[1]).tolist() == [3, 6]
    assert Orders("reduce_min", [x], axes=[0]).vjp([1.0, 1.0, 1.0])[0].tolist() == [[1, 0, 0], [0, 1, 1]]
    assert math.isnan(value("reduce_min", [1.0, NAN], axes=[0]))


@pytest.mark.parametrize(
    ("x", "greatest", "least"),
    [
        ([1.0, 3.0, 3.0, 1.0], 1, 0),
        ([1.0, NAN, 3.0, NAN], 1, 1),
        ([-INF, -INF], 0, 0),
        ([-0.0, 0.0], 0, 0),
        ([False, True, False, True], 1, 0),
        (np.array([2, 255, 0], np.uint8), 1, 2),
    ],
)
def test_positions_are_of_the_first(x, greatest, least):
    for dtype in ["f64", "f32", "f16", "bf16"] if isinstance(x[0], float) else [None]:
        y = np.asarray(x) if dtype is None else value("convert_element_type", x, new_dtype=dtype)
        assert value("argmax", y, axes=[0], index_dtype="i32") == greatest
        assert value("argmin", y, axes=[0], index_dtype="i32") == least


def test_positions_have_no_derivative():
    assert tangent("argmax", [[1.0, 2.0]], [[1.0, 1.0]], axes=[0], index_dtype="i32") is None


def test_reductions_of_nothing():
    assert value("reduce_prod", np.ones((0, 2)), axes=[0]).tolist() == [1, 1]
    assert value("reduce_min", np.ones((0, 2)), axes=[0]).tolist() == [INF, INF]
    assert value("reduce_min", np.ones(0, np.int8), axes=[0]) == 127
    assert value("reduce_and", np.ones(0, bool), axes=[0])
    assert not value("reduce_or", np.ones(0, bool), axes=[0])
    assert value("reduce_and", np.ones(0, np.uint8), axes=[0]) == 255
    assert value("reduce_and", np.ones(0, np.int32), axes=[0]) == -1
    assert value("reduce_xor", np.ones(0, np.int32), axes=[0]) == 0


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_products_of_half_precision_round_once(dtype):
    x = value("convert_element_type", np.full(100, 1.01), new_dtype=dtype)
    expected = (x.astype(np.float64)[0] ** 100).astype(x.dtype)
    assert value("reduce_prod", x, axes=[0]) == expected
    assert value("cumprod", x, axis=0)[-1] == expected


@pytest.mark.parametrize(
    ("op", "attrs", "operand", "message"),
    [
        ("reduce_prod", {"axes": [1]}, "f64[3]", r"axes \[1\]: the operand f64\[3\] has no axis 1"),
        ("reduce_prod", {"axes": [0]}, "bool[3]", "it takes numbers"),
        ("reduce_min", {"axes": [0]}, "c64[3]", "it takes integers, floats, bools and times"),
        ("reduce_and", {"axes": [0]}, "f32[3]", "it takes integers and bools"),
        ("argmax", {"axes": [0, 1], "index_dtype": "i32"}, "f64[3,4]", "attr 'axes'"),
        ("argmax", {"axes": [0], "index_dtype": "f32"}, "f64[3]", "positions are integers"),
        ("argmax", {"axes": [0], "index_dtype": "i8"}, "f64[129]", "index_dtype i8 cannot count the 129 elements of axis 0"),
        ("argmin", {"axes": [1], "index_dtype": "i32"}, "f64[3,0]", r"axis 1 of the operand f64\[3,0\] has no elements"),
        ("argmin", {"axes": [0], "index_dtype": "i32"}, "c64[3]", "it takes integers, floats, bools and times"),
    ],
)
def test_messages(op, attrs, operand, message):
    with pytest.raises(TypeRuleError, match=message):
        make_case(op, attrs, [parse_type(operand)])
