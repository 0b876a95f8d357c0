"""Sums by labels and in bins. The labels and samples are constants: only what is summed may be traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.operands import an_array, arrays_in
from tidu_cli.adapters.numpy.errors import UntraceableError
from tidu_cli.adapters.numpy.numpy.indexing import filled, indexed
from tidu_cli.adapters.numpy.numpy.putting import scattered_row


def _require_constants(name: str, *samples: Any) -> None:
    if arrays_in(samples):
        raise UntraceableError(
            f"np.{name} of traced samples cannot be traced: counts are steps, without a derivative; weights= may be traced. "
            "With a fixed number of bins, write np.add.at(counts, labels, weights), or sums of a smooth kernel"
        )


def _summed(weights: Any, labels: Any, n: int) -> Array:
    """For each number below n the sum of the weights that it labels."""
    zeros = filled(weights, 0, (n,))
    return scattered_row(zeros, labels, weights, "scatter-add") if labels.size else zeros


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Array:
    _require_constants("bincount", x)
    n, labels, given = np.bincount(np.asarray(x), minlength=minlength).size, np.asarray(x), an_array(weights)
    if given.type.complex:
        raise TypeError(f"bincount takes weights that are real, got {given.type}; count real and imaginary parts")
    if given.shape != labels.shape:
        raise ValueError(f"bincount takes as many weights as labels, {labels.size}, got {given.type}")
    return _summed(given.convert("f64"), labels, n)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[Array, Any]:
    _require_constants("histogram", a, bins, range)
    samples, given = np.asarray(a), an_array(weights)
    edges = np.histogram_bin_edges(samples, bins, range, np.ones(given.shape))
    sums = _in_bins([samples.reshape(-1)], [edges], given.reshaped((given.size,)))
    sums = sums.convert(given.type.dtype)
    return (_density(sums, [edges]) if density else sums), edges


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[Array, Any]:
    _require_constants("histogramdd", sample, bins, range)
    points = sample if hasattr(sample, "shape") else np.atleast_2d(sample).T
    edges = np.histogramdd(points, bins, range)[1]
    sums = _in_bins(list(np.asarray(points).T), edges, an_array(weights).convert("f64"))
    return (_density(sums, edges) if density else sums), edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Array, Any, Any]:
    _require_constants("histogram2d", x, y, bins, range)
    edges = np.histogram2d(x, y, bins, range)[1:]
    sums = _in_bins([np.asarray(x), np.asarray(y)], edges, an_array(weights).convert("f64"))
    return (_density(sums, edges) if density else sums), *edges


def _in_bins(columns: Sequence[Any], edges: Sequence[Any], weights: Any) -> Array:
    """The sums of weights in the bins of several axes; the last bin of an axis has its upper edge, too."""
    shape, inside = tuple(len(e) - 1 for e in edges), np.ones(weights.shape, bool)
    labels = np.zeros(weights.shape, np.int64)
    for samples, e, n in zip(columns, edges, shape, strict=True):
        if samples.shape != weights.shape:
            raise ValueError(f"a histogram takes as many weights as samples, {samples.size}, got {weights.type}")
        place = np.searchsorted(e, samples, "right") - 1
        place[samples == e[-1]] = n - 1
        inside &= (place >= 0) & (place < n)
        labels = labels * n + place
    exact = weights if weights.type.complex else weights.convert("f64")
    return _summed(indexed(exact, np.flatnonzero(inside)), labels[inside], int(np.prod(shape))).reshaped(shape)


def _density(sums: Array, edges: Sequence[Any]) -> Array:
    density = sums
    for k, e in enumerate(edges):
        density = density / np.diff(e).reshape([-1 if j == k else 1 for j in range(len(edges))])
    return density / np.sum(sums)
