"""JSON to plain data, in the strict form that documents use, which means the same to every reader.

That is UTF-8, no key twice in one object, no NaN literals, one value and nothing after it. Nothing here knows what a document is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from tidu_cli.errors import DocumentError
from tidu_cli.formats.files import Source
from tidu_cli.formats.json.numerals import settled
from tidu_cli.formats.json.text import syntax_error
from tidu_cli.formats.messages import repeated
from tidu_cli.graph.text.decimals import number

BLOCK = 2**20
"""JSON comes in by so many bytes."""

LARGE = 2**17
"""From so many bytes on JSON is read in pieces, if it can be."""

# In UTF-8 text only escapes can make half of a surrogate pair, and they are rare enough to look closer at.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_CONTAINER = re.compile(rb"\s*[{\[]")


def parsed(source: Source) -> object:
    """The plain data of a source, read to its end, with long lists of nodes `Listed`. Raises DocumentError if it is malformed."""
    data, has_begun = bytearray(), False
    while block := source.read(BLOCK):  # one read of all would hold all twice
        if not has_begun and not block.isspace():
            _check_beginning(block)
            has_begun = True
        if b"\0" in block:  # a device, perhaps, which has no end
            raise DocumentError("malformed JSON: holds a byte 0, which is in no JSON text")
        data += block
    if not has_begun:
        raise DocumentError("empty; expected a document in JSON or msgpack")
    return _plain(data, source.require_room_for_json)


def _check_beginning(data: bytes) -> None:
    """Raises DocumentError if what begins so is no document, however it goes on, and whether or not it ends."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DocumentError("the text is UTF-16; documents are UTF-8 without a byte order mark")
    if data.startswith(b"\xef\xbb\xbf"):
        raise DocumentError("begins with a UTF-8 byte order mark; save the document without one")
    if not _CONTAINER.match(data):
        raise DocumentError("neither JSON, which begins with '{', nor msgpack, which begins with a map")


def _plain(data: bytearray, require_room: Callable[[bytearray], None]) -> object:
    beside: list[float] = []

    def finite_float(digits: str) -> float:
        value = number(digits)
        if math.isinf(value):
            raise DocumentError(f'the number {digits[:40]} is beyond every float; in constant data write "Infinity" or "-Infinity"')
        if type(value) is not float:
            beside.append(value)
        return value

    strict: dict[str, Any] = {"parse_constant": _refuse_constant, "parse_float": finite_float}
    keys_once: dict[str, Any] = {"object_pairs_hook": _json_object}
    may_have_halves = b"\\u" in data and _SURROGATE_ESCAPE.search(data)
    if len(data) >= LARGE and not may_have_halves:
        from tidu_cli.formats.json.pieces import parsed_in_pieces

        found = parsed_in_pieces(data, strict, keys_once, require_room)
        if found is not None and not beside:
            return found
    require_room(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(syntax_error(error, "document")) from None
    try:
        value: object = json.loads(text, **strict, **keys_once)
        if beside:
            value = settled(value)
        if may_have_halves:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise DocumentError(syntax_error(error, "document")) from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise DocumentError(f"malformed JSON: a string holds {half}, half of a surrogate pair, which is not Unicode text") from None
    except RecursionError:
        raise DocumentError("nests too deeply") from None
    except ValueError as error:
        raise DocumentError(syntax_error(error, "document")) from None
    return value


def _json_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise DocumentError(f"an object has the key {repeated(key for key, _ in pairs)!r} twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise DocumentError(f'malformed JSON: {name} is not JSON; in constant data write "{name}" in quotes')
