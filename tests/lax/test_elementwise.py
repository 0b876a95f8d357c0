"""Elementwise functions where they are hard: tails, zeros, poles, branch cuts, kinks, and bits."""

from __future__ import annotations

import cmath
import itertools
import math

import mpmath
import numpy as np
import pytest

from tests.graphs.templates import jvp, make_case, type_of
from tests.lax.sampling.elementwise_samples import REFERENCE, WITHIN, between, next_float
from tests.lax.test_edges import tangent, value
from tests.tiers import few
from tidu_cli.checking.numeric.laws import check_primitive_numerically
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.types import COMPLEXES, FLOATS, INEXACT
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.elementwise import comparison, elementary, rounding, special
from tidu_cli.lax.vocabulary import BUILTIN

NAN, INF = math.nan, math.inf
TINY = 5e-324
MODULES = (elementary, special, rounding, comparison)


def spread(*magnitudes):
    return [s * m for m in magnitudes for s in (1, -1)]


SMALL = spread(1e-300, 1e-160, 1e-20, 1e-9, 1e-5, 0.001, 0.09, 0.1, 0.3, 0.49)
UNIT = [*SMALL, *spread(0.5, 0.51, 0.7, 0.75, 0.9, 0.99, 1 - 1e-7, 1 - 1e-12)]
LINE = [*UNIT, *spread(1.0, 1.0001, 1.24, 1.5, 2.0, 3.3, 5.9, 7.5, 12.1, 26.0)]
WIDE = [*LINE, *spread(33.3, 710.0, 1e5, 1e16, 1e100, 1e154, 1e300)]
RIGHT = [x for x in WIDE if x > 0]
AROUND_1_AND_2 = [n + d for n in (1, 2) for d in spread(1e-15, 1e-12, 1e-8, 1e-5, 0.01, 0.2, 0.49)]
ABOVE_POLES = [n + d for n in (-1, -2, -7) for d in (1e-9, 1e-6, 1e-3, 0.05, 0.1)]

ULPS = {
    "exp2": (3, [x for x in WIDE if abs(x) < 1000]),
    "expm1": (3, [x for x in WIDE if abs(x) < 700]),
    "log1p": (3, [x for x in WIDE if x > -1]),
    "logistic": (3, [x for x in WIDE if abs(x) < 700]),
    "rsqrt": (3, RIGHT),
    "cbrt": (3, WIDE),
    "tan": (3, LINE),
    "asin": (3, UNIT),
    "acos": (3, UNIT),
    "atan": (3, WIDE),
    "sinh": (3, [x for x in WIDE if abs(x) < 700]),
    "cosh": (3, [x for x in WIDE if abs(x) < 700]),
    "asinh": (3, WIDE),
    "acosh": (3, [x for x in WIDE if x > 1]),
    "atanh": (3, UNIT),
    "erf": (4, WIDE),
    "erfc": (8, [*[x for x in LINE if x < 26.1], *np.linspace(0.8, 1, 300).tolist()]),
    "erf_inv": (6, UNIT),
    "lgamma": (6, [*RIGHT[:-1], *AROUND_1_AND_2]),
    "digamma": (6, [*RIGHT, *AROUND_1_AND_2, *ABOVE_POLES]),
    "bessel_i0e": (6, [x for x in WIDE if abs(x) < 1e5]),
    "bessel_i1e": (12, [x for x in WIDE if abs(x) < 1e5]),
}
"""Of each function of reals, by how many units in the last place it may be off, and where."""


@pytest.mark.parametrize("op", ULPS)
def test_reals_are_right_to_a_few_units_in_the_last_place(op):
    ulps, points = ULPS[op]
    values = value(op, np.array(points))
    for x, y in zip(points, values.tolist(), strict=True):
        with mpmath.workdps(400 if abs(x) < 1e-9 else 50):
            exact = REFERENCE[op](mpmath.mpf(x))
            assert abs(y - exact) <= ulps * math.ulp(float(exact)), (op, x, y, exact)


@pytest.mark.parametrize("op", [op for op in ULPS if op != "digamma"])
def test_single_and_half_precision_are_rounded_double(op):
    for dtype in sorted(FLOATS - {"f64"}):
        dt = numpy_dtype(np, dtype)
        x = np.array([x for x in ULPS[op][1] if 1e-2 < abs(x) < 200]).astype(dt)
        exact = value(op, x.astype(np.float64))
        with np.errstate(over="ignore"):
            near = np.abs(exact) < {"f16": 6e4, "bf16": 1e38, "f32": 1e38}[dtype]
        narrow = value(op, x)[near].astype(np.float64)
        epsilon = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23}[dtype]
        np.testing.assert_allclose(narrow, exact[near], 4 * epsilon, 2.0**-24 if dtype == "f16" else 1e-37, err_msg=dtype)


HARD = [
    complex(a, b)
    for a, b in itertools.product(spread(1e-19, 1e-9, 1e-3, 0.4, 1 - 1e-9, 1.0, 1 + 1e-6, 1.7, 3.1), repeat=2)
    if abs(b) != 1.0 or abs(a) < 1e-4 or abs(a) > 0.1
]
LOSING = {"logistic": 1e-12, "exp2": 4e-15}
"""Relative errors where the function itself magnifies that of the argument: at a pole, and in turning by an angle."""


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(
    "op", [op for op, (dtypes, *_) in WITHIN.items() if "c128" in dtypes and op != "atan2"] + ["log1p", "logistic"]
)
def test_complex_functions_keep_their_digits_in_the_norm(op, dtype):
    z = np.array(HARD).astype(numpy_dtype(np, dtype))
    values = value(op, z)
    for a, b in zip(z.tolist(), values.tolist(), strict=True):
        with mpmath.workdps(80):
            exact = complex(REFERENCE[op](mpmath.mpc(a)))
        if not cmath.isfinite(exact):  # a branch point
            continue
        tolerance = 3e-6 if dtype == "c64" and op == "logistic" else 1.5e-6 if dtype == "c64" else LOSING.get(op, 2e-15)
        assert abs(b - exact) <= tolerance * abs(exact), (op, a, b, exact)


def test_square_of_a_complex_number_keeps_the_digits_of_both_parts():
    z = value("square", np.array([complex(1 + 1e-12, 1), 1e200 * (1 + 1j), 3 + 4j]))
    assert z[0].real == pytest.approx(2 * ((1 + 1e-12) - 1) + ((1 + 1e-12) - 1) ** 2, rel=1e-15)
    assert z[1] == complex(0, INF)
    assert z[2] == -7 + 24j


def test_complex_atan2_is_the_complex_angle():
    y, x = np.array([1e-12 + 1e-13j, 1 + 1j, -1e200 + 0j, 3 + 0j, 0j]), np.array([2 + 1j, 2 - 1j, -1e200 + 0j, -4 + 0j, -2 + 0j])
    angles = value("atan2", y, x)
    with mpmath.workdps(60):
        expected = [complex(REFERENCE["atan2"](mpmath.mpc(a), mpmath.mpc(b))) for a, b in zip(y[:2], x[:2], strict=True)]
    np.testing.assert_allclose(angles, [*expected, math.atan2(-1, -1), math.atan2(3, -4), math.pi], 1e-14)
    np.testing.assert_allclose(angles[:1], (y / x)[:1], 1e-11)


CUTS = {
    "log1p": [-2.0],
    "rsqrt": [-2.0],
    "asin": [2.0, -2.0],
    "acos": [2.0, -2.0],
    "acosh": [0.5, -0.5, -2.0],
    "atanh": [2.0, -2.0],
    "atan": [2j, -2j],
    "asinh": [2j, -2j],
}
SLOPES = {
    "log1p": lambda z: 1 / (1 + z),
    "rsqrt": lambda z: -1 / (2 * z * mpmath.sqrt(z)),
    "asin": lambda z: 1 / (mpmath.sqrt(1 - z) * mpmath.sqrt(1 + z)),
    "acos": lambda z: -1 / (mpmath.sqrt(1 - z) * mpmath.sqrt(1 + z)),
    "acosh": lambda z: 1 / (mpmath.sqrt(z - 1) * mpmath.sqrt(z + 1)),
    "atanh": lambda z: 1 / (1 - z * z),
    "atan": lambda z: 1 / (1 + z * z),
    "asinh": lambda z: 1 / mpmath.sqrt(1 + z * z),
    "tan": lambda z: 1 / mpmath.cos(z) ** 2,
    "exp2": lambda z: mpmath.log(2) * 2**z,
    "expm1": mpmath.exp,
    "erf": lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
    "erfc": lambda x: -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),
    "cbrt": lambda x: 1 / (3 * mpmath.cbrt(x) ** 2),
    "lgamma": mpmath.digamma,
    "digamma": lambda x: mpmath.psi(1, x),
}


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(("op", "point"), [(op, p) for op, points in CUTS.items() for p in points])
def test_the_sign_of_zero_tells_the_side_of_a_branch_cut(op, point, zero):
    # A point on the cut is as one right beside it: the value, and the derivative with it.
    on_real_axis = not isinstance(point, complex)
    z = complex(point, zero) if on_real_axis else complex(zero, point.imag)
    step = math.copysign(1e-40, zero)
    with mpmath.workdps(60):
        beside = mpmath.mpc(point, step) if on_real_axis else mpmath.mpc(step, point.imag)
        expected, slope = complex(REFERENCE[op](beside)), complex(SLOPES[op](beside))
    np.testing.assert_allclose(complex(value(op, z)), expected, 1e-14)
    np.testing.assert_allclose(complex(tangent(op, [z], [1 + 0j])), slope, 1e-14)


@pytest.mark.parametrize("op", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_inverse_functions_far_out_and_in_all_quadrants(op):
    z = np.array([a * q for a in (0.3 + 0.2j, 2 + 1.5j, 1e9 + 3e9j, 1e100 - 1e90j) for q in (1, 1j, -1, -1j)])
    for a, b, d in zip(z.tolist(), value(op, z).tolist(), tangent(op, [z], [np.ones_like(z)]).tolist(), strict=True):
        with mpmath.workdps(300):
            expected, slope = complex(REFERENCE[op](mpmath.mpc(a))), complex(SLOPES[op](mpmath.mpc(a)))
        assert abs(b - expected) <= 2e-15 * abs(expected), (a, b, expected)
        assert abs(d - slope) <= 2e-15 * abs(slope), (a, d, slope)


def test_slopes_keep_their_digits_near_singularities_and_in_tails():
    near = [1 - 1e-13, -1 + 1e-13, 0.9999, 0.1]
    points = {
        "asin": near, "acos": near, "atanh": near, "acosh": [1 + 1e-13, 1.5, 1e100], "asinh": [1e-9, 30.0], "atan": [1e-9, 1e9],
        "expm1": [-50.0, -1.0, 3.0], "erfc": [0.5, 4.0], "erf": [4.0], "cbrt": [-1e-200, 1e300], "tan": [1.5707, 0.3],
        "lgamma": [1e-5, 1.4616, 50.0], "digamma": [1e-5, 3.0, -2.5],
    }  # fmt: skip
    for op, xs in points.items():
        slopes = tangent(op, [np.array(xs)], [np.ones(len(xs))])
        for x, d in zip(xs, slopes.tolist(), strict=True):
            with mpmath.workdps(60):
                slope = SLOPES[op](mpmath.mpf(abs(x)) if op == "cbrt" else mpmath.mpf(x))
            tolerance = 1e-12 if (op, x) == ("lgamma", 1.4616) or op == "tan" else 4e-15
            assert abs(d - slope) <= tolerance * abs(slope), (op, x, d, slope)


SPECIAL = {
    "exp2": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (3.0, 8.0), (-1074.0, TINY)],
    "expm1": [(INF, INF), (-INF, -1.0), (-0.0, -0.0), (TINY, TINY)],
    "log1p": [(INF, INF), (-1.0, -INF), (-2.0, NAN), (-0.0, -0.0), (TINY, TINY)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (4.0, 0.5)],
    "cbrt": [(-8.0, -2.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "square": [(INF, INF), (-INF, INF), (-0.0, 0.0), (1e200, INF)],
    "tan": [(INF, NAN), (-0.0, -0.0)],
    "asin": [(1.0, math.pi / 2), (-1.0, -math.pi / 2), (1.5, NAN), (-0.0, -0.0)],
    "acos": [(1.0, 0.0), (-1.0, math.pi), (-1.5, NAN)],
    "atan": [(INF, math.pi / 2), (-INF, -math.pi / 2), (-0.0, -0.0)],
    "sinh": [(INF, INF), (-INF, -INF), (711.0, INF), (-0.0, -0.0)],
    "cosh": [(INF, INF), (-INF, INF), (0.0, 1.0)],
    "asinh": [(INF, INF), (-INF, -INF), (-0.0, -0.0), (TINY, TINY)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (INF, INF)],
    "atanh": [(1.0, INF), (-1.0, -INF), (1.5, NAN), (-0.0, -0.0)],
    "erf": [(INF, 1.0), (-INF, -1.0), (-0.0, -0.0)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0), (30.0, 0.0), (1e308, 0.0)],
    "erf_inv": [(1.0, INF), (-1.0, -INF), (1.5, NAN), (-0.0, -0.0), (0.0, 0.0)],
    "lgamma": [(0.0, INF), (-0.0, INF), (-1.0, INF), (-3.0, INF), (INF, INF), (-INF, INF), (1.0, 0.0), (2.0, 0.0), (1e308, INF)],
    "digamma": [(0.0, NAN), (-0.0, NAN), (-1.0, NAN), (INF, INF), (-INF, NAN)],
    "bessel_i0e": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "bessel_i1e": [(0.0, 0.0), (INF, 0.0), (-INF, -0.0)],
    "floor": [(-0.5, -1.0), (-0.0, -0.0), (INF, INF), (2.0**53, 2.0**53)],
    "ceil": [(-0.5, -0.0), (0.5, 1.0), (-INF, -INF)],
    "round": [(0.5, 1.0), (1.5, 2.0), (-0.5, -1.0), (-2.5, -3.0), (0.49999999999999994, 0.0),
              (2.0**52 + 1, 2.0**52 + 1), (-0.3, -0.0), (INF, INF)],
    "logistic": [(INF, 1.0), (-INF, 0.0)],
}  # fmt: skip
"""Pairs of an argument and the value there."""


@pytest.mark.parametrize("op", SPECIAL)
def test_special_values(op):
    pairs = [*SPECIAL[op], (NAN, NAN)]
    np.testing.assert_array_equal(value(op, np.array([x for x, _ in pairs])), [y for _, y in pairs])
    for x, y in pairs:
        number = float(value(op, x))
        assert math.isnan(number) if math.isnan(y) else (number, math.copysign(1, number)) == (y, math.copysign(1, y)), (op, x)


def test_special_values_of_complex_functions():
    assert value("exp2", complex(3, 0)) == 8
    assert value("exp2", complex(-INF, 1)) == 0
    assert value("exp2", complex(INF, 0)) == complex(INF, 0)
    assert value("expm1", complex(-INF, 0)) == -1
    assert value("logistic", [-1000 + 1j, 1000 + 1j]).tolist() == [0, 1]
    assert value("rsqrt", [complex(INF, 0), complex(-INF, 1), complex(0, INF)]).tolist() == [0, 0, 0]
    assert value("rsqrt", 0j).real == INF
    assert math.copysign(1, value("log1p", complex(0.5, -0.0)).imag) == -1


def test_derivatives_at_the_ends_of_domains():
    assert tangent("asin", [[1.0, -1.0, 2.0]], [np.ones(3)]).tolist()[:2] == [INF, INF]
    assert tangent("acos", [[1.0, -1.0]], [np.ones(2)]).tolist() == [-INF, -INF]
    assert tangent("acosh", [[1.0, INF]], [np.ones(2)]).tolist() == [INF, 0]
    assert tangent("atanh", [[1.0, -1.0]], [np.ones(2)]).tolist() == [INF, INF]
    assert tangent("erf_inv", [[1.0, -1.0]], [np.ones(2)]).tolist() == [INF, INF]
    assert tangent("cbrt", [[0.0, -8.0]], [np.ones(2)]).tolist() == [INF, 1 / 12]
    assert tangent("rsqrt", [[0.0, INF]], [np.ones(2)]).tolist() == [-INF, 0]
    assert tangent("bessel_i0e", [0.0], [1.0]) == 0
    assert tangent("bessel_i1e", [[0.0, 1e-17]], [np.ones(2)]).tolist() == [0.5, 0.5]
    assert tangent("igamma", [[2.0], [0.0]], [None, np.ones(1)]) == 0


def test_atan2_everywhere():
    points = [(y, x) for y in (0.0, -0.0, 1.0, -1.0, INF, -INF) for x in (0.0, -0.0, 1.0, -1.0, INF, -INF)]
    y, x = np.array(points).T
    np.testing.assert_array_equal(value("atan2", y, x), [math.atan2(*p) for p in points])
    for scale in (1e-200, 1e-160, 1.0, 1e160, 1e200):
        ones = np.ones(1)
        by_y, by_x = (tangent("atan2", [[3 * scale], [4 * scale]], t) for t in ([ones, None], [None, ones]))
        np.testing.assert_allclose([by_y[0] * scale, by_x[0] * scale], [0.16, -0.12], 1e-15)
    assert math.isnan(tangent("atan2", [0.0, 0.0], [1.0, None]))
    assert tangent("atan2", [INF, 1.0], [1.0, None]) == 0
    half = np.array([300.0], np.float16)
    assert float(tangent("atan2", [half, half], [half, None])[0]) == 0.5


@pytest.mark.parametrize("dtype", sorted(FLOATS))
def test_nextafter_steps_by_one_bit(dtype):
    dt = numpy_dtype(np, dtype)
    largest = _largest(dt)
    for x, y in [(0.0, 1.0), (0.0, -1.0), (-0.0, 1.0), (1.0, 2.0), (1.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (largest, INF)]:
        neighbour = value("nextafter", np.array(x).astype(dt), np.array(y).astype(dt))
        if x == 0:
            assert float(neighbour) == math.copysign(float(np.array(1, f"u{dt.itemsize}").view(dt)), y)
        else:
            assert float(neighbour) == (INF if x == largest else next_float(dtype)(x, y))
    assert math.isnan(value("nextafter", np.array(NAN).astype(dt), np.array(1).astype(dt)))


def _largest(dt):
    infinity = int(np.array(INF).astype(dt).view(f"u{dt.itemsize}"))
    return float(np.array(infinity - 1, f"u{dt.itemsize}").view(dt))


def test_round_to_even():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994])
    assert value("round", x, rounding_method="TO_NEAREST_EVEN").tolist() == [0, 2, 2, 0, -2, 0]
    with pytest.raises(TypeRuleError, match="rounding_method"):
        value("round", x, rounding_method="UP")


def test_rem_of_floats_and_of_integers():
    remainders = value("rem", [5.0, -5.0, 5.0, 1.0, -0.0, INF, 1.0], [3.0, 3.0, -3.0, INF, 1.0, 2.0, 0.0])
    np.testing.assert_array_equal(remainders, [2, -2, 2, 1, 0, NAN, NAN])
    x, y = np.array([5, -5, -128, 7, -7], np.int8), np.array([0, 0, -1, -3, 3], np.int8)
    assert value("rem", x, y).tolist() == [5, -5, 0, 1, -1]
    assert value("rem", np.array([5, 255], np.uint8), np.array([0, 7], np.uint8)).tolist() == [5, 3]


def test_rem_moves_against_its_quotient():
    x, y = np.array([5.5, -5.5, 5.5, -5.5, 1.0, 1.0]), np.array([2.0, 2.0, -2.0, -2.0, 3.0, INF])
    assert tangent("rem", [x, y], [np.ones(6), None]).tolist() == [1] * 6
    assert tangent("rem", [x, y], [None, np.ones(6)]).tolist() == [-2, 2, 2, -2, 0, 0]
    # x / y rounds up to 3, where 2 y is the multiple that was taken away.
    x, y = np.array([3 * 0.7 * (1 - 2**-53)]), np.array([0.7])
    quotient = (x - value("rem", x, y)) / y
    np.testing.assert_allclose(tangent("rem", [x, y], [None, np.ones(1)]), -np.round(quotient))


def test_clamp_has_strict_masks():
    low, x, high = np.zeros(5), np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), np.ones(5)
    ones = np.ones(5)
    assert tangent("clamp", [low, x, high], [ones, None, None]).tolist() == [1, 0, 0, 0, 0]
    assert tangent("clamp", [low, x, high], [None, ones, None]).tolist() == [0, 0, 1, 0, 0]
    assert tangent("clamp", [low, x, high], [None, None, ones]).tolist() == [0, 0, 0, 0, 1]
    crossed = [np.full(5, 2.0), x + 1, high]
    assert tangent("clamp", crossed, [ones, ones, None]).tolist() == [0] * 5
    assert tangent("clamp", crossed, [None, None, ones]).tolist() == [1] * 5
    assert tangent("clamp", [0.0, x, 1.0], [3.0, None, 5.0]).tolist() == [3, 0, 0, 0, 5]


def slopes_of_clamp(operands):
    ones = np.ones(1)
    points = [np.array([x], float) for x in operands]
    return [float(tangent("clamp", points, [ones if j == k else None for j in range(3)])[0]) for k in range(3)]


@pytest.mark.parametrize("operands", list(itertools.permutations((1.0, 2.0, 4.0))))
def test_clamp_differentiates_as_it_computes_in_every_order(operands):
    step = 2.0**-20  # differences of a function that is straight here are exact
    for k, slope in enumerate(slopes_of_clamp(operands)):
        left, right = ([x + s * step * (j == k) for j, x in enumerate(operands)] for s in (-1, 1))
        assert slope == (float(value("clamp", *right)) - float(value("clamp", *left))) / (2 * step)


@pytest.mark.parametrize(
    ("operands", "slopes"),
    [
        ((0.0, 0.0, 1.0), [0, 0, 0]),  # on a bound
        ((0.0, 1.0, 1.0), [0, 0, 0]),
        ((-0.0, 0.0, 1.0), [0, 0, 0]),
        ((1.0, 0.0, 1.0), [0, 0, 1]),  # between bounds that meet there is nothing
        ((1.0, 1.0, 1.0), [0, 0, 1]),
        ((1.0, 2.0, 1.0), [0, 0, 1]),
        ((2.0, 1.0, 1.0), [0, 0, 1]),
        ((2.0, 2.0, 1.0), [0, 0, 1]),
        ((-INF, 0.0, INF), [0, 1, 0]),
        ((INF, 0.0, -INF), [0, 0, 1]),
        ((INF, INF, INF), [0, 0, 1]),
        *((tuple(NAN if k in at else x for k, x in enumerate(operands)), [0, 0, 0])
          for at in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)) for operands in itertools.permutations((1.0, 2.0, 4.0))),
    ],
)  # fmt: skip
def test_clamp_where_operands_tie_or_are_not_numbers(operands, slopes):
    assert slopes_of_clamp(operands) == slopes


def test_clamp_of_odd_values():
    np.testing.assert_array_equal(value("clamp", 0.0, [NAN, -1.0, 2.0, INF], 1.0), [NAN, 0, 1, 1])
    assert math.isnan(value("clamp", NAN, 0.5, 1.0))
    assert value("clamp", 1.0, [0.5, 2.0], 0.0).tolist() == [0, 0]
    assert tangent("clamp", [0.0, [2.0], 1.0], [None, [NAN], None]).tolist() == [0]


@pytest.mark.parametrize(("low", "high"), [(np.zeros(2), 1.0), (0.0, np.ones(3, np.float32))])
def test_clamp_wants_bounds_that_fit(low, high):
    with pytest.raises(TypeRuleError, match="the bound"):
        value("clamp", low, np.zeros(3), high)


def test_shifts_past_all_bits():
    x = np.array([1, -1, 3, -128], np.int8)
    for amount in (8, 9, 127, -1, -128):
        n = np.full(4, amount, np.int8)
        assert value("shift_left", x, n).tolist() == [0] * 4
        assert value("shift_right_logical", x, n).tolist() == [0] * 4
        assert value("shift_right_arithmetic", x, n).tolist() == [0, -1, 0, -1]
    assert value("shift_left", x, np.full(4, 7, np.int8)).tolist() == [-128, -128, -128, 0]
    assert value("shift_right_logical", x, np.full(4, 1, np.int8)).tolist() == [0, 127, 1, 64]


@pytest.mark.parametrize("op", ["and", "shift_left", "not", "clz"])
def test_bits_are_those_of_integers(op):
    with pytest.raises(TypeRuleError, match="integers"):
        value(op, *[np.ones(2)] * BUILTIN[op].domain.arity)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 5, 10])
def test_polygamma_on_both_sides_of_0(m):
    x = np.array([1e-8, 0.3, 0.5, 2.0, 33.3, 1e8, -1e-7, -0.25, -0.6, -7.3, -1234.7])
    for a, number in zip(x.tolist(), value("polygamma", np.full(11, float(m)), x).tolist(), strict=True):
        with mpmath.workdps(80):
            exact = float(mpmath.psi(m, a)) if a > -100 else _reflected_polygamma(m, a)
        assert number == pytest.approx(exact, rel=1e-12), a


def _reflected_polygamma(m, x):
    return float((-1) ** m * mpmath.psi(m, 1 - mpmath.mpf(x)) - mpmath.pi * mpmath.diff(lambda t: mpmath.cot(mpmath.pi * t), x, m))


def test_polygamma_and_zeta_at_their_poles():
    m, x = np.array([1.0, 2.0, 1.0, 2.0, 0.0, 0.5, -1.0, 3.0]), np.array([0.0, 0.0, -4.0, -4.0, -4.0, 2.0, 2.0, -1e17])
    np.testing.assert_array_equal(value("polygamma", m, x), [INF, NAN, INF, NAN, NAN, NAN, NAN, INF])
    s, q = np.array([1.0, 0.5, 2.0, 3.0, 2.5, 2.0]), np.array([3.0, 2.0, -1.0, -1.0, -0.5, INF])
    np.testing.assert_array_equal(value("zeta", s, q), [INF, NAN, INF, NAN, NAN, 0])
    assert value("zeta", 3.0, -2.5) == pytest.approx(float(mpmath.zeta(3, mpmath.mpf("3.5"))), rel=1e-14)


REFUSING = [(p.name, k) for p in special.PRIMITIVES for k in p.rules.inert]


@pytest.mark.parametrize(("op", "k"), REFUSING)
def test_inert_operands_are_refused(op, k):
    arity = BUILTIN[op].domain.arity
    with pytest.raises(MissingRuleError, match=f"{op} has no derivative in input {k}"):
        tangent(op, [0.5] * arity, [1.0 if j == k else None for j in range(arity)])


def test_nextafter_has_no_derivative():
    with pytest.raises(MissingRuleError, match="no derivative"):
        tangent("nextafter", [1.0, 2.0], [1.0, None])


DIFFERENTIABLE = [
    p
    for module in MODULES
    for p in module.PRIMITIVES
    if p.domain.dtypes & INEXACT and p.rules.jvp is not None and set(p.rules.inert) != {0, 1}
]


@pytest.mark.parametrize("primitive", few(DIFFERENTIABLE, 12), ids=lambda p: p.name)
def test_derivatives_of_first_and_second_order_and_their_adjoints(primitive):
    for verdict in check_primitive_numerically(primitive, BUILTIN, {"f64", "c128"}):
        assert verdict.error is not None and verdict.ok, verdict


@pytest.mark.parametrize("op", WITHIN)
def test_jvp_keeps_the_dtype_and_what_precision_it_has(op):
    dtypes, *intervals = WITHIN[op]
    moving = [k for k in range(len(intervals)) if k not in BUILTIN[op].rules.inert]
    for dtype in sorted(dtypes):
        operands = [between(dtype, (3,), *interval, k) for k, interval in enumerate(intervals)]
        tangents = [between(dtype, (3,), -1, 1, 9) if k in moving else None for k in range(len(operands))]
        (narrow,) = jvp(make_case(op, {}, map(type_of, operands)), operands, tangents)
        wide = np.complex128 if dtype in COMPLEXES else np.float64
        operands, tangents = [x.astype(wide) for x in operands], [None if t is None else t.astype(wide) for t in tangents]
        (expected,) = jvp(make_case(op, {}, map(type_of, operands)), operands, tangents)
        tolerance = {"f16": 1e-2, "bf16": 8e-2, "f32": 1e-5, "c64": 1e-5}.get(dtype, 1e-15)
        np.testing.assert_allclose(narrow.astype(wide), expected, tolerance, tolerance, err_msg=dtype)
