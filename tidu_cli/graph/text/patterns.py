"""The texts of types as regular expressions, for JSON Schema: what `types` and `type_text` read, as far as such can tell.

They are in the part of the language that ECMA 262, which JSON Schema names, and Python's `re` read alike. How records nest, how
many bytes a type has and whether a name is declared no regular expression tells.
"""

from __future__ import annotations

from tidu_cli.graph.types import DATETIME, DURATION, ITEMSIZE, MAX_RANK, UNITS

END = r"$(?!\n)"
"""The end, for Python, too, whose `$` matches before a last line end."""

_DTYPE = "|".join(ITEMSIZE)
_TIME = rf"(?:{DATETIME}|{DURATION})\[(?:{'|'.join(UNITS)})\]"
_SIZE = "(?:0|[1-9][0-9]{0,18})"
_BLANK = r"[ \t\n\r\f\v]*"
_WORD_ENDS = "(?![A-Za-z0-9_])"


def _shape(size: str, blank: str = "") -> str:
    return rf"\[{blank}(?:{size}{blank}(?:,{blank}{size}{blank}){{0,{MAX_RANK - 1}}})?\]"


_TENSOR = rf"(?:(?:{_DTYPE}){_shape(_SIZE)}|{_TIME}(?:{_shape(_SIZE)})?)"
_OPEN_TENSOR = rf"(?:(?:{_DTYPE})(?:{_shape(_SIZE)}|(?![\[A-Za-z0-9_]))|{_TIME}(?:{_shape(_SIZE)})?)"

NAME = rf"(?!(?:{_DTYPE}|{DATETIME}|{DURATION}){_WORD_ENDS})[A-Za-z_][A-Za-z0-9_]*"
"""The name of a record type."""

FIELD = "[A-Za-z_][A-Za-z0-9_]*"
"""The name of a field."""


def _record(tensor: str) -> str:
    """A record or tuple, spelled out, as a flat list of tokens: what goes before a colon is a label, and types are right."""
    label = rf"(?:{FIELD}|0|[1-9][0-9]*){_BLANK}:"
    opening = rf"(?:(?:{NAME}{_BLANK})?\{{|\()"
    atom = rf"(?:{tensor}|{NAME}){_WORD_ENDS}(?={_BLANK}[,}})])"
    return rf"{opening}(?:{_BLANK}(?:{label}{_BLANK})?(?:{opening}|{atom})|{_BLANK}[,}})])*(?<=[}})])"


RECORD = rf"(?:{NAME}|{_record(_TENSOR)})"
"""The type of a record: a name, or spelled out."""

TENSOR_TYPE = rf"^{_TENSOR}{END}"
RECORD_TYPE = rf"^{RECORD}{END}"
TYPE = rf"^(?:{_TENSOR}|{RECORD}){END}"
OPEN_TYPE = rf"^(?:{_OPEN_TENSOR}|{NAME}|{_record(_OPEN_TENSOR)}){END}"
"""A type in which shapes may be left out, as those of tangents may."""

_ANY_SIZE = rf"(?:{_SIZE}|[a-z][a-z0-9_]*|\.\.\.)"
_ANY_SHAPE = _shape(_ANY_SIZE, " *")
PATTERN = rf"^(?:(?!.*\.\.\..*\.\.\.)(?:(?:T|{_DTYPE}){_ANY_SHAPE}|{_TIME}(?:{_ANY_SHAPE})?)|{RECORD}){END}"
"""A type pattern of a custom operation."""
