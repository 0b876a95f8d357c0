"""Which engine runs a graph: the one named, or what takes the least time by estimate, of those installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import tidu_cli as tidu
from benchmarks.generate import SHAPES
from tests.programs import needs
from tidu_cli.errors import EvaluationError, UnknownNameError
from tidu_cli.installed import own_engines
from tidu_cli.runtime.choosing import MANY, Choice, _work, chosen, default_engine
from tidu_cli.runtime.plans.groups import GroupedProgram
from tidu_cli.runtime.plans.program import prepared

FIND_SPEC = importlib.util.find_spec


def loop(body, start, length):
    return tidu.trace(lambda x: tidu.fori_loop(0, length, lambda _, x: body(x), x), start).head


def steps_of_numbers(length):
    return loop(lambda x: np.sin(x) + 0.5 * x, "f64[]", length)


def steps_of_arrays(length):
    return loop(lambda x: np.sin(x) @ np.ones((3, 3)), "f64[3]", length)


def test_work_is_that_of_every_turn():
    """Of loops in loops, too; a branch is taken once."""
    body = tidu.trace(lambda x: np.sin(x) + 0.5 * x, "f64[]").head
    once = _work(body)
    loop_ = _work(steps_of_numbers(1000))
    assert once.calls == once.numbers == 4  # a constant, its product, a sine and their sum
    assert 1000 * once.calls <= loop_.calls <= 1000 * (once.calls + 4)  # and the turn's own number
    nested = tidu.trace(lambda x: tidu.fori_loop(0, 7, lambda _, x: tidu.fori_loop(0, 1000, lambda _, x: np.sin(x), x), x), "f64[]")
    assert 7000 <= _work(nested.head).calls <= 7000 * 5


def test_groups_are_taken_where_they_fit_into_memory():
    graph = SHAPES["dag"](10**4).head
    assert isinstance(prepared(graph)[0], GroupedProgram)
    assert not isinstance(prepared(graph, max_memory=1000)[0], GroupedProgram)


@pytest.fixture
def lacking(monkeypatch):
    """Makes packages look as if they were not installed."""

    def lack(*packages):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in packages else FIND_SPEC(name))

    return lack


@needs("llvmlite", "jax")
@pytest.mark.parametrize(
    ("graph", "runs", "engine"),
    [
        (steps_of_numbers(10), 1, "numpy"),
        (steps_of_numbers(10**7), 1, "native"),
        (steps_of_numbers(10**4), MANY, "native"),
        (steps_of_arrays(100), 1, "numpy"),
        (steps_of_arrays(10**6), 1, "xla"),
        (steps_of_arrays(1000), MANY, "xla"),
        (SHAPES["chain"](10**4).head, 1, "numpy"),
        (SHAPES["dag"](10**4).head, MANY, "native"),
    ],
)
def test_the_quickest_is_chosen(graph, runs, engine):
    assert chosen(graph, "auto", runs=runs).name == engine


@needs("llvmlite", "jax")
def test_what_is_not_installed_is_not_chosen(lacking):
    lacking("llvmlite", "jax")
    assert chosen(steps_of_numbers(10**8), "auto").name == "numpy"
    lacking("llvmlite")
    assert chosen(steps_of_numbers(10**8), "auto").name == "xla"


@pytest.mark.parametrize(("engine", "package", "extra"), [("native", "llvmlite", "native"), ("xla", "jax", "jax")])
def test_an_engine_that_is_asked_for_and_not_installed_says_what_to_install(lacking, engine, package, extra):
    lacking(package)
    with pytest.raises(EvaluationError) as told:
        tidu.evaluate(tidu.trace(lambda x: np.sin(x), "f64[]"), {"x": 1.0}, engine=engine)
    assert str(told.value) == f"the engine {engine} needs the package {package}: pip install 'tidu[{extra}]'"


def test_the_environment_names_one(monkeypatch):
    monkeypatch.setenv("TIDU_ENGINE", "native")
    assert default_engine() == "native"
    monkeypatch.setenv("TIDU_ENGINE", "nativ")
    with pytest.raises(UnknownNameError, match="no engine 'nativ'; did you mean 'native'"):
        default_engine()
    monkeypatch.setenv("TIDU_ENGINE", "")
    assert default_engine() == "auto"


@needs("llvmlite", "jax")
def test_a_device_asks_for_xla():
    assert chosen(steps_of_numbers(1), "auto", device="gpu").name == "xla"
    assert chosen(steps_of_numbers(1), "auto", device="cpu").name == "numpy"
    assert chosen(steps_of_arrays(10**6), "auto", device="cpu")[::2] == ("xla", "cpu")  # and not where JAX would run by itself


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_a_device_that_the_engine_named_does_not_have_is_refused(engine):
    document = tidu.trace(lambda x: np.sin(x), "f64[]")
    for more in ({}, {"batch": {"x": 0}}):
        given = {"x": [1.0] if more else 1.0}
        with pytest.raises(EvaluationError, match=f"the engine {engine} has no device 'gpu', only cpu: choose the engine xla"):
            tidu.evaluate(document, given, engine=engine, device="gpu", **more)
        assert tidu.evaluate(document, given, engine=engine, device="cpu", **more)


def test_an_engine_that_fails_is_replaced_where_it_was_not_asked_for(monkeypatch):
    def fail(*_):
        raise OSError("no space left for code")

    monkeypatch.setattr("tidu_cli.adapters.native.engine.program", fail)
    graph = steps_of_numbers(10)
    _, choice = prepared(graph, Choice("native", "as it is quick", automatic=True))
    assert (choice.name, choice.reason) == ("numpy", "as the engine native failed: no space left for code")
    with pytest.raises(OSError, match="no space left"):
        prepared(graph, Choice("native", "as asked for"))


def test_all_engines_have_what_is_asked_of_them():
    for engine in own_engines().values():
        module = engine
        assert all(callable(getattr(module, name)) for name in ("refusal", "program", "batch"))


def test_an_engine_is_to_save_more_than_a_moment(monkeypatch):
    """Another package's, which takes no time at all and is installed."""

    class Instant:
        name, package, extra, devices = "instant", "tidu_cli", "instant", False

        def seconds(self, *_):
            return 0.0

        def refusal(self, *_):
            return None

    monkeypatch.setattr("tidu_cli.installed.own_engines", lambda: {"instant": Instant()})
    assert chosen(steps_of_numbers(1), "auto").name == "numpy"
    assert chosen(steps_of_numbers(10**7), "auto").name == "instant"
