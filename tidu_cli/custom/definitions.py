"""Custom operations: those that a document defines by graphs.

A definition says what an op computes (`forward`), and may say how it is differentiated: by `jvp`, a graph from inputs, outputs and
tangents to tangents; by `backward`, from inputs, outputs and cotangents to cotangents; or, of an op that is linear in some of its
inputs, by `transpose`, from the other inputs and cotangents to cotangents. With none of them the derivative goes through `forward`.

Graphs of definitions have types only once the op is applied: they are typed anew for each case (`tidu_cli.custom.graphs`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from tidu_cli.custom.patterns import Pattern
from tidu_cli.errors import TiduError, TypeRuleError, did_you_mean
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.closed import ClosedGraph, cases_within
from tidu_cli.graph.graph import CaseTable, Graph, Input, Meta, Output
from tidu_cli.graph.keys import Key, key_to_json
from tidu_cli.graph.types import RecordType, Type, View, moves, tangent_type
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.fields import Records
from tidu_cli.rules.recording.conversion import Fields, Maps, by_properties
from tidu_cli.rules.recording.linearity import require_linear
from tidu_cli.rules.recording.trace import Trace, recorded
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms import nested
from tidu_cli.transforms.stamp import drop_dead_nodes

# The attrs of custom operations: values by name, passed on to the nodes of their graphs.
#
# In a definition's graph `{"attr": "slope"}` stands for the value of the op's attr `slope`, anywhere within a node's attrs.


AttrValues = Mapping[str, Any]

REQUIRED = object()
"""The default of an attr that must be given."""


class CustomAttrs(Attrs):
    """Values by name, as canonical JSON: so that they hash, and 1 differs from 1.0 and from true."""

    text: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CustomAttrs:
        """Attrs of these values. Raises TypeRuleError for what JSON or msgpack cannot hold."""
        for name, value in values.items():
            _require_storable(f"attr '{name}'", value)
        try:
            return cls(text=json.dumps(values, sort_keys=True, allow_nan=False))
        except (TypeError, ValueError):
            raise TypeRuleError("attrs hold a value that JSON does not have") from None

    @property
    def values(self) -> dict[str, Any]:
        """The values by name."""
        values: dict[str, Any] = json.loads(self.text)
        return values

    def to_data(self, *, binary: bool) -> dict[str, object]:
        """The file form."""
        return self.values

    def identity(self, of_graph: object) -> dict[str, object]:
        """Likewise."""
        return self.values


def _require_storable(name: str, value: object) -> None:
    """Raises TypeRuleError for integers at any depth that msgpack, by which nodes are told apart, does not hold."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            pending += one.values()
        elif isinstance(one, list | tuple):
            pending += one
        elif isinstance(one, int) and not -(2**63) <= one < 2**64:
            raise TypeRuleError(f"{name}: holds an integer beyond 64 bits, which msgpack cannot; write it as a string")


def attrs_class(op: str, defaults: AttrValues) -> type[CustomAttrs]:
    """The class of an op's attrs, whose `parse` reads their file form."""

    class Known(CustomAttrs):
        @classmethod
        def parse(cls, data: Mapping[str, object], records: Records) -> CustomAttrs:  # type: ignore[override]
            """Attrs from their file form. Raises TypeRuleError for unknown and missing ones."""
            for name in data:
                if name not in defaults:
                    raise TypeRuleError(f"unknown attr '{name}'{did_you_mean(name, list(defaults))}")
            values = {**defaults, **data}
            for name, value in values.items():
                if value is REQUIRED:
                    raise TypeRuleError(f"missing attr '{name}'")
            return CustomAttrs.of(values)

    Known.__name__ = f"{op.title()}Attrs"
    return Known


def substituted(attrs: Any, values: AttrValues) -> Any:
    """`attrs` with the op's values in place of `{"attr": NAME}`. Raises TypeRuleError for a name that the op does not have."""
    if isinstance(attrs, Mapping):
        if set(attrs) == {"attr"} and isinstance(attrs["attr"], str):
            name = attrs["attr"]
            if name not in values:
                raise TypeRuleError(f"the op has no attr '{name}'{did_you_mean(name, list(values))}")
            return values[name]
        return {k: substituted(v, values) for k, v in attrs.items()}
    return [substituted(v, values) for v in attrs] if isinstance(attrs, list | tuple) else attrs


PASS = 1
"""The pass in which definitions name tangents and cotangents: x@1, y@-1."""

KINDS = ("forward", "jvp", "backward", "transpose")
"""The graphs of a definition."""

AttrsReader = Callable[[PrimitiveSet, str, Mapping[str, Any]], Attrs]
"""From a set of primitives, an op and attrs in their file form to the attrs, with the graphs in them. Raises TiduError."""


class SourceNode(Frozen):
    """A node of a definition's graph: attrs in their file form, and local ids."""

    op: str
    attrs: Mapping[str, Any]
    inputs: tuple[int, ...]

    @property
    def ops(self) -> list[str]:
        """Its op, and those of the nodes of graphs in its attrs."""
        return [self.op, *(_ops_within(self.attrs) if self.attrs else ())]


class SourceGraph(Frozen):
    """A graph of a definition, without types. Local ids: the inputs first, then results of nodes. An output of None is zero."""

    inputs: tuple[Key, ...]
    nodes: tuple[SourceNode, ...]
    outputs: tuple[tuple[Key, int | None], ...]

    @property
    def ops(self) -> Iterator[str]:
        """The ops of its nodes, and of those of graphs in their attrs."""
        return (op for node in self.nodes for op in node.ops)

    def to_data(self) -> dict[str, Any]:
        """The file form: plain data."""
        return {
            "inputs": [{"key": key_to_json(key)} for key in self.inputs],
            "nodes": [{"op": n.op, "inputs": list(n.inputs), **({"attrs": dict(n.attrs)} if n.attrs else {})} for n in self.nodes],
            "outputs": [{"key": key_to_json(key), "value": value} for key, value in self.outputs],
        }


class OpDefinition(Frozen, slots=False, eq=False):
    """A custom operation: patterns of its inputs and outputs, in order, defaults of attrs (`REQUIRED` for none), graphs by kind.

    `read_attrs` reads those of its graphs' nodes. `origin` names the library that it comes from; it is empty for what stands in the
    document itself. `typed` has its graphs at types and attrs, as far as they have been asked for.
    """

    name: str
    inputs: Mapping[Key, Pattern]
    outputs: Mapping[Key, Pattern]
    attrs: AttrValues
    graphs: Mapping[str, SourceGraph]
    read_attrs: AttrsReader
    meta: Meta = None
    origin: str = ""
    typed: dict[object, Graph] = field(default_factory=dict, repr=False)

    @property
    def linear_in(self) -> tuple[bool, ...]:
        """Of each input, whether `transpose` gives its cotangent: the op is linear in these together."""
        graph = self.graphs.get("transpose")
        given = {key for key, _ in graph.outputs} if graph else set()
        return tuple(key.cotangent(PASS) in given for key in self.inputs)

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """The ops of the nodes of all graphs, each once."""
        return tuple(dict.fromkeys(op for graph in self.graphs.values() for op in graph.ops))

    def ports_of(self, kind: str) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
        """The keys that a graph of that kind may take, and those that it must give."""
        x, y = tuple(self.inputs), tuple(self.outputs)
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
            "inputs": [{"key": key.name, "type": str(pattern)} for key, pattern in self.inputs.items()],
            "outputs": [{"key": key.name, "type": str(pattern)} for key, pattern in self.outputs.items()],
        }
        if self.attrs:
            data["attrs"] = {k: None if v is REQUIRED else v for k, v in self.attrs.items()}
        return data | {kind: graph.to_data() for kind, graph in self.graphs.items()}


def _ops_within(attrs: object) -> Iterator[str]:
    """The ops of the nodes of graphs in attrs, at any depth. What looks like a node is one, or refused where it is read."""
    pending = [attrs]
    while pending:
        data = pending.pop()
        if isinstance(data, list):
            pending += data
        elif isinstance(data, dict):
            pending += [value for name, value in data.items() if name != "meta"]
            if isinstance(data.get("op"), str):
                yield data["op"]


# Views of record types that documents declare: found to be linear maps between fields and properties, and transposed.


def view_of(
    name: str, record: RecordType, properties: Mapping[str, Type], graphs: tuple[ClosedGraph, ClosedGraph], primitives: PrimitiveSet
) -> View:
    """A view of a record type, whose graphs, from the fields and to them, are of these primitives.

    Raises TypeRuleError where a property does not move, or is called as a field is; where a graph does not take and give the
    natural tangents of fields and properties, by name; where it is not linear in them, or is zero; and where it has tangents by
    properties of other types, for views that convert by views would be written out again and again.
    """
    for part, type_ in properties.items():
        if record.get(part) is not None:
            raise TypeRuleError(f"a field is called '{part}', too; properties have names of their own")
        if not moves(type_):
            raise TypeRuleError(f"the property '{part}' has type {type_}, whose only tangent is zero; leave it out")
    from_fields, to_fields = graphs
    fields = {part: tangent_type(type_) for part, type_ in record.fields if moves(type_)}
    natural = {part: tangent_type(type_) for part, type_ in properties.items()}
    pulled_from = _transposed("from_fields", from_fields.graph, fields, natural, primitives)
    pulled_to = _transposed("to_fields", to_fields.graph, natural, fields, primitives)
    due: Fields = tuple(fields.items())
    return View(name, tuple(properties.items()), Maps(due, from_fields, to_fields, pulled_from, pulled_to))


def _transposed(kind: str, graph: Graph, takes: Mapping[str, Type], gives: Mapping[str, Type], primitives: PrimitiveSet) -> Graph:
    """The transpose of a graph of a view. Raises TypeRuleError."""
    for what, ports, due in (("takes", graph.inputs, takes), ("gives", graph.outputs, gives)):
        present = [(str(port.key), port.type) for port in ports]
        if dict(present) != due:
            given, told = ("; ".join(f"{key}: {type_}" for key, type_ in some) for some in (present, due.items()))
            raise TypeRuleError(f"its {kind} {what} {given or 'nothing'}, where {told or 'nothing'} is due")
    for case in cases_within(graph.cases[code] for code in sorted(set(graph.code))):
        if any(type_ is not None and by_properties(type_) for type_ in (*case.operands, *case.results)):
            raise TypeRuleError(
                f"its {kind}: {case.op} has tangents by properties; a view's graphs are of tangents by fields alone"
            )
    trace = Trace(primitives, CaseTable(primitives))
    cotangents = [trace.source(o.type, linear=False) for o in graph.outputs]
    n = len(graph.inputs)
    try:
        require_linear(primitives, graph, [True] * n, "tangents")
        terms = nested.pull_back(trace, graph, [None] * n, [True] * n, cotangents)
    except TiduError as error:
        raise TypeRuleError(f"its {kind}: {error}") from None
    if not any(terms):
        raise TypeRuleError(f"its {kind} gives zeros only")
    outputs = [Output(i.key, None if t is None else t.slot, i.type) for i, t in zip(graph.inputs, terms, strict=True)]
    made = recorded(trace, f"transpose of {kind}", [Input(o.key, o.type) for o in graph.outputs], outputs)
    return drop_dead_nodes([made], 0)[0]
