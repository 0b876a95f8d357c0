"""Chunks one after the other in this process: what comes out is what comes out of all items at once."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.cluster.clusters import bits, elementwise, needs_dask, same, values
from tests.graphs.interpret import random_value
from tests.graphs.strategies import ELEMENTWISE, SMOOTH, documents, seeds
from tests.tiers import examples
from tidu_cli.cluster.collecting import put_together
from tidu_cli.cluster.run import batch_of, parts
from tidu_cli.errors import EvaluationError, LimitError
from tidu_cli.graph.keys import Key
from tidu_cli.limits import Limits, limited
from tidu_cli.runtime.batches import evaluate_batch
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.materialize import materialize

SEGMENT = tidu.load(Path(__file__).parents[2] / "samples" / "segment.json")
law = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


def with_inputs(**how):
    return documents(max_graphs=1, **how).map(materialize).filter(lambda d: len(d.head.inputs) > 0)


def drawn(document, draw, seed):
    """Values of the inputs, some of them many, and along which axes."""
    inputs = document.head.inputs
    axes = {i.key: draw.draw(st.integers(-1 - i.type.rank, i.type.rank)) for i in inputs if draw.draw(st.booleans())}
    axes = axes or {inputs[0].key: 0}
    size, rng = draw.draw(st.integers(0, 9)), np.random.default_rng(seed)
    items = [{i.key: random_value(i.type, rng) for i in inputs} for _ in range(max(size, 1))]
    at = {i.key: np.stack([item[i.key] for item in items], axes[i.key]) if i.key in axes else items[0][i.key] for i in inputs}
    at = {key: np.take(x, range(size), axes[key]) if key in axes else x for key, x in at.items()}
    return at, axes, draw.draw(st.integers(1, 11))


@law
@given(with_inputs(makers=ELEMENTWISE, max_nodes=12), st.data(), seeds)
def test_of_elementwise_arithmetic_to_the_bit(document, draw, seed):
    at, axes, chunk = drawn(document, draw, seed)
    batch = batch_of(document.head, at, axes, chunk=chunk)
    results = put_together(batch, parts(batch, None))
    due, types = evaluate_batch(document.head, at, axes, vectorized)
    assert batch.types == types
    assert same(results, due)


@law
@given(with_inputs(makers=SMOOTH, max_nodes=12), st.data(), seeds)
def test_of_anything_up_to_the_order_of_sums(document, draw, seed):
    at, axes, chunk = drawn(document, draw, seed)
    batch = batch_of(document.head, at, axes, chunk=chunk)
    results = put_together(batch, parts(batch, None))
    due, _ = evaluate_batch(document.head, at, axes, vectorized)
    for key in due:
        np.testing.assert_allclose(results[key], due[key], rtol=1e-9, atol=1e-9)


@settings(max_examples=examples(40, check=14))
@given(st.integers(1, 400), st.integers(1, 9), st.integers(0, 99))
def test_sums_within_the_bound_of_pairwise_summation(n, chunk, seed):
    """The exact sum is that of the numbers that come out one by one; a tree adds no more than its levels."""
    program, at, axes = tidu.compile(elementwise()), values(n, seed), {"x": 0, "y": 0}
    sums, each = program.map(at, axes, reduce="sum", chunk=chunk), program.map(at, axes)
    mean = program.map(at, axes, reduce="mean", chunk=chunk)
    depth = 4 + 2 * math.ceil(math.log2(n + 1))
    for key in sums:
        for k in range(3):
            addends = each[key][:, k]
            assert abs(math.fsum([sums[key][k], *-addends])) <= 2.0**-53 * depth * math.fsum(map(abs, addends))
        assert bits(mean[key]) == bits(sums[key] / n)


def test_a_result_put_together_in_any_order():
    at = {Key(k): x for k, x in values(200).items()}
    batch = batch_of(elementwise().head, at, {Key("x"): 0, Key("y"): 0}, chunk=3)
    chunks = list(parts(batch, None))
    assert [k for k, _ in chunks] == list(range(67))
    assert same(put_together(batch, reversed(chunks)), put_together(batch, chunks))
    sums = batch_of(elementwise().head, at, {Key("x"): 0, Key("y"): 0}, chunk=1, reduction="sum")
    groups = list(parts(sums, None))
    assert len(groups) == 4
    assert same(put_together(sums, groups[1:] + groups[:1]), put_together(sums, groups))


def test_results_of_many_groups():
    """More chunks than a group has, whose sums come home."""
    n = 300
    document = tidu.trace(lambda k: {"y": k * k}, k="i64[]")
    sums = tidu.compile(document).map({"k": np.arange(n)}, {"k": 0}, reduce="sum", chunk=1)
    assert int(sums["y"]) == (n - 1) * n * (2 * n - 1) // 6


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_records(chunk):
    program, rng = tidu.compile(SEGMENT), np.random.default_rng(0)
    ends = rng.normal(size=(4, 10))
    s = {"a": {"x": ends[0], "y": ends[1]}, "b": {"x": ends[2], "y": ends[3]}}
    due = tidu.evaluate(SEGMENT, {"s": s}, batch={"s": 0})
    assert same(program.map({"s": s}, {"s": 0}, chunk=chunk), due)
    total = program.map({"s": s}, {"s": 0}, chunk=chunk, reduce="sum")
    np.testing.assert_allclose(total["length"], due["length"].sum(), rtol=1e-14)
    np.testing.assert_allclose(total["middle"]["y"], due["middle"]["y"].sum(), rtol=1e-14)


def test_results_that_memory_does_not_hold():
    document = tidu.trace(lambda x: {"y": x + np.zeros(10**4)}, x="f64[]")
    with limited(Limits(memory=10**6)), pytest.raises(LimitError, match=r"results of all items: .*out='out.zarr'"):
        tidu.compile(document).map({"x": np.zeros(1000)}, {"x": 0})
    with limited(Limits(memory=10**6)):
        assert tidu.compile(document).map({"x": np.ones(1000)}, {"x": 0}, chunk=1, reduce="sum")["y"][0] == 1000


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"batch": {}}, "no batch to spread; say with batch={KEY: 0} which input has one"),
        ({"inputs": {"x": np.zeros((3, 3)), "y": np.zeros(4)}}, "batches differ in size: x has 3, y has 4"),
        ({"inputs": {"x": np.zeros((3, 3))}}, "missing inputs: y: f64"),
        ({"inputs": {"x": np.zeros((3, 3, 1)), "y": np.zeros(3)}}, "input x: expected a batch of f64[3], 2 axes, got 3 axes"),
        ({"inputs": {"x": np.zeros((3, 3), "c16"), "y": np.zeros(3)}}, "input x: expected f64[3,3], got c128[3,3]"),
    ],
)
def test_refusals(how, words):
    given = {"inputs": {"x": np.zeros((3, 3)), "y": np.zeros(3)}, "batch": {"x": 0, "y": 0}, **how}
    with pytest.raises(EvaluationError) as caught:
        tidu.compile(elementwise()).map(**given)
    assert str(caught.value).startswith(words)


@needs_dask
@pytest.mark.parametrize("scheduler", ["head", "local:0", "local:10000"])
def test_what_is_no_scheduler(scheduler):
    with pytest.raises(
        EvaluationError, match=f"^'{scheduler}' is not a scheduler: write its address, such as tcp://head:8786, or local"
    ):
        tidu.compile(elementwise()).map(values(3), {"x": 0, "y": 0}, scheduler)
