"""Units of time: how long they are, and times converted from one to another.

Lengths are exact: each unit is a whole number of every finer one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tidu_cli.graph.text import NANOSECONDS, NOT_A_TIME
from tidu_cli.graph.types import DATETIMES, DURATIONS, TIMES, UNITS, unit_of
from tidu_cli.rules.contract import Kernel

_LAST = 2**63 - 1
_LOW = 2**32 - 1


def ratio(old: str, new: str) -> Fraction:
    """How many of the new unit make one of the old: a whole number, or one over such."""
    return Fraction(NANOSECONDS[old], NANOSECONDS[new])


def scaling(np: Any, old: str, new: str) -> Kernel:
    """The function from counts of a unit, as f64, to those of another. It rounds once."""
    factor = ratio(old, new)
    if factor == 1:
        return lambda x: x
    if factor > 1:
        times = np.float64(factor.numerator)
        return lambda x: x * times
    parts = np.float64(factor.denominator)
    return lambda x: x / parts


def is_step(old: str, new: str) -> bool:
    """Whether the conversion between these dtypes of datetimes rounds: the new unit is the longer one."""
    return UNITS.index(unit_of(new)) < UNITS.index(unit_of(old))


def conversion(np: Any, old: str, new: str) -> Kernel:
    """The kernel that converts arrays of one dtype of times to another, but of durations to datetimes.

    Datetimes in a longer unit are the last before, as in NumPy; those that a finer unit cannot count are NaT, as is what was NaT.
    """
    if new in DURATIONS:
        scaled = scaling(np, unit_of(old), unit_of(new))
        return lambda x: scaled(numbers(np, x))
    factor, none = ratio(unit_of(old), unit_of(new)), np.int64(NOT_A_TIME)
    if factor < 1:
        length = np.int64(factor.denominator)
        return lambda x: np.where(np.equal(x, none), none, np.floor_divide(x, length))
    reach, times = np.int64(_LAST // factor.numerator), np.int64(factor.numerator)

    def finer(x: Any) -> Any:
        inside = np.clip(x, -reach, reach)
        return np.where(np.equal(inside, x), inside * times, none)

    return finer


_NAMES = {
    "D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds",
}  # fmt: skip


def conversion_words(old: str, new: str) -> tuple[str, str]:
    """What a conversion of one dtype to another, one of them of times, makes and does: `in hours`, `converted to hours`."""
    name = _NAMES[unit_of(new if new in TIMES else old)]
    if old in DURATIONS and new in DURATIONS:
        return f"in {name}", f"converted to {name}"
    if old in DATETIMES and new in DATETIMES:
        return f"as {new}", f"{'rounded down' if is_step(old, new) else 'converted'} to {name}"
    since = " since 1970" if (old if old in TIMES else new) in DATETIMES else ""
    return f"as {new}", f"counted in {_NAMES[unit_of(old)]}{since}" if old in TIMES else f"taken as {name}{since}"


def numbers(np: Any, counts: Any) -> Any:
    """The counts of datetimes as f64, of NaT NaN."""
    return np.where(np.equal(counts, NOT_A_TIME), np.nan, np.asarray(counts, np.float64))


def counts(np: Any, numbers: Any) -> Any:
    """Numbers as counts of datetimes, towards zero; NaT of NaN, and of what is past their range."""
    numbers = np.trunc(np.asarray(numbers, np.float64))
    inside = np.abs(numbers) < 2.0**63
    return np.where(inside, np.where(inside, numbers, 0.0).astype(np.int64), np.int64(NOT_A_TIME))


def between(np: Any, x: Any, y: Any) -> Any:
    """x - y of datetimes, as f64: NaN where one is NaT."""
    return np.where(np.equal(x, NOT_A_TIME) | np.equal(y, NOT_A_TIME), np.nan, span(np, x, y))


def span(np: Any, x: Any, y: Any) -> Any:
    """x - y of integers of 64 bits, as f64: rounded once, where a difference in integers might wrap."""
    halves = (x >> 32).astype(np.int64) - (y >> 32).astype(np.int64), (x & _LOW).astype(np.int64) - (y & _LOW).astype(np.int64)
    return halves[0] * np.float64(2**32) + halves[1]
