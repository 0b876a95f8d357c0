"""Attrs: frozen objects whose fields are read from files and written to them by their annotations, in plain Python.

pydantic defines what attrs are, tells what is wrong with them and makes their JSON Schema (`attr_models`). But importing it and
building a model take longer than all else that a command does with a small document. So what is read here is a part of what the
model takes, in the same way, and where there is any doubt the model decides.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from tidu_cli.errors import TiduError
from tidu_cli.graph.types import RecordType

A = TypeVar("A", bound="FrozenFields")

DOUBT: Any = object()
"""What a reader gives for a value that only the model can judge."""

INTEGER_LIMIT = 2**63
"""Integers in attrs take 64 bits with sign, as those that msgpack and NumPy have, unless `Bounded` says otherwise."""

Records = Mapping[str, RecordType]
"""Record types by name, which attrs may name."""

Reader = Callable[[Any, Records], Any]
Writer = Callable[[Any, bool], object]
"""From (value, whether the file is binary) to the file form."""


class Kind:
    """An annotation of a field, `Annotated[int, kind]`, that both this module and the models understand."""


@dataclass(frozen=True, eq=False)
class Parsed(Kind):
    """What `parse` reads from the file form, and `write` gives back. `parse` takes parsed values, too, and raises TiduError."""

    parse: Callable[[Any, Records], Any]
    write: Writer
    schema: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class After(Kind):
    """A further `check` of what the annotations before it admit: it gives the value, or raises ValueError."""

    check: Callable[[Any], Any]
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Bounded(Kind):
    """Of integers, those at least `ge`, more than `gt`, and less than `lt`."""

    ge: int | None = None
    lt: int | None = None
    gt: int | None = None

    def admits(self, value: Any) -> bool:
        """Whether a value is within the bounds."""
        above = (self.ge is None or value >= self.ge) and (self.gt is None or value > self.gt)
        return above and (self.lt is None or value < self.lt)


@dataclass(frozen=True, eq=False)
class Sized(Kind):
    """Of lists, those of so many entries."""

    least: int
    most: int | None = None


class FrozenFields:
    """Base of attrs: what is in their fields, as a value."""

    _layout: ClassVar[Layout]

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attrs are frozen: cannot set '{name}'")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"attrs are frozen: cannot delete '{name}'")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__ if isinstance(other, FrozenFields) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Names and values, so that `dict(attrs)` has them."""
        return iter(self.__dict__.items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class Field(NamedTuple):
    """How a field is read and written."""

    read: Reader
    write: Writer


@dataclass(eq=False)
class Layout:
    """The fields of a class of attrs: their annotations and defaults, and how they are read, or None if only pydantic can.

    `model` is pydantic's, once it was wanted.
    """

    annotations: Mapping[str, Any]
    defaults: Mapping[str, Any]
    fields: Mapping[str, Field] | None
    model: Any = None


def layout_of(attrs: type[FrozenFields]) -> Layout:
    """The layout of a class of attrs, fields of base classes first."""
    found: Layout | None = vars(attrs).get("_layout")
    if found is None:
        found = attrs._layout = _layout(attrs)
    return found


def _layout(attrs: type[FrozenFields]) -> Layout:
    hints = get_type_hints(attrs, include_extras=True)
    annotations = {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}
    members = {name: value for base in reversed(attrs.__mro__) for name, value in vars(base).items()}
    defaults = {name: members[name] for name in annotations if name in members}
    fields: dict[str, Field] = {}
    for name, annotation in annotations.items():
        field = _field(annotation)
        if field is None:
            return Layout(annotations, defaults, None)
        fields[name] = field
    return Layout(annotations, defaults, None if any(map(is_pydantics, members.values())) else fields)


def is_pydantics(member: object) -> bool:
    """Whether a member of a class is there for pydantic: a field with options, or a validator."""
    return type(member).__module__.partition(".")[0] == "pydantic"


def field_names(attrs: type[FrozenFields]) -> tuple[str, ...]:
    """The names of the fields, in order."""
    return tuple(layout_of(attrs).annotations)


def made(attrs: type[A], values: Mapping[str, object]) -> A:
    """Attrs of values that are known to be right."""
    found = attrs.__new__(attrs)
    found.__dict__.update(values)
    return found


def read_quickly(cls: type[FrozenFields], data: Mapping[str, object], records: Records) -> Any:
    """The values of the fields from their file form, or DOUBT."""
    layout = layout_of(cls)
    fields, defaults = layout.fields, layout.defaults
    if fields is None or not data.keys() <= fields.keys():
        return DOUBT
    values = {}
    for name, field in fields.items():
        values[name] = value = field.read(data[name], records) if name in data else defaults.get(name, DOUBT)
        if value is DOUBT:
            return DOUBT
    return values


def _as_it_is(value: Any, binary: bool) -> object:
    return value


def _field(annotation: Any) -> Field | None:
    """How values of this annotation are read and written; None if only pydantic knows."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is int:
        return Field(lambda value, records: value if type(value) is int and abs(value) < INTEGER_LIMIT else DOUBT, _as_it_is)
    if annotation is float:
        return Field(lambda value, records: value if type(value) is float and isfinite(value) else DOUBT, _as_it_is)
    if annotation in (bool, str, type(None), None):
        return Field(_of_type(type(None) if annotation is None else annotation), _as_it_is)
    if isinstance(annotation, type) and issubclass(annotation, FrozenFields):
        return Field(_nested(annotation), lambda value, binary: value.to_data(binary=binary))
    if origin is Literal and all(type(part) is str for part in parts):
        return Field(lambda value, records: value if type(value) is str and value in parts else DOUBT, _as_it_is)
    if origin is Annotated:
        return _narrowed(parts[0], parts[1:])
    if origin in (Union, types.UnionType):
        return _union([_field(part) for part in parts])
    if origin is tuple and parts:
        return _tuple(parts)
    return None


def _narrowed(annotation: Any, kinds: Iterable[object]) -> Field | None:
    field = _field(annotation)
    for kind in kinds:
        if isinstance(kind, Parsed):
            field = Field(_parsing(kind), kind.write)
        elif field is None:
            return None
        elif isinstance(kind, Bounded):
            field = Field(_testing(field.read, kind.admits), field.write)
        elif isinstance(kind, Sized):
            field = Field(_testing(field.read, _sized(kind)), field.write)
        elif isinstance(kind, After):
            field = Field(_checking(field.read, kind), field.write)
        else:
            return None
    return field


def _of_type(type_: type) -> Reader:
    # A value of any other type the model may still take, or say why not.
    return lambda value, records: value if type(value) is type_ else DOUBT


def _nested(attrs: type[FrozenFields]) -> Reader:
    def read(value: Any, records: Records) -> Any:
        if type(value) is attrs:
            return value
        values = read_quickly(attrs, value, records) if type(value) is dict else DOUBT
        return DOUBT if values is DOUBT else made(attrs, values)

    return read


def _parsing(kind: Parsed) -> Reader:
    def read(value: Any, records: Records) -> Any:
        try:
            return kind.parse(value, records)
        except TiduError:
            return DOUBT

    return read


def _testing(read: Reader, admits: Callable[[Any], bool]) -> Reader:
    def narrowed(value: Any, records: Records) -> Any:
        found = read(value, records)
        return found if found is not DOUBT and admits(found) else DOUBT

    return narrowed


def _sized(kind: Sized) -> Callable[[Any], bool]:
    return lambda value: len(value) >= kind.least and (kind.most is None or len(value) <= kind.most)


def _checking(read: Reader, kind: After) -> Reader:
    def narrowed(value: Any, records: Records) -> Any:
        found = read(value, records)
        if found is DOUBT:
            return DOUBT
        try:
            return kind.check(found)
        except ValueError:
            return DOUBT

    return narrowed


def _union(members: Iterable[Field | None]) -> Field | None:
    # Types of members are distinct, so that the first to read a value is the one. Only null may be beside a member with a file form
    # of its own, for what a value was is not told when it is written.
    known = [member for member in members if member is not None]
    if len(known) < len(list(members)):
        return None
    special = [member.write for member in known if member.write is not _as_it_is]
    if special and len(known) > 2:
        return None

    def read(value: Any, records: Records) -> Any:
        return next((found for member in known if (found := member.read(value, records)) is not DOUBT), DOUBT)

    def write(value: Any, binary: bool) -> object:
        return None if value is None else special[0](value, binary)

    return Field(read, write if special else _as_it_is)


def _tuple(parts: tuple[Any, ...]) -> Field | None:
    repeats = len(parts) == 2 and parts[1] is Ellipsis
    members = [_field(part) for part in (parts[:1] if repeats else parts)]
    if None in members:
        return None
    reads = [member.read for member in members if member is not None]
    writes = [member.write for member in members if member is not None]

    def read(value: Any, records: Records) -> Any:
        if type(value) not in (list, tuple) or not (repeats or len(value) == len(reads)):
            return DOUBT
        found = tuple([r(v, records) for r, v in zip(reads * len(value) if repeats else reads, value, strict=True)])
        return DOUBT if any(part is DOUBT for part in found) else found

    def write(value: Any, binary: bool) -> object:
        return [w(v, binary) for w, v in zip(writes * len(value) if repeats else writes, value, strict=True)]

    return Field(read, write)
