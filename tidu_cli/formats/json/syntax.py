"""What is wrong with JSON, in plain words and not in those of Python's parser."""

from __future__ import annotations

import json

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
