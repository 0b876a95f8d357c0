"""Gathers and scatters of the forms that models have are one operator of rows or elements, with the values of documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.onnx.writing.lowered import by_reference, by_runtime, by_tidu, case, checked_model, difference, drawn
from tidu_cli.adapters.onnx.writing.model import OPSET
from tidu_cli.adapters.onnx.writing.templates import operators
from tidu_cli.graph.graph import Case
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers, ScatterDimensionNumbers
from tidu_cli.lax.vocabulary import BUILTIN

FORMS: dict[str, tuple[Any, ...]] = {
    "elements along an axis": ([3, 4, 2], [3, 5, 2, 1], [], [1], [1], [0, 2], [0, 2], [1, 1, 1], "GatherElements ScatterElements"),
    "kept elements along an axis": ([3, 4], [3, 5, 1], [2], [], [1], [0], [0], [1, 1], "GatherElements ScatterElements"),
    "rows": ([4, 3], [5, 2, 1], [2], [0], [0], [], [], [1, 3], "Gather ScatterND"),
    "columns in front": ([3, 4], [5, 1], [0], [1], [1], [], [], [3, 1], "Gather ScatterND"),
    "kept rows": ([4, 3], [5, 1], [0, 2], [], [0], [], [], [1, 3], "Gather ScatterND"),
    "rows of a batch": ([2, 4, 3], [5, 2, 1], [1], [1], [1], [0], [1], [1, 1, 3], "Gather ScatterND"),
    "pixels of a batch": ([2, 3, 4, 5], [2, 6, 2], [1], [2, 3], [2, 3], [0], [0], [1, 3, 1, 1], "Gather ScatterND"),
    "elements by two axes": ([2, 4], [5, 2], [], [0, 1], [1, 0], [], [], [1, 1], "GatherElements ScatterND"),
    "elements of a turned batch": ([3, 4], [5, 3, 1], [], [1], [1], [0], [1], [1, 1], "GatherElements ScatterND"),
    "parts of rows": ([4, 3], [5, 1], [1], [0], [0], [], [], [1, 2], "GatherND ScatterND"),
}
"""Shapes of operand and indices, dimension numbers in their order, sizes of windows, and the operators of gather and scatter."""

MODES = ("clip", "fill", "promise_in_bounds")


def form(name: str, op: str, mode: str) -> tuple[Case, list[Any]]:
    """The case of a form, and operands of which some are out of range where the mode says what comes of them."""
    operand, indices, offsets, dropped, axes, ours, theirs, windows, _ = FORMS[name]
    keys = [*(GatherDimensionNumbers if op == "gather" else ScatterDimensionNumbers).__annotations__]
    attrs: dict[str, Any] = {
        "dimension_numbers": dict(zip(keys, (offsets, dropped, axes, ours, theirs), strict=True)),
        "mode": mode,
    }
    types = [f"f32{operand}".replace(" ", ""), f"i64{indices}".replace(" ", "")]
    if op == "gather":
        attrs["slice_sizes"] = windows
    else:
        kept = iter(n for d, n in enumerate(windows) if d not in dropped and d not in ours)
        batch = iter(indices[:-1])
        rank = len(offsets) + len(indices) - 1
        types.append(f"f32{[next(kept) if k in offsets else next(batch) for k in range(rank)]}".replace(" ", ""))
    given = case(op, attrs, *types)
    outside = 0 if mode == "promise_in_bounds" else 1
    most = [operand[d] - windows[d] for d in axes]
    places = np.random.default_rng(7).integers(-outside, np.add(most, outside + 1), indices)
    return given, drawn(given, {1: places})


@pytest.mark.parametrize("op", ["gather", "scatter-add", "scatter-mul", "scatter-max", "scatter-sub"])
@pytest.mark.parametrize("name", FORMS)
def test_values_are_those_of_documents(name: str, op: str) -> None:
    for mode in MODES:
        given, operands = form(name, op, mode)
        model, due = checked_model(given), by_tidu(given, operands)
        for other in (by_reference, by_runtime):
            assert not difference(other(model, operands), due), f"{other.__name__}: {mode}"


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_an_operator_of_rows_or_elements(name: str) -> None:
    for op, operator in zip(("gather", "scatter-add"), FORMS[name][-1].split(), strict=True):
        names = operators(form(name, op, "promise_in_bounds")[0], OPSET, BUILTIN)
        assert [n for n in names if n.startswith(("Gather", "Scatter"))] == [operator], names
        assert name == "parts of rows" or not {"Expand", "Concat", "Where"} & set(names), names


def test_parts_are_replaced_with_a_vector_of_places_an_axis() -> None:
    for shape, part in (([4, 5], [2, 5]), ([4, 5], [4, 2]), ([2, 3, 4], [1, 3, 2]), ([2, 3], [2, 3]), ([3, 4, 2], [2, 1, 2])):
        types = [f"f32{shape}", f"f32{part}", *["i32[]"] * len(shape)]
        given = case("dynamic_update_slice", {}, *[t.replace(" ", "") for t in types])
        for start in (-1, 1, 9):
            operands = drawn(given, {2 + k: start for k in range(len(shape))})
            assert not difference(by_runtime(checked_model(given), operands), by_tidu(given, operands)), (shape, part, start)
    large = case("dynamic_update_slice", {}, "f32[64,64,64]", "f32[60,64,60]", *["i32[]"] * 3)
    assert len(checked_model(large).SerializeToString()) < 8000


@pytest.mark.parametrize("prim", ["ge", "le"])
@pytest.mark.parametrize(
    ("shape", "window", "strides", "op"),
    [
        ([2, 3, 4, 5], [1, 1, 2, 2], [1, 1, 2, 3], "MaxUnpool"),
        ([2, 6, 3, 4], [1, 3, 1, 2], [1, 3, 1, 2], "MaxUnpool"),
        ([6, 2], [3, 1], [3, 1], "MaxUnpool"),
        ([7, 2], [3, 1], [3, 1], "ScatterElements"),
        ([2, 3, 5, 5], [1, 1, 3, 3], [1, 1, 2, 2], "ScatterElements"),
    ],
    ids=str,
)
def test_windows_that_lie_apart_give_back_by_one_operator(
    shape: list[int], window: list[int], strides: list[int], op: str, prim: str
) -> None:
    windows = [(n - w) // s + 1 for n, w, s in zip(shape, window, strides, strict=True)]
    padding = [[0, 0] for _ in shape]
    attrs = {"select_prim": prim, "window_dimensions": window, "window_strides": strides, "padding": padding}
    given = case("select_and_scatter_add", attrs, *[f"f32{s}".replace(" ", "") for s in (windows, shape)])
    operands = drawn(given, {})
    operands[1][...] = np.round(operands[1])  # ties, at which the first element counts
    due = by_tidu(given, operands)
    model = checked_model(given)
    for run in (by_reference, by_runtime):
        assert not difference(run(model, operands), due)
    assert op in operators(given, OPSET, BUILTIN)
