"""linearize: the JVP of the head's outputs, as a linear graph of their tangents.

The only transform that makes derivatives. It walks the logical graph from the outputs in topological order, through references
and bindings; every node with an active operand contributes what its JVP rule emits: linear nodes, and residual nodes where the
derivative needs values that the primal graph does not have. Primal values are referred to, never copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidu_cli.errors import MissingRuleError, TransformError, TypeRuleError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.large import is_large
from tidu_cli.graph.graph import Column, Document, Input, Output, column
from tidu_cli.graph.keys import MAX_PASS, Key, checked_pass
from tidu_cli.graph.link import LogicalGraph, link
from tidu_cli.graph.passes import call_identity
from tidu_cli.graph.select import fresh_name, require_inputs, select_outputs
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules import tangents
from tidu_cli.rules.contract import PrimitiveSet
from tidu_cli.rules.conversion import conversion
from tidu_cli.rules.recording import Template
from tidu_cli.rules.templates import jvp_template
from tidu_cli.transforms.dead import drop_dead_nodes
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch


def linearize(
    document: Document,
    wrt: Sequence[Key],
    *,
    outputs: Sequence[Key] | None = None,
    pass_number: int | None = None,
    tangent_types: Mapping[Key, Type] | None = None,
    primitives: PrimitiveSet | None = None,
) -> Document:
    """Append the linear graph of the head's outputs (or of `outputs`), and before it, where needed, its residual graph.

    Its inputs are the tangents of `wrt`, each once, in order; its outputs the tangents of the outputs, null where they are zero.
    `pass_number` is by default 1 + the greatest in use; the document notes which call it was. `tangent_types` are those of inputs
    whose tangents shall have another type than their natural one. Raises UnknownNameError for keys that do not exist,
    TransformError for a `wrt` that carries no tangent, for a tangent type that its primal does not admit and for a pass in use,
    MissingRuleError naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    primitives.require_written_out(document.graphs)
    logical = link(document)
    wrt = list(dict.fromkeys(wrt))
    pass_number = _pass(document, pass_number)
    targets = [
        (output, None if output.value is None else logical.flat_id(g, output.value))
        for g, output in select_outputs(document, outputs)
    ]
    linear = GraphBuilder(document.cases, _tangent_inputs(document, wrt, pass_number, tangent_types or {}))
    residual = GraphBuilder(document.cases)
    identity = call_identity(logical, targets, linear.inputs)
    seeds = {logical.source[key]: -1 - k for k, key in enumerate(wrt)}

    stamper = Stamper(logical, linear, residual, residual_number=len(document.graphs))
    needed = logical.depends_on(flat for _, flat in targets if flat is not None)
    _require_known_paths(logical, needed, wrt)
    for key in tangent_types or ():
        source = logical.source[key]
        primal, given = logical.type_of(source), linear.inputs[-1 - seeds[source]].type
        if primal is not None and needed[source] and given != tangent_type(primal):
            template = conversion(primitives, document.cases, given, tangent_type(primal))
            seeds[source] = stamper.stamp(template, [seeds[source]])[-1]
    tangent, some_are_dead = _push_forward(logical, seeds, needed, stamper, primitives)

    tangent_outputs = []
    for output, flat in targets:
        handle = 0 if flat is None else tangent[flat]
        key = output.key.tangent(pass_number)
        tangent_outputs.append(Output(key, -1 - handle if handle else None, tangent_type(output.type)))

    name = f"{document.head.name}@{pass_number}"
    graphs = [linear.build(fresh_name(document, name), tangent_outputs, linear=pass_number)]
    if len(residual.code):
        graphs.insert(0, residual.build(fresh_name(document, f"{name}.residual"), ()))
    if some_are_dead:
        graphs = drop_dead_nodes(graphs, first_number=len(document.graphs))
    return replace(document, graphs=(*document.graphs, *graphs), passes={**document.passes, pass_number: identity})


def _push_forward(
    logical: LogicalGraph, seeds: dict[int, int], needed: bytearray, stamper: Stamper, primitives: PrimitiveSet
) -> tuple[Column[int], bool]:
    """The handle of each flat id's tangent, 0 for zero; and whether some tangent has been computed that nothing may need.

    That is one of which a rule makes no use (where it gives zero, say), or one of a result that no output needs, of a node that has
    several results. What has been emitted for it may serve other tangents, too: `drop_dead_nodes` tells.
    """
    if is_large(logical.n_nodes):
        from tidu_cli.transforms.columns.linearize import push_forward

        in_bulk = push_forward(logical, seeds, needed, stamper.linear, stamper.residual, stamper.residual_number, primitives)
        if in_bulk is not None:
            return in_bulk
    cases, n_results = logical.document.cases, logical.document.cases.n_results
    arity = cases.arity
    tangent = column([0]) * logical.n_values
    for flat, handle in seeds.items():
        tangent[flat] = handle
    templates: dict[tuple[int, ...], tuple[Template, bool]] = {}
    taken, fields = primitives.fields_taken(cases), stamper.fields
    some_are_dead = False
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
            if code in taken and tangents[0] in fields:  # of a record that is put together here, the field itself
                tangent[first] = fields[tangents[0]].get(taken[code], 0)
                some_are_dead = True
                continue
            case = (code, *map(bool, tangents))
            known = templates.get(case)
            if known is None:
                try:
                    template = jvp_template(primitives, cases, code, tuple(map(bool, tangents)))
                except MissingRuleError as error:
                    raise MissingRuleError(f"{graph.describe(node)}: {error}") from None
                source = template.n_sources - len(tangents)
                known = templates[case] = template, template.ignores(source + k for k, t in enumerate(tangents) if t)
            template, ignores = known
            some_are_dead |= ignores
            environment = stamper.stamp(template, [*operands, *range(first, value), *tangents])
            for k, slot in enumerate(template.results):
                if slot is not None:
                    tangent[first + k] = environment[slot]
                    some_are_dead |= not needed[first + k]
    return tangent, some_are_dead


def _pass(document: Document, chosen: int | None) -> int:
    if chosen is None:
        chosen = document.next_pass()
        if chosen > MAX_PASS:
            raise TransformError(
                f"pass {MAX_PASS} is in use and is the greatest there is; choose another with tidu linearize --pass"
            )
        return chosen
    checked_pass(chosen)
    if chosen in document.used_passes():
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


def _tangent_inputs(document: Document, wrt: Sequence[Key], pass_number: int, chosen: Mapping[Key, Type]) -> list[Input]:
    require_inputs(document, wrt)
    declared = {i.key: i.type for graph in document.graphs for i in graph.inputs}
    bound = {b.key: b for b in document.bindings}
    for key in wrt:
        if key in bound:
            graph = document.graphs[bound[key].graph].name
            raise TransformError(
                f"input '{key}' is bound to a value of graph '{graph}'; differentiate with respect to that graph's inputs"
            )
        if tangents.natural(declared[key]) is None:
            raise TransformError(
                f"input '{key}' has type {declared[key]}, whose only tangent is zero; if it is meant as a number, "
                "declare it as a float and use convert_element_type where a bool is needed"
            )
    types = {key: tangent_type(declared[key]) for key in wrt}
    for key, type_ in chosen.items():
        if key not in types:
            raise TransformError(f"a tangent type is given for '{key}', which is none of the inputs to differentiate by")
        try:
            types[key] = tangents.chosen(declared[key], type_)
        except TypeRuleError as error:
            raise TransformError(f"input '{key}' has type {declared[key]}, which {error}") from None
    return [Input(key.tangent(pass_number), types[key]) for key in wrt]
