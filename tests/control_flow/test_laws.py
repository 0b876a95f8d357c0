"""The laws of loops and branches, on random ones in one another: they and their derivatives are what they are written out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.control_flow.laws import ORDERS, assert_alike, forward, gradient, hold, longer, run, tolerance_of
from tests.control_flow.strategies import ALL_DTYPES, COUNTED, looping
from tests.control_flow.unrolled import counted_as_scans, unrolled
from tests.graphs.interpret import free_inputs, inner, random_inputs
from tests.graphs.sketch import Sketch, document
from tests.graphs.strategies import SMOOTH, seeds
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

EXAMPLES = dict(zip(ORDERS, (60, 40, 40, 15, 15, 15, 15), strict=True))


def compared(doc: Document, plain: Document, order: str, seed: int) -> None:
    """One derivative of two documents that mean the same."""
    of_loops, of_plain = ORDERS[order](doc), ORDERS[order](plain)
    at = random_inputs(of_loops, seed)
    assert free_inputs(of_loops) == free_inputs(of_plain)
    assert_alike(run(of_loops, at), run(of_plain, at), tolerance_of(doc))


@longer
@pytest.mark.parametrize("order", ORDERS)
def test_scans_and_branches_are_what_they_are_written_out(order: str, times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        compared(doc, unrolled(doc), order, seed)

    hold(EXAMPLES[order] * times, law, looping(depth=3 if order == "values" else 2), seeds, check=10)


@longer
def test_of_single_precision_too(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        for order in ("values", "jvp", "vjp"):
            compared(doc, unrolled(doc), order, seed)

    hold(20 * times, law, looping(dtypes=ALL_DTYPES), seeds)


@longer
@pytest.mark.parametrize("order", ["values", "jvp", "forward over forward"])
def test_a_while_that_counts_is_a_scan(order: str, times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        graph = counted_as_scans(doc.head)
        compared(doc, Document((graph,), graph.cases), order, seed)
        compared(doc, unrolled(doc), order, seed)

    hold(EXAMPLES[order] // 2 * times, law, looping(nested=COUNTED), seeds)


@longer
def test_to_third_order(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        for third in (lambda d: forward(forward(gradient(d))), lambda d: gradient(gradient(gradient(d)))):
            pair = third(doc), third(unrolled(doc))
            at = random_inputs(pair[0], seed)
            assert_alike(run(pair[0], at), run(pair[1], at), 1e-9)

    hold(6 * times, law, looping(depth=1, steps=1, makers=SMOOTH, dtypes=("f64",)), seeds)


@longer
def test_transpose_is_the_adjoint_and_its_own_inverse(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        linear = forward(doc)
        turned, at = transpose(linear), random_inputs(doc, seed)
        v, w = ({i.key: random_inputs(d, seed + 1)[i.key] for i in d.head.inputs} for d in (linear, turned))
        jv, jtw = run(linear, at | v), run(turned, at | w)
        live = [o.key for o in linear.head.outputs if o.value is not None]
        left, right = sum(inner(w[k.dual()], jv[k]) for k in live), sum(inner(v[k], jtw[k.dual()]) for k in v)
        scale = 1 + sum(inner(abs(x), abs(x)) ** 0.5 for x in (*jtw.values(), *[jv[k] for k in live]))
        assert abs(left - right) <= 1e-10 * scale
        again = run(transpose(turned), at | v)
        assert_alike({k: again[k] for k in live}, {k: jv[k] for k in live}, 1e-10)

    hold(30 * times, law, looping(), seeds)


@longer
def test_linearize_is_linear(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        linear, at = forward(doc), random_inputs(doc, seed)
        u, v = ({i.key: random_inputs(linear, seed + n)[i.key] for i in linear.head.inputs} for n in (1, 2))
        ju, jv = run(linear, at | u), run(linear, at | v)
        inexact = [o.key for o in linear.head.outputs if o.type.inexact]
        combined = run(linear, at | {k: 2.5 * u[k] - 0.75 * v[k] for k in u})
        assert_alike({k: combined[k] for k in inexact}, {k: 2.5 * ju[k] - 0.75 * jv[k] for k in inexact}, 1e-11)

    hold(30 * times, law, looping(nested=COUNTED), seeds)


@pytest.mark.parametrize("order", ["values", "jvp", "forward over forward"])
def test_what_is_carried_may_depend_on_tangents_only_after_some_steps(order: str) -> None:
    names = {"a": "f64[]", "n": "i32[]", "p": "f64[]", "q": "f64[]", "r": "f64[]"}
    step, test = Sketch(names), Sketch(dict(list(names.items())[1:]))
    a, n, p, q, r = step.inputs
    body = ClosedGraph.of(step.build("", {"n": n + 1, "p": q, "q": r, "r": r * a * p + p}))
    condition = ClosedGraph.of(test.build("", {"y": test.apply("lt", test.inputs[0], 5)}))
    sketch = Sketch({"a": "f64[]", "x": "f64[]"})
    a, x = sketch.inputs
    init = [sketch.full(0, n.type), sketch.full(1, x.type), sketch.full(2, x.type), x]
    results = sketch.apply_all("while", a, *init, cond_consts=0, body_consts=1, condition=condition, body=body)
    doc = document(sketch.build("f", {"p": results[1], "r": results[3]}))
    compared(doc, unrolled(doc), order, 3)
    scans = counted_as_scans(doc.head)
    for each in ORDERS if order == "values" else [order]:
        compared(Document((scans,), scans.cases), unrolled(doc), each, 3)


def test_a_scan_in_a_branch_is_transposed_twice() -> None:
    """What the second transpose stores of the scan is computed without what it is linear in, which has no value in a rule."""

    def of(type_: str, *nodes: object) -> dict[str, object]:
        inputs = [{"key": "a", "type": type_}, {"key": "v", "type": type_}]
        return {"inputs": inputs, "nodes": nodes, "outputs": [{"key": "w", "value": 2, "type": type_}]}

    product = {"op": "mul", "inputs": [0, 1]}
    steps = {"length": 2, "num_consts": 0, "num_carry": 0, "body": of("c128[]", product)}
    branches = [of("c128[2]", {"op": "scan", "inputs": [0, 1], "attrs": steps}), of("c128[2]", product)]
    graph = of("c128[2]", {"op": "cond", "inputs": [2, 0, 1], "attrs": {"branches": branches}}) | {"name": "f"}
    graph["inputs"] += [{"key": "p", "type": "bool[]"}]  # type: ignore[operator]
    graph["outputs"] = [{"key": "w", "value": 3, "type": "c128[2]"}]
    linear = linearize(parse_document(json.dumps({"tidu": 1, "graphs": [graph]}).encode(), "f")[0], [Key("v")])
    again, at = transpose(transpose(linear)), random_inputs(linear, 3)
    for p in (False, True):
        at[Key("p")] = np.asarray(p)
        assert_alike(run(again, at), run(linear, at), 1e-14)
