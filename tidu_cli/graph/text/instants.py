"""Points in time as text, as NumPy writes them: ISO 8601, for counts of a unit since 1970-01-01T00:00 UTC.

The calendar is the proleptic Gregorian one, without leap seconds. It repeats every 400 years, so that Python's, which begins with
the year 1, is asked about the years from 2000 to 2399.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

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
_2000 = datetime(2000, 1, 1)
_DAYS_BEFORE_2000 = 10957  # since 1970


def instant_from_text(text: str, unit: str) -> int:
    """The count of a unit since 1970 that ISO 8601 text of the years 0000 to 9999 means; without a zone, UTC.

    Raises TypeTextError for other text, and where the unit is too coarse, or has no such count in 64 bits.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        if text == "NaT":
            raise TypeTextError("NaT is not a time, and no arithmetic would keep it apart from times")
        raise TypeTextError(f"{text[:40]!r} is no time; write it as 2026-01-31T12:00:00.000, in the years 0000 to 9999")
    cycle, year = divmod(int(match["Y"]) - 2000, 400)
    try:
        month, day = (int(match[part] or 1) for part in "MD")
        hour, minute, second = (int(match[part] or 0) for part in "hms")
        since = datetime(2000 + year, month, day, hour, minute, second) - _2000
    except ValueError:
        raise TypeTextError(f"{text!r} is no time: there is no such day or hour") from None
    seconds = (_DAYS_BEFORE_2000 + cycle * _DAYS_OF_400_YEARS + since.days) * 86400 + since.seconds
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
    cycle, day = divmod(days - _DAYS_BEFORE_2000, _DAYS_OF_400_YEARS)
    seconds, fraction = divmod(rest, 10**9)
    moment = _2000 + timedelta(day, seconds)
    year = moment.year + 400 * cycle
    if not 0 <= year <= 9999:
        return None
    text = f"{year:04}{moment.isoformat()[4:]}"
    if unit in _DECIMALS:
        return f"{text}.{fraction:09}"[: len(text) + 1 + _DECIMALS[unit]]
    return text[: {"D": 10, "h": 13, "m": 16, "s": 19}[unit]]
