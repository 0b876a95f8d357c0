"""Files of values read, JSON, npz, msgpack or csv, and the values that a command line assigns."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Collection, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tidu_cli.errors import DocumentError, KeyTextError, LimitError, Remedy, TypeTextError, UnknownNameError, did_you_mean
from tidu_cli.formats.compression import CompressionError
from tidu_cli.formats.detect import read_array
from tidu_cli.formats.files import Source, is_msgpack_map, note_read, repeated
from tidu_cli.formats.json import require_finite, syntax_error, wants_text
from tidu_cli.formats.values.text import as_json, field_of, is_place, parent, value_at
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.literals import NONFINITE
from tidu_cli.graph.select import listed
from tidu_cli.graph.text import number, to_be_shortened
from tidu_cli.graph.types import DATETIMES, RecordType, TensorType, Type
from tidu_cli.installed import recognized
from tidu_cli.limits import limits
from tidu_cli.rules.attrs import literal_from_file
from tidu_cli.runtime.memory import by_inputs

# NumPy takes longer to import than most commands run, so here it is imported within the functions that need it.
if TYPE_CHECKING:
    from numpy.typing import NDArray

K = TypeVar("K", bound=Hashable)

NO_TYPES: Mapping[Key, Type] = {}

_CSV = re.compile(r"\.csv(\.gz|\.zst)?$", re.I)

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}")  # which no JSON begins with


def read_values(data: bytes, source: str, declared: Mapping[Key, Type] | None = None) -> dict[Key, object]:
    """The values in a file's bytes, told apart by content. `source` is how messages name the file.

    `declared` are types of inputs: an object is a record where one is declared, and members `p.x` of an npz file are then its
    fields; one that is no input, but whose members are inputs `p.x`, is taken apart; of what is none of these inputs, members of
    npz are not read, and all else is given as it stands. Without, all are arrays. Raises DocumentError, and LimitError before more
    is decompressed than memory holds.
    """
    if data[:2] in (b"PK", b"\x80\x02") and b".npy" not in data[:256]:  # as no format of values begins
        format_: Any = recognized(Source(data))
        if hasattr(format_, "refuse_values"):
            format_.refuse_values(source)
    if data[:2] == b"PK":
        return _read_npz(data, source, declared)
    if data[:6] == b"\x93NUMPY":
        way = Remedy("set", f"KEY=@{source}", command="eval", python=f"numpy.load({source!r})")
        raise DocumentError(f"{source}: a .npy file holds one array without a key; it is for ", way)
    members: object = _parse_msgpack(data, source) if is_msgpack_map(data) else None
    if members is None and _CSV.search(source):  # which has no mark of its own
        from tidu_cli.formats.values.columns import read_csv

        members = read_csv(data, source, declared or NO_TYPES)
    from_json = members is None
    if members is None:
        members = _parse_json(data, source, by_text=wants_text(data, (declared or NO_TYPES).values()))
    if not isinstance(members, dict):
        raise DocumentError(f'{source}: values files hold an object of values by key, such as {{"x": 3, "y@-1": [1, 2]}}')
    values: dict[Key, object] = {}
    if declared is not None:
        members = by_inputs(members, {str(key) for key in declared})
    for text, value in members.items():
        key = _key(text, source)
        if from_json:
            require_finite(value, f"{source}: {text}", data)
        known = declared is None or key in declared
        values[key] = _value(value, (declared or NO_TYPES).get(key), f"{source}: {text}") if known else value
    return values


def parse_assignment(
    text: str,
    keys: Collection[Key],
    declared: Mapping[Key, Type] = NO_TYPES,
    *,
    option: str = "--set",
    in_parts: Collection[Key] = (),
) -> tuple[Key, object]:
    """The key and the value of `KEY=VALUE`, where VALUE is JSON, with numbers as Python spells them, or `@FILE.npy`.

    After @ may also stand FILE.npz:NAME, or a directory of chunks or of zarr; those of `in_parts` are where they lie, not read. One
    date or time needs no quotes, and a vector no brackets: 1,2,3.

    The `=` is the last one whose left side is one of `keys`, as names may hold one; `declared` are types of inputs, `option` is how
    messages name what takes the assignment. Raises DocumentError if the text is malformed, UnknownNameError if no such key is
    declared.
    """
    known = {str(key): key for key in keys}
    if "=" not in text:
        raise DocumentError(f"malformed assignment '{_short(text)}': write it as KEY=VALUE, such as x=3 or x=[1,2]")
    splits = [k for k, character in enumerate(text) if character == "=" and text[:k] in known]
    at = splits[-1] if splits else text.index("=")
    key_text, value_text = text[:at], text[at + 1 :]
    if key_text not in known:
        _key(key_text, option)
        names = sorted(known)
        hint = did_you_mean(key_text, names)
        raise UnknownNameError(f"no graph has an input '{_short(key_text)}'{hint} (inputs: {listed(names)})")
    where, key = f"{option} {key_text}", known[key_text]
    type_ = declared.get(key)
    if value_text.startswith("@"):
        path = value_text[1:]
        if not path:
            raise DocumentError(f"{where}: no file is named after the @; write @FILE.npy")
        if is_place(path, in_parts=key in in_parts):
            return key, value_at(path, where, in_parts=key in in_parts)
        return key, _read_npy(path, where)
    if not value_text.strip():
        raise DocumentError(f"{where}: no value stands after the =; write {key_text}=3 or {key_text}=[1,2]")
    a_time = type_ is None or (isinstance(type_, TensorType) and type_.dtype in DATETIMES)
    if a_time and _DATE.match(value_text):
        return key, value_text
    spelled = as_json(value_text)
    if spelled is None:
        raise DocumentError(f"{where}: {_no_value(value_text)}")
    value = _parse_json(spelled, where, by_text=wants_text(spelled, [type_]))
    require_finite(value, where, spelled)
    return key, _value(value, type_, where)


def _no_value(text: str) -> str:
    """Why text is no value, and what is one."""
    if text.lower().endswith((".npy", ".npy.gz", ".npy.zst")):
        hint = f"did you mean @{text}?" if os.path.isfile(text) else f"an array of a file is written @{text}, and there is none"
        return f"'{_short(text)}' is not a number; {hint}"
    if text.lower().endswith((".npz", ".json", ".msgpack")) and os.path.isfile(text):
        return f"'{_short(text)}' is not a number; give a file of values as --inputs {text}"
    if re.fullmatch(r"[a-z]+[0-9]*\[[0-9, ]*\]", text):
        return f"'{_short(text)}' is a type, not a value; the types of what is built are given as -i KEY:TYPE"
    return (
        f"'{_short(text)}' is not a value; write 3, .5, 1e-3, inf, 1+2j, a vector 1,2,3, JSON such as [[1,2],[3,4]], or @FILE.npy"
    )


def _key(text: object, source: str) -> Key:
    if not isinstance(text, str):
        raise DocumentError(f"{source}: keys are strings, not {_short(repr(text))}")
    try:
        return parse_key(text)
    except KeyTextError as error:
        raise DocumentError(f"{source}: {error}") from None


def _value(value: object, type_: Type | None, where: str) -> object:
    """Records by their type; complex numbers and typed constants told by their fields; anything else as it stands."""
    if isinstance(type_, RecordType):
        if isinstance(value, dict):
            return {name: _field_value(x, type_, name, where) for name, x in value.items()}
        if isinstance(value, list) and type_.is_tuple:
            return [_field_value(x, type_, str(k), where) for k, x in enumerate(value)]
        return value
    if isinstance(value, list) and not any(isinstance(x, dict | list) for x in value):
        return value
    if isinstance(value, list):
        return [_value(x, type_, where) for x in value]  # no deeper than the parsers have gone
    if not isinstance(value, dict):
        return value
    if set(value) == {"re", "im"}:
        short = type_ is not None and type_.dtype == "c64"
        return complex(_part(value["re"], where, short), _part(value["im"], where, short))
    if type_ is not None and type_.dtype in DATETIMES and "type" not in value:
        return value  # a structural tangent
    try:
        return literal_from_file(value)
    except TypeTextError as error:
        if "type" in value:
            raise DocumentError(f"{where}: {error}") from None
        raise DocumentError(
            f'{where}: an object is a complex number {{"re": 1, "im": 2}} or typed data {{"type": "f64[2]", "data": [1, 2]}}'
        ) from None


def _field_value(value: object, type_: RecordType, name: str, where: str) -> object:
    field = type_.get(name)
    return value if field is None else _value(value, field, f"{where}.{name}")  # that there is none is for evaluation to say


def _part(x: object, where: str, short: bool) -> float:
    if isinstance(x, str) and x in NONFINITE:
        return NONFINITE[x]
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise DocumentError(f"{where}: the parts of a complex number are numbers, not {_short(repr(x))}")
    try:
        return to_be_shortened(x) if short else float(x)
    except OverflowError:
        raise DocumentError(f"{where}: a part of a complex number is out of range") from None


def _parse_json(data: bytes | str, source: str, *, by_text: bool) -> object:
    def refuse(constant: str) -> NoReturn:
        raise DocumentError(f'{source}: malformed JSON: {constant} is written as a string, "{constant}"')

    try:
        text = data.decode("utf-8-sig") if isinstance(data, bytes) else data
        once = partial(_unique, source)
        return json.loads(text, object_pairs_hook=once, parse_constant=refuse, parse_float=number if by_text else None)
    except RecursionError:
        raise DocumentError(f"{source}: malformed JSON: nested too deeply") from None
    except ValueError as error:
        raise DocumentError(f"{source}: {syntax_error(error)}") from None


def _parse_msgpack(data: bytes, source: str) -> object:
    import msgpack

    try:
        return msgpack.unpackb(data, object_pairs_hook=partial(_unique, source), strict_map_key=True, use_list=True)
    except (ValueError, msgpack.UnpackException) as error:
        raise DocumentError(f"{source}: malformed msgpack: {_line(error)}") from None


def _unique(source: str, pairs: list[tuple[K, object]]) -> dict[K, object]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise DocumentError(f"{source}: the key {_short(repr(repeated(key for key, _ in pairs)))} occurs twice")
    return entries


def _read_npz(data: bytes, source: str, declared: Mapping[Key, Type] | None) -> dict[Key, object]:
    """The members that are asked for, all if nothing is `declared`. What they hold together is bounded as memory is."""
    from zipfile import ZipFile

    values: dict[Key, Any] = {}
    seen: set[str] = set()
    room = limits().bytes()
    try:
        archive = ZipFile(io.BytesIO(data))
    except Exception as error:  # whatever a codec raises
        raise DocumentError(f"{source}: malformed npz: {_line(error)}") from None
    records = {str(key): key for key, type_ in (declared or NO_TYPES).items() if isinstance(type_, RecordType)}
    texts = {str(key) for key in declared or NO_TYPES}
    for info in archive.infolist():
        member = info.orig_filename  # `filename` ends at a NUL
        text = member.removesuffix(".npy")
        owner, path = ("", []) if text in texts else field_of(text, records)
        key = records[owner] if owner else _undeclared_key(text, source)
        if key is None:
            continue
        if text in seen:
            raise DocumentError(f"{source}: the key {_short(text)} occurs twice")
        seen.add(text)
        if declared is not None and key not in declared:
            continue  # whatever it would inflate to
        *way, last = (key, *path)
        if (place := parent(values, way)) is None or last in place:
            raise DocumentError(f"{source}: the key {_short(text)} occurs twice")
        try:
            with archive.open(info) as file:
                array = place[last] = read_array(file, f"{source}: {_short(text)}", room)
        except LimitError:
            raise
        except Exception as error:  # whatever a codec raises, or a parser of headers
            raise DocumentError(f"{source}: malformed npz: member {_short(repr(member))}: {_line(error)}") from None
        room -= array.nbytes
    return values


def _undeclared_key(text: str, source: str) -> Key | None:
    """The key of a member; None for a field of the tangent of a record that the document lacks, as p@1.x is no key."""
    try:
        return parse_key(text)
    except KeyTextError:
        owner = text[: text.find(".", text.rfind("@") + 1)]
        _key(owner if text.startswith(f"{owner}.") else text, source)
        return None


def _read_npy(path: str, where: str) -> NDArray[Any]:
    try:
        with open(path, "rb") as file:
            note_read(file)
            return read_array(Source(file, unpacked=True), where, limits().bytes())
    except FileNotFoundError:
        raise DocumentError(f"{where}: no such file: {path}") from None
    except LimitError:
        raise
    except CompressionError as error:
        raise error.kind(f"{where}: {path}: {error}") from None
    except Exception as error:  # NumPy reads headers with Python's own parser
        raise DocumentError(f"{where}: cannot read {path} as .npy: {_line(error)}") from None


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
