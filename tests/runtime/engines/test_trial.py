"""Engines tried on calls: never on the first, at a bounded price, and in the end the quickest runs. Time is what they say here."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu
from tests.programs import needs
from tests.tiers import examples
from tests.waiting import LIMIT
from tidu_cli import installed
from tidu_cli.api.evaluation import values_of
from tidu_cli.errors import EvaluationError
from tidu_cli.runtime import trial
from tidu_cli.runtime.choosing import Choice, chosen
from tidu_cli.runtime.plans import program as preparing
from tidu_cli.runtime.plans.interpreter import Runnable
from tidu_cli.runtime.plans.program import compile_graph, plain_program
from tidu_cli.transforms.materialize import materialize

SQUARE = tidu.trace(lambda x: x * x, "f64[]")
AT = {"x": 3.0}


class World:
    """A clock, and who ran: an engine says how long it takes, and its mark is added to results."""

    def __init__(self):
        self.now, self.ran, self.engines = 0.0, [], {}

    def timed(self, *of_program):
        return Timed(self, *of_program)


class Timed(Runnable):
    def __init__(self, world, program, name, seconds, mark, cold=0.0):
        self.world, self.program, self.name, self.taken, self.mark, self.cold = world, program, name, seconds, mark, cold
        self.graph, self.primitives, self.inputs, self.outputs = program.graph, program.primitives, program.inputs, program.outputs

    def nbytes(self):
        return 0

    def run_in_order(self, values, *, once=False):
        self.world.now, self.cold = self.world.now + self.taken + self.cold, 0.0
        self.world.ran.append(self.name)
        return [y + self.mark for y in self.program.run_in_order(values, once=once)]


class Fake:
    package, extra, devices = "tidu_cli", "fake", False

    def __init__(self, world, name, start, run, mark=0.0, refuses=None, fails=None, cold=0.0):
        self.cold = cold
        self.world, self.name, self.start, self.run, self.mark = world, name, start, run, mark
        self.refuses, self.fails = refuses, fails
        world.engines[name] = self

    def seconds(self, n_nodes, n_calls, n_numbers, runs, call):
        return self.start + runs * self.run

    def refusal(self, graph, primitives):
        return self.refuses

    def program(self, graph, primitives, outputs, device):
        self.world.now += self.start
        if self.fails:
            raise self.fails
        return self.world.timed(plain_program(graph), self.name, self.run, self.mark, self.cold)

    def batch(self, graph, keys, size, max_memory=None):
        self.world.now += self.start

        def run(part):
            (x,) = part.values()
            self.world.now += self.run * len(x)
            return [x * x + self.mark]

        return run


@pytest.fixture
def world(monkeypatch):
    return a_world(monkeypatch)


def a_world(monkeypatch, numpy=1e-3):
    world = World()
    plain = lambda graph, outputs=None: world.timed(compile_graph(graph, outputs=outputs), "numpy", numpy, 0.0)  # noqa: E731
    monkeypatch.setattr(preparing, "compile_graph", plain)
    monkeypatch.setattr(trial, "clock", lambda: world.now)
    monkeypatch.setattr(installed, "own_engines", lambda: world.engines)
    monkeypatch.setattr(installed, "engine_named", world.engines.get)
    return world


def called(compiled, times):
    return [float(compiled(AT)["y"]) for _ in range(times)]


def test_one_call_tries_nothing(monkeypatch):
    """However long it takes, and however quick others are."""
    world = a_world(monkeypatch, numpy=1e4)
    Fake(world, "quick", 0.0, 0.0)
    monkeypatch.setattr(Fake, "seconds", lambda *_: 1e9)  # so that it is not taken at once
    compiled = tidu.compile(SQUARE, engine="auto")
    called(compiled, 1)
    assert world.ran == ["numpy"] and world.now == 1e4
    assert compiled._program._rivals is None  # nor does it look what there is


def test_the_quickest_takes_over_and_results_are_of_one_engine_from_then_on(world):
    Fake(world, "slow", 0.01, 5e-3, mark=0.1)  # no near miss
    Fake(world, "quick", 0.2, 1e-4, mark=0.2)
    compiled = tidu.compile(SQUARE, engine="auto")
    assert compiled.engine == "numpy"
    results = called(compiled, 60)
    assert results == sorted(results) and set(results) == {9.0, 9.2}
    assert results.index(9.2) == trial.FIRST  # as a thousand calls of a millisecond are more than its start
    assert compiled.engine == "quick"
    assert compiled.why == "as a run takes 0.1 ms, with numpy 1 ms; slow takes 5 ms a run, numpy 1 ms"
    ran = len(world.ran)
    called(compiled, 10)
    assert world.ran[ran:] == ["quick"] * 10


def test_a_near_miss_is_tried_once_more_and_late(world):
    """As if the machine had been busy."""
    quick = Fake(world, "quick", 0.1, 1.1e-3)
    compiled = tidu.compile(SQUARE, engine="auto")
    called(compiled, 40)
    assert compiled.engine == "numpy" and "quick takes 1.1 ms a run" in compiled.why
    quick.run = 5e-4
    called(compiled, 1000)
    assert compiled.engine == "numpy"
    called(compiled, 500)
    assert compiled.engine == "quick" and compiled.why == "as a run takes 0.5 ms, with numpy 1 ms"
    assert compiled._program._rivals == []


def test_what_costs_more_than_many_calls_waits_until_as_much_is_spent(world):
    Fake(world, "quick", 5.0, 1e-4)
    compiled = tidu.compile(SQUARE, engine="auto")
    called(compiled, 4990)
    assert compiled.engine == "numpy" and set(world.ran) == {"numpy"}
    called(compiled, 30)
    assert compiled.engine == "quick"


SECONDS = st.floats(1e-5, 10)


@given(SECONDS, st.lists(st.tuples(SECONDS, SECONDS), max_size=3), st.integers(1, 40))
@settings(max_examples=examples(200, check=60), deadline=None)
def test_the_price_is_bounded_and_the_end_is_near_the_best(numpy, rivals, calls):
    with pytest.MonkeyPatch.context() as patch:
        world = a_world(patch, numpy)
        for k, (start, run) in enumerate(rivals):
            Fake(world, f"e{k}", start, run)
        program = trial.Trial(materialize(SQUARE).head, Choice("numpy", "", automatic=True))
        for _ in range(calls):
            program.run_in_order([np.array(3.0)])
        runs = sum(2 * (trial.LONG + numpy + run) for _, run in rivals)
        if calls < trial.FIRST:
            assert world.now <= 2 * calls * numpy + runs
        for _ in range(10**4):
            if program._rivals == []:
                break
            program._spent += 1.0  # as if calls had taken that long
            program.run_in_order([np.array(3.0)])
        seconds = {"numpy": numpy, **{f"e{k}": run for k, (_, run) in enumerate(rivals)}}
        assert seconds[program.choice.name] <= min(seconds.values()) / trial.QUICKER * (1 + 1e-9)


def test_a_first_run_that_takes_longer_does_not_count(monkeypatch):
    world = a_world(monkeypatch, numpy=1.0)
    Fake(world, "quick", 1.5, 0.5, cold=1.0)
    compiled = tidu.compile(SQUARE, engine="auto")
    called(compiled, 20)
    assert compiled.engine == "quick"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"refuses": "node 0 is not for it"}, "node 0 is not for it"),
        ({"fails": EvaluationError("no room")}, "no room"),
        ({"fails": RuntimeError()}, "RuntimeError"),
        ({"fails": MemoryError("4 GiB")}, "4 GiB"),
    ],
)
def test_what_cannot_is_left_out(world, how, why):
    Fake(world, "lame", 0.01, 1e-5, **how)
    Fake(world, "quick", 0.02, 1e-4)
    compiled = tidu.compile(SQUARE, engine="auto")
    assert set(called(compiled, 100)) == {9.0}
    assert compiled.engine == "quick" and compiled.why.endswith(f"; lame was left out: {why}")


def test_one_that_took_over_and_fails_is_replaced(world):
    Fake(world, "quick", 0.01, 1e-4, mark=0.5)
    compiled = tidu.compile(SQUARE, engine="auto")
    assert called(compiled, 40)[-1] == 9.5

    def fail(*_, **__):
        raise EvaluationError("in a forked process")

    compiled._program.current.run_in_order = fail
    assert called(compiled, 2) == [9.0, 9.0]
    assert compiled.engine == "numpy" and compiled.why == "as the engine quick failed: in a forked process"


def test_an_interrupt_in_a_trial_leaves_what_was_there(world):
    Fake(world, "quick", 0.01, 1e-4, fails=KeyboardInterrupt())
    compiled = tidu.compile(SQUARE, engine="auto")
    with pytest.raises(KeyboardInterrupt):
        called(compiled, 40)
    assert called(compiled, 40) == [9.0] * 40 and compiled.engine == "numpy"


def test_threads_do_not_wait_for_a_trial(world, monkeypatch):
    quick, trying, over = Fake(world, "quick", 0.01, 1e-4), threading.Event(), threading.Event()

    def wait(*_):
        trying.set()
        assert over.wait(LIMIT)
        raise EvaluationError("enough")

    monkeypatch.setattr(quick, "program", wait)
    compiled = tidu.compile(SQUARE, engine="auto")
    one = threading.Thread(target=called, args=(compiled, 40))
    one.start()
    assert trying.wait(LIMIT)
    assert called(compiled, 40) == [9.0] * 40
    over.set()
    one.join(120)
    assert compiled.engine == "numpy" and "quick was left out: enough" in compiled.why


def test_who_names_an_engine_gets_it(world):
    Fake(world, "quick", 0.0, 0.0)
    compiled = tidu.compile(SQUARE, engine="numpy")
    called(compiled, 100)
    assert (compiled.engine, compiled.why, set(world.ran)) == ("numpy", "as asked for", {"numpy"})


@needs("llvmlite")
def test_native_is_tried(monkeypatch):
    engines, ticks = {"native": installed.own_engines()["native"]}, iter(range(10**6))
    monkeypatch.setattr(installed, "own_engines", lambda: engines)
    monkeypatch.setattr(trial, "clock", lambda: float(next(ticks)))
    compiled = tidu.compile(tidu.grad(tidu.load("samples/rosenbrock.json"), ["x", "y"]), engine="auto")
    for _ in range(40):
        assert {k: float(v) for k, v in compiled(x=2.0, y=1.0).items()} == {"x@-1": 2402.0, "y@-1": -600.0}
    assert compiled.engine == "numpy" and compiled.why.endswith("; native takes 1 s a run, numpy 1 s")


def in_batches(size, told):
    head = materialize(SQUARE).head
    x = np.arange(float(size))
    (key,) = [i.key for i in head.inputs]
    results, _ = values_of(head, {key: x}, chosen(head, "auto"), batch={key: 0}, tell=told.append)
    return next(iter(results.values())) - x * x


@pytest.mark.parametrize("run", [0.0, 1e-5])
def test_a_batch_is_of_one_engine(world, monkeypatch, run):
    """The first chunk, too."""
    Fake(world, "lame", 0.0, 0.0, refuses="not for it")
    Fake(world, "quick", 1e-3, run, mark=0.5)
    ticks = iter(range(10**6))
    monkeypatch.setattr(trial, "clock", lambda: world.now + 1e-2 * next(ticks))  # what NumPy's chunks take, too
    told = []
    assert set(in_batches(2**19, told)) == {0.0 if run else 0.5}
    assert told[0] == "engine lame was left out: not for it"
    assert told[1].startswith("engine quick takes 1.0e-05 s an item" if run else "engine quick, as it takes ")


def test_a_batch_that_is_done_before_another_engine_is_ready_tries_nothing(world, monkeypatch):
    Fake(world, "quick", 0.1, 0.0, mark=0.5)
    ticks = iter(range(10**6))
    monkeypatch.setattr(trial, "clock", lambda: world.now + 1e-5 * next(ticks))
    told = []
    assert set(in_batches(2**19, told)) == {0.0} and not told
