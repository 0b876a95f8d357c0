"""Own primitives: operations that a document defines by graphs.

A definition says what an op computes (`forward`), and may say how it is differentiated: by `jvp`, a graph from inputs, outputs and
tangents to tangents; by `backward`, from inputs, outputs and cotangents to cotangents; or, of an op that is linear in some of its
inputs, by `transpose`, from the other inputs and cotangents to cotangents. With none of them the derivative goes through `forward`.

Graphs of definitions have types only once the op is applied: they are typed anew for each case, and then are a `Body`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tidu_cli.custom.attrs import REQUIRED, AttrValues, OwnAttrs, substituted
from tidu_cli.custom.bodies import Body, Step, naturalized, naturalized_cotangent, residual_first
from tidu_cli.custom.linearity import require_linear
from tidu_cli.custom.patterns import Pattern, Variables, fits, match_all
from tidu_cli.errors import MissingRuleError, TiduError, TypeRuleError, UnknownNameError
from tidu_cli.graph.columns.garbage_collection import no_collection
from tidu_cli.graph.graph import Case, Meta
from tidu_cli.graph.keys import Key, key_to_json
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.rules.contract import ValueTypes
from tidu_cli.rules.tangents import admits
from tidu_cli.rules.vocabulary import PrimitiveSet

PASS = 1
"""The pass in which definitions name tangents and cotangents: x@1, y@-1."""

KINDS = ("forward", "jvp", "backward", "transpose")
"""The graphs of a definition."""


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A node of a definition's graph: attrs in their file form, and local ids."""

    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SourceGraph:
    """A graph of a definition, without types. Local ids: the inputs first, then results of nodes. An output of None is zero."""

    inputs: tuple[Key, ...]
    nodes: tuple[SourceNode, ...]
    outputs: tuple[tuple[Key, int | None], ...]

    def to_data(self) -> dict[str, Any]:
        """The file form: plain data."""
        return {
            "inputs": [{"key": key_to_json(key)} for key in self.inputs],
            "nodes": [{"op": n.op, "inputs": list(n.inputs), **({"attrs": dict(n.attrs)} if n.attrs else {})} for n in self.nodes],
            "outputs": [{"key": key_to_json(key), "value": value} for key, value in self.outputs],
        }


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of an own primitive."""

    name: str
    pattern: Pattern


@dataclass(frozen=True, eq=False)
class OpDefinition:
    """An own primitive: its ports, the defaults of its attrs (`REQUIRED` for none), and its graphs by kind.

    `origin` names the library that it comes from; it is empty for what stands in the document itself.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    attrs: AttrValues
    graphs: Mapping[str, SourceGraph]
    meta: Meta = None
    origin: str = ""
    _bodies: dict[object, Body] = field(default_factory=dict, repr=False)

    @property
    def input_keys(self) -> tuple[Key, ...]:
        """The keys of the inputs."""
        return tuple(Key(p.name) for p in self.inputs)

    @property
    def output_keys(self) -> tuple[Key, ...]:
        """The keys of the outputs."""
        return tuple(Key(p.name) for p in self.outputs)

    @property
    def linear_in(self) -> tuple[bool, ...]:
        """Of each input, whether `transpose` gives its cotangent: the op is linear in these together."""
        graph = self.graphs.get("transpose")
        given = {key for key, _ in graph.outputs} if graph else set()
        return tuple(key.cotangent(PASS) in given for key in self.input_keys)

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """The ops of the nodes of all graphs, each once."""
        return tuple(dict.fromkeys(node.op for graph in self.graphs.values() for node in graph.nodes))

    def ports_of(self, kind: str) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
        """The keys that a graph of that kind may take, and those that it must give."""
        x, y = self.input_keys, self.output_keys
        if kind == "forward":
            return x, y
        if kind == "jvp":
            return (*x, *y, *(k.tangent(PASS) for k in x)), tuple(k.tangent(PASS) for k in y)
        cotangents = tuple(k.cotangent(PASS) for k in y)
        if kind == "backward":
            return (*x, *y, *cotangents), tuple(k.cotangent(PASS) for k in x)
        linear = self.linear_in
        rest = (k for k, is_linear in zip(x, linear, strict=True) if not is_linear)
        return (*rest, *cotangents), tuple(k.cotangent(PASS) for k, is_linear in zip(x, linear, strict=True) if is_linear)

    def to_data(self) -> dict[str, Any]:
        """The file form, without meta: plain data, the same for definitions that are the same."""
        data: dict[str, Any] = {
            "inputs": [{"key": p.name, "type": str(p.pattern)} for p in self.inputs],
            "outputs": [{"key": p.name, "type": str(p.pattern)} for p in self.outputs],
        }
        if self.attrs:
            data["attrs"] = {k: None if v is REQUIRED else v for k, v in self.attrs.items()}
        return data | {kind: graph.to_data() for kind, graph in self.graphs.items()}

    def body(self, kind: str, primitives: PrimitiveSet, attrs: OwnAttrs, operands: ValueTypes) -> Body:
        """A graph of the definition at these operand types.

        Raises TypeRuleError naming the graph and its node where types do not fit, and where a graph that says how to differentiate
        is not linear in tangents or cotangents.
        """
        identity = kind, attrs, operands
        known = self._bodies.get(identity)
        if known is None:
            known = self._bodies[identity] = self._typed(kind, primitives, attrs, operands)
        return known

    @no_collection()
    def _typed(self, kind: str, primitives: PrimitiveSet, attrs: OwnAttrs, operands: ValueTypes) -> Body:
        variables = match_all([p.name for p in self.inputs], [p.pattern for p in self.inputs], operands)
        types = dict(zip(self.input_keys, operands, strict=True))
        if kind != "forward":
            forward = self.body("forward", primitives, attrs, operands)
            slots = forward.types
            types |= {k: slots[r] for k, r in zip(self.output_keys, forward.results, strict=True) if r is not None}
            types |= {k.tangent(PASS): tangent_type(types[k]) for k in (*self.input_keys, *self.output_keys)}
            types |= {k.cotangent(PASS): tangent_type(types[k]) for k in (*self.input_keys, *self.output_keys)}
        taken, given = self.ports_of(kind)
        try:
            body = typed(self.graphs[kind], primitives, attrs.values, [(key, types[key]) for key in taken], given)
        except TiduError as error:
            raise TypeRuleError(f"its {kind}: {error}") from None
        if kind != "forward":
            body = self._with_natural_results(kind, body, given, types, primitives)
        self._check_results(kind, body, given, types, variables)
        if kind != "forward":
            self._check_linear(kind, primitives, body)
        if kind == "transpose":
            self._check_linear_forward(primitives, self.body("forward", primitives, attrs, operands))
        return body

    def _with_natural_results(
        self, kind: str, body: Body, given: Sequence[Key], types: Mapping[Key, Type], primitives: PrimitiveSet
    ) -> Body:
        """A body that gives tangents or cotangents of their natural types, where its graph has others that are admitted."""
        for k, (key, slot) in enumerate(zip(given, body.results, strict=True)):
            natural = types[key]
            if slot is not None and body.types[slot] != natural and admits(types[Key(key.name)], body.types[slot]):
                convert = naturalized if kind == "jvp" else naturalized_cotangent
                body = body.then(k, convert(primitives, body.types[slot], natural))
        return body

    def _check_linear(self, kind: str, primitives: PrimitiveSet, body: Body) -> None:
        n_moving = len(self.inputs if kind == "jvp" else self.outputs)
        try:
            require_linear(primitives, body, len(body.sources) - n_moving, "tangents" if kind == "jvp" else "cotangents")
        except MissingRuleError as error:
            raise TypeRuleError(f"its {kind}: {error}") from None

    def _check_linear_forward(self, primitives: PrimitiveSet, forward: Body) -> None:
        linear = self.linear_in
        names = ", ".join(p.name for p, is_linear in zip(self.inputs, linear, strict=True) if is_linear)
        try:
            require_linear(
                primitives, residual_first(forward, linear)[1], linear.count(False), f"input{'s' if ',' in names else ''} {names}"
            )
        except MissingRuleError as error:
            raise TypeRuleError(f"its forward: {error}") from None

    def _check_results(self, kind: str, body: Body, given: Sequence[Key], types: Mapping[Key, Type], variables: Variables) -> None:
        slots = body.types
        for position, (key, slot) in enumerate(zip(given, body.results, strict=True)):
            if kind != "forward":
                if slot is not None and slots[slot] != types[key]:
                    raise TypeRuleError(f"its {kind} gives '{key}' the type {slots[slot]}, which must be {types[key]}")
                continue
            if slot is None:
                raise TypeRuleError(f"its forward gives null for the output '{key}'; write the zeros as a value")
            pattern = self.outputs[position].pattern
            if not fits(pattern, slots[slot], variables):
                raise TypeRuleError(f"its forward gives '{key}' the type {slots[slot]}, which does not fit {pattern}")


def typed(
    graph: SourceGraph,
    primitives: PrimitiveSet,
    attrs: AttrValues,
    sources: Sequence[tuple[Key, Type]],
    results: Sequence[Key],
) -> Body:
    """A graph at given types. Raises TiduError naming the node."""
    position = {key: k for k, (key, _) in enumerate(sources)}
    types = [type_ for _, type_ in sources]
    slots = [position[key] for key in graph.inputs]
    steps: list[Step] = []
    plain: dict[tuple[object, ...], Case] = {}  # of nodes without attrs
    for number, node in enumerate(graph.nodes):
        try:
            check_references("it", node.inputs, len(slots))
            reads = tuple([slots[k] for k in node.inputs])
            operands = [types[slot] for slot in reads]
            alike = (node.op, *operands)
            case = None if node.attrs else plain.get(alike)
            if case is None:
                parsed = primitives.parse_attrs(node.op, substituted(node.attrs, attrs))
                case = primitives.case(node.op, parsed, None, operands)
                if not node.attrs:
                    plain[alike] = case
        except TiduError as error:
            raise TypeRuleError(f"node {number} ({node.op}): {error}") from None
        steps.append(Step(node.op, case.attrs, reads, case.results))
        slots += range(len(types), len(types) + len(case.results))
        types += case.results
    for key, value in graph.outputs:
        check_references(f"output '{key}'", [] if value is None else [value], len(slots))
    values = dict(graph.outputs)
    found = (values[key] for key in results)
    return Body(tuple(t for _, t in sources), tuple(steps), tuple(None if v is None else slots[v] for v in found))


def check_references(place: str, references: Sequence[int], n_values: int) -> None:
    """Raises UnknownNameError for a local id that is not there."""
    for k in references:
        if not 0 <= k < n_values:
            raise UnknownNameError(f"{place}: refers to value {k}, but only {n_values} values come before it")
