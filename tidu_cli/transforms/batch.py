"""Batching: a graph applied to many values of some inputs at once, every value that depends on them with a batch axis in front."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial

from tidu_cli.errors import MissingRuleError
from tidu_cli.graph.closed import backwards, closed_graphs, forwards
from tidu_cli.graph.graph import Case, CaseTable, Column, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import of_batch
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.contract import Narrowing
from tidu_cli.rules.recording.linearity import constant_of, is_vector
from tidu_cli.rules.recording.templates import Flags, Templates, batch_template, recorded_once
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch


def vectorized(graph: Graph, keys: Collection[Key], size: int, primitives: PrimitiveSet | None = None) -> tuple[Graph, list[bool]]:
    """A self-contained graph applied to `size` values of the inputs `keys` at once, and which of its outputs depend on these.

    Such inputs and outputs have the batch as their first axis; all others are shared by its items. Raises MissingRuleError naming
    the node.
    """
    batched = [i.key in keys for i in graph.inputs]
    inputs = [Input(i.key, of_batch(i.type, size) if b else i.type) for i, b in zip(graph.inputs, batched, strict=True)]
    builder = GraphBuilder(graph.cases, inputs)
    new, flags = append_batched(builder, graph, range(len(inputs)), batched, size, primitives or vocabulary(graph.cases))
    outputs, depend = [], []
    for output in graph.outputs:
        depends = output.value is not None and flags[output.value] == 1
        type_ = of_batch(output.type, size) if depends else output.type
        outputs.append(Output(output.key, None if output.value is None else new[output.value], type_))
        depend.append(depends)
    return builder.build(graph.name, outputs), depend


def append_batched(
    builder: GraphBuilder, graph: Graph, inputs: Sequence[int], batched: Sequence[bool], size: int, primitives: PrimitiveSet
) -> tuple[Column[int], bytearray]:
    """Append to `builder` the nodes of `graph`, for `size` values of the inputs that are `batched`.

    `inputs` are the arguments in `builder` that stand for the graph's inputs; the batched ones have the batch as their first axis.
    Values of other graphs are shared by all applications. Gives the argument of each local value of `graph`, and whether it is
    batched. Nodes become primary: what was linear in an input is now computed from a given batch of it. Raises MissingRuleError
    naming the node.
    """
    primitives.require_written_out([graph])
    cases, stamper = graph.cases, Stamper.alone(builder)
    templates = Templates(lambda code, mask: batch_template(primitives, cases, code, mask, size))
    new, flags = column(inputs), bytearray(batched)
    externals = [builder.refer(g, v) for g, v in graph.external]
    nodes = watch("batch", graph.n_nodes)(forwards(graph, graph.args))
    for node, (code, reads, _, _) in enumerate(nodes):
        mask = tuple([a >= 0 and flags[a] == 1 for a in reads])
        arguments = [new[a] if a >= 0 else externals[-1 - a] for a in reads]
        if any(mask):
            template = templates.get((code, mask)) or templates.record(graph, node, (code, mask), mask)
            new.extend(stamper.stamp(template, arguments))
        else:
            new.extend(stamper.linear.append(code, arguments))
        flags.extend([any(mask)] * cases.n_results[code])
    return new, flags


# Narrowing: nodes that hold graphs compute what is needed of them, once.
#
# What a loop or a branch does is in its attrs, where the walk over nodes that finds dead and equal values does not look. So their
# primitives say what stands for such a node when some of its results are not needed, and for two that read the same.


COMPARED = 8
"""With how many others that read the same a node is compared, the latest ones: to compare graphs takes long."""

Replacements = dict[int, Template]
"""What stands for nodes, by their numbers, over the operands of each."""


def holds_graphs(graph: Graph) -> bool:
    """Whether some node of a graph holds graphs."""
    return any(closed_graphs(graph.cases[code].attrs) for code in set(graph.code))


def narrowed(graph: Graph, primitives: PrimitiveSet) -> Graph:
    """A self-contained graph in which nodes that hold graphs are merged where they read the same, and compute what is needed."""
    return _narrowed(_merged(graph, primitives), primitives)


def _merged(graph: Graph, primitives: PrimitiveSet) -> Graph:
    """Nodes of one op that read the same made one, where the op's rule says how."""
    earlier_of: dict[Hashable, deque[tuple[int, Case]]] = {}  # those not merged yet: a loop there and one back may read the same
    partner: dict[int, tuple[int, Template]] = {}
    for node, (code, reads, _, _) in enumerate(forwards(graph, graph.args)):
        case = graph.cases[code]
        if primitives[case.op].rules.merged is None or case.mask is not None:
            continue
        waiting = earlier_of.setdefault((case.op, reads), deque(maxlen=COMPARED))
        for k, (earlier, known) in enumerate(waiting):
            template = _merged_template(primitives, graph.cases, code, (), known)
            if template is not None:
                partner[earlier] = node, template
                del waiting[k]
                break
        else:
            waiting.append((node, case))
    if not partner:
        return graph
    templates = {earlier: template for earlier, (_, template) in partner.items()}
    return _merged(_rebuilt(graph, templates, {earlier: later for earlier, (later, _) in partner.items()}), primitives)


def _narrowed(graph: Graph, primitives: PrimitiveSet) -> Graph:
    """Nodes that hold graphs replaced by what computes their needed results, where the op's rule says so."""
    needed = bytearray(graph.n_values)
    for output in graph.outputs:
        if output.value is not None:
            needed[output.value] = 1
    replacements: Replacements = {}
    literals = _literals(graph, primitives)
    node = graph.n_nodes
    for code, args, first, end in backwards(graph, graph.args):
        node -= 1
        if 1 not in needed[first:end]:
            continue
        read: Sequence[int] = args
        if primitives[graph.cases[code].op].rules.narrowed is not None:
            flags, given = tuple(map(bool, needed[first:end])), tuple(literals.get(a) for a in args)
            template = _needed_template(primitives, graph.cases, code, flags, given)
            if template is not None:
                replacements[node] = template
                slots = {s for n in template.nodes for s in n.reads} | {s for s in template.results if s is not None}
                read = [a for k, a in enumerate(args) if k in slots]
        for a in read:
            needed[a] = 1
    return _rebuilt(graph, replacements, {}) if replacements else graph


def _literals(graph: Graph, primitives: PrimitiveSet) -> dict[int, Literal]:
    """The values that are constant scalars."""
    constants = ((first, constant_of(primitives, graph.cases[code])) for code, _, first, _ in forwards(graph, graph.args))
    return {first: literal for first, literal in constants if literal is not None and not literal.type.shape}


@recorded_once
def _merged_template(primitives: PrimitiveSet, cases: CaseTable, code: int, _: Flags, earlier: Case) -> Template | None:
    """What stands for a node of this case and an earlier one that reads the same; None if they stay two."""
    case, rule = cases[code], primitives[earlier.op].rules.merged
    assert rule is not None
    return _recorded(primitives, cases, case, partial(rule, earlier.attrs, case.attrs))


@recorded_once
def _needed_template(
    primitives: PrimitiveSet, cases: CaseTable, code: int, needed: Flags, literals: tuple[Literal | None, ...]
) -> Template | None:
    """What stands for a node of this case where these results are needed; None if it stays as it is."""
    case, rule = cases[code], primitives[cases[code].op].rules.narrowed
    assert rule is not None
    return _recorded(primitives, cases, case, lambda operands: rule(Narrowing(case.attrs, operands, needed, literals)))


def _recorded(
    primitives: PrimitiveSet, cases: CaseTable, case: Case, rule: Callable[[Sequence[Term]], Sequence[Term | None] | None]
) -> Template | None:
    """What a rule makes of a case's operands; None if it leaves the node as it is.

    So it does where a linear node would have results that are no tangents, as the count of a loop is: that may stand within a graph
    in attrs, which has no roles, and not beside it.
    """
    trace = Trace(primitives, cases)
    operands = trace.operands(case)
    try:
        results = rule(operands)
    except MissingRuleError:
        return None
    if results is None:
        return None
    template = trace.template(len(operands), results)
    return template if all(is_vector(t) for n in template.nodes if n.linear for t in cases[n.code].results) else None


def _rebuilt(graph: Graph, replacements: Replacements, merged: dict[int, int]) -> Graph:
    """The graph with templates in the place of nodes; the results of the later one of two that are merged follow the earlier's."""
    builder = GraphBuilder(graph.cases, graph.inputs)
    stamper = Stamper.alone(builder)
    new: list[int | None] = list(range(len(graph.inputs)))
    later: dict[int, list[int | None]] = {}
    for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
        if node in later:
            new += later[node]
            continue
        reads = [new[a] for a in args]
        if node in replacements:
            template = replacements[node]
            handles = stamper.stamp(template, [a if a is not None else 0 for a in reads])
            results: list[int | None] = [h if r is not None else None for h, r in zip(handles, template.results, strict=True)]
            if node in merged:
                later[merged[node]] = results[end - first :]
            new += results[: end - first]
        elif None in reads:  # it is dead
            new += [None] * (end - first)
        else:
            builder.keep_meta(graph, node)
            new += stamper.linear.append(code, [a for a in reads if a is not None])
    return builder.rebuilt(graph, new)
