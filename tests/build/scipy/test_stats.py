"""Distributions: densities, distribution functions and quantiles are SciPy's, inside, at and outside of the support."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.build.comparing import assert_same, check_close, traced
from tests.tiers import few
from tidu_cli.adapters.numpy.scipy.distributions import CONTINUOUS, DISCRETE
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.lax.vocabulary import BUILTIN

SHAPES = {
    "lognorm": (0.8,), "t": (3.5,), "gamma": (2.25,), "invgamma": (2.5,), "chi2": (3.0,), "f": (3.0, 5.5), "beta": (2.5, 1.5),
    "weibull_min": (1.75,), "pareto": (2.5,), "poisson": (2.5,), "binom": (5, 0.3), "bernoulli": (0.3,), "geom": (0.3,),
    "nbinom": (2.5, 0.4),
}  # fmt: skip
X = np.array([-np.inf, -30.0, -1.5, -0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 2.0, 3.0, 5.0, 6.0, 40.0, np.inf, np.nan])
P = np.array([-0.5, 0.0, 1e-9, 0.1, 0.3, 0.5, 0.75, 0.99, 1.0, 1.5, np.nan])


def compare(function, x, few=64, floor=2.0**-52):
    """Equal but for so many roundings of the logarithm, or of `floor`. Where SciPy has NaN of ∞, graphs have the limit."""
    with np.errstate(all="ignore"):
        values, expected = traced(function, x), np.asarray(function(x))
    assert (values.dtype, values.shape) == (np.float64, expected.shape)
    known = ~(np.isnan(expected) & np.broadcast_to(np.isinf(x), expected.shape)) if x.shape == expected.shape else True
    values, expected = values[known], expected[known]
    np.testing.assert_array_equal(np.isnan(values), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(values), np.isinf(expected))
    finite = np.isfinite(expected)
    values, expected = values[finite], expected[finite]
    size = np.abs(np.log(np.maximum(np.abs(expected), 1e-300)))
    error = np.abs(values - expected)
    assert (error <= few * EPSILON * np.maximum(np.abs(expected) * (1 + size), floor)).all(), (values, expected)


EPSILON = 2.0**-52


@pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", few(CONTINUOUS, 7))
def test_continuous(name: str, method: str) -> None:
    function = getattr(getattr(stats, name), method)
    floor = 2.0**-52 if method not in ("logcdf", "logsf") else 1.0  # SciPy takes logarithms of what is near 1
    compare(lambda x: function(x, *SHAPES.get(name, ())), X, floor=floor)
    compare(lambda x: function(x, *SHAPES.get(name, ()), loc=0.5, scale=2.0), X, few=512, floor=floor)


@pytest.mark.parametrize("method", ["ppf", "isf"])
@pytest.mark.parametrize("name", [name for name, d in CONTINUOUS.items() if d.ppf is not None])
def test_quantiles(name: str, method: str) -> None:
    compare(lambda p: getattr(getattr(stats, name), method)(p, *SHAPES.get(name, ()), loc=0.5, scale=2.0), P, few=4096)


@pytest.mark.parametrize("method", ["pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name: str, method: str) -> None:
    function = getattr(getattr(stats, name), method)
    floor = 2.0**-52 if method not in ("logcdf", "logsf") else 1.0  # SciPy takes logarithms of what is near 1
    compare(lambda k: function(k, *SHAPES.get(name, ())), X, few=512, floor=floor)
    compare(lambda k: function(k, *SHAPES.get(name, ()), loc=1), X, few=512, floor=floor)


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_of_parameters(name: str) -> None:
    """Traced parameters, of which some are not valid, and frozen distributions."""
    shapes, method = SHAPES.get(name, ()), "logpdf" if name in CONTINUOUS else "logpmf"
    x = 1.0 if name != "beta" else 0.25
    for k in range(len(shapes)):
        at = [np.array([shape, shape, -1.0]) if j == k else shape for j, shape in enumerate(shapes)]

        def function(p, k=k, at=at):
            return getattr(getattr(stats, name), method)(x, *at[:k], p, *at[k + 1 :])

        compare(function, at[k])
        compare(lambda p, k=k, at=at: getattr(getattr(stats, name)(*at[:k], p, *at[k + 1 :]), method)(x), at[k])
    if name in CONTINUOUS:
        compare(lambda s: getattr(stats, name).logpdf(x, *shapes, 0.0, s), np.array([0.5, 2.0, 0.0, -1.0]))
        compare(lambda m: getattr(stats, name)(*shapes, loc=m).cdf(x), np.array([0.5, 2.0, -1.0]))


def test_it_broadcasts() -> None:
    compare(lambda x: stats.norm.logpdf(x[:, None], loc=np.zeros(3), scale=x), X[4:7])
    assert_same(traced(lambda x: stats.norm.pdf(x), np.float32([0.5])), stats.norm.pdf(np.float32([0.5])))
    assert_same(traced(lambda x: stats.norm.cdf(x), np.array([1, 2])), stats.norm.cdf(np.array([1, 2])))


COV = np.array([[2.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: stats.multivariate_normal.logpdf(x, np.ones(2), COV),
        lambda x: stats.multivariate_normal.pdf(x, mean=x[0], cov=COV),
        lambda x: stats.multivariate_normal.logpdf(x[0], cov=COV),
        lambda x: stats.multivariate_normal.logpdf(x, np.zeros(2), cov=2.0),
        lambda x: stats.multivariate_normal.logpdf(x, x[1], cov=np.array([2.0, 0.5])),
        lambda x: stats.multivariate_normal.logpdf(np.ones(2), cov=COV + x[0][:, None] * x[0]),
        lambda x: stats.multivariate_normal.logpdf(x[:, 0], cov=0.5),
        lambda x: stats.multivariate_normal(np.ones(2), COV).logpdf(x),
    ],
)
def test_the_multivariate_normal_distribution(function) -> None:
    compare(function, np.array([[0.5, -1.0], [2.0, 0.25], [0.0, 1.0]]))


NORMAL, DIRICHLET = stats.multivariate_normal, stats.dirichlet
CENTRE, POINTS = np.array([0.3, 0.2]), np.array([[0.5, -1.0], [2.0, 0.25], [0.0, 1.0]])


@pytest.mark.parametrize("method", ["logpdf", "pdf", "entropy"])
@pytest.mark.parametrize(("mean", "cov"), [(CENTRE, COV), (None, COV), (CENTRE, 2.0), (CENTRE, np.array([2.0, 3.0]))])
def test_normal_distributions_of_traced_parameters(mean, cov, method: str) -> None:
    at = () if method == "entropy" else (POINTS,)
    check_close(lambda c: getattr(NORMAL(mean, c), method)(*at), np.asarray(cov))
    check_close(lambda c: getattr(NORMAL, method)(*at, mean, c), np.asarray(cov))
    if mean is not None:
        check_close(lambda m: getattr(NORMAL(m, cov), method)(*at), mean)


ALPHA, X_OF_SUM_1 = np.array([0.5, 2.0, 1.0, 3.0]), np.array([[0.1, 0.3], [0.2, 0.25], [0.3, 0.05], [0.4, 0.4]])


@pytest.mark.parametrize("method", ["logpdf", "pdf"])
def test_the_dirichlet_distribution(method: str) -> None:
    function = getattr(DIRICHLET, method)
    for x in (X_OF_SUM_1, X_OF_SUM_1[:-1], X_OF_SUM_1[:, 0], X_OF_SUM_1[:-1, :1], np.array([0.5, 0.5, 0.0, 0.0])):
        check_close(lambda x: function(x, ALPHA), x)
        check_close(function, x, ALPHA)
        check_close(lambda a, x=x: getattr(DIRICHLET(a), method)(x), ALPHA)
        check_close(lambda x: getattr(DIRICHLET(ALPHA), method)(x), x)
    for x, alpha in ((X_OF_SUM_1 * 1.1, ALPHA), (X_OF_SUM_1, -ALPHA), (np.array([0, 0.5, 0.25, 0.25]), ALPHA)):
        assert np.isnan(traced(function, x, alpha)).all()  # where SciPy raises


def test_entropy_and_mean_of_the_dirichlet_distribution() -> None:
    check_close(lambda a: DIRICHLET.entropy(a), ALPHA)
    check_close(lambda a: DIRICHLET(a).entropy(), ALPHA)
    check_close(lambda a: DIRICHLET(a).mean(), ALPHA)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: DIRICHLET.logpdf(np.exp(x) / np.exp(x).sum(), np.exp(x)),
        lambda x: DIRICHLET.entropy(np.exp(x)),
        lambda x: NORMAL(x, COV).logpdf(POINTS[0]),
        lambda x: NORMAL(CENTRE, COV + x[:, None] * x).entropy(),
    ],
)
def test_derivatives_of_several_variables(function) -> None:
    for verdict in check_numerically(trace(function, "f64[2]"), BUILTIN):
        assert verdict.ok, verdict


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: stats.skellam.pmf(1, x, x), "scipy.stats.skellam.pmf cannot be traced; write the formula.*poisson"),
        (lambda x: stats.levy.logpdf(x), "scipy.stats.levy.logpdf cannot be traced; write the formula.*gumbel_r"),
        (lambda x: stats.t.ppf(x, 3.0), "scipy.stats.t.ppf cannot be traced: it has no closed form"),
        (lambda x: stats.norm.fit(x), "scipy.stats.fit cannot be traced"),
        (lambda x: stats.multivariate_normal.logpdf(x, cov=np.eye(2), allow_singular=True), "allow_singular=True cannot be traced"),
        (lambda x: NORMAL(x, allow_singular=True).logpdf(x), "allow_singular=True cannot be traced"),
        (lambda x: NORMAL(x).rvs(), "multivariate_normal.rvs cannot be traced; logpdf, pdf and entropy can"),
        (lambda x: NORMAL(x).cdf(x), "multivariate_normal.cdf cannot be traced; logpdf, pdf and entropy can"),
        (lambda x: DIRICHLET.pdf(x, [1, 1, 1, 1]), "dirichlet takes a vector of K parameters"),
    ],
)
def test_what_is_refused(function, message: str) -> None:
    with pytest.raises(TiduError, match=message):
        traced(function, np.array([0.5, 0.75]))
