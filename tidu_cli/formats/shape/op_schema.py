"""The shape of own primitives in a document, as pydantic models. They are built when a document has any."""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, PlainValidator, ValidationInfo, WithJsonSchema
from typing_extensions import TypedDict

from tidu_cli.custom.patterns import Pattern, parse_pattern
from tidu_cli.errors import TypeTextError
from tidu_cli.formats.shape.schema import (
    LEFT_OUT,
    STRICT,
    CountField,
    Data,
    KeyField,
    MetaField,
    OpsField,
    TypesField,
    kind_of,
    refusal,
)
from tidu_cli.graph.text.patterns import PATTERN


def _pattern(text: object, info: ValidationInfo) -> Pattern:
    try:
        if not isinstance(text, str):
            raise TypeTextError(f'a type is text such as "f64[3,4]" or "f64[...]", not {kind_of(text)}')
        return parse_pattern(text, info.context or {})
    except TypeTextError as error:
        raise refusal(str(error)) from None


PatternField = Annotated[Pattern, PlainValidator(_pattern), WithJsonSchema({"type": "string", "pattern": PATTERN})]


class OpsData(Data):
    """Base of the models here."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class OpPort(OpsData):
    """An input or output of an own primitive: its name, and its type, in which variables may stand."""

    key: Annotated[str, Field(min_length=1)]
    type: PatternField


class OpNode(TypedDict):
    """A node of an own primitive's graph. `{"attr": NAME}` within its attrs stands for the value of the op's attr."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    op: str
    inputs: list[CountField]
    attrs: NotRequired[MetaField]  # kept like meta: they get their meaning where the op is used


class OpGraphInput(OpsData):
    """An input of an own primitive's graph. Its type is the op's."""

    key: KeyField


class OpGraphOutput(OpsData):
    """An output of an own primitive's graph; null is a structural zero."""

    key: KeyField
    value: CountField | None


class OpGraph(OpsData):
    """A graph of an own primitive, whose types are inferred where the op is used."""

    inputs: list[OpGraphInput]
    nodes: list[OpNode]
    outputs: list[OpGraphOutput]


class OpData(OpsData):
    """An own primitive.

    `forward` takes the inputs and gives the outputs. In the other graphs x@1 is the tangent of x, and x@-1 its cotangent: `jvp`
    takes inputs, outputs and tangents of inputs, and gives those of the outputs; `backward` takes inputs, outputs and cotangents of
    outputs, and gives those of the inputs; `transpose` takes the inputs that the op is not linear in and cotangents of outputs, and
    gives the cotangents of the others. Of `attrs` there is the default, or null for those that must be given.
    """

    model_config = OpsData.model_config | {
        "json_schema_extra": {
            "not": {"anyOf": [{"required": [*pair]} for pair in combinations(("jvp", "backward", "transpose"), 2)]}
        }
    }
    inputs: Annotated[list[OpPort], Field(min_length=1)]
    outputs: Annotated[list[OpPort], Field(min_length=1)]
    attrs: Annotated[MetaField, WithJsonSchema({"type": "object", "propertyNames": {"not": {"const": "active"}}})] = Field(
        default_factory=dict
    )
    forward: OpGraph
    jvp: OpGraph = LEFT_OUT
    backward: OpGraph = LEFT_OUT
    transpose: OpGraph = LEFT_OUT
    meta: MetaField = LEFT_OUT


class LibraryData(OpsData):
    """A library: a document of which the record types and ops are wanted only."""

    tidu: Literal[1]
    meta: MetaField = LEFT_OUT
    types: TypesField = Field(default_factory=dict)
    ops: OpsField = Field(default_factory=dict)
    graphs: Any = None
    bindings: Any = None
