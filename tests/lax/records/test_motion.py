"""difference and retract: x = retract(y, difference(x, y)) for every pair of primal and tangent type, and derivatives of both."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs.interpret import evaluate, filled, inner, random_value, tree
from tests.graphs.templates import apply, make_case
from tests.tiers import examples
from tidu_cli.checking.numeric.trials import example_cases, one_node_document
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import (
    ANY,
    COMPLEXES,
    DATETIMES,
    DURATIONS,
    FLOATS,
    INTEGERS,
    RecordType,
    TensorType,
    leaves,
    tangent_type,
    unit_of,
)
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.tangents import TABLE
from tidu_cli.rules.units import ratio
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

PAIRS = [(primal, tangent) for row in TABLE for primal in sorted(row.primals) for tangent in row.admitted]
EPSILON = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53, "c64": 2.0**-24, "c128": 2.0**-53}
LAST = 2**63 - 1
NAT = -(2**63)


def difference(x, y, primal, tangent=None):
    case = make_case("difference", {"tangent": tangent}, [parse_value_type(primal)] * 2)
    return case.results[0], apply(case, [x, y])[0]


def retract(x, d, primal, tangent):
    tangent = tangent if isinstance(tangent, TensorType | RecordType) else parse_value_type(tangent)
    return apply(make_case("retract", {}, [parse_value_type(primal), tangent]), [x, d])[0]


def there_and_back(x, y, primal, tangent=None):
    type_, d = difference(x, y, primal, tangent)
    return retract(y, d, primal, type_)


def counts_exactly(primal, tangent):
    """Up to which difference a tangent type counts the steps between two values exactly, and back."""
    if tangent == "f32":
        return 2**24
    return 2**53 if tangent == "f64" or unit_of(primal) == unit_of(tangent) else 2**51


@pytest.mark.parametrize(("primal", "tangent"), [(p, t) for p, t in PAIRS if p in INTEGERS | DATETIMES])
@settings(max_examples=examples(20, check=10))
@given(st.data())
def test_whole_numbers_come_back_exactly(primal, tangent, data):
    dtype = numpy_dtype(np, primal)
    least, greatest = (-LAST, LAST) if primal in DATETIMES else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    most = counts_exactly(primal, tangent)
    x = data.draw(st.integers(least, greatest))
    y = data.draw(
        st.integers(max(least, x - most), min(greatest, x + most)) | st.integers(max(least, x - 99), min(greatest, x + 99))
    )
    assert there_and_back(np.array(x, dtype), np.array(y, dtype), f"{primal}[]", tangent) == x


def numbers(primal, tangent):
    """Floats or complex numbers, whose differences are in the range of the tangents."""
    greatest = 1e3 if {primal, tangent} & {"f16", "bf16"} else 1e6
    parts = st.floats(-greatest, greatest, allow_subnormal=False)
    return st.builds(complex, parts, parts) if primal in COMPLEXES else parts


@pytest.mark.parametrize(("primal", "tangent"), [(p, t) for p, t in PAIRS if p in FLOATS | COMPLEXES | DURATIONS])
@settings(max_examples=examples(20, check=10))
@given(st.data())
def test_floats_come_back_but_for_rounding(primal, tangent, data):
    dtype = numpy_dtype(np, primal)
    parts = numbers(primal, tangent)
    x, y = (np.array(data.draw(parts)).astype(dtype) for _ in range(2))
    wide = np.complex128 if primal in COMPLEXES else np.float64
    back = there_and_back(x, y, f"{primal}[]", tangent)
    # The difference is rounded once in the tangent type, or twice where units are converted, there and back; the sum once.
    of_tangent, of_primal = (4 * EPSILON["f64"] if d in DURATIONS else EPSILON[d] for d in (tangent, primal))
    x, y, back = (v.astype(wide) for v in (x, y, np.asarray(back)))
    tiny = 2.0**-24 if tangent == "f16" else 2.0**-126
    assert abs(back - x) <= 1.5 * (of_tangent * abs(x - y) + of_primal * abs(x)) + tiny


@pytest.mark.parametrize("primal", sorted({p for p, _ in PAIRS}))
def test_a_value_is_where_it_is(primal):
    type_ = parse_value_type(f"{primal}[3]")
    x = random_value(type_, np.random.default_rng(1))
    tangent, d = difference(x, x, str(type_))
    assert str(tangent) == str(tangent_type(type_)) and not np.any(d)
    assert np.asarray(retract(x, d, str(type_), tangent)).tolist() == x.tolist()


@pytest.mark.parametrize(("primal", "tangent"), [(p, t) for p, t in PAIRS if p in DATETIMES])
def test_a_datetime_moves_by_a_duration_in_any_unit(primal, tangent):
    # By three of the longer unit, in whole numbers of both.
    step = ratio(unit_of(primal), unit_of(tangent))
    units, counted = (3, 3 * step) if step >= 1 else (3 / step, 3)
    if units > LAST:
        return
    assert int(retract(np.int64(7), np.float64(counted), f"{primal}[]", f"{tangent}[]")) == 7 + units


@given(st.integers(-LAST, LAST), st.floats(allow_nan=False))
def test_datetimes_move_by_whole_units_and_past_the_ends_there_is_no_time(x, d):
    moved = x + (round(Fraction(d)) if math.isfinite(d) else int(math.copysign(2**64, d)))
    assert int(retract(np.int64(x), np.float64(d), "datetime[s][]", "duration[s][]")) == (moved if abs(moved) <= LAST else NAT)


@pytest.mark.parametrize("dtype", sorted(INTEGERS))
@settings(max_examples=examples(50))
@given(st.data())
def test_integers_move_by_whole_steps_and_stop_at_the_ends(dtype, data):
    info = np.iinfo(numpy_dtype(np, dtype))
    x, d = data.draw(st.integers(int(info.min), int(info.max))), data.draw(st.floats(-1e20, 1e20))
    moved = retract(np.array(x, info.dtype), np.float64(d), f"{dtype}[]", "f64[]")
    assert int(moved) == min(max(x + round(Fraction(d)), int(info.min)), int(info.max))


def test_halves_go_to_the_even_step_and_nan_is_none_or_leads_to_no_time():
    x = np.array([10, 10, 10, 11, 11], np.int64)
    assert retract(x, np.array([0.5, 1.5, -0.5, 0.5, np.nan]), "i64[5]", "f64[5]").tolist() == [10, 12, 10, 11, 11]
    assert retract(x, np.array([0.5, 1.5, -0.5, 0.5, np.nan]), "datetime[D][5]", "duration[D][5]").tolist() == [10, 12, 10, 11, NAT]


def test_from_no_time_and_to_it_there_is_no_way():
    days = "datetime[D][2]"
    assert retract(np.array([NAT, 3]), np.array([1.0, 1.0]), days, "duration[D][2]").tolist() == [NAT, 4]
    for x, y in (([NAT, 3], [1, 1]), ([1, 3], [NAT, 1]), ([NAT, 3], [NAT, 1])):
        for tangent in ("duration[D]", "duration[h]"):
            _, d = difference(np.array(x), np.array(y), days, tangent)
            assert np.isnan(d).tolist() == [True, False]
        assert np.isnan(apply(make_case("sub", {}, [parse_value_type(days)] * 2), [np.array(x), np.array(y)])[0]).tolist() == [
            True,
            False,
        ]


# Structural tangents.

EVENT = "{at: datetime[ms][2], n: i32[], w: f32[2], z: c64[], span: duration[h][], on: bool[], of: (f64[], datetime[D][])}"


def test_the_structural_tangent_of_a_datetime_counts_its_periods():
    type_, d = difference(np.array([5, 3]), np.array([2, 4]), "datetime[ms][2]", "{instant: {periods: f64}}")
    assert str(type_) == "{instant: {periods: f64[2]}}"
    assert [x.tolist() for ((x,),) in [d]] == [[3.0, -1.0]]
    assert retract(np.array([2, 4]), d, "datetime[ms][2]", type_).tolist() == [5, 3]
    type_, d = difference(np.array([5, 3]), np.array([2, 4]), "datetime[ms][2]", "{instant: {periods: duration[us]}}")
    assert str(type_) == "{instant: {periods: duration[us][2]}}"
    assert [x.tolist() for ((x,),) in [d]] == [[3000.0, -1000.0]]
    assert retract(np.array([2, 4]), d, "datetime[ms][2]", type_).tolist() == [5, 3]
    # Both natural and structural tangents convert to one another, by way of the datetimes that they lead to.
    assert retract(np.array([2, 4]), np.array([3.0, -1.0]), "datetime[ms][2]", "duration[ms][2]").tolist() == [5, 3]


@pytest.mark.parametrize("zero", [(None,), ((None,),)])
def test_structural_zeros_of_datetimes_do_not_move(zero):
    assert retract(np.array([2, 4]), zero, "datetime[ms][2]", "{instant: {periods: f64[2]}}").tolist() == [2, 4]


def test_records_come_back_field_by_field_but_for_bools():
    x, y = (random_value(parse_value_type(EVENT), np.random.default_rng(k)) for k in (1, 2))
    type_, d = difference(x, y, EVENT)
    assert str(type_) == ("{at: duration[ms][2], n: f64[], w: f32[2], z: c64[], span: duration[h][], of: (f64[], duration[D][])}")
    back = retract(y, d, EVENT, type_)
    on = parse_value_type(EVENT).names.index("on")
    assert back[on] is y[on]
    for k, (field, expected) in enumerate(zip(back, x, strict=True)):
        if k != on:
            tree(lambda a, b: np.testing.assert_allclose(a, b, 1e-6, 1e-6), field, expected)
    assert back[0].tolist() == x[0].tolist() and back[1] == x[1] and back[6][1] == x[6][1]


def test_a_semi_structural_tangent_has_the_fields_that_move():
    x, y = (random_value(parse_value_type(EVENT), np.random.default_rng(k)) for k in (1, 2))
    type_, d = difference(x, y, EVENT, "{at: duration[h], of: {1: {instant: {periods: f64}}}}")
    assert str(type_) == "{at: duration[h][2], of: {1: {instant: {periods: f64[]}}}}"
    back = retract(y, d, EVENT, type_)
    assert back[0].tolist() == x[0].tolist() and back[6][1] == x[6][1]
    assert back[6][0] is y[6][0] and all(back[k] is y[k] for k in (1, 2, 3, 4, 5))


def test_structural_zeros_of_records_do_not_move():
    y = random_value(parse_value_type(EVENT), np.random.default_rng(2))
    tangent = tangent_type(parse_value_type(EVENT))
    back = retract(y, (None,) * 6, EVENT, tangent)
    assert all(kept is given for kept, given in zip(back, y, strict=True))
    back = retract(y, (*(None,) * 5, (np.float64(1.0), None)), EVENT, tangent)
    assert back[6] == (y[6][0] + 1, y[6][1])


def test_tangents_with_structural_zeros_have_differences():
    primal = "{a: f64[2], b: {c: f64[]}}"
    a = np.array([1.0, 2.0])
    _, d = difference((a, None), (None, (np.float64(3),)), primal)
    assert (d[0].tolist(), d[1][0]) == ([1, 2], -3)
    back = retract((None, None), (None, (np.float64(3),)), primal, primal)
    assert tree(np.ndarray.tolist, tuple(map(np.asarray, filled(parse_value_type(primal), back)[:1]))) == ([0, 0],)


# Derivatives: linear maps of the tangents, adjoint to their transposes, on the numbers that hold them.


@pytest.mark.parametrize("name", ["difference", "retract"])
def test_derivatives_are_the_motion_itself_and_adjoint_to_their_transposes(name):
    rng = np.random.default_rng(7)
    for _, case in example_cases(BUILTIN, BUILTIN[name]):
        document = one_node_document(case)
        x, d = Key("x0"), Key("x1")
        at = {key: random_value(t, rng) for key, t in zip((x, d), case.operands, strict=True)}
        for wrt in ([x], [d], [x, d]):
            linear = linearize(document, wrt)
            given = {i.key: random_value(i.type, rng) for i in linear.head.inputs}
            image = evaluate(linear, at | given)
            turned = transpose(linear)
            cotangents = {i.key: random_value(i.type, rng) for i in turned.head.inputs}
            pulled = evaluate(turned, at | cotangents)
            y = Key("y0")
            left = inner(image[y.tangent(1)], cotangents[y.cotangent(1)])
            right = sum(inner(given[key.tangent(1)], pulled[key.cotangent(1)]) for key in wrt)
            ends = (*linear.head.inputs, *linear.head.outputs)
            dtypes = {leaf.dtype for end in ends for _, leaf in leaves(end.type)}
            tolerance = 1e-2 if dtypes & {"f16", "bf16"} else 1e-5 if dtypes & {"f32", "c64"} else 1e-13
            np.testing.assert_allclose(left, right, tolerance, tolerance)


def along(op, primal, tangents, **attrs):
    """The tangent of a node at zeros, for tangents of its operands (None where inactive)."""
    case = make_case(op, attrs, [parse_value_type(t) for t in primal])
    document = one_node_document(case)
    wrt = [Key(f"x{k}") for k, t in enumerate(tangents) if t is not None]
    given = {Key(f"x{k}"): filled(t, None) for k, t in enumerate(case.operands)}
    given |= {Key(f"x{k}").tangent(1): t for k, t in enumerate(tangents) if t is not None}
    return evaluate(linearize(document, wrt), given)[Key("y0").tangent(1)]


def test_derivatives_of_datetimes_and_integers_are_those_of_numbers():
    assert along("difference", ["datetime[s][]"] * 2, [7200.0, 3600.0], tangent="duration[h]") == 1
    assert along("difference", ["datetime[s][]"] * 2, [None, 3600.0], tangent="duration[h]") == -1
    assert along("difference", ["datetime[s][]"] * 2, [None, 3600.0], tangent="{instant: {periods: f64}}") == ((-3600,),)
    assert along("difference", ["i32[]"] * 2, [2.0, 0.5]) == 1.5
    assert along("retract", ["datetime[s][]", "duration[h][]"], [10.0, 2.0]) == 7210
    assert along("retract", ["datetime[s][]", "duration[h][]"], [None, 2.0]) == 7200
    assert along("retract", ["datetime[s][]", "{instant: {periods: f64[]}}"], [1.0, ((2.5,),)]) == 3.5
    assert along("retract", ["i32[]", "f64[]"], [1.0, 2.5]) == 3.5  # no step: how it moves, not how it rounds
    assert along("retract", ["{a: f64[], n: i64[]}", "{n: f32[]}"], [None, (1.5,)]) == (0, 1.5)
    assert along("difference", ["{a: f64[], n: i64[]}"] * 2, [(1.0, 2.0), (0.5, 5.0)], tangent="{n: f32}") == (-3,)


# Refusals.


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "message"),
    [
        ("difference", ["bool[3]"] * 2, {}, "input 0 is bool[3], whose only tangent is zero: it does not move"),
        ("retract", ["bool[3]", "f64[3]"], {}, "input 0 is bool[3], whose only tangent is zero: it does not move"),
        ("difference", ["f64[]", "f32[]"], {}, "input 0 is f64[], input 1 is f32[]; there are differences within one type only"),
        ("difference", ["datetime[s][]"] * 2, {"tangent": "f64"}, "inputs are of type datetime[s][], which admits no tangent f64"),
        ("difference", ["datetime[D][]"] * 2, {"tangent": "duration[Y]"}, "unknown type 'duration[Y]'; write a unit"),
        ("difference", ["i32[2]"] * 2, {"tangent": "f64[3]"}, "admits no tangent f64[3]; choose f32[2] or f64[2]"),
        ("difference", ["{a: f64[]}"] * 2, {"tangent": "{b: f64}"}, "which has no field 'b' (fields: a)"),
        ("difference", ["f64[]"] * 2, {"tangent": "furlong"}, "attr 'tangent': unknown type 'furlong'"),
        ("difference", ["f64[]"] * 2, {"tangent": 3}, "attr 'tangent': the type of a tangent is due, such as duration[h], not 3"),
        ("retract", ["datetime[s][]", "f64[]"], {}, "input 0 is datetime[s][], which admits no tangent f64[]; choose"),
        ("retract", ["datetime[s][2]", "duration[s][]"], {}, "input 0 is datetime[s][2], which admits no tangent duration[s][]"),
    ],
)
def test_what_does_not_move_is_refused(op, operands, attrs, message):
    with pytest.raises(TypeRuleError) as caught:
        make_case(op, attrs, map(parse_value_type, operands))
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["duration[h]", "duration[h][3]", "{at: duration[h], w: f64[2]}", "(f64, {x: f32})", "f64"])
def test_tangent_types_are_written_as_they_are_read(text):
    attrs = BUILTIN.parse_attrs("difference", {"tangent": text})
    assert attrs.to_data(binary=False) == {"tangent": text}
    assert BUILTIN.parse_attrs("difference", {}).to_data(binary=False) == {}


def test_all_dtypes_but_bool_move():
    assert BUILTIN["difference"].domain.dtypes == BUILTIN["retract"].domain.dtypes == ANY - {"bool"}
    assert {p for p, _ in PAIRS} == ANY - {"bool"}
