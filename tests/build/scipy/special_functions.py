"""The table's other functions: error functions, integrals, hypergeometric functions, inverses, entropies, densities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
from scipy import special, stats

from tests.build.scipy.special_points import INF, NAN, Row, everywhere, from_0, from_poles

_SMALL = (1e-300, 1e-17, 1e-9, 1e-3)
_AROUND_0 = (0.0, *_SMALL, *(-x for x in _SMALL))
_FAR = (30.0, -30.0, 1e8, -1e8, 1e30, -1e30)
_REAL = (*_AROUND_0, *_FAR)
_ENDLESS = (*_REAL, INF, -INF)
_AT_ENDS = {-INF: (2, NAN), INF: (2, NAN)}
"""A density times its infinite operand is 0 times infinity."""
_SMALLEST = {1e-300: (2, NAN)}
"""0 / x²"""
_CANCELS = "terms that cancel: the slope is 1 / density, which has a pole where the inverse is 0"
_POSITIVE = (1e-70, 1e-17, 1e-9, 1e-3, 1.0, 30.0)


def _ends(low: float, high: float) -> dict[float, Sequence[float]]:
    """What is constant at -∞ and ∞."""
    return {-INF: (low, 0.0, 0.0, 0.0, 0.0), INF: (high, 0.0, 0.0, 0.0, 0.0)}


def _unit(x: float) -> float:
    return 1.0


def _from_1(x: float) -> float:
    return abs(1 - x)


def _inside(x: float) -> float:
    return min(abs(x), abs(1 - x))


def _inverse(of: Callable[[Any], Any], slope: Callable[[Any], Any], start: Callable[[float], float]) -> Callable[[Any], Any]:
    """The inverse of an increasing or decreasing function, by Newton's method."""

    def inverse(p: Any) -> Any:
        y = mpmath.mpf(float(start(float(p))))
        for _ in range(7):
            y -= (of(y) - p) / slope(y)
        return y

    return inverse


def _ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _log1p(x: Any) -> Any:
    return mpmath.log(1 + x)


def _expn(n: int, x: Any) -> Any:
    """mpmath's own takes seconds near 0."""
    value = mpmath.e1(x)
    for k in range(1, n):
        value = (mpmath.exp(-x) - x * value) / k
    return value


def _owens(h: Any, a: Any) -> Any:
    return mpmath.quad(lambda s: mpmath.exp(-h * h * (1 + s * s) / 2) / (1 + s * s), [0, a]) / (2 * mpmath.pi)


def _error_functions() -> dict[str, Row]:
    growing = (*_AROUND_0, 5.0, -5.0)
    return {
        "erf": Row(special.erf, mpmath.erf, _ENDLESS, everywhere, _ends(-1, 1), wrong=_AT_ENDS),
        "erfc": Row(special.erfc, mpmath.erfc, _ENDLESS, everywhere, _ends(2, 0), wrong=_AT_ENDS),
        "erfcx": Row(special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (*growing, 30.0, 1e3, 1e8, 1e30), everywhere),
        "erfi": Row(special.erfi, mpmath.erfi, growing, sums=True),
        "dawsn": Row(
            special.dawsn,
            lambda x: mpmath.exp(-x * x) * mpmath.erfi(x) * mpmath.sqrt(mpmath.pi) / 2,
            (*growing, 30.0, -1e3, 1e8, 1e30),
        ),
        "erfinv": Row(special.erfinv, mpmath.erfinv, (*_AROUND_0, 0.5, -0.5, 0.999), lambda x: 1 - abs(x)),
        "erfcinv": Row(
            special.erfcinv,
            _inverse(mpmath.erfc, lambda y: -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-y * y), special.erfcinv),
            (1e-70, 1e-9, 1e-3, 0.5, 1.0, 1.5, 1.999),
            lambda x: min(x, 2 - x),
        ),
        "ndtr": Row(special.ndtr, _ndtr, _ENDLESS, everywhere, _ends(0, 1), wrong=_AT_ENDS),
        "log_ndtr": Row(special.log_ndtr, lambda x: mpmath.log(_ndtr(x)), (*_AROUND_0, -1.0, 5.0, -5.0, -30.0, -1e3, -1e8)),
        "ndtri": Row(
            special.ndtri,
            _inverse(_ndtr, mpmath.npdf, special.ndtri),
            (1e-70, 1e-9, 1e-3, 0.25, 0.5, 0.75, 0.999),
            lambda x: min(x, 1 - x),
        ),
    }


def _integrals() -> dict[str, Row]:
    waves = (*_AROUND_0, 1.0, -2.0, 5.0)
    table = {
        "expi": Row(special.expi, lambda x: mpmath.ei(x), (*_SMALL, -1e-9, -1.0, 1.0, 30.0, -30.0), from_0),
        "exp1": Row(special.exp1, lambda x: mpmath.e1(x), (*_SMALL, 1.0, 30.0), from_0),
        "spence": Row(
            special.spence, lambda x: mpmath.re(mpmath.polylog(2, 1 - x)), (*_POSITIVE, 1 - 1e-9, 1 + 1e-9, 1.5, 1e8), from_0
        ),
        "sici 0": Row(lambda x: special.sici(x)[0], mpmath.si, (*waves, 30.0), sums=True),
        "sici 1": Row(lambda x: special.sici(x)[1], mpmath.ci, (*_POSITIVE,), from_0, sums=True),
        "fresnel 0": Row(lambda x: special.fresnel(x)[0], mpmath.fresnels, waves, sums=True),
        "fresnel 1": Row(lambda x: special.fresnel(x)[1], mpmath.fresnelc, waves, sums=True),
        "ellipk": Row(special.ellipk, mpmath.ellipk, (*_AROUND_0, 0.5, -30.0, 1 - 1e-3, 1 - 1e-9), _from_1),
        "ellipe": Row(special.ellipe, mpmath.ellipe, (*_AROUND_0, 0.5, -30.0, 1 - 1e-3, 1 - 1e-9), _from_1),
    }
    for n in (1, 2, 3, 5):
        table[f"expn({n}, x)"] = Row(lambda x, n=n: special.expn(n, x), lambda x, n=n: _expn(n, x), _POSITIVE, from_0, sums=n > 1)
    for a in (0.5,):
        table[f"owens_t(x, {a})"] = Row(
            lambda x, a=a: special.owens_t(x, a), lambda x, a=a: _owens(x, mpmath.mpf(a)), (1e-9, -3.0), sums=True
        )
    for h in (0.0, 1.5):
        table[f"owens_t({h}, x)"] = Row(
            lambda x, h=h: special.owens_t(h, x), lambda x, h=h: _owens(mpmath.mpf(h), x), (1e-9, -3.0), sums=True
        )
    return table


def _hypergeometric() -> dict[str, Row]:
    table: dict[str, Row] = {}
    for b in (0.5, 2.0, -1.5):
        table[f"hyp0f1({b}, x)"] = Row(
            lambda x, b=b: special.hyp0f1(b, x), lambda x, b=b: mpmath.hyp0f1(b, x), (*_AROUND_0, 1.0, -5.0, 30.0), sums=True
        )
    for a, b in ((0.5, 1.5), (1.0, 2.0), (-2.0, 0.5), (2.5, 0.5)):
        table[f"hyp1f1({a}, {b}, x)"] = Row(
            lambda x, a=a, b=b: special.hyp1f1(a, b, x),
            lambda x, a=a, b=b: mpmath.hyp1f1(a, b, x),
            (*_AROUND_0, 1.0, -5.0, 30.0),
            sums=True,
        )
    table["exprel"] = Row(special.exprel, lambda x: mpmath.hyp1f1(1, 2, x), (*_AROUND_0, 30.0, -30.0), sums=True)
    for a, b, c in ((1.0, 1.0, 2.0), (-2.0, 1.5, 0.5), (2.5, 1.0, 0.5)):
        table[f"hyp2f1({a}, {b}, {c}, x)"] = Row(
            lambda x, a=a, b=b, c=c: special.hyp2f1(a, b, c, x),
            lambda x, a=a, b=b, c=c: mpmath.hyp2f1(a, b, c, x),
            (*_AROUND_0, 0.5, -1.0, -30.0, 1 - 1e-3),
            _from_1,
            sums=True,
        )
    return table


def _inverses() -> dict[str, Row]:
    table: dict[str, Row] = {}
    for a in (0.5, 1.0, 3.0):
        lower = lambda y, a=a: y**a * mpmath.rgamma(a + 1) * mpmath.hyp1f1(a, a + 1, -y)  # noqa: E731
        table[f"gammaincinv({a}, x)"] = Row(
            lambda x, a=a: special.gammaincinv(a, x),
            _inverse(
                lower, lambda y, a=a: y ** (a - 1) * mpmath.exp(-y) * mpmath.rgamma(a), lambda p, a=a: special.gammaincinv(a, p)
            ),
            (1e-17, 1e-9, 1e-3, 0.5, 0.99),
            _inside,
            wrong=dict.fromkeys((1e-17, 1e-9), (3, _CANCELS)) if a == 0.5 else {},
        )
    for a, b in ((0.5, 0.5), (1.0, 3.0), (2.0, 2.5)):
        regular = lambda y, a=a, b=b: y**a / a / mpmath.beta(a, b) * mpmath.hyp2f1(a, 1 - b, a + 1, y)  # noqa: E731
        table[f"betaincinv({a}, {b}, x)"] = Row(
            lambda x, a=a, b=b: special.betaincinv(a, b, x),
            _inverse(
                regular,
                lambda y, a=a, b=b: y ** (a - 1) * (1 - y) ** (b - 1) / mpmath.beta(a, b),
                lambda p, a=a, b=b: special.betaincinv(a, b, p),
            ),
            (1e-9, 1e-3, 0.25, 0.99),
            _inside,
            wrong={1e-9: (3, _CANCELS)} if a == 0.5 else {},
        )
    return table


def _logarithms() -> dict[str, Row]:
    log, exp = mpmath.log, mpmath.exp
    logs = (*_POSITIVE, 1e30)
    return {
        "xlogy(x, 2)": Row(lambda x: special.xlogy(x, 2.0), lambda x: x * log(2), _REAL),
        "xlogy(2, x)": Row(lambda x: special.xlogy(2.0, x), lambda x: 2 * log(x), logs, from_0),
        "xlogy(x, x)": Row(lambda x: special.xlogy(x, x), lambda x: x * log(x), logs, from_0),
        "xlog1py(x, x)": Row(lambda x: special.xlog1py(x, x), lambda x: x * _log1p(x), (*_AROUND_0, 30.0, 1e30), _unit_or_great),
        "entr": Row(special.entr, lambda x: -x * log(x), logs, from_0),
        "rel_entr(x, 2)": Row(lambda x: special.rel_entr(x, 2.0), lambda x: x * log(x / 2), (*_POSITIVE, 2.0), from_0),
        "rel_entr(2, x)": Row(lambda x: special.rel_entr(2.0, x), lambda x: 2 * log(2 / x), (*_POSITIVE[1:], 2.0), from_0),
        "kl_div(x, 2)": Row(lambda x: special.kl_div(x, 2.0), lambda x: x * log(x / 2) - x + 2, (*_POSITIVE, 2.0), from_0),
        "kl_div(2, x)": Row(lambda x: special.kl_div(2.0, x), lambda x: 2 * log(2 / x) - 2 + x, (*_POSITIVE[1:], 2.0), from_0),
        "logit": Row(special.logit, lambda x: log(x / (1 - x)), (*_SMALL[1:], 0.25, 0.5, 0.75, 0.999), _inside, sums=True),
        "expit": Row(
            special.expit, lambda x: 1 / (1 + exp(-x)), (*_AROUND_0, 30.0, -30.0, 700.0, INF, -INF), _unit, _ends(0, 1), sums=True
        ),
        "log_expit": Row(special.log_expit, lambda x: -_log1p(exp(-x)), (*_AROUND_0, 30.0, -30.0, 1e30), _unit, sums=True),
        "logaddexp(x, 0)": Row(
            lambda x: np.logaddexp(x, 0.0), lambda x: _log1p(exp(x)), (*_AROUND_0, 30.0, -30.0, -700.0), _unit, sums=True
        ),
        "sinc": Row(np.sinc, mpmath.sincpi, (*_AROUND_0, 0.5, 1.0, -2.0, 30.0), sums=True),
        "exp2": Row(np.exp2, lambda x: 2**x, (*_AROUND_0, 30.0, -1000.0)),
        "log1p": Row(np.log1p, _log1p, (*_AROUND_0, 30.0, 1e30), _unit_or_great),
        "expm1": Row(np.expm1, lambda x: exp(x) - 1, (*_AROUND_0, 30.0, -30.0)),
        "cosm1": Row(special.cosm1, lambda x: mpmath.cos(x) - 1, (*_AROUND_0, 1.0), sums=True),
        "boxcox(x, .5)": Row(lambda x: special.boxcox(x, 0.5), lambda x: (mpmath.sqrt(x) - 1) * 2, _POSITIVE, from_0, sums=True),
        "inv_boxcox(x, .5)": Row(
            lambda x: special.inv_boxcox(x, 0.5),
            lambda x: (1 + x / 2) ** 2,
            (*_AROUND_0, 30.0, 1e8, -1.999),
            lambda x: min(1.0, 2 + x),
            sums=True,
        ),
        "inv_boxcox1p(x, 0)": Row(lambda x: special.inv_boxcox1p(x, 0.0), lambda x: exp(x) - 1, (*_AROUND_0, 30.0), sums=True),
        "boxcox(2, x)": Row(lambda x: special.boxcox(2.0, x), lambda x: log(2) * mpmath.hyp1f1(1, 2, x * log(2)), _AROUND_0),
    }


def _unit_or_great(x: float) -> float:
    return max(0.5, abs(x))


def _scaled(v: float, sign: int, x: Any) -> Any:
    """eˣ K(x), and e^-x I(x) for the sign -1, far from 0."""
    if x < 500:
        return mpmath.exp(x) * mpmath.besselk(v, x) if sign > 0 else mpmath.exp(-x) * mpmath.besseli(v, x)
    total = term = mpmath.mpf(1)  # Abramowitz and Stegun 9.7.1, 9.7.2
    for k in range(1, 400):
        term *= sign * (4 * v * v - (2 * k - 1) ** 2) / (8 * k * x)
        total += term
    return total * mpmath.sqrt((mpmath.pi / 2 if sign > 0 else 1 / (2 * mpmath.pi)) / x)


def _bessel_and_gamma() -> dict[str, Row]:
    table = {
        "psi": Row(
            special.psi, mpmath.digamma, (1e-9, -1e-9, 1e-3, 1.0, 1.4616321449683623, 30.0, 1e30, -0.5, -1 + 1e-9, -2 - 1e-3),
            from_poles, sums=True,
        ),
        "loggamma": Row(special.loggamma, mpmath.loggamma, (1e-300, 1.0, 2.0, 1 + 1e-9), from_0),
    }  # fmt: skip
    for n in (1, 2):
        table[f"polygamma({n}, x)"] = Row(
            lambda x, n=n: special.polygamma(n, x), lambda x, n=n: mpmath.polygamma(n, x), (1e-9, 1e-3, 1.0, 30.0, 1e30), from_0
        )
    for v in (0.0, 2.5):
        for name, of in (("yv", mpmath.bessely), ("kv", mpmath.besselk)):
            table[f"{name} {v}"] = Row(
                lambda x, v=v, name=name: getattr(special, name)(v, x),
                lambda x, v=v, of=of: of(v, x),
                (1e-3, 2.0) if v == 0 else (1e-17, 1e-3, 2.0, 30.0),
                from_0,
                sums=True,
            )
        table[f"jv far {v}"] = Row(
            lambda x, v=v: special.jv(v, x), lambda x, v=v: mpmath.besselj(v, x), (1.0, 2.0, 5.0, 30.0), _unit, sums=True
        )
    for name, far in (("ive", -1), ("kve", 1)):
        for v in (0.0, 1.0, 2.5, 7.0):
            least = 500 if far > 0 and v < 2 else 30 * max(v, 1)  # mpmath's K of whole orders takes seconds
            points = [x for x in (31.0, 45.0, 100.0, 400.0, 3e3, 1e6, 1e8, 1e30) if x > least]
            table[f"{name}({v}, x)"] = Row(
                lambda x, v=v, name=name: getattr(special, name)(v, x),
                lambda x, v=v, far=far: _scaled(v, far, x),
                points,
                from_0,
                wrong={400.0: (4, "neighbours whose difference has 6 digits")} if v == 7 else {},
            )
    for name, v in (("i0e", 0.0), ("i1e", 1.0)):
        table[f"{name} far"] = Row(getattr(special, name), lambda x, v=v: _scaled(v, -1, x), (45.0, 3e3, 1e30), from_0)
    for n in (0, 2):
        table[f"spherical_jn({n}, x)"] = Row(
            lambda x, n=n: special.spherical_jn(n, x),
            lambda x, n=n: x**n * mpmath.hyp0f1(n + mpmath.mpf(1.5), -x * x / 4) / mpmath.fac2(2 * n + 1),
            (*_AROUND_0, 1.0, 5.0, 30.0),
            _unit,
            sums=True,
        )
    return table


def _distributions() -> dict[str, Row]:
    log, pi = mpmath.log, mpmath.pi
    return {
        "norm.logpdf": Row(stats.norm.logpdf, lambda x: -x * x / 2 - log(2 * pi) / 2, _REAL),
        "norm.cdf": Row(stats.norm.cdf, _ndtr, _ENDLESS, everywhere, _ends(0, 1), wrong=_AT_ENDS),
        "norm.logsf": Row(stats.norm.logsf, lambda x: log(_ndtr(-x)), (*_AROUND_0, 1.0, 5.0, -5.0, 30.0)),
        "gamma.logpdf(x, 2.5)": Row(
            lambda x: stats.gamma.logpdf(x, 2.5),
            lambda x: 1.5 * log(x) - x - log(mpmath.gamma(2.5)),
            (*_POSITIVE, 1e30),
            from_0,
            sums=True,
        ),
        "gamma.logpdf(x, 1)": Row(lambda x: stats.gamma.logpdf(x, 1.0), lambda x: -x, (1e-300, 1e-9, 1.0), from_0, wrong=_SMALLEST),
        "gamma.cdf(x, 2)": Row(
            lambda x: stats.gamma.cdf(x, 2.0), lambda x: 1 - (1 + x) * mpmath.exp(-x), (*_POSITIVE,), _unit
        ),
        "t.logpdf(x, 3)": Row(
            lambda x: stats.t.logpdf(x, 3.0),
            lambda x: -2 * log(1 + x * x / 3) + log(2 / (mpmath.sqrt(3) * pi)),
            (*_AROUND_0, 30.0, -1e8),
            _unit_or_great,
            sums=True,
        ),
        "cauchy.cdf": Row(
            stats.cauchy.cdf, lambda x: 0.5 + mpmath.atan(x) / pi, (*_AROUND_0, 1.0, 30.0, -30.0, -1e8), _unit_or_great, sums=True
        ),
        "expon.cdf": Row(stats.expon.cdf, lambda x: 1 - mpmath.exp(-x), (*_SMALL, 30.0), from_0),
        "logistic.logpdf": Row(
            stats.logistic.logpdf, lambda x: -x - 2 * _log1p(mpmath.exp(-x)), (*_AROUND_0, 30.0, -30.0, 600.0), _unit, sums=True
        ),
        "lognorm.logpdf(x, 2)": Row(
            lambda x: stats.lognorm.logpdf(x, 2.0),
            lambda x: -(log(x) ** 2) / 8 - log(2 * x) - log(2 * pi) / 2,
            (*_POSITIVE, 1e30),
            from_0,
            sums=True,
        ),
        "beta.cdf(x, 2, 3)": Row(
            lambda x: stats.beta.cdf(x, 2.0, 3.0), lambda x: x * x * (6 - 8 * x + 3 * x * x), (*_POSITIVE[:4], 0.5, 0.999), _unit,
            sums=True,
        ),
    }  # fmt: skip


def rows() -> dict[str, Row]:
    """All rows by name."""
    parts = (_error_functions, _integrals, _hypergeometric, _inverses, _logarithms, _bessel_and_gamma, _distributions)
    return {name: row for part in parts for name, row in part().items()}
