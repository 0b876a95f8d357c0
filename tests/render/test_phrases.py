"""Words for operations: that formulas mean what they say, and that all operations have some."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.lax.sampling.samples import by_op
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.render.phrases import array_phrase, attrs_label, phrase


def case_of(op, operands, mask=None, **attrs):
    return BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), mask, [parse_value_type(t) for t in operands])


def computed(formula, operands):
    """The value of a formula of a, b and c as Python and NumPy read it, with matrices that are turned."""
    names = dict(zip("abc", operands, strict=False))
    turned = {f"{name}_T": np.swapaxes(x, -1, -2) for name, x in names.items() if x.ndim > 1}
    return eval(re.sub(r"([abc])ᵀ", r"\1_T", formula).replace("·", "*"), {}, names | turned)


WRITTEN = re.compile(r"[abc](ᵀ?( @ [abc]ᵀ?)?|\[[\d:, ]*\])")


@pytest.mark.parametrize("op", ["dot_general", "slice", "transpose"])
def test_products_and_slices_are_what_they_say(op):
    for sample in by_op()[op]:
        if sample.case.operands[0].dtype == "f64":
            require_what_it_says(sample)


def require_what_it_says(sample):
    case = sample.case
    formula = phrase(case, "abc"[: len(case.operands)], BUILTIN).formula
    if WRITTEN.fullmatch(formula):
        value = computed(formula, sample.operands)
        kernel = BUILTIN[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)
        np.testing.assert_allclose(value, kernel(*sample.operands), rtol=1e-12)


@pytest.mark.parametrize(
    ("op", "operands", "attrs", "formula", "what"),
    [
        ("dot_general", ["f64[4,3]", "f64[3]"], {"dimension_numbers": [[[1], [0]], [[], []]]}, "a @ b", "matrix product"),
        ("dot_general", ["f64[4,3]", "f64[4]"], {"dimension_numbers": [[[0], [0]], [[], []]]}, "aᵀ @ b", "matrix product"),
        ("dot_general", ["f64[3]", "f64[4,3]"], {"dimension_numbers": [[[0], [1]], [[], []]]}, "a @ bᵀ", "matrix product"),
        ("dot_general", ["f64[3]", "f64[3]"], {"dimension_numbers": [[[0], [0]], [[], []]]}, "a @ b", "inner product"),
        ("dot_general", ["f64[3]", "f64[4]"], {"dimension_numbers": [[[], []], [[], []]]}, "a ⊗ b", "outer product"),
        ("dot_general", ["f64[]", "f64[4]"], {"dimension_numbers": [[[], []], [[], []]]}, "a · b", "product"),
        (
            "dot_general",
            ["f64[5,2,3]", "f64[5,3,4]"],
            {"dimension_numbers": [[[2], [1]], [[0], [0]]]},
            "a @ b",
            "matrix product of each pair",
        ),
        (
            "dot_general",
            ["f64[5,3]", "f64[5,3]"],
            {"dimension_numbers": [[[1], [1]], [[0], [0]]]},
            "a · b",
            "product that sums axis 1 with 1, by axis 0",
        ),
        ("reduce_sum", ["f64[4,3]"], {"axes": [0]}, "sum(a) over axis 0", "summed over axis 0"),
        ("reduce_sum", ["f64[4,3]"], {"axes": [0, 1]}, "sum(a)", "summed"),
        (
            "broadcast_in_dim",
            ["f64[3]"],
            {"shape": [4, 3], "broadcast_dimensions": [1]},
            "a repeated to [4, 3]",
            "repeated along new axis 0",
        ),
        ("slice", ["f64[4,3]"], {"start_indices": [1, 0], "limit_indices": [3, 3]}, "a[1:3, :]", "slice [1:3, :]"),
        ("pad", ["f64[4]", "f64[]"], {"padding_config": [[1, 2, 0]]}, "a padded to [7] with b", "padded by 1 before and 2 after"),
        ("concatenate", ["f64[4]", "f64[2]"], {"dimension": 0}, "a, b joined", "joined along axis 0"),
        ("transpose", ["f64[4,3]"], {"permutation": [1, 0]}, "aᵀ", "transposed"),
        ("select_n", ["bool[]", "f64[]", "f64[]"], {}, "c if a else b", "taken where it is selected"),
        ("convert_element_type", ["f64[]"], {"new_dtype": "f32"}, "a as f32", "converted to f32"),
        ("constant", [], {"value": {"type": "f64[]", "data": [-0.5]}}, "-0.5", "constant"),
        ("mul", ["f64[]", "f64[]"], {}, "a · b", "product"),
        ("log1p", ["f64[]"], {}, "ln(1 + a)", "logarithm, accurate near a = 0"),
        ("lt", ["f64[]", "f64[]"], {}, "a < b", "whether a < b"),
    ],
)
def test_words(op, operands, attrs, formula, what):
    said = phrase(case_of(op, operands, **attrs), "abc"[: len(operands)], BUILTIN)
    assert (said.formula, said.what) == (formula, what)


ROWS = {"collapsed_slice_dims": [0], "offset_dims": [1], "start_index_map": [0]}
INTO_ROWS = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}


def test_a_gather_and_its_transpose():
    taken = case_of("gather", ["f64[4,3]", "i32[2,1]"], dimension_numbers=ROWS, slice_sizes=[1, 3], mode="clip")
    told = phrase(taken, ["x", "i"], BUILTIN)
    assert (told.formula, told.passing) == ("x taken at i", ", taken at the indices i")
    added = case_of("scatter-add", ["f64[4,3]", "i32[2,1]", "f64[2,3]"], dimension_numbers=INTO_ROWS, mode="clip")
    told = phrase(added, ["z", "i", "c0"], BUILTIN)
    assert (told.formula, told.passing) == ("c0 added to z at i", ", added at the indices i")
    assert attrs_label(added) == "added at the indices input 1"


@pytest.mark.parametrize("primitive", list(BUILTIN), ids=lambda p: p.name)
def test_every_operation_on_arrays_has_words(primitive):
    """No example of a primitive whose elements are not each computed alone is told by its op alone."""
    for _, case in example_cases(BUILTIN, primitive):
        names = [f"v{k}" for k in range(len(case.operands))]
        told = phrase(case, names, BUILTIN)
        assert told.formula and told.what and not re.search(r"\{\w+\}", told.formula + told.what), case
        shapes = {t.shape if isinstance(t, TensorType) else t for t in (*case.operands, *case.results)}
        assert (len(shapes) == 1 and len(case.results) == 1) or array_phrase(case, names) or case.op in EITHER, (
            f"{case} has no words"
        )
        if "input" not in told.what:
            assert attrs_label(case) is not None


EITHER = {"add", "add_cotangents", "div", "mul"}
"""Ops whose formula tells as much of records as of numbers."""
