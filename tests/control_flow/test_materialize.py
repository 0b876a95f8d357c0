"""materialize goes into loops and branches: values stay, and what is left is what is needed, once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidu_cli as tidu
from tests.control_flow.laws import ORDERS, assert_alike, hold, longer, run
from tests.control_flow.strategies import CONDITIONED, SCANS, looping
from tests.graphs.interpret import random_inputs
from tests.graphs.sketch import Sketch, document, function
from tests.graphs.strategies import seeds
from tests.runtime.plans.test_plans import assert_plans_agree
from tests.transforms.laws.test_laws import same
from tidu_cli.formats.write import format_document
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Document
from tidu_cli.transforms.materialize import materialize


@longer
def test_values_stay_bit_for_bit_in_every_engine(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        single, at = materialize(doc), random_inputs(doc, seed)
        assert same(run(single, at), run(doc, at))
        assert_plans_agree(single, at)

    hold(60 * times, law, looping(nested=CONDITIONED, depth=3), seeds)


@longer
@pytest.mark.parametrize("order", list(ORDERS)[1:])
def test_values_of_derivatives_stay(order: str, times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        derived = ORDERS[order](doc)
        single, at = materialize(derived), random_inputs(derived, seed)
        assert_alike(run(single, at), run(derived, at), 1e-11)
        assert_plans_agree(single, at)

    hold(15 * times, law, looping(nested=CONDITIONED if "reverse" not in order and order != "vjp" else SCANS), seeds, check=10)


@longer
def test_once_is_enough(times: int) -> None:
    def law(doc: Document) -> None:
        for order in ("values", "jvp", "vjp", "forward over reverse"):
            single = materialize(ORDERS[order](doc))
            assert format_document(materialize(single), "json") == format_document(single, "json")

    hold(40 * times, law, looping())


@longer
def test_once_is_enough_of_whiles(times: int) -> None:
    def law(doc: Document) -> None:
        for order in ("values", "jvp", "forward over forward"):
            single = materialize(ORDERS[order](doc))
            assert format_document(materialize(single), "json") == format_document(single, "json")

    hold(30 * times, law, looping(nested=CONDITIONED))


def ops(doc: Document) -> list[str]:
    """The ops of a graph, each with those in the first graph that it holds."""
    return [doc.head.case(n).op for n in range(doc.head.n_nodes)]


def body(inputs: dict[str, str], make: object) -> ClosedGraph:
    sketch = Sketch(inputs)
    return ClosedGraph.of(sketch.build("", {f"y{k}": v for k, v in enumerate(make(*sketch.inputs))}))


def test_dead_results_and_carries_go_and_what_is_the_same_in_all_steps_is_computed_before() -> None:
    step = body(
        {"a": "f64[]", "unused": "f64[]", "s": "f64[]", "dead": "f64[]", "x": "f64[]"},
        lambda a, unused, s, dead, x: [s * a.sketch.apply("exp", a) + x, dead * x, s, dead],
    )
    numbers = {"length": 3, "num_consts": 2, "num_carry": 2}

    def emit(a, x):
        loop = x.sketch.apply_all("scan", a, a, a, a, x, **numbers, body=step)
        return {"s": loop[0], "ss": loop[2]}

    doc = function("f", {"a": "f64[]", "x": "f64[3]"}, emit)
    single = materialize(doc)
    assert ops(single) == ["exp", "scan"]
    scan = single.head.case(1).attrs
    assert (scan.num_consts, scan.num_carry, scan.n_xs, len(scan.body.graph.outputs)) == (1, 1, 1, 2)
    assert [c.op for c in scan.body.graph.cases.cases] == ["mul", "add"]


def test_what_is_computed_before_takes_no_name_of_a_body() -> None:
    step = body({"c1": "f64[]", "s": "f64[]"}, lambda a, s: [s * a * a.sketch.apply("exp", a)])

    def emit(a):
        return {"s": a.sketch.apply_all("scan", a, a, length=2, num_consts=1, num_carry=1, body=step)[0]}

    (scan,) = [c.attrs for c, _ in materialize(function("f", {"a": "f64[]"}, emit)).head.nodes() if c.op == "scan"]
    keys = [i.key for i in scan.body.graph.inputs]
    assert len(keys) == len(set(keys)) == 3


def test_loops_over_the_same_are_one() -> None:
    def step(op: str) -> ClosedGraph:
        return body({"s": "f64[]", "x": "f64[]"}, lambda s, x: [s * x, s.sketch.apply(op, s)])

    numbers = {"length": 3, "num_consts": 0, "num_carry": 1}

    def emit(a, x):
        one, other = (x.sketch.apply_all("scan", a, x, **numbers, body=step(op)) for op in ("sin", "cos"))
        return {"s": one[0], "sin": one[1], "cos": other[1]}

    doc = function("f", {"a": "f64[]", "x": "f64[3]"}, emit)
    assert ops(doc) == ["scan", "scan"]
    assert ops(materialize(doc)) == ["scan"]


def test_loops_there_and_back_over_the_same_are_one_each() -> None:
    step = body({"s": "f64[]", "x": "f64[]"}, lambda s, x: [s.sketch.apply("sin", s * x), s])
    numbers = {"length": 3, "num_consts": 0, "num_carry": 1}

    def emit(a, x):
        there, back = (x.sketch.apply_all("scan", a, x, **numbers, reverse=back, body=step) for back in (False, True))
        return {"y": there[1] * back[1]}

    single = materialize(ORDERS["vjp"](function("f", {"a": "f64[]", "x": "f64[3]"}, emit)))
    assert ops(single).count("scan") == 4


def test_of_a_chosen_branch_nothing_is_left_but_its_nodes() -> None:
    branches = tuple(body({"x": "f64[]"}, lambda x, op=op: [x.sketch.apply(op, x)]) for op in ("sin", "cos"))
    for number, op in ((-3, "sin"), (0, "sin"), (1, "cos"), (6, "cos")):
        sketch = Sketch({"x": "f64[]"})
        index = sketch.full(number, Sketch({"i": "i32[]"}).inputs[0].type)
        y = sketch.apply("cond", index, sketch.inputs[0], branches=branches)
        doc = document(sketch.build("f", {"y": y}))
        assert ops(materialize(doc)) == [op]
        assert np.array_equal(*[list(run(d, {i.key: 0.3 for i in d.head.inputs}).values()) for d in (doc, materialize(doc))])


def test_branches_on_the_same_values_become_one() -> None:
    def f(p: Any, x: Any) -> Any:
        a, b = tidu.cond(p, lambda x: (np.sin(x), x + 1), lambda x: (np.cos(x), x - 1), x)
        return a, b, tidu.cond(p, lambda x: x * x, lambda x: -x, x), np.exp(a)

    doc = tidu.trace(f, p="bool[]", x="f64[]")
    single = materialize(doc)
    ops = [single.cases[code].op for code in single.head.code]
    assert ops.count("cond") == 1 and "cond" in ops
    for p in (True, False):
        at = {"p": p, "x": 0.5}
        assert tidu.evaluate(single, at) == tidu.evaluate(doc, at)
