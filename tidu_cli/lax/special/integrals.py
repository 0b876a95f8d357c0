"""Integrals and series: exponential and Fresnel integrals, scaled and inverse error functions, hypergeometric functions.

They are SciPy's; parameters are attrs. Their slopes are Abramowitz and Stegun's (5.1.26, 7.1.19, 7.3, 13.4.8, 15.2.1).
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.elementwise.special import tail_slope
from tidu_cli.lax.recipes.special_function import Recipe, in_double, special_function
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.families import by_partials, elementwise, weighted
from tidu_cli.rules.fields import After, Bounded
from tidu_cli.rules.terms import Term, op

cos, erf, exp, expn, log, sin, spherical_j, square = map(
    op, ("cos", "erf", "exp", "expn", "log", "sin", "spherical_bessel_j", "square")
)
and_, gt, lt, select_n = map(op, ("and", "gt", "lt", "select_n"))
hyp0f1, hyp1f1, hyp2f1 = map(op, ("hyp0f1", "hyp1f1", "hyp2f1"))


class ExpnAttrs(Attrs):
    """`n`: the order, from 1, which it is by default."""

    n: Annotated[int, Bounded(ge=1, lt=2**31)] = 1


def _no_pole(value: float) -> float:
    if value <= 0 and value == int(value):
        raise ValueError(f"{value:g} is a pole, as all integers up to 0 are")
    return value


Divisor = Annotated[float, After(_no_pole, {})]


class Hyp0f1Attrs(Attrs):
    """`b`: the parameter, 1 by default."""

    b: Divisor = 1.0


class Hyp1f1Attrs(Attrs):
    """`a`, `b`: the parameters, 1 and 2 by default."""

    a: float = 1.0
    b: Divisor = 2.0


class Hyp2f1Attrs(Attrs):
    """`a`, `b`, `c`: the parameters, 1/2, 1/2 and 1 by default."""

    a: float = 0.5
    b: float = 0.5
    c: Divisor = 1.0


def _hyp0f1(np: Any, special: Any, attrs: Hyp0f1Attrs, x: Any) -> Any:
    # It grows as e^(2 √x). SciPy's fails where that is no number.
    past = np.greater(x, 1e6) & (abs(attrs.b) < 100)
    return np.where(past, np.copysign(np.inf, special.gamma(attrs.b)), special.hyp0f1(attrs.b, np.where(past, 0, x)))


def _hyp1f1(np: Any, special: Any, attrs: Hyp1f1Attrs, x: Any) -> Any:
    # It grows as eˣ Γ(b) / Γ(a), unless it is a polynomial. SciPy's adds up as many terms as x has units to tell.
    a, b = attrs.a, attrs.b
    if a <= 0 and a == int(a):
        return special.hyp1f1(a, b, x)
    past = x > max(1e5, 100 * (abs(a) + abs(b)))
    infinite = np.copysign(np.inf, special.gammasgn(a) * special.gammasgn(b))
    return np.where(past, infinite, special.hyp1f1(a, b, np.where(past, 0, x)))


def _expn_slope(attrs: ExpnAttrs, x: Term, y: Term) -> Term:
    return -exp(-x) / x if attrs.n == 1 else -expn(x, n=attrs.n - 1)


def _spence_slope(attrs: Attrs, x: Term, y: Term) -> Term:
    """ln x / (1 - x), also at 1."""
    near = and_(gt(x, 0.5), lt(x, 1.5))
    off, far = select_n(near, 0.0, 1.0 - x), select_n(near, x, 2.0)
    return select_n(near, log(far) / (1.0 - far), -hyp2f1(off, a=1.0, b=1.0, c=2.0))


def _owens_by_h(h: Term, a: Term, y: Term) -> Term:
    return exp(square(h) * -0.5) * erf(a * h * math.sqrt(0.5)) * (-0.5 / math.sqrt(2 * math.pi))


def _owens_by_a(h: Term, a: Term, y: Term) -> Term:
    spread = 1.0 + square(a)
    return exp(square(h) * spread * -0.5) / (spread * (2 * math.pi))


PRIMITIVES = (
    special_function(
        "erfcx",
        "e^(x^2) erfc x",
        "scaled complementary error function",
        lambda np, special, attrs, x: special.erfcx(x),
        lambda attrs, x, y: tail_slope(x, -1 / math.sqrt(math.pi), -1, (x * 2.0) * y - 2 / math.sqrt(math.pi), below=False),
        within=((-2.0, 2.0),),
    ),
    special_function(
        "erfc_inv",
        "the y with erfc y = x",
        "inverse of the complementary error function, as good for small x as for others",
        lambda np, special, attrs, x: special.erfcinv(x),
        lambda attrs, x, y: exp(square(y)) * (-math.sqrt(math.pi) / 2),
        within=((0.25, 1.75),),
    ),
    special_function(
        "dawsn",
        "e^(-x^2) ∫₀ˣ e^(s^2) ds",
        "Dawson's integral",
        lambda np, special, attrs, x: special.dawsn(x),
        lambda attrs, x, y: tail_slope(x, -0.5, 1, 1.0 - (x * 2.0) * y, below=True),
        within=((-2.0, 2.0),),
    ),
    special_function(
        "expi",
        "∫ e^s / s ds from -∞ to x",
        "exponential integral Ei, a principal value for x > 0",
        lambda np, special, attrs, x: special.expi(x),
        lambda attrs, x, y: exp(x) / x,
        within=((0.5, 3.0),),
    ),
    special_function(
        "expn",
        "∫ e^(-x s) / sⁿ ds from 1 to ∞",
        "generalized exponential integral E_n, for x ≥ 0",
        lambda np, special, attrs, x: special.expn(attrs.n, x),
        _expn_slope,
        attrs=ExpnAttrs,
        tried=({"n": 3},),
        within=((0.5, 3.0),),
    ),
    special_function(
        "fresnel_s",
        "∫₀ˣ sin(π s^2 / 2) ds",
        "Fresnel integral S",
        lambda np, special, attrs, x: special.fresnel(x)[0],
        lambda attrs, x, y: sin(square(x) * (math.pi / 2)),
        within=((-2.0, 2.0),),
    ),
    special_function(
        "fresnel_c",
        "∫₀ˣ cos(π s^2 / 2) ds",
        "Fresnel integral C",
        lambda np, special, attrs, x: special.fresnel(x)[1],
        lambda attrs, x, y: cos(square(x) * (math.pi / 2)),
        within=((-2.0, 2.0),),
    ),
    special_function(
        "sin_integral",
        "∫₀ˣ sin s / s ds",
        "sine integral Si",
        lambda np, special, attrs, x: special.sici(x)[0],
        lambda attrs, x, y: spherical_j(x),
        within=((-3.0, 3.0),),
    ),
    special_function(
        "cos_integral",
        "∫ cos s / s ds from ∞ to x",
        "cosine integral Ci, for x > 0",
        lambda np, special, attrs, x: special.sici(x)[1],
        lambda attrs, x, y: cos(x) / x,
        within=((0.5, 3.0),),
    ),
    elementwise(
        "owens_t",
        2,
        FLOATS,
        by_partials(weighted(_owens_by_h), weighted(_owens_by_a)),
        kernel=in_double(lambda np, special, attrs, h, a: special.owens_t(h, a)),
        definition=Recipe("owens_t"),
        formula="1/2π ∫₀ʸ e^(-x^2 (1 + s^2) / 2) / (1 + s^2) ds",
        summary="Owen's T function",
    ),
    special_function(
        "spence",
        "∫ ln s / (1 - s) ds from 1 to x",
        "Spence's function, the dilogarithm of 1 - x, for x ≥ 0",
        lambda np, special, attrs, x: special.spence(x),
        _spence_slope,
        within=((0.5, 3.0),),
    ),
    special_function(
        "hyp0f1",
        "Σ xᵏ / (b)ₖ k!",
        "confluent hypergeometric limit function ₀F₁",
        _hyp0f1,
        lambda attrs, x, y: hyp0f1(x, b=attrs.b + 1) * (1 / attrs.b),
        attrs=Hyp0f1Attrs,
        tried=({"b": 1.5},),
        within=((-2.0, 2.0),),
    ),
    special_function(
        "hyp1f1",
        "Σ (a)ₖ xᵏ / (b)ₖ k!",
        "confluent hypergeometric function ₁F₁",
        _hyp1f1,
        lambda attrs, x, y: hyp1f1(x, a=attrs.a + 1, b=attrs.b + 1) * (attrs.a / attrs.b),
        attrs=Hyp1f1Attrs,
        tried=({"a": 0.5, "b": 1.5},),
        within=((-2.0, 2.0),),
    ),
    special_function(
        "hyp2f1",
        "Σ (a)ₖ (b)ₖ xᵏ / (c)ₖ k!",
        "Gauss' hypergeometric function ₂F₁, for x < 1",
        lambda np, special, attrs, x: special.hyp2f1(attrs.a, attrs.b, attrs.c, x),
        lambda attrs, x, y: hyp2f1(x, a=attrs.a + 1, b=attrs.b + 1, c=attrs.c + 1) * (attrs.a * attrs.b / attrs.c),
        attrs=Hyp2f1Attrs,
        tried=({"a": -0.5},),
        within=((-0.9, 0.9),),
    ),
)
