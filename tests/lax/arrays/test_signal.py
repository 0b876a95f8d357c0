"""Fourier transforms, convolutions and windows: laws over all attrs, ties, messages."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs.templates import apply, inner, make_case, transpose, type_of
from tests.lax.orders import Orders
from tests.lax.sampling.sample import Sample, draw
from tests.lax.sampling.signal_samples import conv, convolved, meets, numbers, over_windows, window
from tests.lax.test_batching import check
from tests.lax.test_derivatives import check_adjoint
from tests.lax.test_edges import tangent, value
from tests.tiers import examples
from tidu_cli.checking.numeric.laws import check_numerically
from tidu_cli.checking.numeric.trials import one_node_document
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.signal.sliding import Sliding
from tidu_cli.lax.vocabulary import BUILTIN

NAN, INF = math.nan, math.inf


@st.composite
def convolutions(draws, dtypes=("f64", "c128")):
    """A convolution with attrs of all kinds, and operands."""
    rank = draws(st.integers(0, 3))
    small = st.integers(1, 3)
    groups, batches = draws(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (1, 3)]))
    n, n_in = draws(st.integers(0, 2)) * batches, draws(st.integers(0, 3))
    n_out = draws(st.integers(0, 2)) * groups * batches
    entries = {
        name: draws(st.lists(small, min_size=rank, max_size=rank)) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    }
    places, kernel = (draws(st.lists(st.integers(k, 4), min_size=rank, max_size=rank)) for k in (0, 1))
    padding = []
    for k in range(rank):
        spread = (places[k] - 1) * entries["lhs_dilation"][k] + 1 if places[k] else 0
        low = draws(st.integers(-2, 3))
        padding.append([low, draws(st.integers(max(-2, -low - spread), 3))] if low + spread >= -3 else [0, 0])
        if sum(padding[-1]) + spread < 0:
            padding[-1] = [0, 0]
    specs = [draws(st.permutations(range(rank + 2))) for _ in range(3)]
    shapes = []
    for spec, sizes in zip(specs, ((n, n_in * groups, *places), (n_out, n_in, *kernel)), strict=False):
        shapes.append(tuple(sizes[spec.index(axis)] for axis in range(rank + 2)))
    attrs = conv(numbers(*specs), padding=padding, feature_group_count=groups, batch_group_count=batches, **entries)
    dtype = draws(st.sampled_from(dtypes))
    return attrs, draw(dtype, shapes[0], 1), draw(dtype, shapes[1], 2)


@settings(max_examples=examples(150), deadline=None)
@given(convolutions())
def test_convolutions_are_sums_over_windows_and_their_transposes_adjoint(case):
    attrs, lhs, rhs = case
    sample = Sample("conv_general_dilated", [lhs, rhs], attrs, convolved(attrs))
    (sums,) = apply(sample.case, [lhs, rhs])
    np.testing.assert_allclose(sums, np.asarray(sample.reference(lhs, rhs), sums.dtype), 1e-12, 1e-12)
    for mask in ((True, False), (False, True)):
        check_adjoint(sample, mask)


@settings(max_examples=examples(40), deadline=None)
@given(convolutions(("f64",)), st.integers(0, 3))
def test_batches_of_convolutions(case, size):
    attrs, lhs, rhs = case
    items = [[x + i for i in range(max(size, 1))] for x in (lhs, rhs)]
    check(make_case("conv_general_dilated", attrs, [type_of(lhs), type_of(rhs)]), items, size)


@settings(max_examples=examples(15), deadline=None)
@given(convolutions())
def test_derivatives_of_convolutions_of_both_orders(case):
    attrs, lhs, rhs = case
    document = one_node_document(make_case("conv_general_dilated", attrs, [type_of(lhs), type_of(rhs)]))
    for verdict in check_numerically(document, BUILTIN):
        assert verdict.ok, verdict


def test_transposes_of_a_convolution_are_convolutions():
    attrs = conv(numbers(range(4), range(4), range(4)), window_strides=[2, 1], padding=[[1, 1], [0, 2]])
    lhs, rhs = draw("f64", (2, 3, 7, 6), 1), draw("f64", (4, 3, 3, 2), 2)
    orders = Orders("conv_general_dilated", [lhs, rhs], **attrs)
    ct = draw("f64", value("conv_general_dilated", lhs, rhs, **attrs).shape, 3)
    directions = [draw("f64", x.shape, 4 + k) for k, x in enumerate((lhs, rhs))]
    # <ct, conv(t, rhs) + conv(lhs, u)> is bilinear: its second derivative along (t, u) is 2 <ct, conv(t, u)>.
    moved = orders.hvp(ct, directions)
    expected = 2 * inner(ct, value("conv_general_dilated", *directions, **attrs))
    assert sum(inner(t, m) for t, m in zip(directions, moved, strict=True)) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(orders.jvp(directions, directions), 2 * value("conv_general_dilated", *directions, **attrs), 1e-12)


def test_columns_are_made_a_piece_at_a_time():
    """All of them would take 9 times the memory of the operand, and more."""
    lhs, rhs = np.ones((8, 8, 128, 128)), np.ones((2, 8, 3, 3))
    attrs = conv(numbers(range(4), range(4), range(4)))
    case = make_case("conv_general_dilated", attrs, [type_of(lhs), type_of(rhs)])
    tracemalloc.start()
    try:
        apply(case, [lhs, rhs])
        assert tracemalloc.get_traced_memory()[1] < lhs.nbytes
        tracemalloc.reset_peak()
        transpose(
            make_case("conv_general_dilated", attrs, case.operands, (False, True)), [lhs, rhs], [np.ones(case.results[0].shape)]
        )
        assert tracemalloc.get_traced_memory()[1] < 3 * lhs.nbytes
    finally:
        tracemalloc.stop()


@st.composite
def windows(draws):
    """A shape and attrs of windows over it."""
    shape = draws(st.lists(st.integers(0, 6), max_size=3))
    rank = len(shape)
    counts = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
    attrs = window(draws(st.lists(st.integers(1, 5), min_size=rank, max_size=rank)))
    attrs |= {name: draws(counts) for name in ("window_strides", "base_dilation", "window_dilation")}
    attrs["padding"] = [draws(st.sampled_from([[0, 0], [2, 1], [0, 3], [-1, 1], [1, -1], [4, 4]])) if n else [1, 2] for n in shape]
    return tuple(shape), attrs


@settings(max_examples=examples(150), deadline=None)
@given(windows(), st.sampled_from(["f64", "c128"]))
def test_sums_of_windows_and_their_transposes(case, dtype):
    shape, attrs = case
    x = draw(dtype, shape)
    sample = Sample("reduce_window_sum", [x], attrs, over_windows(attrs, sum))
    np.testing.assert_allclose(apply(sample.case, [x])[0], np.asarray(sample.reference(x), x.dtype), 1e-13, 1e-13)
    check_adjoint(sample, (True,))


@settings(max_examples=examples(150), deadline=None)
@given(windows(), st.sampled_from(["max", "min"]))
def test_tangents_of_extremes_are_those_of_the_first_that_is_one(case, which):
    shape, attrs = case
    # Few values, so that there are ties; numbered, so that it shows which element is taken.
    x = np.random.default_rng(0).integers(0, 3, shape).astype(float)
    t = np.arange(1.0, x.size + 1).reshape(shape)
    prefers = {"max": lambda k: x.flat[int(k) - 1], "min": lambda k: -x.flat[int(k) - 1]}[which]
    expected = over_windows(attrs, lambda elements: max(elements, key=prefers, default=0))(t)
    tangents = tangent(f"reduce_window_{which}", [x], [t], **attrs)
    assert tangents.tolist() == expected.tolist()
    orders = Orders(f"reduce_window_{which}", [x], **attrs)
    ct = draw("f64", tangents.shape, 5)
    assert inner(ct, tangents) == pytest.approx(inner(orders.vjp(ct)[0], t), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("op", ["reduce_window_max", "reduce_window_min"])
def test_a_nan_is_chosen_and_padding_never(op):
    x, t = np.array([[1.0, NAN, NAN], [-INF, INF, 2.0]]), np.arange(1.0, 7).reshape(2, 3)
    assert tangent(op, [x], [t], **window([1, 3])).tolist() == [[2.0], [4.0 if op.endswith("min") else 5.0]]
    nothing = np.array([-INF if op.endswith("max") else INF])
    assert tangent(op, [nothing], [[7.0]], **window([2], padding=[[1, 1]])).tolist() == [7.0, 7.0]
    assert tangent(op, [nothing], [[7.0]], **window([1], padding=[[1, 1]])).tolist() == [0.0, 7.0, 0.0]


def test_windows_of_integers_have_derivatives():
    x = np.array([3, 1, 4, 1, 5])
    assert tangent("reduce_window_max", [x], [np.arange(5.0)], **window([2])).tolist() == [0.0, 2.0, 2.0, 4.0]
    assert tangent("reduce_window_sum", [x], [np.arange(5.0)], **window([2])).tolist() == [1.0, 3.0, 5.0, 7.0]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sums_of_half_precision_accumulate_in_single(dtype):
    x = np.ones(5000).astype(draw(dtype, ()).dtype)
    assert value("reduce_window_sum", x, **window([5000]))[0] == np.float64(5000).astype(x.dtype)


LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=3)


@settings(max_examples=examples(60), deadline=None)
@given(LENGTHS, st.integers(0, 3))
def test_parseval(lengths, batch):
    x, n = draw("c128", (batch, *lengths)), math.prod(lengths)
    y = value("fft", x, fft_type="FFT", fft_lengths=lengths)
    assert inner(y, y) == pytest.approx(n * inner(x, x), rel=1e-13)
    np.testing.assert_allclose(value("fft", y, fft_type="IFFT", fft_lengths=lengths), x, 1e-13, 1e-13)
    half = value("fft", x.real, fft_type="RFFT", fft_lengths=lengths)
    np.testing.assert_allclose(value("fft", half, fft_type="IRFFT", fft_lengths=lengths), x.real, 1e-13, 1e-13)


@settings(max_examples=examples(60), deadline=None)
@given(LENGTHS, st.sampled_from(["FFT", "IFFT", "RFFT", "IRFFT"]))
def test_transforms_and_their_adjoints_agree_with_numpy(lengths, kind):
    sizes = (2, *lengths[:-1], lengths[-1] // 2 + 1) if kind == "IRFFT" else (2, *lengths)
    x = draw("f64" if kind == "RFFT" else "c128", sizes)
    attrs = {"fft_type": kind, "fft_lengths": lengths}
    axes = tuple(range(-len(lengths), 0))
    expected = getattr(np.fft, f"{kind.lower()}n")(x, lengths, axes)
    np.testing.assert_allclose(value("fft", x, **attrs), expected, 1e-13, 1e-13)
    check_adjoint(Sample("fft", [x], attrs), (True,))


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 20), st.integers(1, 20))
def test_convolution_theorem(n, m):
    x, w = draw("f64", (1, 1, n), 1), draw("f64", (1, 1, m), 2)
    attrs = conv(numbers(range(3), range(3), range(3)), padding=[[m - 1, m - 1]])
    whole = value("conv_general_dilated", x, w[..., ::-1].copy(), **attrs)
    size = n + m - 1
    one, other = (np.pad(a, [(0, 0), (0, 0), (0, size - a.shape[-1])]) for a in (x, w))
    transforms = {"fft_type": "RFFT", "fft_lengths": [size]}
    product = value("fft", one, **transforms) * value("fft", other, **transforms)
    np.testing.assert_allclose(value("fft", product, fft_type="IRFFT", fft_lengths=[size]), whole, 1e-12, 1e-12)


PLAIN = conv(numbers(range(3), range(3), range(3)))


@pytest.mark.parametrize(
    ("op", "attrs", "operands", "message"),
    [
        ("fft", {"fft_type": "FFT", "fft_lengths": [3]}, ["f64[3]"], r"takes c64 or c128, got f64\[3\]; use RFFT"),
        ("fft", {"fft_type": "RFFT", "fft_lengths": [3]}, ["c64[3]"], r"RFFT takes f32 or f64, got c64\[3\]"),
        ("fft", {"fft_type": "FFT", "fft_lengths": [3]}, ["c64[4]"], r"over last axes of \[3\], .* is c64\[4\]; use pad or"),
        ("fft", {"fft_type": "IRFFT", "fft_lengths": [2, 6]}, ["c64[2,6]"], r"over last axes of \[2, 4\]"),
        ("fft", {"fft_type": "FFT", "fft_lengths": [1, 3]}, ["c64[3]"], r"name 2 last axes; the operand c64\[3\] has 1"),
        ("fft", {"fft_type": "FFT", "fft_lengths": [0]}, ["c64[0]"], "attr 'fft_lengths"),
        ("fft", {"fft_type": "fft", "fft_lengths": [3]}, ["c64[3]"], "attr 'fft_type'"),
        ("conv_general_dilated", PLAIN, ["f64[1,2,5]", "f32[1,2,3]"], "type mismatch"),
        ("conv_general_dilated", PLAIN, ["f64[1,2,5]", "f64[1,3,3]"], r"2 features \(axis 1\); rhs .* 3 \(axis 1\); transpose"),
        ("conv_general_dilated", PLAIN, ["f64[1,2,5]", "f64[1,2,0]"], r"the window of rhs f64\[1,2,0\] is empty"),
        ("conv_general_dilated", conv(numbers((0, 1, 3), (0, 1, 2), (0, 1, 2))), ["f64[1,2,5]", "f64[1,2,3]"], "axis 3 is out"),
        ("conv_general_dilated", conv(numbers((0, 1, 1), (0, 1, 2), (0, 1, 2))), ["f64[1,2,5]", "f64[1,2,3]"], "axes repeat"),
        ("conv_general_dilated", PLAIN, ["f64[2,5]", "f64[1,2]"], r"lhs_spec .* names 3 axes, lhs f64\[2,5\] has 2; use"),
        ("conv_general_dilated", PLAIN | {"padding": []}, ["f64[1,2,5]", "f64[1,2,3]"], "padding has 0 entries"),
        ("conv_general_dilated", PLAIN | {"padding": [[-3, -3]]}, ["f64[1,2,5]", "f64[1,2,3]"], "takes more from lhs than the 5"),
        ("conv_general_dilated", PLAIN | {"feature_group_count": 2}, ["f64[1,4,5]", "f64[3,2,3]"], "group_count 2 does not"),
        ("conv_general_dilated", PLAIN | {"batch_group_count": 2}, ["f64[3,4,5]", "f64[2,4,3]"], "2 does not divide the batch"),
        (
            "conv_general_dilated",
            PLAIN | {"batch_group_count": 2, "feature_group_count": 2},
            ["f64[2,4,5]", "f64[2,2,3]"],
            "one of them must be 1",
        ),
        ("reduce_window_sum", window([2]), ["f64[2,3]"], r"has 1 entries for the operand f64\[2,3\] of rank 2"),
        ("reduce_window_sum", window([2]), ["bool[3]"], "takes numbers"),
        ("reduce_window_max", window([2]), ["c64[3]"], "takes integers, floats and bools"),
        ("reduce_window_max", window([0]), ["f64[3]"], "attr 'window_dimensions"),
        ("reduce_window_max", window([2], padding=[[-2, -2]]), ["f64[3]"], "more from the operand than the 3 places along"),
        ("select_and_gather_add", window([2]) | {"select_prim": "ge"}, ["f64[3]", "f64[4]"], "must have one shape"),
        ("select_and_gather_add", window([2]) | {"select_prim": "gt"}, ["f64[3]", "f64[3]"], "attr 'select_prim'"),
        ("select_and_scatter_add", window([2]) | {"select_prim": "ge"}, ["f64[3]", "f64[3]"], r"windows of .* are \[2\]"),
        ("select_and_scatter_add", window([2]) | {"select_prim": "ge"}, ["f64[2]", "c128[3]"], "in no order"),
    ],
)  # fmt: skip
def test_messages(op, attrs, operands, message):
    with pytest.raises(TypeRuleError, match=message):
        make_case(op, attrs, map(parse_type, operands))


@settings(max_examples=examples(200), deadline=None)
@given(*[st.integers(0, 6)] * 2, *[st.integers(1, 5)] * 3, *[st.integers(-3, 4)] * 2, st.integers(1, 30))
def test_pairs_are_counted_whatever_the_number_of_phases(n, window, stride, dilation, extra, low, high, base):
    along = Sliding(n, window + 1, stride, low, high, base, dilation * extra)
    _, pairs = meets((n,), (window + 1,), (stride,), ((low, high),), (base,), (dilation * extra,))
    assert along.padded < 0 or along.n_pairs == sum(map(len, pairs.values()))
