"""Depth and sharing: nothing recurses, and what is emitted grows with the number of nodes, not of paths."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import Sketch, document, function, key, op
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.identity import digests
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

X = key("x")
F64 = TensorType("f64")


def n_nodes(doc: Document) -> list[int]:
    return [g.n_nodes for g in doc.graphs]


def chain(length: int, *ops: str) -> Document:
    """x, then these ops of one operand in turn."""
    builder = GraphBuilder(CaseTable(), [Input(X, F64)])
    codes = [builder.cases.intern(BUILTIN.case(o, BUILTIN.parse_attrs(o, {}), None, [F64])) for o in ops]
    value = 0
    for k in range(length):
        value = builder.append(codes[k % len(codes)], [value])
    return document(builder.build("f", [Output(key("y"), value, F64)]))


@pytest.fixture(autouse=True)
def shallow() -> object:
    """Little room for recursion, so that any at all is seen."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.check
def test_a_chain_of_100_000_nodes_through_every_transform() -> None:
    n = 100_000
    f = chain(n, "sin", "exp")
    forward = linearize(f, [X])
    assert n_nodes(forward) == [n, n // 2, n], "a cosine for every sine, and a product for every node"
    back = transpose(forward)
    assert n_nodes(back) == n_nodes(forward)
    second = linearize(back, [X])
    # Each sine adds -sin x and its product to x's tangent, each factor of the reverse product its own.
    assert n_nodes(second)[:3] == n_nodes(back)
    assert sum(n_nodes(second)) <= 10 * n
    assert materialize(second).head.n_nodes <= sum(n_nodes(second))
    linked = resolve([detach(back, 1), f])
    assert sorted(n_nodes(linked)) == sorted(n_nodes(back))
    assert not linked.detached


def test_the_derivative_of_a_long_chain_is_right() -> None:
    back = transpose(linearize(chain(300, "sin", "neg"), [X]))
    x, slope = 0.5, 1.0
    for k in range(300):
        x, slope = (np.sin(x), slope * np.cos(x)) if k % 2 == 0 else (-x, -slope)
    assert evaluate(back, {X: 0.5, key("y@-1"): 1.0})[key("x@-1")] == pytest.approx(slope, rel=1e-12)


def doublings(in_each: int, op_: str = "add") -> Document:
    """x doubled (or squared) `in_each` times, and as often again in a second graph that refers to the first."""
    s = Sketch({"x": "f64[]"})
    value = s.inputs[0]
    for _ in range(in_each):
        value = s.apply(op_, value, value)
    t = Sketch({}, cases=s.builder.cases, number=1)
    again = value
    for _ in range(in_each):
        again = t.apply(op_, again, again)
    return document(s.build("f", {"u": value}), t.build("g", {"y": again}))


def test_sixty_doublings_across_two_graphs_have_2_to_the_60_paths_and_60_nodes() -> None:
    doc = doublings(30)
    assert n_nodes(doc) == [30, 30]
    forward = linearize(doc, [X])
    assert n_nodes(forward) == [30, 30, 60]
    back = transpose(forward)
    assert n_nodes(back) == [30, 30, 60]
    assert evaluate(forward, {X: 1.0, key("x@1"): 1.0}) == {key("y@1"): 2.0**60}
    assert evaluate(back, {X: 1.0, key("y@-1"): 1.0}) == {key("x@-1"): 2.0**60}
    second = linearize(back, [X, key("y@-1")])
    assert n_nodes(second) == [30, 30, 60, 60]
    for d in (doc, forward, back, second):
        assert n_nodes(resolve([d])) == n_nodes(d)
        assert n_nodes(resolve([detach(d, k) for k in range(len(d.graphs))])) == n_nodes(d)
        assert n_nodes(materialize(d)) == [60]
        assert len(digests(d)[-1]) == d.head.n_values


def test_sixty_squarings_grow_linearly_at_every_order() -> None:
    """x^(2^k) by squaring: sharing at every step, and derivatives that are not constant."""
    counts = {}
    for half in (10, 20, 30):
        doc = doublings(half, "mul")
        first = linearize(doc, [X])
        second = linearize(transpose(first), [X])
        third = linearize(second, [X])
        counts[half] = [sum(n_nodes(d)) for d in (doc, first, second, third)] + [materialize(third).head.n_nodes]
    steps = [np.subtract(counts[20], counts[10]), np.subtract(counts[30], counts[20])]
    assert list(steps[0]) == list(steps[1]), counts


def test_wide_sharing_accumulates_one_contribution_per_use() -> None:
    n = 2000
    mul = op("mul")

    def body(x: object) -> object:
        total = x
        for _ in range(n):
            total = mul(total, x)
        return total

    back = transpose(linearize(function("f", {"x": "f64[]"}, body), [X]))
    ops = [back.head.case(k).op for k in range(back.head.n_nodes)]
    assert (ops.count("mul"), ops.count("add")) == (2 * n, n)
