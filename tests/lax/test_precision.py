"""reduce_precision: every number of a format, and the formats that NumPy has itself."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.graphs.templates import make_case
from tests.lax.orders import Orders
from tests.lax.test_edges import tangent, value
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import parse_type


@pytest.mark.parametrize(
    ("narrow", "exponent_bits", "mantissa_bits"),
    [(np.float16, 5, 10), (ml_dtypes.bfloat16, 8, 7), (ml_dtypes.float8_e5m2, 5, 2), (np.float32, 8, 23)],
)
@pytest.mark.parametrize("wide", [np.float32, np.float64])
def test_rounds_as_a_conversion_there_and_back(narrow, exponent_bits, mantissa_bits, wide):
    rng = np.random.default_rng(0)
    x = (rng.uniform(-2, 2, 4000) * 2.0 ** rng.integers(-12, 17, 4000)).astype(wide)
    x[:9] = [0, -0.0, np.inf, -np.inf, np.nan, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1.125, 1.375]
    smallest = float(ml_dtypes.finfo(narrow).smallest_normal)
    x[np.abs(x) < smallest] /= 2  # away from where it matters whether it is rounded as a denormal number first
    with np.errstate(over="ignore"):
        expected = x.astype(narrow).astype(wide)
    expected = np.where(np.abs(expected) < smallest, np.copysign(0, x), expected)  # XLA has no denormals in the format
    expected = np.where(np.isnan(x), x, expected)
    rounded = value("reduce_precision", x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
    assert rounded.tobytes() == expected.tobytes()


def test_tangents_and_cotangents_are_rounded_too():
    x, t = np.array([1.0, 2.0]), np.array([1 + 2.0**-9, 3.0])
    attrs = {"exponent_bits": 5, "mantissa_bits": 8}
    assert tangent("reduce_precision", [x], [t], **attrs).tolist() == [1, 3]
    assert Orders("reduce_precision", [x], **attrs).vjp(t)[0].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("attrs", "operand", "message"),
    [
        ({"exponent_bits": 0, "mantissa_bits": 3}, "f32[]", "attr 'exponent_bits'"),
        ({"exponent_bits": 5, "mantissa_bits": -1}, "f32[]", "attr 'mantissa_bits'"),
        ({"exponent_bits": 5, "mantissa_bits": 10}, "c64[]", "it takes floats"),
    ],
)
def test_messages(attrs, operand, message):
    with pytest.raises(TypeRuleError, match=message):
        make_case("reduce_precision", attrs, [parse_type(operand)])
