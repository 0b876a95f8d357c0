"""The ufuncs of `scipy.special`: for each a rule from operands of one shape and dtype to primitives.

Where a formula has a removable singularity, such as (eˣ - 1) / x at 0, a function without one is taken, so that derivatives of all
orders are right there, too. The error function of complex numbers is made of real functions: a series around the real line, and a
continued fraction far from 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import Rule, as_op, logaddexp, x_times
from tidu_cli.adapters.numpy.numpy.indexing import filled, select
from tidu_cli.lax.names import ops_of

_RADIUS = 7.0
"""From where on the continued fraction is exact, and up to where the series has `_TERMS`."""

_TERMS = 2 * int(_RADIUS) + 12
_DEPTH = 12  # the poles of what is cut off lie within √(2 · 12) of 0


def complex_erf(z: Array) -> Array:
    """erf z, whose derivatives are those of what it is computed by. Infinite where e^(-z²) is."""
    x, y = z.emit("real").convert("f64"), z.emit("imag").convert("f64")
    x = select(abs(x) > 1e8, x.emit("sign") * 1e8, x)  # where it is 1, or no number has its phase
    far = (x * x + y * y) > _RADIUS**2
    zero = filled(x, 0)
    near_parts = _near(select(far, zero, x), select(far, zero, y))
    far_parts = _far(select(far, x, filled(x, _RADIUS + 1)), select(far, y, zero))
    real, imag = (select(far, a, b) for a, b in zip(far_parts, near_parts, strict=True))
    return real.emit("complex", imag).convert(z.type.dtype)


def _near(x: Array, y: Array) -> tuple[Array, Array]:
    """Abramowitz and Stegun 7.1.29, scaled so that nothing overflows."""
    n: Any = np.arange(1.0, _TERMS + 1)
    a, b = x.reshaped((*x.shape, 1)), y.reshaped((*x.shape, 1))
    gauss = (n * n * -0.25 - a * a).emit("exp")
    level = (b - a) * (b + a)
    ahead, behind = ((level - (n / 2 - s * b).emit("square")).emit("exp") * 0.5 for s in (1, -1))
    low = (abs(b) < 0.5).broadcast(gauss.shape)
    even = ahead + behind
    odd = select(low, gauss * (n * select(abs(b) < 0.5, b, filled(b, 0))).emit("sinh"), ahead - behind)
    cosine, sine = (a * b * 2).emit("cos"), (a * b * 2).emit("sin")
    width = n * n + a * a * 4
    real = ((gauss - even * cosine) * a * 2 + odd * sine * n) / width
    imag = (even * sine * a * 2 + odd * cosine * n) / width
    product, bell = x * y, (-x * x).emit("exp") * y * (1 / math.pi)
    half = bell * product.emit("sin") * product.emit("spherical_bessel_j", order=0)
    whole = bell * (product * 2).emit("spherical_bessel_j", order=0)
    sums = (part.emit("reduce_sum", axes=(x.ndim,)) * (2 / math.pi) for part in (real, imag))
    return x.emit("erf") + half + next(sums), whole + next(sums)


def _far(x: Array, y: Array) -> tuple[Array, Array]:
    """1 - erfc, by Laplace's continued fraction in the right half of the plane."""
    side = select(x >= 0, filled(x, 1), filled(x, -1))
    w = (x * side).emit("complex", y * side)
    fraction = w
    for k in range(_DEPTH, 0, -1):
        fraction = w + (k / 2) / fraction
    complement = ((y - x) * (y + x)).emit("complex", x * y * -2).emit("exp") / (fraction * math.sqrt(math.pi))
    one = select(x.emit("eq", filled(x, 0)), filled(x, 0), filled(x, 1))  # on the imaginary axis nothing is left of it
    return side * (one - complement.emit("real")), -side * complement.emit("imag")


_ROOT_2 = math.sqrt(2)


def safe(condition: Array, x: Array, otherwise: float) -> Array:
    """x where the condition holds, else a number that gives no infinite derivatives."""
    return select(condition, x, filled(x, otherwise))


def all_of(*conditions: Array) -> Array:
    """Where all hold."""
    return reduce(lambda p, q: p.emit("and", q), conditions)


def _within(condition: Array, value: Array) -> Array:
    """The value where the condition holds, NaN elsewhere."""
    return select(condition, value, filled(value, math.nan))


def gammasgn(x: Array) -> Array:
    """The sign of the gamma function, NaN at its poles."""
    floor = x.emit("floor")
    turned = select(floor.emit("rem", filled(x, 2)).emit("eq", filled(x, 0)), filled(x, 1), filled(x, -1))
    sign = select(x < 0, select(floor.emit("eq", x), filled(x, math.nan), turned), filled(x, 1))
    return select(x.emit("eq", filled(x, 0)), (1 / x).emit("sign"), sign)


def _rgamma(x: Array) -> Array:
    """1 / Γ(x): by reflection below 1/2, so that it is smooth at the poles of Γ; above by ln Γ, whose slope never overflows."""
    low, far = x < 0.5, x >= 200
    up = safe(all_of(low.emit("not"), far.emit("not")), x, 1.0)
    logarithm = up.emit("lgamma")
    above = (1 / up.emit("gamma")).emit("stop_gradient") * (logarithm.emit("stop_gradient") - logarithm).emit("exp")
    down = safe(low, x, 0.0)
    whole = (down + 0.5).emit("floor")
    sign = 1 - abs(whole.emit("rem", filled(x, 2))) * 2
    below = sign * ((down - whole) * math.pi).emit("sin") * (1 - down).emit("gamma") * (1 / math.pi)
    below = select(down.emit("eq", whole).emit("and", down < -150), filled(x, 0), below)
    value = select(low, below, select(far, filled(x, 0), above))
    return select(_known(x), value, x)


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_LARGE = 15.0


def _lacking(x: Array) -> Array:
    """What Stirling's formula lacks of ln Γ(x), for large x; Abramowitz and Stegun 6.1.40."""
    inverse = 1 / x
    square = inverse.emit("square")
    series = filled(x, _STIRLING[-1])
    for coefficient in reversed(_STIRLING[:-1]):
        series = series * square + coefficient
    return series * inverse


def betaln(a: Array, b: Array) -> Array:
    """ln |B(a, b)|: the difference of ln Γ(large) and ln Γ(large + small) by Stirling's formula, in which they do not cancel."""
    total = a + b
    plain = a.emit("lgamma") + b.emit("lgamma") - total.emit("lgamma")
    small, large = select(a < b, a, b), select(a < b, b, a)
    far = all_of(small > 0, large > _LARGE, large < math.inf)
    s, l = safe(far, small, 1.0), safe(far, large, _LARGE)  # noqa: E741
    n = s + l
    ratio = (l - 0.5) * (s / l).emit("log1p") + s * (n.emit("log") - 1) + (_lacking(n) - _lacking(l))
    at_pole = all_of(a.emit("eq", filled(a, 0)), b.emit("eq", filled(b, 0)))
    return select(far, s.emit("lgamma") - ratio, select(at_pole, filled(a, math.inf), plain))


def beta(a: Array, b: Array) -> Array:
    return betaln(a, b).emit("exp") * (gammasgn(a) * gammasgn(b) * gammasgn(a + b))


def log_ndtr(x: Array) -> Array:
    low = x < -1
    tail, rest = safe(low, x, -1.0), select(low, filled(x, -1), x)
    far = ((-tail * (1 / _ROOT_2)).emit("erfcx") * 0.5).emit("log") - tail.emit("square") * 0.5
    return select(low, far, ((rest * (1 / _ROOT_2)).emit("erfc") * -0.5).emit("log1p"))


def _rel_entr(x: Array, y: Array) -> Array:
    inside, nothing = all_of(x > 0, y > 0), all_of(x.emit("eq", filled(x, 0)), y >= 0)
    x_, y_ = safe(inside, x, 1.0), safe(inside, y, 1.0)
    elsewhere = select(nothing, filled(x, 0), select(_known(x, y), filled(x, math.inf), x + y))
    return select(inside, x_ * (x_ / y_).emit("log"), elsewhere)


def _known(*operands: Array) -> Array:
    return all_of(*[x.emit("eq", x) for x in operands])


def _huber(delta: Array, r: Array) -> Array:
    size = abs(r)
    loss = select(size <= delta, r.emit("square") * 0.5, delta * (size - delta * 0.5))
    return select(delta < 0, filled(r, math.inf), loss)


def _pseudo_huber(delta: Array, r: Array) -> Array:
    width = safe(delta.emit("ne", filled(delta, 0)), delta, 1.0)
    loss = width.emit("square") * ((r / width).emit("square").emit("log1p") * 0.5).emit("expm1")
    return select(delta < 0, filled(r, math.inf), select(delta.emit("eq", filled(delta, 0)), filled(r, 0), loss))


def _power_of(log: Array, exponent: Array) -> Array:
    """(e^(exponent log) - 1) / exponent, of no logarithm that is infinite."""
    product = exponent * log
    near = abs(product) < 1
    series = log * safe(near, product, 0.0).emit("hyp1f1")
    return select(near, series, safe(near.emit("not"), product, 1.0).emit("expm1") / safe(near.emit("not"), exponent, 1.0))


def _boxcox(log: str, end: int, x: Array, exponent: Array) -> Array:
    """By a logarithm whose argument ends at `end`."""
    inside = x.emit("ne", filled(x, end))
    at_0 = select(exponent > 0, -1 / safe(exponent > 0, exponent, 1.0), filled(x, -math.inf))
    return select(inside, _power_of(safe(inside, x, end + 1.0).emit(log), exponent), at_0)


def _inverse(y: Array, exponent: Array) -> Array:
    """The logarithm of inv_boxcox: ln(1 + exponent y) / exponent."""
    product = exponent * y
    end = product.emit("eq", filled(y, -1))
    inside = safe(product > -1, product, 0.0)
    near = abs(inside) < 0.5
    series = y * (-safe(near, inside, 0.0)).emit("hyp2f1", a=1.0, b=1.0, c=2.0)
    logarithm = select(near, series, safe(near.emit("not"), inside, 1.0).emit("log1p") / safe(near.emit("not"), exponent, 1.0))
    outside = select(end, -math.inf * exponent.emit("sign"), filled(y, math.nan))
    return select(product > -1, logarithm, outside)


def _stdtr(df: Array, t: Array) -> Array:
    """Student's distribution function: near 0, where it is smooth, by the symmetric incomplete beta function, else by its tail.

    Both lose digits to great df, for which it is almost the normal one.
    """
    square = t.emit("square")
    normal = all_of(df > 1e4, square < df.emit("sqrt") * 0.04)
    near = all_of(square < 1, square < df, normal.emit("not"))
    tail = (df * 0.5).emit("regularized_incomplete_beta", filled(t, 0.5), df / (df + select(near, df, square))) * 0.5
    by_tail = select(t < 0, tail, 1 - tail)
    small = safe(near, t, 0.0)
    turned = (df * 0.5).emit("regularized_incomplete_beta", df * 0.5, small / (df + small.emit("square")).emit("sqrt") * 0.5 + 0.5)
    fisher = _nearly_normal(safe(normal, df, 1e4), safe(normal, t, 0.0))
    return _within(df > 0, select(normal, fisher, select(near, turned, by_tail)))


def _nearly_normal(df: Array, t: Array) -> Array:
    """Fisher's series of Student's distribution function in 1 / df; Abramowitz and Stegun 26.7.6."""
    q, u = t.emit("square"), 1 / df
    first, second = (q + 1) / 4, (((q * 3 - 5) * q - 7) * q - 3) / 96
    third = (((((q - 11) * q + 14) * q + 6) * q - 3) * q - 15) / 384
    density = (q * -0.5).emit("exp") * (1 / math.sqrt(2 * math.pi))
    return (t * (-1 / _ROOT_2)).emit("erfc") * 0.5 - density * t * u * (first + u * (second + u * third))


def _ratio(m: Array, n: Array, x: Array) -> Array:
    """m x / (m x + n), also where that is infinite."""
    part = m * x
    finite = part < math.inf
    bounded = safe(finite, part, 1.0)
    return select(finite, bounded / (bounded + n), filled(x, 1))


def scaled(name: str, exponent: Callable[[Array], Array], **attrs: object) -> Rule:
    """A function that is a scaled primitive times the exponential that it was scaled by."""
    return lambda x: exponent(x).emit("exp") * x.emit(name, **attrs)


_BESSEL: Mapping[str, Rule] = {
    **{f"j{k}": as_op("bessel_j", order=float(k)) for k in (0, 1)},
    **{f"y{k}": as_op("bessel_y", order=float(k)) for k in (0, 1)},
    **{f"k{k}e": as_op("bessel_ke", order=float(k)) for k in (0, 1)},
    **{f"k{k}": scaled("bessel_ke", lambda x: -x, order=float(k)) for k in (0, 1)},
    **{f"i{k}": scaled(f"bessel_i{k}e", abs) for k in (0, 1)},
}

_DISTRIBUTIONS: Mapping[str, Rule] = {
    "ndtr": lambda x: (x * (-1 / _ROOT_2)).emit("erfc") * 0.5,
    "log_ndtr": log_ndtr,
    "ndtri": lambda p: (p * 2).emit("erfc_inv") * -_ROOT_2,
    "chdtr": lambda df, x: (df * 0.5).emit("igamma", x * 0.5),
    "chdtrc": lambda df, x: (df * 0.5).emit("igammac", x * 0.5),
    "gdtr": lambda a, b, x: b.emit("igamma", a * x),
    "gdtrc": lambda a, b, x: b.emit("igammac", a * x),
    "pdtr": lambda k, m: (k.emit("floor") + 1).emit("igammac", m),
    "pdtrc": lambda k, m: (k.emit("floor") + 1).emit("igamma", m),
    "fdtr": lambda m, n, x: _within(
        all_of(m > 0, n > 0, x >= 0), (m * 0.5).emit("regularized_incomplete_beta", n * 0.5, _ratio(m, n, x))
    ),
    "fdtrc": lambda m, n, x: _within(
        all_of(m > 0, n > 0, x >= 0), (n * 0.5).emit("regularized_incomplete_beta", m * 0.5, n / (m * x + n))
    ),
    "stdtr": _stdtr,
    "betaincc": lambda a, b, x: b.emit("regularized_incomplete_beta", a, 1 - x),
    "betainccinv": lambda a, b, p: 1 - b.emit("regularized_incomplete_beta_inv", a, p),
}

SPECIAL: Mapping[str, Rule] = {
    **{ufunc: as_op(op) for ufunc, op in ops_of("scipy.special").items()},
    **_BESSEL,
    **_DISTRIBUTIONS,
    "loggamma": lambda x: _within(x >= 0, x.emit("lgamma")),
    "erf": lambda x: complex_erf(x) if x.type.complex else x.emit("erf"),
    "gammasgn": gammasgn,
    "rgamma": _rgamma,
    "beta": beta,
    "betaln": betaln,
    "logit": lambda x: x.emit("log") - (-x).emit("log1p"),
    "log_expit": lambda x: -logaddexp(filled(x, 0), -x),
    "xlogy": x_times("log"),
    "xlog1py": x_times("log1p"),
    "entr": lambda x: -x_times("log")(x, x),
    "rel_entr": _rel_entr,
    "kl_div": lambda x, y: _rel_entr(x, y) - select(_rel_entr(x, y) < math.inf, x - y, filled(x, 0)),
    "huber": _huber,
    "pseudo_huber": _pseudo_huber,
    "boxcox": partial(_boxcox, "log", 0),
    "boxcox1p": partial(_boxcox, "log1p", -1),
    "inv_boxcox": lambda y, exponent: _inverse(y, exponent).emit("exp"),
    "inv_boxcox1p": lambda y, exponent: _inverse(y, exponent).emit("expm1"),
    "cosm1": lambda x: (x * 0.5).emit("sin").emit("square") * -2,
    "exp10": lambda x: filled(x, 10).emit("pow", x),
    "erfi": lambda x: x.emit("square").emit("exp") * x.emit("dawsn") * (2 / math.sqrt(math.pi)),
    "exp1": lambda x: select(x >= 0, safe(x >= 0, x, 1.0).emit("expn"), -(-safe(x < 0, x, -1.0)).emit("expi")),
    "fresnel": lambda x: (x.emit("fresnel_s"), x.emit("fresnel_c")),
    "sici": lambda x: (x.emit("sin_integral"), x.emit("cos_integral")),
    "ellipk": lambda m: _within(m <= 1, m.emit("hyp2f1") * (math.pi / 2)),
    "ellipe": lambda m: _within(m <= 1, m.emit("hyp2f1", a=-0.5) * (math.pi / 2)),
}
"""Ufuncs of scipy.special by name."""

COMPLEX: frozenset[str] = frozenset({"erf", "expit", "log_expit", "xlogy", "xlog1py", "entr", "logit"})
"""Those that take complex numbers where SciPy does; the others are refused there."""
