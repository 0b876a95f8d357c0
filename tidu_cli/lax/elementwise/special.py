"""Special functions: error functions, the gamma function and its relatives, Bessel functions.

They are SciPy's, repaired where those lose digits. Half precision is computed in single.

Functions scaled by an exponential have slopes of their own far from 0, where those by neighbours or by x y are differences without
digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from typing import Any

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.types import FLOATS
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.lax.recipes.special_function import Recipe
from tidu_cli.rules.contract import JVP, Kernel, KernelRule, Primitive, Types
from tidu_cli.rules.families import Intervals, by_partials, elementwise, weighted
from tidu_cli.rules.terms import Term, op

and_, gt, is_finite, lt, max_, or_, select_n = map(op, ("and", "gt", "is_finite", "lt", "max", "or", "select_n"))
exp, log, log1p, power, sign, square = map(op, ("exp", "log", "log1p", "pow", "sign", "square"))
digamma, lgamma, polygamma, zeta = map(op, ("digamma", "lgamma", "polygamma", "zeta"))
bessel_i0e, bessel_i1e, bessel_ie = map(op, ("bessel_i0e", "bessel_i1e", "bessel_ie"))
beta_grad, igamma_grad_a, zeta_grad = map(op, ("regularized_incomplete_beta_grad", "igamma_grad_a", "zeta_grad"))

_TERMS = 10


def where_far(x: Term, limit: float, far: Callable[[Term], Term], near: Term, *, below: bool = True) -> Term:
    """far(x) for x beyond the limit, with `below` for those beyond its negative too, and `near` elsewhere."""
    beyond = or_(gt(x, limit), lt(x, -limit)) if below else gt(x, limit)
    return select_n(beyond, near, far(select_n(beyond, limit, x)))


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


_EPSILON = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}


def _scipy(function: str | Kernel) -> KernelRule:
    """The kernel of arrays in single or double precision: scipy.special's, or a function of (numpy, scipy.special, operands)."""

    def kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
        from scipy import special  # type: ignore[import-untyped]  # slow to import

        compute: Kernel = getattr(special, function) if isinstance(function, str) else partial(function, np, special)
        if operands[0].dtype not in ("f16", "bf16"):
            return compute
        dtype = numpy_dtype(np, operands[0].dtype)
        return lambda *operands: compute(*(x.astype(np.float32) for x in operands)).astype(dtype)

    return kernel


def _erfc(np: Any, special: Any, x: Any) -> Any:
    values = np.array(special.erfc(x))
    if values.dtype == np.float64:
        # SciPy's is 1 - erf(x) up to 1, and then e^(-x^2) with x^2 rounded, which loses log2(x^2) bits: h has 24 bits, so that
        # its square is exact.
        tail = np.greater(x, 0.8)
        t = np.minimum(x[tail], 30)
        h = t.astype(np.float32).astype(np.float64)
        values[tail] = np.exp(-h * h) * np.exp((h - t) * (h + t)) * special.erfcx(t)
    return values


_LGAMMA = {1.5: -0.12078223763524522, 2.0: 0.0}
"""The values at the centers of the series: ln(√π / 2), and 0."""


@lru_cache
def _lgamma_series(np: Any, special: Any, center: float) -> list[float]:
    """lgamma(c + t) = lgamma(c) + ψ(c) t + Σ (-1)^k ζ(k, c) t^k / k, by the derivatives of ψ; Abramowitz and Stegun 6.4.10."""
    orders = np.arange(30, 1, -1)
    return [*(special.zeta(orders, center) * (-1.0) ** orders / orders), special.psi(center), _LGAMMA[center]]


def _lgamma(np: Any, special: Any, x: Any) -> Any:
    values = np.array(special.gammaln(x))
    values[np.isneginf(x)] = np.inf
    tiny = np.less(np.abs(x), np.finfo(values.dtype).tiny) & np.not_equal(x, 0)  # of some of which SciPy's is infinite
    values[tiny] = -np.log(np.abs(x[tiny]))
    if values.dtype == np.float64:
        # Around its zeros, 1 and 2, where SciPy's has no more than absolute accuracy.
        near = np.greater_equal(x, 0.5) & np.less(x, 2.5)
        t = x[near]
        left, middle = t < 1.25, (t >= 1.25) & (t < 1.75)
        around_2 = np.polyval(_lgamma_series(np, special, 2.0), np.where(left, t - 1, t - 2)) - np.where(left, np.log1p(t - 1), 0)
        values[near] = np.where(middle, np.polyval(_lgamma_series(np, special, 1.5), t - 1.5), around_2)
    return values


def _digamma(np: Any, special: Any, x: Any) -> Any:
    values = np.where(np.equal(x, 0), x.dtype.type(np.nan), special.psi(x))
    # By reflection, of which SciPy's loses digits where x is a little above an integer; Abramowitz and Stegun 6.3.7.
    below = np.less(x, -0.8) & np.isfinite(x)
    y = x[below].astype(np.float64)
    turned = y - np.rint(y)
    with np.errstate(invalid="ignore"):
        values[below] = special.psi(1 - y) - math.pi / np.tan(math.pi * np.where(turned == 0, np.nan, turned))
    return values


def _zeta(np: Any, special: Any, s: Any, q: Any) -> Any:
    # SciPy sums from q < 0 upwards, one by one. Instead the sum over all of q + Z, less that over the numbers below q.
    offset = q - np.rint(q)
    above, below = np.where(offset > 0, offset, 1 + offset), np.where(offset > 0, 1 - offset, -offset)
    parity = np.where(np.fmod(s, 2) == 0, s.dtype.type(1), s.dtype.type(-1))
    whole = special.zeta(s, above) + parity * special.zeta(s, below)
    reflected = whole - parity * special.zeta(s, np.where(q < 0, 1 - q, 1))
    reflected = np.where(offset == 0, np.where(parity > 0, np.inf, np.nan), reflected)
    integral = (np.rint(s) == s) & (s > 1)
    at_left = np.where(integral, reflected, np.where(s == 1, np.inf, np.nan))
    return np.where(q > 0, special.zeta(s, np.maximum(q, 0)), at_left).astype(s.dtype, copy=False)


def _polygamma(np: Any, special: Any, m: Any, x: Any) -> Any:
    odd = np.fmod(m, 2) == 1
    values = np.where(odd, 1, -1) * special.gamma(m + 1) * _zeta(np, special, m + 1, x)
    values = np.where((m > 0) & (np.rint(m) == m), values, np.nan)
    return np.where(m == 0, _digamma(np, special, x), values).astype(x.dtype, copy=False)


_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
"""ln k! = (k + 1/2) ln k - k + ln(2π) / 2 + Σ c(j) / k^(2j + 1); Abramowitz and Stegun 6.1.40. From 15 on it is all."""
_LARGE = 15.0


def _log_gamma_density(a: Term, x: Term) -> Term:
    """ln(x^(a - 1) e^-x / Γ(a)), off by no more than a few units in the last place of the largest of 1, its own value and x - a.

    Of large a the three terms cancel. Then, as C. Loader has it ("Fast and accurate computation of binomial probabilities", 2000),
    it is the deviance of x from k = a - 1, and what Stirling's formula lacks, of neither of which anything is lost.
    """
    k = a - 1
    large = and_(gt(k, _LARGE), is_finite(k))
    direct = k * log(x) - x - lgamma(a)
    k = select_n(large, _LARGE, k)  # nothing infinite where it is not taken, whose derivative would be NaN
    apart, inverse = k - x, 1 / k
    ratio = max_(apart / x, _EPSILON[x.type.dtype] - 1)  # of an x so great that it is all, ln 0 would have the last word
    deviance = k * log1p(ratio) - apart
    square_, series = square(inverse), a.trace.full(_STIRLING[-1], a.type)
    for coefficient in reversed(_STIRLING[:-1]):
        series = series * square_ + coefficient
    return select_n(large, direct, -(deviance + (series * inverse + (log(k) * 0.5 + 0.5 * math.log(2 * math.pi)))))


def gamma_density(a: Term, x: Term, result: Term) -> Term:
    """x^(a - 1) e^-x / Γ(a), the derivative of P(a, x) by x. `result` is not read: derivatives are functions of it, too."""
    return _gamma_density(a, x)


def _gamma_density(a: Term, x: Term) -> Term:
    # Near 0 by a power, whose derivatives are powers: those of a logarithm would be 0 times infinity at 0, and cancel.
    # Below 0 there is neither a value nor a derivative, though powers may have one.
    near = lt(x, 1.0)
    small = select_n(near, 0.5, select_n(lt(x, 0.0), x, math.nan))
    return select_n(near, exp(_log_gamma_density(a, select_n(near, x, 1.0))), power(small, a - 1) * exp(-(small + lgamma(a))))


def beta_density(a: Term, b: Term, x: Term, result: Term) -> Term:
    """x^(a - 1) (1 - x)^(b - 1) / B(a, b), the derivative of the regularized incomplete beta function by x."""
    # By gamma densities g: n g(a, n x) g(b, n (1 - x)) / g(a + b, n) for any n, here one that is near what all three are about.
    both = a + b
    n = both + 1
    return _gamma_density(a, n * x) * _gamma_density(b, n * (1 - x)) * (n * exp(-_log_gamma_density(both, n)))


def _bessel_i1e_slope(x: Term, y: Term) -> Term:
    # By both neighbours; by one and y / x, derivatives would lose all digits near 0.
    return bessel_i_slope(1.0, x, y, (bessel_i0e(x) + bessel_ie(x, order=2.0)) * 0.5 - sign(x) * y)


def _special(
    name: str,
    formula: str,
    summary: str,
    function: str | Kernel,
    *slopes: Callable[..., Term] | None,
    reason: str = "",
    within: Intervals = ((-2.0, 2.0),),
) -> Primitive:
    """A function, by its slopes, functions of all operands and the result; None where there is none, for this `reason`."""
    inert = tuple(k for k, slope in enumerate(slopes) if slope is None)
    rule = by_partials(*(slope and weighted(slope) for slope in slopes))

    def jvp(node: JVP) -> Sequence[Term | None]:
        for k in inert:
            if node.tangents[k] is not None:
                raise MissingRuleError(f"{name} has no derivative in input {k}: {reason}")
        return rule(node)

    return elementwise(
        name,
        len(slopes),
        FLOATS,
        jvp,
        kernel=_scipy(function),
        definition=Recipe(name),
        within=within,
        inert=inert,
        inert_reason=reason,
        formula=formula,
        summary=summary,
    )


_POSITIVE = ((0.5, 3.0),)

PRIMITIVES = (
    _special("erf", "2/√π ∫₀ˣ e^(-s^2) ds", "error function", "erf", lambda x, y: exp(-square(x)) * (2 / math.sqrt(math.pi))),
    _special("erfc", "1 - erf x", "complementary error function", _erfc, lambda x, y: exp(-square(x)) * (-2 / math.sqrt(math.pi))),
    _special(
        "erf_inv",
        "the y with erf y = x",
        "inverse error function",
        lambda np, special, x: np.copysign(special.erfinv(x), x),
        lambda x, y: exp(square(y)) * (math.sqrt(math.pi) / 2),
        within=((-0.75, 0.75),),
    ),
    _special("gamma", "Γ(x)", "gamma function", "gamma", lambda x, y: y * digamma(x), within=_POSITIVE),
    _special("lgamma", "ln |Γ(x)|", "logarithm of the gamma function", _lgamma, lambda x, y: digamma(x), within=_POSITIVE),
    _special(
        "digamma",
        "ψ(x) = Γ′(x) / Γ(x)",
        "derivative of lgamma; NaN at its poles",
        _digamma,
        lambda x, y: polygamma(1, x),
        within=_POSITIVE,
    ),
    _special(
        "polygamma",
        "ψ⁽ˣ⁾(y), the derivative of digamma of order x",
        "derivative of digamma of an integral order; NaN for other orders",
        _polygamma,
        None,
        lambda m, x, result: polygamma(m + 1, x),
        reason="its orders are integers",
        within=((1.0, 1.0), (0.5, 3.0)),
    ),
    _special(
        "zeta",
        "Σ (y + k)^-x over k = 0, 1, …",
        "Hurwitz zeta function, for x > 1; below y = 0 for integral x",
        _zeta,
        lambda s, q, result: zeta_grad(s, q),
        lambda s, q, result: -s * zeta(s + 1, q),
        within=((2.0, 4.0), (0.5, 3.0)),
    ),
    _special(
        "igamma",
        "P(x, y) = 1/Γ(x) ∫₀ʸ s^(x-1) e^-s ds",
        "regularized lower incomplete gamma function; its derivative in y is as good as y, of orders of any size",
        "gammainc",
        lambda a, x, result: igamma_grad_a(a, x),
        gamma_density,
        within=_POSITIVE,
    ),
    _special(
        "igammac",
        "1 - P(x, y)",
        "regularized upper incomplete gamma function; its derivative in y is as good as y, of orders of any size",
        "gammaincc",
        lambda a, x, result: -igamma_grad_a(a, x),
        lambda a, x, result: -gamma_density(a, x, result),
        within=_POSITIVE,
    ),
    _special(
        "regularized_incomplete_beta",
        "1/B(x, y) ∫₀ᶻ s^(x-1) (1 - s)^(y-1) ds",
        "regularized incomplete beta function; its derivative in z is as good as z, of x and y of any size",
        "betainc",
        lambda a, b, x, result: beta_grad(a, b, x),
        lambda a, b, x, result: beta_grad(a, b, x, order_x=0, order_y=1),
        beta_density,
        within=((0.5, 3.0), (0.5, 3.0), (0.2, 0.8)),
    ),
    _special(
        "bessel_i0e",
        "e^-|x| I₀(x)",
        "modified Bessel function of order 0, scaled",
        "i0e",
        lambda x, y: bessel_i_slope(0.0, x, y, bessel_i1e(x) - sign(x) * y),
        within=_POSITIVE,
    ),
    _special(
        "bessel_i1e",
        "e^-|x| I₁(x)",
        "modified Bessel function of order 1, scaled",
        lambda np, special, x: np.copysign(special.i1e(x), x),  # SciPy's loses the sign of -0
        _bessel_i1e_slope,
        within=_POSITIVE,
    ),
)
