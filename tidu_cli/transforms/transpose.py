"""transpose: turn a linear graph round, from tangents of inputs to cotangents of outputs.

It walks the linear nodes in reverse; each node's transpose rule turns the cotangents of its results into contributions to the
cotangents of its active operands, which accumulate with the primitive set's `add` in the order in which they arise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidu_cli.errors import MissingRuleError, TransformError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, Document, Graph, Input, Output, column
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.graph.select import fresh_name
from tidu_cli.graph.types import TensorType
from tidu_cli.primitives.contract import PrimitiveSet
from tidu_cli.primitives.trace import Template, transpose_template
from tidu_cli.primitives.vocabulary import vocabulary
from tidu_cli.transforms.linear import linked_linear_head
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch


def transpose(document: Document, *, primitives: PrimitiveSet | None = None) -> Document:
    """Replace the linear head by its transpose: the adjoint map for the product <a, b> = Re(conj(a) b).

    Its inputs are the cotangents of the head's live outputs, its outputs those of the head's inputs, null where zero. What the
    rules need besides (a conjugate, a zero array) goes to a residual graph before it. Raises TransformError if the head is no
    linear graph or a node of it is not linear, MissingRuleError naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    head = document.head
    logical = linked_linear_head(document, "tidu transpose")
    assert head.linear is not None
    others = document.graphs[:-1]
    linear = GraphBuilder(document.cases, _seeds(head))
    residual = GraphBuilder(document.cases)
    cotangent = _pull_back(logical, head, Stamper(logical, linear, residual, residual_number=len(others)), primitives)

    outputs = [
        Output(i.key.dual(), -1 - handle if (handle := cotangent[k]) else None, i.type, i.meta) for k, i in enumerate(head.inputs)
    ]
    rest = replace(document, graphs=others)
    name = _dual_name(head.name, head.linear)
    graphs = [linear.build(fresh_name(rest, name), outputs, linear=head.linear)]
    if residual.code:
        graphs.insert(0, residual.build(fresh_name(rest, f"{name}.residual"), ()))
    return replace(document, graphs=(*others, *graphs))


def _pull_back(logical: LogicalGraph, head: Graph, stamper: Stamper, primitives: PrimitiveSet) -> Column[int]:
    """The handle of the cotangent of each of the head's local values, 0 for zero."""
    cases, linear = head.cases, stamper.linear
    arity, n_results = cases.arity, cases.n_results
    flat_id = logical.lookup[-1]
    cotangent = column([0]) * head.n_values
    add_of_type: dict[TensorType | None, int] = {}

    def accumulate(value: int, contribution: int, type_: TensorType | None) -> None:
        if cotangent[value] == 0:
            cotangent[value] = contribution
            return
        if type_ not in add_of_type:
            attrs = primitives.parse_attrs(primitives.add, {})
            add_of_type[type_] = cases.intern(primitives.case(primitives.add, attrs, (True, True), [type_, type_]))
        cotangent[value] = -1 - linear.append(add_of_type[type_], (-1 - cotangent[value], -1 - contribution))

    seeds = [o for o in head.outputs if o.value is not None]
    for k, output in enumerate(seeds):
        assert output.value is not None
        if output.value < 0:
            raise TransformError(
                f"graph '{head.name}', output '{output.key}': it is a value of another graph, not linear in the inputs"
            )
        accumulate(output.value, -1 - k, output.type)

    templates: dict[tuple[int, ...], Template] = {}
    end, value = len(head.args), head.n_values
    for node in watch("transposing", head.n_nodes)(range(head.n_nodes - 1, -1, -1)):
        code = head.code[node]
        last, end, value = end, end - arity[code], value - n_results[code]
        incoming = cotangent[value : value + n_results[code]]
        if not any(incoming):
            continue
        arguments, case = head.args[end:last], cases[code]
        # In a linear graph every local value depends on the tangents, and no other does.
        if case.mask != tuple([argument >= 0 for argument in arguments]):
            raise TransformError(f"{head.describe(node)}: {_not_linear(arguments, case.mask)}")
        key = (code, *map(bool, incoming))
        template = templates.get(key)
        if template is None:
            try:
                template = templates[key] = transpose_template(primitives, cases, code, tuple(map(bool, incoming)))
            except MissingRuleError as error:
                raise MissingRuleError(f"{head.describe(node)}: {error}") from None
        environment = stamper.stamp(template, [*(0 if a >= 0 else flat_id[a] for a in arguments), *incoming])
        for argument, slot, type_ in zip(arguments, template.results, case.operands, strict=True):
            if slot is not None:
                accumulate(argument, environment[slot], type_)
    return cotangent


def _not_linear(arguments: Sequence[int], mask: tuple[bool, ...] | None) -> str:
    if mask is None:
        return "it is primary, in a linear graph"
    wrong = next(k for k, argument in enumerate(arguments) if mask[k] != (argument >= 0))
    return f"input {wrong} is " + (
        "active, but it is a value of another graph" if mask[wrong] else "inactive, but it depends on the tangents"
    )


def _seeds(head: Graph) -> list[Input]:
    return [Input(o.key.dual(), o.type, o.meta) for o in head.outputs if o.value is not None]


def _dual_name(name: str, pass_number: int) -> str:
    base = name.removesuffix(f"@-{pass_number}").removesuffix(f"@{pass_number}")
    return f"{base}@{pass_number}" if name.endswith(f"@-{pass_number}") else f"{base}@-{pass_number}"
