"""The JSON Schema of documents, which `schemas/document.schema.json` publishes, made of the models of their shape."""

from __future__ import annotations

from typing import Any

from tidu_cli.formats.declarations import OP_NAME, OpData
from tidu_cli.formats.shape import DIGEST, INDEX, PASS, VALUE, ClosedGraphData, DocumentData, ViewData
from tidu_cli.graph.keys import MAX_NESTING
from tidu_cli.graph.sizes.algebra import EXTREMES, NAME
from tidu_cli.graph.sizes.reading import MAX_NAMES
from tidu_cli.graph.text import END, FIELD, SIZE, TYPE
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.validation import json_schema as schema_of
from tidu_cli.rules.vocabulary import PrimitiveSet

_KEY: dict[str, Any] = {"define": "Key"}


def _key_step(kind: str) -> dict[str, Any]:
    step = {"type": "object", "properties": {"of": _KEY, "pass": PASS}, "required": ["of", "pass"], "additionalProperties": False}
    return {"type": "object", "properties": {kind: step}, "required": [kind], "additionalProperties": False}


def _bound(least: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "exclusiveMaximum": 2**62}


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
        "oneOf": [INDEX, VALUE, DIGEST],
    },
    "Type": {
        "description": "dtype[shape]; the name of a record type; or a record or tuple, spelled out.",
        "type": "string",
        "pattern": TYPE,
    },
    "Size": {
        "description": "An open size: an integer expression of names, such as 2*N+1.",
        "type": "string",
        "pattern": f"^{SIZE}{END}",
    },
    "Sizes": {
        "description": "What the names of open sizes stand for: integers from 1 on, where nothing else is said.",
        "type": "object",
        "propertyNames": {"pattern": f"^{NAME}{END}", "not": {"enum": [*EXTREMES]}},
        "additionalProperties": {
            "type": "object",
            "properties": {"min": _bound(0), "max": _bound(1), "multiple_of": _bound(1)},
            "additionalProperties": False,
        },
        "maxProperties": MAX_NAMES,
    },
    "LinearNode": {
        "description": "A node of a linear graph: one input at least depends on a tangent.",
        "properties": {"role": {"properties": {"linearized": {"properties": {"active_mask": {"contains": {"const": True}}}}}}},
        "required": ["role"],
    },
    "Closed": {
        "description": "Nodes without roles, which read values of their own graph only, and outputs that are such.",
        "properties": {
            "nodes": {
                "items": {"properties": {"inputs": {"items": INDEX}, "role": False}},
                "properties": {"table": {"items": {"properties": {"role": False}}}, "external": {"maxItems": 0}},
            },
            "outputs": {"items": {"properties": {"value": INDEX}}},
        },
    },
    "RecordType": {
        "description": "A record type: the type of each field, in order; or these under `fields`, and its views by name.",
        "type": "object",
        "if": {"properties": {"fields": {"type": "object"}}, "required": ["fields"]},
        "then": {
            "properties": {
                "fields": {"define": "Fields"},
                "views": {
                    "type": "object",
                    "propertyNames": {"pattern": f"^{FIELD}{END}"},
                    "additionalProperties": {"define": "ViewData"},
                    "minProperties": 1,
                },
            },
            "required": ["fields", "views"],
            "additionalProperties": False,
        },
        "else": {"define": "Fields"},
    },
    "Fields": {
        "description": "The type of each field of a record, or of each property of a view, in order.",
        "type": "object",
        "propertyNames": {"pattern": f"^{FIELD}{END}"},
        "additionalProperties": {"define": "Type"},
        "minProperties": 1,
    },
}


def json_schema(primitives: PrimitiveSet = BUILTIN) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a document in JSON, with the attrs of every primitive of the set."""
    schema = schema_of(DocumentData)
    definitions = schema["$defs"]
    for name, data in (("OpData", OpData), ("ClosedGraph", ClosedGraphData), ("ViewData", ViewData)):
        part = schema_of(data)
        definitions.update(part.pop("$defs", {}))
        definitions[name] = part
    definitions.pop("BinaryIntegers", None)
    definitions.update(_DEFINITIONS)
    conditions = []
    for primitive in primitives:
        attrs = schema_of(primitive.domain.attrs)
        definitions.update(attrs.pop("$defs", {}))
        definitions[primitive.domain.attrs.__name__] = attrs
        conditions.append({"if": {"properties": {"op": {"const": primitive.name}}}, "then": _node_of(primitive, attrs)})
    definitions["OwnName"] = {"pattern": f"^{OP_NAME}{END}", "not": {"enum": sorted(primitives.primitives)}}
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
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "tidu document, version 1", **_tidied(schema)}


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
