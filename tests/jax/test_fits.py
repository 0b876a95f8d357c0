"""Counting, fits, products and distributions of NumPy and SciPy: first and second derivatives are those of JAX's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

import tidu_cli as tidu

pytestmark = pytest.mark.jax

LABELS, SAMPLES, PLACES = [0, 1, 1, 0, 2], [0, 1, 1.0, 0.5, 2], np.arange(5.0)
ALPHA, POINT, COV = np.array([0.7, 1.5, 1.1, 2.0, 0.9]), np.array([0.1, 0.2, 0.3, 0.25, 0.15]), np.eye(5) + 0.2

CASES = {
    "bincount": (lambda x: np.bincount(LABELS, x), lambda j, x: j.numpy.bincount(np.array(LABELS), x, length=3)),
    "histogram": (
        lambda x: np.histogram(SAMPLES, 3, weights=x)[0],
        lambda j, x: j.numpy.histogram(np.array(SAMPLES), 3, weights=x)[0],
    ),
    "polyfit": (lambda x: np.polyfit(PLACES, x, 2), lambda j, x: j.numpy.polyfit(PLACES, x, 2)),
    "partition": (lambda x: np.partition(x, 2)[2], lambda j, x: j.numpy.partition(x, 2)[2]),
    "einsum": (lambda x: np.einsum(x, [0], x, [0], x, [1]), lambda j, x: j.numpy.einsum(x, [0], x, [0], x, [1])),
    "dirichlet": (
        lambda x: scipy.stats.dirichlet.logpdf(POINT, ALPHA + x**2),
        lambda j, x: j.scipy.stats.dirichlet.logpdf(POINT, ALPHA + x**2),
    ),
    "multivariate_normal": (
        lambda x: scipy.stats.multivariate_normal(x, COV).logpdf(POINT),
        lambda j, x: j.scipy.stats.multivariate_normal.logpdf(POINT, x, COV),
    ),
    "solve_banded": (
        lambda x: scipy.linalg.solve_banded((1, 1), np.stack([[0.0, 1, 1, 1, 1] * x[:1], x + 9, [1.0, 1, 1, 1, 0]]), PLACES),
        lambda j, x: j.numpy.linalg.solve(j.numpy.diag(x + 9) + j.numpy.eye(5, k=1) * x[0] + j.numpy.eye(5, k=-1), PLACES),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_both_orders_of_derivatives(name: str, jax: Any) -> None:
    ours, theirs = CASES[name]
    x = np.random.default_rng(4).normal(size=5)
    document = tidu.trace(lambda x: np.sum(ours(x) ** 2), x=x)

    def loss(x: Any) -> Any:
        return jax.numpy.sum(theirs(jax, x) ** 2)

    for derived, expected in ((tidu.grad(document, "x"), jax.grad(loss)(x)), (tidu.hessian(document, "x"), jax.hessian(loss)(x))):
        (value,) = tidu.evaluate(derived, {"x": x}).values()
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
