"""Numbers rounded once: from decimal text, or integers, to floats of fewer bits than a double has.

A double that came from text and lies halfway between two shorter floats does not tell on which side of it the text was. Then the
text is remembered as its rounding to odd: of the two doubles around it the one whose last bit is 1. What that rounds to in turn is
right (Boldo and Melquiond, "When double rounding is odd", 2005).
"""

from __future__ import annotations

import math
import struct


class Beside(float):
    """A double that may be halfway between shorter floats, and is not quite the number that it came from; `odd` is on its side."""

    __slots__ = ("odd",)
    odd: float


def number(text: str) -> float:
    """The double of decimal text; `Beside` it, where it does not say enough to be rounded once more."""
    x = float(text)
    if not _may_be_halfway(x):
        return x
    from decimal import Decimal  # here, as nearly no number needs it

    exact = Decimal(text)
    if exact == x:
        return x
    found = Beside(x)
    found.odd = _to_odd(x, above=exact > x)
    return found


def to_be_shortened(x: float | int) -> float:
    """The double that rounds to the shorter float that is next to x. Raises OverflowError for integers beyond every double."""
    if isinstance(x, float):
        return x.odd if isinstance(x, Beside) else x
    rounded = float(x)
    return rounded if rounded == x else _to_odd(rounded, above=x > rounded)


def _to_odd(x: float, *, above: bool) -> float:
    """Of x and its neighbour on that side the one whose last bit is 1."""
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    return x if bits & 1 else math.nextafter(x, math.inf if above else -math.inf)


def _may_be_halfway(x: float) -> bool:
    """Whether x may be halfway between two f32, f16 or bf16: it has 25 bits at most, and more than bf16 has, or is tiny."""
    c = x * (2.0**28 + 1)  # so c - (c - x) is x rounded to 25 bits (Veltkamp)
    if c - (c - x) != x or not x:
        return False
    c = x * (2.0**45 + 1)
    return c - (c - x) != x or abs(x) < 2.0**-13
