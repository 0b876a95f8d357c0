"""Inputs of record types while a graph is traced: their fields are attributes, or items."""

from __future__ import annotations

from typing import Any, NamedTuple

from tidu_cli.build.arrays.array import Recording
from tidu_cli.build.errors import BuildError
from tidu_cli.errors import did_you_mean
from tidu_cli.graph.types import RecordType


class Traced(NamedTuple):
    """A value of a recording: what nodes need to know of it."""

    recorder: Recording
    value: int
    type: RecordType
    share: None = None  # records cannot be changed in place; their fields may be


class Record:
    """A traced record: p.x, or p["x"], is a field of it, t[0] the first of a tuple. Nothing else can be done with one."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._fields: dict[str, Any] = {}  # one array each, which may be changed in place

    def __getattr__(self, name: str) -> Any:
        if self._traced.type.get(name) is None:
            raise AttributeError(self._without(name))
        if name not in self._fields:
            self._fields[name] = self._traced.recorder.an_input(self._traced.recorder.emit("field", self._traced, name=name))
        return self._fields[name]

    def __getitem__(self, name: str | int) -> Any:
        names = self._traced.type.names
        if isinstance(name, int) and self._traced.type.is_tuple and -len(names) <= name < len(names):
            name = names[name]
        if not isinstance(name, str) or name not in names:
            raise BuildError(self._without(name))
        return getattr(self, name)

    def __iter__(self) -> Any:
        if not self._traced.type.is_tuple:
            raise BuildError(f"a record, {self._traced.type}, is not gone through; take its fields by name")
        return (self[k] for k in range(len(self._traced.type.fields)))

    def _without(self, name: object) -> str:
        type_ = self._traced.type
        return f"{type_} has no field '{name}'{did_you_mean(str(name), list(type_.names))} (fields: {', '.join(type_.names)})"

    def __repr__(self) -> str:
        return f"a record, {self._traced.type}; take its fields, as in p.x"
