"""Batches of loops and branches: many items at once give what each gives by itself, also where each runs as long as it must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.control_flow.laws import Values, forward, gradient, hold, longer, run
from tests.control_flow.strategies import CONDITIONED, SCANS, looping
from tests.graphs.interpret import free_inputs, random_inputs
from tests.graphs.sketch import Sketch, document
from tests.graphs.strategies import seeds
from tidu_cli.api import evaluate
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize

TOLERANCE = 1e-10
"""Products of matrices are added in another order in batches, as NumPy chooses by shape."""


def one_by_one(doc: Document, size: int, batched: list[Key], seed: int) -> None:
    """The law, for random values of these inputs, and the others shared."""
    shared = random_inputs(doc, seed)
    items: list[Values] = [shared | {k: random_inputs(doc, seed + n + 1)[k] for k in batched} for n in range(size)]
    stacks = {k: np.stack([item[k] for item in items]) for k in batched}
    with np.errstate(all="ignore"):
        together = evaluate(doc, {**shared, **stacks}, batch=dict.fromkeys(batched, 0))
    each = [run(doc, item) for item in items]
    for key in each[0]:
        due = np.stack([np.asarray(one[key]) for one in each])
        y = np.asarray(together[str(key)])
        assert (y.shape, y.dtype) == (due.shape, due.dtype), key
        scale = 1 + np.max(np.abs(due), initial=0)
        assert np.all(np.abs(y.astype(complex) - due.astype(complex)) <= TOLERANCE * scale), key


@longer
@pytest.mark.parametrize("order", ["values", "jvp", "vjp"])
def test_many_items_at_once(order: str, times: int) -> None:
    def law(doc: Document, size: int, seed: int) -> None:
        derived = {"values": lambda d: d, "jvp": forward, "vjp": gradient}[order](doc)
        keys = [k for k, _ in free_inputs(derived).items()]
        one_by_one(derived, size, [k for n, k in enumerate(keys) if seed >> n & 1] or keys[:1], seed)

    hold(25 * times, law, looping(nested=SCANS if order == "vjp" else CONDITIONED), st.integers(1, 3), seeds)


def collatz() -> Document:
    """A while that runs as long as each number needs: its steps, and a product that depends on x and on the way."""
    types = {"n": "i32[]", "steps": "i32[]", "p": "f64[]"}
    test, step = Sketch(types), Sketch({"x": "f64[]", **types})
    condition = ClosedGraph.of(test.build("", {"y": test.apply("gt", test.inputs[0], 1)}))
    x, n, steps, p = step.inputs
    odd = step.apply("ne", step.apply("rem", n, 2), 0)
    half, triple = step.apply("div", n, 2), n * 3 + 1
    after = step.apply("select_n", odd, half, triple)
    product = step.apply("select_n", odd, step.apply("sin", p * x), p * x + 0.5)
    body = ClosedGraph.of(step.build("", {"n": after, "steps": steps + 1, "p": product}))
    sketch = Sketch({"n": "i32[]", "x": "f64[]"})
    zero, one = sketch.full(0, sketch.inputs[0].type), sketch.full(1, sketch.inputs[1].type)
    attrs = {"cond_consts": 0, "body_consts": 1, "condition": condition, "body": body}
    results = sketch.apply_all("while", sketch.inputs[1], sketch.inputs[0], zero, one, **attrs)
    return document(sketch.build("f", {"steps": results[1], "p": results[2]}))


def test_each_item_runs_as_long_as_it_must() -> None:
    numbers, xs = np.array([1, 7, 2, 27, 6], np.int32), np.array([0.3, 0.9, -0.5, 1.1, 0.2])
    values = evaluate(collatz(), n=numbers, x=xs, batch={"n": 0, "x": 0})
    assert values["steps"].tolist() == [0, 16, 1, 111, 8]
    for doc, given in ((collatz(), {}), (linearize(collatz(), [Key("x")]), {"x@1": np.array([1.0, 2.0, -1.0, 0.5, 1.5])})):
        together = evaluate(doc, {"n": numbers, "x": xs, **given}, batch=dict.fromkeys(["n", "x", *given], 0))
        for k in range(5):
            alone = evaluate(doc, {"n": numbers[k], "x": xs[k], **{name: v[k] for name, v in given.items()}})
            for name, value in alone.items():
                assert np.allclose(together[name][k], value, rtol=1e-14, atol=0)


def test_items_that_are_done_are_held_where_to_go_on_would_give_no_number() -> None:
    """What a finished item would compute, 1 / 0 or the logarithm of what is negative, does not reach it."""
    test, step = Sketch({"x": "f64[]", "y": "f64[]"}), Sketch({"x": "f64[]", "y": "f64[]"})
    condition = ClosedGraph.of(test.build("", {"c": test.apply("gt", test.inputs[0], 0.5)}))
    x, y = step.inputs
    body = ClosedGraph.of(step.build("", {"x": x - 1, "y": y + step.apply("log", x)}))
    sketch = Sketch({"x": "f64[]"})
    attrs = {"cond_consts": 0, "body_consts": 0, "condition": condition, "body": body}
    results = sketch.apply_all("while", sketch.inputs[0], sketch.full(0, sketch.inputs[0].type), **attrs)
    doc = document(sketch.build("f", {"y": results[1]}))
    xs = np.array([0.25, 4.0, 1.5, 2.0])
    values = evaluate(doc, x=xs, batch={"x": 0})["y"]
    assert np.allclose(values, [0, np.log(24), np.log(1.5), np.log(2)], rtol=1e-14, atol=1e-15)
    slopes = evaluate(linearize(doc, [Key("x")]), {"x": xs, "x@1": 1.0}, batch={"x": 0})["y@1"]
    assert np.allclose(slopes, [0, 1 / 4 + 1 / 3 + 1 / 2 + 1, 1 / 1.5, 1 / 2 + 1], rtol=1e-14)
