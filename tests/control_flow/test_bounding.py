"""Loops with a condition as loops of a known number of steps: values, derivatives, and too few steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tidu_cli as api
from tests.control_flow.laws import assert_alike, hold, longer, run, tolerance_of
from tests.control_flow.strategies import CONDITIONED, looping
from tests.graphs.interpret import random_inputs
from tests.graphs.strategies import seeds
from tidu_cli.errors import MissingRuleError, TransformError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.graph import Document

STEPS = 12
"""More than loops of `looping` take."""


@pytest.fixture(scope="module", autouse=True)
def by_numpy() -> Iterator[None]:
    """`auto` would take XLA for loops that may be long, and processes in which JAX runs cannot fork."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDU_ENGINE", "numpy")
        yield


def ops(doc: Document) -> set[str]:
    return {case.op for case in cases_within(doc.head.case(node) for node in range(doc.head.n_nodes))}


@longer
def test_bounded_loops_have_the_same_values_and_tangents(times: int) -> None:
    def law(doc: Document, seed: int) -> None:
        doc = api.materialize(doc)
        bounded = api.bound_loops(doc, STEPS)
        assert "while" not in ops(bounded)
        at = random_inputs(doc, seed)
        assert_alike(run(bounded, at), run(doc, at), tolerance_of(doc))
        wrt = [i.key for i in doc.head.inputs if i.type.inexact]  # type: ignore[union-attr]
        if wrt:
            pair = [api.jvp(d, wrt) for d in (doc, bounded)]
            at = random_inputs(pair[0], seed)
            assert_alike(run(pair[1], at), run(pair[0], at), tolerance_of(doc))

    hold(40 * times, law, looping(nested=CONDITIONED, steps=3), seeds, check=10)


def halved(x: Any) -> Any:
    """x / 2 / 2 … until it is below 1, and how often that was."""
    return api.while_loop(lambda s: abs(s[0]) >= 1, lambda s: (s[0] / 2, s[1] + 1), (x, 0))


def test_reverse_mode_of_any_order() -> None:
    doc = api.bound_loops(api.trace(lambda x: halved(x)[0] ** 3, "f64[]"), 8)
    for derived, due in ((api.grad(doc, "x"), 3 * 11**2 / 4096), (api.grad(api.grad(doc, "x"), "x"), 6 * 11 / 4096)):
        (value,) = api.evaluate(derived, {"x": 11.0}).values()
        assert abs(value - due) <= 1e-15


@pytest.mark.parametrize("x", [3.0, 100.0])
def test_too_few_steps_are_seen(x: float) -> None:
    """3 takes two steps, 100 takes seven: NaN, also of derivatives in both modes, and no number of steps that might be one."""
    doc = api.bound_loops(api.trace(halved, "f64[]"), 4)
    enough = x == 3
    values = api.evaluate(doc, {"x": x})
    assert np.isnan(values["y.0"]) != enough
    assert values["y.1"] == (2 if enough else np.iinfo(np.int64).min)
    derivatives = api.grad(doc, "x", "y.0"), api.jvp(doc, "x", "y.0"), *[api.derivative(doc, "x", "y.0", order=k) for k in (2, 3)]
    forward = api.bound_loops(api.jvp(api.trace(halved, "f64[]"), "x", "y.0"), 4)  # whose loop carries tangents
    assert parse_document(format_document(forward, "json"), "forward")[0].head.n_nodes  # which is still linear in tangents
    for derived in (*derivatives, forward):
        given = {str(i.key): x if i.key.name == "x" and not i.key.path else 1.0 for i in derived.head.inputs}
        (value,) = api.evaluate(derived, given).values()
        assert np.isnan(value) != enough


def test_what_is_left_alone() -> None:
    doc = api.trace(lambda x: api.root(lambda y: y * y - x, 1.0, lambda f, y: api.while_loop(lambda y: abs(f(y)) > 1e-12, lambda y:
                    (y + x / y) / 2, y)), "f64[]")  # fmt: skip
    assert "while" in ops(api.bound_loops(doc, 2)) and abs(api.evaluate(api.bound_loops(doc, 2), {"x": 9.0})["y"] - 3) < 1e-9
    once = api.trace(lambda x: x * 2, "f64[]")
    assert api.bound_loops(once, 2).head.n_nodes == once.head.n_nodes
    with pytest.raises(TransformError, match="materialize"):
        api.bound_loops(api.linearize(doc, "x"), 2)


def test_a_jacobian_goes_forward_where_reverse_cannot() -> None:
    """Of fewer outputs than inputs it would go by rows."""

    def doubled(x: Any) -> Any:
        return api.while_loop(lambda s: s[0] < 100, lambda s: (2 * s[0] + s[1].sum() ** 2, s[1]), (x[0] ** 2 + 1, x))[0]

    document = api.trace(doubled, x="f64[3]")
    (values,) = api.evaluate(api.jacobian(document, wrt="x"), {"x": [1.0, 2.0, 3.0]}).values()
    assert values.tolist() == [8 * 1 + 36, 36, 36]  # two steps: 4 (x0² + 1) + 3 (sum x)²
    with pytest.raises(MissingRuleError, match="has no transpose"):
        api.jacobian(document, wrt="x", reverse=True)
