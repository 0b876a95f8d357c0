"""Units of time, against NumPy's datetime64 and timedelta64 and against exact fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs.templates import apply, inner, jvp, make_case, transpose
from tests.tiers import examples
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import UNITS, TensorType
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.rules.units import ratio

LAST = 2**63 - 1
NAT = -(2**63)
PAIRS = list(itertools.product(UNITS, UNITS))
LONGER = {unit: k for k, unit in enumerate(UNITS)}


def converted(old, new, *counts):
    (array,) = apply(make_case("convert_element_type", {"new_dtype": new}, [TensorType(old, (len(counts),))]), [held(old, counts)])
    return array.tolist()


def held(dtype, counts):
    return np.array(counts, numpy_dtype(np, dtype))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_ratios_are_numpys(a, b):
    finer, coarser = (a, b) if LONGER[a] > LONGER[b] else (b, a)
    assert ratio(coarser, finer) == int(np.timedelta64(1, coarser).astype(f"m8[{finer}]").astype(int))
    assert ratio(a, b) * ratio(b, a) == 1
    assert all(ratio(a, b) * ratio(b, c) == ratio(a, c) for c in UNITS)


@pytest.mark.parametrize(("a", "b"), PAIRS)
@settings(max_examples=examples(20))
@given(st.lists(st.integers(-4000, 4000), min_size=1, max_size=5))
def test_datetimes_convert_as_numpys(a, b, counts):
    expected = np.array(counts).view(f"M8[{a}]").astype(f"M8[{b}]").view(np.int64)
    assert converted(f"datetime[{a}]", f"datetime[{b}]", *counts) == expected.tolist()


@pytest.mark.parametrize(("a", "b"), PAIRS)
@settings(max_examples=examples(20))
@given(st.integers(-LAST, LAST))
def test_datetimes_convert_exactly_or_to_nat(a, b, count):
    exact = Fraction(count) * ratio(a, b)
    floor = exact.numerator // exact.denominator
    assert converted(f"datetime[{a}]", f"datetime[{b}]", count) == [floor if abs(floor) <= LAST else NAT]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_nat_remains_nat(a, b):
    assert converted(f"datetime[{a}]", f"datetime[{b}]", NAT, 0)[0] == NAT


@pytest.mark.parametrize(("a", "b"), PAIRS)
@settings(max_examples=examples(20))
@given(st.floats(-1e15, 1e15))
def test_durations_scale(a, b, count):
    (scaled,) = converted(f"duration[{a}]", f"duration[{b}]", count)
    exact = Fraction(count) * ratio(a, b)
    assert abs(Fraction(scaled) - exact) <= Fraction(np.spacing(abs(float(exact)))) / 2, "rounded once"


def test_times_are_counts_among_numbers():
    assert converted("datetime[ms]", "f64", -5, 1500) == [-5.0, 1500.0]
    assert converted("datetime[ms]", "i64", -5, LAST) == [-5, LAST]
    assert converted("i64", "datetime[D]", 3, -1) == [3, -1]
    assert converted("f64", "datetime[D]", 3.9, -3.9, 1e30, -1e30, math.nan, math.inf, 2.0**63) == [3, -3, *[NAT] * 5]
    assert converted("f32", "datetime[D]", 3.9, 1e30, math.nan) == [3, NAT, NAT]
    assert converted("u64", "datetime[D]", 7, 2**63 - 1, 2**63, 2**64 - 1) == [7, LAST, NAT, NAT]
    assert converted("datetime[D]", "duration[h]", NAT, 1)[1:] == [24.0]
    for dtype in ("f64", "f16", "duration[h]"):
        assert math.isnan(converted("datetime[D]", dtype, NAT, 1)[0])
    assert converted("duration[h]", "f32", 0.1) == [float(np.float32(0.1))]
    assert converted("f64", "duration[h]", 0.1) == [0.1]
    assert converted("datetime[ms]", "duration[h]", 5_400_000) == [1.5]
    assert converted("duration[h]", "i32", 2.9, -2.9) == [2, -2]
    assert converted("duration[h]", "bool", 0.0, -2.9) == [False, True]
    assert converted("duration[h]", "c128", 2.5) == [2.5 + 0j]


def test_durations_are_no_points_in_time():
    with pytest.raises(TypeRuleError, match=r"a duration\[h\] is not a point in time; use retract to move a datetime by it"):
        make_case("convert_element_type", {"new_dtype": "datetime[h]"}, [TensorType("duration[h]")])


def derivative(old, new, count, moved):
    case = make_case("convert_element_type", {"new_dtype": new}, [TensorType(old)])
    return jvp(case, [held(old, count)], [np.float64(moved)])[0]


def test_derivatives_of_conversions():
    assert derivative("datetime[s]", "datetime[ms]", 7, 1.5) == 1500
    assert derivative("datetime[ms]", "datetime[ms]", 7, 1.5) == 1.5
    assert derivative("datetime[ms]", "datetime[s]", 7, 1.5) is None  # a step
    assert derivative("datetime[ms]", "duration[s]", 7, 1500.0) == 1.5
    assert derivative("datetime[ms]", "f64", 7, 1.5) == 1.5
    assert derivative("i64", "datetime[ms]", 7, 1.5) == 1.5
    assert derivative("f64", "datetime[ms]", 7, 1.5) is None  # it rounds
    assert derivative("duration[h]", "duration[m]", 7, 1.5) == 90
    assert derivative("duration[h]", "i32", 7, 1.5) is None


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_transposes_are_adjoint_on_the_numbers(a, b):
    case = make_case("convert_element_type", {"new_dtype": f"duration[{b}]"}, [TensorType(f"duration[{a}]", (3,))], (True,))
    x, ct = np.array([1.5, -2.0, 0.25]), np.array([3.0, 0.5, -1.0])
    (image,), (pulled,) = apply(case, [x]), transpose(case, [x], [ct])
    np.testing.assert_allclose(inner(image, ct), inner(x, pulled), 1e-15)


@pytest.mark.parametrize("unit", UNITS)
def test_names_of_numpys_times(unit):
    assert dtype_name(np.dtype(f"M8[{unit}]")) == f"datetime[{unit}]"
    assert dtype_name(np.dtype(f"m8[{unit}]")) == f"duration[{unit}]"


def test_times_without_a_unit_of_tidus_have_numpys_name():
    assert dtype_name(np.dtype("M8[M]")) == "datetime64[M]"
    assert dtype_name(np.dtype("M8")) == "datetime64"
    assert dtype_name(np.dtype("m8[25s]")) == "timedelta64[25s]"
