"""What `scipy.linalg` has."""

from __future__ import annotations

from typing import Any

from tidu_cli.build.arrays.array import Array
from tidu_cli.build.arrays.operands import Operand
from tidu_cli.build.numpy.linear_algebra import systems


def solve_triangular(
    a: Operand,
    b: Operand,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    return systems.solve_triangular(a, b, trans, lower, unit_diagonal)
