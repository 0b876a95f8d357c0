"""Constants in files: how they are written, read and described."""

from __future__ import annotations

import base64
from typing import Any

from tidu_cli.errors import TypeTextError
from tidu_cli.graph.literals import Literal, literal_from_numbers, literal_to_numbers
from tidu_cli.graph.text.patterns import END, TENSOR_TYPE
from tidu_cli.graph.types import DATETIME, DURATION, INTEGERS, ITEMSIZE, SIGNED, parse_type

INLINE_ELEMENTS = 16
"""Constants of more elements than this are written to JSON as base64."""


def literal_from_file(value: object) -> Literal:
    """Constant data `{"type": T, "data": [...]}`, with `base64` in its place, or bytes (msgpack). Raises TypeTextError."""
    if isinstance(value, Literal):
        return value
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("type"), str)
        or set(value) not in ({"type", "data"}, {"type", "base64"})
    ):
        raise TypeTextError('constant data is {"type": "f64[2]", "data": [...]}, or with "base64" in place of "data"')
    type_ = parse_type(value["type"])
    if "base64" in value:
        text = value["base64"]
        try:
            if not isinstance(text, str) or len(text) % 4:  # b64decode takes bytes, too, and more padding than is due
                raise ValueError
            return Literal(type_, base64.b64decode(text, validate=True))
        except ValueError:
            raise TypeTextError(f"constant of type {type_}: malformed base64") from None
    data = value["data"]
    if isinstance(data, bytes):
        return Literal(type_, data)
    if not isinstance(data, list):
        raise TypeTextError(f"constant of type {type_}: data is a flat list, row-major")
    return literal_from_numbers(type_, data)


def literal_to_file(literal: Literal, *, binary: bool) -> dict[str, object]:
    """The file form of a literal: bytes for msgpack; for JSON numbers, or base64 if they are many or a NaN has a payload."""
    if binary:
        return {"type": str(literal.type), "data": literal.data}
    if literal.type.size <= INLINE_ELEMENTS:
        numbers = literal_to_numbers(literal)
        if literal_from_numbers(literal.type, numbers) == literal:
            return {"type": str(literal.type), "data": numbers}
    return {"type": str(literal.type), "base64": base64.b64encode(literal.data).decode()}


_NONFINITE = [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]
_BASE64 = rf"^(?:[A-Za-z0-9+/]{{4}})*(?:[A-Za-z0-9+/]{{2}}==|[A-Za-z0-9+/]{{3}}=)?{END}"


def _elements(dtype: str) -> dict[str, Any]:
    """The JSON Schema of an element of constant data."""
    if dtype == "bool":
        return {"type": "boolean"}
    if dtype in INTEGERS:
        bits, signed = 8 * ITEMSIZE[dtype], dtype in SIGNED
        least, end = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
        return {"type": "integer", "minimum": least, "exclusiveMaximum": end}
    return {"anyOf": _NONFINITE}


_INSTANT = {"anyOf": [{"type": "string"}, {"type": "integer", "exclusiveMinimum": -(2**63), "exclusiveMaximum": 2**63}]}
_BY_DTYPE = {dtype: _elements(dtype) for dtype in ITEMSIZE} | {DATETIME: _INSTANT, DURATION: _elements("f64")}
LITERAL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "pattern": TENSOR_TYPE},
        "data": {"type": "array"},
        "base64": {"type": "string", "contentEncoding": "base64", "pattern": _BASE64},
    },
    "required": ["type"],
    "additionalProperties": False,
    "oneOf": [{"required": ["data"]}, {"required": ["base64"]}],
    "allOf": [
        {"if": {"properties": {"type": {"pattern": rf"^{dtype}\["}}}, "then": {"properties": {"data": {"items": items}}}}
        for dtype, items in _BY_DTYPE.items()
    ],
}
