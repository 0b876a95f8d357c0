"""Splines with constant knots: SciPy's values everywhere, also beyond the ends, and derivatives by places and by values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate as si
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build.comparing import check_close, traced
from tests.build.scipy.test_derivatives import derivatives
from tests.tiers import examples
from tidu_cli import evaluate, jvp
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import TiduError
from tidu_cli.lax.vocabulary import BUILTIN

X = np.array([-1.3, -0.8, -0.1, 0.2, 0.9, 1.4, 2.0, 2.2])
RNG = np.random.default_rng(5)
Y = RNG.normal(size=(2, 8, 3))
T = np.concatenate([np.linspace(-2.0, 3.0, 15), X[:5]]).reshape(4, 5)
"""Between knots, at knots, and beyond them."""

ENDS = ["not-a-knot", "natural", "clamped", "periodic", ((1, 0.5), (2, -1.0)), ("not-a-knot", (1, 2.0))]
EXTRAPOLATE = st.sampled_from([None, True, False, "periodic"])


def makima(*args, **options):
    return si.Akima1DInterpolator(*args, method="makima", **options)


def hermite(x, y, axis=0, **options):
    return si.CubicHermiteSpline(x, y, y * y, axis=axis, **options)


THROUGH = [si.CubicSpline, si.PchipInterpolator, si.Akima1DInterpolator, makima, hermite]


@settings(max_examples=examples(600, check=20), deadline=None)
@given(st.sampled_from(ENDS), st.integers(2, 8), st.integers(0, 4), EXTRAPOLATE)
def test_cubic_splines(ends, n, nu, extrapolate) -> None:
    y = Y[0, :n, 0].copy()
    if ends == "periodic":
        y[-1] = y[0]

    def spline(y):
        return si.CubicSpline(X[:n], y, bc_type=ends, extrapolate=extrapolate)

    check_close(lambda y: spline(y)(T, nu), y)
    check_close(lambda t: spline(y)(t, nu), T)
    check_close(lambda y, t: spline(y)(t, nu), y, T)


@settings(max_examples=examples(400, check=15), deadline=None)
@given(st.sampled_from(THROUGH), st.integers(2, 8), st.integers(-2, 4), EXTRAPOLATE, st.sampled_from([1, -2]))
def test_splines_of_rows(through, n, nu, extrapolate, axis) -> None:
    y = Y[:, :n]

    def values(y, t):
        spline = through(X[:n], y, axis=axis, extrapolate=extrapolate)
        return spline(t) if nu == 0 else spline.derivative(nu)(t)  # the antiderivative, of less than 0

    check_close(lambda y: values(y, T), y)
    check_close(lambda t: values(y, t), T)
    check_close(values, y, T[0])


@pytest.mark.parametrize("through", THROUGH)
def test_integrals(through) -> None:
    check_close(lambda y: through(X, y, axis=1, extrapolate=True).integrate(-2.0, 2.5), Y)
    check_close(lambda y: through(X, y, axis=1).integrate(0.3, -1.0), Y)
    check_close(lambda b: through(X, Y, axis=1).integrate(0.3, b), X[0])
    check_close(lambda a, b: through(X, Y, axis=1).integrate(a, b), X[1], X[0])


def test_flat_and_turning_samples() -> None:
    for y in ([0, 0, 1, 1, 1, 0.5, 0.5, 2.0], [0.0, 0, 0, 0, 1, 1, 1, 1]):
        for through in THROUGH:
            check_close(lambda y, through=through: through(X, y)(T), np.array(y))


def test_ends_that_are_traced() -> None:
    y = Y[:, :, 0]
    check_close(lambda a, b: si.CubicSpline(X, y[0], bc_type=((1, a), (2, b)))(T), np.array(0.3), np.array(2.0))
    check_close(lambda a, y: si.CubicSpline(X, y, axis=1, bc_type=((1, a), "natural"))(T), np.array([0.3, -1]), y)


def test_a_periodic_spline_that_is_not_closed_is_nan() -> None:
    assert np.isnan(traced(lambda y: si.CubicSpline(X, y, bc_type="periodic")(T), Y[0, :, 0])).all()
    assert np.isnan(traced(lambda y: si.make_interp_spline(X, y, bc_type="periodic")(T), Y[0, :, 0])).all()


def test_polynomials_by_coefficients() -> None:
    c = RNG.normal(size=(2, 3, 7))
    check_close(lambda c: si.PPoly(c, X, axis=1)(T), c)
    check_close(lambda c: si.PPoly(c[0], X, extrapolate="periodic").antiderivative(2)(T, 1), c)
    check_close(lambda c: si.PPoly(c[0, :1], X, extrapolate=False)(np.append(T, np.nan)), c)


# By places: SciPy's own derivatives.

SMOOTH = [
    *(lambda through=through: through(X, Y[0, :, 0], extrapolate=True) for through in THROUGH),
    *(lambda k=k: si.make_interp_spline(X, Y[0, :, 0], k) for k in (1, 3, 5)),
    lambda: si.CubicSpline(X, np.append(Y[0, :-1, 0], Y[0, 0, 0]), bc_type="periodic"),
]


@pytest.mark.parametrize("spline", SMOOTH)
def test_derivatives_by_places(spline) -> None:
    t = np.linspace(-1.9, 2.9, 23)
    for order in (1, 2):
        expected = spline()(t, order)
        np.testing.assert_allclose(derivatives(lambda t: spline()(t), t, order), expected, 1e-10, 1e-10 * np.abs(expected).max())


@pytest.mark.parametrize(
    "values",
    [
        *(lambda y, through=through: through(X, y, extrapolate=True)(T[0]) for through in THROUGH),
        lambda y: si.PchipInterpolator(X, y).integrate(-1.0, 2.0),
        lambda y: si.make_interp_spline(X, y).antiderivative()(T[0]),
        lambda y: si.interp1d(X, y, "quadratic", fill_value="extrapolate")(y[:3]),
        lambda y: si.CubicSpline(X, y)(y[:3]),
    ],
)
def test_derivatives_by_values(values) -> None:
    for verdict in check_numerically(trace(lambda y: values(y) ** 2, "f64[8]"), BUILTIN):
        assert verdict.ok, verdict


def test_linear_splines_have_the_spline_of_the_tangent() -> None:
    y, dy = Y[0, :, 0], Y[1, :, 0]
    for spline in (lambda y: si.CubicSpline(X, y)(T), lambda y: si.make_interp_spline(X, y)(T)):
        document = jvp(trace(lambda v, spline=spline: spline(v), y), "v")
        np.testing.assert_allclose(evaluate(document, {"v": y, "v@1": dy})["y@1"], spline(dy), 1e-12, 1e-12)


# Sums of basis functions.


@settings(max_examples=examples(400, check=8), deadline=None)
@given(st.integers(0, 5), st.integers(0, 3), st.sampled_from([True, False, "periodic"]), st.integers(0, 99))
def test_basis_splines(k, nu, extrapolate, seed) -> None:
    rng, nu = np.random.default_rng(seed), min(nu, k + 1)  # of higher ones SciPy gives 0 also where it has NaN else
    t = np.sort(rng.normal(size=12 + k))
    t[k + 4] = t[k + 5]  # a knot that counts twice
    t[: seed % 3 and k + 1] = t[seed % 3 and k]
    c = rng.normal(size=(2, 11))

    def values(c, at):
        return si.BSpline(t, c, k, extrapolate, axis=1)(at, nu)

    check_close(lambda c: values(c, T), c, rtol=1e-10)
    check_close(lambda at: values(c, at), T, rtol=1e-10)
    check_close(values, c, T, rtol=1e-10)


@pytest.mark.parametrize("k", [0, 1, 3, 4])
def test_antiderivatives_and_integrals_of_basis_splines(k) -> None:
    t, c = np.sort(RNG.normal(size=12 + k)), RNG.normal(size=(11, 2))
    for extrapolate in (True, False, "periodic"):

        def spline(c, extrapolate=extrapolate):
            return si.BSpline(t, c, k, extrapolate)

        check_close(lambda c, s=spline: s(c).antiderivative(2)(T), c, rtol=1e-10)
        if k:
            check_close(lambda c, s=spline: s(c).derivative()(T), c, rtol=1e-10)
        check_close(lambda c, s=spline: s(c).integrate(t[0] - 1, t[k] + 0.4), c, rtol=1e-10)
        if extrapolate != "periodic":
            check_close(lambda b, s=spline: s(c).integrate(t[0] - 1, b), t[-1], rtol=1e-10)


ENDS_OF_SPLINES = ["natural", "clamped", "not-a-knot", ([(1, 0.5)], [(2, 0.3)]), ("natural", "clamped")]


@pytest.mark.parametrize(
    ("k", "ends"), [*((k, None) for k in range(6)), (1, "periodic"), (3, "periodic"), *((3, e) for e in ENDS_OF_SPLINES)]
)
def test_interpolating_splines(k, ends) -> None:
    y = Y[0, :, 0].copy()
    if ends == "periodic":
        y[-1] = y[0]

    def values(y, t):
        return si.make_interp_spline(X, y, k, bc_type=ends)(t)

    check_close(lambda y: values(y, T), y, rtol=1e-10)
    check_close(values, y, T, rtol=1e-10)
    check_close(lambda y: si.make_interp_spline(X, y, k, axis=1)(T), Y, rtol=1e-10)


KINDS = ["linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic", 4]


@pytest.mark.parametrize("kind", KINDS)
def test_interp1d(kind) -> None:
    mixed, y = np.array([3, 1, 0, 7, 2, 5, 4, 6]), Y[0, :, 0]
    for fill in (np.nan, 3.0, (1.0, -1.0), "extrapolate"):
        for at in (T, (X[1:] + X[:-1]) / 2, np.array(0.1), np.append(X, np.nan)):

            def values(y, t, axis=0, fill=fill):
                return si.interp1d(X[mixed], y, kind, axis, fill_value=fill, bounds_error=False)(t)

            check_close(lambda y, f=values, at=at: f(y, at), y, rtol=1e-11)
            check_close(lambda t, f=values: f(Y, t, 1), at, rtol=1e-11)
    check_close(lambda y, t: values(y, t, 1), Y, T, rtol=1e-11)
    check_close(lambda y: si.interp1d(X, y, kind)(X[2:4]), y, rtol=1e-11)
    outside = traced(lambda t: si.interp1d(X, y, kind)(t), np.array([-9.0, 0.5]))
    assert np.isnan(outside).tolist() == [True, False]  # where SciPy raises


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: si.CubicSpline(x, X), "scipy.interpolate.CubicSpline with a traced x cannot be traced: which polynomial"),
        (lambda x: si.BSpline(x, X[:4], 3), "scipy.interpolate.BSpline with a traced t"),
        (lambda x: si.make_interp_spline(x, x), "scipy.interpolate.make_interp_spline with a traced x"),
        (lambda x: si.interp1d(X, X, fill_value=x[0])(x), "scipy.interpolate.interp1d with a traced fill_value"),
        (lambda x: si.BPoly(x[None, :7], X), "scipy.interpolate.BPoly .*write PPoly"),
        (lambda x: si.BPoly(np.ones((2, 7)), X)(x), "scipy.interpolate.BPoly .*write PPoly"),
        (lambda x: si.KroghInterpolator(X, x), "scipy.interpolate.KroghInterpolator cannot be traced; write CubicSpline"),
        (lambda x: si.KroghInterpolator(X, X)(x), "scipy.interpolate.KroghInterpolator cannot be traced"),
        (lambda x: si.BarycentricInterpolator(X, X)(x), "scipy.interpolate.BarycentricInterpolator cannot be traced"),
        (lambda x: si.CubicSpline(X, x).roots(), "scipy.interpolate.solve cannot be traced|roots cannot be traced"),
        (lambda x: si.CubicSpline(X[:3], x), "The length of `y`"),
        (lambda x: si.CubicSpline(np.arange(3000), np.arange(3000) * x[0])(0.5), "2,000 points at most"),
        (lambda x: si.CubicSpline(X, x, extrapolate="periodic").integrate(0, 9), "periodic splines cannot be traced"),
        (lambda x: si.interp1d(X, x)(9.0), "above the interpolation range"),
        (lambda x: si.BSpline([0, 0, 0, 0, 1, 2, 3, 4], x[:5], 2)(x), "4 knots at one end"),
    ],
)
def test_what_is_refused(function, message: str) -> None:
    with pytest.raises(TiduError, match=message) as error:
        trace(function, X)
    assert "\n" not in str(error.value)
