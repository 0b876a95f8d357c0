"""Inputs of record types: fields in formulas and in functions, and what cannot be done with a record."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tidu_cli
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.formulas.formula import build_formula
from tidu_cli.graph.text import parse_value_type

P = "{x: f64[], y: f64[3], q: (f64[2], {a: i32[]}), t: datetime[ms][]}"
AT = {"x": 2.0, "y": [1.0, 2.0, 3.0], "q": ([4.0, 5.0], {"a": 6}), "t": 0}


def built(text: str, type_: str = P) -> Any:
    return build_formula(text, {"p": parse_value_type(type_)})


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("p.x * sum(p.y)", 12),
        ("p.q[0].T + p.q[1].a", [10, 11]),
        ("sum(p.q[-2])", 9),
        ("u = p.q; u", None),
        ("a, b = p.q; a * b.a", None),
    ],
)
def test_formulas(text: str, due: Any) -> None:
    if due is None:
        with pytest.raises(BuildError, match="take its fields"):
            built(text)
        return
    assert tidu_cli.evaluate(built(text), p=AT)["y"].tolist() == due


def test_a_field_is_taken_once() -> None:
    graph = built("p.x * p.x + p.x").head
    assert [graph.case(n).op for n in range(graph.n_nodes)] == ["field", "mul", "add"]


def test_gradients() -> None:
    gradient = tidu_cli.grad(built("sum(p.y ** 2) * p.x", "{x: f64[], y: f64[3], n: i32[]}"), "p")
    cotangent = tidu_cli.evaluate(gradient, p={"x": 2.0, "y": [1.0, 2.0, 3.0], "n": 1})["p@-1"]
    assert cotangent["x"] == 14 and cotangent["y"].tolist() == [4, 8, 12] and cotangent["n"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p", "column 1: a record, {x: f64[], y"),
        ("1 + p", "takes numbers and arrays"),
        ("p.z", "has no field 'z' (fields: x, y, q, t)"),
        ("p.xx", "has no field 'xx'; did you mean 'x'?"),
        ("p.q[2]", "(f64[2], {a: i32[]}) has no field '2' (fields: 0, 1)"),
        ("p[0]", "has no field '0'"),
        ("p.__class__", "has no field '__class__'"),
        ("exp(p.t)", "exp does not take datetime[ms]; x / np.timedelta64(1, 'h') is a number of hours"),
        ("a, b = p; a", "is not gone through; take its fields by name"),
    ],
)
def test_what_records_do_not_do(text: str, message: str) -> None:
    with pytest.raises(BuildError, match=re.escape(message)):
        built(text)


def test_functions() -> None:
    def loss(p: Any, w: Any) -> Any:
        a, inner = p.q
        return {"loss": (a * w).sum() * p["x"] + inner.a, "y": np.sin(p.y)}

    results = tidu_cli.evaluate(tidu_cli.trace(loss, p=P, w="f64[2]"), p=AT, w=[1.0, 2.0])
    assert results["loss"] == 14 * 2 + 6 and results["y"].tolist() == np.sin([1.0, 2.0, 3.0]).tolist()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda p: p, "output 'y' is a record"),
        (lambda p: p.z, "has no field 'z'"),
        (lambda p: p[0], "has no field '0'"),
        (lambda p: list(p), "is not gone through"),
        (lambda p: p * 2, "unsupported operand"),
    ],
)
def test_what_functions_cannot_do_with_records(function: Any, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        tidu_cli.trace(function, p="{x: f64[]}")
