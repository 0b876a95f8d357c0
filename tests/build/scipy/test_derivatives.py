"""Derivatives of what is traced of scipy.special and scipy.stats: against mpmath, difference quotients of SciPy, and JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from tests.build.comparing import traced
from tests.tiers import few
from tidu_cli.adapters.numpy.numpy.elementwise.special_parameters import WITH_PARAMETERS
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import SCIPYS, ufunc_named
from tidu_cli.adapters.numpy.scipy.distributions import CONTINUOUS
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize


def derivatives(function: Callable[..., Any], x: np.ndarray, order: int = 1) -> np.ndarray:
    """The derivative of that order, elementwise, of a function of one array."""
    document = trace(lambda x: function(x), x=x)
    key = Key("x")
    inputs = {key: x}
    for p in range(1, order + 1):
        document = linearize(document, [key])
        inputs[key.tangent(p)] = np.ones_like(x)
    with np.errstate(all="ignore"):
        (derivative,) = evaluate(materialize(document).head, inputs).values()
    return derivative


def quotients(function: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    """Difference quotients of eight points, which are given at once, in steps of an eighth root of the rounding."""
    h = 2.0**-7 * np.maximum(np.abs(x), 0.25)
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    with np.errstate(all="ignore"):
        y = function(np.concatenate([x + k * h for n in weights for k in (n, -n)])).reshape(-1, 2, len(x))
        return sum(w * (ahead - behind) for w, (ahead, behind) in zip(weights.values(), y, strict=True)) / h


WITHIN = {
    "erfcinv": (0.3, 1.7), "spence": (0.3, 1.7), "boxcox": (0.3, 2.0), "boxcox1p": (0.3, 2.0), "ellipk": (-0.6, 0.6),
    "ellipe": (-0.6, 0.6), "exp1": (0.4, 3.0), "log_ndtr": (-3.0, 3.0), "loggamma": (0.5, 3.0),
}  # fmt: skip
"""Intervals other than from 0.2 to 0.8, in which all functions are smooth."""


def of_one(name: str, k: int) -> Callable[..., Any]:
    """The ufunc as a function of its operand k beside parameters; the others are fixed."""
    ufunc = ufunc_named(name)
    fixed = WITH_PARAMETERS[name].n if name in WITH_PARAMETERS else 0
    others: list[Any] = [2] * fixed + [0.4, 1.3, 0.6][: ufunc.nin - fixed]
    if ufunc.nout > 1:
        return lambda x: ufunc(*others[: fixed + k], x, *others[fixed + k + 1 :])[0]
    return lambda x: ufunc(*others[: fixed + k], x, *others[fixed + k + 1 :])


def operands() -> list[tuple[str, int]]:
    counts = {name: ufunc_named(name).nin - (WITH_PARAMETERS[name].n if name in WITH_PARAMETERS else 0) for name in SCIPYS}
    return [(name, k) for name, n in counts.items() for k in range(n) if not (name in ("pdtr", "pdtrc") and k == 0)]


@pytest.mark.parametrize(("name", "k"), few(operands(), 40))
def test_ufuncs(name: str, k: int) -> None:
    """The first derivative is that of SciPy's values, and the second that of the first."""
    function = of_one(name, k)
    x = np.linspace(*WITHIN.get(name, (0.25, 0.75)), 7)
    for order, below in ((1, function), (2, lambda x: derivatives(function, x))):
        derivative, expected = derivatives(function, x, order), quotients(below, x)
        np.testing.assert_allclose(derivative, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


SHAPES = {"lognorm": (0.8,), "t": (3.5,), "gamma": (2.25,), "invgamma": (2.5,), "chi2": (3.0,), "f": (3.0, 5.5), "beta": (2.5, 1.5),
          "weibull_min": (1.75,), "pareto": (2.5,)}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "method"),
    few([(name, method) for name in CONTINUOUS for method in ("logpdf", "cdf", "sf", "logcdf", "logsf", "pdf")], 35),
)
def test_distributions(name: str, method: str) -> None:
    """By the number, each shape, the location and the scale."""
    shapes, function = SHAPES.get(name, ()), getattr(getattr(stats, name), method)
    start = [1.6 if name == "pareto" else 0.45, *shapes, 0.05, 1.2]
    for k, at in enumerate(start):
        x = np.array([at, at * 1.1])

        def of_operand(x, k=k):
            return function(*start[:k], x, *start[k + 1 :])

        derivative, expected = derivatives(of_operand, x), quotients(of_operand, x)
        np.testing.assert_allclose(derivative, expected, rtol=1e-8, atol=1e-8, err_msg=str(k))


EXACT = {
    "log_ndtr": (special.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)), [-30.0, -5.0, -1.0, 0.0, 2.0, 9.0]),
    "ndtri": (special.ndtri, lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1), [1e-6, 0.1, 0.5, 0.9]),
    "exprel": (special.exprel, lambda x: mpmath.hyp1f1(1, 2, x), [-30.0, -1.0, 0.0, 1e-9, 2.0]),
    "rgamma": (special.rgamma, mpmath.rgamma, [-140.5, -3.0, -2.75, -1.0, 0.0, 0.3, 0.5, 1.0, 4.5, 40.0, 150.0, 250.0]),
    "ellipk": (special.ellipk, mpmath.ellipk, [-3.0, -0.5, 0.0, 0.3, 0.99]),
    "ellipe": (special.ellipe, mpmath.ellipe, [-3.0, -0.5, 0.0, 0.3, 0.99]),
    "spence": (special.spence, lambda x: mpmath.polylog(2, 1 - x), [0.1, 1.0, 1.5]),
    "boxcox": (
        lambda x: special.boxcox(2.0, x),
        lambda y: mpmath.log(2) * mpmath.hyp1f1(1, 2, y * mpmath.log(2)),
        [-1.0, 0.0, 2.0],
    ),
    "inv_boxcox": (lambda x: special.inv_boxcox(x, 0.0), mpmath.exp, [-1.0, 0.0, 2.0]),
    "exp1": (special.exp1, mpmath.e1, [0.1, 2.0, 30.0]),
    "expn": (lambda x: special.expn(3, x), lambda x: mpmath.expint(3, x), [0.1, 2.0, 30.0]),
    "j0": (special.j0, lambda x: mpmath.besselj(0, x), [-2.0, 0.0, 1.0, 30.0]),
    "j2.5": (lambda x: special.jv(2.5, x), lambda x: mpmath.besselj(2.5, x), [0.5, 30.0]),
    "i0": (special.i0, lambda x: mpmath.besseli(0, x), [-2.0, 0.0, 1.0, 30.0]),
    "k1": (special.k1, lambda x: mpmath.besselk(1, x), few([0.1, 1.0, 30.0], 2)),
    "sinc": (lambda x: special.spherical_jn(0, x), mpmath.sinc, [-2.0, 0.0, 1e-9, 5.0]),
    "binom": (lambda x: special.binom(x, 3), lambda n: n * (n - 1) * (n - 2) / 6, [-1.0, 0.0, 1.0, 2.0, 7.5]),
    "comb": (lambda x: special.comb(9.5, x), lambda k: mpmath.binomial(9.5, k), [0.25, 3.0, 7.5]),
    "betaln": (lambda x: special.betaln(x, 0.75), lambda a: mpmath.log(mpmath.beta(a, 0.75)), [0.1, 14.9, 15.5, 1e4]),
    "beta": (lambda x: special.beta(x, 0.75), lambda a: mpmath.beta(a, 0.75), [-2.5, -0.3, 3.0]),
    "gamma": (special.gamma, mpmath.gamma, [-2.5, 0.1, 3.0, 50.0]),
    "xlogy": (lambda x: special.xlogy(x, 0.5), lambda x: x * mpmath.log(0.5), [-1.0, 0.0, 2.0]),
    "stdtr": (lambda x: special.stdtr(2.5, x), lambda t: _student(2.5, t), [-3.0, -0.5, 0.5, 3.0]),
    "chdtr": (lambda x: special.chdtr(x, 2.5), lambda v: mpmath.gammainc(v / 2, 0, 1.25, regularized=True), [0.5, 3.0, 20.0]),
}


def _student(df: float, t: Any) -> Any:
    tail = mpmath.betainc(df / 2, 0.5, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


@pytest.mark.parametrize("name", EXACT)
def test_exact_derivatives(name: str) -> None:
    """The first and second derivative to ten digits, also where formulas have removable singularities."""
    function, exact, points = EXACT[name]
    for order in (1, 2):
        derivative = derivatives(function, np.array(points), order)
        with mpmath.workdps(50):
            expected = [float(mpmath.diff(exact, mpmath.mpf(x), order)) for x in points]
        np.testing.assert_allclose(derivative, expected, rtol=1e-10, atol=1e-14)


def test_logsumexp_with_weights_of_0() -> None:
    """An exponent whose weight is 0 has no part in derivatives, were it infinite."""
    slope = derivatives(lambda x: special.logsumexp(np.array([0.0, 5.0]) + x, b=np.array([0.0, 2.0])), np.array([1.0, np.inf])[:1])
    assert slope == pytest.approx(1.0)


def test_densities_at_the_ends_of_their_support() -> None:
    """Nothing is NaN where a number is outside: derivatives there are 0."""
    for name in CONTINUOUS:
        low = {"pareto": 0.5}.get(name, -1.0)
        if np.isneginf(getattr(stats, name).logpdf(low, *SHAPES.get(name, ()))):
            derivative = derivatives(lambda x, name=name: getattr(stats, name).pdf(x, *SHAPES.get(name, ())), np.array([low]))
            assert derivative == 0, name


def test_the_error_function_of_complex_numbers() -> None:
    """Near 0 and far, around where one formula takes over from the other, and on both axes."""
    turns = np.exp(1j * np.pi * np.arange(16) / 8)
    z = np.concatenate([r * turns for r in (0.0, 1e-9, 0.3, 2.0, 5.0, 6.99, 7.01, 12.0)] + [np.array([8j, -3j, 5 + 1e-3j, 40.0])])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(derivatives(special.erf, z, 0), special.erf(z), rtol=1e-13)
        single = traced(special.erf, z.astype(np.complex64))
    assert single.dtype == np.complex64
    slopes = [lambda v: 1, lambda v: -2 * v, lambda v: 4 * v * v - 2]
    for order, factor in enumerate(slopes, 1):
        with mpmath.workdps(50):
            points = [mpmath.mpc(complex(v)) for v in z]
            expected = np.array([complex(2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-v * v) * factor(v)) for v in points])
        size = np.exp(np.real(-z * z))
        assert (np.abs(derivatives(special.erf, z, order) - expected) <= 1e-13 * (np.abs(expected) + size)).all()
    value = traced(special.erf, np.array([complex(np.inf, 0), complex(-np.inf, 1), complex(np.nan, 0)]))
    np.testing.assert_array_equal(value[:2], [1, -1])
    assert np.isnan(value[2])


def test_the_reciprocal_of_gamma_far_out() -> None:
    x = np.array([171.7, 250.0, np.inf, -180.0, -171.5, -33.5, np.nan])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(traced(special.rgamma, x), special.rgamma(x), rtol=1e-13)
