"""On a cluster: the same results, bit for bit, as in one process."""

from __future__ import annotations

import pytest

import tidu_cli as tidu
from tests.cluster.clusters import elementwise, needs_dask, same, values

pytestmark = needs_dask
N = 23


@pytest.mark.parametrize("chunk", [1, 4, N, 10 * N])
def test_chunks_of_any_size(chunk, client):
    program = tidu.compile(elementwise())
    batch = {"x": 0, "y": 0}
    assert same(program.map(values(N), batch, client, chunk=chunk), tidu.evaluate(elementwise(), values(N), batch=batch))
