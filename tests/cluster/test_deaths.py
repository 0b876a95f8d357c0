"""What dies on the way: workers, the scheduler, or a chunk. Results are complete and right, or one line says why."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

import tidu_cli as tidu
from tests.cluster.clusters import elementwise, needs_dask, poison, same, slow, started, values
from tests.waiting import LIMIT, until
from tidu_cli.cluster.collecting import put_together
from tidu_cli.cluster.run import batch_of, parts
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.keys import Key

pytestmark = needs_dask
N = 120


@pytest.fixture
def slowly(client):
    """A client whose workers take 20 ms and more for a chunk."""
    client.run(slow, 0.02)
    yield client
    client.wait_for_workers(2, timeout=LIMIT)
    client.run(slow, 0)


def batch(**how):
    how = {"chunk": 2, **how}
    return batch_of(elementwise().head, {Key(k): x for k, x in values(N).items()}, {Key("x"): 0, Key("y"): 0}, **how)


def kill(client, n=1):
    for pid in list(client.run(os.getpid).values())[:n]:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.check
@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.campaign), 2])
def test_workers_killed_in_mid_run(n, slowly):
    made, taken = batch(), []
    for k, part in parts(made, slowly):
        taken.append((k, part))
        if len(taken) == 10:
            kill(slowly, n)
    assert sorted(k for k, _ in taken) == list(range(60)), "each chunk is there, and once"
    due = batch()
    assert same(put_together(made, iter(taken)), put_together(due, parts(due, None)))


@pytest.mark.check
def test_results_that_die_with_their_workers_before_they_are_taken(slowly):
    """Those who take them are slow: what is under way is done meanwhile, and is computed again."""
    made, taken = batch(), []
    for k, part in parts(made, slowly):
        taken.append((k, part))
        if len(taken) == 5:
            time.sleep(0.6)
            kill(slowly, 2)
            time.sleep(0.2)
    due = batch()
    assert same(put_together(made, iter(taken)), put_together(due, parts(due, None)))


def test_results_that_are_cancelled_as_they_are_fetched(client, monkeypatch):
    """As they are where the scheduler goes just then: Dask's error is none of asyncio's."""

    def cancelled(futures, **options):
        raise CancelledError

    monkeypatch.setattr(client, "gather", cancelled)
    with pytest.raises(EvaluationError, match="the scheduler does not answer any more"):
        put_together(batch(), parts(batch(), client))


@pytest.mark.parametrize("asked", ["register_plugin", "run"])
def test_a_scheduler_that_goes_as_it_is_asked(client, monkeypatch, asked):
    """As it does while a job is sent: which function of Dask's waited for it is of no account."""

    from distributed.comm.core import CommClosedError

    from tidu_cli.adapters.dask.scheduler import connected

    def closed(*args, **options):
        raise CommClosedError("in <TCP>: ConnectionPool.register_worker_plugin")

    monkeypatch.setattr(client, asked, closed)
    with pytest.raises(EvaluationError, match=r"^the scheduler does not answer any more$"), connected(client):
        put_together(batch(), parts(batch(), client))


@pytest.mark.check
def test_a_worker_killed_while_sums_are_on_it(slowly):
    made = batch(reduction="sum", chunk=1)
    thread = threading.Timer(0.5, kill, [slowly])
    thread.start()
    began = time.monotonic()
    sums = put_together(made, parts(made, slowly))
    assert time.monotonic() > began + 0.5, "it was in mid-run"
    thread.join()
    due = batch(reduction="sum", chunk=1)
    assert same(sums, put_together(due, parts(due, None)))


def unregistered(client, plugin):
    """Whether workers were told to do without a plugin, which fails while one of them dies."""
    from distributed.comm.core import CommClosedError

    try:
        client.unregister_worker_plugin(plugin)
    except CommClosedError:
        return False
    return True


@pytest.mark.check
@pytest.mark.parametrize("reduce", [None, pytest.param("sum", marks=pytest.mark.campaign)])
def test_a_chunk_that_kills_its_workers_is_named(reduce, client):
    document = tidu.trace(lambda x: {"y": x + 1}, x="f64[]")
    program, x = tidu.compile(document), np.arange(100.0)
    client.register_plugin(poison(47.0), name="poison")
    try:
        with pytest.raises(EvaluationError) as caught:
            program.map({"x": x}, {"x": 0}, client, chunk=5, reduce=reduce)
    finally:
        until(lambda: unregistered(client, "poison"))
    told = re.fullmatch(
        r"chunk (\d+) \(items \d+ to \d+\)(?:, or one up to chunk (\d+) \(items \d+ to \d+\))?: "
        "4 workers died on it, and so it is given up; it may need more memory than they have: take smaller chunks",
        str(caught.value),
    )
    assert told and int(told[1]) <= 9 <= int(told[2] or told[1]) < int(told[1]) + 8, caught.value
    client.wait_for_workers(2, timeout=LIMIT)
    assert program.map({"x": x}, {"x": 0}, client, chunk=5)["y"][47] == 48


def test_nothing_is_left_of_what_is_given_up(slowly, cluster):
    """Whoever stops taking results, or fails, cancels what is under way."""
    iterator = parts(batch(), slowly)
    next(iterator)
    assert any("-chunk-" in key for key in cluster.scheduler.tasks)
    iterator.close()
    until(lambda: not any("-chunk-" in key for key in list(cluster.scheduler.tasks)))
    assert not [key for key in cluster.scheduler.tasks if key.startswith("tidu-")]
    assert same(put_together(batch(), parts(batch(), slowly)), put_together(batch(), parts(batch(), None)))


@pytest.mark.check
@pytest.mark.parametrize("reduction", [None, pytest.param("sum", marks=pytest.mark.campaign)])
def test_a_lost_scheduler_is_one_line(reduction):
    from distributed import Client

    with started(1) as cluster, Client(cluster, timeout=LIMIT, set_as_default=False) as client:
        client.run(slow, 0.02)
        threading.Timer(0.3, cluster.close).start()
        with pytest.raises(EvaluationError, match=r"^the scheduler does not answer any more$"):
            put_together(batch(reduction=reduction), parts(batch(reduction=reduction), client))


@pytest.mark.campaign
def test_sums_that_are_a_tenth_of_what_a_worker_holds():
    """Eight of them at once were more than it holds, with what computes them."""
    wave = tidu.compile(tidu.trace(lambda k, at: np.sin(k * at), "f64[]", "f64[4000000]"))
    inputs = {"k": np.arange(20.0), "at": np.linspace(0, 1, 4_000_000)}
    from distributed import Client

    with started(2, "400MB") as cluster, Client(cluster, set_as_default=False) as client:
        sums = wave.map(inputs, {"k": 0}, client, reduce="sum", chunk=1)
    assert same(sums, wave.map(inputs, {"k": 0}, reduce="sum", chunk=1))
