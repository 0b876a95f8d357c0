"""The catalogue of primitives, which `tidu ops` lists and docs/primitives.md holds: derived from the primitives themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidu_cli import __version__
from tidu_cli.checking.closure import Emissions, emissions
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.custom.definitions import OpDefinition
from tidu_cli.custom.patterns import ANY_DTYPE, instance
from tidu_cli.errors import PluginError, TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.types import DTYPES
from tidu_cli.lax.names import names_of
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Example, Primitive
from tidu_cli.rules.families import changed
from tidu_cli.rules.recording.trace import expanded
from tidu_cli.rules.validation import json_schema
from tidu_cli.rules.vocabulary import PrimitiveSet


class Entry(Frozen, slots=False):
    """A primitive as its users see it. `attrs` are the types of its attrs by name, and `attrs_text` what they mean.

    `defined_by` are the operations of its definition, if it has one.
    """

    primitive: Primitive
    attrs: Mapping[str, str]
    attrs_text: str
    emits: Emissions
    defined_by: tuple[str, ...] = ()

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
            "names": names_of(self.primitive.name),
            "defined_by": list(self.defined_by),
            "opaque": self.primitive.evaluation.opaque or None,
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
    return Entry(primitive, attrs, text, emissions(primitive, primitives), _defined_by(primitive, primitives))


def _defined_by(primitive: Primitive, primitives: PrimitiveSet) -> tuple[str, ...]:
    """The operations of a definition, of the first example."""
    if primitive.evaluation.definition is None:
        return ()
    _, case = next(example_cases(primitives, primitive))
    graph = expanded(primitives, case)
    return tuple(sorted({inner.op for inner in cases_within(graph.cases.cases)} - {"constant"}))


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


# The ops that documents may have, and where each comes from: built in, of installed packages, or of libraries.


class Listed(Frozen, slots=False):
    """An op, where it comes from, and its primitive; or what is wrong where there is none."""

    name: str
    primitive: Primitive | None
    origin: dict[str, str]
    definition: OpDefinition | None = None
    state: tuple[str, str] = ("", "")  # "broken" or "not imported", and why

    @property
    def origin_text(self) -> str:
        """Where it comes from, for people; empty for what is built in."""
        if "file" in self.origin:
            return f"from {self.origin['file']}"
        packages = self.origin.get("package", "")
        return f"from {packages} {self.origin['version']}".rstrip() if packages != "tidu" else ""


def known_ops(names: Sequence[str], primitives: PrimitiveSet) -> tuple[list[Listed], str]:
    """The ops of these names, or all; and what is wrong with those that several bring. Raises PluginError, UnknownNameError."""
    clashes = clashes_of(primitives)
    if clash := next((clashes[name] for name in names if name in clashes), None):
        raise PluginError(clash)
    if names:
        return [listed(primitives[name], primitives) for name in names], ""
    first, *more = clashes.values() or [""]
    return list(every(primitives, clashes)), first + (f" (and {len(more)} more)" if more else "")


def clashes_of(primitives: PrimitiveSet) -> dict[str, str]:
    """What is wrong with ops that two packages bring, or one and tidu, by op."""
    from tidu_cli.custom.packages import clashes

    # What a library defines goes before what packages bring, as in documents.
    return {op: text for op, text in clashes(BUILTIN.primitives, primitives.plugins) if primitives.definition_of(op) is None}


def every(primitives: PrimitiveSet, clashes: dict[str, str]) -> Iterator[Listed]:
    """All ops, also those of packages that are not imported, or are broken."""
    from tidu_cli.custom.packages import announced, not_named

    for primitive in primitives:
        yield listed(primitive, primitives)
    for op, known in announced().items():
        packages, how, why = known.among(primitives.plugins), "broken", clashes.get(op, "")
        if not why and op in primitives.primitives:
            continue
        if not why and not packages:
            packages, how, why = known.packages, "not imported", not_named(known)
        if not why:
            try:
                yield listed(primitives[op], primitives)
                continue
            except PluginError as error:
                why = str(error)
        for package in packages:
            yield Listed(op, None, {"package": package.name, "version": package.version}, state=(how, why))


def listed(primitive: Primitive, primitives: PrimitiveSet) -> Listed:
    """An op, and where it comes from."""
    from tidu_cli.custom.packages import announced

    definition = primitives.definition_of(primitive.name)
    if definition is not None:
        return Listed(primitive.name, primitive, {"file": definition.origin}, definition)
    if primitive.name in primitives.primitives:
        return Listed(primitive.name, primitive, {"package": "tidu", "version": __version__})
    (package,) = announced()[primitive.name].among(primitives.plugins)
    return Listed(primitive.name, primitive, {"package": package.name, "version": package.version})


def data_of(listed: Listed, primitives: PrimitiveSet) -> dict[str, Any]:
    """All that is known of an op: the JSON form."""
    primitive, definition = listed.primitive, listed.definition
    if primitive is None:
        how, why = listed.state
        return {"op": listed.name, "origin": listed.origin, how.replace(" ", "_"): why}
    if definition is None:
        return {**entry(primitive, primitives).to_data(), "origin": listed.origin}
    if listed.name != definition.name:
        return {"op": listed.name, "derivative_of": definition.name, "origin": listed.origin}
    known = definition.to_data()
    return {
        "op": listed.name,
        "arity": primitive.domain.arity,
        "origin": listed.origin,
        "inputs": known["inputs"],
        "outputs": known["outputs"],
        "attrs": known.get("attrs", {}),
        "graphs": {kind: sorted({node.op for node in graph.nodes}) for kind, graph in definition.graphs.items()},
        "emits": _emitted(primitive, primitives, definition),
    }


def _emitted(primitive: Primitive, primitives: PrimitiveSet, definition: OpDefinition) -> dict[str, list[str]]:
    """What the rules of an own primitive emit, by letter: at the least types that its patterns allow, if they allow these."""
    types = tuple(str(instance(pattern, defaultdict(lambda: 2, {ANY_DTYPE: "f64"}))) for pattern in definition.inputs.values())
    try:
        emitted = emissions(changed(primitive, examples=(Example(types),)), primitives)
    except TiduError:  # its sizes belong together otherwise, or an attr must be given
        return {}
    return {"J": list(emitted.jvp)} | ({"T": list(emitted.transpose)} if emitted.transpose else {})
