"""Functions at points where formulas break: as tidu builds them, and as mpmath has them with 70 digits, of orders 0 to 4.

The derivatives of a reference are quotients of differences, with steps and precision chosen so that 70 digits are left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np
from scipy import special

from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.keys import Key
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize

ORDERS = 5
"""From 0 to 4."""
INF = math.inf
NAN = "NaN"
_STEP, _KEPT = 80, 233
"""Bits of a step, relative to how far the function is as smooth, and of a derivative: 70 digits."""
UNDERFLOW, OVERFLOW = 1e-44, 1e300
"""Below the first the quotients' own error begins; above the second a product on the way may be infinite, or NaN."""


def everywhere(x: float) -> float:
    """As far as is smooth what is so everywhere."""
    return max(1.0, abs(x))


@dataclass(frozen=True)
class Row:
    """A function of one number as tidu builds it and as mpmath has it, and points.

    `reach` is how far from a point it is smooth, by which steps are chosen. `at` has the derivatives where there are no quotients,
    of orders that exist: those of higher ones are not finite. `tolerance` is of order 0, tenfold for each more. Rounding of x in
    formulas is allowed for; with `sums`, errors of the size of lower derivatives as well, as it is a product with an exponential.
    `wrong` has at points the first order that is not right, and why: it must not be. All from it on are NaN where the reason is.
    """

    built: Callable[[Any], Any]
    exact: Callable[[Any], Any]
    points: Sequence[float]
    reach: Callable[[float], float] = everywhere
    at: Mapping[float, Sequence[float]] = field(default_factory=dict)
    tolerance: float = 1e-11
    wrong: Mapping[float, tuple[int, str]] = field(default_factory=dict)
    sums: bool = False


def derivatives(function: Callable[[Any], Any], points: Sequence[float], orders: int = ORDERS) -> Any:
    """A row an order, of derivatives at all points."""
    x, key = np.array(points, float), Key("x")
    document, inputs, rows = trace(lambda x: function(x), x=x), {key: x}, []
    with np.errstate(all="ignore"):
        for order in range(orders):
            if order:
                document = linearize(document, [key])
                inputs[key.tangent(order)] = np.ones_like(x)
            rows.append(next(iter(evaluate(materialize(document).head, inputs).values())))
    return np.array(rows)


def exactly(row: Row, x: float) -> list[Any]:
    """The derivatives of orders 0 to 4 at a point, by central quotients."""
    exponent = math.frexp(row.reach(x))[1] - 1 - _STEP
    with mpmath.workprec(_KEPT + ORDERS * (max(0, -exponent) + 20 + max(0, math.frexp(x)[1]))):
        h = mpmath.ldexp(1, exponent)
        a, b, c, d, e = (row.exact(mpmath.mpf(x) + k * h) for k in range(-2, 3))
        second, third, fourth = d - 2 * c + b, (e - 2 * d + 2 * b - a) / 2, e - 4 * d + 6 * c - 4 * b + a
        return [c, (d - b) / (2 * h), second / h**2, third / h**3, fourth / h**4]


def faults(row: Row, orders: int = ORDERS) -> list[tuple[float, int, float, str]]:
    """What is wrong: the point, the order, its value, and what it should be."""
    wrong = []
    for x, values in zip(row.points, derivatives(row.built, row.points, orders).T, strict=True):
        exact = list(row.at[x]) if x in row.at else exactly(row, x)
        for order, y in enumerate(map(float, values)):
            if order >= len(exact):
                right = not math.isfinite(y)
            elif mpmath.isinf(exact[order]):
                right = y == exact[order]
            elif abs(exact[order]) > OVERFLOW:
                right = not abs(y) < OVERFLOW
            else:
                size = abs(exact[order]) + (abs(x * exact[order + 1]) if order + 1 < len(exact) and abs(x) < INF else 0)
                size += sum(map(abs, exact[:order])) if row.sums else 0
                right = abs(y - exact[order]) <= row.tolerance * 10**order * size + UNDERFLOW
            known, reason = row.wrong.get(x, (ORDERS, ""))
            if order >= known:
                right = math.isnan(y) if reason == NAN else order > known or not right
            if not right:
                wrong.append((x, order, y, mpmath.nstr(exact[order], 17) if order < len(exact) else "none"))
    return wrong


def from_0(x: float) -> float:
    """The distance from 0."""
    return abs(x)


def from_poles(x: float) -> float:
    """The distance from the poles of the gamma function."""
    return x if x > 0 else abs(x - round(x))


def _poch(z: Any, m: Any) -> Any:
    return mpmath.gammaprod([z + m], [z])


def _binom(n: Any, k: Any) -> Any:
    return mpmath.gamma(n + 1) * mpmath.rgamma(k + 1) * mpmath.rgamma(n - k + 1)


def _student(df: float, t: Any) -> Any:
    v = mpmath.mpf(df)
    scale = mpmath.gamma((v + 1) / 2) / mpmath.gamma(v / 2) / mpmath.sqrt(mpmath.pi * v)
    return t * scale * mpmath.hyp2f1(0.5, (v + 1) / 2, 1.5, -t * t / v) + 0.5


def _lower(a: float, x: Any) -> Any:
    return x**a * mpmath.rgamma(a + 1) * mpmath.hyp1f1(a, a + 1, -x)


def _beta(a: float, b: float, x: Any) -> Any:
    return x**a / a / mpmath.beta(a, b) * mpmath.hyp2f1(a, 1 - b, a + 1, x)


_SMALL = (1e-300, 1e-17, 1e-9, 1e-3)
_AROUND_0 = (0.0, *_SMALL, *(-x for x in _SMALL))
_POSITIVE = (1e-70, 1e-17, 1e-9, 1e-3)
"""Of densities, whose powers x^(a - 1) give derivatives 0 times x^-4: NaN where that is infinite."""
_WHOLE = (0.0, -1.0, -2.0, -30.0)
_NEAR_WHOLE = tuple(k * (1 + s) for k in (-1.0, -2.0, -30.0) for s in (1e-9, -1e-9, 1e-3, -1e-3))


def rows() -> dict[str, Row]:
    """All rows by name."""
    table: dict[str, Row] = {}
    for order in (0, 1):
        for name, of in ((f"i{order}", getattr(special, f"i{order}")), *((("np.i0", np.i0),) if not order else ())):
            table[name] = Row(of, lambda x, v=order: mpmath.besseli(v, x), (*_AROUND_0, 30.0, -30.0, 600.0), sums=True)
        for sign in (1, -1):
            table[f"i{order}e of {sign:+}"] = Row(
                getattr(special, f"i{order}e"),
                lambda x, v=order, s=sign: mpmath.besseli(v, x) * mpmath.exp(-s * x),
                [sign * x for x in (*_SMALL, 30.0, 1e4)],
                from_0,
                sums=True,
            )
    for v in (0, 1, 2, 3, 5):
        table[f"iv {v}"] = Row(
            lambda x, v=v: special.iv(v, x), lambda x, v=v: mpmath.besseli(v, x), (*_AROUND_0, 30.0, 600.0), sums=True
        )
        table[f"jv {v}"] = Row(lambda x, v=v: special.jv(v, x), lambda x, v=v: mpmath.besselj(v, x), _AROUND_0, sums=True)
    table["gamma"] = Row(
        special.gamma, mpmath.gamma, (*_WHOLE, *_NEAR_WHOLE, 1e-9, 1.0, 2.0, 170.0, -170.5),
        from_poles, {x: (INF,) if x == 0 else () for x in _WHOLE},
    )  # fmt: skip
    table["gammaln"] = Row(
        special.gammaln,
        lambda x: mpmath.log(abs(mpmath.gamma(x))),
        (*_WHOLE, *_NEAR_WHOLE, 5e-324, -5e-324, -1e-300, 1e-9, 1.0, 2.0, 1 + 1e-9, 2 - 1e-9, 170.0, INF),
        from_poles,
        {**dict.fromkeys(_WHOLE, (INF,)), INF: (INF, INF, 0.0, 0.0, 0.0)},
    )
    at_poles = (0.0, 1e-9, -1e-9, -1.0, -2.0, -3.0, 0.5, 2.0)
    for m in (0.25, -0.25, 2.75, 3.0, -1.0, -2.0, 0.0):
        smooth = {-1.0: (1.0,), -2.0: (1.0, 2.0), 3.0: (), 0.0: ()}.get(m)
        poles = () if smooth is None else smooth
        points = [x for x in at_poles if x not in poles]
        reach = (lambda x, m=m: from_poles(x + m)) if smooth is None else (lambda x, p=poles: min([abs(x - q) for q in p] or [1.0]))
        table[f"poch(x, {m})"] = Row(lambda x, m=m: special.poch(x, m), lambda x, m=m: _poch(x, mpmath.mpf(m)), points, reach)
    for z in (0.75, 2.0, -0.75):
        points = (0.0, 1e-9, 1.0, 2.0, 3.0, -0.5, 0.5, 20.5)
        table[f"poch({z}, x)"] = Row(
            lambda x, z=z: special.poch(z, x), lambda x, z=z: _poch(mpmath.mpf(z), x), points, lambda x, z=z: from_poles(x + z)
        )
    for k in (0.5, -0.5, 2.5, 3.0, -2.5):
        points = (0.0, 1e-9, -1e-9, 0.5, -0.5, 1.5, -1.5, 2.0, 2.5, 3.0, -1 - 1e-3, 40.5)
        table[f"binom(x, {k})"] = Row(
            lambda x, k=k: special.binom(x, k), lambda x, k=k: _binom(x, mpmath.mpf(k)), points, lambda x: from_poles(x + 1)
        )
    for n in (0.5, 3.0, -0.5, -1.5, 0.0, 100.0):
        points = (0.0, 1e-9, -1e-9, 0.5, -0.5, 1.0, 2.0, 3.0, 4.0, 5.0, -1.0, -2.0, 3.5, 3 + 1e-9, 20.5)
        table[f"binom({n}, x)"] = Row(
            lambda x, n=n: special.binom(n, x), lambda x, n=n: _binom(mpmath.mpf(n), x), points, lambda x: 1.0, sums=True
        )
    for df in (1.0, 2.0, 3.0, 0.5, 2.5, 30.0):
        points = (*_AROUND_0, 0.99, 1.0, -1.0, 30.0, -30.0)
        table[f"stdtr({df}, x)"] = Row(
            lambda x, df=df: special.stdtr(df, x), lambda x, df=df: _student(df, x), points, lambda x: 1.0, sums=True
        )
    for df in (2e4, 1e8):
        table[f"stdtr({df}, x)"] = Row(
            lambda x, df=df: special.stdtr(df, x),
            lambda x, df=df: _student(df, x),
            (*_AROUND_0, 0.99, -1.0),
            lambda x: 1.0,
            sums=True,
        )
    for a in (1.0, 2.0, 3.0, 5.0, 20.0, 0.5, 2.5):
        whole = a == int(a)
        points, reach = ((0.0, *_POSITIVE, 0.999, 1.0, 30.0), lambda x: 1.0) if whole else ((*_POSITIVE, 1.0, 30.0), from_0)
        lower, upper = (lambda x, a=a: special.gammainc(a, x)), (lambda x, a=a: special.gammaincc(a, x))
        table[f"gammainc({a}, x)"] = Row(lower, lambda x, a=a: _lower(a, x), points, reach)
        table[f"gammaincc({a}, x)"] = Row(upper, lambda x, a=a: 1 - _lower(a, x), points, reach, sums=True)
    for a, b in ((1.0, 1.0), (3.0, 1.0), (1.0, 3.0), (2.0, 2.0), (5.0, 3.0), (20.0, 1.0), (0.5, 0.5), (2.5, 1.5)):
        whole = a == int(a)
        points = (0.0, *_POSITIVE, 0.5, 1 - 1e-3, 1 - 1e-9, 1.0) if whole else (*_POSITIVE, 0.5, 1 - 1e-3)
        table[f"betainc({a}, {b}, x)"] = Row(
            lambda x, a=a, b=b: special.betainc(a, b, x),
            lambda x, a=a, b=b: _beta(a, b, x),
            points,
            (lambda x: 1.0) if whole else (lambda x: min(abs(x), abs(1 - x))),
            sums=True,
        )
    return table
