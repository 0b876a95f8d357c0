"""Counts of operations against counts by hand. (tests/jax has XLA's.)"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.lax.sampling.signal_samples import NCW, conv, window
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.graph.graph import Case
from tidu_cli.graph.text import parse_value_type
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Primitive

MATMUL = {"dimension_numbers": [[[1], [0]], [[], []]]}
BATCHED = {"dimension_numbers": [[[2], [1]], [[0], [0]]]}
ROWS = {"update_window_dims": [1], "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0]}
SCATTER = {"dimension_numbers": ROWS, "mode": "clip"}
FLOPS: list[tuple[str, list[str], Mapping[str, object], int]] = [
    ("add", ["f32[2,3]"] * 2, {}, 6),
    ("add", ["c64[2,3]"] * 2, {}, 2 * 6),
    ("mul", ["i32[2,3]"] * 2, {}, 6),
    ("mul", ["c64[2,3]"] * 2, {}, 6 * 6),
    ("div", ["c64[]"] * 2, {}, 11),
    ("square", ["c64[3]"], {}, 3 * 6),
    ("sin", ["f64[2,3]"], {}, 6),
    ("sin", ["c128[3]"], {}, 6),
    ("abs", ["c128[3]"], {}, 3),
    ("conj", ["c128[3]"], {}, 3),
    ("real", ["c128[3]"], {}, 0),
    ("add", ["f32[0,3]"] * 2, {}, 0),
    ("lt", ["f64[5]"] * 2, {}, 5),
    ("add", ["{a: f64[3], b: (c64[2], f32[])}"] * 2, {}, 3 + 2 * 2 + 1),
    ("sub", ["datetime[ms][4]"] * 2, {}, 4),
    ("difference", ["{at: datetime[s][2], z: c64[3], on: bool[]}"] * 2, {}, 2 + 2 * 3),
    ("retract", ["datetime[ms][4]", "duration[h][4]"], {}, 4),
    ("select_n", ["bool[5]", "f64[5]", "f64[5]"], {}, 5),
    ("select_n", ["i32[5]", *["f64[5]"] * 4], {}, 15),
    ("clamp", ["f64[]", "f64[5]", "f64[]"], {}, 10),
    *(
        ("integer_pow", ["f64[2]"], {"y": y}, 2 * n)
        for y, n in ((0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (15, 6), (-1, 1), (-3, 3))
    ),
    ("integer_pow", ["c64[]"], {"y": -3}, 2 * 6 + 11),
    ("reshape", ["f64[2,3]"], {"new_sizes": [6]}, 0),
    ("transpose", ["f64[2,3]"], {"permutation": [1, 0]}, 0),
    ("convert_element_type", ["f64[2,3]"], {"new_dtype": "f32"}, 0),
    ("broadcast_in_dim", ["f64[]"], {"shape": [9], "broadcast_dimensions": []}, 0),
    ("concatenate", ["f64[2]", "f64[3]"], {"dimension": 0}, 0),
    ("dot_general", ["f64[3,4]", "f64[4,7]"], MATMUL, 2 * 3 * 4 * 7),
    ("dot_general", ["c128[3,4]", "c128[4,7]"], MATMUL, 8 * 3 * 4 * 7),
    ("dot_general", ["f64[5,3,4]", "f64[5,4,7]"], BATCHED, 2 * 5 * 3 * 4 * 7),
    ("dot_general", ["f64[3,0]", "f64[0,7]"], MATMUL, 0),
    ("reduce_sum", ["f64[4,5]"], {"axes": [1]}, 4 * 4),
    ("reduce_sum", ["c64[4,5]"], {"axes": [0, 1]}, 2 * 19),
    ("reduce_prod", ["c64[4,5]"], {"axes": [0, 1]}, 6 * 19),
    ("reduce_sum", ["f64[4,0]"], {"axes": [1]}, 0),
    ("argmax", ["f64[4,5]"], {"axes": [1], "index_dtype": "i32"}, 16),
    ("cumsum", ["f64[4,5]"], {"axis": 1}, 4 * 4),
    ("cumprod", ["c64[4,5]"], {"axis": 0}, 6 * 3 * 5),
    ("cumsum", ["f64[4,0]"], {"axis": 1}, 0),
    ("sort", ["f64[3,8]"], {"dimension": 1}, 3 * 8 * 3),
    ("sort", ["f64[3,9]"], {"dimension": 1}, 3 * 9 * 4),
    ("sort", ["f64[1]"], {"dimension": 0}, 0),
    ("top_k", ["f64[8]"], {"k": 2, "axis": 0}, 24),
    ("scatter", ["f64[4,3]", "i32[2,1]", "f64[2,3]"], SCATTER, 0),
    ("scatter-add", ["c64[4,3]", "i32[2,1]", "c64[2,3]"], SCATTER, 2 * 6),
    ("scatter-mul", ["f64[4,3]", "i32[2,1]", "f64[2,3]"], SCATTER, 6),
    ("cholesky", ["f64[2,2]"], {}, 2 + 1 + 2),
    ("cholesky", ["f64[7,3,3]"], {}, 7 * (3 + 3 + 2 * 4)),
    ("cholesky", ["f64[6,6]"], {}, 6 + 15 + 2 * sum(j for i in range(6) for j in range(i + 1))),
    ("cholesky", ["c128[2,2]"], {}, 2 * 2 + 11 + 8),
    ("triangular_solve", ["f64[3,3]", "f64[3,5]"], {"left_side": True}, 5 * 3 * 3),
    ("triangular_solve", ["f64[3,3]", "f64[5,3]"], {"unit_diagonal": True}, 5 * 3 * 2),
    ("triangular_solve", ["c64[2,2,2]", "c64[2,4,2]"], {}, 2 * 4 * (2 * 11 + 8)),
    ("triangular_solve", ["f64[0,0]", "f64[5,0]"], {}, 0),
    ("lu", ["f64[2,2]"], {}, 1 + 2),
    ("lu", ["f64[3,3]"], {}, (2 + 1) + 2 * (4 + 1)),
    ("lu", ["f64[4,2]"], {}, (3 + 2) + 2 * 3),
    ("lu", ["f64[2,4]"], {}, 1 + 2 * 3),
    ("lu", ["c64[5,2,2]"], {}, 5 * (11 + 8)),
    ("lu", ["f64[0,3]"], {}, 0),
    ("lu_pivots_to_permutation", ["i32[3]"], {"permutation_size": 3}, 0),
    ("qr", ["f64[6,3]"], {"full_matrices": False}, 2 * (2 * 9 * (6 - 1))),
    ("qr", ["f64[6,3]"], {}, 2 * 9 * (6 - 1) + 4 * (36 * 3 - 6 * 9 + 9)),
    ("qr", ["c128[5,3,6]"], {}, 5 * 4 * (2 * 9 * (6 - 1) + 2 * 9 * (3 - 1))),
    ("svd", ["f64[4,3]"], {"compute_uv": False}, 4 * 4 * 9 - 36),
    ("svd", ["f64[3,4]"], {"full_matrices": False}, 6 * 4 * 9 + 20 * 27),
    ("pinv", ["f64[4,2]"], {"rtol": 1e-9}, 6 * 4 * 4 + 20 * 8),
    ("eigh", ["c64[7,2,2]"], {}, 7 * 4 * 9 * 8),
    ("eig", ["f64[2,2]"], {}, 25 * 8),
    ("eig", ["f64[2,2]"], {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}, 10 * 8),
    ("schur", ["f64[0,0]"], {}, 0),
    ("expm", ["f64[3,3]"], {}, 44 * 9),
    ("solve_sylvester", ["f64[2,2]", "f64[3,3]", "f64[2,3]"], {}, 25 * (8 + 27) + 5 * 6 * 5),
    ("fft", ["c128[3,8]"], {"fft_type": "FFT", "fft_lengths": [8]}, 3 * 5 * 8 * 3),
    ("fft", ["c128[4,8]"], {"fft_type": "IFFT", "fft_lengths": [4, 8]}, 5 * 32 * 5),
    ("fft", ["f64[8]"], {"fft_type": "RFFT", "fft_lengths": [8]}, 5 * 8 * 3 // 2),
    ("fft", ["f64[1]"], {"fft_type": "RFFT", "fft_lengths": [1]}, 0),
    ("conv_general_dilated", ["f64[2,3,6]", "f64[4,3,2]"], conv(NCW), 2 * 2 * 4 * 3 * 2 * 5),
    ("conv_general_dilated", ["c64[2,3,6]", "c64[4,3,2]"], conv(NCW), 8 * 2 * 4 * 3 * 2 * 5),
    ("conv_general_dilated", ["f64[2,3,6]", "f64[4,3,2]"], conv(NCW, padding=[[1, 1]]), 2 * 2 * 4 * 3 * (2 * 5 + 2)),
    ("conv_general_dilated", ["f64[2,3,3]", "f64[4,3,2]"], conv(NCW, lhs_dilation=[2]), 2 * 2 * 4 * 3 * 4),
    ("conv_general_dilated", ["f64[2,6,6]", "f64[4,3,2]"], conv(NCW, feature_group_count=2), 2 * 2 * 4 * 3 * 2 * 5),
    ("conv_general_dilated", ["f64[4,3,6]", "f64[4,3,2]"], conv(NCW, batch_group_count=2), 2 * 2 * 4 * 3 * 2 * 5),
    ("conv_general_dilated", ["f64[1,1,5]", "f64[1,1,9]"], conv(NCW, padding=[[8, 8]]), 2 * 5 * 9),
    ("conv_general_dilated", ["f64[1,1,2]", "f64[1,1,2]"], conv(NCW, lhs_dilation=[10**9], padding=[[1, 1]]), 2 * 4),
    ("conv_general_dilated", ["f64[1,1,3]", "f64[1,1,2]"], conv(NCW, lhs_dilation=[6], window_strides=[4]), 2 * 1),
    ("conv_general_dilated", ["f64[0,3,6]", "f64[4,3,2]"], conv(NCW), 0),
    ("reduce_window_sum", ["f64[6,5]"], window([2, 3]), 5 * 3 * 5),
    ("reduce_window_max", ["f64[6]"], window([3], padding=[[1, 1]], window_strides=[2]), 3 * 2),
    ("select_and_gather_add", ["f64[6]", "f64[6]"], window([3]) | {"select_prim": "ge"}, 4 * 2),
]


def case_of(op: str, operands: list[str], attrs: Mapping[str, object]) -> Case:
    return BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, [parse_value_type(t) for t in operands])


def flops_of(case: Case) -> int:
    return BUILTIN[case.op].evaluation.flops(case.attrs, case.operands, case.results)


def test_counts_by_hand() -> None:
    counted = [flops_of(case_of(op, operands, attrs)) for op, operands, attrs, _ in FLOPS]
    assert [row for row, n in zip(FLOPS, counted, strict=True) if n != row[-1]] == []


@pytest.mark.parametrize("primitive", list(BUILTIN), ids=lambda p: p.name)
def test_every_primitive_counts_its_operations(primitive: Primitive) -> None:
    for _, case in example_cases(BUILTIN, primitive):
        n = flops_of(case)
        assert type(n) is int and n >= 0
