"""Literals: the constant arrays that attrs hold, as little-endian bytes with a type.

Bytes and not a NumPy array, so that literals hash and compare exactly, NaNs and signed zeros too, and so that
reading a document does not import NumPy.
"""

from __future__ import annotations

import math
import struct
from typing import cast

from tidu_cli.errors import TypeTextError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.text import NOT_A_TIME, instant_from_text, instant_to_text, to_be_shortened
from tidu_cli.graph.types import COMPLEXES, DATETIMES, FLOATS, ITEMSIZE, TensorType, real_dtype, storage_dtype, unit_of

_FORMAT = {
    "bool": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "f16": "e", "f32": "f", "f64": "d",
}  # fmt: skip
_OVERFLOW = {"f16": 65520.0, "bf16": (2 - 2**-8) * 2.0**127, "f32": (2 - 2**-24) * 2.0**127}
"""Half a unit past the greatest float of a dtype: what rounds to infinity."""
NONFINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""How files spell the floats that JSON has no number for."""


class Literal(Frozen):
    """An array of `type`, row-major in `data`, little-endian; complex numbers as re, im; times as the numbers that hold them."""

    type: TensorType
    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != self.type.nbytes:
            raise TypeTextError(f"constant of type {self.type} takes {self.type.nbytes} bytes, got {len(self.data)}")
        if self.type.dtype == "bool" and self.data.translate(None, b"\0\1"):
            raise TypeTextError(f"constant of type {self.type}: a bool is a byte 0 or 1")
        if self.type.dtype in DATETIMES and NOT_A_TIME in struct.unpack(f"<{self.type.size}q", self.data):
            raise TypeTextError(
                f"constant of type {self.type}: NaT is not a time, and no arithmetic would keep it apart from times"
            )


Constant = Literal | tuple["Constant | None", ...]
"""A constant of any type; of a record those of its fields, in order, and None for one that is zero."""


def literal_from_numbers(type_: TensorType, numbers: list[object]) -> Literal:
    """A literal from its elements as JSON has them: complex interleaved as re, im; "NaN", "Infinity", "-Infinity".

    Datetimes are ISO 8601 text, or integers: how many units since 1970. Floats round to nearest, ties to even, once: from the
    integer, or from the text that `decimals.number` has read. Raises TypeTextError for a wrong count, an element of another kind or
    out of range, as is a number that would round to infinity.
    """
    dtype = type_.dtype
    expected = type_.size * (2 if dtype in COMPLEXES else 1)
    if len(numbers) != expected:
        raise TypeTextError(f"constant of type {type_} takes {expected} numbers, got {len(numbers)}")
    part = real_dtype(storage_dtype(dtype))
    try:
        if part in FLOATS:
            floats = [_as_float(x, type_) for x in numbers]
            past = [x for x in floats if part != "f64" and _OVERFLOW[part] <= abs(x) < math.inf]
            if past:
                raise TypeTextError(f"constant of type {type_}: {past[0]!r} is out of its range")
            return Literal(type_, pack_floats(part, floats))
        as_exact = _as_instant if dtype in DATETIMES else _as_exact
        return Literal(type_, struct.pack(f"<{expected}{_FORMAT[part]}", *[as_exact(x, type_) for x in numbers]))
    except (struct.error, OverflowError):
        raise TypeTextError(f"constant of type {type_}: an element is out of range") from None


def literal_to_numbers(literal: Literal) -> list[object]:
    """The elements as JSON has them: the inverse of `literal_from_numbers`, but for the payloads of NaNs.

    Datetimes are text, or integers where the year has not four digits.
    """
    dtype = real_dtype(storage_dtype(literal.type.dtype))
    if dtype == "bf16":
        halves = struct.unpack(f"<{len(literal.data) // 2}H", literal.data)
        values: tuple[object, ...] = struct.unpack(f"<{len(halves)}f", struct.pack(f"<{len(halves)}I", *(h << 16 for h in halves)))
    else:
        values = struct.unpack(f"<{len(literal.data) // ITEMSIZE[dtype]}{_FORMAT[dtype]}", literal.data)
    if literal.type.dtype in DATETIMES:
        unit = unit_of(literal.type.dtype)
        return [x if (text := instant_to_text(x, unit)) is None else text for x in cast("tuple[int, ...]", values)]
    return [spelled(x) if isinstance(x, float) else x for x in values]


def spelled(x: float) -> object:
    """A float as files have it: itself, or "NaN", "Infinity" or "-Infinity"."""
    if math.isfinite(x):
        return x
    return "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"


def filled(type_: TensorType, value: float | int | bool | complex) -> Literal:
    """The literal of `type_` whose elements all equal `value`, rounded as arithmetic rounds: what is past the range is infinite."""
    part = real_dtype(storage_dtype(type_.dtype))
    if part in FLOATS:
        parts = [complex(value).real, complex(value).imag] if type_.dtype in COMPLEXES else [value]
        return Literal(type_, pack_floats(part, [to_be_shortened(x) for x in parts]) * type_.size)  # type: ignore[arg-type]
    one = literal_from_numbers(TensorType(type_.dtype), [bool(value) if type_.dtype == "bool" else value])
    return Literal(type_, one.data * type_.size)


def pack_floats(dtype: str, values: list[float]) -> bytes:
    """Little-endian bytes of floats in `dtype`, rounded to nearest even; values past the range become infinite."""
    if dtype == "f64":
        return struct.pack(f"<{len(values)}d", *values)
    if dtype == "bf16":  # the upper half of an f32
        return b"".join(struct.pack("<f", _as_bf16(x))[2:] for x in values)
    # struct refuses what rounds past the greatest float; IEEE 754 makes it infinite.
    overflow = _OVERFLOW[dtype]
    fit = [math.copysign(math.inf, x) if abs(x) >= overflow else x for x in values]
    return struct.pack(f"<{len(values)}{_FORMAT[dtype]}", *fit)


def _as_bf16(x: float) -> float:
    """The bf16 next to a double, ties to even; it is rounded once, as scaling by powers of 2 is exact."""
    if x != x:
        return math.nan
    if abs(x) >= _OVERFLOW["bf16"]:
        return math.copysign(math.inf, x)
    last_digit = 2.0 ** (max(math.frexp(x)[1], -125) - 8)  # of normal numbers the eighth; subnormal ones have it at 2^-133
    return math.copysign(round(x / last_digit) * last_digit, x)


def _as_float(x: object, type_: TensorType) -> float:
    if isinstance(x, str):
        if x in NONFINITE:
            return NONFINITE[x]
    elif isinstance(x, int | float) and not isinstance(x, bool):
        return float(x) if real_dtype(storage_dtype(type_.dtype)) == "f64" else to_be_shortened(x)
    raise TypeTextError(f'constant of type {type_}: {x!r} is not a number, "NaN", "Infinity" or "-Infinity"')


def _as_exact(x: object, type_: TensorType) -> int:
    if isinstance(x, bool) == (type_.dtype == "bool") and isinstance(x, int):
        return x
    raise TypeTextError(f"constant of type {type_}: {x!r} is not {'a bool' if type_.dtype == 'bool' else 'an integer'}")


def _as_instant(x: object, type_: TensorType) -> int:
    if isinstance(x, str):
        try:
            return instant_from_text(x, unit_of(type_.dtype))
        except TypeTextError as error:
            raise TypeTextError(f"constant of type {type_}: {error}") from None
    if isinstance(x, int) and not isinstance(x, bool):
        return x
    raise TypeTextError(f'constant of type {type_}: {x!r} is neither ISO 8601 text, such as "2026-01-31", nor an integer')
