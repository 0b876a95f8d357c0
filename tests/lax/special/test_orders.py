"""Derivatives of incomplete gamma and beta functions by their parameters, and of zeta by its exponent, on wide grids."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import function, key, op
from tests.lax.test_edges import value
from tests.tiers import examples, few
from tidu_cli.errors import TiduError
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize

NAN, INF = math.nan, math.inf
DIGITS = 90
RELATIVE = 1e-10
law = settings(max_examples=examples(150, check=30), deadline=None)
KEYS = [key(k) for k in "abx"]


def derivative(name, operands, by):
    """The derivative by operands of these numbers, one after the other, at one point; as graphs have it."""
    keys = KEYS[-len(operands) :]
    document = function("f", dict.fromkeys(keys, "f64[]"), op(name))
    at = {k: np.float64(v) for k, v in zip(keys, operands, strict=True)}
    for p, k in enumerate(by, 1):
        document = linearize(document, [keys[k]])
        at[keys[k].tangent(p)] = np.float64(1)
    with np.errstate(all="ignore"):
        (number,) = evaluate(materialize(document), at).values()
    return float(number)


def gamma(a, x, lower):
    return mpmath.gammainc(a, 0, x, regularized=True) if lower else -mpmath.gammainc(a, x, regularized=True)


def beta(a, b, x, lower):
    return mpmath.betainc(a, b, 0, x, regularized=True) if lower else -mpmath.betainc(b, a, 0, 1 - x, regularized=True)


STEP = mpmath.mpf(10) ** -16
"""Of difference quotients, relative to what is moved; their errors are of its fourth power."""


def quotient(f, x, order=1):
    """The difference quotient of five points."""
    h = STEP * x
    if order == 2:
        return sum(w * f(x + k * h) for k, w in ((-2, -1), (-1, 16), (0, -30), (1, 16), (2, -1))) / (12 * h * h)
    return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h)


def assert_close(number, exact, size, what):
    """Right to ten digits of itself, or, near its zeros, of its size elsewhere."""
    if abs(exact) < 1e-290:
        assert abs(number) < 1e-280, what
    else:
        assert abs(number - exact) <= RELATIVE * max(abs(exact), size), (what, number, mpmath.nstr(exact, 17))


def exponents(low, high):
    return st.floats(low, high).map(lambda e: 10**e)


@given(exponents(-4, 4), exponents(-3, 1.5))
@example(1.0, 1.0)
@example(1e4, 1.0)
@example(1e-3, 1e-3)
@law
def test_igamma_by_its_order(a, ratio):
    with mpmath.workdps(DIGITS):
        x = a * ratio
        lower, exact_a, exact_x = x < a, mpmath.mpf(a), mpmath.mpf(x)
        first = quotient(lambda a: gamma(a, exact_x, lower), exact_a)
        second = quotient(lambda a: gamma(a, exact_x, lower), exact_a, 2)
        mixed = quotient(lambda x: quotient(lambda a: gamma(a, x, lower), exact_a), exact_x)
    assert_close(derivative("igamma", (a, x), [0]), first, 0, (a, x))
    assert_close(derivative("igammac", (a, x), [0]), -first, 0, (a, x))
    # The second changes its sign once, near the density's median.
    assert_close(derivative("igamma", (a, x), [0, 0]), second, abs(first) / a, (a, x))
    assert_close(derivative("igamma", (a, x), [0, 1]), mixed, abs(first) / a, (a, x))
    assert_close(derivative("igamma", (a, x), [1, 0]), mixed, abs(first) / a, (a, x))


@given(exponents(-3, 3), exponents(-3, 3), st.floats(0.001, 0.999), st.booleans())
@example(1.0, 1.0, 0.5, False)
@example(1e-3, 600.0, 1e-2, False)
@example(1000.0, 0.001, 0.5, True)
@law
def test_the_incomplete_beta_function_by_its_parameters(a, b, x, near):
    mean = a / (a + b)
    x = min(max(mean + (x - 0.5) * 4 * math.sqrt(mean * (1 - mean) / (a + b + 1)), x * mean), 1 - 1e-12) if near else x
    with mpmath.workdps(DIGITS):
        p, q, z = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(x)
        lower = x < mean
        by_a, by_b = quotient(lambda p: beta(p, q, z, lower), p), quotient(lambda q: beta(p, q, z, lower), q)
        mixed = quotient(lambda q: quotient(lambda p: beta(p, q, z, lower), p), q)
        second = quotient(lambda p: beta(p, q, z, lower), p, 2)
    name = "regularized_incomplete_beta"
    assert_close(derivative(name, (a, b, x), [0]), by_a, 0, (a, b, x))
    assert_close(derivative(name, (a, b, x), [1]), by_b, 0, (a, b, x))
    assert_close(derivative(name, (a, b, x), [0, 0]), second, abs(by_a) / a, (a, b, x))
    assert_close(derivative(name, (a, b, x), [1, 0]), mixed, abs(by_a) / b, (a, b, x))
    assert_close(derivative(name, (a, b, x), [0, 1]), mixed, abs(by_a) / b, (a, b, x))


@given(st.floats(1e-4, 50).map(lambda x: 1 + x), exponents(-3, 4))
@law
def test_zeta_by_its_exponent(s, q):
    with mpmath.workdps(30 + int(s * max(math.log10(q), 0))):  # mpmath's digits are absolute here
        exact = [mpmath.zeta(s, q, n) for n in (1, 2)]
        mixed = -s * mpmath.zeta(s + 1, q, 1) - mpmath.zeta(s + 1, q)
    assert_close(derivative("zeta", (s, q), [0]), exact[0], 0, (s, q))
    assert_close(derivative("zeta", (s, q), [0, 0]), exact[1], 0, (s, q))
    assert_close(derivative("zeta", (s, q), [0, 1]), mixed, 0, (s, q))


@pytest.mark.check
@pytest.mark.parametrize("order", few([1, 3, 5], 2))
def test_high_orders(order):
    a, x = 2.5, 1.75
    with mpmath.workdps(60):
        exact = mpmath.diff(lambda a: gamma(a, x, True), mpmath.mpf(a), order)
    assert value("igamma_grad_a", a, x, order=order) == pytest.approx(float(exact), rel=1e-12)
    with mpmath.workdps(60):
        exact = mpmath.diff(lambda a, b: beta(a, b, mpmath.mpf("0.25"), True), (2.5, 1.5), (order, 2))
    mixed = value("regularized_incomplete_beta_grad", 2.5, 1.5, 0.25, order_x=order, order_y=2)
    assert mixed == pytest.approx(float(exact), rel=1e-11)


def test_an_order_that_is_too_high_is_refused():
    with pytest.raises(TiduError, match="order"):
        value("igamma_grad_a", 1.0, 1.0, order=64)


def test_large_orders_take_no_longer():
    """Where a series would have millions of terms: for large a, P(a, a + z √a) is near Φ(z), and ∂/∂a is -φ(z) / √a."""
    a, z = 1e12, np.array([-1.0, 0.0, 2.0])
    slopes = value("igamma_grad_a", np.full(3, a), a + z * math.sqrt(a))
    np.testing.assert_allclose(slopes, -np.exp(-z * z / 2) / math.sqrt(2 * math.pi * a), rtol=1e-5)


EDGES = {
    "igamma_grad_a": [
        ((1.0, 0.0), 0.0), ((1.0, INF), 0.0), ((INF, 1.0), 0.0), ((0.0, 1.0), NAN), ((-1.0, 1.0), NAN), ((1.0, -1.0), NAN),
        ((NAN, 1.0), NAN), ((1.0, NAN), NAN),
    ],
    "regularized_incomplete_beta_grad": [
        ((1.0, 2.0, 0.0), 0.0), ((1.0, 2.0, 1.0), 0.0), ((0.0, 2.0, 0.5), NAN), ((1.0, -1.0, 0.5), NAN), ((1.0, 1.0, 1.5), NAN),
        ((1.0, 1.0, NAN), NAN),
    ],
    "zeta_grad": [((1.0, 1.0), NAN), ((2.0, 0.0), NAN), ((2.0, -1.5), NAN), ((INF, 2.0), 0.0), ((2.0, NAN), NAN)],
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_edges(name):
    operands, expected = zip(*EDGES[name], strict=True)
    values = value(name, *map(np.array, zip(*operands, strict=True)))
    np.testing.assert_array_equal(values, expected)


def test_derivatives_at_the_ends_of_densities():
    assert derivative("igamma", (2.0, 0.0), [0, 1]) == 0
    assert derivative("regularized_incomplete_beta", (2.0, 3.0, 0.0), [0, 2]) == 0
    assert derivative("regularized_incomplete_beta", (2.0, 3.0, 1.0), [1, 2]) == 0


def test_many_elements_at_once():
    """More than a block, in any order, as one by one."""
    rng = np.random.default_rng(3)
    a, x = rng.uniform(0.1, 40, 5000), rng.uniform(0, 60, 5000)
    slopes = value("igamma_grad_a", a, x)
    for k in (0, 4095, 4096, 4999):
        assert value("igamma_grad_a", a[k], x[k]) == slopes[k]
    assert value("igamma_grad_a", np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)


@pytest.mark.parametrize(("name", "cdf"), [("igamma_inv", gamma), ("igammac_inv", None), ("regularized_incomplete_beta_inv", beta)])
def test_inverses(name, cdf):
    """By the derivatives of what they invert: where y(a, p) is, f(a, y(a, p)) = p."""
    operands = (2.5, 1.5, 0.3) if "beta" in name else (2.5, 0.3)
    last = len(operands) - 1
    forward = name.removesuffix("_inv")
    y = value(name, *operands).item()
    at = (*operands[:-1], y)
    density = derivative(forward, at, [last])
    assert derivative(name, operands, [last]) == pytest.approx(1 / density, rel=1e-12)
    for k in range(last):
        assert derivative(name, operands, [k]) == pytest.approx(-derivative(forward, at, [k]) / density, rel=1e-12)
    second = -derivative(forward, at, [last, last]) / density**3
    assert derivative(name, operands, [last, last]) == pytest.approx(second, rel=1e-10)


def test_hypergeometric_functions_of_large_numbers():
    """Where they are infinite SciPy's fail, or take for ever."""
    large = np.array([1e7, 1e17, 1e308, INF])
    for a, b, sign in ((1.0, 2.0, 1), (0.5, -1.5, 1), (-0.5, 1.5, -1)):
        assert (value("hyp1f1", large, a=a, b=b) == sign * INF).all()
    assert (value("hyp0f1", large) == INF).all()
    assert (value("hyp0f1", large, b=-0.5) == -INF).all()
    np.testing.assert_allclose(value("hyp1f1", np.array([3.0, -1e17]), a=-1.0, b=2.0), [-0.5, 5e16])
