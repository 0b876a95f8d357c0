"""What scipy.special has beside ufuncs: values, dtypes and shapes are SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from tests.build.comparing import assert_same, check, traced
from tidu_cli.errors import TiduError

RNG = np.random.default_rng(4)
X = RNG.uniform(0.2, 3, (3, 4))
B = RNG.uniform(-2, 2, (3, 4))
B[0, 1] = 0


@pytest.mark.parametrize(
    "function",
    [
        special.logsumexp,
        lambda x: special.logsumexp(x, axis=1),
        lambda x: special.logsumexp(x, axis=(0, 1), keepdims=True),
        lambda x: special.logsumexp(x, axis=0, b=np.abs(B)),
        lambda x: special.logsumexp(x, b=B, axis=1, return_sign=True)[0],
        lambda x: special.logsumexp(x, b=B, axis=1, return_sign=True, keepdims=True)[1],
        lambda x: special.logsumexp(np.zeros(4), b=x, axis=1),
        lambda x: special.softmax(x, axis=0),
        special.log_softmax,
        special.softplus,
        lambda x: special.polygamma(2, x),
        lambda x: special.polygamma(np.arange(4), x),
        lambda x: special.zeta(1 + x),
        lambda x: special.zeta(1 + x, 2.5),
        lambda x: special.multigammaln(1 + x, 3),
        lambda x: special.spherical_jn(0, x),
        lambda x: special.spherical_jn(2, x),
        lambda x: special.spherical_jn(1, x, derivative=True),
        lambda x: special.spherical_jn(0, x, True),
        special.factorial,
        lambda x: special.factorial(x - 2),
        lambda x: special.comb(x + 3, 2),
        lambda x: special.comb(5.5, x),
        lambda x: special.comb(x, 2.5),
        lambda x: special.comb(x, 2, repetition=True),
        lambda x: special.perm(x + 3, 2),
        lambda x: special.perm(7.5, x),
        special.digamma,
        lambda x: special.jn(3, x),
        special.sinc,
    ],
)
def test_values(function) -> None:
    check(function, X)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize(
    "function",
    [
        special.logsumexp,
        special.softmax,
        special.factorial,
        lambda x: special.polygamma(1, x),
        lambda x: special.comb(x, 2),
        lambda x: special.comb(9, x),
        lambda x: special.multigammaln(x, 2),
        lambda x: special.zeta(x + 2),
        lambda x: special.binom(x, 3),
    ],
)
def test_dtypes(function, dtype: str) -> None:
    check(function, np.array([1, 2, 5], dtype))


def test_edges() -> None:
    n = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 5.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        check(special.factorial, n[:-2])
        for k in (0, 1, 3):
            check(lambda n, k=k: special.comb(n, k), n[:-2])
            check(lambda n, k=k: special.perm(n, k), n[:-2])
        check(lambda n: special.logsumexp(n[:3]), np.array([-np.inf, -np.inf, -np.inf]))
        check(lambda x: special.logsumexp(x), np.array([np.inf, 1.0]))
        check(lambda x: special.logsumexp(x, b=np.array([0.0, 1.0])), np.array([np.inf, 1.0]))
        check(lambda x: special.logsumexp(x, b=np.array([0.0, -1.0])), np.array([3.0, 1.0]))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: special.comb(x, 2, exact=True), "comb with exact=True cannot be traced"),
        (lambda x: special.factorial(x, exact=True), "factorial with exact=True cannot be traced"),
        (lambda x: special.factorial(x, extend="complex"), r"write scipy.special.gamma\(n \+ 1\)"),
        (lambda x: special.jv(x, 1.0), "jv takes its first operand as a fixed number"),
        (lambda x: special.jv(np.arange(4), x), r"write np.stack\(\[jv\(n, x\)"),
        (lambda x: special.eval_legendre(1.5, x), "eval_legendre takes a whole degree"),
        (lambda x: special.expn(1.5, x), "expn takes a whole order"),
        (lambda x: special.hyp1f1(1.0, -2.0, x), "-2 is a pole"),
        (lambda x: special.spherical_jn(x, 1.0), "spherical_jn takes its order as a fixed number"),
        (special.lambertw, "lambertw cannot be traced"),
        (lambda x: special.gamma(x * 1j), "gamma of complex numbers"),
        (special.airy, "scipy.special.airy cannot be traced; write the formula"),
        (lambda x: special.mathieu_a(1, x), "scipy.special.mathieu_a cannot be traced"),
    ],
)
def test_what_is_refused(function, message: str) -> None:
    with pytest.raises(TiduError, match=message):
        traced(function, X)


@pytest.mark.parametrize(("name", "degree"), [(n, k) for n in ("chebyt", "chebyu", "hermite", "hermitenorm", "legendre", "laguerre")
                                              for k in (0, 1, 2, 9)])  # fmt: skip
def test_polynomials(name: str, degree: int) -> None:
    x = np.linspace(-0.9, 0.9, 7)
    function = getattr(special, f"eval_{name}")
    assert_same(traced(lambda x: function(degree, x), x), function(degree, x), rtol=1e-12)
    assert_same(traced(lambda x: special.eval_genlaguerre(degree, 0.5, x), x), special.eval_genlaguerre(degree, 0.5, x), rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, -1, 2.5, -0.5, 7])
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "ive", "kv", "kve"])
def test_bessel_functions(name: str, order: float) -> None:
    check(lambda x: getattr(special, name)(order, x), np.array([0.25, 1.0, 2.0, 30.0]))
