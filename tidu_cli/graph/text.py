"""Types of values from text: those of tensors, names of declared records, and records and tuples that are spelled out.

f64[3]                            a tensor
Point                             the record type that the document declares so
{x: f64[], y: f64[]}              a record; (f64[], i32[3]) is a tuple, (f64[],) one of a single field
Point{x: f64[], y: f64[]}         tangents of Point: its name, and fields of their own
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from datetime import datetime, timedelta

from tidu_cli.errors import TypeTextError, did_you_mean
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import (
    DATETIME,
    DTYPES,
    DURATION,
    ITEMSIZE,
    MAX_BYTES,
    MAX_RANK,
    OPEN_SHAPE,
    TIMES,
    UNITS,
    RecordType,
    TensorType,
    Type,
    parse_type,
    type_hint,
)

MAX_LEAVES = 1000
"""As many tensors as a record type may hold, all nested ones together."""

MAX_NESTING = 32
"""How deep records may nest: rules and messages recurse as deep."""

_TOKEN = (
    r"\s*(?:(?P<tensor>(?:datetime|duration)\[[A-Za-z]*\](?:\[[A-Za-z0-9_,+*/%()-]*\])?|[a-z0-9]+\[[A-Za-z0-9_,+*/%()-]*\])"
    r"|(?P<name>[A-Za-z_0-9]+)|(?P<mark>[{}():,]))"
)
_FIELD = r"[A-Za-z_][A-Za-z0-9_]*|0|[1-9][0-9]*"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_WORD = r"(?<![\[A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*\b(?!\s*:)"
_NAMES = "names are of letters, digits and _, and do not begin with a digit"
_RESERVED = frozenset(dtype.partition("[")[0] for dtype in DTYPES)

NO_RECORDS: Mapping[str, RecordType] = {}


def parse_value_type(text: str, declared: Mapping[str, RecordType] = NO_RECORDS, *, open_shapes: bool = False) -> Type:
    """Read the type of a tensor or record. `declared` are record types by name.

    With `open_shapes` a dtype may stand for the type, whose shape is then OPEN_SHAPE. Raises TypeTextError, also for a type of more
    tensors than MAX_LEAVES, or nested deeper than MAX_NESTING.
    """
    if not text.startswith(("{", "(")) and text not in declared and not open_shapes and "{" not in text:
        if re.fullmatch(_NAME, text) and text not in _RESERVED:
            hint = (
                did_you_mean(text, list(declared))
                or type_hint(text)
                or "; declare it under 'types', or write dtype[shape], such as f64[3,4]"
            )
            raise TypeTextError(f"unknown type {text[:60]!r}{hint}")
        return parse_type(text)
    if text != text.strip():
        raise TypeTextError(f"unknown type {text[:60]!r}: no blanks go before or after a type")
    parser = _Parser(text, declared, open_shapes)
    type_ = parser.type(0)
    parser.end()
    check_extent(type_, text)
    return type_


def check_name(name: str) -> None:
    """Raises TypeTextError if a record type may not have this name."""
    if name in _RESERVED:
        raise TypeTextError(f"a record type cannot be called {name!r}, as a dtype is")
    if not re.fullmatch(_NAME, name):
        raise TypeTextError(f"a record type cannot be called {name[:60]!r}; {_NAMES}")


def check_field(name: str) -> None:
    """Raises TypeTextError if a field may not have this name."""
    if not re.fullmatch(_NAME, name):
        raise TypeTextError(f"a field cannot be called {name[:60]!r}; {_NAMES}")


def names_in(text: str) -> list[str]:
    """The words in the text of a type that may be names of record types: not those of fields, nor of units of time."""
    return re.findall(_WORD, text, re.ASCII)


def check_extent(type_: Type, text: str) -> None:
    """Raises TypeTextError if a type holds too many tensors, or nests too deeply. A record without fields counts as a tensor."""
    if not isinstance(type_, RecordType):
        return
    if type_.n_tensors > MAX_LEAVES:
        raise TypeTextError(f"the type {text[:60]} holds more than {MAX_LEAVES:,} tensors")
    if type_.depth > MAX_NESTING:
        raise TypeTextError(f"the type {text[:60]} nests deeper than {MAX_NESTING} records")
    if surely(lambda: type_.nbytes > MAX_BYTES):
        raise TypeTextError(f"the type {text[:60]} is larger than any memory")


class _Parser:
    """Reads one type from the left. Recurses as deep as records nest, which is bounded."""

    def __init__(self, text: str, declared: Mapping[str, RecordType], open_shapes: bool) -> None:
        self.text = text
        self.declared = declared
        self.open_shapes = open_shapes
        self.position = 0

    def type(self, depth: int) -> Type:
        if depth > MAX_NESTING:
            raise TypeTextError(f"the type {self.text[:40]}... nests deeper than {MAX_NESTING} records")
        kind, token = self.next()
        if kind == "tensor":
            return TensorType(token, OPEN_SHAPE) if self.open_shapes and token in TIMES else parse_type(token)
        if token in ("{", "("):
            return RecordType("", self.fields(depth, is_tuple=token == "("))
        if kind == "name" and self.peek() == "{":
            if token not in self.declared:
                raise TypeTextError(f"unknown record type {token[:60]!r}{did_you_mean(token, list(self.declared))}")
            self.next()
            return self.declared[token].tangents(self.fields(depth, is_tuple=False))
        if kind == "name" and token in self.declared:
            return self.declared[token]
        if kind == "name" and self.open_shapes and token in ITEMSIZE:
            return TensorType(token, OPEN_SHAPE)
        if kind == "name":
            hint = did_you_mean(token, [*self.declared, *(ITEMSIZE if self.open_shapes else ())]) or type_hint(token)
            raise TypeTextError(f"unknown type {token[:60]!r}{hint or '; write dtype[shape], such as f64[3,4] or f64[]'}")
        raise self.malformed()

    def fields(self, depth: int, *, is_tuple: bool) -> tuple[tuple[str, Type], ...]:
        types: dict[str, Type] = {}
        end = ")" if is_tuple else "}"
        while self.peek() != end:
            name = str(len(types)) if is_tuple else self.next()[1]
            if not is_tuple and (not re.fullmatch(_FIELD, name) or self.next()[1] != ":"):
                raise self.malformed()
            if name in types:
                raise TypeTextError(f"the type {self.text[:60]!r} has two fields '{name}'")
            types[name] = self.type(depth + 1)
            if is_tuple and self.peek() == end and len(types) == 1:
                raise TypeTextError(f"the type {self.text[:60]!r} is not a tuple; write one of a single field as ({types['0']},)")
            if self.peek() != end and self.next()[1] != ",":
                raise self.malformed()
        self.next()
        return tuple(types.items())

    def next(self) -> tuple[str, str]:
        match = re.compile(_TOKEN, re.ASCII).match(self.text, self.position)
        if match is None:
            raise self.malformed()
        self.position = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]

    def peek(self) -> str:
        match = re.compile(_TOKEN, re.ASCII).match(self.text, self.position)
        return match[match.lastgroup or 0] if match else ""

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise self.malformed()

    def malformed(self) -> TypeTextError:
        return TypeTextError(
            f"unknown type {self.text[:60]!r}; a record is written {{x: f64[], y: f64[3]}}, a tuple (f64[], f64[3])"
        )


# Numbers rounded once: from decimal text, or integers, to floats of fewer bits than a double has.
#
# A double that came from text and lies halfway between two shorter floats does not tell on which side of it the text was. Then
# the text is remembered as its rounding to odd: of the two doubles around it the one whose last bit is 1. What that rounds to in
# turn is right (Boldo and Melquiond, "When double rounding is odd", 2005).


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
    beside = Beside(x)
    beside.odd = _to_odd(x, above=exact > x)
    return beside


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


# The texts of types as regular expressions, for JSON Schema: what `types` and `type_text` read, as far as such can tell.
#
# They are in the part of the language that ECMA 262, which JSON Schema names, and Python's `re` read alike. How records nest, how
# many bytes a type has and whether a name is declared no regular expression tells.


END = r"$(?!\n)"
"""The end, for Python, too, whose `$` matches before a last line end."""

_DTYPE = "|".join(ITEMSIZE)
_TIME = rf"(?:{DATETIME}|{DURATION})\[(?:{'|'.join(UNITS)})\]"
_NUMBER = "(?:0|[1-9][0-9]{0,18})"
FIELD = "[A-Za-z_][A-Za-z0-9_]*"
"""The name of a field."""

_TERM = rf"(?:(?:max|min)?\()*(?:{FIELD}|[0-9]{{1,19}})\)*"
_OPEN_SIZE = rf"-?{_TERM}(?:(?:[-+*%]|//)-?{_TERM})*"
SIZE = rf"(?=.{{1,200}}$){_OPEN_SIZE}(?:,{_OPEN_SIZE})*"
"""The text of an open size, as far as a regular expression can tell: not how brackets pair."""
_SIZE = rf"(?:{_NUMBER}(?![A-Za-z0-9_+*/%(-])|(?=[^\],]{{1,200}}[\],])(?=[^\],]*[A-Za-z_()]){_OPEN_SIZE})"
_BLANK = r"[ \t\n\r\f\v]*"
_WORD_ENDS = "(?![A-Za-z0-9_])"


def _shape(size: str, blank: str = "") -> str:
    return rf"\[{blank}(?:{size}{blank}(?:,{blank}{size}{blank}){{0,{MAX_RANK - 1}}})?\]"


_TENSOR = rf"(?:(?:{_DTYPE}){_shape(_SIZE)}|{_TIME}(?:{_shape(_SIZE)})?)"
_OPEN_TENSOR = rf"(?:(?:{_DTYPE})(?:{_shape(_SIZE)}|(?![\[A-Za-z0-9_]))|{_TIME}(?:{_shape(_SIZE)})?)"

NAME = rf"(?!(?:{_DTYPE}|{DATETIME}|{DURATION}){_WORD_ENDS})[A-Za-z_][A-Za-z0-9_]*"
"""The name of a record type."""


def _record(tensor: str) -> str:
    """A record or tuple, spelled out, as a flat list of tokens: what goes before a colon is a label, and types are right."""
    label = rf"(?:{FIELD}|0|[1-9][0-9]*){_BLANK}:"
    opening = rf"(?:(?:{NAME}{_BLANK})?\{{|\()"
    atom = rf"(?:{tensor}|{NAME}){_WORD_ENDS}(?={_BLANK}[,}})])"
    return rf"{opening}(?:{_BLANK}(?:{label}{_BLANK})?(?:{opening}|{atom})|{_BLANK}[,}})])*(?<=[}})])"


RECORD = rf"(?:{NAME}|{_record(_TENSOR)})"
"""The type of a record: a name, or spelled out."""

TENSOR_TYPE = rf"^{_TENSOR}{END}"
RECORD_TYPE = rf"^{RECORD}{END}"
TYPE = rf"^(?:{_TENSOR}|{RECORD}){END}"
OPEN_TYPE = rf"^(?:{_OPEN_TENSOR}|{NAME}|{_record(_OPEN_TENSOR)}){END}"
"""A type in which shapes may be left out, as those of tangents may."""

_ANY_SIZE = rf"(?:{_NUMBER}|[a-z][a-z0-9_]*|\.\.\.)"
_ANY_SHAPE = _shape(_ANY_SIZE, " *")
PATTERN = rf"^(?:(?!.*\.\.\..*\.\.\.)(?:(?:T|{_DTYPE}){_ANY_SHAPE}|{_TIME}(?:{_ANY_SHAPE})?)|{RECORD}){END}"
"""A type pattern of a custom operation."""


# Points in time as text, as NumPy writes them: ISO 8601, for counts of a unit since 1970-01-01T00:00 UTC.
#
# The calendar is the proleptic Gregorian one, without leap seconds. It repeats every 400 years, so that Python's, which begins with
# the year 1, is asked about the years from 2000 to 2399.


NOT_A_TIME = -(2**63)
"""NumPy's NaT as a count. It is no point in time: no arithmetic would keep it apart from others."""

NANOSECONDS = {"D": 86400 * 10**9, "h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""The length of each unit of time."""
_DECIMALS = {"ms": 3, "us": 6, "ns": 9}
_TEXT = (
    r"(?P<Y>\d{4})(?:-(?P<M>\d\d)(?:-(?P<D>\d\d)(?:[T ](?P<h>\d\d)(?::(?P<m>\d\d)(?::(?P<s>\d\d)(?:\.(?P<fraction>\d{1,18}))?)?)?"
    r"(?:Z|(?P<zone>[+-]\d\d:\d\d))?)?)?)?"
)
_DAYS_OF_400_YEARS = 146097
_2000 = datetime(2000, 1, 1)
_DAYS_BEFORE_2000 = 10957  # since 1970


def instant_from_text(text: str, unit: str) -> int:
    """The count of a unit since 1970 that ISO 8601 text of the years 0000 to 9999 means; without a zone, UTC.

    Raises TypeTextError for other text, and where the unit is too coarse, or has no such count in 64 bits.
    """
    match = re.fullmatch(_TEXT, text, re.ASCII)
    if match is None:
        if text == "NaT":
            raise TypeTextError("NaT is not a time, and no arithmetic would keep it apart from times")
        raise TypeTextError(f"{text[:40]!r} is not a time; write it as 2026-01-31T12:00:00.000, in the years 0000 to 9999")
    cycle, year = divmod(int(match["Y"]) - 2000, 400)
    try:
        month, day = (int(match[part] or 1) for part in "MD")
        hour, minute, second = (int(match[part] or 0) for part in "hms")
        since = datetime(2000 + year, month, day, hour, minute, second) - _2000
    except ValueError:
        raise TypeTextError(f"{text!r} is not a time: there is no such day or hour") from None
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
