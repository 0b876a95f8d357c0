"""transpose: turn a linear graph round, from tangents of inputs to cotangents of outputs.

It walks the linear nodes in reverse; each node's transpose rule turns the cotangents of its results into contributions to the
cotangents of its active operands, which accumulate with the primitive set's `add` in the order in which they arise. Those of nodes
that read a few elements of an array are gathered first, and added all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from tidu_cli.errors import MissingRuleError, TransformError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.large import is_large
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.graph.select import fresh_name
from tidu_cli.graph.types import RecordType
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.contract import PrimitiveSet
from tidu_cli.rules.recording import Template
from tidu_cli.rules.scattered import reads_few
from tidu_cli.rules.templates import transpose_template
from tidu_cli.transforms.cotangents import Cotangents, Read
from tidu_cli.transforms.dead import drop_dead_nodes
from tidu_cli.transforms.linear import linked_linear_head
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch


def transpose(document: Document, *, primitives: PrimitiveSet | None = None) -> Document:
    """Replace the linear head by its transpose: the adjoint map for the product <a, b> = Re(conj(a) b).

    Its inputs are the cotangents of the head's outputs, those of zeros too, so that they do not depend on what the head computes;
    its outputs those of the head's inputs, null where zero. What the rules need besides (a conjugate, a zero array) goes to a
    residual graph before it. Raises TransformError if the head is no linear graph or a node of it is not linear, MissingRuleError
    naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    head = document.head
    logical = linked_linear_head(document, "tidu transpose")
    primitives.require_written_out([head])
    assert head.linear is not None
    others = document.graphs[:-1]
    linear = GraphBuilder(document.cases, _seeds(head))
    residual = GraphBuilder(document.cases)
    stamper = Stamper(logical, linear, residual, residual_number=len(others))
    cotangents, some_are_dead = _pull_back(logical, head, stamper, primitives)

    outputs = [
        Output(i.key.dual(), -1 - handle if handle else None, i.type, i.meta)
        for i, handle in zip(head.inputs, cotangents, strict=True)
    ]
    rest = replace(document, graphs=others)
    name = _dual_name(head.name, head.linear)
    graphs = [linear.build(fresh_name(rest, name), outputs, linear=head.linear)]
    if residual.code:
        graphs.insert(0, residual.build(fresh_name(rest, f"{name}.residual"), ()))
    if some_are_dead:
        graphs = drop_dead_nodes(graphs, first_number=len(others))
    return replace(document, graphs=(*others, *graphs))


def _pull_back(logical: LogicalGraph, head: Graph, stamper: Stamper, primitives: PrimitiveSet) -> tuple[Sequence[int], bool]:
    """The handle of the cotangent of each of the head's inputs, 0 for zero; and whether some rule makes no use of a cotangent."""
    if is_large(head.n_nodes):
        from tidu_cli.transforms.columns.transpose import pull_back

        in_bulk = pull_back(logical, head, stamper.linear, stamper.residual, stamper.residual_number, primitives)
        if in_bulk is not None:
            return in_bulk
    cases, flat_id = head.cases, logical.lookup[-1]
    arity, n_results = cases.arity, cases.n_results
    templates = _Templates(primitives, head)
    some_are_dead = False

    def contribution(read: Read) -> int | None:
        nonlocal some_are_dead
        template, ignores = templates.of(read.node, (read.cotangent,))
        some_are_dead |= ignores
        slot = template.results[0]
        return None if slot is None else stamper.stamp(template, [*read.operands, read.cotangent])[slot]

    cotangents = Cotangents(head.n_values, stamper, primitives, contribution)
    dense, waiting = cotangents.dense, cotangents.waiting
    for k, output in enumerate(head.outputs):
        if output.value is None:
            continue
        if output.value < 0:
            raise TransformError(
                f"graph '{head.name}', output '{output.key}': it is a value of another graph, not linear in the inputs"
            )
        cotangents.add(output.value, -1 - k, output.type)

    few: dict[int, bool] = {}
    taken = primitives.fields_taken(cases)
    end, value = len(head.args), head.n_values
    for node in watch("transposing", head.n_nodes)(range(head.n_nodes - 1, -1, -1)):
        code = head.code[node]
        last, end, value = end, end - arity[code], value - n_results[code]
        if waiting:
            for result in range(value, value + n_results[code]):
                if result in waiting:
                    cotangents.settle(result)
        incoming = dense[value : value + n_results[code]]
        if not any(incoming):
            continue
        arguments, case = head.args[end:last], cases[code]
        # In a linear graph every local value depends on the tangents, and no other does.
        if case.mask != tuple([argument >= 0 for argument in arguments]):
            raise TransformError(f"{head.describe(node)}: {_not_linear(arguments, case.mask)}")
        operands = [0 if a >= 0 else flat_id[a] for a in arguments]
        if code not in few:
            few[code] = reads_few(primitives, case)
        if few[code]:
            cotangents.add_read(arguments[0], Read(node, code, operands, incoming[0]))
            continue
        if code in taken:
            cotangents.add_field(arguments[0], taken[code], incoming[0], cast(RecordType, case.operands[0]))
            continue
        template, ignores = templates.of(node, incoming)
        some_are_dead |= ignores
        environment = stamper.stamp(template, [*operands, *incoming])
        for argument, slot, type_ in zip(arguments, template.results, case.operands, strict=True):
            if slot is not None:
                cotangents.add(argument, environment[slot], type_)
    for k in range(len(head.inputs)):
        if k in waiting:
            cotangents.settle(k)
    return dense[: len(head.inputs)], some_are_dead or cotangents.some_are_dead


class _Templates:
    """The templates of the transpose rules of a graph's nodes, each recorded once, and whether they ignore a cotangent."""

    def __init__(self, primitives: PrimitiveSet, head: Graph) -> None:
        self.primitives = primitives
        self.head = head
        self.known: dict[tuple[int, ...], tuple[Template, bool]] = {}

    def of(self, node: int, incoming: Sequence[int]) -> tuple[Template, bool]:
        """For a node whose results have these cotangents, 0 for zero. Raises MissingRuleError naming the node."""
        code, live = self.head.code[node], tuple(map(bool, incoming))
        found = self.known.get((code, *live))
        if found is None:
            try:
                template = transpose_template(self.primitives, self.head.cases, code, live)
            except MissingRuleError as error:
                raise MissingRuleError(f"{self.head.describe(node)}: {error}") from None
            first = template.n_sources - len(live)
            found = template, template.ignores(first + k for k, is_live in enumerate(live) if is_live)
            self.known[code, *live] = found
        return found


def _not_linear(arguments: Sequence[int], mask: tuple[bool, ...] | None) -> str:
    if mask is None:
        return "it is primary, in a linear graph"
    wrong = next(k for k, argument in enumerate(arguments) if mask[k] != (argument >= 0))
    return f"input {wrong} is " + (
        "active, but it is a value of another graph" if mask[wrong] else "inactive, but it depends on the tangents"
    )


def _seeds(head: Graph) -> list[Input]:
    return [Input(o.key.dual(), o.type, o.meta) for o in head.outputs]


def _dual_name(name: str, pass_number: int) -> str:
    base = name.removesuffix(f"@-{pass_number}").removesuffix(f"@{pass_number}")
    return f"{base}@{pass_number}" if name.endswith(f"@-{pass_number}") else f"{base}@-{pass_number}"
