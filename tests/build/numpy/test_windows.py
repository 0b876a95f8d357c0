"""Convolutions with features and reductions of windows, as functions of Python: of traced arrays and of NumPy's alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.build.comparing import check
from tidu_cli.adapters.numpy.numpy.signal import conv_general_dilated, reduce_window_max, reduce_window_min, reduce_window_sum
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(2, 3, 7, 6)), RNG.normal(size=(4, 3, 3, 2))


def test_as_sums_over_windows():
    convolved = conv_general_dilated(X, W, (2, 1), [(1, 1), (0, 1)])
    padded = np.pad(X, [(0, 0), (0, 0), (1, 1), (0, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2]
    np.testing.assert_allclose(convolved, np.einsum("nchwij,ocij->nohw", windows, W), 1e-13, 1e-13)


def test_other_orders_of_axes():
    plain = conv_general_dilated(X, W, (1, 2), "SAME")
    assert plain.shape == (2, 4, 7, 3)
    texts = ("NHWC", "HWIO", "NHWC")
    convolved = conv_general_dilated(X.transpose(0, 2, 3, 1), W.transpose(2, 3, 1, 0), (1, 2), "SAME", dimension_numbers=texts)
    np.testing.assert_allclose(convolved.transpose(0, 3, 1, 2), plain, 1e-13)


def test_traced_arrays_give_what_plain_ones_do():
    for padding, dilation in itertools.product(("SAME", "VALID", [(2, 0), (-1, 3)]), (None, (2, 3))):
        check(lambda x, w, p=padding, d=dilation: conv_general_dilated(x, w, (1, 2), p, d, d), X, W)
        for reduced in (reduce_window_sum, reduce_window_max, reduce_window_min):
            check(lambda x, p=padding, d=dilation, f=reduced: f(x, (3, 2), (2, 1), p, d, d), X[0, 0])
    check(lambda x: conv_general_dilated(x, W.astype(np.float32), (1, 1), "VALID"), X)
    check(lambda w: conv_general_dilated(X, w, (1, 1), "VALID"), W)
    check(lambda x: reduce_window_sum(x, (2,)), np.arange(5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: conv_general_dilated(x, W, (1, 1), "FULL"), "padding is 'SAME'"),
        (lambda x: conv_general_dilated(x, W, (1, 1), "SAME", dimension_numbers=("NHWC", "HWOX", "NHWC")), "write such as"),
        (lambda x: conv_general_dilated(x, W[:, :2], (1, 1), "SAME"), "3 features"),
        (lambda x: reduce_window_max(x, (2, 2)), "rank 4"),
    ],
)
def test_messages(call, message):
    with pytest.raises(TiduError, match=message):
        call(X)
    with pytest.raises(TiduError, match=message):
        trace(call, X)
