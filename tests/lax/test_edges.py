"""Kinks, poles, ties and integers: the corners, where conventions and not formulas decide (they are JAX's and XLA's)."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidu_cli
from tests.graphs.templates import apply, jvp, make_case, type_of
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import SIGNED
from tidu_cli.lax.arrays.structural import numpy_dtype

NAN, INF = math.nan, math.inf


def value(op, *operands, **attrs):
    operands = [np.asarray(x) for x in operands]
    return np.asarray(apply(make_case(op, attrs, map(type_of, operands)), operands)[0])


def tangent(op, operands, tangents, **attrs):
    operands = [np.asarray(x) for x in operands]
    tangents = [None if t is None else np.asarray(t) for t in tangents]
    return jvp(make_case(op, attrs, map(type_of, operands)), operands, tangents)[0]


@pytest.mark.parametrize("op", ["max", "min"])
def test_ties_split_equally(op):
    assert tangent(op, [1.0, 1.0], [1.0, 3.0]) == 2.0
    assert tangent(op, [1.0, 1.0], [None, 3.0]) == 1.5
    assert tangent(op, [1.0, 2.0], [1.0, 3.0]) == (3.0 if op == "max" else 1.0)
    assert tangent(op, [-0.0, 0.0], [1.0, 3.0]) == 2.0


def test_reduce_max_shares_among_ties():
    x = np.array([[1.0, 2.0, 2.0], [3.0, 0.0, 3.0]])
    t = np.array([[1.0, 3.0, 5.0], [1.0, 10.0, 2.0]])
    assert tangent("reduce_max", [x], [t], axes=[1]).tolist() == [4.0, 1.5]
    assert tangent("reduce_max", [x], [t], axes=[0, 1]) == 1.5
    assert tangent("reduce_max", [x], [t], axes=[]).tolist() == t.tolist()


def test_abs_at_0():
    assert tangent("abs", [0.0], [5.0]) == 0
    assert tangent("abs", [0j], [5.0 + 1j]) == 0
    assert tangent("abs", [[-2.0, 3.0]], [[1.0, 1.0]]).tolist() == [-1.0, 1.0]


def test_sign_has_derivative_0_for_reals_and_turns_for_complex_numbers():
    assert tangent("sign", [2.0], [1.0]) is None
    # z / |z| does not change along the ray through z, and turns with a step across it.
    assert abs(tangent("sign", [2 + 0j], [1 + 0j])) < 1e-15
    assert abs(tangent("sign", [2 + 0j], [1j]) - 0.5j) < 1e-15


@pytest.mark.parametrize(
    ("x", "y", "by_x", "by_y"),
    [(0.0, 0.0, 0, 0), (0.0, 1.0, 1, 0), (0.0, 2.0, 0, 0), (0.0, 0.5, INF, 0), (2.0, 0.0, 0, math.log(2)), (-2.0, 2.0, -4, NAN)],
)
def test_pow_where_its_formulas_would_fail(x, y, by_x, by_y):
    np.testing.assert_equal(float(tangent("pow", [x, y], [1.0, None])), by_x)
    np.testing.assert_allclose(float(tangent("pow", [x, y], [None, 1.0])), by_y, 1e-15)


@pytest.mark.parametrize("dtype", ["f32", "f64", "c128"])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1), (0.5, 3)])
def test_pow_forward_and_reverse_have_one_convention(dtype, x, y):
    z = tidu_cli.trace(lambda x, y: x**y, x=f"{dtype}[]", y=f"{dtype}[]", output="z")
    at = {"x": np.asarray(x, numpy_dtype(np, dtype)), "y": np.asarray(y, numpy_dtype(np, dtype))}
    reverse = tidu_cli.evaluate(tidu_cli.vjp(z, ["x", "y"]), {**at, "z@-1": 1.0})
    for key in ("x", "y"):
        forward = tidu_cli.evaluate(tidu_cli.jvp(z, key), {**at, f"{key}@1": 1.0})["z@1"]
        assert forward == reverse[f"{key}@-1"] and np.isfinite(forward)
        assert x or y or forward == 0


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_pow_at_exponent_0_changes_with_base_and_exponent(order):
    """The mixed second derivative x**(y-1) (1 + y log x) is 1/x at y = 0."""
    z = tidu_cli.trace(lambda x, y: x**y, x="f64[]", y="f64[]", output="z")
    mixed = tidu_cli.jvp(tidu_cli.jvp(z, order[0]), order[1])
    seeds = {f"{order[0]}@1": 1.0, f"{order[1]}@2": 1.0}
    assert tidu_cli.evaluate(mixed, {"x": 2.0, "y": 0.0, **seeds})["z@1@2"] == 0.5


def test_pow_with_integer_exponents():
    y = np.array([0, 1, 2, 3], np.int32)
    assert value("pow", [0.0, 0.0, 0.0, -2.0], y).tolist() == [1, 0, 0, -8]
    assert tangent("pow", [[0.0, 0.0, 0.0, -2.0], y], [np.ones(4), None]).tolist() == [0, 1, 0, 12]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_large_exponents_keep_their_parity(dtype):
    odd = 2**24 + 1
    minus_one = np.array(-1).astype(numpy_dtype(np, dtype))
    assert float(value("integer_pow", minus_one, y=odd)) == -1
    assert float(value("integer_pow", minus_one, y=odd + 1)) == 1
    assert float(value("pow", minus_one, np.array(odd, np.int32))) == -1


def test_integer_pow_of_0():
    assert tangent("integer_pow", [0.0], [3.0], y=0) is None
    assert tangent("integer_pow", [0.0], [3.0], y=1) == 3
    assert tangent("integer_pow", [0.0], [3.0], y=2) == 0
    assert value("integer_pow", [NAN, 0.0], y=0).tolist() == [1, 1]


def test_select_does_not_leak_from_the_other_case():
    which = np.array([False, True])
    assert value("select_n", which, [1.0, NAN], [INF, 4.0]).tolist() == [1, 4]
    assert tangent("select_n", [which, [1.0, 2.0], [3.0, 4.0]], [None, [1.0, NAN], [INF, 4.0]]).tolist() == [1, 4]
    assert tangent("select_n", [which, [1.0, 2.0], [3.0, 4.0]], [None, None, [NAN, 4.0]]).tolist() == [0, 4]


def test_select_clamps_its_index():
    cases = [np.full(4, k, float) for k in range(3)]
    assert value("select_n", np.array([-1, 0, 2, 9], np.int32), *cases).tolist() == [0, 0, 2, 2]


@pytest.mark.parametrize("dtype", sorted(SIGNED))
def test_signed_division_truncates(dtype):
    dt = numpy_dtype(np, dtype)
    low = np.iinfo(dt).min
    x, y = np.array([7, -7, 7, -7, 0, low, 5, -5, 0], dt), np.array([2, 2, -2, -2, 3, -1, 0, 0, 0], dt)
    assert value("div", x, y).tolist() == [3, -3, -3, 3, 0, low, -1, -1, -1]


def test_unsigned_division():
    assert value("div", np.array([7, 200, 5], np.uint8), np.array([2, 0, 6], np.uint8)).tolist() == [3, 255, 0]


def test_conversion_to_integers_saturates():
    x = [NAN, INF, -INF, 300.0, -300.7, 2.9, -2.9]
    assert value("convert_element_type", x, new_dtype="i8").tolist() == [0, 127, -128, 127, -128, 2, -2]
    assert value("convert_element_type", x, new_dtype="u8").tolist() == [0, 255, 0, 255, 0, 2, 0]
    big = [1e30, -1e30, 2.0**63, 2.0**62]
    assert value("convert_element_type", big, new_dtype="i64").tolist() == [2**63 - 1, -(2**63), 2**63 - 1, 2**62]
    assert value("convert_element_type", big, new_dtype="u64").tolist() == [2**64 - 1, 0, 2**63, 2**62]
    assert value("convert_element_type", np.array([NAN, 70000.0], np.float32), new_dtype="i32").tolist() == [0, 70000]


def test_conversions_between_integers_wrap():
    assert value("convert_element_type", np.array([-1, 300]), new_dtype="u8").tolist() == [255, 44]


def test_nan_wins_maxima_and_minima():
    x, y = [NAN, 1.0, 2.0], [1.0, NAN, 3.0]
    np.testing.assert_equal(value("max", x, y), [NAN, NAN, 3])
    np.testing.assert_equal(value("min", x, y), [NAN, NAN, 2])
    assert math.isnan(value("reduce_max", x, axes=[0]))


def test_empty_maxima_are_the_lowest_value():
    assert value("reduce_max", np.zeros((0, 2)), axes=[0]).tolist() == [-INF, -INF]
    assert value("reduce_max", np.zeros(0, np.int8), axes=[0]) == -128
    assert value("reduce_max", np.zeros(0, np.uint8), axes=[0]) == 0


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_half_precision_accumulates_in_single(dtype):
    ones = np.ones(5000).astype(numpy_dtype(np, dtype))
    assert float(value("reduce_sum", ones, axes=[0])) == float(np.float64(5000).astype(ones.dtype))
    assert float(value("dot_general", ones, ones, dimension_numbers=[[[0], [0]], [[], []]])) == float(
        np.float64(5000).astype(ones.dtype)
    )


def test_complex_is_made_part_by_part():
    z = value("complex", 1.0, INF)
    assert z.real == 1 and z.imag == INF


def test_logistic_and_log1p_keep_their_tails():
    assert value("logistic", [-1000.0, -700.0, 0.0, 1000.0]).tolist() == [0, math.exp(-700), 0.5, 1]
    assert value("log1p", 1e-20) == 1e-20


@pytest.mark.parametrize(("old", "new"), [(complex, "f64"), (float, "i32"), (complex, "i64")])
def test_dot_general_does_not_lower_the_kind(old, new):
    with pytest.raises(TypeRuleError, match="preferred_element_type"):
        value("dot_general", np.ones(2, old), np.ones(2, old), dimension_numbers=[[[0], [0]], [[], []]], preferred_element_type=new)
