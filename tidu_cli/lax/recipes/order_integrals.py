"""Derivatives of incomplete gamma and beta functions by their order parameters, and of zeta by its exponent, as numbers.

The integrals of the densities' derivatives are taken on that side of the argument where the first of these keeps its sign, so that
nothing cancels, by Gauss-Legendre quadrature in the variable in which densities are log-concave and entire: the logarithm, or the
log-odds. So one rule serves orders of any size, where the series and continued fractions of R. J. Moore (AS 187, 1982) and of
R. J. Boik and J. F. Robison-Cox (1998) take ever more terms. Densities are as deviations from their maximum and what Stirling's
formula lacks, as C. Loader has them (2000). Orders that are so small that the density has a long tail are raised by recurrence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any


def bell(m: int, n: int, exponent: Callable[[int, int], Any]) -> Any:
    """The derivative of exp h(x, y), m times by x and n times by y, divided by exp h; `exponent` gives that of h itself.

    Complete Bell polynomials, by Leibniz' rule for the derivative of (∂h) exp h. Of no derivative it is 1.0.
    """
    known: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    for i in range(m + 1):
        for j in range(n + 1):
            if (i, j) == (0, 0):
                continue
            by_x = i > 0
            terms = []
            for k in range(i if by_x else 1):
                for l in range(j + 1 if by_x else j):  # noqa: E741
                    times = math.comb(i - 1, k) * math.comb(j, l) if by_x else math.comb(j - 1, l)
                    step = (k + 1, l) if by_x else (k, l + 1)
                    factor, rest = exponent(*step), known[i - step[0], j - step[1]]
                    term = factor if rest is known[0, 0] else factor * rest
                    terms.append(term if times == 1 else term * float(times))
            total = terms[0]
            for term in terms[1:]:
                total = total + term
            known[i, j] = total
    return known[m, n]


_NODES = 96
_DROP = 46.0
"""How far below its maximum a log-density is left out: e^-46 is 1e-20."""
_BLOCK = 4096
"""As many elements at once as keep the nodes' arrays in the cache's size."""
_RAISED = 10
"""Orders below this are raised by as much."""

_REMAINDER = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""δ(a) = ln Γ(a) - (a - 1/2) ln a + a - ln(2π) / 2 = Σ c(j) / a^(2j + 1); Abramowitz and Stegun 6.1.40."""
_LARGE = 16.0


@lru_cache
def _rule(np: Any) -> tuple[Any, Any]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def _remainder(np: Any, special: Any, a: Any) -> Any:
    """What Stirling's formula lacks of ln Γ(a)."""
    large = np.maximum(a, _LARGE)
    series = np.polyval(_REMAINDER[::-1], large**-2.0) / large
    direct = special.gammaln(a) - (a - 0.5) * np.log(a) + a - 0.5 * math.log(2 * math.pi)
    return np.where(a >= _LARGE, series, direct)


def _excess(np: Any, special: Any, a: Any) -> Any:
    """ln a - ψ(a), whose terms cancel for large a."""
    large = np.maximum(a, _LARGE)
    powers = [(2 * j + 1) * c for j, c in enumerate(_REMAINDER)]
    series = 0.5 / large + np.polyval(powers[::-1], large**-2.0) / large**2
    return np.where(a >= _LARGE, series, np.log(a) - special.psi(a))


def _reach(np: Any, drop: Callable[[Any], Any], like: Any) -> Any:
    """How far to go until the log-density has dropped by `_DROP`, within a percent: bisection of the logarithm."""
    low, high = np.full_like(like, -64.0), np.full_like(like, 12.0)
    for _ in range(13):
        middle = (low + high) / 2
        far = drop(np.exp2(middle)) >= _DROP
        low, high = np.where(far, low, middle), np.where(far, middle, high)
    return np.exp2(high)


def _integral(np: Any, start: Any, reach: Any, sign: float, integrand: Callable[[Any], Any]) -> Any:
    """The integral from `start` to `start + sign * reach`, as of increasing arguments."""
    nodes, weights = _rule(np)
    # Not by a matrix product, whose rounding depends on how many elements there are.
    return reach * np.sum(integrand(start[:, None] + sign * reach[:, None] * nodes) * weights, axis=1)


def gamma_by_order(np: Any, special: Any, n: int, a: Any, x: Any) -> Any:
    """The n-th derivative by a of P(a, x) = 1/Γ(a) ∫₀ˣ s^(a-1) e^-s ds, for n from 1; NaN unless a > 0 and x ≥ 0."""

    def inside(a: Any, x: Any) -> Any:
        lower = x <= np.maximum(1, np.exp(special.psi(a)))
        derivatives = np.empty_like(a)
        derivatives[lower] = _gamma_lower(np, special, n, a[lower], x[lower])
        derivatives[~lower] = -_gamma_side(np, special, n, a[~lower], x[~lower], 1.0)
        return derivatives

    return _by_blocks(np, inside, (a, x), (a > 0) & (a < math.inf) & (x > 0) & (x < math.inf), (a > 0) & (x >= 0))


def _gamma_lower(np: Any, special: Any, n: int, a: Any, x: Any) -> Any:
    # P(a, x) = P(a + 1, x) + x^a e^-x / Γ(a + 1)
    small, added, log_x = a < _RAISED, 0.0, np.log(x)
    for k in range(_RAISED if np.any(small) else 0):
        c = a + (k + 1)
        slopes = [log_x - special.psi(c), *(-special.polygamma(i, c) for i in range(1, n))]
        added = added + np.exp((a + k) * log_x - x - special.gammaln(c)) * _of_one(n, slopes)
    return _gamma_side(np, special, n, np.where(small, a + _RAISED, a), x, -1.0) + np.where(small, added, 0)


def _of_one(n: int, slopes: Sequence[Any]) -> Any:
    return bell(n, 0, lambda i, j: slopes[i - 1])


def _gamma_side(np: Any, special: Any, n: int, a: Any, x: Any, sign: float) -> Any:
    """The integral of the density's n-th derivative above x, or below it, over v = ln(s / a)."""

    def deviance(v: Any, a: Any) -> Any:
        return a * (np.expm1(v) - v)

    start = np.where(np.abs(x - a) < a / 2, np.log1p((x - a) / a), np.log(x) - np.log(a))
    reach = _reach(np, lambda s: deviance(start + sign * s, a) - deviance(start, a), start)
    curvatures = [-special.polygamma(i, a)[:, None] for i in range(1, n)]
    excess = _excess(np, special, a)[:, None]

    def integrand(v: Any) -> Any:
        slopes = [v + excess, *curvatures]
        return np.exp(-deviance(v, a[:, None])) * _of_one(n, slopes)

    return np.sqrt(a / (2 * math.pi)) * np.exp(-_remainder(np, special, a)) * _integral(np, start, reach, sign, integrand)


def _is_lower(np: Any, special: Any, m: int, n: int, a: Any, b: Any, x: Any) -> Any:
    """Whether the density's derivative, m times by a and n times by b, keeps its sign below x, and not above it."""
    if not n:
        return np.log(x) <= special.psi(a) - special.psi(a + b)
    return np.log1p(-x) >= special.psi(b) - special.psi(a + b) if not m else x * (a + b) <= a


def beta_by_orders(np: Any, special: Any, m: int, n: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative, m times by a and n times by b, of the regularized incomplete beta function; NaN outside of its domain."""

    def inside(a: Any, b: Any, x: Any) -> Any:
        lower = _is_lower(np, special, m, n, a, b, x)
        upper, y = ~lower, 1 - x
        derivatives = np.empty_like(a)
        derivatives[lower] = _beta_lower(np, special, m, n, a[lower], b[lower], x[lower], y[lower])
        derivatives[upper] = -_beta_lower(np, special, n, m, b[upper], a[upper], y[upper], x[upper])
        return derivatives

    known = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    return _by_blocks(np, inside, (a, b, x), known & (np.maximum(a, b) < math.inf) & (x > 0) & (x < 1), known)


def _beta_lower(np: Any, special: Any, m: int, n: int, a: Any, b: Any, x: Any, y: Any) -> Any:
    # I(a, b) = I(a + 1, b) + x^a y^b / (a B(a, b))
    small, added = a < _RAISED, 0.0
    for k in range(_RAISED if np.any(small) else 0):
        added = added + _beta_term(np, special, m, n, a + k, b, x)
    return _beta_side(np, special, m, n, np.where(small, a + _RAISED, a), b, x, y) + np.where(small, added, 0)


def _beta_term(np: Any, special: Any, m: int, n: int, p: Any, b: Any, x: Any) -> Any:
    """The derivative of x^p (1 - x)^b / (p B(p, b))."""
    total = p + b
    size = p * np.log(x * total / p) + b * (np.log1p(-x) + np.log1p(p / b))
    lacking = _remainder(np, special, total) - _remainder(np, special, p) - _remainder(np, special, b)
    weight = np.exp(size + lacking) * np.sqrt(b / (2 * math.pi * total * p))
    return weight * bell(m, n, _beta_slopes(np, special, p, b, np.log(x), np.log1p(-x)))


def _beta_slopes(np: Any, special: Any, a: Any, b: Any, log_x: Any, log_y: Any) -> Callable[[int, int], Any]:
    """Derivatives by a and b of a ln x + b ln y + ln Γ(a + b) - ln Γ(a + 1) - ln Γ(b)."""
    first = {
        (1, 0): log_x + special.psi(a + b) - special.psi(a + 1),
        (0, 1): log_y + np.log1p(a / b) + (_excess(np, special, b) - _excess(np, special, a + b)),  # of a that is less than b
    }
    return cache(lambda i, j: first[i, j] if i + j == 1 else _beta_curvature(np, special, i, j, a, b, 1))


def _beta_curvature(np: Any, special: Any, i: int, j: int, a: Any, b: Any, raised: int) -> Any:
    """A derivative by a and b, of an order from 2, of ln Γ(a + b) - ln Γ(a + raised) - ln Γ(b)."""
    if i and j:
        return special.polygamma(i + j - 1, a + b)
    return _polygamma_step(np, special, j - 1, b, a) if j else _polygamma_step(np, special, i - 1, a + raised, b - raised)


def _polygamma_step(np: Any, special: Any, order: int, z: Any, step: Any) -> Any:
    """ψ⁽ⁿ⁾(z + step) - ψ⁽ⁿ⁾(z): for a step that is small beside z, where the two cancel, by Taylor's series."""
    small = np.abs(step) < z / 100
    series = sum(step**k / math.factorial(k) * special.polygamma(order + k, z) for k in range(1, 9)) if np.any(small) else 0
    return np.where(small, series, special.polygamma(order, z + step) - special.polygamma(order, z))


def _beta_side(np: Any, special: Any, m: int, n: int, a: Any, b: Any, x: Any, y: Any) -> Any:
    """The integral of the density's derivative below x, over v = ln(s / (1 - s)) - ln(a / b)."""
    total = a + b
    p, q = a / total, b / total

    def logs(v: Any, p: Any, q: Any) -> tuple[Any, Any]:
        """ln(s / p) and ln((1 - s) / q)."""
        return -np.log1p(q * np.expm1(-v)), -np.log1p(p * np.expm1(v))

    def deviance(v: Any) -> Any:
        log_s, log_rest = logs(v, p, q)
        return -a * log_s - b * log_rest

    start = np.log(x) - np.log(y) - np.log(a / b)
    reach = _reach(np, lambda s: deviance(start - s) - deviance(start), start)
    excess = [_excess(np, special, z)[:, None] for z in (a, b, total)]
    curvature = cache(lambda i, j: _beta_curvature(np, special, i, j, a, b, 0)[:, None])
    a_, b_, p_, q_ = a[:, None], b[:, None], p[:, None], q[:, None]

    def integrand(v: Any) -> Any:
        log_s, log_rest = logs(v, p_, q_)
        first = {(1, 0): log_s + excess[0] - excess[2], (0, 1): log_rest + excess[1] - excess[2]}
        derivative = bell(m, n, lambda i, j: first[i, j] if i + j == 1 else curvature(i, j))
        return np.exp(a_ * log_s + b_ * log_rest) * derivative

    lacking = _remainder(np, special, total) - _remainder(np, special, a) - _remainder(np, special, b)
    return np.sqrt(p * b / (2 * math.pi)) * np.exp(lacking) * _integral(np, start, reach, -1.0, integrand)


_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000,
    43867 / 5109094217170944000, -174611 / 802857662698291200000,
)  # fmt: skip
"""B(2j) / (2j)!"""
_TERMS = 16


def zeta_by_exponent(np: Any, special: Any, n: int, s: Any, q: Any) -> Any:
    """The n-th derivative by s of Σ (q + k)^-s; NaN unless s > 1 and q > 0."""
    known = (s > 1) & (q > 0)
    where = known & np.isfinite(s) & np.isfinite(q)
    return _by_blocks(np, lambda s, q: _zeta_series(np, n, s, q), (s, q), where, known)


def _zeta_series(np: Any, n: int, s: Any, q: Any) -> Any:
    """Likewise, for finite s > 1 and q > 0, by the Euler-Maclaurin formula."""
    total = sum((-np.log(q + k)) ** n * (q + k) ** -s for k in range(_TERMS))
    t = q + _TERMS
    log_t = -np.log(t)
    size = t**-s
    for i in range(n + 1):
        total = total + math.comb(n, i) * log_t ** (n - i) * size * t * (-1.0) ** i * math.factorial(i) / (s - 1) ** (i + 1)
    total = total + log_t**n * size / 2
    jet = [s, *([np.ones_like(s)] if n else []), *[np.zeros_like(s)] * (n - 1)]  # s and its derivatives by s
    for j, coefficient in enumerate(_BERNOULLI):
        at = coefficient * size / t ** (2 * j + 1)
        total = total + at * sum(math.comb(n, i) * jet[i] * log_t ** (n - i) for i in range(n + 1))
        for k in (2 * j + 1, 2 * j + 2):
            jet = [jet[i] * (s + k) + (i * jet[i - 1] if i else 0) for i in range(n + 1)]
    return total


def _by_blocks(np: Any, inside: Callable[..., Any], operands: tuple[Any, ...], where: Any, known: Any) -> Any:
    """`inside` where it can be computed, 0 elsewhere in the domain, and NaN outside of it."""
    values = np.where(known, 0.0, np.nan)
    chosen = np.flatnonzero(where)
    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        for first in range(0, chosen.size, _BLOCK):
            block = chosen[first : first + _BLOCK]
            flat[block] = inside(*[x.reshape(-1)[block] for x in operands])
    return flat.reshape(values.shape)
