"""Inputs moved along tangents: every pair of primal and tangent type, whose tangent moves what, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import tidu_cli
from tests.graphs.interpret import random_value
from tests.graphs.sketch import Value, function, op
from tests.graphs.strategies import seeds
from tests.tiers import examples
from tidu_cli.errors import EvaluationError, UnknownNameError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import parse_key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import DATETIMES, TIMES, RecordType, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.tangents import TABLE
from tidu_cli.rules.units import ratio
from tidu_cli.runtime.retraction import moved_inputs

field = op("field")
PAIRS = [
    pytest.param(primal, tangent, id=f"{primal}-{tangent}")
    for row in TABLE
    for primal in sorted(row.primals)
    for tangent in row.admitted[:: 3 if primal in TIMES else 1]
]


def same(types: dict[str, str]) -> Document:
    """Outputs that are the inputs."""
    return function("f", types, lambda *values: {f"{name}.out": value for name, value in zip(types, values, strict=True)})


def typed(array: np.ndarray, dtype: str) -> Literal:
    return Literal(TensorType(dtype, array.shape), array.astype(numpy_dtype(np, dtype)).tobytes())


@pytest.mark.parametrize(("primal", "tangent"), PAIRS)
def test_every_pair_of_types(primal: str, tangent: str) -> None:
    rng = np.random.default_rng(0)
    x = random_value(TensorType(primal, (3,)), rng)
    steps = np.array([0.0, 1.0, 2.0])
    (moved,) = tidu_cli.evaluate(same({"x": f"{primal}[3]"}), {"x": x}, moves={"x": typed(steps, tangent)}).values()
    if primal in TIMES:
        unit, other = primal.split("[")[1][:-1], tangent.split("[")[1][:-1]
        steps = steps * float(ratio(other, unit))
    if primal in DATETIMES:
        steps = np.rint(steps).astype(np.int64)
        x = x.view(moved.dtype).view(np.int64)
        moved = moved.view(np.int64)
    due = (x.astype(np.result_type(x, steps)) + steps).astype(x.dtype)
    assert moved.dtype == due.dtype
    np.testing.assert_allclose(moved.astype(complex), due.astype(complex), rtol=1e-2 if primal == "bf16" else 1e-3)


def loss(p: Value, t: Value) -> dict[str, Value]:
    x = field(p, name="x")
    return {"y": x * x, "t.out": t, "p.out": p}


RECORD = function("f", {"p": "{x: f64[], n: i32[], on: bool[]}", "t": "datetime[ms][]"}, loss)
AT = {"p": {"x": 3, "n": 5, "on": True}, "t": "2026-01-01"}


def evaluated(moves: dict[str, Any]) -> dict[str, Any]:
    results = tidu_cli.evaluate(RECORD, AT, moves=moves)
    return {"t": str(results["t.out"]), **{name: x.item() for name, x in results["p.out"].items()}, "y": results["y"].item()}


@pytest.mark.parametrize(
    ("moves", "change"),
    [
        ({}, {}),
        ({"p": {}}, {}),
        ({"p": None, "t": None}, {}),
        ({"p": {"x": 1}}, {"x": 4.0, "y": 16.0}),
        ({"p": {"x": None, "n": 1.4}}, {"n": 6}),
        ({"p": {"n": 0.6, "x": np.float32(0.5)}}, {"n": 6, "x": 3.5, "y": 12.25}),
        ({"p@-1": {"x": -1}}, {"x": 2.0, "y": 4.0}),
        ({"p@3": {"x": -1, "on": None}}, {"x": 2.0, "y": 4.0}),
        ({"t": 1000}, {"t": "2026-01-01T00:00:01.000"}),
        ({"t": np.timedelta64(2, "h")}, {"t": "2026-01-01T02:00:00.000"}),
        ({"t": np.float64(0.6)}, {"t": "2026-01-01T00:00:00.001"}),
        ({"t": {"instant": {"periods": -1}}}, {"t": "2025-12-31T23:59:59.999"}),
        ({"t": {"instant": None}}, {}),
        (
            {"t": {"instant": {"periods": Literal(TensorType("duration[h]"), np.float64(2).tobytes())}}},
            {"t": "2026-01-01T02:00:00.000"},
        ),
        ({"t": Literal(TensorType("duration[D]"), np.float64(1).tobytes())}, {"t": "2026-01-02T00:00:00.000"}),
    ],
)
def test_moves(moves: dict[str, Any], change: dict[str, Any]) -> None:
    still = {"t": "2026-01-01T00:00:00.000", "x": 3.0, "n": 5, "on": True, "y": 9.0}
    assert evaluated(moves) == still | change


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ({"p": {"on": True}}, "move of p.on: bool[] admits no tangent but zero"),
        ({"p": {"z": 1}}, "move of p.z: {x: f64[], n: i32[], on: bool[]} has no such field"),
        ({"p": 1}, "move of p: expected {x: f64[], n: i32[], on: bool[]}, an object of its fields, got a single number"),
        ({"p": {"x": [1]}}, "move of p.x: expected f64[], got a list of shape [1]"),
        ({"p": {"x": np.complex128(1)}}, "move of p.x: expected f64[], got c128[]"),
        ({"p": {"n": Literal(TensorType("f16"), bytes(2))}}, "move of p.n: i32[] admits no tangent f16[]; choose f32[] or f64[]"),
        ({"t": "2026"}, "move of t: expected duration[ms][], but '2026' is not a number"),
        ({"t": np.timedelta64(1, "M")}, "move of t: datetime[ms][] admits no tangent timedelta64[M][]; choose duration[ms][]"),
        ({"t": {"periods": 1}}, "move of t.periods: {instant: {periods: f64[]}} has no such field (fields: instant)"),
        ({"t": {"instant": {"periods": [1]}}}, "move of t.instant.periods: expected f64[], got a list of shape [1]"),
        ({"t": 1, "t@-1": 1}, "both 't' and 't@-1' move the input 't'; give one of them"),
    ],
)
def test_moves_that_are_refused(moves: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(message)):
        evaluated(moves)


def test_a_key_of_no_input_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no graph has an input 'q'"):
        evaluated({"q": 1})
    with pytest.raises(UnknownNameError, match="no graph has an input 'p@-1'"):
        evaluated({"p@-1@2": 1})


def test_whose_tangent_moves_what() -> None:
    """A tangent that is an input moves as such; else it moves what it is a tangent of."""
    x, tangent, second = map(parse_key, ("x", "x@1", "x@1@2"))
    assert moved_inputs({x, tangent}, {tangent: 1}) == {tangent: 1}
    assert moved_inputs({x}, {tangent: 1}) == {x: 1}
    assert moved_inputs({x, tangent}, {second: 1, x: 2}) == {tangent: 1, x: 2}
    assert moved_inputs({x}, {second: 1}) == {}


def test_gradient_descent() -> None:
    """The output of a vjp whose cotangent is minus the step moves the input: Newton's step here, to the minimum at once."""
    square = function(
        "f", {"p": "{x: f64[2]}"}, lambda p: p.sketch.apply("reduce_sum", field(p, name="x") * field(p, name="x"), axes=(0,))
    )
    at = {"p": {"x": [3.0, -4.0]}}
    step = tidu_cli.evaluate(tidu_cli.vjp(square, "p"), {**at, "y@-1": -0.5})
    assert tidu_cli.evaluate(square, at, moves=step)["y"] == 0
    assert tidu_cli.evaluate(square, at)["y"] == 25


@settings(max_examples=examples(60))
@given(seeds)
def test_moving_along_the_difference_is_the_way_there(seed: int) -> None:
    types = {"e": "{at: datetime[s][2], n: i64[], p: (f64[], c64[2], duration[h][])}"}
    difference = function("d", types | {"o": types["e"]}, lambda e, o: e.sketch.apply("difference", o, e))
    rng = np.random.default_rng(seed)
    record = difference.head.inputs[0].type
    assert isinstance(record, RecordType)
    e, o = (outside(record, random_value(record, rng)) for _ in range(2))
    along = tidu_cli.evaluate(difference, e=e, o=o)["y"]
    (moved,) = tidu_cli.evaluate(same(types), e=e, moves={"e": along}).values()
    assert moved["at"].tolist() == o["at"].view("M8[s]").tolist() and moved["n"] == o["n"]
    for ours, theirs in zip(moved["p"], o["p"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def outside(type_: RecordType, value: Any) -> Any:
    parts = {name: outside(t, x) if isinstance(t, RecordType) else x for (name, t), x in zip(type_.fields, value, strict=True)}
    return tuple(parts.values()) if type_.is_tuple else parts
