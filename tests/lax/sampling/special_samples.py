"""Samples of special functions with parameters, of derivatives by orders and of inverses, with references from mpmath."""

from __future__ import annotations

import mpmath
import scipy.special

from tests.lax.sampling.elementwise_samples import RANK_4, between, exact, in_
from tests.lax.sampling.sample import Sample
from tidu_cli.graph.types import FLOATS


def igamma(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def betainc(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def root(function, near):
    """The zero of a function, from a value near it."""
    near = mpmath.mpf(float(near))
    return mpmath.findroot(function, (near * (1 - mpmath.mpf("1e-9")), near))


def owens_t(h, a):
    return mpmath.quad(lambda s: mpmath.exp(-(h * h) * (1 + s * s) / 2) / (1 + s * s), [0, a]) / (2 * mpmath.pi)


OF = (
    ("erfcx", {}, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (-2, 2)),
    ("erfc_inv", {}, lambda x: mpmath.erfinv(1 - mpmath.mpf(x)), (0.3, 1.7)),
    ("dawsn", {}, lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-(x * x)) * mpmath.erfi(x), (-2, 2)),
    ("expi", {}, mpmath.ei, (0.5, 3)),
    ("expn", {"n": 2}, lambda x: mpmath.expint(2, x), (0.5, 3)),
    ("fresnel_s", {}, mpmath.fresnels, (-2, 2)),
    ("fresnel_c", {}, mpmath.fresnelc, (-2, 2)),
    ("bessel_j", {"order": 2.0}, lambda x: mpmath.besselj(2, x), (0.5, 9)),
    ("bessel_j", {}, lambda x: mpmath.besselj(0, x), (-2, 2)),
    ("bessel_y", {"order": 1.5}, lambda x: mpmath.bessely(1.5, x), (0.5, 9)),
    ("bessel_ie", {"order": 2.0}, lambda x: mpmath.besseli(2, x) * mpmath.exp(-abs(x)), (-3, 3)),
    ("bessel_ke", {"order": 0.5}, lambda x: mpmath.besselk(0.5, x) * mpmath.exp(x), (0.5, 3)),
    ("spherical_bessel_j", {"order": 1}, lambda x: (mpmath.sin(x) / x - mpmath.cos(x)) / x, (0.5, 3)),
    ("gamma", {}, mpmath.gamma, (0.5, 3)),
    ("spence", {}, lambda x: mpmath.polylog(2, 1 - x), (0.5, 1.9)),
    ("sin_integral", {}, mpmath.si, (-3, 3)),
    ("cos_integral", {}, mpmath.ci, (0.8, 3)),
    ("owens_t", {}, owens_t, (-2, 2), (-2, 2)),
    ("hyp0f1", {"b": 1.5}, lambda x: mpmath.hyp0f1(1.5, x), (-2, 2)),
    ("hyp1f1", {}, lambda x: mpmath.hyp1f1(1, 2, x), (-2, 2)),
    ("hyp2f1", {"a": -0.5}, lambda x: mpmath.hyp2f1(-0.5, 0.5, 1, x), (-0.9, 0.9)),
    ("igamma_grad_a", {"order": 2}, lambda a, x: mpmath.diff(lambda a: igamma(a, x), a, 2), (0.5, 3), (0.5, 3)),
    (
        "regularized_incomplete_beta_grad",
        {"order_y": 1},
        lambda a, b, x: mpmath.diff(lambda a, b: betainc(a, b, x), (a, b), (1, 1)),
        (0.5, 3),
        (0.5, 3),
        (0.2, 0.8),
    ),
    ("zeta_grad", {}, lambda s, q: mpmath.zeta(s, q, 1), (2, 4), (0.5, 3)),
    ("igamma_inv", {}, lambda a, p: root(lambda x: igamma(a, x) - p, scipy.special.gammaincinv(a, p)), (0.5, 3), (0.1, 0.9)),
    ("igammac_inv", {}, lambda a, p: root(lambda x: 1 - igamma(a, x) - p, scipy.special.gammainccinv(a, p)), (0.5, 3), (0.1, 0.9)),
    (
        "regularized_incomplete_beta_inv",
        {},
        lambda a, b, p: root(lambda x: betainc(a, b, x) - p, scipy.special.betaincinv(a, b, p)),
        (0.5, 3),
        (0.5, 3),
        (0.1, 0.9),
    ),
)
"""The op, attrs, what it is of numbers, and intervals without poles."""


def functions():
    for name, attrs, reference, *intervals in OF:
        for dtype in in_(FLOATS):
            for shape in RANK_4:
                operands = [between(dtype, shape, *interval, k) for k, interval in enumerate(intervals)]
                yield Sample(name, operands, attrs, exact(lambda *x, f=reference: f(*[float(v) for v in x])))


FAMILIES = (functions,)
