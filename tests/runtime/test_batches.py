"""Batches: what comes out is what comes out one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from benchmarks.generate import chain, dag
from tests.graphs.interpret import random_value
from tests.graphs.strategies import ANY, ELEMENTWISE, SMOOTH, _dot_general, _move, _reduce_sum, documents, seeds
from tests.runtime.plans.test_plans import bits
from tests.tiers import examples
from tidu_cli.errors import EvaluationError, TiduError
from tidu_cli.graph.graph import Document
from tidu_cli.runtime.batches import evaluate_batch
from tidu_cli.runtime.plans.program import plain_program
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.materialize import materialize

SCALAR = tuple(make for make in ANY if make not in (_dot_general, _move, _reduce_sum))
law = settings(max_examples=examples(120, check=60), suppress_health_check=[HealthCheck.too_slow])


def batch_and_one_by_one(document: Document, draw: Any, seed: int) -> list[tuple[Any, Any]]:
    """The outputs of a batch of some inputs along some axes, each with those of its items."""
    head = document.head
    keys = [i.key for i in head.inputs]
    axes = {k: 0 for k in keys if draw.draw(st.booleans())} or {keys[0]: 0}
    axes = {k: draw.draw(st.integers(-1 - i.type.rank, i.type.rank)) for k, i in zip(keys, head.inputs, strict=True) if k in axes}
    size, chunk = draw.draw(st.integers(1, 7)), draw.draw(st.sampled_from([None, 1, 2, 3]))
    rng = np.random.default_rng(seed)
    items = [{i.key: random_value(i.type, rng) for i in head.inputs} for _ in range(size)]
    at = {k: np.stack([item[k] for item in items], axes[k]) if k in axes else items[0][k] for k in keys}
    for item in items:
        item.update({k: at[k] for k in keys if k not in axes})
    results, types = evaluate_batch(head, at, axes, vectorized, chunk=chunk)
    program = plain_program(head)
    alone = [
        dict(zip((o.key for o in head.outputs), program.run({i.key: item[i.key] for i in program.inputs}), strict=True))
        for item in items
    ]
    assert [results[o.key].shape for o in head.outputs] == [types[o.key].shape for o in head.outputs]
    return [(results[o.key], np.stack([one[o.key] for one in alone])) for o in head.outputs]


def materialized_with_inputs(**how: Any) -> st.SearchStrategy[Document]:
    return documents(max_graphs=2, **how).map(materialize).filter(lambda d: len(d.head.inputs) > 0)


@law
@given(materialized_with_inputs(makers=ELEMENTWISE, max_nodes=12), st.data(), seeds)
def test_of_elementwise_arithmetic_to_the_bit(document: Document, draw: Any, seed: int) -> None:
    for together, one_by_one in batch_and_one_by_one(document, draw, seed):
        assert bits([together]) == bits([one_by_one])


@law
@given(materialized_with_inputs(makers=SCALAR, shapes=((),), max_nodes=20), st.data(), seeds)
def test_of_scalars_to_the_bit(document: Document, draw: Any, seed: int) -> None:
    for together, one_by_one in batch_and_one_by_one(document, draw, seed):
        assert bits([together]) == bits([one_by_one])


@law
@given(materialized_with_inputs(makers=SMOOTH, max_nodes=12), st.data(), seeds)
def test_of_anything_up_to_the_order_of_sums(document: Document, draw: Any, seed: int) -> None:
    for together, one_by_one in batch_and_one_by_one(document, draw, seed):
        np.testing.assert_allclose(together, one_by_one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [dag, chain])
def test_of_large_graphs(make: Callable[[int], Document]) -> None:
    document = make(800)
    gradient = tidu.grad(document, [str(i.key) for i in document.head.inputs])
    rng = np.random.default_rng(0)
    at = {str(i.key): rng.uniform(-1, 1, 40) for i in gradient.head.inputs}
    together = tidu.evaluate(gradient, at, batch=dict.fromkeys(at, 0), engine="numpy")
    one = tidu.compile(gradient, engine="numpy")
    for k in range(40):
        alone = one({key: x[k] for key, x in at.items()})
        assert all(alone[key].tobytes() == together[key][k].tobytes() for key in alone)


def test_outputs_that_do_not_depend_on_the_batch_are_repeated() -> None:
    document = tidu.trace(lambda x, y: {"a": x + 1, "b": y * 2, "c": x * 0 + y}, x="f64[]", y="f64[2]")
    results = tidu.evaluate(document, x=[1.0, 2.0, 3.0], y=[5.0, 6.0], batch={"x": 0})
    assert results["a"].tolist() == [2, 3, 4]
    assert results["b"].tolist() == [[10, 12]] * 3
    assert results["c"].tolist() == [[5, 6]] * 3


def test_a_batch_that_no_output_depends_on_says_how_many_there_are() -> None:
    document = tidu.trace(lambda x, y: {"a": x + x, "b": y * y}, x="f64[2]", y="f64[]")
    gradient = tidu.vjp(document, ["x", "y"])
    x = np.zeros((3, 2))
    results = tidu.evaluate(gradient, {"a@-1": [1.0, 2.0], "b@-1": 1.0}, x=x, y=5.0, batch={"x": 0})
    assert results["x@-1"].tolist() == [[2, 4]] * 3 and results["y@-1"].tolist() == [10] * 3
    zero = tidu.derivative(tidu.materialize(document, "b"), "y", order=3)
    assert tidu.evaluate(zero, x=x, batch={"x": 0})["b@1@2@3"].tolist() == [0, 0, 0]
    chosen = tidu.materialize(document, "a")
    assert tidu.evaluate(chosen, x=[1.0, 2.0], y=np.zeros(4), batch={"y": 0})["a"].tolist() == [[2, 4]] * 4
    with pytest.raises(EvaluationError, match="missing inputs: y: f64"):
        tidu.evaluate(chosen, x=[1.0, 2.0], batch={"y": 0})


def test_an_empty_batch() -> None:
    document = tidu.trace(lambda x: {"a": x.sum()}, x="f64[3]")
    assert tidu.evaluate(document, x=np.zeros((3, 0)), batch={"x": 1})["a"].shape == (0,)


def test_memory_bounds_the_chunk() -> None:
    document = tidu.trace(lambda x: {"a": (x @ x.T).sum()}, x="f64[100,3]")
    x = np.random.default_rng(0).normal(size=(50, 100, 3))
    expected = tidu.evaluate(document, x=x, batch={"x": 0})["a"]
    np.testing.assert_allclose(tidu.evaluate(document, x=x, batch={"x": 0}, max_memory="300K")["a"], expected, rtol=1e-12)
    with pytest.raises(EvaluationError, match="more than the limit"):
        tidu.evaluate(document, x=x, batch={"x": 0}, max_memory="10K")


def refusal(**how: Any) -> str:
    document = tidu.trace(lambda x, y: {"a": x.sum() * y}, x="f64[3]", y="f64[]")
    given = {"x": np.zeros((5, 3)), "y": 1.0, "batch": {"x": 0}} | how
    with pytest.raises(TiduError) as caught:
        tidu.evaluate(document, **given)
    return str(caught.value)


def test_refusals() -> None:
    assert refusal(batch={"z": 0}) == "no graph has an input 'z' (inputs: x, y)"
    assert refusal(batch={"x": 2}) == "input x: axis 2 is out of range for a batch of f64[3], 2 axes; the first is 0, the last -1"
    assert refusal(batch={"x": 1}).startswith("input x: expected f64[3,3], got f64[5,3]")
    assert refusal(x=np.zeros(3)) == "input x: expected a batch of f64[3], 2 axes, got 1 axis; the batch is one more axis"
    assert refusal(batch={"x": 0, "y": 0}, y=np.zeros(4)) == (
        "batches differ in size: x has 5 along axis 0, y has 4 along axis 0; give as many items of each"
    )
    assert refusal(moves={"y": 1.0}).startswith("batch and moves do not go together")
