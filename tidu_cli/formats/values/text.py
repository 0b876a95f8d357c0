"""Values as text: csv for spreadsheets and other programs, and a table for people."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from tidu_cli.errors import DocumentError, LimitError, TiduError, printable
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.text import NOT_A_TIME, instant_to_text
from tidu_cli.graph.types import DATETIMES, RecordType, TensorType, Type, unit_of
from tidu_cli.lax.arrays.dtypes import dtype_name, numpy_dtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidu_cli.formats.chunks.sources import Source


# The tensors that values consist of, each by its name: what npz, npy, csv and the table hold, which know no records.


class Member(NamedTuple):
    """A tensor: its name, `p.x` of a field, an array of the numbers that hold it, and its type where that is known."""

    name: str
    array: NDArray[Any]
    type: TensorType | None


def members(values: Mapping[Key, Any], types: Mapping[Key, Type], format: str) -> list[Member]:
    """The tensors of values of these types. Raises DocumentError where two of them had one name."""
    tensors = [member for key, value in values.items() for member in _members(str(key), value, types.get(key))]
    names: set[str] = set()
    for member in tensors:
        if member.name in names:
            short = member.name if len(member.name) <= 60 else f"{member.name[:57]}..."
            raise DocumentError(f"two values would be called '{short}' in {format}; write JSON or msgpack")
        names.add(member.name)
    return tensors


def _members(name: str, value: Any, type_: Type | None) -> Iterator[Member]:
    if not isinstance(type_, RecordType):
        yield Member(name, stored(value, type_), type_)
        return
    for field, part, field_type in fields(value, type_):
        yield from _members(f"{name}.{field}", part, field_type)


def field_of(text: str, records: Mapping[str, Key]) -> tuple[str, list[str]]:
    """The record that a member `p.x` is of, the one of the longest name, and the way to the field in it; "" for none."""
    owner, path = text, list[str]()
    while "." in owner:
        owner, _, step = owner.rpartition(".")
        path.insert(0, step)
        if owner in records:
            return owner, path
    return "", []


def parent(values: dict[Any, Any], way: Iterable[Any]) -> dict[Any, Any] | None:
    """The dict at the end of a way through nested ones, which are made where they are not there; None if a value is in the way."""
    place: Any = values
    for step in way:
        place = place.setdefault(step, {}) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else None


def fields(value: Any, type_: RecordType) -> Iterator[tuple[str, Any, Type]]:
    """The fields of a record: a name, what the value has there, None for zero, and its type."""
    for k, (name, field_type) in enumerate(type_.fields):
        yield name, None if value is None else value[name] if isinstance(value, Mapping) else value[k], field_type


def stored(value: Any, type_: TensorType | None) -> NDArray[Any]:
    """A tensor as an array of the numbers that hold it."""
    import numpy as np

    if value is None:
        assert type_ is not None
        return np.zeros(type_.shape, numpy_dtype(np, type_.dtype))
    array: NDArray[Any] = np.asarray(value)
    if array.dtype.kind == "M" and type_ is not None:
        return array.astype(f"M8[{unit_of(type_.dtype)}]").view(np.int64)
    return array


_DIGITS = 6
"""The significant digits of floats in the table."""

_WHOLE = 200
"""Arrays of more elements are folded in it."""

_WIDTH = 100
"""The characters of an array's line."""


def csv_text(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> str:
    """One column for each number or vector, headed by its key, and for each column of a matrix, headed by `A[:,0]`, say.

    Shorter columns end in empty cells. Floats have the digits that tell them from others of their dtype; complex numbers are
    written as Python does, 1+2j, datetimes in ISO 8601. Raises DocumentError for arrays of more than two axes.
    """
    columns = [column for member in members(values, types, "csv") for column in _columns(member)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([name for name, _ in columns])
    writer.writerows(zip_longest(*(cells for _, cells in columns), fillvalue=""))
    return out.getvalue()


def _columns(member: Member) -> Iterator[tuple[str, list[str]]]:
    name, array, type_ = printable(member.name), member.array, member.type
    if array.ndim > 2:
        raise DocumentError(f"csv has rows and columns, and {name} is {_type(member)}; write json, npz or npy")
    if array.ndim < 2:
        yield name, cells(array.ravel(), type_)
    else:
        yield from ((f"{name}[:,{k}]", cells(array[:, k], type_)) for k in range(array.shape[1]))


def cells(array: NDArray[Any], type_: TensorType | None) -> list[str]:
    """The elements of a vector as text."""
    if type_ is not None and type_.dtype in DATETIMES:
        unit = unit_of(type_.dtype)
        return ["NaT" if x == NOT_A_TIME else instant_to_text(x, unit) or str(x) for x in array.tolist()]
    if array.dtype.kind == "b":
        return ["true" if x else "false" for x in array.tolist()]
    return [str(x).strip("()") for x in array]  # NumPy's scalars: the shortest text that is this number in their dtype


def table_text(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> str:
    """A line for each number, and a few for each array: name, type and elements, to six digits. Long arrays are folded."""
    rows = [(printable(m.name), _type(m), _elements(m)) for m in members(values, types, "a table")]
    first, second = (max((len(row[k]) for row in rows), default=0) for k in (0, 1))
    lines = []
    for name, type_, text in rows:
        head = f"{name:{first}}  {type_:{second}}  "
        lines.append(head + text.replace("\n", f"\n{'':{len(head)}}"))
    return "".join(f"{line}\n" for line in lines)


def _type(member: Member) -> str:
    return str(member.type or TensorType(dtype_name(member.array.dtype), member.array.shape))


def _elements(member: Member) -> str:
    import numpy as np

    array = member.array
    if array.size > _WHOLE:
        plain = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        return np.array2string(plain, max_line_width=_WIDTH, precision=_DIGITS, threshold=_WHOLE, edgeitems=3)
    texts = [f"{x:.{_DIGITS}g}" for x in array.ravel().tolist()] if array.dtype.kind in "fcV" else cells(array.ravel(), member.type)
    width = max(map(len, texts), default=0)
    padded = np.array([text.rjust(width) for text in texts], object).reshape(array.shape)
    return texts[0] if not array.ndim else np.array2string(padded, max_line_width=_WIDTH, formatter={"object": str})


# Values in files of which parts are read: those of a batch stay there, for whoever needs some of it; others are read.


def values_at(path: str, declared: Mapping[Key, Type], in_parts: Collection[Key]) -> dict[Key, object]:
    """The values of inputs in a directory or an npz file: arrays, those of `in_parts` where they lie.

    What has the name of no input, or of no field of one, is left out. Raises DocumentError, LimitError.
    """
    from tidu_cli.formats.chunks.sources import sources_of  # here, as few values lie in directories

    texts = {str(key): key for key in declared}
    records = {text: key for text, key in texts.items() if isinstance(declared[key], RecordType)}
    sources = sources_of(path)
    values: dict[Key, Any] = {}
    for text, source in sources.items():
        owner, fields = (text, []) if text in texts else field_of(text, records)
        if not owner:
            continue
        *way, last = (texts[owner], *fields)
        if (place := parent(values, way)) is None:
            raise DocumentError(f"{path}: the key {text} occurs twice")
        place[last] = _value(source, texts[owner] in in_parts)
    if not values and os.path.isdir(path):
        raise DocumentError(f"{path}: holds {listed(list(sources))}, and no input is called so; name one with --set KEY=@{path}")
    return values


def is_place(path: str, *, in_parts: bool) -> bool:
    """Whether `value_at` reads an array there: of what holds several or is in several files, or only some `in_parts`."""
    place = path if os.path.exists(path) or ":" not in path else path.rpartition(":")[0]
    return os.path.isdir(place) or place.endswith((".npz", ".npy") if in_parts else ".npz")


def value_at(path: str, where: str, *, in_parts: bool) -> object:
    """The array at a place as `source_of` has it; where it lies, if `in_parts`. Raises DocumentError, LimitError."""
    from tidu_cli.formats.chunks.sources import source_of

    try:
        return _value(source_of(path), in_parts)
    except LimitError:
        raise
    except TiduError as error:
        raise DocumentError(f"{where}: {error}") from None


def _value(source: Source, in_parts: bool) -> object:
    from tidu_cli.formats.chunks.npy import Compressed
    from tidu_cli.formats.chunks.sources import absolute, whole

    # What is compressed as one is read as one: all before a part is decompressed to read it.
    return absolute(source) if in_parts and not isinstance(source, Compressed) else whole(source)


# Numbers as one types them on a command line, in the words of JSON: `.5`, `+1`, `1.`, `inf`, `1+2j`, and `1,2,3` for a vector.


_FLOAT = r"(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)"
_REAL = re.compile(rf"[+-]?{_FLOAT}", re.IGNORECASE | re.ASCII)
_IMAGINARY = re.compile(rf"([+-]?{_FLOAT}?)j", re.IGNORECASE | re.ASCII)
_COMPLEX = re.compile(rf"([+-]?{_FLOAT})([+-]{_FLOAT}?)j", re.IGNORECASE | re.ASCII)
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|([^\s,\[\]{}:"]+)')
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}


def as_json(text: str) -> str | None:
    """JSON of a value whose numbers may be spelled as Python spells them; numbers between commas alone are a vector.

    What has quotation marks or brackets is for the parser of JSON to judge, numbers aside. None for words that are no numbers.
    """
    strange = False

    def spelled(token: re.Match[str]) -> str:
        nonlocal strange
        if token[1]:
            return token[1]
        numeral = _number(token[2])
        strange = strange or numeral is None
        return numeral or token[2]

    respelled = _TOKEN.sub(spelled, text)
    if strange:
        return None
    is_vector = "," in text and not any(bracket in text for bracket in '[{"')
    return f"[{respelled.strip().removesuffix(',')}]" if is_vector else respelled


def _number(word: str) -> str | None:
    """The JSON of a number, or of true, false and null."""
    if word in _WORDS:
        return _WORDS[word]
    if _REAL.fullmatch(word):
        return _real(word)
    bare = word[1:-1] if word[0] == "(" and word[-1] == ")" else word  # as Python prints complex numbers
    if imaginary := _IMAGINARY.fullmatch(bare):
        return f'{{"re": 0.0, "im": {_part(imaginary[1])}}}'
    if both := _COMPLEX.fullmatch(bare):
        return f'{{"re": {_part(both[1])}, "im": {_part(both[2])}}}'
    return None


def _part(word: str) -> str:
    """A part of a complex number: a float, of which zero has a sign."""
    digits = _real(f"{word}1" if word in ("", "+", "-") else word)
    return digits if any(c in digits for c in '.e"') else f"{digits}.0"


def _real(word: str) -> str:
    """A number's JSON: its sign, digits before a point, and digits after it where there is a point. The digits stay."""
    sign, size = ("-" if word[0] == "-" else ""), word.lstrip("+-").lower()
    if size[0] in "in":
        return '"NaN"' if size == "nan" else f'"{sign}Infinity"'
    digits, e, exponent = size.partition("e")
    whole, point, fraction = digits.partition(".")
    decimals = f".{fraction or 0}" if point else ""
    return f"{sign}{whole.lstrip('0') or 0}{decimals}{e}{exponent}"
