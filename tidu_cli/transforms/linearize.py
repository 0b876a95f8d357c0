"""linearize: the JVP of the head's outputs, as a linear graph of their tangents.

The only transform that makes derivatives. It walks the logical graph from the outputs in topological order, through references
and bindings; every node with an active operand contributes what its JVP rule emits: linear nodes, and residual nodes where the
derivative needs values that the primal graph does not have. Primal values are referred to, never copied.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import compress

from tidu_cli.frozen import replace
from tidu_cli.graph.closed import are_marked, first_results, operands
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import by_columns
from tidu_cli.graph.passes import Call
from tidu_cli.graph.types import Type, tangent_type
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.templates import Templates, jvp_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.derivative import Derivative, natural_seeds, require_known_paths, tangent_inputs
from tidu_cli.transforms.stamp import Stamp
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
    call = Call.of(document, wrt, outputs, pass_number)
    inputs = tangent_inputs(call, tangent_types or {})
    identity = call.identity(inputs)
    require_known_paths(call)

    derivative = Derivative(call.logical, inputs, n_before=len(document.graphs))
    seeds = natural_seeds(derivative, call, tangent_types or (), primitives)
    tangent = push_forward(derivative, seeds, call.needed, primitives)
    tangents = [
        Output(o.key.tangent(call.number), None if flat is None else derivative.value(tangent[flat]), tangent_type(o.type))
        for o, flat in call.targets
    ]
    appended = derivative.appended(document, f"{document.head.name}@{call.number}", call.number, tangents)
    return replace(appended, passes={**document.passes, call.number: identity})


@by_columns("tidu_cli.transforms.columns.linearize", lambda derivative, *_: derivative.n_together)
def push_forward(derivative: Derivative, seeds: Mapping[int, int], needed: bytearray, primitives: PrimitiveSet) -> Sequence[int]:
    """The handle of each flat id's tangent, 0 for zero."""
    logical, stamper = derivative.logical, derivative.stamper
    templates = Templates(partial(jvp_template, primitives, logical.document.cases))
    tangent = [0] * logical.n_values
    for flat, handle in seeds.items():
        tangent[flat] = handle
    stamps: dict[Hashable, Stamp] = {}
    watched = watch("linearizing", logical.n_nodes)
    for graph, args, base in zip(logical.document.graphs, logical.args, logical.base, strict=False):
        firsts, carried = first_results(graph, base), operands(graph, graph.code, map(tangent.__getitem__, args))
        nodes = watched(zip(graph.code, operands(graph, graph.code, args), carried, firsts, firsts[1:], strict=False))
        wanted = derivative.passing_on(compress(nodes, are_marked(needed, firsts, firsts[1:])), graph, base)
        for code, reads, tangents, first, end in wanted:
            key: Hashable = code
            if 0 in tangents or not tangents:
                if not any(tangents):
                    continue
                key = code, *map(bool, tangents)
            stamp = stamps.get(key)
            if stamp is None:
                template = templates.record(graph, graph.producer(first - base)[0], key, tangents)
                stamp = stamps[key] = stamper.stamp_of(template)
            if end - first == 1:
                (tangent[first],) = stamp([*reads, first, *tangents])
            else:
                tangent[first:end] = stamp([*reads, *range(first, end), *tangents])
    derivative.list_externals()
    return tangent
