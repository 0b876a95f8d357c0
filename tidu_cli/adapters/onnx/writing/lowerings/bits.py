"""What counts or combines the bits of integers, which ONNX has operators for one by one alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidu_cli.adapters.onnx.writing.lowering import Lowering, Rule
from tidu_cli.graph.types import SIGNED


def _bits(low: Lowering) -> int:
    return int(low.operand.dtype[1:])


def _as_u64(low: Lowering, x: str) -> str:
    """The bits of integers as u64, zeros above."""
    dtype = low.operand.dtype
    unsigned = low.cast(x, f"u{dtype[1:]}") if dtype in SIGNED else x
    return unsigned if dtype[1:] == "64" else low.cast(unsigned, "u64")


def _right(low: Lowering, x: str, n: int) -> str:
    return low.emit("BitShift", x, low.number(n, "u64"), direction="RIGHT")


def _counted(low: Lowering, x: str) -> str:
    """The bits set of u64: sums of neighbours, twice as wide in each step."""
    for n, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F), (8, 0x00FF00FF00FF00FF)):
        kept = low.number(mask, "u64")
        x = low.emit("Add", low.emit("BitwiseAnd", x, kept), low.emit("BitwiseAnd", _right(low, x, n), kept))
    x = low.emit("Add", x, _right(low, x, 16))
    return low.emit("BitwiseAnd", low.emit("Add", x, _right(low, x, 32)), low.number(0x7F, "u64"))


def _population_count(low: Lowering, x: str) -> str:
    return low.cast(_counted(low, _as_u64(low, x)), low.result.dtype)


def _leading_zeros(low: Lowering, x: str) -> str:
    """All bits less those from the highest one on, to which it is smeared."""
    smeared = _as_u64(low, x)
    for n in (1, 2, 4, 8, 16, 32):
        if n < _bits(low):
            smeared = low.emit("BitwiseOr", smeared, _right(low, smeared, n))
    return low.cast(low.emit("Sub", low.number(_bits(low), "u64"), _counted(low, smeared)), low.result.dtype)


def _shift_right_arithmetic(low: Lowering, x: str, y: str) -> str:
    """By the logical shift of the complement of what is negative. The highest bit is a sign of unsigned integers, too."""
    bits, unsigned = _bits(low), f"u{_bits(low)}"
    x, y = (low.cast(v, unsigned) if low.operand.dtype != unsigned else v for v in (x, y))
    negative = low.emit("GreaterOrEqual", x, low.number(2 ** (bits - 1), unsigned))
    size = low.where(negative, low.emit("BitwiseNot", x), x, unsigned)
    most = low.number(bits - 1, unsigned)
    shift = low.where(low.emit("Greater", y, most), most, y, unsigned)  # of what has no sign bit nothing is left then
    found = low.emit("BitShift", size, shift, direction="RIGHT")
    found = low.where(negative, low.emit("BitwiseNot", found), found, unsigned)
    return low.cast(found, low.operand.dtype) if low.operand.dtype != unsigned else found


def reduced_bits(low: Lowering, x: str, op_type: str) -> str:
    """Integers whose bits are taken apart, reduced with others in their place, and put together."""
    rank, bits = low.operand.rank, _bits(low)
    powers = low.body.constant(np.uint64(1) << np.arange(bits, dtype=np.uint64))
    apart = low.emit("BitwiseAnd", low.emit("Unsqueeze", _as_u64(low, x), low.ints([rank])), powers)
    is_set = low.cast(low.emit("Not", low.emit("Equal", apart, low.number(0, "u64"))), "i32")
    found = low.emit(op_type, is_set, low.ints(low.attrs.axes), keepdims=0)
    found = low.emit("Mod", found, low.number(2, "i32")) if op_type == "ReduceSum" else found
    axis = low.result.rank
    parts = []
    for start in range(0, bits, 32):  # as runtimes sum in floats, of 53 bits
        part = low.emit("Slice", low.cast(found, "i64"), low.ints([start]), low.ints([start + 32]), low.ints([axis]))
        of_part = low.body.constant(2 ** np.arange(min(bits, 32)), "i64")
        total = low.emit("ReduceSum", low.emit("Mul", part, of_part), low.ints([axis]), keepdims=0)
        parts.append(low.emit("Mul", total, low.number(2**start, "i64")))
    return low.cast(low.emit("Add", *parts) if len(parts) > 1 else parts[0], low.result.dtype)


LOWERINGS: Mapping[str, Rule] = {
    "clz": _leading_zeros,
    "population_count": _population_count,
    "shift_right_arithmetic": _shift_right_arithmetic,
}
