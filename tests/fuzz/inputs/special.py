"""Special functions: near a point where formulas break, orders 0 to 3 are right, against mpmath with 70 digits."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target

if TYPE_CHECKING:
    from tests.build.scipy.special_points import Row

_ORDERS = 4
"""From 0 to 3."""
_FINEST = 60
"""Bits of how near to a point a case may be."""


@cache
def _rows() -> dict[str, Row]:
    from tests.build.scipy import special_functions, special_points  # with all of SciPy

    return special_points.rows() | special_functions.rows()


def make(choices: Choices) -> bytes:
    """The name of a row, one of its points, and a number near that."""
    name = choices.pick(list(_rows()))
    row = _rows()[name]
    finite = [x for x in row.points if abs(x) < math.inf]
    point = choices.pick(finite)
    distance = (row.reach(point) or 1.0) * 2.0 ** -(2 + choices.below(_FINEST)) * (1 + choices.below(256) / 256)
    ahead, behind = point + distance, point - distance
    x = behind if choices.one_in(2) else ahead
    if not min(finite) <= x <= max(finite):  # where the function may have ended
        x = behind if x == ahead else ahead
    return json.dumps([name, point, x]).encode()


def judge(case: bytes) -> str:
    """Compare all orders; where the table says that one is wrong, those below it."""
    from tests.build.scipy.special_points import faults

    name, point, x = json.loads(case)
    row = _rows()[name]
    if x in row.points or not min(row.points) <= x <= max(row.points):
        return "of the table, or outside"
    orders = min(_ORDERS, row.wrong.get(point, (_ORDERS, ""))[0])
    wrong = faults(replace(row, points=[x], at={}, wrong={}), orders)
    assert not wrong, f"{name} near {point}: {wrong}"
    return "right"


SPECIAL = Target("special", ".special", make, judge)
