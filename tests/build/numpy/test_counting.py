"""Sums by labels, histograms, fits by constant designs, partial orders, and einsum and cross in their other forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import check, check_close, of_graph
from tests.tiers import examples
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(11)


@settings(max_examples=examples(400, check=40), deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=9), st.integers(0, 9))
def test_sums_by_labels(labels, minlength) -> None:
    weights = RNG.normal(size=len(labels))
    check(lambda w: np.bincount(labels, w), weights)
    check(lambda w: np.bincount(np.array(labels), weights=w, minlength=minlength), weights.astype(np.float32))
    check(lambda w: np.bincount(labels, w, minlength), np.arange(len(labels)))


@settings(max_examples=examples(400, check=40), deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0, 3.0, np.nan]), min_size=1, max_size=9),
    st.sampled_from([1, 3, [-1, 0, 0.25], [0.0, 1.0, 1.0, 4.0]]),
    st.sampled_from([(-1, 1), (0.1, 0.5), (-2, 8)]),
    st.booleans(),
    st.sampled_from([np.float64, np.complex128, np.int64]),
)
def test_histograms(samples, bins, within, density, dtype) -> None:
    weights = (10 * RNG.uniform(0.5, 1, size=len(samples))).astype(dtype)
    with np.errstate(all="ignore"):
        check(lambda w: np.histogram(samples, bins, within, density, w)[0], weights)
        check(lambda w: np.histogram(samples, bins, within, weights=w)[1] * w[0], weights)


@pytest.mark.parametrize("density", [False, True])
def test_histograms_of_several_axes(density) -> None:
    points, weights = RNG.normal(size=(7, 2)), RNG.uniform(0.5, 1, 7)
    for bins in (3, (3, 2), [3, [0, 0.5, 1]], [[-1, 0, 1], [0, 2]]):
        check(lambda w, b=bins: np.histogramdd(points, b, weights=w, density=density)[0], weights)
        check(lambda w, b=bins: np.histogram2d(points[:, 0], points[:, 1], b, weights=w, density=density)[0], weights)


@settings(max_examples=examples(300, check=15), deadline=None)
@given(st.integers(0, 3), st.sampled_from([(6,), (6, 2)]), st.booleans(), st.sampled_from([False, True, "unscaled"]))
def test_fits(degree, shape, weighted, cov) -> None:
    x, y = np.linspace(-1, 2, 6), RNG.normal(size=shape)
    options = {"w": np.linspace(1, 2, 6)} if weighted else {}

    def fit(x, y, part=None, **more):
        results = np.polyfit(x, y, degree, **options, **more)
        return results if part is None else results[part]

    check_close(lambda y: fit(x, y), y)
    check_close(lambda x: fit(x, y), x)
    if cov:
        for part in (0, 1):
            check_close(lambda y, k=part: fit(x, y, k, cov=cov), y)
    for part in range(4):
        check_close(lambda y, k=part: fit(x, y, k, full=True), y)


def test_least_squares_by_constant_designs() -> None:
    for design in (np.vander(np.arange(5.0), 3), np.ones((4, 2)), RNG.normal(size=(3, 5)), np.arange(6).reshape(3, 2)):
        for k in range(4):
            check_close(lambda b, a=design, k=k: np.linalg.lstsq(a, b)[k], RNG.normal(size=(len(design), 2)), rtol=1e-10)
        check_close(lambda b, a=design: np.linalg.lstsq(a, b)[0], RNG.normal(size=len(design)), rtol=1e-10)
    ops = {case.op for case in trace(lambda b: np.linalg.lstsq(np.eye(3)[:, :2], b)[0], "f64[3]").head.cases.cases}
    assert not ops & {"pinv", "svd"}  # which the graph would do again each time


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.bincount([0, 2, 2, 1], x),
        lambda x: np.histogram([0.0, 1.0, 2.0, 2.0], 3, weights=x, density=True)[0],
        lambda x: np.polyfit(np.arange(4.0), x, 2, full=True)[1],
        lambda x: np.polyfit(x, np.arange(4.0) ** 2, 1),
        lambda x: np.partition(x, 2),
    ],
)
def test_derivatives(function) -> None:
    for verdict in check_numerically(trace(lambda x: function(x) ** 2, "f64[4]"), BUILTIN):
        assert verdict.ok, verdict


def test_partial_orders() -> None:
    x = RNG.integers(0, 9, (4, 5)).astype(float)
    for kth, axis in ((2, -1), ((0, 3), 0), (-1, 1), (7, None)):

        def fixed(x, kth=kth, axis=axis):
            """What is the same in every order that a partition may have."""
            parted = np.partition(x, kth, axis)
            places = np.argpartition(x, kth, axis)
            by_places = np.take_along_axis(x, places, axis)
            return tuple(np.take(y, np.array(kth), axis) for y in (parted, by_places))

        for ours, numpys in zip(of_graph(fixed, [x]), fixed(x), strict=True):
            np.testing.assert_array_equal(ours, numpys)


def test_einsum_with_lists() -> None:
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 5))
    check(lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [0, 2]), a, b)
    check(lambda a, b: np.einsum(a, [0, 1], b, [1, 30]), a, b)
    check(lambda a, b: np.einsum(a, [..., 1], b, [1, 30], [..., 30]), a, b)
    check(lambda a, b: np.einsum(a, (0, 1), b, (1, 2), []), a, b)
    check(lambda a: np.einsum(a, [1, 0]), a)
    check(lambda a: np.einsum(a @ a.T, [5, 5]), a)


def test_cross_with_axes() -> None:
    a, b = RNG.normal(size=(3, 4, 2)), RNG.normal(size=(4, 2, 3))
    check(lambda a, b: np.cross(a, b, 0, 2, 1), a, b)
    check(lambda a, b: np.cross(a, b, axisa=0, axisc=0), a, b)
    check(lambda a: np.cross(a, a[::-1], axis=0), a)
    check(lambda a: np.linalg.cross(a, a[::-1], axis=0), a)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: np.bincount(x.astype(int)), "np.bincount of traced samples cannot be traced: counts are steps"),
        (lambda x: np.histogram(x, weights=x), "np.histogram of traced samples cannot be traced"),
        (lambda x: np.histogram2d(x, x), "np.histogram2d of traced samples"),
        (lambda x: np.histogramdd([x], weights=x), "np.histogramdd of traced samples"),
        (lambda x: np.bincount([0, 1], x), "as many weights as labels, 2"),
        (lambda x: np.bincount([0, 1, 2, 3], x * 1j), "weights that are real"),
        (lambda x: np.histogram([0.0, 1.0], weights=x), "as many weights as samples|same shape"),
        (lambda x: np.partition(x, 4), "kth=4 is out of range for 4 elements"),
        (lambda x: np.einsum(x, [77]), "a list of integers below 52"),
        (lambda x: np.einsum(x, "i"), "a list of integers below 52"),
        (lambda x: np.polyfit(x, x, -1), "a degree from 0 up"),
        (lambda x: np.polyfit(np.arange(3), x, 1), "as many values"),
        (lambda x: np.poly1d(x), "np.poly1d cannot be traced; write np.polyval"),
    ],
)
def test_what_is_refused(function, message: str) -> None:
    with pytest.raises(TiduError, match=message) as error:
        trace(function, "f64[4]")
    assert "trim_zeros" not in str(error.value)
