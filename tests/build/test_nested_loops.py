"""Random functions of loops and branches in one another: their values and derivatives are those of the same functions unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.tiers import examples


class Unrolled:
    """Loops by Python, and branches by np.where."""

    @staticmethod
    def scan(f, init, xs):
        carry, ys = init, []
        for k in range(xs.shape[0]):
            carry, y = f(carry, xs[k])
            ys.append(y)
        return carry, np.stack(ys)

    @staticmethod
    def fori_loop(lower, upper, f, init):
        for i in range(lower, upper):
            init = f(i, init)
        return init

    @staticmethod
    def while_loop(condition, f, init):
        """As often as the programs below run theirs."""
        for _ in range(2):
            init = f(init)
        return init

    @staticmethod
    def cond(pred, true_fun, false_fun):
        return np.where(pred, true_fun(), false_fun())


NUMBER = st.sampled_from([-0.8, 0.3, 0.7, 1.1])
Program = tuple[Any, ...]


def _larger(below: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    return st.one_of(
        st.tuples(st.sampled_from(["add", "multiply"]), below, below),
        st.tuples(st.just("sin"), below),
        st.tuples(st.sampled_from(["scan", "fori", "while", "cond"]), below, below),
    )


PROGRAM = st.recursive(
    st.one_of(st.tuples(st.just("number"), NUMBER), st.tuples(st.just("name"), st.integers(0, 5))), _larger, max_leaves=9
)
"""Of expressions, in which names count the variables of loops and functions around from the innermost one."""

ROWS = np.array([0.4, -0.9, 0.6])


def value(program: Program, names: tuple[Any, ...], loops: Any) -> Any:
    """What a program computes, with loops and branches of Python's or of tidu's."""
    kind, *parts = program
    if kind == "number":
        return parts[0]
    if kind == "name":
        return names[-1 - parts[0] % len(names)]
    if kind == "sin":
        return np.sin(value(parts[0], names, loops))
    first, second = (lambda *more, p=p: value(p, (*names, *more), loops) for p in parts)
    if kind in ("add", "multiply"):
        return np.sin(first() + second() if kind == "add" else first() * second())
    if kind == "cond":
        return loops.cond(names[0] * names[-1] > 0.1, lambda: 1.0 * first(), lambda: np.cos(second()))
    start = 1.0 * first()
    if kind == "scan":
        carry, ys = loops.scan(lambda c, x: (np.sin(second(c, x)), x * c), start, ROWS)
        return carry + np.sum(ys)
    if kind == "fori":
        return loops.fori_loop(1, 3, lambda i, c: np.sin(second(c) * i), start)
    return loops.while_loop(lambda c: c[1] < 2, lambda c: (np.cos(second(c[0]) * c[0]), c[1] + 1), (start, 0))[0]


def traced(program: Program, loops: Any) -> Any:
    return tidu.trace(lambda x, z: np.sin(value(program, (x, z), loops) * x) * z, "f64[]", "f64[]")


def same(document: Any, expected: Any, at: dict[str, float]) -> None:
    values = [tidu.evaluate(d, at) for d in (document, expected)]
    assert values[0].keys() == values[1].keys()
    for key, y in values[1].items():
        assert values[0][key] == pytest.approx(y, rel=1e-9, abs=1e-11), key


@given(program=PROGRAM, x=NUMBER, y=NUMBER)
@settings(max_examples=examples(25, check=12), deadline=None)
def test_loops_in_loops_are_as_if_unrolled(program, x, y):
    document, expected = traced(program, tidu), traced(program, Unrolled)
    at = {"x": x, "z": y}
    assert tidu.evaluate(document, at)["y"] == pytest.approx(tidu.evaluate(expected, at)["y"], rel=1e-12, abs=1e-14)
    plain = np.sin(value(program, (np.float64(x), np.float64(y)), tidu) * x) * y
    assert plain == pytest.approx(tidu.evaluate(expected, at)["y"], rel=1e-12, abs=1e-14)
    moves = {"x@1": 0.6, "z@1": -1.3, "x@2": 0.9}
    for derive in (
        lambda d: tidu.jvp(d, ["x", "z"]),
        lambda d: tidu.materialize(tidu.linearize(tidu.linearize(d, ["x", "z"]), "x")),
    ):
        same(derive(document), derive(expected), at | moves)
    if "while" not in str(program):
        for derive in (lambda d: tidu.grad(d, ["x", "z"]), lambda d: tidu.hvp(d, "x")):
            same(derive(document), derive(expected), at | moves)


def test_a_carry_times_zero_is_zero():
    """0·c of a carry that begins without a tangent is a product of two zeros."""
    graph = tidu.trace(lambda x: tidu.scan(lambda c, t: (np.sin(x) + 0.0 * c, t * c), -0.8, ROWS)[0], "f64[]")
    assert tidu.evaluate(tidu.grad(graph, "x"), x=0.3)["x@-1"] == pytest.approx(np.cos(0.3), rel=1e-14)
