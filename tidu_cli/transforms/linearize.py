"""linearize: the JVP of the head's outputs, as a linear graph of their tangents.

The only transform that makes derivatives. It walks the logical graph from the outputs in topological order, through references
and bindings; every node with an active operand contributes what its JVP rule emits: linear nodes, and residual nodes where the
derivative needs values that the primal graph does not have. Primal values are referred to, never copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidu_cli.errors import MissingRuleError, TransformError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, Document, Input, Output, column
from tidu_cli.graph.keys import MAX_PASS, Key, checked_pass
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.select import fresh_name, require_inputs, select_outputs
from tidu_cli.graph.types import tangent_type
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.primitives.trace import Template, jvp_template
from tidu_cli.primitives.vocabulary import vocabulary
from tidu_cli.transforms.dead import drop_dead_nodes
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch


def linearize(
    document: Document,
    wrt: Sequence[Key],
    *,
    outputs: Sequence[Key] | None = None,
    pass_number: int | None = None,
    primitives: PrimitiveSet | None = None,
) -> Document:
    """Append the linear graph of the head's outputs (or of `outputs`), and before it, where needed, its residual graph.

    Its inputs are the tangents of `wrt`, each once, in order; its outputs the tangents of the outputs, null where they are zero.
    `pass_number` is by default 1 + the greatest in use. Raises UnknownNameError for keys that do not exist, TransformError for a
    `wrt` that carries no tangent and for a pass in use, MissingRuleError naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    logical = link(document)
    wrt = list(dict.fromkeys(wrt))
    pass_number = _pass(document, pass_number)
    targets = [
        (output, None if output.value is None else logical.lookup[g][output.value])
        for g, output in select_outputs(document, outputs)
    ]
    linear = GraphBuilder(document.cases, _tangent_inputs(document, wrt, pass_number))
    residual = GraphBuilder(document.cases)
    seeds = {logical.source[key]: -1 - k for k, key in enumerate(wrt)}

    stamper = Stamper(logical, linear, residual, residual_number=len(document.graphs))
    needed = logical.depends_on(flat for _, flat in targets if flat is not None)
    _require_known_paths(logical, needed, wrt)
    tangent, some_were_dropped = _push_forward(logical, seeds, needed, stamper, primitives)

    tangent_outputs = []
    for output, flat in targets:
        handle = 0 if flat is None else tangent[flat]
        key = output.key.tangent(pass_number)
        tangent_outputs.append(Output(key, -1 - handle if handle else None, tangent_type(output.type)))

    name = f"{document.head.name}@{pass_number}"
    graphs = [linear.build(fresh_name(document, name), tangent_outputs, linear=pass_number)]
    if len(residual.code):
        graphs.insert(0, residual.build(fresh_name(document, f"{name}.residual"), ()))
    if some_were_dropped:
        graphs = drop_dead_nodes(graphs, first_number=len(document.graphs))
    return replace(document, graphs=(*document.graphs, *graphs))


def _push_forward(
    logical: LogicalGraph, seeds: dict[int, int], needed: bytearray, stamper: Stamper, primitives: PrimitiveSet
) -> tuple[Column[int], bool]:
    """The handle of each flat id's tangent, 0 for zero; and whether a rule gave zero for an active node."""
    cases, n_results = logical.document.cases, logical.document.cases.n_results
    arity = cases.arity
    tangent = column([0]) * logical.n_values
    for flat, handle in seeds.items():
        tangent[flat] = handle
    templates: dict[tuple[int, ...], Template] = {}
    some_were_dropped = False
    watched = watch("linearizing", logical.n_nodes)
    for g, graph in enumerate(logical.document.graphs):
        args, end, value = logical.args[g], 0, logical.base[g] + len(graph.inputs)
        for node, code in enumerate(watched(graph.code)):
            start, first = end, value
            end, value = start + arity[code], first + n_results[code]
            if not (needed[first] or 1 in needed[first:value]):
                continue
            operands = args[start:end]
            tangents = [tangent[flat] for flat in operands]
            if not any(tangents):
                continue
            case = (code, *map(bool, tangents))
            template = templates.get(case)
            if template is None:
                try:
                    template = jvp_template(primitives, cases, code, tuple(map(bool, tangents)))
                except MissingRuleError as error:
                    raise MissingRuleError(f"{graph.describe(node)}: {error}") from None
                templates[case] = template
            environment = stamper.stamp(template, [*operands, *range(first, value), *tangents])
            for k, slot in enumerate(template.results):
                if slot is None:
                    some_were_dropped = True
                else:
                    tangent[first + k] = environment[slot]
    return tangent, some_were_dropped


def _pass(document: Document, chosen: int | None) -> int:
    if chosen is None:
        chosen = document.next_pass()
        if chosen > MAX_PASS:
            raise TransformError(f"pass {MAX_PASS} is in use and is the greatest there is; choose another with --pass")
        return chosen
    checked_pass(chosen)
    if any(abs(step) == chosen for key in document.every_key() for step in key.path) or any(
        g.linear == chosen for g in document.graphs
    ):
        raise TransformError(f"pass {chosen} is in use in this document; the next free one is {document.next_pass()}")
    return chosen


def _require_known_paths(logical: LogicalGraph, needed: bytearray, wrt: Sequence[Key]) -> None:
    # What a linear graph reads detached does not depend on its own inputs; of any other input it may.
    if 1 not in needed[logical.base[-1] :]:
        return
    tangents = {i.key for graph in logical.document.graphs if graph.linear is not None for i in graph.inputs}
    for key in wrt:
        if key not in tangents:
            raise TransformError(
                f"the outputs read detached values, which may depend on '{key}'; resolve them with the document that defines them"
            )


def _tangent_inputs(document: Document, wrt: Sequence[Key], pass_number: int) -> list[Input]:
    require_inputs(document, wrt)
    declared = {i.key: i.type for graph in document.graphs for i in graph.inputs}
    bound = {b.key: b for b in document.bindings}
    for key in wrt:
        if key in bound:
            graph = document.graphs[bound[key].graph].name
            raise TransformError(
                f"input '{key}' is bound to a value of graph '{graph}'; differentiate with respect to that graph's inputs"
            )
        if not declared[key].inexact:
            raise TransformError(
                f"input '{key}' has type {declared[key]}, which carries no tangent; wrt takes floats and complex numbers"
            )
    return [Input(key.tangent(pass_number), tangent_type(declared[key])) for key in wrt]
