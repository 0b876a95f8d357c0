"""Attrs: what an operation is told beside its operands, as frozen objects checked as those of a file, and kinds of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self

from tidu_cli.errors import did_you_mean
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import DTYPES, RecordType, TensorType
from tidu_cli.rules.attrs.fields import DOUBT, After, Bounded, Data, Parsed, Records, layout_of, made, read_quickly
from tidu_cli.rules.attrs.literals import LITERAL_SCHEMA, literal_from_file, literal_to_file


class Attrs(Data):
    """Base of every primitive's attrs: its annotations are its fields. Frozen, so that they hash; unknown names are errors."""

    graphs: ClassVar[tuple[str, ...]] = ()
    """The fields that hold a closed graph, or a tuple of such."""

    def __init__(self, **values: Any) -> None:
        """Attrs of these values, which are checked as those of a file. Raises TypeRuleError."""
        self.__dict__.update(_read(type(self), values, {}))

    @classmethod
    def parse(cls, data: Mapping[str, object], records: Records) -> Self:
        """Attrs from their file form. Raises TypeRuleError for missing, unknown and malformed ones."""
        return made(cls, _read(cls, data, records))

    def with_graphs(self, change: Callable[[ClosedGraph], ClosedGraph]) -> Self:
        """These attrs with each graph in them changed."""
        values = {name: vars(self)[name] for name in self.graphs}
        changed = {name: tuple(map(change, v)) if isinstance(v, tuple) else change(v) for name, v in values.items()}
        return made(type(self), {**vars(self), **changed})

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form: lists, numbers and strings, and bytes for constants if `binary`. Attrs at their default are left out."""
        return self._to_data(lambda value: to_file(value, binary))

    def identity(self, of_graph: Callable[[ClosedGraph], object]) -> dict[str, object]:
        """What a digest hashes: the binary file form, with this in the place of graphs."""
        return self._to_data(lambda value: to_file(value, True, of_graph))

    def _to_data(self, form: Callable[[object], object]) -> dict[str, object]:
        defaults = layout_of(type(self)).defaults
        return {name: form(value) for name, value in self if name not in defaults or value != defaults[name]}


class NoAttrs(Attrs):
    """The attrs of a primitive that has none."""


def to_file(value: object, binary: bool, of_graph: Callable[[ClosedGraph], object] | None = None) -> object:
    """The file form of what attrs hold; graphs in another form, if one is given."""
    if isinstance(value, Attrs):
        return value.to_data(binary=binary)
    if isinstance(value, ClosedGraph):
        return of_graph(value) if of_graph else value.to_data(binary=binary)
    if isinstance(value, tuple | list):
        return [to_file(part, binary, of_graph) for part in value]
    if isinstance(value, dict):
        return {name: to_file(part, binary, of_graph) for name, part in value.items()}
    if isinstance(value, Literal):
        return literal_to_file(value, binary=binary)
    return str(value) if isinstance(value, TensorType | RecordType) else value


def _read(attrs: type[Attrs], data: Mapping[str, object], records: Records) -> Mapping[str, object]:
    found = read_quickly(attrs, data, records)
    if found is DOUBT:
        from tidu_cli.rules.attrs.models import validated

        found = validated(attrs, data, records)
    return found  # type: ignore[no-any-return]


def _dtype(name: str) -> str:
    if name not in DTYPES:
        raise ValueError(f"unknown dtype '{name}'{did_you_mean(name, list(DTYPES))}")
    return name


def _distinct(axes: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(axes)) < len(axes):
        raise ValueError(f"axes repeat: {list(axes)}")
    return axes


def _closed(value: object) -> ClosedGraph:
    if not isinstance(value, ClosedGraph):  # those who read files make one of what stands there
        raise ValueError("is a graph: an object of inputs, nodes and outputs")
    return value


Axis = Annotated[int, Bounded(ge=0)]
Axes = Annotated[tuple[Axis, ...], After(_distinct, {"uniqueItems": True})]
Shape = tuple[Axis, ...]
DTypeName = Annotated[str, After(_dtype, {"enum": list(DTYPES)})]
ClosedGraphData = Annotated[ClosedGraph, Parsed(lambda value, records: _closed(value), {"define": "ClosedGraph"})]
LiteralData = Annotated[Literal, Parsed(lambda value, records: literal_from_file(value), LITERAL_SCHEMA)]


class AxesAttrs(Attrs):
    """`axes`: the axes of the operand that are reduced away."""

    axes: Axes
