"""Constants of Python as command lines give them: JSON, or `@FILE`, a file of JSON or an array in a .npy file."""

from __future__ import annotations

import io
import json
from typing import Any

from tidu_cli.errors import DocumentError, LimitError
from tidu_cli.formats.files import read_bytes
from tidu_cli.formats.json.text import syntax_error
from tidu_cli.formats.messages import repeated
from tidu_cli.formats.npy import read_array
from tidu_cli.limits import limits


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
        found = dict(pairs)
        if len(found) < len(pairs):
            raise DocumentError(f"{where}: the key {repeated(key for key, _ in pairs)!r:.60} occurs twice")
        return found

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
