"""Batches as commands and Python run them: how they are laid out, memory, threads, interruption, and what is left to NumPy."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import tidu_cli as tidu
from benchmarks.generate import SHAPES
from tests.runtime.native.test_batches import assert_each
from tidu_cli.adapters.native import engine
from tidu_cli.adapters.native.engine import batch
from tidu_cli.errors import EvaluationError

FORMULA = tidu.trace(lambda x, y: (np.sin(x) * y + x, x.astype("f4") * y > 0), "f64[]", "f64[]")


def evaluated(document, inputs, keys=("x",), **options):
    return tidu.evaluate(document, inputs, batch=dict.fromkeys(keys, 0), engine="native", **options)


@pytest.fixture
def threads(monkeypatch):
    """Those that ran blocks, of three cores."""
    used, real = set(), engine._Batch._block
    monkeypatch.setattr(engine.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)

    def block(*given):
        used.add(threading.get_ident())
        time.sleep(1e-3)
        real(*given)

    monkeypatch.setattr(engine._Batch, "_block", block)
    return used


def test_all_cores_take_part(threads):
    evaluated(FORMULA, {"x": np.zeros(2**16), "y": 2.0})
    assert len(threads) == 3


def test_few_items_of_short_programs_are_no_work_for_threads(threads):
    evaluated(FORMULA, {"x": np.zeros(128), "y": 2.0})
    assert threads == {threading.get_ident()}


def test_items_lie_anywhere():
    x = np.random.default_rng(0).normal(size=(300, 2))
    plain = evaluated(FORMULA, {"x": x[:, 1].copy(), "y": 2.0})
    for other in (x[:, 1], x[::-1][::-1, 1], list(x[:, 1]), np.asfortranarray(x)[:, 1], x[:, 1].astype(">f8")):
        assert evaluated(FORMULA, {"x": other, "y": 2.0})["y.0"].tobytes() == plain["y.0"].tobytes()
    shared = np.broadcast_to(2.0, 300)
    assert evaluated(FORMULA, {"x": x[:, 1], "y": shared}, "xy")["y.1"].tolist() == plain["y.1"].tolist()


def test_no_items():
    results = evaluated(FORMULA, {"x": np.zeros(0), "y": 2.0})
    assert [(v.shape, v.dtype.name) for v in results.values()] == [((0,), "float64"), ((0,), "bool")]


def test_what_is_shared_is_that_of_the_run():
    graph = FORMULA.head
    x, y = (i.key for i in graph.inputs)
    run = batch(graph, {x}, 500)
    for shared in (2.0, -3.0):
        assert run({x: np.ones(500), y: np.asarray(shared)})[0].tolist() == [np.sin(1.0) * shared + 1] * 500


def test_chunks_of_any_size_give_the_same():
    x = np.random.default_rng(0).normal(size=1000)
    compiled = tidu.compile(FORMULA, engine="native")
    whole = evaluated(FORMULA, {"x": x, "y": 2.0})
    for chunk in (1, 7, 999, 5000):
        results = compiled.map({"x": x, "y": 2.0}, batch={"x": 0}, chunk=chunk)
        assert {key: np.asarray(v).tobytes() for key, v in results.items()} == {key: v.tobytes() for key, v in whole.items()}


def test_a_long_program_takes_all_items_at_once(monkeypatch):
    sizes, real = [], engine._Batch.run
    monkeypatch.setattr(engine._Batch, "run", lambda self, inputs: sizes.append(len(*inputs.values())) or real(self, inputs))
    document = SHAPES["chain"](10**4)
    (key,) = (str(i.key) for i in document.head.inputs)
    evaluated(document, {key: np.linspace(0.1, 0.9, 50)}, (key,))
    assert sizes == [50]


def test_registers_take_no_more_than_memory_allows():
    graph = SHAPES["chain"](10**4).head
    (key,) = keys = {i.key for i in graph.inputs}
    inputs = {key: np.linspace(0.1, 0.9, 50)}
    for items in (1.5, 3, 20):
        run = batch(graph, keys, 50, int(items * 8 * 10**4))
        assert run.__self__.width * run.__self__.threads <= items
    with pytest.raises(EvaluationError, match=r"evaluation would take about 7\d\.\d KiB"):
        batch(graph, keys, 50, 50_000)
    with pytest.raises(EvaluationError, match="evaluation would take about"):
        evaluated(SHAPES["chain"](10**4), {str(key): inputs[key]}, (str(key),), max_memory=50_000)
    assert_each(graph, keys, inputs, 50)


def test_of_what_needs_numpy_the_batch_is_vectorized():
    document = tidu.trace(lambda x, y: np.linalg.inv(np.array([[x, y], [y, -x]])) * np.sin(x), "f64[]", "f64[]")
    x = np.random.default_rng(0).normal(size=40)
    results = evaluated(document, {"x": x, "y": 2.0})
    for k in range(40):
        alone = tidu.evaluate(document, {"x": x[k], "y": 2.0})
        np.testing.assert_allclose(results["y"][k], alone["y"], rtol=1e-14)


@pytest.mark.parametrize("size", [2000, 5000])
def test_what_the_engine_takes_of_one_item_is_not_refused_of_many(size):
    """Each node of four numbers, which are instructions, is one of more than it expands to those."""
    document = tidu.trace(lambda x, w: (np.sin(x) @ w, x * 2, x + 1), "f64[4]", "f64[4]")
    x, w = np.random.default_rng(0).normal(size=(size, 4)), np.arange(4.0)
    product, *_ = evaluated(document, {"x": x, "w": w}).values()
    np.testing.assert_allclose(product, np.sin(x) @ w, rtol=1e-14, atol=1e-14)


def test_what_the_engine_refuses_it_refuses_in_batches():
    document = tidu.trace(lambda x: x @ x @ x, "f64[400,400]")
    with pytest.raises(EvaluationError, match="the engine native cannot run it"):
        evaluated(document, {"x": np.zeros((2, 400, 400))})


@pytest.mark.parametrize("size", [2, 1000])
def test_an_endless_batch_is_interrupted(size):
    document = tidu.trace(lambda x: tidu.while_loop(lambda c: c == c, lambda c: c * 1.0, x), "f64[]")

    def interrupt():
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        evaluated(document, {"x": np.ones(size)})
    thread.join()
