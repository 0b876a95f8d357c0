"""Distances between rows: SciPy's values for every metric, and derivatives, which are 0 where points coincide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import distance

from tests.build.comparing import check_close
from tidu_cli import evaluate, grad, hessian
from tidu_cli.adapters.numpy.scipy.distance import METRICS
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(2)
X, Y, W = RNG.normal(size=(6, 3)), RNG.normal(size=(5, 3)), RNG.uniform(0.5, 2, 3)
OPTIONS = {"seuclidean": {"V": W}, "mahalanobis": {"VI": np.diag(W) + 0.1}}
"""Of metrics that are not weighted."""


@pytest.mark.parametrize("metric", METRICS)
def test_values(metric: str) -> None:
    for options in ({}, OPTIONS.get(metric, {"w": W})):
        check_close(lambda x, y, o=options: distance.cdist(x, y, metric, **o), X, Y)
        check_close(lambda y, o=options: distance.cdist(X, y, metric.upper(), **o), Y)
        check_close(lambda x, o=options: distance.pdist(x, metric, **o), X)
    check_close(lambda x: distance.pdist(x, metric), X.astype(np.float32))


@pytest.mark.parametrize("p", [0.7, 1, 1.5, 2, 3, np.inf])
def test_minkowski(p: float) -> None:
    check_close(lambda x: distance.cdist(x, Y, "minkowski", p=p), X)
    check_close(lambda x: distance.pdist(x, "m", p=p, w=W), X)


def test_other_names_and_traced_options() -> None:
    check_close(lambda x: distance.cdist(x, Y, distance.cosine), X)
    check_close(lambda x: distance.pdist(x, "cb"), X)
    check_close(lambda x: distance.pdist(x), np.arange(6).reshape(3, 2))
    check_close(lambda x, w: distance.pdist(x, "canberra", w=w), X, W)
    check_close(lambda x, p: distance.pdist(x, "minkowski", p=p), X, np.array(2.5))


def test_matrices_of_distances() -> None:
    for n in (1, 3, 10):
        check_close(lambda v: distance.squareform(v), RNG.normal(size=n))
    check_close(lambda m: distance.squareform(m), distance.squareform(RNG.normal(size=10)))
    check_close(lambda x: distance.squareform(distance.pdist(x)), X)


@pytest.mark.parametrize("metric", METRICS)
def test_derivatives(metric: str) -> None:
    for verdict in check_numerically(trace(lambda x, y: distance.cdist(x, y, metric), "f64[4,3]", "f64[2,3]"), BUILTIN):
        assert verdict.ok, verdict


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "canberra", "seuclidean"])
def test_derivatives_of_points_that_coincide_are_0(metric: str) -> None:
    options: dict = {"p": 1.5} if metric == "minkowski" else OPTIONS.get(metric, {})
    x = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    loss = trace(lambda x: distance.pdist(x, metric, **options).sum(), x=x)
    (gradient,) = evaluate(grad(loss, "x"), {"x": x}).values()
    (second,) = evaluate(hessian(loss, "x"), {"x": x}).values()
    np.testing.assert_array_equal(gradient, 0)
    assert np.isfinite(second).all() and (metric == "sqeuclidean" or not second.any())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: distance.cdist(x, x, "hamming"), "cdist with metric 'hamming' cannot be traced; metrics are braycurtis"),
        (lambda x: distance.pdist(x, lambda a, b: 1.0), "pdist with metric '<lambda>' cannot be traced"),
        (lambda x: distance.cdist(x[0], x), "rows of matrices of one width"),
        (lambda x: distance.cdist(X, X, "minkowski", p=x[0, 0]), "constant points with traced options"),
        (lambda x: distance.pdist(x, "minkowski", p=0), "p must be greater than 0"),
        (lambda x: distance.pdist(x, out=np.zeros(15)), "leave it out"),
        (lambda x: distance.squareform(x), "must be square"),
        (lambda x: distance.squareform(x[:, 0][:4]), "squareform takes"),
        (lambda x: distance.jensenshannon(x[0], x[1]), "write scipy.spatial.distance.cdist"),
    ],
)
def test_what_is_refused(function, message: str) -> None:
    with pytest.raises(TiduError, match=message):
        trace(function, X)
