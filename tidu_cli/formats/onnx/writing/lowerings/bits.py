"""Operations on bits, which ONNX shifts in unsigned integers only."""

from __future__ import annotations

from collections.abc import Mapping

from tidu_cli.formats.onnx.writing.lowering import Lowering, Rule


def _either(of_bools: str, of_integers: str) -> Rule:
    """One operator of bools, another of integers."""
    return lambda low, *operands: low.emit(of_bools if low.operand.dtype == "bool" else of_integers, *operands)


class Words:
    """Integers as unsigned ones of as many bits, held in a dtype in which runtimes shift."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.bits = int(low.operand.dtype[1:])
        self.unsigned = f"u{self.bits}"
        self.dtype = "u32" if self.bits == 16 else self.unsigned

    def of(self, x: str) -> str:
        """An operand in this form."""
        for dtype in dict.fromkeys((self.unsigned, self.dtype)):
            x = x if dtype == self.low.operand.dtype else self.low.cast(x, dtype)
        return x

    def restored(self, x: str) -> str:
        """A result from this form."""
        return x if self.dtype == self.low.operand.dtype else self.low.cast(x, self.low.operand.dtype)

    def number(self, value: int) -> str:
        """A constant."""
        return self.low.number(value, self.dtype)

    def right(self, x: str, by: str) -> str:
        """x, shifted; zeros come in."""
        return self.low.emit("BitShift", x, by, direction="RIGHT")


def _shift(direction: str) -> Rule:
    """Those by as many bits as there are, or more, give 0."""

    def rule(low: Lowering, x: str, y: str) -> str:
        words = Words(low)
        a, b = words.of(x), words.of(y)
        most = words.number(words.bits - 1)
        shifted = low.emit("BitShift", a, low.emit("Min", b, most), direction=direction)
        return words.restored(low.emit("Where", low.emit("Greater", b, most), words.number(0), shifted))

    return rule


def _shift_right_arithmetic(low: Lowering, x: str, y: str) -> str:
    """Of numbers with the highest bit set the bits are turned over, before and after."""
    words = Words(low)
    a, ones = words.of(x), words.number(2**words.bits - 1)
    by = low.emit("Min", words.of(y), words.number(words.bits - 1))
    turned = low.emit("BitwiseXor", words.right(low.emit("BitwiseXor", a, ones), by), ones)
    is_negative = low.emit("GreaterOrEqual", a, words.number(2 ** (words.bits - 1)))
    return words.restored(low.emit("Where", is_negative, turned, words.right(a, by)))


def _ones(words: Words, x: str) -> str:
    """The number of bits set: sums of neighbouring bits, then of pairs of these, and so on."""
    low, reach = words.low, 1
    while reach < words.bits:
        mask = words.number(sum((2**reach - 1) << k for k in range(0, words.bits, 2 * reach)))
        moved = low.emit("BitwiseAnd", words.right(x, words.number(reach)), mask)
        x, reach = low.emit("Add", low.emit("BitwiseAnd", x, mask), moved), 2 * reach
    return x


def _population_count(low: Lowering, x: str) -> str:
    words = Words(low)
    return words.restored(_ones(words, words.of(x)))


def _leading_zeros(low: Lowering, x: str) -> str:
    """The bits less those up to the highest one, which is smeared over all below it."""
    words, reach = Words(low), 1
    smeared = words.of(x)
    while reach < words.bits:
        smeared, reach = low.emit("BitwiseOr", smeared, words.right(smeared, words.number(reach))), 2 * reach
    return words.restored(low.emit("Sub", words.number(words.bits), _ones(words, smeared)))


LOWERINGS: Mapping[str, Rule] = {
    "and": _either("And", "BitwiseAnd"),
    "clz": _leading_zeros,
    "not": _either("Not", "BitwiseNot"),
    "or": _either("Or", "BitwiseOr"),
    "population_count": _population_count,
    "shift_left": _shift("LEFT"),
    "shift_right_arithmetic": _shift_right_arithmetic,
    "shift_right_logical": _shift("RIGHT"),
    "xor": _either("Xor", "BitwiseXor"),
}
