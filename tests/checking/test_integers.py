"""Derivatives by integers are judged by those of the same graph of floats; branches that no drawn integer chooses are said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tidu_cli as api
from tests.graphs.sketch import Value, function, key, listing, op
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.checking.numeric.twins import float_twin
from tidu_cli.graph.types import NUMERIC
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.families import elementwise, numpy_function
from tidu_cli.rules.vocabulary import PrimitiveSet

TWO = {"n": "i64[]", "m": "i64[]"}


def law(body: object, inputs: dict[str, str] = TWO, primitives: PrimitiveSet = BUILTIN, **given: int) -> object:
    doc = function("f", inputs, body)
    verdicts = check_numerically(doc, primitives, given={key(k): np.asarray(v) for k, v in given.items()} or None)
    return next((v for v in verdicts if v.law == "integers"), None)


def test_the_twin_computes_with_floats_what_integers_are_numbers_in() -> None:
    def body(n: Value, m: Value) -> Value:
        return n * m + op("div")(n, m)

    twin, _ = float_twin(function("f", TWO, body), BUILTIN)
    assert [str(i.type) for i in twin.head.inputs] == ["i64[]", "i64[]", "f64[]", "f64[]"]
    # The quotient is not the twins': it is converted.
    assert listing(twin.head) == [
        "mul(0, 1)",
        "mul(2, 3)",
        "div(0, 1)",
        "add(4, 6)",
        "convert_element_type(6)",
        "add(5, 8)",
    ]


def test_indices_stay_integers() -> None:
    doc = function("f", {"n": "i32[]", "x": "f64[3]"}, lambda n, x: op("dynamic_slice")(x, n, slice_sizes=(1,)))
    assert float_twin(doc, BUILTIN) is None


@pytest.mark.parametrize("name", ["add", "mul", "max", "rem"])
def test_right_rules_pass(name: str) -> None:
    verdict = law(op(name), n=7, m=3)
    assert verdict.ok and verdict.error is not None


def test_where_integers_wrap_there_is_no_verdict() -> None:
    assert law(op("mul"), {"n": "u8[]", "m": "u8[]"}, n=200, m=2).error is None


def test_a_wrong_rule_for_integers_is_found() -> None:
    def jvp(node: object) -> object:
        (t,), (x,) = node.tangents, node.operands
        return [t * 2.0 if x.type.dtype == "i64" else -t]

    wrong = elementwise("neg", 1, NUMERIC, jvp, kernel=numpy_function("negative"), integers="exact", formula="", summary="")
    verdict = law(op("neg"), {"n": "i64[]"}, PrimitiveSet({**BUILTIN.primitives, "neg": wrong}), n=2)
    assert not verdict.ok and verdict.at is not None


# Branches.


def chosen(compare: Any) -> Any:
    """A branch that a comparison of an integer chooses."""
    return trace(lambda x, n: api.cond(compare(n), lambda y: y * y, lambda y: np.sin(y), x), "f64[2]", "i64[]", name="f")


@pytest.mark.parametrize(
    ("compare", "branch", "value"),
    [
        (lambda n: n == 16000, "n == 16000", 16000),
        (lambda n: n != 7, "n == 7", 7),
        (lambda n: n > 3, "n > 3", 4),
        (lambda n: n <= 5, "n > 5", 6),
        (lambda n: n < 0, "n < 0", -1),
        (lambda n: n == 1, "", 0),
        (lambda n: n > 0, "", 0),
    ],
)
def test_a_branch_that_no_drawn_integer_chooses_is_said(compare: Any, branch: str, value: int) -> None:
    report = api.check(document := chosen(compare), "numeric")
    told = f"n is drawn as 0 or 1, so that the branch of {branch} is not tried; give n, such as {value}, by inputs"
    assert report.get("untried", []) == ([told] if branch else [])
    assert "untried" not in api.check(document, "numeric", inputs={"n": value})
