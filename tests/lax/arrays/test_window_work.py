"""The memory that window kernels hold is estimated before they run: dilation and padding enlarge small arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.cli.running import document, graph
from tests.limits.bounded import refused
from tests.peaks import peak
from tests.tiers import examples
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.signal.window_reduction import window, windows_of
from tidu_cli.lax.vocabulary import BUILTIN

REDUCTIONS = ("reduce_window_sum", "reduce_window_max", "reduce_window_min")
SELECTIONS = ("select_and_gather_add", "select_and_scatter_add")

SMALL = 2**15
"""Bytes beside arrays: Python's objects, and what NumPy buffers."""

MOST = 2**17
"""Places, so that a case is soon done."""


@st.composite
def cases(draw: st.DrawFn):
    rank = draw(st.integers(1, 2))

    def each(most: int) -> list[int]:
        return draw(st.lists(st.integers(1, most), min_size=rank, max_size=rank))

    shape = tuple(each(40))
    padding = draw(st.lists(st.tuples(*2 * [st.integers(-1, 300 // rank)]), min_size=rank, max_size=rank))
    attrs = window(each(60), window_strides=each(4), padding=padding, base_dilation=each(1000 // rank**5), window_dilation=each(20))
    op, dtype = draw(st.sampled_from([*REDUCTIONS, *SELECTIONS])), draw(st.sampled_from(["f64", "f32", "f16"]))
    if op in SELECTIONS:
        attrs["select_prim"] = draw(st.sampled_from(["ge", "le"]))
    return op, TensorType(dtype, shape), attrs


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_kernels_hold_no_more_than_they_tell(case):
    op, operand, attrs = case
    primitive = BUILTIN[op]
    attrs = primitive.domain.attrs(**attrs)
    try:
        axes = windows_of(attrs, operand)
    except TypeRuleError:
        reject()
    if np.prod([along.padded for along in axes]) > MOST:
        reject()
    counts = operand.with_shape(tuple(along.count for along in axes))
    types = {"select_and_scatter_add": (counts, operand), "select_and_gather_add": (operand, operand)}.get(op, (operand,))
    results = primitive.domain.types(attrs, types)
    arrays = [np.ones(t.shape, {"f64": "f8", "f32": "f4", "f16": "f2"}[t.dtype]) for t in types]

    def run():
        return primitive.evaluation.kernel(np, attrs, types, results)(*arrays)

    run()  # which may import what it needs
    held = peak(run)
    assert held <= primitive.evaluation.work(attrs, types, results) + results[0].nbytes + SMALL


@pytest.mark.check
@pytest.mark.parametrize("op", REDUCTIONS)
def test_an_operand_that_is_spread_far_counts_as_such(op):
    attrs = window([2], window_strides=[2**21], base_dilation=[2**21])
    spread = document(graph(inputs=[("x", "f64[9]")], outputs=[("y", 1)]) | {"nodes": [{"op": op, "inputs": [0], "attrs": attrs}]})
    line = refused("eval", "-", "--set", "x=[1,2,3,4,5,6,7,8,9]", "--max-memory", "100M", input=spread)
    assert "evaluation would take about " in line and "more than the limit of 100 MiB" in line


@settings(max_examples=examples(15), deadline=None)
@given(
    st.integers(2, 9),
    st.integers(5_000, 40_000),
    st.integers(1, 40_000),
    st.integers(1, 5),
    st.tuples(*2 * [st.integers(-9, 90_000)]),
)
def test_convolutions_tell_of_zeros_between_elements_and_around_them(n, base, stride, window, padding):
    primitive = BUILTIN["conv_general_dilated"]
    lines = {"lhs_spec": [0, 1, 2], "rhs_spec": [0, 1, 2], "out_spec": [0, 1, 2]}
    attrs = {"window_strides": [stride], "padding": [padding], "lhs_dilation": [base], "rhs_dilation": [1]}
    counts = {"feature_group_count": 1, "batch_group_count": 1, "dimension_numbers": lines, "preferred_element_type": None}
    made = primitive.domain.attrs(**attrs, **counts)
    types = TensorType("f64", (1, 2, n)), TensorType("f64", (1, 2, window))
    results = primitive.domain.types(made, types)
    arrays = [np.ones(t.shape) for t in types]
    held = peak(lambda: primitive.evaluation.kernel(np, made, types, results)(*arrays))
    columns = 2 * 2**20
    assert held <= primitive.evaluation.work(made, types, results) + 4 * results[0].nbytes + columns
