"""The densities that derivatives of igamma and betainc are, of orders of any size: as good as x is, as mpmath has them."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import function, key, op
from tests.graphs.templates import type_of
from tests.tiers import examples
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

EPSILON = {"f64": 2.0**-53, "f32": 2.0**-24}
DIGITS = 80
X = key("x")
law = settings(max_examples=examples(200, check=60))


def derivative(name, operands, dtype="f64", order=1):
    """The derivative of that order by x, the last operand, at one point."""
    keys = [key(k) for k in ("a", "b", "x")[-len(operands) :]]
    doc = function("f", dict.fromkeys(keys, f"{dtype}[]"), op(name))
    at = dict(zip(keys, (numpy_dtype(np, dtype).type(v) for v in operands), strict=True))
    for p in range(1, order + 1):
        doc = linearize(doc, [X])
        at[X.tangent(p)] = numpy_dtype(np, dtype).type(1)
    with np.errstate(all="ignore"):
        (slope,) = evaluate(materialize(doc) if order > 1 else doc, at).values()
    assert type_of(slope).dtype == dtype
    return float(slope)


def gamma_density(a, x):
    a, x = mpmath.mpf(a), mpmath.mpf(x)
    return mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))


def beta_density(a, b, x):
    a, b, x = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(x)
    scale = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    return mpmath.exp((a - 1) * mpmath.log(x) + (b - 1) * mpmath.log1p(-x) - scale)


def close(density, exact, unit, dtype="f64"):
    """Whether a density is right but for so many units in its logarithm; those that are no normal numbers are not looked at."""
    if not 1e-30 < exact < 1e30:
        return True
    # What comes out as 0 is less than all normal numbers, to which the logarithm may be off, too.
    least = mpmath.mpf(float(np.finfo(numpy_dtype(np, dtype)).tiny))
    return abs(mpmath.log(max(mpmath.mpf(density), least) / exact)) <= unit * EPSILON[dtype]


@pytest.mark.parametrize("name", ["igamma", "igammac"])
@pytest.mark.parametrize("dtype", sorted(EPSILON))
@law
@given(st.floats(-4, 18), st.floats(-8, 8), st.booleans())
@example(10.0, 0.0, True)
@example(15.0, 0.0, True)
def test_gamma_densities(name, dtype, exponent, spread, near):
    number = numpy_dtype(np, dtype).type
    a = number(10**exponent)
    x = number(a + spread * np.sqrt(a)) if near else number(a * np.exp(number(spread)))
    if x <= 0:
        return
    with mpmath.workdps(DIGITS):
        exact = gamma_density(float(a), float(x))
        slope = derivative(name, (a, x), dtype)
        # To be off by a unit in x changes the logarithm by so much; and exp makes of an error in its operand one in its result.
        size = 1 + abs(float(a - 1) - float(x)) + abs(mpmath.log(exact)) + (abs(mpmath.log(a)) if a < 1 else 0)
        direct = 2 * (float(x) + 60) if a <= 16 else 0  # of small orders three terms of up to this size are added
        assert close(slope if name == "igamma" else -slope, exact, 12 * size + direct, dtype), (a, x, slope, exact)


@law
@given(st.floats(-2, 16), st.floats(-2, 16), st.floats(-6, 6))
@example(10.0, 10.0, 0.0)
@example(15.0, 15.0, 0.0)
@example(15.0, 1.0, 1.0)
def test_beta_densities(exponent, other, spread):
    a, b = 10**exponent, 10**other
    mean = a / (a + b)
    x = mean + spread * math.sqrt(mean * (1 - mean) / (a + b + 1))
    if not 0 < x < 1:
        return
    with mpmath.workdps(DIGITS):
        exact = beta_density(a, b, x)
        density = derivative("regularized_incomplete_beta", (a, b, x))
        size = 1 + abs((a - 1) - (b - 1) * x / (1 - x)) + abs(mpmath.log(exact)) + abs(math.log(x)) + abs(math.log(min(a, b)))
        assert close(density, exact, 16 * size + 200), (a, b, x, density, exact)


@pytest.mark.parametrize("a", [2.0, 15.9, 16.1, 1e3, 1e6, 1e10, 1e15])
@pytest.mark.parametrize("order", [2, 3])
def test_higher_derivatives_in_x(a, order):
    x = a + math.sqrt(a)
    with mpmath.workdps(DIGITS):
        k, y = mpmath.mpf(a) - 1, mpmath.mpf(x)
        slope = k / y - 1
        exact = gamma_density(a, x) * (slope if order == 2 else slope**2 - k / y**2)
        # For x = a + sqrt(a) the second factor of order 3 is a difference of two that are 1 / a.
        scale = abs(slope) if order == 2 else k / y**2
        higher = derivative("igamma", (a, x), order=order)
        unit = 200 * EPSILON["f64"] * (1 + abs(x - a))
        assert abs(higher - exact) <= unit * gamma_density(a, x) * scale, (higher, exact)


@pytest.mark.parametrize("a", [2.0, 20.0, 1e10, 1e15])
def test_derivatives_of_gradients_in_the_order(a):
    """By a of the density: its product with ln x - ψ(a), in reverse, where what is not chosen must leave no NaN."""
    x = a * (1 + 2 / math.sqrt(a))
    doc = materialize(linearize(function("f", {"a": "f64[]", "x": "f64[]"}, op("igamma")), [X]))
    vjp = transpose(linearize(doc, [key("a")]))
    at = {key("a"): np.float64(a), X: np.float64(x), X.tangent(1): np.float64(1), key("y@1@-2"): np.float64(1)}
    (gradient,) = evaluate(vjp, at).values()
    with mpmath.workdps(DIGITS):
        exact = gamma_density(a, x) * (mpmath.log(x) - mpmath.digamma(a))
        unit = 200 * EPSILON["f64"] * (1 + abs(x - a)) + 8 * EPSILON["f64"] * math.log(x) * math.sqrt(a)
        assert abs(gradient / exact - 1) <= unit, (gradient, exact)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((2.0, 0.0), 0.0),
        ((0.5, 0.0), math.inf),
        ((1e10, 0.0), 0.0),
        ((1e10, 1e300), 0.0),
        ((17.0, 1e17), 0.0),
        ((1e300, 1e-300), 0.0),
        ((math.inf, 0.5), 0.0),
    ],
)
def test_ends_of_the_domain(operands, expected):
    assert derivative("igamma", operands) == expected
