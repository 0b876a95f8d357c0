"""Bytes to plain data: JSON and msgpack, told apart by content, in the strict forms that documents use.

What is accepted means the same to every reader: UTF-8, no key twice in one object, no NaN literals, one value and nothing
after it. Nothing here knows what a document is.
"""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

import msgpack

from tidu_cli.errors import DocumentError

MAX_MESSAGE = 600
"""Messages are cut to this length: they quote names, which may be of any length in a broken file."""

# In UTF-8 text only escapes can make half of a surrogate pair, and they are rare enough to look closer at.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_DEEP = "nests too deeply"


def one_line(message: str) -> str:
    """`message` as one printable line of limited length: other characters are escaped."""
    line = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in message[: 2 * MAX_MESSAGE]
    )
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 3] + "..."


def shown(value: object) -> str:
    """A part of a broken file as a message quotes it: as JSON, and no longer than a few words."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, ValueError):
        return "that"
    return text if len(text) <= 80 else text[:77] + "..."


def parse_bytes(data: bytes) -> tuple[object, str]:
    """The plain data in `data`, and its format: "json" or "msgpack". Raises DocumentError if it is neither, or malformed."""
    if not data.strip():
        raise DocumentError("empty; expected a document in JSON or msgpack")
    if 0x80 <= data[0] <= 0x8F or data[0] in (0xDE, 0xDF):  # the heads of msgpack's maps, none of which begins UTF-8 text
        return _parse_msgpack(data), "msgpack"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DocumentError("the text is UTF-16; documents are UTF-8 without a byte order mark")
    if data.startswith(b"\xef\xbb\xbf"):
        raise DocumentError("begins with a UTF-8 byte order mark; save the document without one")
    if data.lstrip()[:1] not in (b"{", b"["):
        raise DocumentError("neither JSON, which begins with '{', nor msgpack, which begins with a map")
    return _parse_json(data), "json"


def _parse_json(data: bytes) -> object:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(f"malformed JSON: invalid UTF-8 at byte {error.start}") from None
    try:
        value: object = json.loads(text, object_pairs_hook=_json_object, parse_constant=_refuse_constant, parse_float=_finite_float)
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise DocumentError(f"malformed JSON: {_syntax_error(error, text)}") from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise DocumentError(f"malformed JSON: a string holds {half}, half of a surrogate pair, which is not Unicode text") from None
    except RecursionError:
        raise DocumentError(_TOO_DEEP) from None
    except ValueError:  # int() refuses to read thousands of digits
        raise DocumentError("malformed JSON: an integer has too many digits") from None
    return value


def _syntax_error(error: json.JSONDecodeError, text: str) -> str:
    place = f"line {error.lineno}, column {error.colno}"
    if error.msg == "Extra data":
        return f"more data after the document at {place}; a file or pipe holds one document"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"ends within the document at {place}; is it cut off?"
    return f"{error.msg[0].lower()}{error.msg[1:]} at {place}"


def _json_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise DocumentError(f"an object has the key {next(k for k in keys if keys.count(k) > 1)!r} twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise DocumentError(f'malformed JSON: {name} is not JSON; in constant data write "{name}" in quotes')


def _finite_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise DocumentError(f'the number {digits[:40]} is beyond every float; in constant data write "Infinity" or "-Infinity"')
    return value


def _parse_msgpack(data: bytes) -> object:
    try:
        value: object = msgpack.unpackb(data, object_pairs_hook=_msgpack_map, ext_hook=_refuse_extension, strict_map_key=False)
    except msgpack.ExtraData:
        raise DocumentError("malformed msgpack: more data after the document; a file or pipe holds one document") from None
    except UnicodeDecodeError:
        raise DocumentError("malformed msgpack: a string is not valid UTF-8") from None
    except (msgpack.StackError, RecursionError):
        raise DocumentError(_TOO_DEEP) from None
    except (msgpack.FormatError, MemoryError, TypeError):
        raise DocumentError("malformed msgpack") from None
    except ValueError as error:
        if "incomplete input" in str(error):
            raise DocumentError("malformed msgpack: ends within the document; is it cut off?") from None
        raise DocumentError(f"malformed msgpack: {error}") from None
    return value


def _msgpack_map(pairs: list[tuple[object, object]]) -> dict[object, object]:
    for key, _ in pairs:
        if type(key) is not str:
            raise DocumentError(f"malformed msgpack: the map key {key!r} is not a string")
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise DocumentError(f"a map has the key {next(k for k in keys if keys.count(k) > 1)!r} twice")
    return result


def _refuse_extension(code: int, data: bytes) -> NoReturn:
    raise DocumentError(f"malformed msgpack: documents have no extension types, but here is one of type {code}")
