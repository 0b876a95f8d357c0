"""The kinds of attrs that primitives share."""

from __future__ import annotations

from typing import Annotated

from tidu_cli.errors import did_you_mean
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import DTYPES
from tidu_cli.rules.attrs.attrs import Attrs
from tidu_cli.rules.attrs.fields import After, Bounded, Parsed
from tidu_cli.rules.attrs.literals import LITERAL_SCHEMA, literal_from_file


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
