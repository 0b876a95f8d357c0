"""Attrs: what an operation takes beside its operands, as frozen objects checked as those of a file, and kinds of fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from tidu_cli.errors import TypeTextError, did_you_mean
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.literals import Literal, literal_from_numbers, literal_to_numbers
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.text import END, TENSOR_TYPE
from tidu_cli.graph.types import DATETIME, DTYPES, DURATION, INTEGERS, ITEMSIZE, SIGNED, RecordType, TensorType, parse_type
from tidu_cli.rules.fields import DOUBT, INTEGER_LIMIT, After, Bounded, Data, Parsed, Records, layout_of, made, read_quickly

# Constants in files: how they are written, read and described.


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
            import base64

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
    import base64

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


class Attrs(Data):
    """Base of every primitive's attrs: its annotations are its fields. Frozen, so that they hash; unknown names are errors."""

    graphs: ClassVar[tuple[str, ...]] = ()
    """The fields that hold a closed graph, a tuple of such, or None where a graph may be left out."""
    solvers: ClassVar[tuple[str, ...]] = ()
    """Those of them that only say how a value is computed which another one defines: no derivative goes through them."""

    def __init__(self, **values: Any) -> None:
        """Attrs of these values, which are checked as those of a file. Raises TypeRuleError."""
        self.__dict__.update(_read(type(self), values, {}))

    @classmethod
    def parse(cls, data: Mapping[str, object], records: Records) -> Self:
        """Attrs from their file form. Raises TypeRuleError for missing, unknown and malformed ones."""
        return made(cls, _read(cls, data, records))

    def with_graphs(self, change: Callable[[ClosedGraph], ClosedGraph], but_for: Sequence[str] = ()) -> Self:
        """These attrs with each graph in them changed, but for those in some fields."""
        values = {name: vars(self)[name] for name in self.graphs if name not in but_for}
        changed = {name: tuple(map(change, v)) if isinstance(v, tuple) else v and change(v) for name, v in values.items()}
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
    return str(value) if isinstance(value, TensorType | RecordType | OpenSize) else value


def _read(attrs: type[Attrs], data: Mapping[str, object], records: Records) -> Mapping[str, object]:
    values = read_quickly(attrs, data, records)
    if values is DOUBT:
        from tidu_cli.rules.validation import validated

        values = validated(attrs, data, records)
    return values  # type: ignore[no-any-return]


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


def sizes(least: int, most: int) -> Parsed:
    """Of integers, those from one to before another; or open sizes, which are at least that one."""

    def read(value: Any, records: object) -> Any:
        if type(value) is int and least <= value < most:
            return value
        from tidu_cli.graph.sizes.reading import size_from_file  # which attrs of numbers do without

        return size_from_file(value, least)

    whole = {"type": "integer", "minimum": least, "exclusiveMaximum": most}
    return Parsed(read, {"anyOf": [whole, {"define": "Size"}]})


Axis = Annotated[int, Bounded(ge=0)]
Extent = Annotated[int, sizes(0, INTEGER_LIMIT)]
Edge = Annotated[int, sizes(1 - 2**62, 2**62)]
"""How far something reaches beyond an axis, which may be less than 0."""
Axes = Annotated[tuple[Axis, ...], After(_distinct, {"uniqueItems": True})]
Shape = tuple[Extent, ...]
DTypeName = Annotated[str, After(_dtype, {"enum": list(DTYPES)})]
ClosedGraphData = Annotated[ClosedGraph, Parsed(lambda value, records: _closed(value), {"define": "ClosedGraph"})]
LiteralData = Annotated[Literal, Parsed(lambda value, records: literal_from_file(value), LITERAL_SCHEMA)]


class AxesAttrs(Attrs):
    """`axes`: the axes of the operand that are reduced away."""

    axes: Axes
