"""Building a graph from formulas and functions, and comparing its values with NumPy's."""

from __future__ import annotations

import copy
import warnings

import numpy as np

from tidu_cli.adapters.numpy.formulas.formula import build_formula
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.errors import TiduError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.runtime.evaluate import evaluate


def type_of(x) -> TensorType:
    x = np.asarray(x)
    return TensorType(dtype_name(x.dtype), x.shape)


def run(document, values):
    return {str(k): v for k, v in evaluate(document.head, {Key(k): np.asarray(v) for k, v in values.items()}).items()}


def formula(text, **values):
    """The value of a formula of one output."""
    (value,) = run(build_formula(text, {k: type_of(v) for k, v in values.items()}), values).values()
    return value


def traced(function, *values):
    """The value of a traced function of arrays that gives one array."""
    arrays = {f"x{k}": np.asarray(v) for k, v in enumerate(values)}
    types = [type_of(v) for v in values]
    document = trace(lambda x: function(*x), types)
    renamed = {f"x.{k}": v for k, v in enumerate(arrays.values())}
    (value,) = run(document, renamed).values()
    return value


ROUNDINGS = 64
"""As many roundings as may part a traced function's value from NumPy's, which adds up in another order."""


def assert_same(value, expected, rtol=None):
    """Dtype and shape are equal; so are values, but for `ROUNDINGS` units in the last place of the largest of them."""
    expected = np.asarray(expected)
    assert value.dtype == expected.dtype, (value.dtype, expected.dtype)
    assert value.shape == expected.shape, (value.shape, expected.shape)
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(value, expected)
        return
    rtol = ROUNDINGS * float(np.finfo(expected.dtype).eps) if rtol is None else rtol
    finite = np.abs(expected[np.isfinite(expected)]).astype(float)
    np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol * finite.max(initial=0.0))


def check(function, *values):
    """A traced function has NumPy's values, dtype and shape."""
    assert_same(traced(function, *values), function(*values))


def of_numpy(function, values):
    """What NumPy gives, on copies of the values; None for an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*(copy.deepcopy(v) for v in values))
        except (TypeError, ValueError, IndexError, AttributeError):
            return None


def of_graph(function, values):
    """What the traced function gives, or the message of its refusal."""
    types = [np.asarray(v) for v in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            document = trace(lambda *x: dict(enumerate(function(*x))), *types)
        except TiduError as error:
            return str(error)
    results = run(document, {str(i.key): v for i, v in zip(document.head.inputs, values, strict=True)})
    return [results[str(k)] for k in range(len(results))]


def compare(function, *values) -> str | None:
    """A traced function gives what NumPy gives, or its refusal is returned. What NumPy refuses is refused."""
    expected, outcome = of_numpy(function, values), of_graph(function, values)
    if isinstance(outcome, str):
        assert "\n" not in outcome
        return outcome
    assert expected is not None, "NumPy refuses it"
    for a, b in zip(outcome, expected, strict=True):
        assert_same(a, b)
    return None


def check_close(function, *values, rtol=1e-12):
    """A traced function has SciPy's values, of which small ones may be what cancels of greater ones."""
    expected = np.asarray(function(*values))
    value = traced(function, *values)
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol * largest)
