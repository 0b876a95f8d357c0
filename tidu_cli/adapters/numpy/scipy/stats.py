"""What `scipy.stats` has: densities, distribution functions and quantiles of its distributions, also frozen ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import Operand, arrays_in, lift
from tidu_cli.adapters.numpy.errors import BuildError, UnknownFunctionError
from tidu_cli.adapters.numpy.numpy.elementwise.special import all_of
from tidu_cli.adapters.numpy.numpy.indexing import common_shape, filled, select
from tidu_cli.adapters.numpy.numpy.linear_algebra.systems import cholesky, solve_triangular
from tidu_cli.adapters.numpy.numpy.shaping import concatenate, squeeze
from tidu_cli.adapters.numpy.scipy.distributions import CONTINUOUS, DISCRETE, Distribution, special

Method = Callable[..., Array]

_AT_THE_ENDS: Mapping[str, tuple[float, float]] = {
    "log_density": (-math.inf, -math.inf),
    "cdf": (0.0, 1.0),
    "sf": (1.0, 0.0),
    "logcdf": (-math.inf, 0.0),
    "logsf": (0.0, -math.inf),
}
"""What there is below and above the support."""


def _in_one_shape(*operands: Operand) -> list[Array]:
    like = arrays_in(operands)[0]
    arrays = [lift(x, like).convert("f64") for x in operands]
    shape = common_shape(*[x.shape for x in arrays])
    return [x.broadcast(shape) for x in arrays]


def _function(distribution: Distribution, quantity: str) -> Callable[..., Array]:
    """The quantity of a distribution, as a function of a number inside of the support and the shapes."""
    if quantity in distribution.more:
        return distribution.more[quantity]
    if quantity in ("logcdf", "logsf"):
        of_one, of_rest = distribution.cdf, distribution.sf
        return _logarithm(of_one, of_rest) if quantity == "logcdf" else _logarithm(of_rest, of_one)
    function: Callable[..., Array] = getattr(distribution, quantity)
    return function


def _logarithm(function: Callable[..., Array], complement: Callable[..., Array]) -> Callable[..., Array]:
    """ln f, where f is near 1 by what 1 - f is."""

    def logarithm(*operands: Array) -> Array:
        part, rest = function(*operands), complement(*operands)
        low = part < 0.5
        small, missing = select(low, part, filled(part, 0.5)), select(low, filled(rest, 0.5), rest)
        return select(low, small.emit("log"), (-missing).emit("log1p"))

    return logarithm


def _named(self: Any, method: str, table: Mapping[str, Distribution]) -> Distribution:
    name = type(self).__name__.removesuffix("_gen")
    if not type(self).__module__.startswith("scipy.stats") or name not in table:
        raise UnknownFunctionError(
            f"scipy.stats.{self.name}.{method} cannot be traced; write the formula, with functions of scipy.special "
            f"(of continuous distributions there are {', '.join(CONTINUOUS)}, of discrete ones {', '.join(DISCRETE)})"
        )
    return table[name]


def _continuous(method: str, quantity: str, *, exponential: bool = False) -> Method:
    def apply(self: Any, x: Operand, *args: Operand, **options: Operand) -> Array:
        distribution = _named(self, method, CONTINUOUS)
        shapes, loc, scale = self._parse_args(*args, **options)
        x, loc, scale, *shapes = _in_one_shape(x, loc, scale, *shapes)
        valid = all_of(scale > 0, *[s > 0 for s in shapes])
        scale, *shapes = (select(s > 0, s, filled(s, 1)) for s in (scale, *shapes))
        y = (x - loc) / scale
        low, high = (filled(y, end) for end in distribution.support)
        inside = all_of(y > low if distribution.opens else y >= low, y <= high)
        at = select(inside, y, filled(y, 1.0 if distribution.support[0] == 1 else 0.5))
        if quantity == "log_density":
            # At the ends of the real line nothing is left, whatever its logarithm would come to.
            at = select(at.emit("is_finite"), at, filled(at, 1.5))
            value = _function(distribution, quantity)(at, *shapes) - scale.emit("log")
            value = select(y.emit("is_finite").emit("or", y.emit("ne", y)), value, filled(y, -math.inf))
        else:
            value = _function(distribution, quantity)(at, *shapes)
        below, above = _AT_THE_ENDS[quantity]
        value = select(inside, value, select(y <= low, filled(y, below), filled(y, above)))
        value = select(all_of(valid, y.emit("eq", y)), value, filled(y, math.nan))
        return value.emit("exp") if exponential else value

    return apply


def _quantile(method: str) -> Method:
    def apply(self: Any, q: Operand, *args: Operand, **options: Operand) -> Array:
        distribution = _named(self, method, CONTINUOUS)
        if distribution.ppf is None:
            raise UnknownFunctionError(f"scipy.stats.{self.name}.{method} cannot be traced: it has no closed form")
        shapes, loc, scale = self._parse_args(*args, **options)
        q, loc, scale, *shapes = _in_one_shape(q, loc, scale, *shapes)
        valid = all_of(scale > 0, *[s > 0 for s in shapes], q >= 0, q <= 1)
        inside = all_of(q > 0, q < 1)
        value = getattr(distribution, method)(select(inside, q, filled(q, 0.5)), *shapes)
        ends = distribution.support if method == "ppf" else distribution.support[::-1]
        value = select(inside, value, select(q <= 0, filled(q, ends[0]), filled(q, ends[1])))
        return select(valid, value * scale + loc, filled(q, math.nan))

    return apply


def _discrete(method: str, quantity: str, *, exponential: bool = False) -> Method:
    def apply(self: Any, k: Operand, *args: Operand, **options: Operand) -> Array:
        distribution = _named(self, method, DISCRETE)
        largest, probability = distribution.largest, distribution.probability
        shapes, loc, _ = self._parse_args(*args, **options)
        k, loc, *shapes = _in_one_shape(k, loc, *shapes)
        valid = all_of(*[s >= 0 for s in shapes], *([] if probability is None else [shapes[probability] <= 1]))
        x = k - loc
        whole = x.emit("floor")
        low, high = (filled(x, end) for end in distribution.support)
        high = high if largest is None else shapes[largest]
        # Of distribution functions the largest number is past the end, as all is below or at it.
        last = whole < high if largest is not None and quantity != "log_density" else whole <= high
        inside = all_of(whole >= low, last, x.emit("is_finite"))
        value = _function(distribution, quantity)(select(inside, whole, low), *shapes)
        if quantity == "log_density":
            value = select(inside.emit("and", whole.emit("eq", x)), value, filled(x, -math.inf))
        else:
            below, above = _AT_THE_ENDS[quantity]
            value = select(inside, value, select(whole < low, filled(x, below), filled(x, above)))
        value = select(all_of(valid, x.emit("eq", x)), value, filled(x, math.nan))
        return value.emit("exp") if exponential else value

    return apply


def _mvn_logpdf(self: Any, x: Operand, mean: Operand = None, cov: Operand = 1, allow_singular: bool = False) -> Array:
    """By the Cholesky factor; a covariance without one gives NaN, as graphs refuse no matrix for its values."""
    if allow_singular:
        raise BuildError("multivariate_normal with allow_singular=True cannot be traced; leave it out, or add to the diagonal")
    like = arrays_in([x, mean, cov])[0]
    at, matrix = (lift(v, like).convert("f64") for v in (x, cov))
    centre = None if mean is None else lift(mean, like).convert("f64")
    n = _dimension(centre, matrix)
    if at.ndim < 2:
        at = at.reshaped((at.size, 1) if n == 1 else (1, at.size))[0 if at.ndim == 0 or n > 1 else slice(None)]
    if at.shape[-1] != n:
        raise ValueError(f"points of {at.shape[-1]} numbers for a distribution of {n}")
    centred = at if centre is None else at - centre.reshaped((n,))
    factor, rows = _factor(matrix, n), centred.reshaped((math.prod(centred.shape[:-1]), n))
    solved = solve_triangular(factor, rows.permuted((1, 0)), lower=True)
    squares = solved.emit("square").emit("reduce_sum", axes=(0,)).reshaped(centred.shape[:-1])
    return squares * -0.5 - (_log_determinant(factor) + 0.5 * n * math.log(2 * math.pi))


def _dimension(mean: Array | None, cov: Array) -> int:
    return mean.size if mean is not None else cov.shape[0] if cov.ndim == 2 else 1


def _log_determinant(factor: Array) -> Array:
    """Of a triangle, whose diagonal is positive."""
    diagonal = factor * factor.recorder.constant(np.eye(len(factor)))
    return diagonal.emit("reduce_sum", axes=(1,)).emit("log").emit("reduce_sum", axes=(0,))


def _mvn_entropy(self: Any, mean: Operand = None, cov: Operand = 1) -> Array:
    like = arrays_in([mean, cov])[0]
    matrix = lift(cov, like).convert("f64")
    n = _dimension(None if mean is None else lift(mean, like), matrix)
    return _log_determinant(_factor(matrix, n)) + 0.5 * n * (math.log(2 * math.pi) + 1)


def _factor(cov: Array, n: int) -> Array:
    """The Cholesky factor of a covariance: a matrix, variances, or one variance."""
    if cov.ndim == 2:
        return cholesky(cov)
    return cov.emit("sqrt").broadcast((n,)).reshaped((n, 1)) * cov.recorder.constant(np.eye(n))


def _mvn_pdf(self: Any, x: Operand, mean: Operand = None, cov: Operand = 1, allow_singular: bool = False) -> Array:
    return _mvn_logpdf(self, x, mean, cov, allow_singular).emit("exp")


def _frozen_mvn(
    self: Any, mean: Operand = None, cov: Operand = 1, allow_singular: bool = False, *args: Any, **options: Any
) -> None:
    """Keep what SciPy would take apart."""
    if allow_singular:
        raise BuildError("multivariate_normal with allow_singular=True cannot be traced; leave it out, or add to the diagonal")
    self.traced = mean, cov


def _mean_and_cov(self: Any) -> tuple[Operand, Operand]:
    return getattr(self, "traced", None) or (self.mean, self.cov)


def _frozen_logpdf(self: Any, x: Operand) -> Array:
    return _mvn_logpdf(self, x, *_mean_and_cov(self))


def _frozen_dirichlet(self: Any, alpha: Operand, seed: Any = None) -> None:
    """What SciPy's methods ask the distribution for, which is not frozen, with these parameters."""
    from scipy.stats import dirichlet  # type: ignore[import-untyped]

    self.alpha, self._dist = alpha, dirichlet


def _log_beta(a: Array) -> Array:
    return a.emit("lgamma").emit("reduce_sum", axes=(0,)) - a.emit("reduce_sum", axes=(0,)).emit("lgamma")


def _dirichlet_logpdf(self: Any, x: Operand, alpha: Operand) -> Array:
    """NaN for parameters and points that SciPy refuses. Of K - 1 numbers the last one is what is missing of 1."""
    like = arrays_in([x, alpha])[0]
    at, a = (lift(v, like).convert("f64") for v in (x, alpha))
    if a.ndim != 1 or at.ndim not in (1, 2) or at.shape[0] not in (a.size - 1, a.size):
        raise ValueError(
            f"dirichlet takes a vector of K parameters, and K or K - 1 numbers (rows of them), got {a.type} and {at.type}"
        )
    if at.shape[0] != a.size:
        at = concatenate([at, (1 - at.sum(axis=0))[None]])
    order = a.reshaped((a.size, *(1,) * (at.ndim - 1))).broadcast(at.shape)
    inside = all_of(order > 0, at >= 0, at <= 1, (at > 0).emit("or", order >= 1))
    valid = inside.all(axis=0).emit("and", abs(at.sum(axis=0) - 1) <= 1e-9)
    safe = select(inside, at, filled(at, 0.5))
    terms = special("xlogy")(order - 1, safe).sum(axis=0)
    value = terms - _log_beta(a).broadcast(terms.shape)
    return squeeze(select(valid, value, filled(value, math.nan)))


def _dirichlet_entropy(self: Any, alpha: Operand) -> Array:
    a = lift(alpha, arrays_in([alpha])[0]).convert("f64")
    total = a.sum()
    entropy: Array = _log_beta(a) + (total - a.size) * total.emit("digamma") - ((a - 1) * a.emit("digamma")).sum()
    return select((a > 0).all(), entropy, filled(entropy, math.nan))


def _dirichlet_mean(self: Any, alpha: Operand) -> Array:
    a = lift(alpha, arrays_in([alpha])[0]).convert("f64")
    return a / a.sum()


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **options: Any) -> Any:
        raise UnknownFunctionError(f"scipy.stats.multivariate_normal.{name} cannot be traced; logpdf, pdf and entropy can")

    return refuse


_QUANTITIES: Sequence[str] = ("cdf", "sf", "logcdf", "logsf")

COMPOSED: Mapping[str, Callable[..., Any]] = {
    "rv_continuous.logpdf": _continuous("logpdf", "log_density"),
    "rv_continuous.pdf": _continuous("pdf", "log_density", exponential=True),
    **{f"rv_continuous.{name}": _continuous(name, name) for name in _QUANTITIES},
    **{f"rv_continuous.{name}": _quantile(name) for name in ("ppf", "isf")},
    "rv_discrete.logpmf": _discrete("logpmf", "log_density"),
    "rv_discrete.pmf": _discrete("pmf", "log_density", exponential=True),
    **{f"rv_discrete.{name}": _discrete(name, name) for name in _QUANTITIES},
    "multivariate_normal.logpdf": _mvn_logpdf,
    "multivariate_normal.pdf": _mvn_pdf,
    "multivariate_normal.entropy": _mvn_entropy,
    "dirichlet.logpdf": _dirichlet_logpdf,
    "dirichlet.pdf": lambda self, x, alpha: _dirichlet_logpdf(self, x, alpha).emit("exp"),
    "dirichlet.entropy": _dirichlet_entropy,
    "dirichlet.mean": _dirichlet_mean,
    **{f"_multivariate.multivariate_normal_frozen.{name}": _refusing(name) for name in ("cdf", "logcdf", "rvs", "marginal")},
    "_multivariate.dirichlet_frozen": _frozen_dirichlet,
    "_multivariate.multivariate_normal_frozen": _frozen_mvn,
    "_multivariate.multivariate_normal_frozen.entropy": lambda self: _mvn_entropy(self, *_mean_and_cov(self)),
    "_multivariate.multivariate_normal_frozen.logpdf": _frozen_logpdf,
    "_multivariate.multivariate_normal_frozen.pdf": lambda self, x: _frozen_logpdf(self, x).emit("exp"),
}
"""Methods of SciPy's classes, and of multivariate distributions, by their names in `scipy.stats`."""
