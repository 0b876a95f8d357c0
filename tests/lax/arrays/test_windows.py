"""Gather and scatter with random dimension numbers, against element-by-element references; their rules, exactly; their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import sketch
from tests.graphs.templates import apply, jvp, make_case, transpose, type_of
from tests.lax.linearity import check_linear, masks, value, whole_numbers
from tests.lax.sampling.indexing_references import default_fill, gathered, scattered
from tests.lax.sampling.indexing_samples import COMBINE, numbers, of_scatter
from tests.lax.sampling.sample import ORDER
from tests.tiers import examples
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.errors import MissingRuleError, TypeRuleError
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.arrays.gather import GatherAttrs
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN

MODES = ("clip", "fill", "promise_in_bounds")
ROWS = numbers((1,), (0,), (0,))
ELEMENTS = numbers((), (0,), (0,))


@st.composite
def windows(draw):
    """An operand, indices, gather's dimension numbers, slice sizes and a mode."""
    shape = draw(st.lists(st.integers(1, 4) | st.integers(0, 4), max_size=4))
    roles = [draw(st.sampled_from("kkcb")) for _ in shape]
    batch = draw(st.lists(st.integers(1, 3) | st.integers(0, 3), max_size=2))
    ours, theirs = [axis for axis, role in enumerate(roles) if role == "b"], []
    batch = [(None, n) for n in batch] + [(axis, shape[axis]) for axis in ours]
    batch = draw(st.permutations(batch))
    theirs = [next(k for k, (owner, _) in enumerate(batch) if owner == axis) for axis in ours]
    sizes = [
        draw(st.integers(0 if draw(st.booleans()) else n, n)) if role == "k" else 1 for n, role in zip(shape, roles, strict=True)
    ]
    batch = [n for _, n in batch]
    if any(n == 0 and role == "c" for n, role in zip(shape, roles, strict=True)):
        batch = [*batch, 0]  # nothing can be read from there
    movable = [axis for axis, role in enumerate(roles) if role != "b"]
    index_map = draw(st.permutations(movable))[: draw(st.integers(0, len(movable)))]
    n_kept = roles.count("k")
    offset_dims = sorted(draw(st.permutations(range(n_kept + len(batch))))[:n_kept])
    collapsed = [axis for axis, role in enumerate(roles) if role == "c"]
    dtype = draw(st.sampled_from(["i8", "i32", "u8", "i64", "u64"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    indices = rng.integers(0 if dtype[0] == "u" else -2, 5, (*batch, len(index_map))).astype(numpy_dtype(np, dtype))
    dims = numbers(offset_dims, collapsed, index_map, ours, theirs)
    return whole_numbers(tuple(shape)), indices, dims, sizes, draw(st.sampled_from(MODES))


def updates_of(x, indices, dims, sizes):
    return whole_numbers(gathered(x, indices, dimension_numbers=dims, slice_sizes=sizes, mode="clip").shape, 1)


@settings(max_examples=examples(250))
@given(windows())
def test_gather(drawn):
    x, indices, dims, sizes, mode = drawn
    attrs = {"dimension_numbers": dims, "slice_sizes": sizes, "mode": mode, "fill_value": 0}
    assert np.array_equal(value("gather", x, indices, **attrs)[0], gathered(x, indices, **attrs).astype(float))
    check_linear("gather", [x, indices], attrs, (True, False))


@settings(max_examples=examples(250, check=105))
@given(windows(), st.sampled_from(sorted(COMBINE)))
def test_scatter(drawn, op):
    x, indices, dims, sizes, mode = drawn
    updates = updates_of(x, indices, dims, sizes)
    attrs = {"dimension_numbers": of_scatter(dims), "mode": mode}
    expected = scattered(x, indices, updates, COMBINE[op][1], **attrs)
    assert np.array_equal(value(op, x, indices, updates, **attrs)[0], expected.astype(float))


@settings(max_examples=examples(250))
@given(windows(), st.sampled_from(["scatter", "scatter-add", "scatter-sub"]))
def test_scatters_are_linear(drawn, op):
    # With repeated indices, too: of scatter's updates of one place only the last has a cotangent.
    x, indices, dims, sizes, mode = drawn
    updates = updates_of(x, indices, dims, sizes)
    for to_operand, to_updates in masks(2):
        attrs = {"dimension_numbers": of_scatter(dims), "mode": mode}
        check_linear(op, [x, indices, updates], attrs, (to_operand, False, to_updates))


@settings(max_examples=examples(100))
@given(windows())
def test_scatter_mul_is_linear_in_the_operand(drawn):
    x, indices, dims, sizes, mode = drawn
    updates = updates_of(x, indices, dims, sizes)
    attrs = {"dimension_numbers": of_scatter(dims), "mode": mode}
    case = make_case("scatter-mul", attrs, map(type_of, (x, indices, updates)))
    t, ct = whole_numbers(x.shape, 5), whole_numbers(x.shape, 6)
    (tangent,) = jvp(case, [x, indices, updates], [t, None, None])
    assert np.array_equal(tangent, value("scatter-mul", t, indices, updates, **attrs)[0])
    linear = make_case("scatter-mul", attrs, map(type_of, (x, indices, updates)), (True, False, False))
    pulled = transpose(linear, [t, indices, updates], [ct])[0]
    assert np.sum(pulled * t) == np.sum(tangent * ct)


def test_scatter_mul_in_its_updates_needs_unique_indices():
    x, indices, u = np.array([2.0, 3.0, 5.0]), np.array([[2], [0]]), np.array([7.0, 11.0])
    attrs = {"dimension_numbers": of_scatter(ELEMENTS), "mode": "fill"}
    unique = attrs | {"unique_indices": True}
    case = make_case("scatter-mul", unique, map(type_of, (x, indices, u)))
    assert jvp(case, [x, indices, u], [None, None, np.array([1.0, 10.0])])[0].tolist() == [20, 0, 5]
    assert jvp(case, [x, indices, u], [np.ones(3), None, np.array([1.0, 10.0])])[0].tolist() == [31, 1, 12]
    with pytest.raises(MissingRuleError, match="unique_indices"):
        jvp(make_case("scatter-mul", attrs, map(type_of, (x, indices, u))), [x, indices, u], [None, None, u])


def test_scatter_keeps_the_last_of_repeated_updates():
    many = 10_000
    indices = np.random.default_rng(0).integers(0, 50, (many // 100, 100, 1))
    updates = np.arange(many, dtype=float).reshape(many // 100, 100)
    attrs = {"dimension_numbers": of_scatter(ELEMENTS), "mode": "fill"}
    (last,) = value("scatter", np.zeros(50), indices, updates, **attrs)
    assert last.tolist() == [np.flatnonzero(indices.ravel() == k)[-1] for k in range(50)]
    # Also where the updates' axes run the other way: the indices' order counts.
    turned = {"dimension_numbers": of_scatter(numbers((0,), (), (0,))), "mode": "clip"}
    (last,) = value("scatter", np.zeros(3), np.array([[0], [1]]), np.array([[1.0, 2.0], [3.0, 4.0]]), **turned)
    assert last.tolist() == [1, 2, 4]


def test_cotangents_of_repeated_updates():
    x, indices, u = np.zeros(3), np.array([[1], [7], [1], [0]]), np.zeros(4)
    attrs = {"dimension_numbers": of_scatter(ELEMENTS), "mode": "fill"}
    ct = np.array([1.0, 2.0, 4.0])
    for op, mask, expected in [
        ("scatter", (True, False, True), ([0, 0, 4], [0, 0, 2, 1])),
        ("scatter-add", (True, False, True), ([1, 2, 4], [2, 0, 2, 1])),
        ("scatter-sub", (True, False, True), ([1, 2, 4], [-2, 0, -2, -1])),
    ]:
        to_x, none, to_u = transpose(make_case(op, attrs, map(type_of, (x, indices, u)), mask), [x, indices, u], [ct])
        assert none is None and (to_x.tolist(), to_u.tolist()) == expected


@pytest.mark.parametrize("op", ["scatter-max", "scatter-min"])
def test_extrema_share_among_ties(op):
    sign = 1 if op == "scatter-max" else -1
    x, indices = sign * np.array([1.0, 5.0, 3.0, 0.0]), np.array([[0], [0], [1], [2], [0], [9]])
    u = sign * np.array([2.0, 2.0, 4.0, 3.0, 1.0, 8.0])
    attrs = {"dimension_numbers": of_scatter(ELEMENTS), "mode": "fill"}
    case = make_case(op, attrs, map(type_of, (x, indices, u)))
    t, tu = np.array([100.0, 200.0, 300.0, 400.0]), np.array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0])
    assert jvp(case, [x, indices, u], [t, None, tu])[0].tolist() == [2, 200, 153.5, 400]
    assert jvp(case, [x, indices, u], [t, None, None])[0].tolist() == [0, 200, 150, 400]
    assert jvp(case, [x, indices, u], [None, None, tu])[0].tolist() == [2, 0, 3.5, 0]


def test_extrema_of_nan():
    attrs = {"dimension_numbers": of_scatter(ELEMENTS), "mode": "fill"}
    for op in ("scatter-max", "scatter-min"):
        extrema = value(op, np.array([math.nan, 1.0, 2.0]), np.array([[0], [1]]), np.array([1.0, math.nan]), **attrs)[0]
        np.testing.assert_equal(extrema, [math.nan, math.nan, 2])


@pytest.mark.parametrize("dtype", ORDER)
def test_fill_values(dtype):
    x, indices = np.ones(3).astype(numpy_dtype(np, dtype)), np.array([[0], [3], [-1]])
    attrs = {"dimension_numbers": ELEMENTS, "slice_sizes": [1], "mode": "fill"}
    filled = value("gather", x, indices, **attrs)[0].tolist()
    np.testing.assert_equal(filled, np.array([1, *[default_fill(dtype)] * 2], object).astype(x.dtype).tolist())
    given = value("gather", x, indices, **attrs, fill_value=dtype == "bool" or 5)[0]
    assert given.tolist() == np.array([1, 5, 5]).astype(x.dtype).tolist()


def test_nonfinite_fill_values_and_their_tangents():
    x, indices = np.array([1.0, 2.0]), np.array([[1], [2]])
    for spelling, number in (("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf), (0.5, 0.5)):
        attrs = {"dimension_numbers": ELEMENTS, "slice_sizes": [1], "mode": "fill", "fill_value": spelling}
        case = make_case("gather", attrs, map(type_of, (x, indices)))
        np.testing.assert_equal(apply(case, [x, indices])[0], [2, number])
        assert jvp(case, [x, indices], [x, None])[0].tolist() == [2, 0]
        assert case.attrs.to_data(binary=False)["fill_value"] == spelling


def test_equal_fill_values_are_one():
    attrs = {"dimension_numbers": ELEMENTS, "slice_sizes": [1], "mode": "fill"}
    one, other = (BUILTIN.parse_attrs("gather", attrs | {"fill_value": v}) for v in (1, 1.0))
    assert one == other and one.to_data(binary=False) == other.to_data(binary=False)
    assert isinstance(one, GatherAttrs) and GatherAttrs(**one.to_data(binary=False)) == one
    with pytest.raises(TypeRuleError, match=r"-0\.0"):
        BUILTIN.parse_attrs("gather", attrs | {"fill_value": -0.0})


@pytest.mark.parametrize("dtype", ["u64", "i64", "u8", "i8"])
def test_indices_at_the_ends_of_their_range(dtype):
    info = np.iinfo(numpy_dtype(np, dtype))
    x, indices = np.arange(1000.0), np.array([[info.min], [info.max]], numpy_dtype(np, dtype))
    top = min(int(info.max), 999)
    below, above = info.min < 0, info.max > 999
    attrs = {"dimension_numbers": ELEMENTS, "slice_sizes": [1]}
    assert value("gather", x, indices, **attrs, mode="clip")[0].tolist() == [0, top]
    filled = value("gather", x, indices, **attrs, mode="fill", fill_value=-1)[0]
    assert filled.tolist() == [-1 if below else 0, -1 if above else top]
    added = value("scatter-add", x, indices, np.ones(2), dimension_numbers=of_scatter(ELEMENTS), mode="fill")[0] - x
    assert np.flatnonzero(added).tolist() == [at for at, out in ((0, below), (top, above)) if not out]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_half_precision_accumulates_in_single(dtype):
    ones = np.ones(5000).astype(numpy_dtype(np, dtype))
    attrs = {"dimension_numbers": of_scatter(ELEMENTS), "mode": "fill"}
    (sums,) = value("scatter-add", np.zeros(1, ones.dtype), np.zeros((5000, 1), int), ones, **attrs)
    assert float(sums[0]) == float(np.float64(5000).astype(ones.dtype))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-max"])
def test_updates_of_an_empty_operand_go_nowhere(op, mode):
    operands = [np.zeros((0, 3)), np.zeros((2, 1), int), np.ones((2, 3))]
    attrs = {"dimension_numbers": of_scatter(ROWS), "mode": mode} | ({"unique_indices": True} if op == "scatter-mul" else {})
    case = make_case(op, attrs, map(type_of, operands))
    assert apply(case, operands)[0].shape == (0, 3)
    moved = jvp(case, operands, [operands[0], None, None])[0]
    assert moved.shape == (0, 3)
    if op != "scatter-max":
        for mask in [(False, False, True), (True, False, False)][op == "scatter-mul" :]:
            linear = make_case(op, attrs, map(type_of, operands), mask)
            assert all(p is None or not p.size for p in transpose(linear, operands, [operands[0]]))


def test_operands_are_not_changed():
    x, indices, updates = np.arange(4.0), np.array([[1], [1]]), np.ones(2)
    for op in COMBINE:
        value(op, x, indices, updates, dimension_numbers=of_scatter(ELEMENTS), mode="clip")
        assert x.tolist() == [0, 1, 2, 3]


def test_broadcast_and_transposed_operands():
    x, indices = np.broadcast_to(np.arange(3.0)[:, None], (3, 4)), np.array([[2], [0]])
    attrs = {"dimension_numbers": ROWS, "mode": "clip"}
    for operand in (x, np.array(x).T.copy().T, np.asfortranarray(x)):
        rows = value("gather", operand, indices, **attrs, slice_sizes=[1, 4])[0]
        assert rows.tolist() == [[2] * 4, [0] * 4]
        scatter = {"dimension_numbers": of_scatter(ROWS), "mode": "clip"}
        assert value("scatter-add", operand, indices, x[:2], **scatter)[0].tolist() == [[1] * 4, [1] * 4, [2] * 4]


def test_higher_derivatives_through_all_of_them():
    op = sketch.op

    def body(x, i):
        rows = {"dimension_numbers": ROWS, "mode": "clip"}
        y = op("gather")(x * x, i, **rows, slice_sizes=(1, 2))
        y = op("scatter")(
            y, i, x * y.sketch.apply("slice", y, start_indices=(0, 0), limit_indices=(3, 2)), **_scatter(ROWS, "fill")
        )
        a, b = y.sketch.apply_all("split", y, sizes=(1, 2), axis=0)
        c = op("concatenate")(b, a * a, op("rev")(b, dimensions=(0,)), dimension=0)
        zero = op("squeeze")(
            op("slice")(op("reshape")(c, new_sizes=(10,)), start_indices=(3,), limit_indices=(4,)), dimensions=(0,)
        )
        d = op("pad")(c, zero * zero, padding_config=((1, -1, 1), (0, 1, 0)))
        k = op("squeeze")(op("slice")(i, start_indices=(0, 0), limit_indices=(1, 1)), dimensions=(0, 1))
        e = op("dynamic_update_slice")(d, op("dynamic_slice")(d * d, k, k, slice_sizes=(2, 2)), k, k)
        f = op("scatter-add")(e, i, op("slice")(d, start_indices=(0, 0), limit_indices=(3, 3)), **_scatter(ROWS, "fill"))
        return op("reduce_sum")(op("copy")(f) * e, axes=(0, 1))

    document = sketch.function("f", {"x": "f64[3,2]", "i": "i32[3,1]"}, body)
    for indices in ([[0], [2], [1]], [[1], [1], [0]], [[5], [-1], [1]]):
        verdicts = check_numerically(document, BUILTIN, given={Key("i"): np.array(indices, np.int32)})
        assert len(verdicts) == 5 and all(v.error is not None and v.ok for v in verdicts), verdicts


def _scatter(dims, mode):
    return {"dimension_numbers": of_scatter(dims), "mode": mode}


def _gather(dims=ROWS, sizes=(1, 4), **attrs):
    return {"dimension_numbers": dims, "slice_sizes": sizes, "mode": "fill", **attrs}


X, AT = "f64[3,4]", "i32[5,1]"


@pytest.mark.parametrize(
    ("types", "attrs", "message"),
    [
        ([X, "f64[5,1]"], _gather(), r"the indices \(input 1\) are f64\[5,1\]; they must be integers"),
        ([X, "i32[]"], _gather(), "of rank 1 at least"),
        ([X, "i32[5,2]"], _gather(), r"start_index_map has 1 axes; the last axis of the indices i32\[5,2\] has 2"),
        ([X, AT], _gather(sizes=(1,)), r"slice_sizes has 1 entries for the operand f64\[3,4\] of rank 2"),
        ([X, AT], _gather(sizes=(1, 5)), r"slice size 5 exceeds axis 1 of the operand f64\[3,4\], which has 4"),
        ([X, AT], _gather(sizes=(2, 4)), "slice size 2 of axis 0, which the result does not have, must be 1"),
        ([X, AT], _gather(numbers((1,), (), (0,))), "offset_dims has 1 axes; the operand .* has 2 that are neither in collapsed"),
        ([X, AT], _gather(numbers((2,), (0,), (0,))), r"offset_dims \[2\]: no axis 2 in an array of rank 2"),
        ([X, AT], _gather(numbers((1,), (2,), (0,))), r"collapsed_slice_dims \[2\]: no axis 2 in the operand"),
        ([X, AT], _gather(numbers((1,), (0,), (3,))), r"start_index_map \[3\]: no axis 3"),
        ([X, AT], _gather(numbers((2, 1), (), (0,)), sizes=(1, 4)), r"offset_dims \[2, 1\] must increase"),
        ([X, AT], _gather(numbers((1,), (), (0,), (0,), (0,))), "start_index_map .* and operand_batching_dims .* share axis 0"),
        (
            [X, AT],
            _gather(numbers((1,), (), (1,), (0,), (0,))),
            r"batching dimensions differ: operand .* axis 0 is 3, indices .* axis 0 is 5",
        ),
        ([X, AT], _gather(numbers((1,), (), (1,), (0,), (1,))), "start_indices_batching_dims .* no axis 1 in the indices"),
        ([X, AT], _gather(numbers((1,), (), (1,), (0,), ())), "they go in pairs"),
        ([X, AT], _gather(numbers((1,), (0, 0), (0,))), "attr 'dimension_numbers.collapsed_slice_dims': axes repeat"),
        ([X, AT], _gather(mode="wrap"), "attr 'mode'"),
        (["i8[3,4]", AT], _gather(fill_value=200), "fill_value 200 is not a value of i8"),
        (["i8[3,4]", AT], _gather(fill_value="NaN"), "fill_value 'NaN' is not a value of i8"),
        ([X, AT], _gather(fill_value=True), "fill_value True is not a value of f64"),
    ],
)
def test_type_errors_of_gather(types, attrs, message):
    with pytest.raises(TypeRuleError, match=message):
        make_case("gather", attrs, [parse_type(t) for t in types])


@pytest.mark.parametrize(
    ("types", "attrs", "message"),
    [
        ([X, AT, "f32[5,4]"], _scatter(ROWS, "fill"), "the updates are f32.5,4.; use convert_element_type"),
        ([X, AT, "f64[5]"], _scatter(ROWS, "fill"), "have 1 axes; the indices .* have 1 before their last, and .* adds 1"),
        ([X, AT, "f64[5,5]"], _scatter(ROWS, "fill"), "have 5 elements along axis 1 of the operand f64.3,4., which has 4"),
        ([X, AT, "f64[6,4]"], _scatter(ROWS, "fill"), "axis 0 of the updates f64.6,4. has 6 elements; the indices .* have 5 there"),
        ([X, AT, "f64[5,4]"], _scatter(numbers((2,), (0,), (0,)), "fill"), "the updates f64.5,4. have no axis 2"),
        (
            [X, AT, "f64[5,4]"],
            _scatter(numbers((1,), (), (0,)), "fill"),
            "neither in inserted_window_dims nor in operand_batching_dims",
        ),
        ([X, "f32[5,1]", "f64[5,4]"], _scatter(ROWS, "fill"), "they must be integers"),
        ([X, "i32[]", "f64[5,4]"], _scatter(ROWS, "fill"), "before their last"),
    ],
)
def test_type_errors_of_scatter(types, attrs, message):
    for op in ("scatter", "scatter-add"):
        with pytest.raises(TypeRuleError, match=message):
            make_case(op, attrs, [parse_type(t) for t in types])


def test_scatter_add_and_mul_take_no_bools():
    for op in ("scatter-add", "scatter-sub", "scatter-mul"):
        with pytest.raises(TypeRuleError, match="it takes numbers"):
            make_case(op, _scatter(ROWS, "fill"), [parse_type(t) for t in ("bool[3,4]", AT, "bool[5,4]")])
