"""Custom operations: those that a document defines by graphs.

A definition says what an op computes (`forward`), and may say how it is differentiated: by `jvp`, a graph from inputs, outputs and
tangents to tangents; by `backward`, from inputs, outputs and cotangents to cotangents; or, of an op that is linear in some of its
inputs, by `transpose`, from the other inputs and cotangents to cotangents. With none of them the derivative goes through `forward`.

Graphs of definitions have types only once the op is applied: they are typed anew for each case (`tidu_cli.custom.graphs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from tidu_cli.custom.attrs import REQUIRED, AttrValues
from tidu_cli.custom.patterns import Pattern
from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Graph, Meta
from tidu_cli.graph.keys import Key, key_to_json
from tidu_cli.rules.contract import Attrs
from tidu_cli.rules.vocabulary import PrimitiveSet

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
        return tuple(dict.fromkeys(op for graph in self.graphs.values() for node in graph.nodes for op in node.ops))

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
