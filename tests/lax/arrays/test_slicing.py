"""Slicing and joining: derivative rules in their branches, several results, edges, and what the type rules say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs.templates import make_case, transpose, type_of
from tests.lax.linearity import check_linear, masks, value, whole_numbers
from tests.lax.sampling.indexing_references import padded, sliced
from tests.lax.sampling.sample import draw
from tests.tiers import examples
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import CaseTable
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.templates import transpose_template


@pytest.mark.parametrize("shape", [(), (5,), (0,), (3, 4), (2, 1, 3, 2)])
@pytest.mark.parametrize("axis", range(4))
def test_split(shape, axis):
    if axis >= len(shape):
        return
    n = shape[axis]
    for sizes in ([n], [0, n], [n // 2, n - n // 2], [n // 3, 0, n // 3, n - 2 * (n // 3)]):
        x = whole_numbers(shape)
        parts = value("split", x, sizes=sizes, axis=axis)
        assert len(parts) == len(sizes)
        assert np.array_equal(np.concatenate(parts, axis), x)
        check_linear("split", [x], {"sizes": sizes, "axis": axis}, (True,))


def test_split_of_integers_and_bools():
    for dtype in ("i8", "u64", "bool"):
        first, rest = value("split", draw(dtype, (5, 2)), sizes=[1, 4], axis=0)
        assert np.array_equal(np.concatenate([first, rest]), draw(dtype, (5, 2)))


def test_slices_do_not_hold_on_to_the_operand():
    x = np.zeros((1000, 4))
    for part in (
        *value("slice", x, start_indices=[1, 0], limit_indices=[3, 4]),
        *value("split", x, sizes=[1, 999], axis=0)[:1],  # the other is nearly all of it
        *value("dynamic_slice", x, np.int32(1), np.int32(0), slice_sizes=[2, 4]),
    ):
        assert not np.shares_memory(part, x)


@pytest.mark.parametrize("start", [-3, 0, 1, 9])
@pytest.mark.parametrize("sizes", [(2, 2), (3, 4), (0, 1), (1, 0)])
def test_dynamic_slices_are_linear(start, sizes):
    x, update, index = whole_numbers((3, 4)), whole_numbers(sizes, 1), np.array(start)
    check_linear("dynamic_slice", [x, index, index], {"slice_sizes": sizes}, (True, False, False))
    for mask in masks(2, 2):
        check_linear("dynamic_update_slice", [x, update, index, index], {}, mask)


@pytest.mark.parametrize("dtype", ["u64", "i8", "u8", "i64"])
def test_indices_clamp_at_the_ends_of_their_range(dtype):
    info, x = np.iinfo(numpy_dtype(np, dtype)), np.arange(300.0)
    low, high = info.dtype.type(info.min), info.dtype.type(info.max)
    assert value("dynamic_slice", x, low, slice_sizes=[2])[0].tolist() == [0, 1]
    top = min(int(info.max), 298)
    assert value("dynamic_slice", x, high, slice_sizes=[2])[0].tolist() == [top, top + 1]
    assert value("dynamic_update_slice", x, np.array([-1.0]), high)[0].tolist().index(-1) == min(int(info.max), 299)


@pytest.mark.parametrize("parts", [[(2, 3)], [(2, 3), (2, 0), (2, 1)], [(2, 0), (2, 0)]])
def test_concatenate_is_linear(parts):
    operands = [whole_numbers(shape, k) for k, shape in enumerate(parts)]
    for mask in masks(len(parts)):
        check_linear("concatenate", operands, {"dimension": 1}, mask)


axis_slices = st.integers(0, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n), st.integers(1, 4)))


@settings(max_examples=examples(100))
@given(st.lists(axis_slices, max_size=4))
def test_slices(axes):
    shape = tuple(n for n, *_ in axes)
    starts, limits = [min(a, b) for _, a, b, _ in axes], [max(a, b) for _, a, b, _ in axes]
    strides = [s for *_, s in axes]
    x = whole_numbers(shape)
    for given_strides in (strides, None):
        attrs = {"start_indices": starts, "limit_indices": limits, "strides": given_strides}
        assert np.array_equal(
            value("slice", x, **attrs)[0], sliced(x, starts, limits, given_strides or [1] * len(axes)).astype(float)
        )
        check_linear("slice", [x], attrs, (True,))


paddings = st.tuples(st.integers(0, 4), st.integers(-8, 6), st.integers(-8, 6), st.integers(0, 3))


@settings(max_examples=examples(200, check=100))
@given(st.lists(paddings, max_size=3))
def test_pads(axes):
    config = []
    for n, low, high, interior in axes:
        short = -(low + n + max(n - 1, 0) * interior + high)
        config.append((low, high + max(short, 0), interior))
    x, v = whole_numbers(tuple(n for n, *_ in axes)), np.array(3.0)
    assert np.array_equal(value("pad", x, v, padding_config=config)[0], padded(x, v, config).astype(float))
    for mask in masks(2):
        check_linear("pad", [x, v], {"padding_config": config}, mask)


def test_pad_where_low_takes_more_than_the_axis_has():
    x, v = np.array([1.0, 2.0]), np.array(9.0)
    assert value("pad", x, v, padding_config=[[-5, 6, 0]])[0].tolist() == [9, 9, 9]
    assert value("pad", x, v, padding_config=[[-5, 4, 5]])[0].tolist() == [9, 2, 9, 9, 9, 9]
    assert value("pad", np.zeros(0), v, padding_config=[[1, 1, 7]])[0].tolist() == [9, 9]


def test_cotangents_of_padding_values_keep_their_digits():
    # Their sum is not the difference of the sums of everything and of the operand's.
    x, v = np.zeros(2), np.array(0.0)
    linear = make_case("pad", {"padding_config": [[1, 0, 0]]}, [type_of(x), type_of(v)], (False, True))
    for large in (1e300, np.inf, np.nan):
        assert transpose(linear, [x, v], [np.array([1.0, large, large])]) == [None, 1.0]


@pytest.mark.parametrize(
    ("op", "types", "attrs", "emitted"),
    [
        ("slice", ["f64[3]"], {"start_indices": [0], "limit_indices": [3]}, []),
        ("slice", ["f64[3]"], {"start_indices": [1], "limit_indices": [3]}, ["constant", "pad"]),
        ("pad", ["f64[3]", "f64[]"], {"padding_config": [[1, 2, 0]]}, ["slice"]),
        ("pad", ["f64[3]", "f64[]"], {"padding_config": [[-1, 0, 0]]}, ["constant", "pad"]),
        ("pad", ["f64[3]", "f64[]"], {"padding_config": [[-1, 2, 1]]}, ["constant", "pad", "slice"]),
        ("split", ["f64[3]"], {"sizes": [3], "axis": 0}, []),
        ("concatenate", ["f64[3]"], {"dimension": 0}, []),
        ("squeeze", ["f64[1]"], {"dimensions": [0]}, ["expand_dims"]),
        ("rev", ["f64[3]"], {"dimensions": [0]}, ["rev"]),
    ],
)
def test_transposes_emit_no_more_than_they_need(op, types, attrs, emitted):
    cases = CaseTable()
    mask = (True, *(False for _ in types[1:]))
    code = cases.intern(make_case(op, attrs, [parse_type(t) for t in types], mask))
    template = transpose_template(BUILTIN, cases, code, (True,))
    assert [cases[node.code].op for node in (*template.closed, *template.nodes)] == emitted


def test_iota_wraps_and_rounds_as_its_dtype_does():
    assert value("iota", dtype="u8", shape=[300], dimension=0)[0][-1] == 43
    assert value("iota", dtype="f16", shape=[2, 4097], dimension=1)[0][1, 4096] == 4096


@pytest.mark.parametrize(
    ("op", "types", "attrs", "message"),
    [
        (
            "slice",
            ["f64[3,4]"],
            {"start_indices": [0], "limit_indices": [3, 4]},
            r"start_indices has 1 entries .* f64\[3,4\] of rank 2",
        ),
        ("slice", ["f64[3]"], {"start_indices": [2], "limit_indices": [1]}, "axis 0: start index 2 is past limit index 1"),
        (
            "slice",
            ["f64[3]"],
            {"start_indices": [0], "limit_indices": [4]},
            r"limit index 4 exceeds axis 0 .* which has 3 elements",
        ),
        ("slice", ["f64[3]"], {"start_indices": [0], "limit_indices": [3], "strides": [0]}, "attr 'strides.0': .* greater than"),
        ("dynamic_slice", ["f64[3]"], {"slice_sizes": [1]}, r"one index per axis of the operand f64\[3\]: 1, got 0"),
        ("dynamic_slice", ["f64[3]", "f64[]"], {"slice_sizes": [1]}, r"axis 0 \(input 1\) is f64\[\]; it must be a scalar integer"),
        ("dynamic_slice", ["f64[3]", "i32[1]"], {"slice_sizes": [1]}, "must be a scalar integer"),
        ("dynamic_slice", ["f64[3,3]", "i32[]", "i64[]"], {"slice_sizes": [1, 1]}, "indices differ in type: input 1 is i32"),
        ("dynamic_slice", ["f64[3]", "i32[]"], {"slice_sizes": [4]}, "slice size 4 exceeds axis 0 .* has 3 elements"),
        ("dynamic_update_slice", ["f64[3]"], {}, "takes an operand, an update"),
        ("dynamic_update_slice", ["f64[3]", "f32[2]", "i32[]"], {}, "use convert_element_type first"),
        ("dynamic_update_slice", ["f64[3]", "f64[4]", "i32[]"], {}, r"axis 0 of the update f64\[4\] has 4 elements"),
        ("dynamic_update_slice", ["f64[3]", "f64[]", "i32[]"], {}, "has 0 axes, the operand f64.3. has 1"),
        ("split", ["f64[3,4]"], {"sizes": [1, 2], "axis": 1}, r"\[1, 2\] add up to 3; axis 1 .* has 4 elements"),
        ("split", ["f64[3]"], {"sizes": [3], "axis": 1}, "axis 1: the operand .* no such axis"),
        ("split", ["f64[0]"], {"sizes": [], "axis": 0}, "attr 'sizes'"),
        ("pad", ["f64[3]", "f64[1]"], {"padding_config": [[0, 0, 0]]}, r"the padding value \(input 1\) is f64\[1\]"),
        ("pad", ["f64[3]", "f32[]"], {"padding_config": [[0, 0, 0]]}, r"it must be f64\[\]"),
        ("pad", ["f64[3]", "f64[]"], {"padding_config": []}, "padding_config has 0 entries"),
        ("pad", ["f64[3]", "f64[]"], {"padding_config": [[-2, -2, 0]]}, "takes more from axis 0 .* than its 3 elements"),
        ("pad", ["f64[3]", "f64[]"], {"padding_config": [[0, 0, -1]]}, "attr 'padding_config.0.2'"),
        (
            "concatenate",
            ["f64[2,3]", "f64[3,3]"],
            {"dimension": 1},
            r"axis 0 of input 0 f64\[2,3\] has 2 elements, of input 1 .* 3; only",
        ),
        ("concatenate", ["f64[2]", "f32[2]"], {"dimension": 0}, "type mismatch: input 0 is f64"),
        ("concatenate", ["f64[]"], {"dimension": 0}, "dimension 0: the operand"),
        ("squeeze", ["f64[2,1]"], {"dimensions": [0]}, r"axis 0 of the operand f64\[2,1\] has 2 elements"),
        ("squeeze", ["f64[1]"], {"dimensions": [1]}, "has no axis 1"),
        ("expand_dims", ["f64[2]"], {"dimensions": [0, 3]}, "names axis 3 of a result of rank 3"),
        ("rev", ["f64[2]"], {"dimensions": [1]}, "has no axis 1"),
        ("iota", [], {"dtype": "bool", "shape": [2], "dimension": 0}, "it takes numbers"),
        ("iota", [], {"dtype": "i32", "shape": [], "dimension": 0}, "has no such axis"),
    ],
)
def test_type_errors(op, types, attrs, message):
    with pytest.raises(TypeRuleError, match=message):
        make_case(op, attrs, [parse_type(t) for t in types])
