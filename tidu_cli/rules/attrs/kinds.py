"""The kinds of attrs that primitives share, with their file forms."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from tidu_cli.errors import TypeTextError, did_you_mean
from tidu_cli.graph.literals import Literal, literal_from_numbers, literal_to_numbers
from tidu_cli.graph.text.patterns import END, TENSOR_TYPE
from tidu_cli.graph.types import DATETIME, DTYPES, DURATION, INTEGERS, ITEMSIZE, SIGNED, parse_type
from tidu_cli.rules.attrs.attrs import Attrs
from tidu_cli.rules.attrs.fields import After, Bounded, Parsed, Records

INLINE_ELEMENTS = 16
"""Constants of more elements than this are written to JSON as base64."""


def _dtype(name: str) -> str:
    if name not in DTYPES:
        raise ValueError(f"unknown dtype '{name}'{did_you_mean(name, list(DTYPES))}")
    return name


def _distinct(axes: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(axes)) < len(axes):
        raise ValueError(f"axes repeat: {list(axes)}")
    return axes


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


def _parsed(value: object, records: Records) -> Literal:
    return literal_from_file(value)


def _written(literal: Literal, binary: bool) -> dict[str, object]:
    return literal_to_file(literal, binary=binary)


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
_LITERAL_SCHEMA: dict[str, Any] = {
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

Axis = Annotated[int, Bounded(ge=0)]
Axes = Annotated[tuple[Axis, ...], After(_distinct, {"uniqueItems": True})]
Shape = tuple[Axis, ...]
DTypeName = Annotated[str, After(_dtype, {"enum": list(DTYPES)})]
LiteralData = Annotated[Literal, Parsed(_parsed, _written, _LITERAL_SCHEMA)]


class AxesAttrs(Attrs):
    """`axes`: the axes of the operand that are reduced away."""

    axes: Axes
