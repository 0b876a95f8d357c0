"""Points in time as text, as NumPy writes them: ISO 8601, for counts of a unit since 1970-01-01T00:00 UTC.

The calendar is the proleptic Gregorian one, without leap seconds.
"""

from __future__ import annotations

import re

from tidu_cli.errors import TypeTextError

NOT_A_TIME = -(2**63)
"""NumPy's NaT as a count. It is no point in time: no arithmetic would keep it apart from others."""

NANOSECONDS = {"D": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""The length of each unit of time."""
_DECIMALS = {"ms": 3, "us": 6, "ns": 9}
_TEXT = re.compile(
    r"(?P<Y>\d{4})(?:-(?P<M>\d\d)(?:-(?P<D>\d\d)(?:[T ](?P<h>\d\d)(?::(?P<m>\d\d)(?::(?P<s>\d\d)(?:\.(?P<fraction>\d{1,18}))?)?)?"
    r"(?:Z|(?P<zone>[+-]\d\d:\d\d))?)?)?)?",
    re.ASCII,
)
_DAYS_OF_400_YEARS = 146097
_EPOCH = 719468  # days from 0000-03-01 to 1970-01-01


def instant_from_text(text: str, unit: str) -> int:
    """The count of a unit since 1970 that ISO 8601 text of the years 0000 to 9999 means; without a zone, UTC.

    Raises TypeTextError for other text, and where the unit is too coarse, or has no such count in 64 bits.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        if text == "NaT":
            raise TypeTextError("NaT is not a time, and no arithmetic would keep it apart from times")
        raise TypeTextError(f"{text[:40]!r} is no time; write it as 2026-01-31T12:00:00.000, in the years 0000 to 9999")
    year, month, day = int(match["Y"]), int(match["M"] or 1), int(match["D"] or 1)
    hour, minute, second = int(match["h"] or 0), int(match["m"] or 0), int(match["s"] or 0)
    if not (1 <= month <= 12 and 1 <= day <= _days_of(year, month) and hour < 24 and minute < 60 and second < 60):
        raise TypeTextError(f"{text!r} is no time: there is no such day or hour")
    seconds = days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
    if zone := match["zone"]:
        seconds -= (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60) * (-1 if zone[0] == "-" else 1)
    fraction = (match["fraction"] or "").ljust(9, "0")
    count, rest = divmod(seconds * 10**9 + int(fraction[:9]), NANOSECONDS[unit])
    if rest or fraction[9:].strip("0"):
        raise TypeTextError(f"{text!r} is finer than the unit {unit}")
    if not NOT_A_TIME < count < 2**63:
        raise TypeTextError(f"{text!r} is out of range: it takes more than 64 bits in the unit {unit}")
    return count


def instant_to_text(count: int, unit: str) -> str | None:
    """The text of a count of a unit since 1970, to the precision of the unit; None outside of the years 0000 to 9999."""
    days, rest = divmod(count * NANOSECONDS[unit], NANOSECONDS["D"])
    year, month, day = date_from_days(days)
    if not 0 <= year <= 9999:
        return None
    seconds, fraction = divmod(rest, 10**9)
    text = f"{year:04}-{month:02}-{day:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if unit in _DECIMALS:
        return f"{text}.{fraction:09}"[: len(text) + 1 + _DECIMALS[unit]]
    return text[: {"D": 10, "h": 13, "m": 16, "s": 19}[unit]]


def days_from_date(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013: years begin in March)."""
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    cycle, year = divmod(year, 400)
    return cycle * _DAYS_OF_400_YEARS + year * 365 + year // 4 - year // 100 + (153 * month + 2) // 5 + day - 1 - _EPOCH


def date_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day: the inverse of `days_from_date`."""
    cycle, day = divmod(days + _EPOCH, _DAYS_OF_400_YEARS)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= year * 365 + year // 4 - year // 100
    month = (5 * day + 2) // 153
    year += cycle * 400 + (month >= 10)
    return year, month + 3 if month < 10 else month - 9, day - (153 * month + 2) // 5 + 1


def _days_of(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
