"""scipy.signal and scipy.fft of traced arrays: SciPy's values for all modes and methods, and derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.fft
import scipy.signal

from tests.build.comparing import traced
from tests.tiers import few
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(5)
SHAPES = [
    ((5,), (3,)),
    ((3,), (5,)),
    ((4, 5), (2, 3)),
    ((4, 5), (1, 3)),
    ((1, 5), (1, 2)),
    ((2, 3), (4, 5)),
    ((4, 4), (3, 3)),
    ((), ()),
]
PLANES = [pair for pair in SHAPES if len(pair[0]) == 2]
MODES = ("full", "same", "valid")


def drawn(shape, complex_=False):
    x = RNG.normal(size=shape)
    return np.asarray(x + 1j * RNG.normal(size=shape) if complex_ else x)


def check(function, *values):
    """Dtype, shape and values are SciPy's, but for the digits that transforms lose."""
    expected, value = np.asarray(function(*values)), traced(function, *values)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(value, expected, 1e-12, 1e-12 * np.abs(expected).max(initial=0))


@pytest.mark.check
@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("mode", MODES)
def test_convolutions_and_correlations(mode, method):
    for k, (s, t) in enumerate(SHAPES):
        c, d = divmod((k + MODES.index(mode)) % 4, 2)  # which of both is complex
        check(lambda x, y: scipy.signal.convolve(x, y, mode, method), drawn(s, c), drawn(t, d))
        check(lambda x, y: scipy.signal.correlate(x, y, mode, method), drawn(s, c), drawn(t, d))
    check(lambda x: scipy.signal.convolve(x, [[1, 2]], mode, method), np.arange(6).reshape(2, 3))


@pytest.mark.check
@pytest.mark.parametrize("function", [scipy.signal.fftconvolve, scipy.signal.oaconvolve])
@pytest.mark.parametrize("mode", MODES)
def test_convolutions_by_transforms(function, mode):
    for (s, t), c in itertools.product(SHAPES, (False, True)):
        check(lambda x, y: function(x, y, mode), drawn(s), drawn(t, c))
    for axes in (0, 1, [0], (1, 0)):
        check(lambda x, y, axes=axes: function(x, y, mode, axes), drawn((4, 5)), drawn((4, 5)))


@pytest.mark.check
@pytest.mark.parametrize("boundary", ["fill", "symm", "wrap"])
@pytest.mark.parametrize("function", [scipy.signal.convolve2d, scipy.signal.correlate2d])
def test_planes(function, boundary):
    for mode, (s, t), c in few(itertools.product(MODES, PLANES, (False, True)), 7):
        check(lambda x, y, mode=mode: function(x, y, mode, boundary, 1.5), drawn(s, c), drawn(t, c))
    check(lambda x, y: function(x, y, "same", boundary), drawn((4, 4)), drawn((3, 2)))


@pytest.mark.parametrize("c", [False, True])
def test_filters(c):
    for n, (p, q) in itertools.product((1, 2, 30), ((1, 1), (3, 1), (1, 3), (4, 3), (2, 5))):
        a = np.r_[1.3, 0.3 * RNG.normal(size=q - 1)]
        check(lambda b, a, x: scipy.signal.lfilter(b, a, x), drawn(p), a, drawn(n, c))
        check(lambda b, a, x: scipy.signal.lfilter(b, a, x, axis=0), drawn(p, c), a, drawn((n, 3)))
    check(lambda x: scipy.signal.lfilter([1, 2], 1, x), np.arange(5.0))


def test_filters_keep_the_digits_that_the_recursion_has():
    b, a = scipy.signal.butter(8, 0.1)
    x = RNG.normal(size=1000)
    filtered, expected = traced(lambda x: scipy.signal.lfilter(b, a, x), x), scipy.signal.lfilter(b, a, x)
    np.testing.assert_allclose(filtered, expected, 1e-8, 1e-8)


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (scipy.signal.lfilter, (drawn(3), np.array([1.2, 0.3, -0.2]), drawn(7))),
        (lambda x, y: scipy.signal.convolve(x, y, "same", "fft"), (drawn((3, 4)), drawn((2, 2)))),
        (lambda x, y: scipy.signal.correlate2d(x, y, boundary="symm"), (drawn((3, 4), True), drawn((2, 2), True))),
        (lambda x: abs(scipy.fft.fftn(x, workers=2)) ** 2, (drawn((3, 4)),)),
    ],
)
def test_derivatives(function, operands):
    for verdict in check_numerically(trace(lambda x: function(*x), operands), BUILTIN):
        assert verdict.ok, verdict


@pytest.mark.parametrize(
    "name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "irfftn"]
)
def test_transforms(name):
    function = getattr(scipy.fft, name)
    for norm in (None, "ortho", "forward"):
        check(lambda x, norm=norm: function(x, norm=norm, workers=1), drawn((4, 5)))
    if name[-1] in "2n":
        check(lambda x: function(x, s=(3, 6), axes=(1, 0)), drawn((4, 5)))
        check(lambda x: function(x, s=6, axes=0), drawn((4, 5)))
    else:
        check(lambda x: function(x, n=6, axis=0, overwrite_x=True), drawn((4, 5)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: scipy.signal.convolve(x, np.ones((2, 2))), "write x"),
        (lambda x: scipy.signal.convolve(x, np.ones(0)), "not empty"),
        (lambda x: scipy.signal.convolve(x, np.ones(2), "whole"), "mode is"),
        (lambda x: scipy.signal.convolve(x, np.ones(2), method="best"), "method is"),
        (lambda x: scipy.signal.convolve2d(x[None], np.ones((1, 2)), boundary="none"), "boundary is"),
        (lambda x: scipy.signal.convolve2d(x, np.ones(2)), "to be matrices"),
        (lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x, zi=[0.0]), "without zi="),
    ],
)
def test_messages(function, message):
    with pytest.raises(BuildError, match=message):
        trace(function, drawn(5))
