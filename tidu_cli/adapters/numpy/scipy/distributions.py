"""The distributions of `scipy.stats` that have closed forms, as functions of a standardized number and of shapes.

Numbers are inside of the support where they are called; outside, their callers know what there is to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.numpy.elementwise.elementwise import logaddexp, x_times
from tidu_cli.adapters.numpy.numpy.elementwise.special import SPECIAL, betaln, log_ndtr
from tidu_cli.adapters.numpy.numpy.indexing import filled, select
from tidu_cli.frozen import Frozen, field

Function = Callable[..., Array]
"""Of a number and the shapes."""

_LOG_2PI = math.log(2 * math.pi)
_xlogy: Function = x_times("log")
_xlog1py: Function = x_times("log1p")


class Distribution(Frozen, slots=False):
    """`support` is of the standardized number; `opens` says that its lower end is none, as formulas have no value there.

    Where there is no `logcdf` or `logsf` among `more`, it is the logarithm of the other.
    """

    log_density: Function
    cdf: Function
    sf: Function
    support: tuple[float, float] = (-math.inf, math.inf)
    opens: bool = False
    ppf: Function | None = None
    isf: Function | None = None
    more: Mapping[str, Function] = field(default_factory=dict)
    """Of `logcdf` and `logsf` those that are better than logarithms."""
    largest: int | None = None
    """Of a discrete one, which shape is the largest number, if one is."""
    probability: int | None = None
    """Of a discrete one, which shape is a probability, if one is; the others are positive."""


def special(name: str) -> Function:
    """A ufunc of scipy.special."""
    return SPECIAL[name]


ndtr, ndtri, expit = map(special, ("ndtr", "ndtri", "expit"))


def log(x: Array) -> Array:
    return x.emit("log")


def exp(x: Array) -> Array:
    return x.emit("exp")


def _beta(a: Array, b: Array, x: Array) -> Array:
    return a.emit("regularized_incomplete_beta", b, x)


def _beta_inv(a: Array, b: Array, p: Array) -> Array:
    return a.emit("regularized_incomplete_beta_inv", b, p)


def _log_t(x: Array, df: Array) -> Array:
    return -betaln(df * 0.5, filled(df, 0.5)) - log(df) * 0.5 - (df + 1) * 0.5 * (x.emit("square") / df).emit("log1p")


def _log_f(x: Array, m: Array, n: Array) -> Array:
    return (
        _xlogy(m * 0.5, m) + _xlogy(n * 0.5, n) + _xlogy(m * 0.5 - 1, x) - (m + n) * 0.5 * log(n + m * x) - betaln(m * 0.5, n * 0.5)
    )


def _log_gamma(x: Array, a: Array) -> Array:
    return _xlogy(a - 1, x) - x - a.emit("lgamma")


def _log_logistic(x: Array) -> Array:
    return logaddexp(x * 0.5, x * -0.5) * -2  # smooth at 0, where a formula of |x| would have a kink


def _laplace_tail(x: Array) -> Array:
    """P(X > x)"""
    tail = exp(-abs(x)) * 0.5
    return select(x < 0, 1 - tail, tail)


def _laplace_quantile(p: Array) -> Array:
    low = p < 0.5
    return select(low, log(select(low, p, filled(p, 0.5)) * 2), -log(select(low, filled(p, 0.5), 1 - p) * 2))


def _cauchy_tail(x: Array) -> Array:
    return filled(x, 1).emit("atan2", x) * (1 / math.pi)


def _weibull(x: Array, c: Array) -> Array:
    return x.emit("pow", c)


_POSITIVE = (0.0, math.inf)
_HALF_LOG_2PI = 0.5 * _LOG_2PI

CONTINUOUS: Mapping[str, Distribution] = {
    "norm": Distribution(
        lambda x: x.emit("square") * -0.5 - _HALF_LOG_2PI,
        ndtr,
        lambda x: ndtr(-x),
        ppf=ndtri,
        isf=lambda p: -ndtri(p),
        more={"logcdf": log_ndtr, "logsf": lambda x: log_ndtr(-x)},
    ),
    "halfnorm": Distribution(
        lambda x: x.emit("square") * -0.5 + 0.5 * math.log(2 / math.pi),
        lambda x: (x * math.sqrt(0.5)).emit("erf"),
        lambda x: (x * math.sqrt(0.5)).emit("erfc"),
        _POSITIVE,
        ppf=lambda p: p.emit("erf_inv") * math.sqrt(2),
        isf=lambda p: p.emit("erfc_inv") * math.sqrt(2),
    ),
    "lognorm": Distribution(
        lambda x, s: (log(x) / s).emit("square") * -0.5 - log(s * x) - _HALF_LOG_2PI,
        lambda x, s: ndtr(log(x) / s),
        lambda x, s: ndtr(-log(x) / s),
        _POSITIVE,
        opens=True,
        ppf=lambda p, s: exp(s * ndtri(p)),
        isf=lambda p, s: exp(-s * ndtri(p)),
        more={"logcdf": lambda x, s: log_ndtr(log(x) / s), "logsf": lambda x, s: log_ndtr(-log(x) / s)},
    ),
    "t": Distribution(_log_t, lambda x, df: special("stdtr")(df, x), lambda x, df: special("stdtr")(df, -x)),
    "cauchy": Distribution(
        lambda x: -x.emit("square").emit("log1p") - math.log(math.pi), lambda x: _cauchy_tail(-x), _cauchy_tail
    ),
    "gamma": Distribution(
        _log_gamma,
        lambda x, a: a.emit("igamma", x),
        lambda x, a: a.emit("igammac", x),
        _POSITIVE,
        ppf=lambda p, a: a.emit("igamma_inv", p),
        isf=lambda p, a: a.emit("igammac_inv", p),
    ),
    "invgamma": Distribution(
        lambda x, a: -(a + 1) * log(x) - a.emit("lgamma") - 1 / x,
        lambda x, a: a.emit("igammac", 1 / x),
        lambda x, a: a.emit("igamma", 1 / x),
        _POSITIVE,
        opens=True,
        ppf=lambda p, a: 1 / a.emit("igammac_inv", p),
        isf=lambda p, a: 1 / a.emit("igamma_inv", p),
    ),
    "chi2": Distribution(
        lambda x, df: _log_gamma(x * 0.5, df * 0.5) - math.log(2),
        lambda x, df: (df * 0.5).emit("igamma", x * 0.5),
        lambda x, df: (df * 0.5).emit("igammac", x * 0.5),
        _POSITIVE,
        ppf=lambda p, df: (df * 0.5).emit("igamma_inv", p) * 2,
        isf=lambda p, df: (df * 0.5).emit("igammac_inv", p) * 2,
    ),
    "f": Distribution(
        _log_f, lambda x, m, n: special("fdtr")(m, n, x), lambda x, m, n: special("fdtrc")(m, n, x), _POSITIVE
    ),
    "beta": Distribution(
        lambda x, a, b: _xlogy(a - 1, x) + _xlog1py(b - 1, -x) - betaln(a, b),
        lambda x, a, b: _beta(a, b, x),
        lambda x, a, b: _beta(b, a, 1 - x),
        (0.0, 1.0),
        ppf=lambda p, a, b: _beta_inv(a, b, p),
        isf=lambda p, a, b: 1 - _beta_inv(b, a, p),
    ),
    "expon": Distribution(
        lambda x: -x,
        lambda x: -(-x).emit("expm1"),
        lambda x: exp(-x),
        _POSITIVE,
        ppf=lambda p: -(-p).emit("log1p"),
        isf=lambda p: -log(p),
        more={"logsf": lambda x: -x},
    ),
    "weibull_min": Distribution(
        lambda x, c: log(c) + _xlogy(c - 1, x) - _weibull(x, c),
        lambda x, c: -(-_weibull(x, c)).emit("expm1"),
        lambda x, c: exp(-_weibull(x, c)),
        _POSITIVE,
        ppf=lambda p, c: (-(-p).emit("log1p")).emit("pow", 1 / c),
        isf=lambda p, c: (-log(p)).emit("pow", 1 / c),
        more={"logsf": lambda x, c: -_weibull(x, c)},
    ),
    "rayleigh": Distribution(
        lambda x: log(x) - x.emit("square") * 0.5,
        lambda x: -(x.emit("square") * -0.5).emit("expm1"),
        lambda x: exp(x.emit("square") * -0.5),
        _POSITIVE,
        ppf=lambda p: ((-p).emit("log1p") * -2).emit("sqrt"),
        isf=lambda p: (log(p) * -2).emit("sqrt"),
        more={"logsf": lambda x: x.emit("square") * -0.5},
    ),
    "pareto": Distribution(
        lambda x, b: log(b) - (b + 1) * log(x),
        lambda x, b: -(-b * log(x)).emit("expm1"),
        lambda x, b: exp(-b * log(x)),
        (1.0, math.inf),
        ppf=lambda p, b: exp(-(-p).emit("log1p") / b),
        isf=lambda p, b: exp(-log(p) / b),
        more={"logsf": lambda x, b: -b * log(x)},
    ),
    "uniform": Distribution(
        lambda x: filled(x, 0), lambda x: x, lambda x: 1 - x, (0.0, 1.0), ppf=lambda p: p, isf=lambda p: 1 - p
    ),
    "laplace": Distribution(
        lambda x: -abs(x) - math.log(2),
        lambda x: _laplace_tail(-x),
        _laplace_tail,
        ppf=_laplace_quantile,
        isf=lambda p: -_laplace_quantile(p),
    ),
    "logistic": Distribution(
        _log_logistic,
        expit,
        lambda x: expit(-x),
        ppf=special("logit"),
        isf=lambda p: -special("logit")(p),
        more={"logcdf": special("log_expit"), "logsf": lambda x: special("log_expit")(-x)},
    ),
    "gumbel_r": Distribution(
        lambda x: -x - exp(-x),
        lambda x: exp(-exp(-x)),
        lambda x: -(-exp(-x)).emit("expm1"),
        ppf=lambda p: -log(-log(p)),
        isf=lambda p: -log(-(-p).emit("log1p")),
        more={"logcdf": lambda x: -exp(-x)},
    ),
    "gumbel_l": Distribution(
        lambda x: x - exp(x),
        lambda x: -(-exp(x)).emit("expm1"),
        lambda x: exp(-exp(x)),
        ppf=lambda p: log(-(-p).emit("log1p")),
        isf=lambda p: log(-log(p)),
        more={"logsf": lambda x: -exp(x)},
    ),
}  # fmt: skip
"""By SciPy's names."""

DISCRETE: Mapping[str, Distribution] = {
    "poisson": Distribution(
        lambda k, mu: _xlogy(k, mu) - (k + 1).emit("lgamma") - mu,
        lambda k, mu: (k + 1).emit("igammac", mu),
        lambda k, mu: (k + 1).emit("igamma", mu),
        _POSITIVE,
    ),
    "binom": Distribution(
        lambda k, n, p: -betaln(n - k + 1, k + 1) - log(n + 1) + _xlogy(k, p) + _xlog1py(n - k, -p),
        lambda k, n, p: _beta(n - k, k + 1, 1 - p),
        lambda k, n, p: _beta(k + 1, n - k, p),
        _POSITIVE,
        largest=0,
        probability=1,
    ),
    "bernoulli": Distribution(
        lambda k, p: _xlogy(k, p) + _xlog1py(1 - k, -p),
        lambda k, p: select(k < 1, 1 - p, filled(p, 1)),
        lambda k, p: select(k < 1, p, filled(p, 0)),
        (0.0, 1.0),
        probability=0,
    ),
    "geom": Distribution(
        lambda k, p: _xlog1py(k - 1, -p) + log(p),
        lambda k, p: -_xlog1py(k, -p).emit("expm1"),
        lambda k, p: exp(_xlog1py(k, -p)),
        (1.0, math.inf),
        probability=0,
    ),
    "nbinom": Distribution(
        lambda k, n, p: -betaln(n, k + 1) - log(n + k) + n * log(p) + _xlog1py(k, -p),
        lambda k, n, p: _beta(n, k + 1, p),
        lambda k, n, p: _beta(k + 1, n, 1 - p),
        _POSITIVE,
        probability=1,
    ),
}
"""By SciPy's names."""
