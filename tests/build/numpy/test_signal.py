"""Fourier transforms and convolutions as NumPy and SciPy have them: every function, norm, mode and axis, values and derivatives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.build.comparing import assert_same, check, traced
from tests.tiers import few
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.lax.vocabulary import BUILTIN

RNG = np.random.default_rng(3)
NORMS = (None, "backward", "ortho", "forward")
DTYPES = (np.float64, np.float32, np.float16, np.complex128, np.complex64, np.int32, np.bool_)


def drawn(shape, dtype=np.float64):
    x = RNG.uniform(-2, 2, shape)
    return (x + 1j * RNG.uniform(-2, 2, shape) if np.dtype(dtype).kind == "c" else 3 * x).astype(dtype)


def real(name):
    return name in ("rfft", "rfft2", "rfftn", "ihfft")


def check_transform(function, x):
    """NumPy computes in single what is in half precision, but for the factor that a norm asks for."""
    expected = function(x)
    assert_same(traced(function, x), function(x.astype(np.float32)).astype(expected.dtype) if x.dtype == np.float16 else expected)


ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")


@pytest.mark.check
@pytest.mark.parametrize("name", ONE)
def test_transforms_over_an_axis(name):
    function = getattr(np.fft, name)
    for dtype, n, norm in few(itertools.product(DTYPES, (None, 1, 3, 8), NORMS), 24):
        if not (real(name) and np.dtype(dtype).kind == "c"):
            check_transform(lambda x, n=n, norm=norm: function(x, n, norm=norm), drawn((2, 5), dtype))
    check(lambda x: function(x, axis=0), drawn((4, 3)))
    check(lambda x: function(x, 5, 1), drawn((2, 4, 3)))
    check(function, drawn((0, 4)))


@pytest.mark.check
@pytest.mark.parametrize("name", SEVERAL)
def test_transforms_over_several_axes(name):
    function = getattr(np.fft, name)
    for dtype, norm in few(itertools.product(DTYPES[:6], NORMS), 7):
        if not (real(name) and np.dtype(dtype).kind == "c"):
            check_transform(lambda x, norm=norm: function(x, norm=norm), drawn((2, 3, 4), dtype))
    for s, axes in (((2, 6), (0, 2)), ((4, 3), (2, 1)), ((3, 5), (-1, 0)), (None, (1, 0)), ((-1, 6), (1, 2))):
        check(lambda x, s=s, axes=axes: function(x, s, axes), drawn((4, 3, 5)))
    check(lambda x: function(x, (2, 2, 3), (1, 0, 1)), drawn((4, 3)))


def test_what_numpy_refuses():
    x = drawn((2, 4))
    for function, error, message in (
        (lambda x: np.fft.fft(x, 0), ValueError, "a transform of 0 elements"),
        (lambda x: np.fft.irfft(x[:, :1]), ValueError, "a transform of 0 elements"),
        (lambda x: np.fft.fft(x, norm="both"), ValueError, "norm is"),
        (lambda x: np.fft.hfft(x, norm="both"), ValueError, "norm is"),
        (lambda x: np.fft.fft(x, axis=2), ValueError, "axis 2"),
        (lambda x: np.fft.fftn(x, (1, 2, 3), (0, 1)), ValueError, "3 lengths for 2 axes"),
        (lambda x: np.fft.rfft(1j * x), TypeError, "np.fft.fft, or take it of x.real"),
    ):
        with pytest.raises((error, BuildError), match=message):
            traced(function, x)
        with pytest.raises((error, IndexError)):
            function(x)


def test_filters_by_transforms_have_derivatives():
    def filtered(x, h):
        return np.fft.irfft(np.fft.rfft(x, 9) * np.fft.rfft(h, 9), 9)

    x, h = drawn(5), drawn(3)
    np.testing.assert_allclose(traced(filtered, x, h)[:7], np.convolve(x, h), 1e-13, 1e-13)
    for verdict in check_numerically(trace(filtered, x, h), BUILTIN):
        assert verdict.ok, verdict


@pytest.mark.check
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolutions_of_vectors(name, mode):
    function = getattr(np, name)
    for n, m in few(itertools.product((1, 2, 3, 6), repeat=2), 5):
        check(lambda x, y: function(x, y, mode), drawn(n), drawn(m, np.complex128))
        check(lambda x, y: function(x, y, mode), drawn(n, np.int32), drawn(m, np.float32))
        check(lambda x, y: function(x, y, mode), drawn(n, np.complex128), drawn(m))
    check(lambda x: function(x, [1.0, 2.0], mode), drawn(4))
    check(lambda x: function([1, 2], x, mode), drawn(4))


def test_convolutions_are_one_primitive():
    document = trace(lambda x, y: np.convolve(x, y, "same"), drawn(50), drawn(7))
    assert [case.op for case, _ in document.head.nodes()].count("conv_general_dilated") == 1
    for verdict in check_numerically(document, BUILTIN):
        assert verdict.ok, verdict
