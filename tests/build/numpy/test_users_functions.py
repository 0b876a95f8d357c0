"""Functions of NumPy that call functions of users', or go over elements, with traced arrays: NumPy's values and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.build.comparing import traced
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.tracing import trace

X = np.random.default_rng(3).normal(size=(2, 3, 4))


def elements(x):
    return np.array([v * sum(k) for k, v in np.ndenumerate(x)])


def changed_on_the_way(x):
    y, seen = x[0].copy(), []
    for (i, j), v in np.ndenumerate(y):
        seen.append(v)
        y[-1, -1] = i + j * v
    return np.array(seen)


def written_through(x):
    a = np.zeros(4)
    b = np.asarray(a, like=x)
    b += x[0, 0]
    return a * b


CASES = {
    "an array like another": written_through,
    "elements": elements,
    "changed on the way": changed_on_the_way,
    "rows to numbers": lambda x: np.apply_along_axis(np.sum, 1, x),
    "rows to rows": lambda x: np.apply_along_axis(lambda r: np.cumsum(r)[1:], -2, x),
    "rows to matrices": lambda x: np.apply_along_axis(lambda r: r[:, None] * r, 0, x),
    "one row": lambda x: np.apply_along_axis(lambda r, s, k=1: r @ r * s + k, 0, x[0, 0], 2, k=3),
    "pieces": lambda x: np.piecewise(x, [x < 0, x > 1], [lambda v: v**2, np.log, 7]),
    "pieces of rows": lambda x: np.piecewise(x[0, 0], x[0, 0] > 0, [np.sqrt, lambda v: -v]),
    "pieces that overlap": lambda x: np.piecewise(x, [x > -1, x > 0], [1, lambda v, s: v * s], 3),
    "the diagonal": lambda x: x[0, :, :3][np.diag_indices_from(x[0, :, :3])],
    "triangles": lambda x: x[0, :, :3][np.tril_indices_from(x[0, :, :3], -1)] - x[0, :, :3][np.triu_indices_from(x[0, :, :3], 1)],
}


@pytest.mark.parametrize("case", CASES)
def test_values_are_numpys(case):
    function = CASES[case]
    expected, value = np.asarray(function(X.copy())), traced(function, X)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(value, expected, 1e-14)


def test_pieces_and_functions_that_do_not_match():
    with pytest.raises(BuildError, match="with 1 condition"):
        trace(lambda x: np.piecewise(x, [x > 0], [1, 2, 3]), "f64[3]")
