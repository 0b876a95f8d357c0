"""Distances of `scipy.spatial.distance` between the rows of matrices, computed in f64.

Where a distance has a kink, as the Euclidean one at points that coincide, its derivative there is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import arrays_in, lift
from tidu_cli.adapters.numpy.errors import UnknownFunctionError, UntraceableError

Metric = Callable[..., Any]
"""Of two arrays that broadcast, along their last axes, and of options."""


def _root(squares: Any) -> Any:
    """The square root, whose derivative is 0 at 0."""
    apart = squares != 0
    return np.where(apart, np.sqrt(np.where(apart, squares, 1.0)), squares * 0.0)


def _total(terms: Any, w: Any) -> Any:
    return np.sum(terms if w is None else terms * w, -1)


def _sqeuclidean(x: Any, y: Any, w: Any = None) -> Any:
    return _total((x - y) * (x - y), w)


def _minkowski(x: Any, y: Any, p: Any = 2, w: Any = None) -> Any:
    if not isinstance(p, Array) and p <= 0:
        raise ValueError("p must be greater than 0")
    if not isinstance(p, Array) and p in (1, 2, math.inf):
        return {1: _cityblock, 2: lambda *a: _root(_sqeuclidean(*a)), math.inf: _chebyshev}[p](x, y, w)
    powers = _power(abs(x - y), p)
    return _power(_total(powers, w), 1 / p)


def _power(x: Any, p: Any) -> Any:
    """x to the power p, whose derivative is 0 at 0."""
    apart = x != 0
    return np.where(apart, np.where(apart, x, 1.0) ** p, 0.0)


def _cityblock(x: Any, y: Any, w: Any = None) -> Any:
    return _total(abs(x - y), w)


def _chebyshev(x: Any, y: Any, w: Any = None) -> Any:
    return np.max(abs(x - y) if w is None else abs(x - y) * (np.asarray(w) > 0), -1)


def _cosine(x: Any, y: Any, w: Any = None) -> Any:
    return 1 - _total(x * y, w) / (np.sqrt(_total(x * x, w)) * np.sqrt(_total(y * y, w)))


def _correlation(x: Any, y: Any, w: Any = None) -> Any:
    weights = np.ones(x.shape[-1]) if w is None else w
    shares = weights / np.sum(weights)
    return _cosine(x - np.sum(x * shares, -1)[..., None], y - np.sum(y * shares, -1)[..., None], w)


def _canberra(x: Any, y: Any, w: Any = None) -> Any:
    size = abs(x) + abs(y)
    return _total(abs(x - y) / np.where(size != 0, size, 1.0), w)


def _seuclidean(x: Any, y: Any, V: Any) -> Any:  # noqa: N803
    return _root(_total((x - y) * (x - y) / V, None))


def _mahalanobis(x: Any, y: Any, VI: Any) -> Any:  # noqa: N803
    off = x - y
    return _root(np.sum((off @ VI) * off, -1))


METRICS: Mapping[str, Metric] = {
    "braycurtis": lambda x, y, w=None: _total(abs(x - y), w) / _total(abs(x + y), w),
    "canberra": _canberra,
    "chebyshev": _chebyshev,
    "cityblock": _cityblock,
    "correlation": _correlation,
    "cosine": _cosine,
    "euclidean": lambda x, y, w=None: _root(_sqeuclidean(x, y, w)),
    "mahalanobis": _mahalanobis,
    "minkowski": _minkowski,
    "seuclidean": _seuclidean,
    "sqeuclidean": _sqeuclidean,
}
"""By their names, of which SciPy has shorter forms."""

_SHORT = {
    "manhattan": "cityblock", "cblock": "cityblock", "cb": "cityblock", "c": "cityblock", "cheb": "chebyshev", "cheby": "chebyshev",
    "chebychev": "chebyshev", "ch": "chebyshev", "cos": "cosine", "co": "correlation", "euclid": "euclidean", "eu": "euclidean",
    "e": "euclidean", "mahal": "mahalanobis", "mi": "minkowski", "m": "minkowski", "pnorm": "minkowski", "se": "seuclidean",
    "s": "seuclidean", "sqe": "sqeuclidean", "sqeuclid": "sqeuclidean",
}  # fmt: skip


def _metric(name: str, metric: Any, options: dict[str, Any], points: Any) -> Metric:
    """The metric of that name with these options, of which SciPy makes some of the points."""
    if options.pop("out", None) is not None:
        raise UntraceableError(f"scipy.spatial.distance.{name} with out= would write into an array; leave it out")
    key = getattr(metric, "__name__", metric) if callable(metric) else str(metric).lower()
    key = _SHORT.get(key, key)
    if key not in METRICS:
        raise UnknownFunctionError(
            f"scipy.spatial.distance.{name} with metric {key!r} cannot be traced; metrics are {', '.join(METRICS)}; "
            "write others with x[:, None] - y[None]"
        )
    if key == "seuclidean" and options.get("V") is None:
        options["V"] = np.var(np.concatenate(points), axis=0, ddof=1)
    if key == "mahalanobis" and options.get("VI") is None:
        options["VI"] = np.linalg.inv(np.atleast_2d(np.cov(np.concatenate(points).T)))
    return lambda x, y: METRICS[key](x, y, **options)


def _points(*operands: Any) -> list[Array]:
    like = arrays_in(operands)[0] if arrays_in(operands) else None
    if like is None:
        raise UntraceableError("distances of constant points with traced options cannot be traced; write x[:, None] - y[None]")
    points = [lift(x, like).convert("f64") for x in operands]
    if any(x.ndim != 2 for x in points) or len({x.shape[1] for x in points}) > 1:
        raise ValueError(f"distances are between rows of matrices of one width, got {', '.join(str(x.type) for x in points)}")
    return points


def cdist(XA: Any, XB: Any, metric: Any = "euclidean", **options: Any) -> Any:  # noqa: N803
    x, y = _points(XA, XB)
    return _metric("cdist", metric, options, [x, y])(x[:, None], y[None])


def pdist(X: Any, metric: Any = "euclidean", **options: Any) -> Any:  # noqa: N803
    (x,) = _points(X)
    first, second = np.triu_indices(len(x), 1)
    return _metric("pdist", metric, options, [x])(x[first], x[second])


def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:  # noqa: N803
    """Of a matrix the part above its diagonal, taken for symmetric."""
    x = lift(X, arrays_in([X])[0])
    if x.ndim == 2 and force.lower() != "tomatrix":
        if x.shape[0] != x.shape[1]:
            raise ValueError("The matrix argument must be square.")
        return x[np.triu_indices(len(x), 1)]
    n = math.isqrt(2 * x.size) + 1
    if x.ndim != 1 or force.lower() == "tovector" or n * (n - 1) != 2 * x.size:
        raise ValueError(f"squareform takes n (n - 1) / 2 distances, or a square matrix, got {x.type}")
    places = np.zeros((n, n), np.int64)
    places[np.triu_indices(n, 1)] = np.arange(x.size)
    off = ~np.eye(n, dtype=bool)
    return np.where(off, x[places + places.T], x.dtype.type(0)) if x.size else lift(np.zeros((1, 1), x.dtype), x)
