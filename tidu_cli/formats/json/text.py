"""JSON as text: written with characters as they are but for those that steer terminals; what is wrong with it in plain words."""

from __future__ import annotations

import json
import re

_STEERING = re.compile("[\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")
"""Delete, the controls of Latin-1, ends of lines, and what says from which side to read. Python's json escapes those of ASCII."""


def json_text(value: object, indent: int | None = None) -> str:
    """The text of plain data. Raises ValueError for floats that are not finite."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    # Only strings hold such characters, and an escape there stands for the same.
    return text if text.isascii() and "\x7f" not in text else _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_WORDS = {
    "Expecting value": "there is no value",
    "Expecting property name enclosed in double quotes": "there is no key in double quotes",
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Illegal trailing comma before end of object": "a comma has nothing after it",
    "Illegal trailing comma before end of array": "a comma has nothing after it",
    "Invalid control character at": "a string holds a control character",
}


def syntax_error(error: ValueError, what: str = "value") -> str:
    """What `json.loads`, or the decoding before it, has against the text of `what`, and where."""
    return f"malformed JSON: {_fault(error, what)}"


def _fault(error: ValueError, what: str) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"invalid UTF-8 at byte {error.start}"
    if not isinstance(error, json.JSONDecodeError):  # int() refuses to read thousands of digits
        return "an integer has too many digits"
    place = f"line {error.lineno}, column {error.colno}"
    if not error.doc.strip():
        return f"the {what} is empty"
    if error.msg == "Extra data":
        return f"more data after the {what} at {place}" + "; a file or pipe holds one document" * (what == "document")
    if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string"):
        return f"ends within the {what} at {place}; is it cut off?"
    return f"{_WORDS.get(error.msg, f'{error.msg[0].lower()}{error.msg[1:]}')} at {place}"
