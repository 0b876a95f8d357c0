"""Clusters and graphs for tests, and what is counted on workers."""

from __future__ import annotations

import logging
import os
import signal
import time
from contextlib import contextmanager

import numpy as np

import tidu_cli as tidu
from tests.programs import needs, require
from tests.waiting import LIMIT
from tidu_cli.runtime.batches import evaluate_batch

needs_dask = needs("dask", "distributed")


@contextmanager
def started(n, memory="auto"):
    """A cluster of so many processes of one thread each, and of so much memory each."""
    require("dask", "distributed")
    import dask
    from distributed import LocalCluster

    # Dask starts a dead worker again, and drops it if it is not back in 15 s. On a busy machine that takes longer.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": LIMIT})
    quiet = logging.CRITICAL + 1
    no_page = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
    with patient, LocalCluster(n_workers=n, threads_per_worker=1, memory_limit=memory, silence_logs=quiet, **no_page) as cluster:
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


def same(results, due):
    """Whether two results are the same bit for bit."""
    assert list(results) == list(due)
    return all(bits(results[key]) == bits(due[key]) for key in due)


def bits(value):
    """The dtype, shape and bytes of a value, or of those of a record."""
    if isinstance(value, dict):
        return {name: bits(field) for name, field in value.items()}
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    array = np.asarray(value)
    return array.dtype, array.shape, array.tobytes()


# What follows runs on workers, which import this module.

KEPT = []
"""The names of what this worker was given, since `watch_keeping`."""


def watch_keeping():
    from tidu_cli.adapters.dask import scheduler as plugin
    from tidu_cli.cluster import work

    KEPT.clear()
    plugin.keep = lambda thing: KEPT.append(thing.name) or work.keep(thing)


def unwatch_keeping():
    from tidu_cli.adapters.dask import scheduler as plugin
    from tidu_cli.cluster import work

    plugin.keep = work.keep
    return list(KEPT)


def left_over():
    """The names of what this worker still has."""
    from tidu_cli.cluster import work

    return sorted(work._kept), sorted(work._graphs)


def slow(seconds):
    """Have each chunk take so long at least."""
    from tidu_cli.cluster import work

    def run(*args, **options):
        time.sleep(seconds)
        return evaluate_batch(*args, **options)

    work.evaluate_batch = run if seconds else evaluate_batch


def poison(value):
    """A plugin of workers that die of items of this value."""
    from distributed import WorkerPlugin

    from tidu_cli.cluster import work

    def run(graph, values, *args, **options):
        if any(np.any(x == value) for x in values.values()):
            os.kill(os.getpid(), signal.SIGKILL)
        return evaluate_batch(graph, values, *args, **options)

    class Poison(WorkerPlugin):
        def setup(self, worker):
            work.evaluate_batch = run

        def teardown(self, worker):
            work.evaluate_batch = evaluate_batch

    return Poison()
