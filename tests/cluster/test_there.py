"""On a cluster: the same results, bit for bit, as in one process; what travels, and how much is under way."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest

import tidu_cli as tidu
from benchmarks.generate import dag
from tests.cluster.clusters import (
    bits,
    elementwise,
    left_over,
    needs_dask,
    products,
    same,
    started,
    unwatch_keeping,
    values,
    watch_keeping,
)
from tests.tiers import campaign, few
from tidu_cli.cluster import work
from tidu_cli.cluster.run import AHEAD, batch_of, parts
from tidu_cli.cluster.work import parcel_of
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.keys import Key
from tidu_cli.limits import Limits, limited

pytestmark = needs_dask
N = 23
N_CHUNKS = 200 if campaign() else 50
AXES = {"x": 0, "y": 0}


def batch(n=N, **how):
    return batch_of(elementwise().head, {Key(k): x for k, x in values(n).items()}, {Key("x"): 0, Key("y"): 0}, **how)


@pytest.mark.parametrize("chunk", [None, 1, 4, N, 10 * N])
def test_chunks_of_any_size(chunk, client):
    results = tidu.compile(elementwise()).map(values(N), AXES, client, chunk=chunk)
    assert same(results, tidu.evaluate(elementwise(), values(N), batch=AXES))


@pytest.mark.check
@pytest.mark.parametrize("reduce", [None, "sum", "mean"])
@pytest.mark.parametrize("chunk", few([1, 3], 1))
def test_products_complex_numbers_and_axes(reduce, chunk, client):
    """Where the order of sums within an item follows from the chunk it is that of one process, too."""
    rng = np.random.default_rng(1)
    at = {"x": rng.normal(size=(4, 3, 200)), "z": rng.normal(size=(3, 200)) + 1j * rng.normal(size=(3, 200))}
    program, axes = tidu.compile(products()), {"x": -1, "z": 1}
    results = program.map(at, axes, client, chunk=chunk, reduce=reduce)
    assert same(results, program.map(at, axes, chunk=chunk, reduce=reduce))
    due = tidu.evaluate(products(), at, batch=axes)
    for key in due:
        np.testing.assert_allclose(
            results[key], {None: due[key], "sum": due[key].sum(0), "mean": due[key].mean(0)}[reduce], atol=1e-12
        )


def test_inputs_that_are_shared(client):
    program, at = tidu.compile(elementwise()), values(9)
    at["y"] = 0.5
    assert same(program.map(at, {"x": 0}, client, chunk=2), tidu.evaluate(elementwise(), at, batch={"x": 0}))


def test_no_items(client):
    program, at = tidu.compile(elementwise()), values(0)
    assert same(program.map(at, AXES, client), tidu.evaluate(elementwise(), at, batch=AXES))
    assert program.map(at, AXES, client, reduce="sum")["a"].tolist() == [0, 0, 0]


@pytest.mark.check
def test_sums_have_the_same_bits_however_many_workers_there_are(client):
    program, at = tidu.compile(elementwise()), values(300)
    here = program.map(at, AXES, reduce="sum", chunk=2)
    assert same(program.map(at, AXES, client, reduce="sum", chunk=2), here)
    with started(1) as cluster, cluster.get_client() as alone:
        assert same(program.map(at, AXES, alone, reduce="sum", chunk=2), here)
    assert bits(here["a"]) != bits(program.map(at, AXES, reduce="sum", chunk=300)["a"])  # or it would say nothing


@pytest.mark.parametrize("engine", ["native", "numpy"])
def test_engines(engine, client):
    document = dag(200)
    rng = np.random.default_rng(0)
    at = {str(i.key): rng.uniform(-1, 1, 40) for i in document.head.inputs}
    program = tidu.compile(document, engine=engine)
    axes = dict.fromkeys(at, 0)
    assert same(program.map(at, axes, client, chunk=7), program.map(at, axes, chunk=7))


@pytest.mark.check
def test_a_document_travels_once_to_each_worker(client):
    program, other = tidu.compile(dag(3000)), tidu.compile(elementwise())
    at = {str(i.key): np.ones(60) for i in dag(3000).head.inputs}
    client.run(watch_keeping)
    try:
        for _ in range(3):
            program.map(at, dict.fromkeys(at, 0), client, chunk=2)
    finally:
        given = client.run(unwatch_keeping)
    assert len(given) == 2
    for names in given.values():
        assert sum(name.startswith("tidu-document-") for name in names) == 1
        assert sum(not name.startswith("tidu-document-") for name in names) == 3  # a job for each
    other.map(values(3), AXES, client)
    jobs = {name for names in given.values() for name in names if not name.startswith("tidu-document-")}
    first, second = (parcel_of(d.head).name for d in (dag(3000), elementwise()))
    for kept, graphs in client.run(left_over).values():
        assert second in kept
        assert first not in kept and first not in graphs, "one document is kept for each client, the latest"
        assert jobs.isdisjoint(kept), "and no job"


def test_threads_with_one_client(client):
    """Each maps documents of its own: one does not take away what another is at."""
    results, names = {}, set()

    def repeat(n):
        for k in range(4):
            document = tidu.trace(lambda x, y, n=n, k=k: {"a": x * y * n + k}, x="f64[3]", y="f64[]")
            names.add(parcel_of(document.head).name)
            results[n, k] = tidu.compile(document).map(values(20), AXES, client, chunk=2)["a"]

    threads = [threading.Thread(target=repeat, args=(n,)) for n in (1.0, 2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at = values(20)
    assert len(results) == 12
    for (n, k), a in results.items():
        np.testing.assert_array_equal(a, at["x"] * at["y"][:, None] * n + k)
    tidu.compile(elementwise()).map(values(3), AXES, client)
    for kept, graphs in client.run(left_over).values():
        assert names.isdisjoint(kept) and names.isdisjoint(graphs)


@pytest.mark.parametrize("reduce", [None, "sum"])
def test_a_file_that_workers_do_not_see(reduce, client, tmp_path, monkeypatch):
    """It is where who asks looks at it; here it is gone when the workers do."""
    np.save(tmp_path / "x.npy", values(N)["x"])
    monkeypatch.setattr(work, "parcel_of", lambda *args: (tmp_path / "x.npy").unlink() or parcel_of(*args))
    with pytest.raises(
        EvaluationError, match=r"^chunk \d \(items .*x.npy: No such file or directory, on the worker at tcp:.*; put it"
    ):
        tidu.compile(elementwise()).map(values(N) | {"x": tmp_path / "x.npy"}, AXES, client, reduce=reduce, chunk=5)


def test_a_client_that_is_closed(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        pass
    with pytest.raises(EvaluationError, match="the client given as scheduler is closed; make another one"):
        tidu.compile(elementwise()).map(values(3), AXES, client)


def test_tasks_are_small():
    """Neither document nor shared values are in them."""
    document = tidu.trace(lambda x, w: {"y": x * w.sum()}, x="f64[]", w="f64[100000]")
    made = batch_of(document.head, {Key("x"): np.ones(10**4), Key("w"): np.ones(10**5)}, {Key("x"): 0}, chunk=100)
    sent = pickle.dumps((made.job.name, 3, 300, 400, made.given(300, 400)))
    assert 100 * 8 <= len(sent) <= 100 * 8 + 800


@pytest.mark.check
@pytest.mark.parametrize("reduction", [None, "sum"])
@pytest.mark.parametrize("memory", [None, 500])
def test_no_more_is_under_way_than_the_window(reduction, memory, client, monkeypatch):
    """Results wait to be taken: what is handed out and not yet back is bounded, however slow who takes them is."""
    under_way, most = set(), []
    submit = client.submit

    def counted(function, *args, key, **options):
        future = submit(function, *args, key=key, **options)
        if "-chunk-" in key:
            under_way.add(future)
            # As whoever sums up does not see chunks, those that are done are no longer counted there.
            most.append(sum(not f.done() for f in under_way) if reduction else len(under_way))
        return future

    monkeypatch.setattr(client, "submit", counted)
    with limited(Limits(memory=memory)):
        made = batch(2 * N_CHUNKS, chunk=2, reduction=reduction)
        width = made.width(2)
        assert width == (2 * AHEAD if memory is None else memory // 2 // (2 * 8 * (4 if reduction else 4 + 6)))
        for k, _ in parts(made, client):
            if not reduction:
                time.sleep(0.002)
                under_way -= {f for f in under_way if f.key.endswith(f"-chunk-{k}")}
    assert len(most) == N_CHUNKS
    assert max(most) <= width
    assert reduction or max(most) == width
