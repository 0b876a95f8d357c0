"""Units of time: how long they are, and times converted from one to another.

Lengths are exact: each unit is a whole number of every finer one. Years and months convert between each other only, since how many
days they have depends on which they are; of datetimes, which say which, they convert to all, by NumPy's calendar (the proleptic
Gregorian one).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.text.instants import ATTOSECONDS, NOT_A_TIME
from tidu_cli.graph.types import CALENDAR, DATETIMES, DURATIONS, TIMES, UNITS, unit_of
from tidu_cli.rules.contract import Kernel

_LAST = 2**63 - 1
_LOW = 2**32 - 1
_LENGTH = {**ATTOSECONDS, "Y": 12, "M": 1}
"""The lengths of units: of years and months in months, of all others in attoseconds."""


def converts(old: str, new: str) -> bool:
    """Whether durations in one unit are durations in the other."""
    return (old in CALENDAR) == (new in CALENDAR)


def ratio(old: str, new: str) -> Fraction:
    """How many of the new unit make one of the old: a whole number, or one over such. Of units that convert."""
    return Fraction(_LENGTH[old], _LENGTH[new])


def scaling(np: Any, old: str, new: str) -> Kernel:
    """The function from counts of a unit, as f64, to those of another. It rounds once (but for 604,800 · 10¹⁸, which is no f64)."""
    factor = ratio(old, new)
    if factor == 1:
        return lambda x: x
    if factor > 1:
        times = np.float64(factor.numerator)
        return lambda x: x * times
    parts = np.float64(factor.denominator)
    return lambda x: x / parts


def require_conversion(old: str, new: str) -> None:
    """Raises TypeRuleError if there is no conversion from one dtype of times to the other."""
    if old in DURATIONS and new in DATETIMES:
        raise TypeRuleError(f"a {old} is no point in time; use retract to move a datetime by it")
    if new in DURATIONS and not converts(unit_of(old), unit_of(new)):
        calendar = old if unit_of(old) in CALENDAR else new
        name = "month" if unit_of(calendar) == "M" else "year"
        way_out = f"; convert it to datetime[D] and then to {new}" if old in DATETIMES and calendar == old else ""
        raise TypeRuleError(f"a {old} has no fixed number of {new}, as not every {name} is as long{way_out}")


def is_step(old: str, new: str) -> bool:
    """Whether the conversion between these dtypes of datetimes rounds: the new unit is the longer one."""
    return UNITS.index(unit_of(new)) < UNITS.index(unit_of(old))


def conversion(np: Any, old: str, new: str) -> Kernel:
    """The kernel that converts arrays of one dtype of times to another; `require_conversion` says which there are.

    Datetimes in a longer unit are the last before, as in NumPy; those that a finer unit cannot count are NaT, as is what was NaT.
    """
    if new in DURATIONS:
        scaled = scaling(np, unit_of(old), unit_of(new))
        return lambda x: scaled(numbers(np, x))
    steps = _route(unit_of(old), unit_of(new))
    kernels = [_calendar(np, a, b) if (a in CALENDAR) != (b in CALENDAR) else _linear(np, a, b) for a, b in steps]

    def converted(x: Any) -> Any:
        found = np.asarray(x)
        for kernel in kernels:
            found = np.where(np.equal(found, NOT_A_TIME), NOT_A_TIME, kernel(found))
        return found

    return converted


_NAMES = {
    "Y": "years", "M": "months", "W": "weeks", "D": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds",
    "us": "microseconds", "ns": "nanoseconds", "ps": "picoseconds", "fs": "femtoseconds", "as": "attoseconds",
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


def _route(old: str, new: str) -> list[tuple[str, str]]:
    """The steps of a conversion: between the calendar and other units it goes by way of days."""
    if converts(old, new):
        return [(old, new)]
    return [(old, "D"), ("D", new)] if old in CALENDAR else [(old, "D"), ("D", "M"), ("M", new)]


def _linear(np: Any, old: str, new: str) -> Kernel:
    factor = ratio(old, new)
    if factor < 1:
        length = factor.denominator
        return (lambda x: np.floor_divide(x, np.int64(length))) if length <= _LAST else lambda x: np.where(x < 0, -1, 0)
    reach, times = np.int64(_LAST // factor.numerator), np.int64(min(factor.numerator, _LAST))

    def finer(x: Any) -> Any:
        inside = np.clip(x, -reach, reach)
        return np.where(inside == x, inside * times, np.int64(NOT_A_TIME))

    return finer


def _calendar(np: Any, old: str, new: str) -> Kernel:
    """Between days and a unit of the calendar, by NumPy."""
    before, after = (np.dtype(f"datetime64[{unit}]") for unit in (old, new))
    reach = np.int64(_LAST if old == "D" else _LAST // (366 if old == "Y" else 31))

    def by_calendar(x: Any) -> Any:
        inside = np.clip(x, -reach, reach)
        return np.where(inside == x, inside.view(before).astype(after).view(np.int64), np.int64(NOT_A_TIME))

    return by_calendar


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
