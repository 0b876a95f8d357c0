"""Files of values: what `eval` reads for a graph's inputs and writes for its outputs, as JSON, npz or msgpack.

Keys stand in their text form. Values read are either untyped (numbers and nested lists, as JSON has them) or typed (a
`Literal`, or a NumPy array); which of them fit which input is for `tidu_cli.runtime.evaluate` to say.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tidu_cli.errors import DocumentError, KeyTextError, TypeTextError, UnknownNameError, did_you_mean
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.literals import NONFINITE, spelled
from tidu_cli.graph.select import listed
from tidu_cli.primitives.attrs import literal_from_file
from tidu_cli.primitives.structural import dtype_name

# NumPy takes longer to import than most commands run, so here it is imported within the functions that need it.
if TYPE_CHECKING:
    from numpy.typing import NDArray

K = TypeVar("K")

FORMATS = ("json", "npz", "msgpack")
"""The formats of values files."""

_UNREADABLE = (ValueError, OSError, EOFError, MemoryError, NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that zip knows: files are to depend on values alone


def read_values(data: bytes, source: str) -> dict[Key, object]:
    """The values in a file's bytes, told apart by content. `source` is how messages name the file. Raises DocumentError."""
    if data[:2] == b"PK":
        return _read_npz(data, source)
    if data[:6] == b"\x93NUMPY":
        raise DocumentError(f"{source}: a .npy file holds one array without a key; give it with --set KEY=@{source}")
    members = _parse_msgpack(data, source) if data[:1] and (0x80 <= data[0] <= 0x8F or data[0] in (0xDE, 0xDF)) else None
    if members is None:
        members = _parse_json(data, source)
    if not isinstance(members, dict):
        raise DocumentError(f'{source}: values files hold an object of values by key, such as {{"x": 3, "y@-1": [1, 2]}}')
    values: dict[Key, object] = {}
    for text, value in members.items():
        values[_key(text, source)] = _value(value, f"{source}: {text}")
    return values


def parse_assignment(text: str, declared: Collection[Key]) -> tuple[Key, object]:
    """The key and the value of `KEY=VALUE`, where VALUE is JSON or `@FILE.npy`.

    The `=` is the last one whose left side is a declared key, as names may hold one. Raises DocumentError if the text is
    malformed, UnknownNameError if no such key is declared.
    """
    known = {str(key): key for key in declared}
    if "=" not in text:
        raise DocumentError(f"malformed assignment '{_short(text)}': write it as KEY=VALUE, such as x=3 or x=[1,2]")
    splits = [k for k, character in enumerate(text) if character == "=" and text[:k] in known]
    at = splits[-1] if splits else text.index("=")
    key_text, value_text = text[:at], text[at + 1 :]
    if key_text not in known:
        _key(key_text, "--set")
        names = sorted(known)
        hint = did_you_mean(key_text, names)
        raise UnknownNameError(f"no graph has an input '{_short(key_text)}'{hint} (inputs: {listed(names)})")
    where = f"--set {key_text}"
    value = _read_npy(value_text[1:], where) if value_text.startswith("@") else _parse_json(value_text, where)
    return known[key_text], _value(value, where)


def write_values(values: Mapping[Key, NDArray[Any]], format: str) -> bytes:
    """A file of these arrays in one of `FORMATS`: the same values, the same bytes. Typed, and exact to the bit, but for JSON.

    JSON is one line without types: floats are exact as doubles, complex numbers are `{"re": .., "im": ..}`.
    """
    if format == "npz":
        return _npz(values)
    if format == "msgpack":
        import msgpack

        packed: bytes = msgpack.packb({str(key): _typed(value) for key, value in values.items()})
        return packed
    lines = ", ".join(f"{_json(str(key))}: {_json(_nested(value))}" for key, value in values.items())
    return f"{{{lines}}}\n".encode()


def _key(text: object, source: str) -> Key:
    if not isinstance(text, str):
        raise DocumentError(f"{source}: keys are strings, not {_short(repr(text))}")
    try:
        return parse_key(text)
    except KeyTextError as error:
        raise DocumentError(f"{source}: {error}") from None


def _value(value: object, where: str) -> object:
    """Complex numbers and typed constants told by their fields; anything else as it stands."""
    if isinstance(value, list) and not any(isinstance(x, dict | list) for x in value):
        return value
    if isinstance(value, list):
        return [_value(x, where) for x in value]  # no deeper than the parsers have gone
    if not isinstance(value, dict):
        return value
    if set(value) == {"re", "im"}:
        return complex(_part(value["re"], where), _part(value["im"], where))
    try:
        return literal_from_file(value)
    except TypeTextError as error:
        if "type" in value:
            raise DocumentError(f"{where}: {error}") from None
        raise DocumentError(
            f'{where}: an object is a complex number {{"re": 1, "im": 2}} or typed data {{"type": "f64[2]", "data": [1, 2]}}'
        ) from None


def _part(x: object, where: str) -> float:
    if isinstance(x, str) and x in NONFINITE:
        return NONFINITE[x]
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise DocumentError(f"{where}: the parts of a complex number are numbers, not {_short(repr(x))}")
    try:
        return float(x)
    except OverflowError:
        raise DocumentError(f"{where}: a part of a complex number is out of range") from None


def _parse_json(data: bytes | str, source: str) -> object:
    def members(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return _unique(pairs, source)

    def refuse(constant: str) -> NoReturn:
        raise DocumentError(f'{source}: malformed JSON: {constant} is written as a string, "{constant}"')

    try:
        return json.loads(
            data.decode("utf-8-sig") if isinstance(data, bytes) else data, object_pairs_hook=members, parse_constant=refuse
        )
    except RecursionError:
        raise DocumentError(f"{source}: malformed JSON: nested too deeply") from None
    except ValueError as error:
        raise DocumentError(f"{source}: malformed JSON: {_line(error)}") from None


def _parse_msgpack(data: bytes, source: str) -> object:
    import msgpack

    def members(pairs: Iterable[tuple[object, object]]) -> dict[object, object]:
        return _unique(pairs, source)

    try:
        return msgpack.unpackb(data, object_pairs_hook=members, strict_map_key=True, use_list=True)
    except (ValueError, msgpack.UnpackException) as error:
        raise DocumentError(f"{source}: malformed msgpack: {_line(error)}") from None


def _unique(pairs: Iterable[tuple[K, object]], source: str) -> dict[K, object]:
    found: dict[K, object] = {}
    for key, value in pairs:
        if key in found:
            raise DocumentError(f"{source}: the key {_short(repr(key))} occurs twice")
        found[key] = value
    return found


def _read_npz(data: bytes, source: str) -> dict[Key, object]:
    values: dict[Key, object] = {}
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _UNREADABLE as error:
        raise DocumentError(f"{source}: malformed npz: {_line(error)}") from None
    for info in archive.infolist():
        member = info.orig_filename  # `filename` ends at a NUL
        key = _key(member.removesuffix(".npy"), source)
        if key in values:
            raise DocumentError(f"{source}: the key {key} occurs twice")
        try:
            with archive.open(info) as file:
                values[key] = _array(file)
        except _UNREADABLE as error:
            raise DocumentError(f"{source}: malformed npz: member {_short(repr(member))}: {_line(error)}") from None
    return values


def _read_npy(path: str, where: str) -> NDArray[Any]:
    try:
        with open(path, "rb") as file:
            return _array(file)
    except FileNotFoundError:
        raise DocumentError(f"{where}: no such file: {path}") from None
    except _UNREADABLE as error:
        raise DocumentError(f"{where}: cannot read {path} as .npy: {_line(error)}") from None


def _array(file: Any) -> NDArray[Any]:
    from numpy.lib import format as npy

    array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return array


def _npz(values: Mapping[Key, NDArray[Any]]) -> bytes:
    import numpy as np
    from numpy.lib import format as npy

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for key, value in values.items():
            info = zipfile.ZipInfo("", _EPOCH)
            info.filename = info.orig_filename = f"{key}.npy"  # ZipInfo itself would cut a name at a NUL
            array = np.asarray(value, order="C")
            if array.dtype.name == "bfloat16":
                array = array.view("V2")  # .npy has no name for it; whoever reads it knows the type
            with archive.open(info, "w", force_zip64=array.nbytes > 2**30) as file:
                npy.write_array(file, array, allow_pickle=False)
    return out.getvalue()


def _typed(value: NDArray[Any]) -> dict[str, object]:
    shape = ",".join(map(str, value.shape))
    little = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return {"type": f"{dtype_name(value.dtype)}[{shape}]", "data": little.tobytes()}


def _nested(value: NDArray[Any]) -> object:
    """An array as nested lists of what JSON has; of rank 0 as its one element."""
    import numpy as np

    if value.dtype.kind == "c":
        parts = zip(value.real.ravel().tolist(), value.imag.ravel().tolist(), strict=True)
        elements: list[object] = [{"re": spelled(re), "im": spelled(im)} for re, im in parts]
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


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
