"""Linear graphs: under construction, as linearize and transpose make them, and as the heads that transpose and matrix take.

Before a linear graph comes a residual one, for what it reads and nothing else has. While they are stamped, a handle is a flat id
for values outside the linear graph (of the document, or of the residual graph, whose values are numbered on after the document's),
and -1-v for local value v of the linear graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from tidu_cli.errors import Remedy, TransformError, TypeRuleError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import nodes_written_out
from tidu_cli.graph.graph import Document, Externals, Graph, Input, Meta, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder, LogicalGraph, link
from tidu_cli.graph.passes import Call
from tidu_cli.graph.select import fresh_name
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.limits import require
from tidu_cli.rules import tangents as tangents
from tidu_cli.rules.recording.conversion import conversion
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import N, Stamper, Target, drop_dead_nodes, has_sources, passed_on


class Derivative:
    """A linear graph with these inputs under construction, and its residual graph, which is to be number `n_before`."""

    def __init__(self, logical: LogicalGraph, inputs: Iterable[Input], n_before: int) -> None:
        self.logical = logical
        self.n_before = n_before
        self.linear = GraphBuilder(logical.document.cases, inputs)
        self.residual = GraphBuilder(logical.document.cases)
        self.sources: dict[int, Meta] = {}
        self.residual_sources: dict[int, Meta] = {}
        self.passes_on = has_sources(logical.document.graphs)
        self.stamper = Stamper(Target(self.linear, -1, -1), Target(self.residual, logical.n_values), "the derivative, so far")

    @property
    def n_together(self) -> int:
        """How many nodes may be looked at together: all, but where what each of them emits gets its source."""
        return 0 if self.passes_on else self.logical.n_nodes

    def passing_on(self, nodes: Iterable[N], graph: Graph, base: int = 0) -> Iterable[N]:
        """These nodes of a graph, from which what is stamped while they are looked at gets its source, where they have one."""
        made = ((self.linear, self.sources), (self.residual, self.residual_sources))
        return passed_on(nodes, graph, base, made) if self.passes_on else nodes

    def list_externals(self) -> None:
        """Once all is stamped: make arguments of handles, where what is outside of a graph is listed in the order of first use."""
        made = (self.linear, self.residual)
        require("nodes", sum(nodes_written_out(graph.code, graph.cases) for graph in made), self.stamper.what)
        n_flat, n_residual = self.logical.n_values, self.residual.n_values
        starts = [*self.logical.base, n_flat, n_flat + n_residual]
        graph_of, start_of = list[int](), list[int]()
        for number, (start, end) in zip(
            [*range(len(self.logical.document.graphs)), Externals.DETACHED, self.n_before], pairwise(starts), strict=True
        ):
            graph_of += [number] * (end - start)
            start_of += [start] * (end - start)
        # By handle its argument. Those of the linear graph are negative, and so count from the end.
        linear = [*range(self.linear.n_values)][::-1]
        for builder, argument, n_outside in (
            (self.linear, [0] * (n_flat + n_residual) + linear, n_flat + n_residual),
            (self.residual, [0] * n_flat + [*range(n_residual)], n_flat),
        ):
            outside = [*dict.fromkeys([handle for handle in builder.args if 0 <= handle < n_outside])]
            for k, handle in enumerate(outside):
                argument[handle] = -1 - k
            builder.args = [*map(argument.__getitem__, builder.args)]
            values = [handle - start_of[handle] for handle in outside]
            builder.external = Externals(column([graph_of[handle] for handle in outside]), column(values))

    def value(self, handle: int) -> int | None:
        """The local value of the linear graph that a handle stands for; None for zero."""
        return -1 - handle if handle else None

    def appended(self, document: Document, name: str, pass_number: int, outputs: Iterable[Output]) -> Document:
        """The document with the graphs, pruned of what no output depends on."""
        graphs = [self.linear.build(fresh_name(document, name), outputs, linear=pass_number, node_meta=self.sources)]
        if self.residual.code:
            graphs.insert(0, self.residual.build(fresh_name(document, f"{name}.residual"), (), node_meta=self.residual_sources))
        return replace(document, graphs=(*document.graphs, *drop_dead_nodes(graphs, first_number=self.n_before)))


def linked_linear_head(document: Document, command: str) -> LogicalGraph:
    """The logical graph of a document whose head is linear in its inputs.

    `command` is how messages call the transform. Raises TransformError if the head is no linear graph, has keys that are neither
    tangents nor cotangents, has an input that is bound, or reads values of other graphs that depend on its inputs.
    """
    head = document.head
    if head.linear is None:
        raise TransformError(
            f"graph '{head.name}' is not a linear graph; {command} takes the output of ", Remedy(function="linearize")
        )
    for key in [*(i.key for i in head.inputs), *(o.key for o in head.outputs)]:
        if not key.path:
            raise TransformError(f"graph '{head.name}': '{key}' is neither a tangent nor a cotangent, as a linear graph's must be")
    tangents = [i.key for i in head.inputs]
    for key in tangents:
        if key in document.bound:
            graph = document.graphs[document.bound[key][0]].name
            raise TransformError(
                f"graph '{head.name}': its input '{key}' is bound to a value of graph '{graph}', so that {command} would see "
                "only a part of the linear map; compose the functions, and linearize the composition"
            )
    logical = link(document)
    # Other graphs may take the same tangents; what the head reads of them must not come from there.
    if not {i.key for graph in document.graphs[:-1] for i in graph.inputs}.isdisjoint(tangents):
        read = logical.depends_on_externals([len(document.graphs) - 1])
        for key in tangents:
            if read[logical.source[key]]:
                raise TransformError(
                    f"graph '{head.name}' reads values of other graphs that depend on its input '{key}', so it is not linear"
                )
    return logical


# The directions that linearize differentiates along: tangents of inputs, their types, and what may depend on them.


def tangent_inputs(call: Call, chosen: Mapping[Key, Type]) -> list[Input]:
    """The inputs of the linear graph: a tangent of each input of the call, of a chosen type or of the natural one.

    Raises TransformError where there is no such tangent.
    """
    document = call.logical.document
    declared = {key: document.inputs[key].type for key in call.wrt}
    for key, type_ in declared.items():
        if key in document.bound:
            graph = document.graphs[document.bound[key][0]].name
            raise TransformError(
                f"input '{key}' is bound to a value of graph '{graph}'; differentiate with respect to that graph's inputs"
            )
        if tangents.natural(type_) is None:
            raise TransformError(
                f"input '{key}' has type {type_}, whose only tangent is zero; if it is meant as a number, "
                "declare it as a float and use convert_element_type where a bool is needed"
            )
    types = {key: tangent_type(type_) for key, type_ in declared.items()}
    for key, type_ in chosen.items():
        if key not in types:
            raise TransformError(f"a tangent type is given for '{key}', which is none of the inputs to differentiate by")
        try:
            types[key] = tangents.chosen(declared[key], type_)
        except TypeRuleError as error:
            raise TransformError(f"input '{key}' has type {declared[key]}, which {error}") from None
    return [Input(key.tangent(call.number), type_) for key, type_ in types.items()]


def require_known_paths(call: Call) -> None:
    """Raises TransformError if outputs of the call may depend on some of its inputs through values that are detached."""
    # What a linear graph reads detached does not depend on its own inputs; of any other input it may.
    if 1 not in call.needed[call.logical.base[-1] :]:
        return
    tangents = {i.key for graph in call.logical.document.graphs if graph.linear is not None for i in graph.inputs}
    for key in call.wrt:
        if key not in tangents:
            raise TransformError(
                f"the outputs read detached values, which may depend on '{key}'; resolve them with the document that defines them"
            )


def natural_seeds(derivative: Derivative, call: Call, chosen: Iterable[Key], primitives: PrimitiveSet) -> dict[int, int]:
    """By the flat ids of inputs, the handles of their tangents in their natural types, which rules take."""
    logical, linear = derivative.logical, derivative.linear
    seeds = {logical.source[key]: -1 - k for k, key in enumerate(call.wrt)}
    for key in chosen:
        source = logical.source[key]
        primal, given = logical.type_of(source), linear.inputs[-1 - seeds[source]].type
        if primal is not None and call.needed[source] and given != tangent_type(primal):
            template = conversion(primitives, logical.document.cases, given, tangent_type(primal))
            (seeds[source],) = derivative.stamper.stamp(template, [seeds[source]])
    return seeds
