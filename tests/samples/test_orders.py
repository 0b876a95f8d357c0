"""Derivatives of high order are as large as the mathematics demands."""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import tidu_cli
from tests.tiers import campaign
from tests.waiting import LIMIT
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.shorthands import derivative

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("orders")


@pytest.mark.parametrize("length", [1, 2, 3])
def test_graphs_have_no_node_that_no_rule_demands(orders: Any, length: int) -> None:
    sizes = [orders.sizes(length, n) for n in range(1, 7)]
    assert [several for _, several, _ in sizes] == [orders.distinct(length, n, one=False) for n in range(1, 7)]
    for n, (_, _, one) in enumerate(sizes, start=1):
        # Two products of a pair of values stay apart, if in the one the first is the tangent, and in the other the second.
        assert orders.distinct(length, n, one=True) <= one <= 1.2 * orders.distinct(length, n, one=True)


def test_growth(orders: Any) -> None:
    """3^n in n directions, for the ways to divide a set of them in three; at most n³ in one."""
    several = [orders.sizes(2, n)[1] for n in range(1, 7)]
    assert all(after < 3 * before for before, after in pairwise(several))
    one = [orders.sizes(2, n)[2] for n in (2, 4, 8)]
    assert all(after < 2**3 * before for before, after in pairwise(one))


@pytest.mark.check
def test_derivatives_by_one_number_are_merged_after_each_pass() -> None:
    """Linked alone they grow as 3^n, and order 16 of this function is more than memory holds."""
    document = tidu_cli.trace(lambda x: np.tanh(np.exp(np.sin(x))), x="f64[]")
    nodes = {}
    for n in (4, 8, 15, 30) if campaign() else (3, 6, 8, 16):
        stages, sizes, derived = derivative(document, [Key("x")], order=n).stages, [], document
        for stage in stages:
            derived = stage.transform(derived, **stage.options)
            sizes.append(sum(graph.n_nodes for graph in derived.graphs))
        assert max(sizes) < 3 * sizes[-1]
        nodes[n] = sizes[-1]
    assert all(nodes[2 * n] < 2**3 * nodes[n] for n in nodes if 2 * n in nodes)


@pytest.mark.parametrize("n", [1, 5, 12])
def test_derivatives_of_high_order_are_right(n: int) -> None:
    document = tidu_cli.trace(lambda x: np.tanh(np.exp(np.sin(x))), x="f64[]")
    (number,) = tidu_cli.evaluate(tidu_cli.derivative(document, "x", order=n), x=0.7).values()
    with mpmath.workdps(60):
        expected = mpmath.diff(lambda t: mpmath.tanh(mpmath.exp(mpmath.sin(t))), mpmath.mpf(0.7), n)
    assert number == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_what_is_counted_is_the_derivative(orders: Any, n: int) -> None:
    expressions = orders.Expressions()
    x, y = (expressions.of("variable", name) for name in "xy")
    value = expressions.of("exp", expressions.of("sin", expressions.of("mul", x, y)))
    for _ in range(n):
        value = expressions.derivative(value, 0)
    functions = {"exp": math.exp, "sin": math.sin, "cos": math.cos, "neg": lambda a: -a, "add": lambda a, b: a + b}
    functions["mul"] = lambda a, b: a * b
    at = {"x": 0.3, "y": 1.7, "dx0": 1.0}

    def evaluate(number: int) -> float:
        op, *operands = expressions.known[number]
        return at[operands[0]] if op == "variable" else functions[op](*map(evaluate, operands))

    expected = mpmath.diff(lambda t: mpmath.exp(mpmath.sin(t * mpmath.mpf("1.7"))), 0.3, n)
    assert evaluate(value) == pytest.approx(float(expected), rel=1e-8)


def test_it_prints_a_row_for_each_order() -> None:
    command = [sys.executable, BENCHMARKS / "orders.py", "--lengths", "1", "--orders", "3", "--markdown"]
    process = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in process.stdout.splitlines() if line.startswith("|")]
    assert [row[0] for row in rows[2:]] == ["1", "2", "3"]
    assert rows[4] == ["3", "45", "31", "31", "1.00", "23", "22", "1.05"]
