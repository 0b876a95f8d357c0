"""Objects with annotated fields, read from plain data by their annotations and written back, without pydantic.

The annotations define what attrs and documents are. Two readers follow them: pydantic's, which `validation` sets up for them, has
the last word, says what is wrong and makes JSON Schema. But importing it and building a model take longer than all else that a
command does with a small document. So what is read here is a part of what the model takes, in the same way, and where there is any
doubt the model decides.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin, get_type_hints

from tidu_cli.errors import TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.types import RecordType

D = TypeVar("D", bound="Data")

DOUBT: Any = object()
"""What stands for values that only the model can judge."""

INTEGER_LIMIT = 2**63
"""Integers take 64 bits with sign, as those that msgpack and NumPy have, unless `Bounded` says otherwise."""

Records = Mapping[str, RecordType]
"""Record types by name, which attrs may name."""

Reader = Callable[[Any, Any], Any]
"""From (value, context) to what it means. The context is what parsers need to know: of attrs, the record types by name."""


class Parsed(Frozen, slots=False, eq=False):
    """What `parse` reads from the file form. It takes parsed values, too, and raises TiduError."""

    parse: Reader
    schema: Mapping[str, Any]


class After(Frozen, slots=False, eq=False):
    """A further `check` of what the annotations before it admit: it gives the value, or raises ValueError."""

    check: Callable[[Any], Any]
    schema: Mapping[str, Any] | None = None


class Bounded(Frozen, slots=False, eq=False):
    """Of integers, those at least `ge`, more than `gt`, and less than `lt`."""

    ge: int | None = None
    lt: int | None = None
    gt: int | None = None

    def admits(self, value: Any) -> bool:
        """Whether a value is within the bounds."""
        above = (self.ge is None or value >= self.ge) and (self.gt is None or value > self.gt)
        return above and (self.lt is None or value < self.lt)


class Sized(Frozen, slots=False, eq=False):
    """Of lists and text, those of so many entries."""

    least: int
    most: int | None = None

    def admits(self, value: Any) -> bool:
        """Whether a value has so many."""
        return len(value) >= self.least and (self.most is None or len(value) <= self.most)


class Described(Frozen, slots=False, eq=False):
    """A JSON Schema in the place of what the annotations before it have, which admit more than is meant."""

    schema: Mapping[str, Any]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Data:
    """Base of what has annotated fields. Frozen, so that it hashes where its values do.

    Where annotations are made of Any, bool, int, float, str, bytes, Literal, None, tuple, list, dict, unions and other Data, with
    the kinds above to narrow them, it is read without pydantic. Any other that pydantic knows will do, too, and so will its
    validators.
    """

    _layout: ClassVar[Layout]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attrs are frozen: cannot set '{name}'")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"attrs are frozen: cannot delete '{name}'")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__ if isinstance(other, Data) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Names and values, so that `dict(attrs)` has them."""
        return iter(self.__dict__.items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class Layout:
    """The fields of a class: their annotations and defaults, and how they are read, or None if only pydantic can.

    `model` is pydantic's, once it was wanted.
    """

    def __init__(
        self, annotations: Mapping[str, Any], defaults: Mapping[str, Any], fields: Mapping[str, Reader] | None, required: Set[str]
    ) -> None:
        self.annotations = annotations
        self.defaults = defaults
        self.fields = fields
        self.required = required
        self.model: Any = None


def layout_of(data: type[Data]) -> Layout:
    """The layout of a class, fields of base classes first."""
    if "_layout" not in vars(data):
        data._layout = _layout(data)
    return data._layout


def _layout(data: type[Data]) -> Layout:
    hints = get_type_hints(data, include_extras=True)
    annotations = {name: hint for name, hint in hints.items() if get_origin(hint) is not ClassVar}
    members = members_of(data)
    fields: dict[str, Reader] | None = None
    if not any(map(is_pydantics, members.values())):
        with suppress(_UnfamiliarError):
            fields = {name: _reader(annotation) for name, annotation in annotations.items()}
    defaults = {name: _default(members[name]) for name in annotations if name in members}
    return Layout(annotations, defaults, fields, annotations.keys() - defaults)


def _default(member: Any) -> object:
    return member.get_default(call_default_factory=True) if is_pydantics(member) else member


def members_of(data: type[Data]) -> dict[str, Any]:
    """What a class and its bases define."""
    return {name: value for base in reversed(data.__mro__) for name, value in vars(base).items()}


def is_pydantics(member: object) -> bool:
    """Whether a member of a class is there for pydantic: a field with options, or a validator."""
    return type(member).__module__.partition(".")[0] == "pydantic"


def field_names(data: type[Data]) -> tuple[str, ...]:
    """The names of the fields, in order."""
    return tuple(layout_of(data).annotations)


def made(data: type[D], values: Mapping[str, object]) -> D:
    """An object of values that are known to be right."""
    instance = data.__new__(data)
    instance.__dict__.update(values)
    return instance


class _DoubtError(Exception):
    """Something is not as it should be, or might not be."""


class _UnfamiliarError(Exception):
    """An annotation that only pydantic knows."""


REFUSALS = (_DoubtError, TiduError, ValueError)


def read_quickly(data: type[Data], plain: Mapping[str, object], context: Any) -> Any:
    """The values of the fields of plain data; DOUBT where only the model can say."""
    try:
        return _read(layout_of(data), plain, context)
    except (*REFUSALS, _UnfamiliarError):
        return DOUBT


def _read(layout: Layout, plain: Mapping[str, object], context: Any) -> dict[str, object]:
    if layout.fields is None:
        raise _UnfamiliarError  # and no refusal, after which another member of a union would be tried
    _sure(layout.required <= plain.keys() <= layout.annotations.keys())
    return {name: read(plain[name], context) if name in plain else layout.defaults[name] for name, read in layout.fields.items()}


def _sure(condition: object) -> None:
    if not condition:
        raise _DoubtError


def _reader(annotation: Any) -> Reader:
    """How values of this annotation are read, or refused with one of `REFUSALS`. Raises _UnfamiliarError."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return lambda value, context: value
    if annotation in (bool, str, bytes, int, float, None, type(None)):
        return _narrowed(_of_type(type(None) if annotation is None else annotation), _LIMITS.get(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Data):
        return _nested(annotation)
    if origin is Literal:
        return _narrowed(_of_type(*map(type, parts)), lambda value: any(value == p and type(value) is type(p) for p in parts))
    if origin is Annotated:
        return _annotated(parts[0], parts[1:])
    if origin in (Union, types.UnionType):
        return _union([_reader(part) for part in parts])
    if origin is tuple and parts:
        return _tuple(parts)
    if origin is list:
        a_list, entry = _of_type(list), _reader(*parts)
        return lambda value, context: [entry(part, context) for part in a_list(value, context)]
    if annotation == dict[str, Any]:
        return _of_type(dict)
    raise _UnfamiliarError


_LIMITS: dict[Any, Callable[[Any], bool]] = {int: lambda value: abs(value) < INTEGER_LIMIT, float: isfinite}


def _of_type(*kinds: type) -> Reader:
    def read(value: Any, context: Any) -> Any:
        if type(value) in kinds:
            return value
        raise _DoubtError  # a value of any other type the model may still take, or say why not

    return read


def _narrowed(read: Reader, admits: Callable[[Any], bool] | None) -> Reader:
    def narrowed(value: Any, context: Any) -> Any:
        result = read(value, context)
        _sure(admits(result))  # type: ignore[misc]
        return result

    return narrowed if admits else read


def _annotated(annotation: Any, kinds: Iterable[object]) -> Reader:
    parsed = next((kind for kind in kinds if isinstance(kind, Parsed)), None)  # whatever it is that they annotate
    read = _reader(annotation) if parsed is None else parsed.parse
    for kind in kinds:
        if isinstance(kind, Bounded | Sized):
            read = _narrowed(read, kind.admits)
        elif isinstance(kind, After):
            read = _checked(read, kind.check)
        elif not isinstance(kind, Parsed | Described):
            raise _UnfamiliarError
    return read


def _checked(read: Reader, check: Callable[[Any], Any]) -> Reader:
    return lambda value, context: check(read(value, context))


def _nested(data: type[Data]) -> Reader:
    def read(value: Any, context: Any) -> Any:
        if type(value) is data:
            return value
        _sure(type(value) is dict)
        return made(data, _read(layout_of(data), value, context))

    return read


def _union(members: list[Reader]) -> Reader:
    def read(value: Any, context: Any) -> Any:
        # Types of members are distinct, so that the first to read a value is the one.
        for member in members:
            with suppress(*REFUSALS):
                return member(value, context)
        raise _DoubtError

    return read


def _tuple(parts: tuple[Any, ...]) -> Reader:
    repeats = len(parts) == 2 and parts[1] is Ellipsis
    members = [_reader(part) for part in (parts[:1] if repeats else parts)]

    def read(value: Any, context: Any) -> Any:
        _sure(type(value) in (list, tuple) and (repeats or len(value) == len(members)))
        return tuple([member(v, context) for member, v in zip(members * len(value) if repeats else members, value, strict=True)])

    return read
