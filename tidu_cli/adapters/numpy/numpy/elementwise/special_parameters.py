"""The ufuncs of `scipy.special` whose first operands are parameters, of which graphs have no derivatives: each one number.

They are attrs of primitives (the order of a Bessel function), or say how many steps a recurrence has (a polynomial's degree).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import Rule
from tidu_cli.adapters.numpy.numpy.elementwise.special import all_of, betaln, gammasgn, safe, scaled
from tidu_cli.adapters.numpy.numpy.indexing import filled, select


class Parametrized(NamedTuple):
    """A rule of so many parameters and one array: `rule(x, *parameters)`."""

    n: int
    rule: Callable[..., Array]


def _expn(x: Array, n: float) -> Array:
    if n < 0 or n != int(n):
        raise BuildError(f"expn takes a whole order from 0, got {n:g}")
    return (-x).emit("exp") / x if n == 0 else x.emit("expn", n=int(n))


def _recurrence(
    name: str, first: Callable[[Array, float], Array], step: Callable[[int, Array, Array, Array, float], Array]
) -> Callable[..., Array]:
    """Polynomials P(n) by P(1) and P(k + 1) = step(k, x, P(k), P(k - 1)); Abramowitz and Stegun 22.7."""

    def polynomial(x: Array, n: float, alpha: float = 0.0) -> Array:
        if n < 0 or n != int(n) or n > 1000:
            raise BuildError(f"{name} takes a whole degree from 0 to 1000, got {n:g}")
        before, current = filled(x, 1), first(x, alpha)
        for k in range(1, int(n)):
            before, current = current, step(k, x, current, before, alpha)
        return current if n else before

    return polynomial


_POLYNOMIALS: Mapping[str, tuple[Callable[..., Array], Callable[..., Array]]] = {
    "eval_chebyt": (lambda x, a: x, lambda k, x, p, q, a: x * 2 * p - q),
    "eval_chebyu": (lambda x, a: x * 2, lambda k, x, p, q, a: x * 2 * p - q),
    "eval_hermite": (lambda x, a: x * 2, lambda k, x, p, q, a: x * 2 * p - q * (2 * k)),
    "eval_hermitenorm": (lambda x, a: x, lambda k, x, p, q, a: x * p - q * k),
    "eval_legendre": (lambda x, a: x, lambda k, x, p, q, a: x * p * ((2 * k + 1) / (k + 1)) - q * (k / (k + 1))),
}
"""Those without alpha, by what `_recurrence` takes."""

_genlaguerre = _recurrence(
    "eval_genlaguerre",
    lambda x, a: 1 + a - x,
    lambda k, x, p, q, a: ((2 * k + 1 + a) - x) * p * (1 / (k + 1)) - q * ((k + a) / (k + 1)),
)


def falling(x: Array, k: int) -> Array:
    """x (x - 1) ... (x - k + 1)"""
    return reduce(operator.mul, (x - j if j else x for j in range(k))) if k else filled(x, 1)


def rising(x: Array, k: int) -> Array:
    """x (x + 1) ... (x + k - 1), Pochhammer's symbol; for k < 0 it is 1 / ((x - 1) ... (x + k))."""
    if k < 0:
        return 1 / reduce(operator.mul, (x - j for j in range(1, 1 - k)))
    return reduce(operator.mul, (x + j if j else x for j in range(k))) if k else filled(x, 1)


MOST_FACTORS = 64
"""Products of more factors are written with the gamma function."""


def gamma_ratio(above: Array, below: Array) -> Array:
    """Γ(above) / Γ(below); 0 at poles of the latter only, and infinite or NaN at those of the former."""
    low = below < 0.5
    rest = select(low, 1 - below, below).emit("lgamma")  # by reflection, so that it is smooth at poles
    size = (above.emit("lgamma") + select(low, rest, -rest)).emit("exp") * gammasgn(above)
    return select(low, size * _sine(safe(low, below, 0.0)) * (1 / math.pi), size)


def _sine(x: Array) -> Array:
    """sin πx, which is 0 at whole numbers."""
    whole = x.emit("round", rounding_method="TO_NEAREST_EVEN")
    sine = ((x - whole) * math.pi).emit("sin")
    return select(whole.emit("rem", filled(x, 2)).emit("eq", filled(x, 0)), sine, -sine)


WITH_PARAMETERS: Mapping[str, Parametrized] = {
    "jv": Parametrized(1, lambda x, v: x.emit("bessel_j", order=v)),
    **{name: Parametrized(1, lambda x, v: x.emit("bessel_y", order=v)) for name in ("yv", "yn")},
    "ive": Parametrized(1, lambda x, v: x.emit("bessel_ie", order=v)),
    "iv": Parametrized(1, lambda x, v: scaled("bessel_ie", abs, order=v)(x)),
    "kve": Parametrized(1, lambda x, v: x.emit("bessel_ke", order=v)),
    **{name: Parametrized(1, lambda x, v: scaled("bessel_ke", operator.neg, order=v)(x)) for name in ("kv", "kn")},
    "expn": Parametrized(1, _expn),
    "hyp0f1": Parametrized(1, lambda x, b: x.emit("hyp0f1", b=b)),
    "hyp1f1": Parametrized(2, lambda x, a, b: x.emit("hyp1f1", a=a, b=b)),
    "hyp2f1": Parametrized(3, lambda x, a, b, c: x.emit("hyp2f1", a=a, b=b, c=c)),
    **{name: Parametrized(1, _recurrence(name, *rules)) for name, rules in _POLYNOMIALS.items()},
    "eval_laguerre": Parametrized(1, _genlaguerre),
    "eval_genlaguerre": Parametrized(2, _genlaguerre),
}
"""Ufuncs by name."""


def binom(n: Array, k: Array) -> Array:
    """The binomial coefficient of real numbers, 1 / ((n + 1) B(n - k + 1, k + 1)); 0 for whole k below 0.

    Gamma functions of small numbers are reflected, so that all is smooth at their poles.
    """
    upper, lower, top = n - k + 1, k + 1, n + 1
    high, low = upper < 0.5, lower < 0.5
    p = select(high, k - n, select(low, -k, upper))
    q = select(high, select(low, -k, top), select(low, top, lower))
    plain = all_of(upper >= 0.5, lower >= 0.5)
    log_beta = betaln(p, q)
    size = select(plain, -log_beta, log_beta).emit("exp")
    divisor = select(plain, top, math.pi * select(all_of(high, low), _sine(top), filled(n, 1)))
    turned = select(high, _sine(upper), filled(n, 1)) * select(low, _sine(lower), filled(n, 1))
    return size * gammasgn(q) * turned / divisor


def _pole(x: Array) -> Array:
    return all_of(x <= 0, x.emit("eq", x.emit("floor")))


def _rising(z: Array, m: Array) -> Array:
    """Γ(z + m) / Γ(z), which is 1 where m is 0, also at poles."""
    return select(all_of(_pole(z), m.emit("eq", filled(m, 0))), filled(z, 1), gamma_ratio(z + m, z))


_WHOLE: Mapping[str, Callable[[Array, int], Array]] = {
    "binom": lambda n, k: falling(n, k) * (1 / math.factorial(k)),
    "poch": rising,
}
"""Ufuncs that are polynomials where their last operand is a whole number."""
_LEAST: Mapping[str, int] = {"binom": 0, "poch": -MOST_FACTORS}
"""From which number on."""

GENERAL: Mapping[str, Rule] = {"binom": binom, "poch": _rising}
"""These where it is any."""


def parametrized(name: str, operands: Sequence[Operand], convert: Callable[[Sequence[Operand]], Array]) -> Array | None:
    """The result of a ufunc with parameters, None where it has none. `convert` makes an Array of the operand that is none.

    Raises BuildError for parameters that are arrays, or traced.
    """
    if name in WITH_PARAMETERS:
        n, rule = WITH_PARAMETERS[name]
        parameters: Sequence[Any] = operands[:n]
        for p in parameters:
            if isinstance(p, Array) or np.ndim(p):
                which = "first operand as a fixed number" if n == 1 else f"first {n} operands as fixed numbers"
                several = f"; write np.stack([{name}(n, x) for n in ...]) for several"
                raise BuildError(f"{name} takes its {which}, by which graphs have no derivatives{several}")
        return rule(convert(operands[n:]), *map(float, parameters))
    if name in _WHOLE:
        k: Any = operands[1]
        if not isinstance(k, Array) and not np.ndim(k) and _LEAST[name] <= k <= MOST_FACTORS and k == int(k):
            return _WHOLE[name](convert(operands[:1]), int(k))
    return None
