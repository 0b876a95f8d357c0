"""JSON as it is written everywhere: characters as they are, but for those that steer terminals or turn the order of others."""

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
