"""A real cluster of two processes for the tests that need one: they are skipped where Dask is missing, and say what installs it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.clusters import started
from tests.waiting import LIMIT


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """A scheduler and two workers of one thread each, at a port that the system chose.

    Its processes end with the tests of clusters: idle, they take a tenth of a processor.
    """
    with started(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """A client of the cluster, whose two workers are there, and on which nothing is left of other tests."""
    from distributed import Client

    with Client(cluster, timeout=LIMIT, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=LIMIT)
        yield client


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Dask logs nothing: workers are killed here, of which it tells at length."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)
