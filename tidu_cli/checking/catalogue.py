"""The catalogue of primitives: what `tidu ops` lists and docs/primitives.md holds, derived from the primitives themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidu_cli.checking.closure import Emissions, emissions
from tidu_cli.graph.types import DTYPES
from tidu_cli.lax.builtin import BUILTIN, FAMILIES
from tidu_cli.lax.builtin import family as module_of
from tidu_cli.rules.attrs.models import json_schema
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.families import dtype_class
from tidu_cli.rules.vocabulary import PrimitiveSet


@dataclass(frozen=True)
class Entry:
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


def to_markdown() -> str:
    """docs/primitives.md: a section per family, an entry per primitive."""
    lines = [
        "# Primitives",
        "",
        "The vocabulary and semantics are those of JAX `lax`, which are StableHLO's; op and attr names are as a jaxpr prints them.",
        "Operands of elementwise primitives have one type: nothing broadcasts by itself. J is a JVP rule, T a transpose rule;",
        "what follows an arrow is what the rule may emit. `tidu ops --json` gives this list to programs, and `tidu check --ops`",
        "tries every rule. This page is generated: `make catalogue` writes it anew.",
        "",
        "`tidu info` counts operations on real numbers: one for each element of the result, be it arithmetic, a comparison or a",
        "function such as exp. Of complex numbers a sum is 2, a product 6, a quotient 11, a function 2. `dot_general` takes a",
        "product and a sum for each element of the result and each place contracted, a reduction of n elements to one n - 1,",
        "sorting n elements n ⌈log₂ n⌉, a fixed integer power what repeated squaring takes. What moves, repeats or converts",
        "elements is free. XLA's cost analysis counts functions apart, and one for a conversion and any complex operation.",
    ]
    for family in map(module_of, FAMILIES):
        title = (family.__doc__ or "").partition("\n")[0].partition(":")[0].rstrip(".")
        lines += ["", f"## {title}", ""]
        for primitive in family.PRIMITIVES:
            lines += _markdown_entry(entry(primitive))
    return "\n".join(lines).rstrip() + "\n"


def _markdown_entry(found: Entry) -> list[str]:
    primitive = found.primitive
    n, formula, summary = primitive.domain.arity, primitive.catalogue.formula, primitive.catalogue.summary
    arity = "any number of inputs" if n is None else f"{n} input{'' if n == 1 else 's'}"
    lines = [f"### `{primitive.name}`", "", f"{summary[:1].upper()}{summary[1:]}: {formula}", ""]
    lines.append(f"- {arity}; {dtype_class(primitive.domain.dtypes)}")
    if found.attrs:
        listed = "; ".join(f"`{name}` ({type_})" for name, type_ in found.attrs.items())
        lines.append(f"- attrs: {listed}. {found.attrs_text}")
    for rule, emitted in (("jvp", found.emits.jvp), ("transpose", found.emits.transpose)):
        if rule in found.rules:
            ops = ", ".join(f"`{op}`" for op in emitted)
            lines.append(f"- {'J' if rule == 'jvp' else 'T'} → {ops or 'nothing'}")
    if primitive.without_derivative:
        lines.append(f"- {primitive.without_derivative}")
    return [*lines, ""]


if __name__ == "__main__":
    print(to_markdown(), end="")
