"""Slopes far from 0 of functions scaled by an exponential, where those by neighbours or by x y are differences without digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from tidu_cli.rules.terms import Term, op

gt, lt, or_, select_n, sign = map(op, ("gt", "lt", "or", "select_n", "sign"))

_TERMS = 10


def where_far(x: Term, limit: float, far: Callable[[Term], Term], near: Term, *, below: bool = True) -> Term:
    """far(x) for x beyond the limit, with `below` for those beyond its negative too, and `near` elsewhere."""
    beyond = or_(gt(x, limit), lt(x, -limit)) if below else gt(x, limit)
    chosen: Term = select_n(beyond, near, far(select_n(beyond, limit, x)))
    return chosen


def bessel_limit(order: float) -> float:
    """From where on Debye's terms are enough, and neighbours leave too little."""
    return 40 * (1 + order**2)


def bessel_i_slope(order: float, x: Term, y: Term, near: Term) -> Term:
    """The slope of y = e^-|x| I(x), `near` where x is not great."""
    rates = [c if k % 2 == 0 else -c for k, c in enumerate(_rates(order))]

    def far(x: Term) -> Term:
        side = sign(x)
        return side * y * _series(rates, side / x)

    return where_far(x, bessel_limit(order), far, near)


def bessel_k_slope(order: float, x: Term, y: Term, near: Term) -> Term:
    """The slope of y = eˣ K(x), `near` where x is not great."""
    return where_far(x, bessel_limit(order), lambda x: y * _series(_rates(order), 1.0 / x), near, below=False)


def tail_slope(x: Term, factor: float, sign: int, near: Term, *, below: bool) -> Term:
    """factor Σ (2k + 1)!! (sign / 2)ᵏ x^(-2k - 2), the slope of Dawson's integral, and of erfcx, for great x; `near` for others."""
    coefficients = [factor]
    for k in range(1, _TERMS):
        coefficients.append(coefficients[-1] * sign * (2 * k + 1) / 2)
    return where_far(x, 12.0, lambda x: _series(coefficients, 1.0 / (x * x)), near, below=below)


def _rates(order: float) -> list[float]:
    """The c of y' / y = Σ c x^-(k + 1) for y = eˣ K(x), by Riccati's equation r' - 2r + r² + (r - 1) / x = order² / x².

    For y = e^-x I(x) the c of even powers have the other sign.
    """
    c = [-0.5]
    for k in range(1, _TERMS):
        products = sum(c[i] * c[k - 1 - i] for i in range(k))
        c.append((products + (1 - k) * c[-1] - (order**2 if k == 1 else 0)) / 2)
    return c


def _series(coefficients: Sequence[float], u: Term) -> Term:
    """Σ c u^(k + 1)"""
    *first, last = coefficients
    return reduce(lambda total, c: (total + c) * u, reversed(first), u * last)
