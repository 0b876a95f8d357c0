"""Types of values from text: those of tensors, names of declared records, and records and tuples that are spelled out.

f64[3]                            a tensor
Point                             the record type that the document declares so
{x: f64[], y: f64[]}              a record; (f64[], i32[3]) is a tuple, (f64[],) one of a single field
Point{x: f64[], y: f64[]}         tangents of Point: its name, and fields of their own
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidu_cli.errors import TypeTextError, did_you_mean
from tidu_cli.graph.types import DTYPES, ITEMSIZE, MAX_BYTES, OPEN_SHAPE, TIMES, RecordType, TensorType, Type, parse_type, type_hint

MAX_LEAVES = 1000
"""As many tensors as a record type may hold, all nested ones together."""

MAX_NESTING = 32
"""How deep records may nest: rules and messages recurse as deep."""

_TOKEN = re.compile(
    r"\s*(?:(?P<tensor>(?:[a-z0-9]+|(?:datetime|duration)\[[A-Za-z]*\])\[[0-9,]*\]|(?:datetime|duration)\[[A-Za-z]*\])"
    r"|(?P<name>[A-Za-z_0-9]+)|(?P<mark>[{}():,]))",
    re.ASCII,
)
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|0|[1-9][0-9]*", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WORD = re.compile(r"(?<![\[A-Za-z0-9_])[A-Za-z_][A-Za-z0-9_]*\b(?!\s*:)", re.ASCII)
_NAMES = "names are of letters, digits and _, and do not begin with a digit"
_RESERVED = frozenset(dtype.partition("[")[0] for dtype in DTYPES)

NO_RECORDS: Mapping[str, RecordType] = {}


def parse_value_type(text: str, declared: Mapping[str, RecordType] = NO_RECORDS, *, open_shapes: bool = False) -> Type:
    """Read the type of a tensor or record. `declared` are record types by name.

    With `open_shapes` a dtype may stand for the type, whose shape is then OPEN_SHAPE. Raises TypeTextError, also for a type of more
    tensors than MAX_LEAVES, or nested deeper than MAX_NESTING.
    """
    if not text.startswith(("{", "(")) and text not in declared and not open_shapes and "{" not in text:
        if _NAME.fullmatch(text) and text not in _RESERVED:
            hint = (
                did_you_mean(text, list(declared))
                or type_hint(text)
                or "; declare it under 'types', or write dtype[shape], such as f64[3,4]"
            )
            raise TypeTextError(f"unknown type {text[:60]!r}{hint}")
        return parse_type(text)
    if text != text.strip():
        raise TypeTextError(f"unknown type {text[:60]!r}: no blanks go before or after a type")
    parser = _Parser(text, declared, open_shapes)
    found = parser.type(0)
    parser.end()
    check_extent(found, text)
    return found


def check_name(name: str) -> None:
    """Raises TypeTextError if a record type may not have this name."""
    if name in _RESERVED:
        raise TypeTextError(f"a record type cannot be called {name!r}, as a dtype is")
    if not _NAME.fullmatch(name):
        raise TypeTextError(f"a record type cannot be called {name[:60]!r}; {_NAMES}")


def check_field(name: str) -> None:
    """Raises TypeTextError if a field may not have this name."""
    if not _NAME.fullmatch(name):
        raise TypeTextError(f"a field cannot be called {name[:60]!r}; {_NAMES}")


def names_in(text: str) -> list[str]:
    """The words in the text of a type that may be names of record types: not those of fields, nor of units of time."""
    return _WORD.findall(text)


def check_extent(type_: Type, text: str) -> None:
    """Raises TypeTextError if a type holds too many tensors, or nests too deeply. A record without fields counts as a tensor."""
    if not isinstance(type_, RecordType):
        return
    if type_.n_tensors > MAX_LEAVES:
        raise TypeTextError(f"the type {text[:60]} holds more than {MAX_LEAVES:,} tensors")
    if type_.depth > MAX_NESTING:
        raise TypeTextError(f"the type {text[:60]} nests deeper than {MAX_NESTING} records")
    if type_.nbytes > MAX_BYTES:
        raise TypeTextError(f"the type {text[:60]} is larger than any memory")


class _Parser:
    """Reads one type from the left. Recurses as deep as records nest, which is bounded."""

    def __init__(self, text: str, declared: Mapping[str, RecordType], open_shapes: bool) -> None:
        self.text = text
        self.declared = declared
        self.open_shapes = open_shapes
        self.position = 0

    def type(self, depth: int) -> Type:
        if depth > MAX_NESTING:
            raise TypeTextError(f"the type {self.text[:40]}... nests deeper than {MAX_NESTING} records")
        kind, token = self.next()
        if kind == "tensor":
            return TensorType(token, OPEN_SHAPE) if self.open_shapes and token in TIMES else parse_type(token)
        if token in ("{", "("):
            return RecordType("", self.fields(depth, is_tuple=token == "("))
        if kind == "name" and self.peek() == "{":
            if token not in self.declared:
                raise TypeTextError(f"unknown record type {token[:60]!r}{did_you_mean(token, list(self.declared))}")
            self.next()
            return self.declared[token].tangents(self.fields(depth, is_tuple=False))
        if kind == "name" and token in self.declared:
            return self.declared[token]
        if kind == "name" and self.open_shapes and token in ITEMSIZE:
            return TensorType(token, OPEN_SHAPE)
        if kind == "name":
            hint = did_you_mean(token, [*self.declared, *(ITEMSIZE if self.open_shapes else ())]) or type_hint(token)
            raise TypeTextError(f"unknown type {token[:60]!r}{hint or '; write dtype[shape], such as f64[3,4] or f64[]'}")
        raise self.malformed()

    def fields(self, depth: int, *, is_tuple: bool) -> tuple[tuple[str, Type], ...]:
        found: dict[str, Type] = {}
        end = ")" if is_tuple else "}"
        while self.peek() != end:
            name = str(len(found)) if is_tuple else self.next()[1]
            if not is_tuple and (not _FIELD.fullmatch(name) or self.next()[1] != ":"):
                raise self.malformed()
            if name in found:
                raise TypeTextError(f"the type {self.text[:60]!r} has two fields '{name}'")
            found[name] = self.type(depth + 1)
            if is_tuple and self.peek() == end and len(found) == 1:
                raise TypeTextError(f"the type {self.text[:60]!r} is no tuple; write one of a single field as ({found['0']},)")
            if self.peek() != end and self.next()[1] != ",":
                raise self.malformed()
        self.next()
        return tuple(found.items())

    def next(self) -> tuple[str, str]:
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            raise self.malformed()
        self.position = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.position)
        return match[match.lastgroup or 0] if match else ""

    def end(self) -> None:
        if self.text[self.position :].strip():
            raise self.malformed()

    def malformed(self) -> TypeTextError:
        return TypeTextError(
            f"unknown type {self.text[:60]!r}; a record is written {{x: f64[], y: f64[3]}}, a tuple (f64[], f64[3])"
        )
