"""Counts of operations against those of XLA, where the conventions are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.lax.sampling.signal_samples import NCW, conv, window
from tidu_cli.adapters.jax.lowering.functions import jax_function
from tidu_cli.graph.types import parse_type
from tidu_cli.lax.vocabulary import BUILTIN

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]


@pytest.mark.parametrize(
    ("op", "operands", "attrs"),
    [
        *((op, ["f64[3,4]"] * n, {}) for op, n in (("add", 2), ("mul", 2), ("div", 2), ("neg", 1), ("max", 2), ("lt", 2))),
        ("integer_pow", ["f64[3]"], {"y": 5}),
        ("integer_pow", ["f64[3]"], {"y": -3}),
        ("dot_general", ["f64[3,4]", "f64[4,7]"], {"dimension_numbers": [[[1], [0]], [[], []]]}),
        ("dot_general", ["f64[5,3,4]", "f64[5,4,7]"], {"dimension_numbers": [[[2], [1]], [[0], [0]]]}),
        ("reduce_sum", ["f64[4,5]"], {"axes": [1]}),
        ("reduce_max", ["f64[4,5,2]"], {"axes": [0, 2]}),
        ("reshape", ["f64[4,5]"], {"new_sizes": [20]}),
        ("transpose", ["f64[4,5]"], {"permutation": [1, 0]}),
        ("conv_general_dilated", ["f64[2,3,6]", "f64[4,3,2]"], conv(NCW, padding=[[1, 1]], window_strides=[2])),
        ("conv_general_dilated", ["f64[2,3,6]", "f64[4,3,2]"], conv(NCW, lhs_dilation=[3], rhs_dilation=[2], padding=[[1, 2]])),
        ("conv_general_dilated", ["f64[2,6,6]", "f64[4,3,2]"], conv(NCW, feature_group_count=2)),
        ("reduce_window_sum", ["f64[6,5]"], window([2, 3])),
    ],
)
def test_xla_counts_alike(jax: Any, op: str, operands: list[str], attrs: Mapping[str, object]) -> None:
    case = BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, [parse_type(t) for t in operands])
    arrays = [jax.ShapeDtypeStruct(t.shape, "float64") for t in case.operands]
    costs = jax.jit(jax_function(case)).lower(*arrays).cost_analysis() or {}
    assert BUILTIN[op].evaluation.flops(case.attrs, case.operands, case.results) == costs.get("flops", 0)
