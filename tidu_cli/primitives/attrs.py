"""The kinds of attrs that primitives share, with their file forms."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import SerializationInfo

from tidu_cli.errors import TiduError, TypeTextError, did_you_mean
from tidu_cli.graph.literals import Literal, literal_from_numbers, literal_to_numbers
from tidu_cli.graph.types import ITEMSIZE, parse_type
from tidu_cli.primitives.contract import Attrs

INLINE_ELEMENTS = 16
"""Constants of more elements than this are written to JSON as base64."""


def _dtype(name: str) -> str:
    if name not in ITEMSIZE:
        raise ValueError(f"unknown dtype '{name}'{did_you_mean(name, list(ITEMSIZE))}")
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
        try:
            return Literal(type_, base64.b64decode(value["base64"], validate=True))
        except (binascii.Error, TypeError, ValueError):
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


def _validated(value: object) -> Literal:
    try:
        return literal_from_file(value)
    except TiduError as error:
        raise PydanticCustomError("literal", "{reason}", {"reason": str(error)}) from None


def _serialized(literal: Literal, info: SerializationInfo) -> dict[str, object]:
    return literal_to_file(literal, binary=bool(info.context and info.context.get("binary")))


_LITERAL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "data": {"type": "array", "items": {"type": ["number", "boolean", "string"]}},
        "base64": {"type": "string", "contentEncoding": "base64"},
    },
    "required": ["type"],
    "additionalProperties": False,
    "oneOf": [{"required": ["data"]}, {"required": ["base64"]}],
}

Axis = Annotated[int, Field(strict=True, ge=0)]
Axes = Annotated[tuple[Axis, ...], AfterValidator(_distinct)]
Shape = tuple[Axis, ...]
DTypeName = Annotated[str, AfterValidator(_dtype), Field(json_schema_extra={"enum": list(ITEMSIZE)})]
LiteralData = Annotated[Literal, PlainValidator(_validated), PlainSerializer(_serialized), WithJsonSchema(_LITERAL_SCHEMA)]


class AxesAttrs(Attrs):
    """`axes`: the axes of the operand that are reduced away."""

    axes: Axes
