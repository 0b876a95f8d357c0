"""Which format a file is of that a result would replace, by its first bytes: what is of none is no result of tidu's."""

from __future__ import annotations

import os
import re

from tidu_cli.errors import TiduError
from tidu_cli.formats.files import Source
from tidu_cli.formats.suffixes import OWN
from tidu_cli.installed import is_foreign, recognized

_BEGINNINGS = {
    b"{": "json",
    b"PK": "npz",
    b"\x93NUMPY": "npy",
    b"digraph": "dot",
    b"<": "svg",
    b"\x89PNG": "png",
    b"%PDF": "pdf",
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
    return next((found for beginning, found in _BEGINNINGS.items() if first.startswith(beginning)), None)


_VERSION = re.compile(rb'"tidu"\s*:\s*1\s*[,}]|\xa4tidu\x01')
"""The version of a document, in JSON and in msgpack."""


def holds_document(path: str) -> bool:
    """Whether a file is a document or a library of tidu's, or a model of another system. Raises OSError."""
    try:
        found = format_found(path)
        if found not in OWN:
            return is_foreign(found)
        with open(path, "rb") as file:
            return _VERSION.search(Source(file, unpacked=True).head(_HEAD)) is not None
    except TiduError:  # a damaged archive
        return False
