"""The shape of a document, as pydantic models; `schemas/document.schema.json` is generated from them.

The models check shapes only and the reading layer gives them meaning: whether a reference exists, whether types fit.
What occurs once a node is a TypedDict, or plain data that the loop over the nodes checks: a model object a node would
cost more than all the rest of reading.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    PlainValidator,
    Tag,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType, TypedDict

from tidu_cli.errors import TiduError, TypeTextError
from tidu_cli.formats.shape.shapes import fault_of_meta, type_without_names
from tidu_cli.graph.keys import MAX_NESTING, MAX_PASS, checked_pass, key_from_json, passes_from_json
from tidu_cli.graph.keys import Key as GraphKey
from tidu_cli.graph.text.patterns import END, FIELD, NAME, TYPE
from tidu_cli.graph.types import Type
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.rules.attrs.models import json_schema as attrs_schema
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet

STRICT = ConfigDict(extra="forbid", strict=True)
LEFT_OUT: Any = None  # of a field that may be left out, but may not be null


def field_parser(parse: Callable[[Any], object]) -> Callable[[Any], object]:
    """A validator of a field that `parse` reads, and may refuse with a TiduError."""

    # A TiduError would leave pydantic without its place; as a custom error it is told with one.
    def validate(value: Any) -> object:
        try:
            return parse(value)
        except TiduError as error:
            raise refusal(str(error)) from None

    return validate


def _type(text: object, info: ValidationInfo) -> Type:
    if not isinstance(text, str):
        raise refusal(f'a type is text such as "f64[3,4]", not {kind_of(text)}')
    try:
        return info.context(text) if info.context else type_without_names(text)
    except TypeTextError as error:
        raise refusal(str(error)) from None


def refusal(reason: str) -> PydanticCustomError:
    """What a validator raises, in the words that messages have."""
    return PydanticCustomError("tidu", "{reason}", {"reason": reason})


def kind_of(value: object) -> str:
    """What messages call a value of the wrong kind."""
    kinds = {
        dict: "an object",
        list: "a list",
        bool: "a bool",
        int: "a number",
        float: "a number",
        str: "text",
        bytes: "binary data",
    }
    return "null" if value is None else kinds.get(type(value), "that")


def _checked_meta(meta: dict[str, Any]) -> dict[str, Any]:
    if fault := fault_of_meta(meta):
        raise PydanticCustomError("meta", "{reason}", {"reason": fault})
    return meta


# pydantic must not see references to definitions that it did not make: _tidied() turns "define" into "$ref".
OWN_NAME = "[A-Za-z_][A-Za-z0-9_-]*"
"""The name of an own op."""

_KEY: dict[str, Any] = {"define": "Key"}
_PASS: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": MAX_PASS}
_INDEX: dict[str, Any] = {"type": "integer", "minimum": 0}
_VALUE: dict[str, Any] = {"type": "array", "prefixItems": [_INDEX, _INDEX], "minItems": 2, "maxItems": 2}
_DIGEST: dict[str, Any] = {"type": "string", "pattern": rf"^sha256:[0-9a-f]{{64}}{END}"}
_REFERENCE: dict[str, Any] = {"define": "Reference"}


def _key_step(kind: str) -> dict[str, Any]:
    step = {"type": "object", "properties": {"of": _KEY, "pass": _PASS}, "required": ["of", "pass"], "additionalProperties": False}
    return {"type": "object", "properties": {kind: step}, "required": [kind], "additionalProperties": False}


def _positive(largest: int) -> str:
    """A pattern of the integers from 1 to this one, which has several digits: its beginnings with a lesser digit after them."""
    digits = str(largest)
    lesser = [
        f"{digits[:k]}[{min(k, 1) ^ 1}-{int(d) - 1}][0-9]{{{len(digits) - k - 1}}}"
        for k, d in enumerate(digits)
        if int(d) > (k == 0)
    ]
    return f"([1-9][0-9]{{0,{len(digits) - 2}}}|{'|'.join(lesser)}|{digits})"


_DEFINITIONS: dict[str, Any] = {
    "Key": {
        "description": "A user's name, or the tangent or cotangent of a key in a pass.",
        "oneOf": [{"type": "string"}, _key_step("tangent"), _key_step("cotangent")],
        "$ref": "#/$defs/Key1",
    },
    # What may be within so many keys more: of 64 levels the innermost is a name.
    **{f"Key{k}": {"additionalProperties": {"properties": {"of": {"define": f"Key{k + 1}"}}}} for k in range(1, MAX_NESTING + 1)},
    f"Key{MAX_NESTING + 1}": {"type": "string"},
    "Reference": {
        "description": "A local id; [g, v]: value v of graph number g; or the digest of a value that the document does not define.",
        "oneOf": [_INDEX, _VALUE, _DIGEST],
    },
    "Type": {
        "description": "dtype[shape]; the name of a record type; or a record or tuple, spelled out.",
        "type": "string",
        "pattern": TYPE,
    },
    "LinearNode": {
        "description": "A node of a linear graph: one input at least depends on a tangent.",
        "properties": {"role": {"properties": {"linearized": {"properties": {"active_mask": {"contains": {"const": True}}}}}}},
        "required": ["role"],
    },
    "RecordType": {
        "description": "A record type: the type of each field, in order.",
        "type": "object",
        "propertyNames": {"pattern": f"^{FIELD}{END}"},
        "additionalProperties": {"define": "Type"},
        "minProperties": 1,
    },
}

KeyField = Annotated[GraphKey, PlainValidator(field_parser(key_from_json)), WithJsonSchema(_KEY)]
PassField = Annotated[int, PlainValidator(field_parser(checked_pass)), WithJsonSchema(_PASS)]
PassesField = Annotated[
    dict[int, str],
    PlainValidator(field_parser(passes_from_json)),
    WithJsonSchema({"type": "object", "propertyNames": {"pattern": rf"^{_positive(MAX_PASS)}$"}, "additionalProperties": _DIGEST}),
]
TypeField = Annotated[Type, PlainValidator(_type), WithJsonSchema({"define": "Type"})]
MetaField = Annotated[dict[str, Any], AfterValidator(_checked_meta), WithJsonSchema({"type": "object"})]
# References are left to the loop over the nodes, which looks at each anyway.
ReferenceField = Annotated[Any, WithJsonSchema(_REFERENCE)]
ReferencesField = Annotated[list[Any], WithJsonSchema({"type": "array", "items": _REFERENCE})]
ValueField = Annotated[list[Any], WithJsonSchema(_VALUE)]
CountField = Annotated[int, Field(ge=0, lt=2**31)]
# Validated by `types`, before all that may name a record type.
TypesField = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {"type": "object", "propertyNames": {"pattern": f"^{NAME}{END}"}, "additionalProperties": {"define": "RecordType"}}
    ),
]
# Validated by `op_schema`, where there are any: its models take longer to build than a small document to be read.
OpsField = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "propertyNames": {"define": "OwnName"}, "additionalProperties": {"define": "OpData"}}),
]


class Mask(TypedDict):
    """`active_mask`: for each input of the node, whether it carries the tangent."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    active_mask: list[bool]


class Role(TypedDict):
    """The role of a linearized node. A node without a role is primary."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    linearized: Mask


class ListedNode(TypedDict):
    """A node of a list of nodes."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    op: str
    inputs: ReferencesField
    attrs: NotRequired[dict[str, Any]]
    role: NotRequired[Role]
    types: NotRequired[list[TypeField]]
    meta: NotRequired[MetaField]


ListedNodes = TypeAliasType("ListedNodes", Annotated[list[ListedNode], FailFast()])


class TableRow(TypedDict):
    """What nodes of packed nodes have in common; `inputs` and `outputs` count theirs."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    op: str
    attrs: NotRequired[dict[str, Any]]
    role: NotRequired[Role]
    inputs: CountField
    outputs: CountField


class BinaryIntegers(TypedDict):
    """A column of integers in msgpack: little-endian bytes."""

    __pydantic_config__ = STRICT  # type: ignore[misc]
    dtype: Literal["i8", "i16", "i32", "i64", "u8", "u16", "u32"]
    data: bytes


def _form(value: object) -> str:
    return "list" if isinstance(value, list) else "object"


_Integers = Annotated[Annotated[list[Any], Tag("list")] | Annotated[BinaryIntegers, Tag("object")], Discriminator(_form)]
_ENTRY: dict[str, Any] = {"type": "integer", "minimum": -(2**31), "exclusiveMaximum": 2**31}
CodesField = Annotated[_Integers, WithJsonSchema({"type": "array", "items": _ENTRY | {"minimum": 0}})]
ArgumentsField = Annotated[_Integers, WithJsonSchema({"type": "array", "items": _ENTRY})]


class Data(BaseModel):
    """Base of the models: unknown fields are errors, and nothing is converted."""

    model_config = STRICT


class PackedNodes(Data):
    """Nodes as columns: `code[i]` is node i's row of `table`; `args` all inputs in order, -1-k meaning `external[k]`."""

    table: list[TableRow]
    code: CodesField
    args: ArgumentsField
    external: Annotated[list[Any], WithJsonSchema({"type": "array", "items": {"oneOf": [_VALUE, _DIGEST]}})] = Field(
        default_factory=list
    )


class InputDeclaration(Data):
    """An input of a graph."""

    key: KeyField
    type: TypeField
    meta: MetaField = LEFT_OUT


class OutputDeclaration(Data):
    """An output of a graph. A null `value` is a structural zero, and then `type` must be there."""

    model_config = STRICT | {
        "json_schema_extra": {"if": {"properties": {"value": {"type": "null"}}}, "then": {"required": ["type"]}}
    }
    key: KeyField
    value: Annotated[ReferenceField, WithJsonSchema({"oneOf": [_REFERENCE, {"type": "null"}]})]
    type: TypeField = LEFT_OUT
    meta: MetaField = LEFT_OUT


class Linear(Data):
    """`pass`: the pass whose tangents the linear graph maps."""

    number: PassField = Field(alias="pass")


class GraphData(Data):
    """A graph fragment."""

    model_config = STRICT | {
        "json_schema_extra": {
            "if": {"required": ["linear"], "properties": {"nodes": {"type": "array"}}},
            "then": {"properties": {"nodes": {"items": {"define": "LinearNode"}}}},
        }
    }
    name: str
    linear: Linear = LEFT_OUT
    meta: MetaField = LEFT_OUT
    inputs: Annotated[list[InputDeclaration], FailFast()]
    nodes: Annotated[Annotated[ListedNodes, Tag("list")] | Annotated[PackedNodes, Tag("object")], Discriminator(_form)]
    outputs: Annotated[list[OutputDeclaration], FailFast()]


class BindingData(Data):
    """The graph input `input` is value `[g, v]`."""

    input: KeyField
    value: ValueField


class DocumentData(Data):
    """A tidu document: a list of graphs, of which the last is the head."""

    tidu: Literal[1]
    meta: MetaField = LEFT_OUT
    types: TypesField = Field(default_factory=dict)
    ops: OpsField = Field(default_factory=dict)
    passes: PassesField = Field(default_factory=dict)
    graphs: Annotated[list[GraphData], FailFast(), Field(min_length=1)]
    bindings: Annotated[list[BindingData], FailFast()] = Field(default_factory=list)


def json_schema(primitives: PrimitiveSet = BUILTIN) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document in JSON, with the attrs of every primitive of the set."""
    from tidu_cli.formats.shape.op_schema import OpData

    schema: dict[str, Any] = DocumentData.model_json_schema()
    definitions = schema["$defs"]
    op_data = OpData.model_json_schema()
    definitions.update(op_data.pop("$defs"))
    definitions["OpData"] = op_data
    definitions.pop("BinaryIntegers", None)
    definitions.update(_DEFINITIONS)
    conditions = []
    for primitive in primitives:
        attrs = attrs_schema(primitive.domain.attrs)
        definitions.update(attrs.pop("$defs", {}))
        definitions[primitive.domain.attrs.__name__] = attrs
        conditions.append({"if": {"properties": {"op": {"const": primitive.name}}}, "then": _node_of(primitive, attrs)})
    definitions["OwnName"] = {"pattern": f"^{OWN_NAME}{END}", "not": {"enum": sorted(primitives.primitives)}}
    definitions["Op"] = {"allOf": conditions}
    # A document with ops of its own may use other names, which a schema cannot look up.
    definitions["BuiltInOp"] = {"properties": {"op": {"enum": sorted(primitives.primitives)}}}
    definitions["BuiltInNodes"] = {
        "if": {"type": "array"},
        "then": {"items": {"$ref": "#/$defs/BuiltInOp"}},
        "else": {"properties": {"table": {"items": {"$ref": "#/$defs/BuiltInOp"}}}},
    }
    schema["if"] = {"not": {"required": ["ops"]}}
    schema["then"] = {"properties": {"graphs": {"items": {"properties": {"nodes": {"$ref": "#/$defs/BuiltInNodes"}}}}}}
    for node in ("ListedNode", "TableRow"):
        definitions[node]["$ref"] = "#/$defs/Op"
    schema["$defs"] = dict(sorted(definitions.items()))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tidu document, version 1",
        **_tidied(schema),
    }


def _node_of(primitive: Primitive, attrs: dict[str, Any]) -> dict[str, Any]:
    """What is due of a node, or a row of a table, of a primitive: of nodes inputs are a list, of rows their number."""
    least, most = (1, None) if primitive.domain.arity is None else (primitive.domain.arity, primitive.domain.arity)
    lengths = {name: n for name, n in (("minItems", least), ("maxItems", most)) if n is not None}
    numbers = {name: n for name, n in (("minimum", least), ("maximum", most)) if n is not None}
    mask = {"properties": {"linearized": {"properties": {"active_mask": lengths}}}}
    properties = {"attrs": {"$ref": f"#/$defs/{primitive.domain.attrs.__name__}"}, "inputs": lengths | numbers, "role": mask}
    return {"properties": properties} | ({"required": ["attrs"]} if "required" in attrs else {})


def _tidied(schema: Any) -> Any:
    # Without what pydantic adds for forms: titles made from names, defaults that stand for "left out".
    if isinstance(schema, list):
        return [_tidied(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "define" in schema:
        return {"$ref": f"#/$defs/{schema['define']}"}
    kept = {k: _tidied(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str)) and (k, v) != ("default", None)}
    if "description" in kept and isinstance(kept["description"], str):
        kept["description"] = " ".join(kept["description"].split())
    return kept


def main() -> None:
    """Print the JSON Schema as `schemas/document.schema.json` has it."""
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
