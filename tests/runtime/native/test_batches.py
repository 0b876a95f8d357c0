"""Batches on the machine: what is computed of an item is what a run of it alone gives, bit for bit."""

from __future__ import annotations

import tracemalloc
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from benchmarks.generate import SHAPES
from tests.runtime.graphs import Sketch
from tests.runtime.native.agreement import native
from tests.runtime.native.anything import any_graph
from tests.runtime.native.test_opcodes import cases, operands
from tests.tiers import examples
from tidu_cli.adapters.native.engine import batch, refusal
from tidu_cli.adapters.native.machine import TABLE, for_many
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN

MANY = [s for s in TABLE if for_many(s)]


def same(x, y):
    return (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


def assert_each(graph, keys, inputs, size):
    run, alone = batch(graph, keys, size), native(graph)
    assert run is not None
    results = run(inputs)
    for k in range(size):
        due = alone.run({key: value[k] if key in keys else value for key, value in inputs.items()})
        assert all(same(f[k], d) for f, d in zip(results, due, strict=True)), k


@pytest.mark.parametrize("signature", MANY, ids=lambda s: f"{s.op}-{'-'.join(s.operands)}-{s.result}".replace(" ", "-"))
def test_an_opcode_gives_the_same_in_a_batch(signature):
    rng = np.random.default_rng(3)
    for op, attrs, n in cases(signature):
        values = [v[-150:] for v in operands(signature.operands[:n], rng)]
        s = Sketch(**{f"x{k}": f"{t}[]" for k, t in enumerate(signature.operands[:n])})
        inputs = {Key(f"x{k}"): v for k, v in enumerate(values)}
        assert_each(s.graph(y=s.apply(op, *range(n), **attrs)), set(inputs), inputs, len(values[0]))


@pytest.mark.parametrize("size", [1, 2, 31, 33, 1000])
def test_sizes_of_batches(size):
    graph = SHAPES["dag"](100).head
    rng = np.random.default_rng(0)
    keys = {Key(f"x{k}") for k in range(32)}
    inputs = {i.key: rng.uniform(-1, 1, size if i.key in keys else ()) for i in graph.inputs}
    assert_each(graph, keys, inputs, size)


def test_registers_of_long_programs_are_bounded(monkeypatch):
    monkeypatch.setattr("tidu_cli.adapters.native.engine.MOST_BYTES", 2**22)
    graph = SHAPES["chain"](2 * 10**4).head
    keys = {i.key for i in graph.inputs}
    run = batch(graph, keys, 200)
    tracemalloc.start()
    try:
        run({key: np.linspace(0.1, 0.9, 200) for key in keys})
        assert tracemalloc.get_traced_memory()[1] < 2**22 + 2**20
    finally:
        tracemalloc.stop()


def test_of_few_items_each_goes_alone_where_they_are_long(monkeypatch):
    monkeypatch.setattr("tidu_cli.adapters.native.engine.MOST_BYTES", 2**16)
    graph = SHAPES["chain"](10**4).head
    keys = {i.key for i in graph.inputs}
    assert_each(graph, keys, {key: np.linspace(0.1, 0.9, 3) for key in keys}, 3)


def test_arrays_and_outputs_without_items():
    s = Sketch(x="f64[2,3]", b="bool[2]", z="c128[2]", k="i32[]")
    graph = s.graph(
        y=s.apply("reduce_sum", s.apply("sin", 0), axes=[0]), b=s.apply("not", 1), z=s.apply("mul", 2, 2), k=3, zero="f32[2]"
    )
    rng = np.random.default_rng(0)
    inputs = {
        Key("x"): rng.normal(size=(40, 2, 3)), Key("b"): rng.normal(size=(40, 2)) > 0,
        Key("z"): rng.normal(size=(40, 2)) + 1j * rng.normal(size=(40, 2)), Key("k"): np.array(7, "i4"),
    }  # fmt: skip
    assert_each(graph, set(inputs) - {Key("k")}, inputs, 40)


def test_items_may_part_ways_in_loops():
    scan = lambda x, ys: tidu.scan(lambda c, y: (np.sin(c) * y, c), x, ys)[1]  # noqa: E731
    turns = lambda x: tidu.while_loop(lambda c: c[0] > 1, lambda c: (c[0] / 2, c[1] + 1), (x, 0))  # noqa: E731
    one, other = tidu.trace(scan, "f64[]", "f64[5]").head, tidu.trace(turns, "f64[]").head
    rng = np.random.default_rng(0)
    x, ys = (i.key for i in one.inputs)
    assert_each(one, {x}, {x: rng.normal(size=70), ys: rng.normal(size=5)}, 70)
    assert_each(one, {x, ys}, {x: rng.normal(size=70), ys: rng.normal(size=(70, 5))}, 70)
    (x,) = (i.key for i in other.inputs)
    assert_each(other, {x}, {x: np.exp(rng.normal(size=70) * 5)}, 70)


def test_what_needs_numpy_is_left_to_vectorization():
    s = Sketch(x="f64[]")
    assert batch(s.graph(y=s.apply("polygamma", s.apply("sin", 0), 0)), {Key("x")}, 9) is None


@settings(max_examples=examples(100))
@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_random_graphs_give_each_item_what_it_is_alone(seed, size):
    random = Random(seed)
    graph, values = any_graph(random)
    keys = {key for key in values if random.random() < 0.7} or set(values)
    inputs = {key: np.array([np.roll(x, k) for k in range(size)]) if key in keys else x for key, x in values.items()}
    if refusal(graph, BUILTIN) is None and not native(graph).layout.escapes:
        assert_each(graph, keys, inputs, size)
