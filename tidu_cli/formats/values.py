"""Files of values: what `eval` reads for a graph's inputs and writes for its outputs, as JSON, npz or msgpack.

Keys stand in their text form. Values read are either untyped (numbers, text of times, and nested lists, as JSON has them) or typed
(a `Literal`, or a NumPy array), or of a record a dict of these by field, of a tuple a list; which of them fit which input is for
`tidu_cli.runtime.evaluate` to say.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tidu_cli.errors import DocumentError, KeyTextError, LimitError, TypeTextError, UnknownNameError, did_you_mean
from tidu_cli.formats.json.numerals import require_finite, wants_text
from tidu_cli.formats.json.text import json_text
from tidu_cli.formats.messages import repeated
from tidu_cli.formats.npy import read_array
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.literals import NONFINITE, spelled
from tidu_cli.graph.select import listed
from tidu_cli.graph.text.decimals import number, to_be_shortened
from tidu_cli.graph.text.instants import NOT_A_TIME, instant_to_text
from tidu_cli.graph.types import DATETIMES, RecordType, TensorType, Type, unit_of
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.limits import limits
from tidu_cli.rules.attrs.literals import literal_from_file
from tidu_cli.runtime.nesting import by_inputs

# NumPy takes longer to import than most commands run, so here it is imported within the functions that need it.
if TYPE_CHECKING:
    from numpy.typing import NDArray

K = TypeVar("K", bound=Hashable)

NO_TYPES: Mapping[Key, Type] = {}

FORMATS = ("json", "npz", "msgpack")
"""The formats of values files."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}")  # which no JSON begins with


def read_values(data: bytes, source: str, declared: Mapping[Key, Type] | None = None) -> dict[Key, object]:
    """The values in a file's bytes, told apart by content. `source` is how messages name the file.

    `declared` are types of inputs: an object is a record where one is declared, and members `p.x` of an npz file are then its
    fields; one that is no input, but whose members are inputs `p.x`, is taken apart; of what is none of these inputs, members of
    npz are not read, and all else is given as it stands. Without, all are arrays. Raises DocumentError, and LimitError before more
    is decompressed than memory holds.
    """
    if data[:2] == b"PK":
        return _read_npz(data, source, declared)
    if data[:6] == b"\x93NUMPY":
        raise DocumentError(f"{source}: a .npy file holds one array without a key; tidu eval takes it as --set KEY=@{source}")
    members = _parse_msgpack(data, source) if data[:1] and (0x80 <= data[0] <= 0x8F or data[0] in (0xDE, 0xDF)) else None
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
    text: str, keys: Collection[Key], declared: Mapping[Key, Type] = NO_TYPES, *, option: str = "--set"
) -> tuple[Key, object]:
    """The key and the value of `KEY=VALUE`, where VALUE is JSON or `@FILE.npy`; one date or time needs no quotes.

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
        return key, _read_npy(value_text[1:], where)
    if isinstance(type_, TensorType) and type_.dtype in DATETIMES and _DATE.match(value_text):
        return key, value_text
    value = _parse_json(value_text, where, by_text=wants_text(value_text, [type_]))
    require_finite(value, where, value_text)
    return key, _value(value, type_, where)


def write_values(values: Mapping[Key, Any], format: str, types: Mapping[Key, Type] = NO_TYPES) -> bytes:
    """A file of these values in one of `FORMATS`: the same values, the same bytes. Typed, and exact to the bit, but for JSON.

    `types` are theirs, which arrays of numbers do without. A record is a tuple of the values of its fields, in order, or a mapping
    of them by name; None is zero. Datetimes are NumPy's, or integers.

    JSON is one line without types: floats are exact as doubles, complex numbers are `{"re": .., "im": ..}`, datetimes ISO 8601
    text, durations numbers, records objects, tuples lists. In npz each tensor of a record is a member, `p.x` or `p.0`. Raises
    DocumentError where two of these had one name.
    """
    if format == "npz":
        return _npz(values, types)
    if format == "msgpack":
        import msgpack

        packed: bytes = msgpack.packb({str(key): _tree(_typed, value, types.get(key)) for key, value in values.items()})
        return packed
    lines = ", ".join(f"{json_text(str(key))}: {json_text(_tree(_nested, value, types.get(key)))}" for key, value in values.items())
    return f"{{{lines}}}\n".encode()


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
        raise DocumentError(f"{source}: malformed JSON: {_line(error)}") from None


def _parse_msgpack(data: bytes, source: str) -> object:
    import msgpack

    try:
        return msgpack.unpackb(data, object_pairs_hook=partial(_unique, source), strict_map_key=True, use_list=True)
    except (ValueError, msgpack.UnpackException) as error:
        raise DocumentError(f"{source}: malformed msgpack: {_line(error)}") from None


def _unique(source: str, pairs: list[tuple[K, object]]) -> dict[K, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DocumentError(f"{source}: the key {_short(repr(repeated(key for key, _ in pairs)))} occurs twice")
    return found


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
        owner, path = ("", []) if text in texts else _field(text, records)
        key = records[owner] if owner else _undeclared_key(text, source)
        if key is None:
            continue
        if text in seen:
            raise DocumentError(f"{source}: the key {_short(text)} occurs twice")
        seen.add(text)
        if declared is not None and key not in declared:
            continue  # whatever it would inflate to
        *way, last = (key, *path)
        place: Any = values
        for step in way:
            place = place.setdefault(step, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last in place:
            raise DocumentError(f"{source}: the key {_short(text)} occurs twice")
        try:
            with archive.open(info) as file:
                found = place[last] = read_array(file, f"{source}: {_short(text)}", room)
        except LimitError:
            raise
        except Exception as error:  # whatever a codec raises, or a parser of headers
            raise DocumentError(f"{source}: malformed npz: member {_short(repr(member))}: {_line(error)}") from None
        room -= found.nbytes
    return values


def _field(text: str, records: Mapping[str, Key]) -> tuple[str, list[str]]:
    """The record that a member `p.x` is of, the one of the longest name, and the way to the field in it; "" for none."""
    owner, path = text, list[str]()
    while "." in owner:
        owner, _, step = owner.rpartition(".")
        path.insert(0, step)
        if owner in records:
            return owner, path
    return "", []


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
            return read_array(file, where, limits().bytes())
    except FileNotFoundError:
        raise DocumentError(f"{where}: no such file: {path}") from None
    except LimitError:
        raise
    except Exception as error:  # NumPy reads headers with Python's own parser
        raise DocumentError(f"{where}: cannot read {path} as .npy: {_line(error)}") from None


def _npz(values: Mapping[Key, Any], types: Mapping[Key, Type]) -> bytes:
    from zipfile import ZipFile, ZipInfo

    import numpy as np
    from numpy.lib import format as npy

    out = io.BytesIO()
    names: set[str] = set()
    with ZipFile(out, "w") as archive:
        for name, value, type_ in chain.from_iterable(_members(str(key), value, types.get(key)) for key, value in values.items()):
            if name in names:
                raise DocumentError(f"two values would be called '{_short(name)}' in an npz file; write JSON or msgpack")
            names.add(name)
            info = ZipInfo()  # of the earliest time that zip knows: files are to depend on values alone
            info.filename = info.orig_filename = f"{name}.npy"  # ZipInfo itself would cut a name at a NUL
            array = np.asarray(_stored(value, type_), order="C")
            if array.dtype.name == "bfloat16":
                array = array.view("V2")  # .npy has no name for it; whoever reads it knows the type
            if type_ is not None and type_.dtype in DATETIMES:
                array = array.view(f"M8[{unit_of(type_.dtype)}]")
            with archive.open(info, "w", force_zip64=array.nbytes > 2**30) as file:
                npy.write_array(file, array, allow_pickle=False)
    return out.getvalue()


def _members(name: str, value: Any, type_: Type | None) -> Iterator[tuple[str, Any, TensorType | None]]:
    """The tensors of a value, each by its name in npz."""
    if not isinstance(type_, RecordType):
        yield name, value, type_
        return
    for field, part, field_type in _fields(value, type_):
        yield from _members(f"{name}.{field}", part, field_type)


def _tree(leaf: Callable[[Any, TensorType | None], object], value: Any, type_: Type | None) -> object:
    """A value with `leaf` of each tensor, as JSON nests records."""
    if not isinstance(type_, RecordType):
        return leaf(_stored(value, type_), type_)
    parts = {name: _tree(leaf, part, field_type) for name, part, field_type in _fields(value, type_)}
    return list(parts.values()) if type_.is_tuple else parts


def _fields(value: Any, type_: RecordType) -> Iterator[tuple[str, Any, Type]]:
    for k, (name, field_type) in enumerate(type_.fields):
        yield name, None if value is None else value[name] if isinstance(value, Mapping) else value[k], field_type


def _stored(value: Any, type_: TensorType | None) -> NDArray[Any]:
    """A tensor as an array of the numbers that hold it."""
    import numpy as np

    if value is None:
        assert type_ is not None
        return np.zeros(type_.shape, numpy_dtype(np, type_.dtype))
    array: NDArray[Any] = np.asarray(value)
    if array.dtype.kind == "M" and type_ is not None:
        return array.astype(f"M8[{unit_of(type_.dtype)}]").view(np.int64)
    return array


def _typed(value: NDArray[Any], type_: TensorType | None) -> dict[str, object]:
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return {"type": str(type_ or TensorType(dtype_name(value.dtype), value.shape)), "data": little.tobytes()}


def _nested(value: NDArray[Any], type_: TensorType | None) -> object:
    """An array as nested lists of what JSON has; of rank 0 as its one element."""
    import numpy as np

    if type_ is not None and type_.dtype in DATETIMES:
        unit = unit_of(type_.dtype)
        counts = value.ravel().tolist()
        elements: list[object] = ["NaT" if x == NOT_A_TIME else instant_to_text(x, unit) or x for x in counts]
    elif value.dtype.kind == "c":
        parts = zip(value.real.ravel().tolist(), value.imag.ravel().tolist(), strict=True)
        elements = [{"re": spelled(re), "im": spelled(im)} for re, im in parts]
    elif value.dtype.kind in "biu":
        return value.tolist()
    else:
        value = value.astype(np.float64)
        if np.isfinite(value).all():
            return value.tolist()
        elements = [spelled(x) for x in value.ravel().tolist()]
    array = np.empty(value.size, object)
    array[:] = elements
    return array.reshape(value.shape).tolist()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
