"""Attrs: what a node says of its op beside the operands, read from files and written to them by the annotations of its class.

What is right is read in plain Python (`fields`). Where there is any doubt the pydantic model of the class decides (`models`): to
import and build one takes longer than all else that a command does with a small document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, dataclass_transform

from tidu_cli.rules.attrs.fields import DOUBT, FrozenFields, Records, layout_of, made, read_quickly


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Attrs(FrozenFields):
    """Base of every primitive's attrs: its annotations are its fields. Frozen, so that they hash; unknown names are errors.

    Where annotations are made of bool, int, float, str, Literal, None, tuple, unions and other Attrs, with `Kind`s to narrow them,
    attrs are read without pydantic. Any other that it knows will do, too, and so will its validators.
    """

    def __init__(self, **values: Any) -> None:
        """Attrs of these values, which are checked as those of a file. Raises TypeRuleError."""
        self.__dict__.update(_read(type(self), values, {}))

    @classmethod
    def parse(cls, data: Mapping[str, object], records: Records) -> Self:
        """Attrs from their file form. Raises TypeRuleError for missing, unknown and malformed ones."""
        return made(cls, _read(cls, data, records))

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form: lists, numbers and strings, and bytes for constants if `binary`. Attrs at their default are left out."""
        layout = layout_of(type(self))
        if layout.fields is None:
            from tidu_cli.rules.attrs import models

            return models.written(self, binary=binary)
        return {
            name: layout.fields[name].write(value, binary)
            for name, value in self.__dict__.items()
            if name not in layout.defaults or value != layout.defaults[name]
        }


class NoAttrs(Attrs):
    """The attrs of a primitive that has none."""


def _read(cls: type[Attrs], data: Mapping[str, object], records: Records) -> Mapping[str, object]:
    found = read_quickly(cls, data, records)
    if found is DOUBT:
        from tidu_cli.rules.attrs import models

        found = models.validated(cls, data, records)
    return found  # type: ignore[no-any-return]
