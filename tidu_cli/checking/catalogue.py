"""The catalogue of primitives, which `tidu ops` lists and docs/primitives.md holds: derived from the primitives themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidu_cli.checking.closure import Emissions, emissions
from tidu_cli.frozen import Frozen
from tidu_cli.graph.types import DTYPES
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.rules.attrs.models import json_schema
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.vocabulary import PrimitiveSet


class Entry(Frozen, slots=False):
    """A primitive as its users see it. `attrs` are the types of its attrs by name, and `attrs_text` what they mean."""

    primitive: Primitive
    attrs: Mapping[str, str]
    attrs_text: str
    emits: Emissions

    @property
    def rules(self) -> tuple[str, ...]:
        """The derivative rules that it has: `jvp`, `transpose`."""
        given = (("jvp", self.primitive.rules.jvp), ("transpose", self.primitive.rules.transpose))
        return tuple(name for name, rule in given if rule is not None)

    def to_data(self) -> dict[str, Any]:
        """The JSON form."""
        domain, rules = self.primitive.domain, self.primitive.rules
        return {
            "op": self.primitive.name,
            "arity": domain.arity,
            "dtypes": [dtype for dtype in DTYPES if dtype in domain.dtypes],
            "attrs": dict(self.attrs),
            "rules": list(self.rules),
            "inert": {"inputs": list(rules.inert), "reason": rules.inert_reason} if rules.inert else None,
            "emits": {"jvp": list(self.emits.jvp), "transpose": list(self.emits.transpose)},
            "formula": self.primitive.catalogue.formula,
            "summary": self.primitive.catalogue.summary,
        }


def entry(primitive: Primitive, primitives: PrimitiveSet = BUILTIN) -> Entry:
    """The catalogue's entry of one primitive."""
    schema = json_schema(primitive.domain.attrs)
    required = schema.get("required", ())
    models = schema.get("$defs", {})
    attrs = {
        name: _type_text(field, models) + ("" if name in required else ", optional")
        for name, field in schema.get("properties", {}).items()
    }
    text = " ".join((primitive.domain.attrs.__doc__ or "").split()) if attrs else ""
    return Entry(primitive, attrs, text, emissions(primitive, primitives))


def _type_text(schema: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words; `models` are the schemas that it refers to by name."""
    if "define" in schema:
        return "graph"
    if "$ref" in schema:
        fields = models[schema["$ref"].rpartition("/")[2]]["properties"]
        return "object of " + ", ".join(f"{name} ({_type_text(field, models)})" for name, field in fields.items())
    if "anyOf" in schema:
        return " or ".join(_type_text(option, models) for option in schema["anyOf"])
    if "enum" in schema:
        return "dtype" if schema["enum"] == list(DTYPES) else " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type_text(item, models) for item in schema['prefixItems'])}]"
        return f"list of {_type_text(schema['items'], models)}s"
    if schema.get("type") == "object":
        return "constant data" if "base64" in schema.get("properties", {}) else "object"
    return str(schema.get("type", "any value"))
