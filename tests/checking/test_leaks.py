"""NaN and infinity do not leak: from branches that are not taken, and from poles that no tangent reaches.

A zero tangent is structural: no node is emitted for it, so that 0 · ∞ does not arise. Where a branch is not taken, its tangent
is dropped by a selection and not by a product with 0; what the branch itself makes of 0 · ∞ is another matter, and the reason why
users mask the input of the branch and not only its result, in tidu as in JAX.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs.sketch import Value, function, op
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.plans.program import compile_graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

x, y = Key("x"), Key("y")
cos, exp, gt, log, rsqrt, select_n, sin, sqrt, stop_gradient = map(
    op, ("cos", "exp", "gt", "log", "rsqrt", "select_n", "sin", "sqrt", "stop_gradient")
)
power, maximum, div = op("pow"), op("max"), op("div")


def run(document: Document, **values: float) -> list[float | None]:
    """The head's outputs at these inputs; None for those that are structural zeros."""
    outputs = document.head.outputs
    program = compile_graph(materialize(document).head, BUILTIN)
    given = {i.key: np.asarray(values[name_of(i.key)]) for i in program.inputs}
    with np.errstate(all="ignore"):
        results = program.run(given)
    return [None if o.value is None else float(v) for o, v in zip(outputs, results, strict=True)]


def name_of(key: Key) -> str:
    """A key as a Python name: `x@1` as x_1, `x@-1` as x_m1."""
    return str(key).replace("@", "_").replace("-", "m")


def derivatives(body: Callable[..., Value], wrt: list[Key] | None = None, **at: float) -> dict[str, list[float | None]]:
    """First and second derivatives of a function of x (and y), forward and reverse."""
    document = function("f", dict.fromkeys(at, "f64[]"), lambda *values: {"out": body(*values)})
    wrt = wrt or [x]
    seeds = {f"{key}_{p}": 1.0 for key in wrt for p in (1, 2)} | {"out_m1": 1.0}
    forward = linearize(document, wrt)
    reverse = transpose(forward)
    return {
        "value": run(document, **at),
        "forward": run(forward, **at, **seeds),
        "reverse": run(reverse, **at, **seeds),
        "forward over forward": run(linearize(forward, wrt), **at, **seeds),
        "forward over reverse": run(linearize(reverse, wrt), **at, **seeds),
    }


FIRST = ("forward", "reverse")
SECOND = ("forward over forward", "forward over reverse")

MASKED = {  # functions with their input masked, and where x is such that they are not taken
    "sqrt": (lambda v: sqrt(safe(v)), (-1.0, 0.0)),
    "log": (lambda v: log(safe(v)), (-1.0, 0.0)),
    "rsqrt": (lambda v: rsqrt(safe(v)), (-1.0, 0.0)),
    "div": (lambda v: div(1.0, safe(v)), (0.0, -0.0)),
    "pow": (lambda v: power(safe(v), v.sketch.full(0.5, v.type)), (-1.0, 0.0)),
    "exp": (lambda v: exp(1000.0 * safe(v)), (-1.0, -math.inf)),
}  # fmt: skip


def safe(v: Value) -> Value:
    """v where it is positive, and 1 elsewhere."""
    return select_n(gt(v, 0.0), v.sketch.full(1.0, v.type), v)


@pytest.mark.parametrize("name", MASKED)
def test_a_branch_whose_input_is_masked_gives_zeros(name: str) -> None:
    branch, points = MASKED[name]
    for point in points:
        # Where x is not positive the function is 7.
        by_order = derivatives(lambda v: select_n(gt(v, 0.0), v.sketch.full(7.0, v.type), branch(v)), x=point)
        assert by_order.pop("value") == [7.0]
        assert by_order == {order: [0.0] for order in (*FIRST, *SECOND)}, point


@pytest.mark.parametrize("name", MASKED)
def test_a_branch_that_is_taken_has_its_derivatives(name: str) -> None:
    branch, _ = MASKED[name]
    by_order = derivatives(lambda v: select_n(gt(v, 0.0), v.sketch.full(7.0, v.type), branch(v)), x=0.002)
    alone = derivatives(branch, x=0.002)
    assert by_order == alone
    assert all(value and math.isfinite(value) for order in (*FIRST, *SECOND) for value in alone[order])


@pytest.mark.parametrize(("name", "branch"), [("sqrt", sqrt), ("log", log)])
def test_a_branch_that_is_not_taken_keeps_its_nan_out_of_values_and_tangents(name: str, branch: Callable[[Value], Value]) -> None:
    """Only the result is masked: forward mode selects, so NaN stays where it is; and where nothing is infinite, so does reverse."""
    by_order = derivatives(lambda v: select_n(gt(v, 0.0), v.sketch.full(7.0, v.type), branch(v)), x=-1.0)
    assert by_order["value"] == [7.0]
    assert by_order["forward"] == [0.0] and by_order["forward over forward"] == [0.0]
    # log has the finite derivative 1/x there, which the cotangent 0 makes 0; sqrt has NaN, and 0 · NaN is NaN, as in JAX.
    assert by_order["reverse"] == ([0.0] if name == "log" else [pytest.approx(math.nan, nan_ok=True)])


@pytest.mark.parametrize(
    "function_of_pole", [sqrt, log, rsqrt, lambda v: div(1.0, v), lambda v: power(v, v.sketch.full(0.5, v.type))]
)
def test_a_pole_that_no_tangent_reaches(function_of_pole: Callable[[Value], Value]) -> None:
    """The derivative by x of g(y) x at a pole of g's derivative: no tangent goes to y, so that its rule is not even run."""
    by_order = derivatives(lambda u, v: u * v.sketch.full(2.0, v.type) + stop_gradient(function_of_pole(v)), x=3.0, y=0.0)
    assert {order: by_order[order] for order in FIRST} == {"forward": [2.0], "reverse": [2.0]}
    assert {order: by_order[order] for order in SECOND} == {order: [None] for order in SECOND}
    with_y = derivatives(lambda u, v: u * u + function_of_pole(v), x=3.0, y=0.0)
    assert [with_y[order] for order in (*FIRST, *SECOND)] == [[6.0], [6.0], [2.0], [2.0]]


def test_a_pole_that_a_tangent_reaches_does_show() -> None:
    by_order = derivatives(lambda u, v: u * u + sqrt(v), wrt=[x, y], x=3.0, y=0.0)
    assert by_order["forward"] == [math.inf]
    assert by_order["reverse"] == [6.0, math.inf]


def test_a_zero_that_a_rule_gives_is_structural_further_on() -> None:
    """The tangent of sign(x) is zero, so that the pole of sqrt at 0 is never multiplied by it."""
    by_order = derivatives(lambda v: sqrt(op("floor")(v)) + v, x=0.25)
    assert [by_order[order] for order in FIRST] == [[1.0], [1.0]]
    assert [by_order[order] for order in SECOND] == [[None], [None]]


def test_max_does_not_leak_from_the_operand_that_loses() -> None:
    by_order = derivatives(lambda v: maximum(v, op("min")(sqrt(safe(v)), v.sketch.full(-5.0, v.type))), x=0.0)
    assert [by_order[order] for order in FIRST] == [[1.0], [1.0]]
    assert all(value in ([0.0], [None]) for value in (by_order[order] for order in SECOND))
