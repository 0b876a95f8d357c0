"""Which format a file is of that a result would replace, by its first bytes; arrays in .npy files; constants on command lines.

A file that is of no format is not a result of tidu's.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import warnings
import zlib
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.formats.files import OWN, Source, read_bytes, repeated
from tidu_cli.formats.json import syntax_error
from tidu_cli.installed import is_foreign, recognized
from tidu_cli.limits import format_size, limits, more_than

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_BEGINNINGS = {
    b"{": "json",
    b"PK": "npz",
    b"\x93NUMPY": "npy",
    b"digraph": "dot",
    b"<": "svg",
    b"\x89PNG": "png",
    b"%PDF": "pdf",
    b"%%Matrix": "mtx",
}

_TABLE = re.compile(rb"\S[^\n]*?  (?:bool|bf16|[cfiu][0-9]+|datetime|duration)\[[\w,\[\]]*\] ")
"""How a table of values begins: a name, a type and then the elements."""

_HEAD = 2**20
"""How many bytes are searched for the marks of a document; a table is recognized by its first line."""


def format_found(path: str) -> str | None:
    """The format of a file, "" if it is empty, or none that one could write over; None if it is of no format that tidu knows.

    Of compressed files it is that of what they hold. Raises OSError.
    """
    if not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        source = Source(file, path, unpacked=True)
        first = source.head(8).lstrip(b"\xef\xbb\xbf \t\r\n")
        if not first or 0x80 <= first[0] <= 0x8F or first[0] in (0xDE, 0xDF):
            return "msgpack" if first else ""
        if format_ := recognized(source):
            return format_.name
        if _TABLE.match(source.head(_HEAD)):
            return "table"
    return next((name for beginning, name in _BEGINNINGS.items() if first.startswith(beginning)), None)


_VERSION = re.compile(rb'"tidu"\s*:\s*1\s*[,}]|\xa4tidu\x01')
"""The version of a document, in JSON and in msgpack."""


def holds_document(path: str) -> bool:
    """Whether a file is a document or a library of tidu's, or a model of another system. Raises OSError."""
    try:
        format_ = format_found(path)
        if format_ not in OWN:
            return is_foreign(format_)
        with open(path, "rb") as file:
            return _VERSION.search(Source(file, unpacked=True).head(_HEAD)) is not None
    except TiduError:  # a damaged archive
        return False


# NumPy's .npy form: its header, with error messages of our own, and one array, whose size is checked before it is read.


AGAIN = "write it again with numpy.save"
"""The way out."""


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of an array, whether it is in the order of Fortran, and its dtype. Raises DocumentError.

    What says so is text of Python's, which NumPy has Python's own parser read.
    """
    from numpy.lib import format as npy

    try:
        with warnings.catch_warnings(action="ignore"):  # of headers that Python 2 wrote, which are read as well
            version = npy.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
    except (OSError, zlib.error):
        raise
    except Exception:
        raise DocumentError(f"is damaged, or no .npy file: nothing says its dtype and its shape; {AGAIN}") from None
    if any(type(n) is not int or n < 0 for n in shape):
        raise DocumentError(f"is damaged: its shape is {list(shape)}; {AGAIN}")
    if dtype.hasobject:
        raise DocumentError("is of Python's objects, and arrays are of numbers; convert it with astype")
    return shape, fortran, dtype


_HEADER = 2**14
"""More bytes than a header has: NumPy takes none of more than 10,000."""


def read_array(file: IO[bytes] | Source, where: str, room: int) -> NDArray[Any]:
    """The array. No more is read, and decompressed, than its header says, and that may say `room` bytes at most.

    Raises LimitError that begins with `where`, DocumentError for a broken file, and what a compressed one raises.
    """
    import numpy as np
    from numpy.lib import format as npy

    source = Source(cast(BinaryIO, file))
    shape, _, dtype = read_header(io.BytesIO(source.head(_HEADER)))
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes > room:
        raise LimitError(f"{where}: an array of {format_size(n_bytes)}, {more_than('memory', room)}")
    try:
        with warnings.catch_warnings(action="ignore"):
            array: NDArray[Any] = npy.read_array(source, allow_pickle=False)
    except (ValueError, EOFError):
        raise DocumentError(f"is cut off, or no array: {format_size(n_bytes)} of numbers are due; {AGAIN}") from None
    if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
        raise DocumentError(f"has a bool that is neither 0 nor 1; {AGAIN}")
    return array


# Constants of Python as command lines give them: JSON, or `@FILE`, a file of JSON or an array in a .npy file.


def read_constant(text: str, where: str) -> Any:
    """What a text stands for: numbers, text, flags, None, and lists and dicts of these; of a .npy file an array.

    `where` is how messages name the option, such as `-i n`. Raises DocumentError, and LimitError for an array larger than memory.
    """
    if text.strip() in ("", "@"):
        what = f"no file is named after the @; write {where}=@FILE" if text else f"no value stands after the =; write {where}=5"
        raise DocumentError(f"{where}: {what}")
    if not text.startswith("@"):
        return _json(text, where)
    path = text[1:]
    data = read_bytes(path)
    if data[:6] != b"\x93NUMPY":
        if data[:2] == b"PK":
            raise DocumentError(f"{where}: {path} holds several arrays; give it with --inputs, which goes by their names")
        return _json(data, f"{where}: {path}")
    try:
        return read_array(io.BytesIO(data), where, limits().bytes())
    except LimitError:
        raise
    except Exception as error:  # NumPy reads headers with Python's own parser
        raise DocumentError(f"{where}: cannot read {path} as .npy: {error}") from None


def _json(text: str | bytes, where: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise DocumentError(f"{where}: the key {repeated(key for key, _ in pairs)!r:.60} occurs twice")
        return entries

    try:
        return json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text, object_pairs_hook=once)
    except RecursionError:
        raise DocumentError(f"{where}: malformed JSON: nested too deeply") from None
    except ValueError as error:
        is_word = isinstance(text, str) and text.replace("-", "_").replace(".", "_").isidentifier()
        raise DocumentError(f"{where}: {syntax_error(error)}{_way_out(where, text) if is_word else ''}") from None


def _way_out(where: str, text: str | bytes) -> str:
    of_python = {"True": "true", "False": "false", "None": "null"}
    return f"""; write {where}={of_python[str(text)] if text in of_python else f"'{json.dumps(str(text))}'"}"""
