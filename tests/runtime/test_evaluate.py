"""Evaluation for users: what is given is checked, and every refusal names the key, both types and the way out."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.graphs import Sketch
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import parse_type
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.runtime.inputs import input_array
from tidu_cli.runtime.program import compile_graph

X = Key("x")


def test_evaluates_a_graph_or_a_program():
    s = Sketch(x="f64[]")
    graph = s.graph(y=s.apply("mul", s.apply("add", 0, 0), 0))
    assert evaluate(graph, {X: 3}) == evaluate(compile_graph(graph), {X: np.array(3.0)}) == {Key("y"): 18.0}


def test_all_missing_inputs_are_told_at_once():
    s = Sketch(**{"x": "f64[]", "unused": "f64[]", "a": "f64[]", "y@-1": "f64[3]"})
    graph = s.graph(u=s.apply("add", 0, 2), v=s.apply("neg", 3))
    expected = "missing inputs: x: f64[], y@-1: f64[3]; give them with --set KEY=VALUE or --inputs FILE"
    with pytest.raises(EvaluationError, match=re.escape(expected)):
        evaluate(graph, {Key("a"): 1.0, Key("more"): 2.0})
    assert evaluate(graph, {parse_key("y@-1"): [1, 2, 3]}, outputs=[1])[Key("v")].tolist() == [-1, -2, -3]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("f64[]", 3), ("f64[]", 2.5), ("f64[]", "NaN"), ("f64[2]", [1, "-Infinity"]), ("f32[]", 0.1), ("i8[2]", [-128, 127]),
        ("u64[]", 2**64 - 1), ("bool[2]", [True, False]), ("c128[2]", [1 + 2j, 3]), ("c64[]", 1j), ("bf16[]", 1.5),
        ("f64[2,0]", [[], []]), ("f64[0,3]", []), ("f64[2,1,2]", [[[1, 2]], [[3, 4]]]),
    ],
)  # fmt: skip
def test_untyped_values_are_converted(type_, value):
    declared = parse_type(type_)
    found = input_array("input x", declared, value)
    assert found.shape == declared.shape
    plain = [float(v) if isinstance(v, str) else v for v in np.array(value, object).ravel().tolist()]
    np.testing.assert_array_equal(found.ravel(), np.array(plain).astype(found.dtype))


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("i32[]", 3.5, "expected i32[], but 3.5 is not an integer"),
        ("i32[]", 3.0, "3.0 is not an integer"),
        ("i8[]", 128, "out of range"),
        ("u8[]", -1, "out of range"),
        ("f64[]", True, "True is not a number"),
        ("bool[]", 1, "1 is not a bool"),
        ("f64[]", 1j, "is not a number"),
        ("f64[]", 10**400, "out of range"),
        ("f16[]", 1e6, "1000000.0 is out of its range"),
        ("c64[2]", [1, 1e300j], "out of its range"),
        ("f64[]", "three", "'three' is not a number"),
        ("f64[]", None, "got null"),
        ("f64[3]", 1.0, "expected f64[3], got a single number"),
        ("f64[]", [1.0], "expected f64[], got a list of shape [1]"),
        ("f64[2,2]", [1.0, 2.0], "got a list of shape [2]"),
        ("f64[2,2]", [[1.0, 2.0], [3.0]], "got a ragged list, whose rows differ"),
        ("f64[2]", [1.0, [3.0]], "got a ragged list, of numbers beside lists"),
        ("f64[2]", [[1.0], [2.0]], "got a list of shape [2,1]"),
    ],
)
def test_untyped_values_that_do_not_fit(type_, value, message):
    with pytest.raises(EvaluationError, match=re.escape(message)) as caught:
        input_array("input x@1", parse_type(type_), value)
    assert str(caught.value).startswith("input x@1: expected")


@pytest.mark.parametrize(
    ("type_", "value", "given"),
    [
        ("f64[]", np.float32(1), "f32[]"),
        ("f64[3]", np.zeros(2), "f64[2]"),
        ("f64[3]", np.zeros(()), "f64[]"),
        ("i32[2]", np.zeros(2, np.int64), "i64[2]"),
        ("f32[]", np.zeros((), ml_dtypes.bfloat16), "bf16[]"),
        ("f64[]", Literal(parse_type("f32[]"), bytes(4)), "f32[]"),
        ("f64[]", np.array("x"), "str32[]"),
        ("f64[]", np.zeros((), "M8[s]"), "datetime64[s][]"),
    ],
)
def test_typed_values_must_have_exactly_the_declared_type(type_, value, given):
    with pytest.raises(EvaluationError, match=re.escape(f"input x: expected {type_}, got {given}; give exactly that type")):
        input_array("input x", parse_type(type_), value)


def test_typed_values_pass():
    assert input_array("input x", parse_type("f64[2]"), np.array([1.0, math.pi], ">f8")).tolist() == [1, math.pi]
    stored = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    assert input_array("input x", parse_type("bf16[2]"), stored.view("V2")).tobytes() == stored.tobytes()
    assert input_array("input x", parse_type("u8[3]"), Literal(parse_type("u8[3]"), b"abc")).tolist() == [97, 98, 99]
