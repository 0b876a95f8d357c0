"""Bitwise operations: logic on bools and on the bits of integers, shifts, and counting bits.

As in XLA, a shift by as many bits as there are, or more, moves all of them out; a negative amount counts as such.
"""

from __future__ import annotations

from typing import Any

from tidu_cli.graph.types import INTEGERS, ITEMSIZE, SIGNED
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.rules.contract import Kernel, Primitive, Types
from tidu_cli.rules.families import binary, numpy_function, unary

_LOGICAL = INTEGERS | {"bool"}


def _unsigned(np: Any, dtype: str) -> Any:
    return np.dtype(f"u{ITEMSIZE[dtype]}")


def _shift_right_logical_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    unsigned, dtype = _unsigned(np, operands[0].dtype), numpy_dtype(np, operands[0].dtype)
    return lambda x, y: np.right_shift(x.view(unsigned), y.view(unsigned)).view(dtype)


def _shift_right_arithmetic_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    # The highest bit counts as the sign also of unsigned integers.
    dtype = numpy_dtype(np, operands[0].dtype)
    if operands[0].dtype in SIGNED:
        return numpy_function("right_shift")(np, attrs, operands, results)
    signed, most = np.dtype(f"i{dtype.itemsize}"), dtype.type(8 * dtype.itemsize - 1)
    return lambda x, y: np.right_shift(x.view(signed), np.minimum(y, most).view(signed)).view(dtype)


def _population_count_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    unsigned, dtype = _unsigned(np, operands[0].dtype), numpy_dtype(np, operands[0].dtype)
    return lambda x: np.bitwise_count(x.view(unsigned)).astype(dtype)


def _clz_kernel(np: Any, attrs: Any, operands: Types, results: Types) -> Kernel:
    unsigned, dtype = _unsigned(np, operands[0].dtype), numpy_dtype(np, operands[0].dtype)
    bits = 8 * dtype.itemsize

    def clz(x: Any) -> Any:
        # The highest 1 is smeared over all lower bits, and what remains is counted.
        x, reach = x.view(unsigned), 1
        while reach < bits:
            x, reach = x | (x >> unsigned.type(reach)), 2 * reach
        return np.bitwise_count(~x).astype(dtype)

    return clz


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
        kernel=_shift_right_logical_kernel,
        within=((0, 8),),
    ),
    binary(
        "shift_right_arithmetic",
        INTEGERS,
        "⌊x / 2^y⌋, x as signed",
        "shift to the right; copies of the sign bit come in",
        kernel=_shift_right_arithmetic_kernel,
        within=((0, 8),),
    ),
    unary("population_count", INTEGERS, "|x|₁", "number of bits set", kernel=_population_count_kernel),
    unary("clz", INTEGERS, "bits above the highest bit set", "count of leading zeros", kernel=_clz_kernel),
)
