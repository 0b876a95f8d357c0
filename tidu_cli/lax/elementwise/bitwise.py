"""Bitwise operations: logic on bools and on the bits of integers, shifts, and counting bits.

As in XLA, a shift by as many bits as there are, or more, moves all of them out; a negative amount counts as such.
"""

from __future__ import annotations

from typing import Any

from tidu_cli.graph.types import INTEGERS, SIGNED
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.families import binary, computed, numpy_function, unary

_LOGICAL = INTEGERS | {"bool"}


def _as_unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def _shift_right_arithmetic(np: Any, x: Any, y: Any) -> Any:
    # The highest bit counts as the sign also of unsigned integers.
    signed, most = f"i{x.dtype.itemsize}", x.dtype.type(8 * x.dtype.itemsize - 1)
    return np.right_shift(x.view(signed), np.minimum(y, most).view(signed)).view(x.dtype)


def _population_count(np: Any, x: Any) -> Any:
    return np.bitwise_count(_as_unsigned(x)).astype(x.dtype)


def _leading_zeros(np: Any, x: Any) -> Any:
    # The highest 1 is smeared over all lower bits, and what remains is counted.
    smeared, reach = _as_unsigned(x), 1
    while reach < 8 * x.dtype.itemsize:
        smeared, reach = smeared | (smeared >> smeared.dtype.type(reach)), 2 * reach
    return np.bitwise_count(~smeared).astype(x.dtype)


def _logic(name: str, function: str, symbol: str) -> Primitive:
    return binary(name, _LOGICAL, f"x {symbol} y", f"{name}, of integers bit by bit", kernel=function)


PRIMITIVES = (
    unary("not", _LOGICAL, "¬x", "not, of integers bit by bit", kernel="invert"),
    _logic("and", "bitwise_and", "∧"),
    _logic("or", "bitwise_or", "∨"),
    _logic("xor", "bitwise_xor", "⊻"),
    binary("shift_left", INTEGERS, "x · 2^y", "shift to the left; zeros come in", kernel="left_shift", within=((0, 8),)),
    binary(
        "shift_right_logical",
        INTEGERS,
        "⌊x / 2^y⌋, x as unsigned",
        "shift to the right; zeros come in",
        kernel=computed(lambda np, x, y: np.right_shift(_as_unsigned(x), _as_unsigned(y)).view(x.dtype)),
        within=((0, 8),),
    ),
    binary(
        "shift_right_arithmetic",
        INTEGERS,
        "⌊x / 2^y⌋, x as signed",
        "shift to the right; copies of the sign bit come in",
        kernel=numpy_function("right_shift", INTEGERS - SIGNED, _shift_right_arithmetic),
        within=((0, 8),),
    ),
    unary("population_count", INTEGERS, "|x|₁", "number of bits set", kernel=computed(_population_count)),
    unary("clz", INTEGERS, "bits above the highest bit set", "count of leading zeros", kernel=computed(_leading_zeros)),
)
