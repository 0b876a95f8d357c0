"""Attrs: what an operation is told beside its operands, as frozen objects whose fields are checked as those of a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import RecordType, TensorType
from tidu_cli.rules.attrs.fields import DOUBT, Data, Records, layout_of, made, read_quickly
from tidu_cli.rules.attrs.literals import literal_to_file


class Attrs(Data):
    """Base of every primitive's attrs: its annotations are its fields. Frozen, so that they hash; unknown names are errors."""

    def __init__(self, **values: Any) -> None:
        """Attrs of these values, which are checked as those of a file. Raises TypeRuleError."""
        self.__dict__.update(_read(type(self), values, {}))

    @classmethod
    def parse(cls, data: Mapping[str, object], records: Records) -> Self:
        """Attrs from their file form. Raises TypeRuleError for missing, unknown and malformed ones."""
        return made(cls, _read(cls, data, records))

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form: lists, numbers and strings, and bytes for constants if `binary`. Attrs at their default are left out."""
        defaults = layout_of(type(self)).defaults
        given = ((name, value) for name, value in self if name not in defaults or value != defaults[name])
        return {name: to_file(value, binary) for name, value in given}


class NoAttrs(Attrs):
    """The attrs of a primitive that has none."""


def to_file(value: object, binary: bool) -> object:
    """The file form of what attrs hold."""
    if isinstance(value, Attrs):
        return value.to_data(binary=binary)
    if isinstance(value, tuple | list):
        return [to_file(part, binary) for part in value]
    if isinstance(value, dict):
        return {name: to_file(part, binary) for name, part in value.items()}
    if isinstance(value, Literal):
        return literal_to_file(value, binary=binary)
    return str(value) if isinstance(value, TensorType | RecordType) else value


def _read(attrs: type[Attrs], data: Mapping[str, object], records: Records) -> Mapping[str, object]:
    found = read_quickly(attrs, data, records)
    if found is DOUBT:
        from tidu_cli.rules.attrs.models import validated

        found = validated(attrs, data, records)
    return found  # type: ignore[no-any-return]
