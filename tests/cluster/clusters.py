"""Clusters and graphs for tests, and what is counted on workers."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
import pytest

import tidu_cli as tidu

needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="needs dask and distributed: pip install 'tidu[dask]'")


@contextmanager
def started(n):
    """A cluster of so many processes of one thread each."""
    if find_spec("distributed") is None:
        pytest.skip("needs dask and distributed: pip install 'tidu[dask]'")
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=n, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL + 1
    ) as cluster:
        yield cluster


def elementwise():
    """Of numbers x and y: what comes out of a batch is to the bit what comes out one by one."""
    return tidu.trace(lambda x, y: {"a": np.sin(x) * y + x, "b": x / (1 + y * y)}, x="f64[3]", y="f64[]")


def products():
    """Sums and products within an item, and complex numbers."""
    return tidu.trace(lambda x, z: {"a": x @ x.T, "b": (z * x[0]).sum()}, x="f64[4,3]", z="c128[3]")


def values(n, seed=0):
    """Items for `elementwise`."""
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(n, 3)), "y": rng.normal(size=n)}


def same(found, due):
    """Whether two results are the same bit for bit."""
    assert list(found) == list(due)
    return all(bits(found[key]) == bits(due[key]) for key in due)


def bits(value):
    """The dtype, shape and bytes of a value, or of those of a record."""
    if isinstance(value, dict):
        return {name: bits(field) for name, field in value.items()}
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    array = np.asarray(value)
    return array.dtype, array.shape, array.tobytes()
