"""Every ufunc of the tables has NumPy's values, dtypes and shapes; what graphs refuse of them is listed here, with the reason."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import check, traced
from tests.tiers import examples, few
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import UFUNCS
from tidu_cli.adapters.numpy.numpy.elementwise.special import COMPLEX
from tidu_cli.adapters.numpy.numpy.elementwise.special_parameters import WITH_PARAMETERS
from tidu_cli.adapters.numpy.numpy.elementwise.ufuncs import SCIPYS, ufunc_named
from tidu_cli.errors import TiduError

RNG = np.random.default_rng(11)
DTYPES = ("bool", "int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64", "complex64", "complex128")
ORDERED = ("maximum", "minimum", "fmax", "fmin", "less", "less_equal", "greater", "greater_equal")

REFUSED = {
    **{(name, kind): "no order; take it of their magnitudes" for name in ORDERED for kind in "c"},
    **{(name, "c"): "take it of real numbers" for name in set(SCIPYS) - COMPLEX},
    **{("power", kind): "convert the base first: x.astype(float)" for kind in "biu"},
}
"""What NumPy or SciPy computes and graphs do not, by the kind of dtype, with words of the message."""


NOT_OF_ZERO = ("floor_divide", "remainder", "divmod", "fmod", "reciprocal", "psi")
"""Integers divided by 0 are 0 in NumPy, which warns, and have all bits set here; psi of 0 is -inf in SciPy, and NaN here."""


def n_parameters(name: str) -> int:
    return WITH_PARAMETERS[name].n if name in WITH_PARAMETERS else 0


def operands(name: str, dtype: str) -> list[np.ndarray]:
    kind, n = np.dtype(dtype).kind, ufunc_named(name).nin - n_parameters(name)
    if kind == "b" and name in NOT_OF_ZERO:
        return [np.ones((2, 3), bool)] * n
    if kind in "biu":
        return [RNG.integers(0 if kind == "b" else 1, 2 if kind == "b" else 5, (2, 3)).astype(dtype) for _ in range(n)]
    drawn = [RNG.uniform(0.1, 0.9, (2, 3)) + (name == "arccosh") for _ in range(n)]
    return [(x + 1j * RNG.uniform(-0.9, 0.9, (2, 3)) if kind == "c" else x).astype(dtype) for x in drawn]


def cases() -> Iterator[tuple[str, str]]:
    """Every ufunc with every dtype that NumPy, or SciPy, takes."""
    for name in sorted({**UFUNCS, **SCIPYS}):
        ufunc = ufunc_named(name)
        for dtype in DTYPES:
            try:
                ufunc.resolve_dtypes((np.dtype(dtype),) * ufunc.nin + (None,) * ufunc.nout)
            except TypeError:
                continue
            yield name, dtype


CASES = list(cases())


def applied(name: str):
    ufunc = ufunc_named(name)
    ufunc = functools.partial(ufunc, *[1] * n_parameters(name))

    def apply(*x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.stack(ufunc(*x)) if ufunc_named(name).nout > 1 else ufunc(*x)

    return apply


def test_there_are_many_cases() -> None:
    """Lest a mistake in `cases` leave nothing to test."""
    assert len(CASES) > 600


@pytest.mark.parametrize("name", sorted({**UFUNCS, **SCIPYS}))
def test_ufunc(name: str) -> None:
    for dtype in few([dtype for other, dtype in CASES if other == name], 4):
        values = operands(name, dtype)
        refused = REFUSED.get((name, np.dtype(dtype).kind))
        if refused is None:
            check(applied(name), *values)
        else:
            with pytest.raises(TiduError) as refusal:
                traced(applied(name), *values)
            assert refused in str(refusal.value), dtype


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 5e-324, -1e308]
EXACT = ("absolute", "ceil", "copysign", "divide", "equal", "fabs", "floor", "fmax", "fmin", "greater", "greater_equal",
         "heaviside", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and", "logical_not", "maximum", "minimum",
         "modf", "negative", "not_equal", "rint", "sign", "signbit", "square", "trunc")  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_edges_are_numpys(name: str) -> None:
    """Infinities, NaN and both zeros, to the sign of each; only the sign of NaN is nobody's."""
    grid = np.meshgrid(*[EDGES] * ufunc_named(name).nin)
    values = [g.reshape(-1) for g in grid]
    expected, value = applied(name)(*values), traced(applied(name), *values)
    np.testing.assert_array_equal(value, expected)
    if value.dtype.kind == "f" and name not in ("maximum", "minimum", "fmax", "fmin", "sign"):  # these say nothing of zeros' signs
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(value[known]), np.signbit(expected[known]))


@given(st.data())
@settings(max_examples=examples(150, check=17))
def test_division_with_a_remainder(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(["int8", "int64", "uint8", "float64"]))
    low, high = (0, 200) if dtype == "uint8" else (-100, 100)
    elements = st.integers(low, high) if dtype[0] in "iu" else st.integers(-400, 400).map(lambda k: k / 8)
    x, y = (data.draw(hnp.arrays(dtype, (4,), elements=elements)) for _ in range(2))
    y = np.where(y == 0, 3, y).astype(dtype)
    for operation in (lambda a, b: a // b, lambda a, b: a % b, lambda a, b: np.stack(divmod(a, b)), np.fmod):
        check(operation, x, y)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 1.5, 2.0, 2j, np.float32(2), np.int8(3), np.array(2.0)])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "complex64"])
def test_powers_with_a_constant_exponent(exponent, dtype: str) -> None:
    x = np.array([1, 2, 3], dtype)
    negative = dtype == "int8" and not isinstance(exponent, complex) and np.asarray(exponent).dtype.kind == "i" and exponent < 0
    if negative:  # as NumPy, which refuses it
        with pytest.raises(TiduError, match="integers to negative integer powers"):
            traced(lambda a: a**exponent, x)
    else:
        check(lambda a: a**exponent, x)
