"""Evaluation for users: what is given is checked, and every refusal names the key, both types and the way out."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.runtime.graphs import Sketch
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import TensorType, parse_type, real_dtype
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.runtime.inputs import input_array
from tidu_cli.runtime.plans.program import compile_graph

X = Key("x")


def test_evaluates_a_graph_or_a_program():
    s = Sketch(x="f64[]")
    graph = s.graph(y=s.apply("mul", s.apply("add", 0, 0), 0))
    assert evaluate(graph, {X: 3}) == evaluate(compile_graph(graph), {X: np.array(3.0)}) == {Key("y"): 18.0}


def test_all_missing_inputs_are_told_at_once():
    s = Sketch(**{"x": "f64[]", "unused": "f64[]", "a": "f64[]", "y@-1": "f64[3]"})
    graph = s.graph(u=s.apply("add", 0, 2), v=s.apply("neg", 3))
    expected = "missing inputs: x: f64[], y@-1: f64[3]; give them with {'x': ...}"
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
    array = input_array("input x", declared, value)
    assert array.shape == declared.shape
    plain = [float(v) if isinstance(v, str) else v for v in np.array(value, object).ravel().tolist()]
    np.testing.assert_array_equal(array.ravel(), np.array(plain).astype(array.dtype))


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("i32[]", 3.5, "expected i32[], but 3.5 is not an integer"),
        ("i32[]", 3.0, "3.0 is not an integer"),
        ("i8[]", 128, "out of range"),
        ("u8[]", -1, "out of range"),
        ("f64[]", True, "True is not a number"),
        ("bool[]", 1, "1 is not a bool"),
        ("f64[]", 1j, "1j is complex; give a real number"),
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
        ("f64[2]", np.zeros(3, np.int32), "i32[3]"),
        ("f64[3]", np.zeros(2), "f64[2]"),
        ("f64[3]", np.zeros(()), "f64[]"),
        ("f64[]", np.array("x"), "str32[]"),
        ("f64[]", np.zeros((), "M8[s]"), "datetime64[s][]"),
    ],
)
def test_typed_values_must_have_the_declared_shape_and_be_numbers(type_, value, given):
    with pytest.raises(EvaluationError, match=re.escape(f"input x: expected {type_}, got {given}; give exactly that type")):
        input_array("input x", parse_type(type_), value)


INTEGERS_BY_RANGE = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
UNCHANGED = "got {}, which is not converted unasked, though no number in it would change; convert it, if that is meant: .astype("


@pytest.mark.parametrize(
    ("type_", "value", "message"),
    [
        ("f32[]", np.float64(1), UNCHANGED.format("f64[]") + "'float32')"),
        (
            "f32[]",
            np.float64(0.1),
            "got f64[], and 0.1 would become 0.10000000149011612; convert it, if that",
        ),
        ("f32[2,2]", np.array([[1, 2], [1e300, 0.1]]), "got f64[2,2], and 1e+300 at [1,0] would become inf; convert it"),
        ("f32[2]", np.array([np.nan, -np.inf]), UNCHANGED.format("f64[2]")),
        ("f16[]", np.float32(1.0001), "got f32[], and 1.0001 would become 1.0;"),
        ("f16[]", np.zeros((), ml_dtypes.bfloat16), UNCHANGED.format("bf16[]") + "'float16')"),
        ("f64[]", np.complex64(1 + 2j), "got c64[], and (1+2j) has an imaginary part; take its real part, if that is meant: .real"),
        (
            "f64[2]",
            np.zeros(2, complex),
            "got c128[2], which is not converted unasked, though no number",
        ),
        ("c64[]", np.float64(0.1), "got f64[], and 0.1 would become (0.10000000149011612+0j)"),
        ("f64[]", np.bool_(True), UNCHANGED.format("bool[]") + "'float64')"),
        ("i32[2]", np.array([1, 2**31]), "got i64[2], and 2147483648 at [1] would become -2147483648; convert it"),
        ("u8[]", np.int8(-1), "got i8[], and -1 would become 255"),
        ("i32[]", np.float64(1.5), "got f64[], and 1.5 would become 1;"),
        ("i32[]", np.float64(2), UNCHANGED.format("f64[]") + "'int32')"),
        ("bool[2]", np.array([1, 2]), "got i64[2], and 2 at [1] would become True"),
        ("f32[]", Literal(parse_type("f64[]"), np.float64(0.1).tobytes()), "got f64[], and 0.1 would become 0.10000000149011612"),
    ],
)
def test_what_would_change_in_a_narrower_type_is_named_with_the_way_out(type_, value, message):
    with pytest.raises(EvaluationError, match=re.escape(f"input x: expected {type_}, {message}")) as caught:
        input_array("input x", parse_type(type_), value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("given", INTEGERS_BY_RANGE)
@pytest.mark.parametrize("target", INTEGERS_BY_RANGE)
def test_integers_are_taken_for_those_that_have_all_of_them(given, target):
    least, greatest = np.iinfo(numpy_dtype(np, given)).min, np.iinfo(numpy_dtype(np, given)).max
    value = np.array([least, greatest], numpy_dtype(np, given))
    bounds = np.iinfo(numpy_dtype(np, target))
    if bounds.min <= least and greatest <= bounds.max:
        assert input_array("input x", parse_type(f"{target}[2]"), value).tolist() == [least, greatest]
    else:
        with pytest.raises(EvaluationError, match="would become"):
            input_array("input x", parse_type(f"{target}[2]"), value)


@given(st.data())
def test_integers_are_taken_for_narrower_ones_just_where_all_fit(data):
    given_dtype, target = (data.draw(st.sampled_from(INTEGERS_BY_RANGE)) for _ in range(2))
    bounds, own = (np.iinfo(numpy_dtype(np, dtype)) for dtype in (target, given_dtype))
    edges = [n for b in (bounds.min, bounds.max) for n in (b - 1, b, b + 1) if own.min <= n <= own.max]
    numbers = st.sampled_from([own.min, own.max, *edges]) | st.integers(int(own.min), int(own.max))
    value = np.array(data.draw(st.lists(numbers, max_size=4)), numpy_dtype(np, given_dtype))
    type_ = parse_type(f"{target}[{value.size}]")
    outside = [n for n in value.tolist() if not bounds.min <= n <= bounds.max]
    if not outside:
        array = input_array("input x", type_, value)
        assert array.dtype == numpy_dtype(np, target) and array.tolist() == value.tolist()
    else:
        with pytest.raises(EvaluationError, match=rf"got {given_dtype}.*, and {outside[0]} at \[\d+\] would become"):
            input_array("input x", type_, value)


INTEGER_TYPES = [np.dtype(f"{kind}{8 * size}") for kind in ("int", "uint") for size in (1, 2, 4, 8)]


@given(
    st.sampled_from(INTEGER_TYPES).flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=2))),
    st.sampled_from(["f16", "bf16", "f32", "f64", "c64", "c128"]),
    st.booleans(),
)
def test_integers_are_taken_for_floats_just_where_no_digit_is_lost(integers, dtype, as_literal):
    type_ = parse_type(f"{dtype}[{','.join(map(str, integers.shape))}]")
    given_type = TensorType(dtype_name(integers.dtype), integers.shape)
    value = Literal(given_type, integers.tobytes()) if as_literal else integers
    target, part = numpy_dtype(np, dtype), numpy_dtype(np, real_dtype(dtype)).type
    with np.errstate(over="ignore"):
        exact = [np.isfinite(part(float(n))) and int(float(part(float(n)))) == n for n in map(int, integers.ravel())]
    if all(exact):
        array = input_array("input x", type_, value)
        assert array.dtype == target and array.shape == integers.shape
        assert [int(float(n.real)) for n in array.ravel()] == integers.ravel().tolist()
    else:
        lost = integers.ravel().tolist()[exact.index(False)]
        message = f"input x: expected {type_}, got {given_type}, and {lost} would be rounded to {real_dtype(dtype)}"
        with pytest.raises(EvaluationError, match=f"^{re.escape(message)}$"):
            input_array("input x", type_, value)


@pytest.mark.parametrize("n", [2**53, 2**53 + 2, 2**63, -(2**63), 2**64 - 2048])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_integers_about_what_f64_can_hold(n, off):
    n += off
    if not -(2**63) <= n < 2**64:
        return
    value = np.array(n, np.int64 if n < 2**63 else np.uint64)
    if int(float(n)) == n:
        assert int(input_array("input x", parse_type("f64[]"), value)) == n
    else:
        with pytest.raises(EvaluationError, match=f"and {n} would be rounded to f64"):
            input_array("input x", parse_type("f64[]"), value)


@pytest.mark.parametrize(
    ("given_type", "wider"),
    [("f16", "f32"), ("bf16", "f64"), ("f32", "f64"), ("f32", "c64"), ("f64", "c128"), ("c64", "c128"), ("f16", "c64")],
)
def test_narrower_floats_are_taken_for_wider_ones(given_type, wider):
    values = np.array([1 / 3, -0.0, np.inf, np.nan]).astype(numpy_dtype(np, given_type))
    array = input_array("input x", parse_type(f"{wider}[4]"), values)
    assert array.dtype == numpy_dtype(np, wider)
    np.testing.assert_array_equal(array, values.astype(array.dtype))
    assert np.signbit(array[1].real)


def test_typed_values_pass():
    assert input_array("input x", parse_type("f64[2]"), np.array([1.0, math.pi], ">f8")).tolist() == [1, math.pi]
    stored = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    assert input_array("input x", parse_type("bf16[2]"), stored.view("V2")).tobytes() == stored.tobytes()
    assert input_array("input x", parse_type("u8[3]"), Literal(parse_type("u8[3]"), b"abc")).tolist() == [97, 98, 99]
