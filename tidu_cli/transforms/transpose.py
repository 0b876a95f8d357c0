"""transpose: turn a linear graph round, from tangents of inputs to cotangents of outputs.

It walks the linear nodes in reverse; each node's transpose rule turns the cotangents of its results into contributions to the
cotangents of its active operands, which accumulate with the primitive set's `add` in the order in which they arise. Those of nodes
that read a few elements of an array, or a field of a record, are gathered first, and added all at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from itertools import chain

from tidu_cli.errors import NoReverseError, Remedy, TransformError
from tidu_cli.frozen import replace
from tidu_cli.graph.closed import backwards
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.large import by_columns
from tidu_cli.graph.select import listed
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.templates import Templates, transpose_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.cotangents import Cotangents
from tidu_cli.transforms.derivative import Derivative, linked_linear_head
from tidu_cli.transforms.stamp import Stamp
from tidu_cli.watching import watch


def transpose(document: Document, *, strong_zeros: bool = False, primitives: PrimitiveSet | None = None) -> Document:
    """Replace the linear head by its transpose: the adjoint map for the product <a, b> = Re(conj(a) b).

    Its inputs are the cotangents of the head's outputs, those of zeros too, so that they do not depend on what the head computes;
    its outputs those of the head's inputs, null where zero. With `strong_zeros` a cotangent that is 0 stays 0 where slopes are not
    finite. What the rules need besides (a conjugate, a zero array) goes to a
    residual graph before it. Raises TransformError if the head is no linear graph or a node of it is not linear, MissingRuleError
    naming the node.
    """
    primitives = primitives or vocabulary(document.cases)
    primitives = primitives.strong if strong_zeros else primitives
    head = document.head
    logical = linked_linear_head(document, str(Remedy(function=transpose.__name__)))
    primitives.require_written_out([head])
    assert head.linear is not None
    rest = replace(document, graphs=document.graphs[:-1])
    derivative = Derivative(logical, [Input(o.key.dual(), o.type, o.meta) for o in head.outputs], n_before=len(rest.graphs))
    try:
        cotangents = pull_back(derivative, head, primitives)
    except NoReverseError as error:
        raise NoReverseError(str(error), *_loops(document)) from error
    outputs = [
        Output(i.key.dual(), derivative.value(handle), i.type, i.meta) for i, handle in zip(head.inputs, cotangents, strict=True)
    ]
    return derivative.appended(rest, _dual_name(head.name, head.linear), head.linear, outputs)


@by_columns("tidu_cli.transforms.columns.transpose", lambda derivative, head, *_: min(derivative.n_together, head.n_nodes))
def pull_back(derivative: Derivative, head: Graph, primitives: PrimitiveSet) -> Sequence[int]:
    """The handle of the cotangent of each of the head's inputs, 0 for zero."""
    cases, logical = head.cases, derivative.logical
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

    so_far, waiting, stamps = cotangents.so_far, cotangents.waiting, dict[Hashable, Stamp]()
    parts = {code: part for code in set(head.code) if (part := cotangents.part_read(code)) is not None}
    is_linear = _reads_tangents_as_masks_say(head)
    # What rules may read is outside, and stands for flat ids. The other operands are those that get contributions.
    operands = [*range(head.n_values), *logical.outside[-1][len(head.inputs) :]]
    nodes = backwards(head, [*map(operands.__getitem__, head.args)])
    for code, reads, first, end in derivative.passing_on(watch("transposing", head.n_nodes)(nodes), head):
        incoming = cotangents.of(first, end) if waiting else so_far[first:end]
        if not any(incoming):
            continue
        if not is_linear:
            _require_linear(head, head.producer(first)[0])
        if code in parts:
            cotangents.wait(head.producer(first)[0], parts[code], reads, incoming[0])
            continue
        key = (code, *map(bool, incoming)) if 0 in incoming else code
        stamp = stamps.get(key)
        if stamp is None:
            template = templates.record(head, head.producer(first)[0], key, incoming)
            stamp = stamps[key] = derivative.stamper.stamp_of(template)
        for k, contribution in enumerate(stamp([*reads, *incoming])):
            if contribution:
                argument = reads[k]
                if waiting or so_far[argument]:
                    cotangents.add(argument, contribution, cases[code].operands[k])
                else:
                    so_far[argument] = contribution
    handles = cotangents.of(0, len(head.inputs))
    derivative.list_externals()
    return handles


def _loops(document: Document) -> list[str | Remedy]:
    """What messages add where a loop has no transpose: the loops of a model that are such, as its reader wrote into meta."""
    parts = [part for graph in document.graphs for meta in graph.node_meta.values() for part in (meta or {}).values()]
    listings = [loops for part in parts if isinstance(part, dict) and isinstance(loops := part.get("loops"), list | tuple)]
    told = list[str | Remedy]()
    for loop in (loop for loops in listings for loop in loops if isinstance(loop, dict)):
        inputs = [f"'{name}'" for name in names] if isinstance(names := loop.get("inputs"), list | tuple) else []
        told.append(f"; {loop.get('name')} runs as often as {listed(inputs) or 'a condition'} says")
        if isinstance(number := loop.get("number"), str):
            python = f"load_onnx(MODEL, set={{{number!r}: 4}})"
            told += [", and is a scan after ", Remedy("set", f"{number}=4", command="convert MODEL", python=python)]
    return told


def _reads_tangents_as_masks_say(head: Graph) -> bool:
    """Whether nodes are active in local values, which all depend on the tangents, and in no others."""
    mask = {code: head.cases[code].mask or [None] for code in set(head.code)}
    return [*chain.from_iterable(map(mask.__getitem__, head.code))] == [a >= 0 for a in head.args]


def _require_linear(head: Graph, node: int) -> None:
    mask = head.case(node).mask
    if mask is None:
        raise TransformError(f"{head.describe(node)}: it is primary, in a linear graph")
    for k, argument in enumerate(head.operands(node)):
        if mask[k] != (argument >= 0):
            wrong = "active, but it is a value of another graph" if mask[k] else "inactive, but it depends on the tangents"
            raise TransformError(f"{head.describe(node)}: input {k} is {wrong}")


def _dual_name(name: str, pass_number: int) -> str:
    base = name.removesuffix(f"@-{pass_number}").removesuffix(f"@{pass_number}")
    return f"{base}@{pass_number}" if name.endswith(f"@-{pass_number}") else f"{base}@-{pass_number}"
