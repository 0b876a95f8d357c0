"""Rules of scipy.integrate for samples: SciPy's values, also where the places of samples are traced, and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, simpson, trapezoid

from tests.build.comparing import traced
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(9)
RULES = [trapezoid, simpson, cumulative_trapezoid]


def check(function, *values):
    expected, value = np.asarray(function(*values)), traced(function, *values)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    close = 64 * np.finfo(expected.dtype).eps
    np.testing.assert_allclose(value, expected, close, close * np.abs(expected).max())


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("rule", RULES)
def test_samples_and_their_places(rule, n):
    x, y = np.sort(RNG.normal(size=n)), RNG.normal(size=(2, n, 3))
    check(lambda y: rule(y, axis=1), y)
    check(lambda y: rule(y, axis=1), y.astype("f4").round(1))
    check(lambda y: rule(y, axis=1), RNG.integers(-4, 5, (2, n)))
    check(lambda y: rule(y[0, :, 0], x=x), y)
    check(lambda y: rule(y, x=x, axis=1), y)
    check(lambda x, y: rule(y, x=x, axis=1), x, y)
    check(lambda x: rule(y, x=x, axis=-2), x)
    check(lambda x, y: rule(y, x=x, axis=1), np.sort(RNG.normal(size=(2, n, 3)), axis=1), y)
    check(lambda d, y: rule(y, dx=d, axis=1), np.asarray(0.3), y)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumulative_ones_may_start_at_zero(axis):
    check(lambda y: cumulative_trapezoid(y, dx=0.2, axis=axis, initial=0), RNG.normal(size=(3, 4)))


@pytest.mark.parametrize("rule", RULES)
def test_derivatives(rule):
    graph = trace(lambda h, y: rule(y, x=np.cumsum(np.exp(h))), "f64[4]", "f64[4]")
    for verdict in check_numerically(graph, BUILTIN):
        assert verdict.ok, verdict
