"""transpose: turn a linear graph round, from tangents of inputs to cotangents of outputs.

It walks the linear nodes in reverse; each node's transpose rule turns the cotangents of its results into contributions to the
cotangents of its active operands, which accumulate with the primitive set's `add` in the order in which they arise. Those of nodes
that read a few elements of an array, or a field of a record, are gathered first, and added all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tidu_cli.errors import TransformError
from tidu_cli.graph.columns.large import by_columns
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.walk import backwards
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.recording.templates import Templates, transpose_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.cotangents import Cotangents
from tidu_cli.transforms.derivative import Derivative, linked_linear_head
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
    rest = replace(document, graphs=document.graphs[:-1])
    derivative = Derivative(logical, [Input(o.key.dual(), o.type, o.meta) for o in head.outputs], n_before=len(rest.graphs))
    cotangents = pull_back(derivative, head, primitives)
    outputs = [
        Output(i.key.dual(), derivative.value(handle), i.type, i.meta) for i, handle in zip(head.inputs, cotangents, strict=True)
    ]
    return derivative.appended(rest, _dual_name(head.name, head.linear), head.linear, outputs)


@by_columns("tidu_cli.transforms.columns.transpose", lambda derivative, head, *_: head.n_nodes)
def pull_back(derivative: Derivative, head: Graph, primitives: PrimitiveSet) -> Sequence[int]:
    """The handle of the cotangent of each of the head's inputs, 0 for zero."""
    cases, stamp = head.cases, derivative.stamper.stamp
    logical = derivative.logical
    flat_id = logical.by_argument(len(logical.document.graphs) - 1, range(logical.n_values))
    templates = Templates(partial(transpose_template, primitives, cases))
    cotangents = Cotangents(head, derivative.stamper, templates, primitives)
    for k, output in enumerate(head.outputs):
        if output.value is None:
            continue
        if output.value < 0:
            raise TransformError(
                f"graph '{head.name}', output '{output.key}': it is a value of another graph, not linear in the inputs"
            )
        cotangents.add(output.value, -1 - k, output.type)

    nodes = watch("transposing", head.n_nodes)(backwards(head, head.args))
    for node, (code, arguments, first, end) in zip(range(head.n_nodes - 1, -1, -1), nodes, strict=True):
        incoming = cotangents.of(first, end)
        if not any(incoming):
            continue
        case = cases.cases[code]
        # In a linear graph every local value depends on the tangents, and no other does.
        if case.mask != tuple(map(_is_local, arguments)):
            raise TransformError(f"{head.describe(node)}: {_not_linear(arguments, case.mask)}")
        operands = [*map(flat_id.__getitem__, arguments)]
        if cotangents.wait(node, arguments, operands, incoming):
            continue
        key = code, all(incoming) or tuple(map(bool, incoming))
        template = templates.get(key) or templates.record(head, node, key, incoming)
        contributions = stamp(template, [*operands, *incoming])
        for argument, contribution, type_ in zip(arguments, contributions, case.operands, strict=True):
            if contribution:
                cotangents.add(argument, contribution, type_)
    found = cotangents.of(0, len(head.inputs))
    derivative.list_externals()
    return found


_is_local = (-1).__lt__


def _not_linear(arguments: Sequence[int], mask: tuple[bool, ...] | None) -> str:
    if mask is None:
        return "it is primary, in a linear graph"
    wrong = next(k for k, argument in enumerate(arguments) if mask[k] != (argument >= 0))
    return f"input {wrong} is " + (
        "active, but it is a value of another graph" if mask[wrong] else "inactive, but it depends on the tangents"
    )


def _dual_name(name: str, pass_number: int) -> str:
    base = name.removesuffix(f"@-{pass_number}").removesuffix(f"@{pass_number}")
    return f"{base}@{pass_number}" if name.endswith(f"@-{pass_number}") else f"{base}@-{pass_number}"
