"""Sorting: its order, what keeps its place, several operands, and tangents that go where their operands go."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.graphs.templates import apply, inner, jvp, make_case, type_of
from tests.lax.orders import Orders
from tests.lax.sampling.reduction_samples import in_order
from tests.lax.sampling.sample import ORDER, draw
from tests.lax.test_edges import tangent, value
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import FLOATS, parse_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN

NAN, INF = math.nan, math.inf


def sort(*operands, **attrs):
    operands = [np.asarray(x) for x in operands]
    return [np.asarray(y) for y in apply(make_case("sort", attrs, map(type_of, operands)), operands)]


def top_k(x, **attrs):
    x = np.asarray(x)
    return apply(make_case("top_k", attrs, [type_of(x)]), [x])


def spelled(x):
    """Each element's text, which tells -0 from 0 and shows NaN."""
    return [str(v) for v in x.astype(np.float64 if x.dtype.kind != "c" else np.complex128).tolist()]


@pytest.mark.parametrize("dtype", sorted(FLOATS))
def test_nan_comes_last_and_zeros_of_either_sign_are_equal(dtype):
    x = np.array([NAN, 1, -0.0, INF, 0.0, -NAN, -INF, -0.0, 0.0, -1]).astype(numpy_dtype(np, dtype))
    ordered = ["-inf", "-1.0", "-0.0", "0.0", "-0.0", "0.0", "1.0", "inf", "nan", "nan"]
    assert spelled(sort(x, dimension=0)[0]) == ordered
    by_key, places = sort(x, np.arange(10), dimension=0)
    assert spelled(by_key) == ordered
    assert places.tolist() == [6, 9, 2, 4, 7, 8, 1, 3, 0, 5]


def test_complex_numbers_go_by_real_then_imaginary_part():
    nan_1, one_nan = complex(NAN, 1), complex(1, NAN)
    x = np.array([nan_1, one_nan, 2 - 1j, 1 + 2j, complex(-0.0, 3), nan_1.conjugate(), 1 - 2j, 1j, complex(NAN, NAN)])
    ordered = [1j, complex(-0.0, 3), 1 - 2j, 1 + 2j, one_nan, 2 - 1j, nan_1.conjugate(), nan_1, complex(NAN, NAN)]
    assert spelled(sort(x, dimension=0)[0]) == spelled(np.array(ordered))


@pytest.mark.parametrize("dtype", ORDER)
@pytest.mark.parametrize("axis", [0, 1])
def test_equal_keys_keep_their_order(dtype, axis):
    keys = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 4, (7, 6)).astype(numpy_dtype(np, dtype))
    places = np.broadcast_to(np.arange(7)[:, None] if axis == 0 else np.arange(6), (7, 6))
    by_key, moved = sort(keys, places, dimension=axis)
    lines = zip(np.moveaxis(keys, axis, 1), np.moveaxis(moved, axis, 1), np.moveaxis(by_key, axis, 1), strict=True)
    for line, order, ordered in lines:
        assert order.tolist() == sorted(range(line.size), key=lambda k, line=line: in_order(line[k].item()))
        assert ordered.tolist() == line[order].tolist()


@pytest.mark.parametrize("num_keys", [1, 2, 3])
@pytest.mark.parametrize("dtypes", [("i8", "f64", "c64"), ("c128", "bool", "bf16"), ("f32", "u64", "f16"), ("bf16", "i32", "f64")])
def test_several_keys(num_keys, dtypes):
    rng = np.random.default_rng(1)
    operands = [rng.integers(0, 3, (2, 8)).astype(numpy_dtype(np, dtype)) for dtype in dtypes]
    ordered = sort(*operands, dimension=1, num_keys=num_keys)
    for row in range(2):
        order = sorted(range(8), key=lambda k, row=row: tuple(in_order(x[row, k].item()) for x in operands[:num_keys]))
        assert [y[row].tolist() for y in ordered] == [x[row, order].tolist() for x in operands]


def test_an_axis_of_one_or_no_element():
    for shape, axis in (((1,), 0), ((0,), 0), ((2, 0), 1), ((0, 3), 1), ((3, 1), 1)):
        x = draw("f64", shape)
        assert sort(x, dimension=axis)[0].tolist() == x.tolist()
        assert [y.tolist() for y in sort(x, x, dimension=axis)] == [x.tolist()] * 2
        assert tangent("sort", [x], [x], dimension=axis).tolist() == x.tolist()


@pytest.mark.parametrize("active", [mask for mask in itertools.product((True, False), repeat=4) if any(mask)])
def test_tangents_go_where_their_operands_go(active):
    x, y, z, w = draw("f64", (2, 5), 1), draw("c128", (2, 5), 2), draw("f32", (2, 5), 3), draw("f64", (2, 5), 4)
    x[0] = [1, 0, 1, 0, 1]
    operands = [x, y, np.arange(10).reshape(2, 5), z, w]
    moving = (*active[:2], False, *active[2:])
    tangents = [draw(type_of(v).dtype, v.shape, 9) if a else None for v, a in zip(operands, moving, strict=True)]
    out_tangents = jvp(make_case("sort", {"dimension": 1, "num_keys": 2}, map(type_of, operands)), operands, tangents)
    order = np.lexsort([y.imag, y.real, x], axis=1)
    for t, moved in zip(tangents, out_tangents, strict=True):
        assert (moved is None) == (t is None)
        assert t is None or moved.tolist() == np.take_along_axis(t, order, 1).tolist()


def test_cotangents_go_back_where_they_came_from():
    x, ct = np.array([3.0, 1.0, NAN, 2.0, 1.0, -INF]), np.arange(6.0)
    assert Orders("sort", [x], dimension=0).vjp(ct)[0].tolist() == [4, 1, 5, 3, 2, 0]
    keys, values = Orders("sort", [x, x, np.arange(6)], dimension=0).vjp(ct, 10 * ct)
    assert keys.tolist() == [4, 1, 5, 3, 2, 0]
    assert values.tolist() == [40, 10, 50, 30, 20, 0]
    (values,) = Orders("sort", [np.array([2, 0, 1], np.int32), np.ones(3)], dimension=0).vjp([1.0, 2.0, 3.0])
    assert values.tolist() == [3, 1, 2]


def test_tangents_stay_apart():
    # A NaN among the tangents stays with its element, and among the keys goes to the end with its tangent.
    np.testing.assert_equal(tangent("sort", [[2.0, NAN, 1.0]], [[NAN, 5.0, INF]], dimension=0), [INF, NAN, 5])


@pytest.mark.parametrize("op", ["sort", "top_k"])
def test_second_derivatives_are_zero(op):
    x, t, s = (draw("f64", (2, 4), k) for k in range(3))
    attrs = {"dimension": 1} if op == "sort" else {"k": 2, "axis": 1}
    orders = Orders(op, [x], **attrs)
    assert not orders.jvp([t], [s]).any()
    assert not orders.hvp(orders.jvp([t]), [s])[0].any()


@pytest.mark.parametrize(
    ("op", "types", "attrs"),
    [
        ("sort", ["f64[3,4]"], {"dimension": 0}),
        ("sort", ["c128[3,4]"], {"dimension": 1}),
        ("sort", ["f64[2,3,4]", "c128[2,3,4]", "i32[2,3,4]"], {"dimension": 1, "num_keys": 2}),
        ("sort", ["i8[5]", "f64[5]", "f64[5]"], {"dimension": 0, "is_stable": False}),
        ("top_k", ["f64[3,4]"], {"k": 2, "axis": 0}),
        ("top_k", ["f64[2,4,3]"], {"k": 3, "axis": 1}),
        ("top_k", ["f64[4]"], {"k": 0, "axis": 0}),
    ],
)
def test_laws(op, types, attrs):
    document = one_node_document(make_case(op, attrs, map(parse_type, types)))
    for seed in range(3):
        for verdict in check_numerically(document, BUILTIN, seed=seed):
            assert verdict.ok, verdict


def test_top_k_takes_the_first_of_ties_and_nan_before_all():
    values, places = top_k([1.0, NAN, 3.0, -INF, 3.0, NAN, INF], k=6, axis=0)
    np.testing.assert_equal(values, [NAN, NAN, INF, 3, 3, 1])
    assert places.tolist() == [1, 5, 6, 2, 4, 0]
    assert places.dtype == np.int32
    assert [y.tolist() for y in top_k(np.array([0, 255, 7, 255], np.uint8), k=3, axis=0)] == [[255, 255, 7], [1, 3, 2]]
    assert [y.tolist() for y in top_k(np.array([[False, True], [True, True]]), k=1, axis=0)] == [[[True, True]], [[1, 0]]]


def test_top_k_passes_tangents_of_what_it_takes():
    x, t = np.array([[1.0, 5.0, 3.0], [2.0, 2.0, 0.0]]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    values, places = jvp(make_case("top_k", {"k": 2, "axis": 1}, [type_of(x)]), [x], [t])
    assert values.tolist() == [[2, 3], [4, 5]]
    assert places is None
    assert Orders("top_k", [x], k=2, axis=1).vjp([[7.0, 8.0], [9.0, 10.0]])[0].tolist() == [[0, 7, 8], [9, 10, 0]]


def test_a_loss_of_sorted_values():
    # Σ w sorted(x)²: the gradient is 2 w[rank] x, the Hessian diagonal.
    x, w = np.array([0.5, -1.0, 2.0, 0.0]), np.array([1.0, 2.0, 3.0, 4.0])
    ordered = value("sort", x, dimension=0)
    (gradient,) = Orders("sort", [x], dimension=0).vjp(2 * w * ordered)
    assert gradient.tolist() == [3.0, -2.0, 16.0, 0.0]
    assert inner(gradient, x) == 2 * inner(w * ordered, ordered)


@pytest.mark.parametrize(
    ("op", "attrs", "operands", "message"),
    [
        ("sort", {"dimension": 1}, ["f64[3]"], r"dimension 1: the operand f64\[3\] has no such axis"),
        ("sort", {"dimension": 0, "num_keys": 2}, ["f64[3]"], "num_keys is 2, but there is 1 operand to sort"),
        ("sort", {"dimension": 0, "num_keys": 0}, ["f64[3]"], "attr 'num_keys'"),
        ("sort", {"dimension": 0}, ["f64[3]", "i32[4]"], r"input 0 is f64\[3\], input 1 is i32\[4\]"),
        ("top_k", {"k": 4, "axis": 0}, ["f64[3]"], r"k is 4, but axis 0 of the operand f64\[3\] has 3 elements"),
        ("top_k", {"k": 1, "axis": 1}, ["f64[3]"], "axis 1: the operand"),
        ("top_k", {"k": 1, "axis": 0}, ["c64[3]"], "it takes integers, floats, bools and times"),
        ("top_k", {"k": -1, "axis": 0}, ["f64[3]"], "attr 'k'"),
    ],
)
def test_messages(op, attrs, operands, message):
    with pytest.raises(TypeRuleError, match=message):
        make_case(op, attrs, map(parse_type, operands))
