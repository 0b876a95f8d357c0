"""Filters of scipy.ndimage and Savitzky-Golay filters: SciPy's values for all modes, origins and axes, and derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage as nd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.signal import savgol_filter

from tests.build.comparing import check_close
from tests.tiers import examples
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.lax.vocabulary import BUILTIN

MODES = st.sampled_from(["reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-wrap", "grid-constant"])
DTYPES = st.sampled_from([np.float64, np.float32, np.complex128])
SIZES = st.integers(1, 6)


def drawn(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype is np.complex128 else x).astype(dtype)


def same(function, x):
    check_close(function, x, rtol=1e-5 if x.dtype == np.float32 else 1e-12)


@settings(max_examples=examples(600, check=60), deadline=None)
@given(st.data(), MODES, DTYPES, st.booleans(), st.integers(0, 99))
def test_weights_over_one_axis(data, mode, dtype, complex_, seed) -> None:
    x = drawn(data.draw(st.tuples(SIZES, SIZES)), dtype, seed)
    m, axis = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([0, 1, -1]))
    origin = data.draw(st.integers(-(m // 2), (m - 1) // 2))
    assume(not (complex_ and dtype is np.float32))  # whose result SciPy has in single, and that of graphs is not
    weights = drawn(m, np.complex128 if complex_ else np.float64, seed + 1)
    options = {"axis": axis, "mode": mode, "cval": 0.7, "origin": origin}
    same(lambda x: nd.correlate1d(x, weights, **options), x)
    same(lambda x: nd.uniform_filter1d(x, m, **options), x)
    assume(-(m // 2) <= -origin - (m + 1) % 2)  # where convolve1d starts
    same(lambda x: nd.convolve1d(x, weights, **options), x)


@settings(max_examples=examples(400, check=40), deadline=None)
@given(st.data(), MODES, DTYPES, st.integers(0, 99))
def test_weights_over_several_axes(data, mode, dtype, seed) -> None:
    rank = data.draw(st.integers(1, 3))
    x = drawn(data.draw(st.tuples(*[SIZES] * rank)), dtype, seed)
    axes = data.draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True).map(sorted))
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * len(axes)))
    origin = [data.draw(st.integers(-((n - 1) // 2), (n - 1) // 2)) for n in shape]
    weights, options = drawn(shape, np.float64, seed + 1), {"mode": mode, "cval": -0.3, "origin": origin, "axes": tuple(axes)}
    same(lambda x: nd.correlate(x, weights, **options), x)
    same(lambda x: nd.uniform_filter(x, list(shape), **options), x)
    same(lambda x: nd.gaussian_filter(x, 0.8, mode=mode, cval=-0.3, axes=tuple(axes)), x)
    same(lambda x: nd.laplace(x, mode=mode, axes=tuple(axes)), x)
    assume(all(-(n // 2) <= -o - (n + 1) % 2 for n, o in zip(shape, origin, strict=True)))
    same(lambda x: nd.convolve(x, weights, **options), x)


@pytest.mark.parametrize("order", [0, 1, 2, 3, (1, 0)])
def test_gaussians_and_differences(order) -> None:
    x = drawn((5, 6), np.float64, 1)
    same(lambda x: nd.gaussian_filter(x, (1.3, 0), order, mode=["wrap", "nearest"], truncate=2.0), x)
    same(lambda x: nd.gaussian_filter1d(x, 0.7, 0, 2, radius=3), x)
    same(lambda x: nd.gaussian_laplace(x, (0.8, 1.1), mode="mirror"), x)
    same(lambda x: nd.sobel(x, 0, mode="nearest"), x)
    same(lambda x: nd.prewitt(x, cval=0.5, mode="constant"), x)
    same(lambda x: nd.correlate1d(x, [1, 2], output=np.float32), x.astype(np.float32))


@settings(max_examples=examples(300, check=30), deadline=None)
@given(
    st.sampled_from([(5, 2), (7, 3), (4, 2), (9, 4), (3, 0), (1, 0), (6, 1)]),
    st.integers(0, 2),
    st.sampled_from([0, 1, -1]),
    st.sampled_from(["mirror", "constant", "nearest", "wrap", "interp"]),
    st.sampled_from([np.float64, np.float32, np.int64]),
)
def test_savitzky_golay(window, deriv, axis, mode, dtype) -> None:
    x = (10 * drawn((9, 11), np.float64, 3)).astype(dtype)
    same(lambda x: savgol_filter(x, *window, deriv, 0.5, axis, mode, 0.3), x)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: nd.convolve(x, np.arange(6.0).reshape(2, 3), mode="mirror"),
        lambda x: nd.gaussian_filter(x, 1.0),
        lambda x: savgol_filter(x, 3, 1),
    ],
)
def test_derivatives(function) -> None:
    for verdict in check_numerically(trace(lambda x: function(x) ** 2, "f64[3,4]"), BUILTIN):
        assert verdict.ok, verdict


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: nd.convolve(x.astype(int), np.ones((2, 2))), "round integers; convert i64"),
        (lambda x: nd.correlate(np.ones((4, 4)), x), "constant weights and cval"),
        (lambda x: nd.convolve1d(x, x[0]), "constant weights and cval"),
        (lambda x: nd.gaussian_filter(x, x[0, 0]), "a constant sigma"),
        (lambda x: nd.correlate(x, np.ones(3)), "must match"),
        (lambda x: nd.correlate1d(x, np.ones(3), origin=2), "Invalid origin 2"),
        (lambda x: nd.correlate1d(x, np.ones(3), mode="best"), "mode is one of"),
        (lambda x: nd.laplace(x, output=np.zeros((4, 4))), "leave it out"),
        (lambda x: nd.median_filter(x, 3), "scipy.ndimage.median_filter cannot be traced; write a filter with constant weights"),
        (lambda x: savgol_filter(x, 5, 2), "for as many samples at least"),
        (lambda x: savgol_filter(x * 1j, 3, 2), "of real samples"),
        (lambda x: savgol_filter(x, 3, 2, mode="reflect"), "mode is 'mirror'"),
    ],
)
def test_what_is_refused(function, message: str) -> None:
    with pytest.raises(TiduError, match=message):
        trace(function, np.ones((4, 4)))
