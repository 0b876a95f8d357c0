"""Times in primitives: as NumPy's datetime64 and timedelta64, and in derivatives as the numbers that they are held as."""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graphs.templates import apply, interpret, jvp, make_case, transpose
from tests.lax.test_batching import batches
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case, CaseTable
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import DATETIMES, DURATIONS, TIMES, TensorType, storage_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.functions import positions_template

EVENTS = np.array(["2026-01-31T12:00", "1969-07-20T20:17", "2000-02-29T00:00", "2026-01-31T12:00"], "M8[ms]")
SPANS = np.array([1500, -3, 0, 86_400_000], "m8[ms]")


def held(x):
    """A NumPy array of times as tidu holds it."""
    return x.view(np.int64) if x.dtype.kind == "M" else x.astype(np.int64).astype(np.float64) if x.dtype.kind == "m" else x


def type_of(x):
    letter = {"M": "datetime[ms]", "m": "duration[ms]"}.get(x.dtype.kind)
    return TensorType(letter, x.shape) if letter else parse_value_type(f"{'bool' if x.dtype == bool else 'i64'}[{x.size}]")


def value(op, *operands, **attrs):
    case = make_case(op, attrs, map(type_of, operands))
    return case.results, apply(case, [held(x) for x in operands])


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "result", "expected"),
    [
        ("sub", [EVENTS, EVENTS[::-1]], {}, "duration[ms][4]", EVENTS - EVENTS[::-1]),
        ("sub", [SPANS, SPANS[::-1]], {}, "duration[ms][4]", SPANS - SPANS[::-1]),
        ("add", [SPANS, SPANS[::-1]], {}, "duration[ms][4]", SPANS + SPANS[::-1]),
        ("neg", [SPANS], {}, "duration[ms][4]", -SPANS),
        ("reduce_sum", [SPANS], {"axes": [0]}, "duration[ms][]", SPANS.sum()),
        ("cumsum", [SPANS], {"axis": 0}, "duration[ms][4]", SPANS.cumsum()),
        ("max", [EVENTS, EVENTS[::-1]], {}, "datetime[ms][4]", np.maximum(EVENTS, EVENTS[::-1])),
        ("min", [SPANS, SPANS[::-1]], {}, "duration[ms][4]", np.minimum(SPANS, SPANS[::-1])),
        ("reduce_max", [EVENTS], {"axes": [0]}, "datetime[ms][]", EVENTS.max()),
        ("reduce_min", [SPANS], {"axes": [0]}, "duration[ms][]", SPANS.min()),
        ("cummax", [EVENTS], {"axis": 0}, "datetime[ms][4]", np.maximum.accumulate(EVENTS)),
        ("argmin", [EVENTS], {"axes": [0], "index_dtype": "i64"}, "i64[]", EVENTS.argmin()),
        ("sort", [EVENTS], {"dimension": 0}, "datetime[ms][4]", np.sort(EVENTS)),
        ("sort", [SPANS], {"dimension": 0}, "duration[ms][4]", np.sort(SPANS)),
        ("clamp", [EVENTS[2], EVENTS, EVENTS[2]], {}, "datetime[ms][4]", EVENTS[[2, 2, 2, 2]]),
        ("retract", [EVENTS, SPANS], {}, "datetime[ms][4]", EVENTS + SPANS),
        ("difference", [EVENTS, EVENTS[::-1]], {}, "duration[ms][4]", EVENTS - EVENTS[::-1]),
    ],
)  # fmt: skip
def test_arithmetic_is_numpys(op, operands, attrs, result, expected):
    types, (array,) = value(op, *operands, **attrs)
    assert [str(t) for t in types] == [result]
    assert np.asarray(array).tolist() == np.asarray(held(np.asarray(expected))).tolist()


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("x", [EVENTS, SPANS])
def test_comparisons_are_numpys(name, x):
    _, (truths,) = value(name, x, x[::-1])
    assert truths.tolist() == getattr(operator, name)(x, x[::-1]).tolist()


@given(st.integers(1 - 2**63, 2**63 - 1), st.integers(1 - 2**63, 2**63 - 1))
def test_the_duration_between_two_datetimes_is_rounded_once(x, y):
    case = make_case("sub", {}, [TensorType("datetime[ns]")] * 2)
    (span,) = apply(case, [np.int64(x), np.int64(y)])
    assert float(span) == float(Fraction(x) - Fraction(y))


def test_the_fill_of_datetimes_is_no_time_or_the_one_that_is_given():
    numbers = {"offset_dims": [], "collapsed_slice_dims": [0], "start_index_map": [0]}
    attrs = {"dimension_numbers": numbers, "slice_sizes": [1], "mode": "fill"}
    case = make_case("gather", attrs, [TensorType("datetime[s]", (3,)), TensorType("i32", (2, 1))])
    assert apply(case, [np.arange(3), np.array([[7], [1]], np.int32)])[0].tolist() == [-(2**63), 1]
    case = make_case("gather", attrs | {"fill_value": 5}, [TensorType("datetime[s]", (3,)), TensorType("i32", (2, 1))])
    assert apply(case, [np.arange(3), np.array([[7], [1]], np.int32)])[0].tolist() == [5, 1]


# Derivatives: on the numbers that hold them, those of durations are those of floats, and those of datetimes those of integers.


def examples_of(dtype):
    """Examples on arrays of a dtype of times, and no other of times, nor of numbers that those which hold them do not meet."""
    for primitive in BUILTIN:
        for example, case in example_cases(BUILTIN, primitive):
            types = (*case.operands, *case.results)
            if not all(isinstance(t, TensorType) for t in types) or (primitive.name, types[0].dtype) == ("mul", "f32"):
                continue
            if {t.dtype for t in types} & TIMES == {dtype}:
                yield primitive, example, case


def numbered(case):
    """The case on numbers."""
    types = [t.with_dtype(storage_dtype(t.dtype)) for t in case.operands]
    attrs = case.attrs.to_data(binary=True)
    if "new_dtype" in attrs:
        attrs["new_dtype"] = storage_dtype(attrs["new_dtype"])
    return make_case(case.op, attrs, types, case.mask)


def same(actual, expected):
    assert (actual is None) == (expected is None)
    if actual is not None:
        assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes()


DURATION_CASES = [(p.name, e, c) for p, e, c in examples_of("duration[h]")]
DATETIME_CASES = [(p.name, e, c) for p, e, c in examples_of("datetime[ms]")]


LINEAR = [c for c in DURATION_CASES if BUILTIN[c[0]].rules.transpose and all(t.dtype in DURATIONS | {"f64"} for t in c[2].results)]


def test_most_primitives_that_move_elements_are_tried():
    moving = {"broadcast_in_dim", "reshape", "transpose", "slice", "dynamic_slice", "dynamic_update_slice", "split", "pad"}
    moving |= {"concatenate", "squeeze", "expand_dims", "rev", "copy", "gather", "scatter", "sort", "select_n", "stop_gradient"}
    assert moving <= {name for name, _, _ in DURATION_CASES} & {name for name, _, _ in DATETIME_CASES}
    assert {"add", "neg", "reduce_sum", "cumsum", "scatter-add", "scatter-sub"} <= {name for name, _, _ in DURATION_CASES}


@pytest.mark.parametrize(("name", "example", "case"), DURATION_CASES + DATETIME_CASES)
def test_values_and_derivatives_are_those_of_the_numbers(name, example, case):
    twin = numbered(case)
    operands = [xs[0] for xs in batches(case, example, 1)]
    for of_times, expected in zip(apply(case, operands), apply(twin, operands), strict=True):
        same(of_times, expected)
    rng = np.random.default_rng(5)
    primitive = BUILTIN[case.op]
    able = [k for k, t in enumerate(case.operands) if t.dtype in TIMES and not primitive.domain.is_index(k)]
    for active in {(k,) for k in able} | ({tuple(able)} if able else set()):
        tangents = [rng.uniform(-2, 2, t.shape) if k in active else None for k, t in enumerate(case.operands)]
        for tangent, expected in zip(jvp(case, operands, tangents), jvp(twin, operands, tangents), strict=True):
            same(tangent, expected)


@pytest.mark.parametrize("name", sorted({name for name, _, _ in LINEAR}))
def test_transposes_are_those_of_the_numbers(name):
    rng = np.random.default_rng(6)
    for _, example, primary in (c for c in LINEAR if c[0] == name):
        able = [t.dtype in DURATIONS and not BUILTIN[name].domain.is_index(k) for k, t in enumerate(primary.operands)]
        case = Case(primary.op, primary.attrs, tuple(able), primary.operands, primary.results)
        operands = [xs[0] for xs in batches(case, example, 1)]
        cotangents = [rng.uniform(-2, 2, t.shape) for t in case.results]
        for cotangent, expected in zip(
            transpose(case, operands, cotangents), transpose(numbered(case), operands, cotangents), strict=True
        ):
            same(cotangent, expected)


@pytest.mark.parametrize("name", ["slice", "dynamic_slice", "gather"])
def test_reads_of_times_have_positions(name):
    for op, example, case in DURATION_CASES:
        if op == name:
            cases, twins = CaseTable(), CaseTable()
            operands = [None, *(xs[0] for xs in batches(case, example, 1)[1:])]
            positions = interpret(positions_template(BUILTIN, cases, cases.intern(case)), cases, operands)
            same(positions[0], interpret(positions_template(BUILTIN, twins, twins.intern(numbered(case))), twins, operands)[0])


def derivative(op, operands, tangents, dtype, **attrs):
    case = make_case(op, attrs, [TensorType(dtype, np.shape(x)) for x in operands])
    return jvp(case, [np.asarray(x, np.int64 if dtype in DATETIMES else float) for x in operands], tangents)[0]


@pytest.mark.parametrize("dtype", ["datetime[ms]", "duration[h]"])
def test_the_latest_of_events_moves_as_it_does(dtype):
    t = np.array([1.0, 10.0, 100.0])
    assert derivative("reduce_max", [[1, 3, 2]], [t], dtype, axes=[0]) == 10
    assert derivative("reduce_max", [[1, 3, 3]], [t], dtype, axes=[0]) == 55
    assert derivative("cummax", [[1, 3, 2]], [t], dtype, axis=0).tolist() == [1, 10, 10]
    assert derivative("max", [[1, 3, 2], [2, 3, 1]], [t, None], dtype).tolist() == [0, 5, 100]
    assert derivative("clamp", [2, [1, 3, 2], 9], [None, t, None], dtype).tolist() == [0, 10, 0]
    assert derivative("sort", [[1, 3, 2]], [t], dtype, dimension=0).tolist() == [1, 100, 10]


def test_the_duration_between_events_moves_with_both():
    assert derivative("sub", [5, 3], [np.float64(1), np.float64(10)], "datetime[ms]") == -9
    assert derivative("sub", [5, 3], [None, np.float64(10)], "datetime[ms]") == -10


# What times have no meaning for.


TO_F64 = "use convert_element_type to f64 first"


def refusal(op, *types, **attrs):
    with pytest.raises(TypeRuleError) as caught:
        make_case(op, attrs, map(parse_value_type, types))
    return str(caught.value)


@pytest.mark.parametrize("op", ["exp", "sqrt", "integer_pow", "abs", "sign", "reduce_prod", "cumprod", "floor", "dot_general"])
@pytest.mark.parametrize("dtype", ["datetime[ms]", "duration[h]"])
def test_functions_of_numbers_say_how_to_make_a_number_of_a_time(op, dtype):
    attrs = {
        "integer_pow": {"y": 2},
        "reduce_prod": {"axes": [0]},
        "cumprod": {"axis": 0},
        "dot_general": {"dimension_numbers": [[[0], [0]], [[], []]]},
    }
    arity = 2 if op == "dot_general" else 1
    message = refusal(op, *[f"{dtype}[3]"] * arity, **attrs.get(op, {}))
    assert f"input 0 has type {dtype}[3], but it takes" in message
    assert message.endswith(f"; {TO_F64}")


@pytest.mark.parametrize(
    ("op", "types", "message"),
    [
        ("mul", ["duration[h][]"] * 2, f"input 0 has type duration[h][], but it takes numbers; {TO_F64}"),
        ("mul", ["bool[]", "duration[h][]"], "input 0 has type bool[], but it takes numbers"),
        (
            "add", ["datetime[h][]", "duration[h][]"],
            "input 0 has type datetime[h][], but it takes numbers and durations; use retract to move a datetime by a duration, and "
            "sub for the duration between two",
        ),
        (
            "sub", ["datetime[h][]", "duration[h][]"],
            "type mismatch: input 0 is datetime[h][], input 1 is duration[h][]; use retract to move a datetime by a duration",
        ),
        (
            "sub", ["datetime[h][]", "datetime[m][]"],
            "type mismatch: input 0 is datetime[h][], input 1 is datetime[m][]; use convert_element_type first",
        ),
        (
            "eq", ["duration[h][]", "duration[m][]"],
            "type mismatch: input 0 is duration[h][], input 1 is duration[m][]; use convert_element_type first",
        ),
    ],
)  # fmt: skip
def test_sums_and_products_of_times(op, types, message):
    assert refusal(op, *types) == message


def test_sums_of_datetimes():
    assert "takes numbers and durations; use retract" in refusal("reduce_sum", "datetime[h][3]", axes=[0])
    assert "takes numbers; use convert_element_type" in refusal("iota", dtype="duration[h]", shape=[3], dimension=0)
