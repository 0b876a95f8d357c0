"""What depends on what in loops and branches: sparsity patterns, and what is left out of them as nobody needs it.

Patterns say which elements of what loops and branches give depend on which tangents. What is left out is dead results and carries,
what is the same in all steps, and equal work of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from tidu_cli.control_flow.graphs import Flags, fixed_point, inputs_of, made
from tidu_cli.graph.closed import ClosedGraph, forwards
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.literals import literal_to_numbers
from tidu_cli.rules.analysis import Patterns
from tidu_cli.rules.batching import repeated
from tidu_cli.rules.contract import Narrowing
from tidu_cli.rules.recording.trace import emitted, nodes_for
from tidu_cli.rules.terms import Recorder, Term
from tidu_cli.rules.vocabulary import PrimitiveSet

_FOLLOWED = 200_000
"""The nodes of all steps together up to which each step of a loop is followed."""

Values = Sequence[Any]


def cond_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """Patterns of a cond: those of the branch that is taken, if it is known; else what may be any of them."""
    index, *rest = operands
    branches = attrs.branches if index is None else [attrs.branches[_clamped(index, len(attrs.branches))]]
    return [patterns.union(some) for some in zip(*[patterns.through(branch, rest) for branch in branches], strict=True)]


def scan_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """Patterns of a scan, step by step, as what is carried comes to depend on more; of long ones what may be at any step."""
    consts, carry, xs = attrs.split(operands)

    def step(carry: Values, x: Values) -> tuple[Values, Values]:
        outputs = patterns.through(attrs.body, [*consts, *carry, *x])
        return outputs[: attrs.num_carry], outputs[attrs.num_carry :]

    slices = list(patterns.steps(attrs.length, xs))
    if attrs.length * attrs.body.n_nodes > _FOLLOWED:
        x = [patterns.union(some) for some in zip(*slices, strict=True)]
        carry = _any_step(patterns, carry, lambda carry: step(carry, x)[0])
        return [*carry, *[patterns.stacked([y] * attrs.length) for y in step(carry, x)[1]]]
    results: list[Values] = []
    for x in reversed(slices) if attrs.reverse else slices:
        carry, ys = step(carry, x)
        results.append(ys)
    if not results:
        return [*carry, *[None] * (len(attrs.body.output_types) - attrs.num_carry)]
    return [*carry, *map(patterns.stacked, zip(*results[:: -1 if attrs.reverse else 1], strict=True))]


def while_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """Patterns of a while, of which nobody knows how many steps there are."""
    _, consts, carry = attrs.split(operands)
    return _any_step(patterns, carry, lambda carry: patterns.through(attrs.body, [*consts, *carry]))


def solve_pattern(patterns: Patterns, attrs: Any, operands: Values) -> Values:
    """Patterns of unknowns: each depends on the right sides of all equations that it is tied to, by others too, and on no more."""
    return patterns.solved(attrs.matvec, operands[: attrs.num_consts], operands[attrs.num_consts :])


def _any_step(patterns: Patterns, carry: Values, step: Callable[[Values], Values]) -> Values:
    """What is carried over after any number of steps, none among them: it adds up until nothing is new."""
    while True:
        after = [patterns.union(two) for two in zip(carry, step(carry), strict=True)]
        if patterns.same(carry, after):
            return after
        carry = after


def output_values(graph: ClosedGraph) -> list[int]:
    """The value of each output."""
    return [cast(int, o.value) for o in graph.graph.outputs]


def tidy(primitives: PrimitiveSet, graph: ClosedGraph) -> ClosedGraph:
    """The graph without dead and equal nodes: itself if there are none."""
    if graph.tidy:
        return graph
    tidied = over(primitives, graph, range(len(graph.graph.inputs)), output_values(graph))
    same = tidied.graph.cases.cases == graph.graph.cases.cases and tidied.graph.code == graph.graph.code
    graph.tidy = same and tidied.graph.args == graph.graph.args
    return graph if graph.tidy else tidied


def values_read(graph: Graph, wanted: Iterable[int], known: Iterable[int] = ()) -> set[int]:
    """The values of a closed graph that are read to compute these, where some are known; and they."""
    wanted = set(wanted)
    return wanted.union(*nodes_for(graph, frozenset(known), wanted).values())


def needed_carries(needed: Sequence[bool], first: int, read: Callable[[Sequence[bool]], set[int]]) -> Flags:
    """What of the values carried, the inputs from `first` on, is needed if that is: what steps that give it read, and so on."""

    def before(carry: Flags) -> list[bool]:
        values = read(carry)
        return [first + k in values for k in range(len(carry))]

    return fixed_point(tuple(needed), before)


def varying(graph: Graph, inputs: Iterable[int]) -> bytearray:
    """Of each value of a closed graph whether it depends on one of these inputs."""
    varies = bytearray(len(graph.inputs))
    for k in inputs:
        varies[k] = 1
    for _, args, first, end in forwards(graph, graph.args):
        varies += bytes([any(varies[a] for a in args)]) * (end - first)
    return varies


def invariants(graph: Graph, varies: bytearray, wanted: Iterable[int]) -> list[int]:
    """The values, but for inputs and constants, that are the same in all steps, and are wanted or read by what varies for these."""
    constant, wanted = varying(graph, range(len(graph.inputs))), set(wanted)
    live = values_read(graph, wanted)
    nodes = [(args, range(first, end)) for _, args, first, end in forwards(graph, graph.args) if varies[first]]
    read = wanted.union(*[args for args, made_here in nodes if not live.isdisjoint(made_here)])
    return sorted(v for v in read if v >= len(graph.inputs) and constant[v] and not varies[v])


def over(primitives: PrimitiveSet, graph: ClosedGraph, inputs: Sequence[int], outputs: Sequence[int]) -> ClosedGraph:
    """The graph of some values of another, as outputs, of others, as inputs; those that are such keep their names."""
    declared = graph.graph.inputs
    names = [str(declared[v].key) if v < len(declared) else f"c{k}" for k, v in enumerate(inputs)]

    def emit(trace: Recorder, terms: list[Term]) -> list[Term]:
        return emitted(trace, graph.graph, dict(zip(inputs, terms, strict=True)), outputs)

    return made(primitives, [(name, graph.graph.type_of(v)) for name, v in zip(names, inputs, strict=True)], emit)


def both(primitives: PrimitiveSet, one: ClosedGraph, other: ClosedGraph) -> ClosedGraph:
    """One graph of the outputs of two, which take the same inputs."""

    def emit(trace: Recorder, terms: list[Term]) -> list[Term]:
        known = dict(enumerate(terms))
        return [t for graph in (one, other) for t in emitted(trace, graph.graph, known, output_values(graph))]

    return made(primitives, inputs_of(one), emit)


# cond and while without what nobody needs; two conds over the same as one.


def narrowed_cond(node: Narrowing) -> Sequence[Term | None] | None:
    """The cond of the needed results; the one branch there is, or the index says, in its place."""
    attrs, (index, *operands) = node.attrs, node.operands
    trace, literal = index.trace, node.literals[0]
    branches = [tidy(trace.primitives, b) for b in attrs.branches]
    wanted = [[v for v, n in zip(output_values(b), node.needed, strict=True) if n] for b in branches]
    chosen = 0 if len(branches) == 1 else None if literal is None else _clamped(literal_to_numbers(literal)[0], len(branches))
    # What is linear in a branch may stand beside what is not, of which a while carries both.
    linear = any(t.linear for t in operands)
    if chosen is not None and linear and trace.primitives.is_irreversible(branches[chosen].graph.cases.cases):
        chosen = None
    if chosen is not None:
        terms = emitted(trace, branches[chosen].graph, dict(enumerate(operands)), wanted[chosen])
    else:
        read = {v for b, some in zip(branches, wanted, strict=True) for v in values_read(b.graph, some)}
        kept = [k for k in range(len(operands)) if k in read]
        unchanged = all(a is b for a, b in zip(branches, attrs.branches, strict=True))
        if unchanged and len(kept) == len(operands) and all(node.needed):
            return None
        changed = tuple([over(trace.primitives, b, kept, some) for b, some in zip(branches, wanted, strict=True)])
        terms = list(trace.emit_all("cond", index, *[operands[k] for k in kept], branches=changed))
    results = iter(terms)
    return [next(results) if n else None for n in node.needed]


def _clamped(index: Any, n: int) -> int:
    return min(max(int(index), 0), n - 1)


def merged_conds(one: Any, other: Any, operands: Sequence[Term]) -> Sequence[Term] | None:
    """One cond of the results of two that choose by the same index among as many branches."""
    if len(one.branches) != len(other.branches):
        return None
    trace = operands[0].trace
    branches = tuple([both(trace.primitives, *pair) for pair in zip(one.branches, other.branches, strict=True)])
    return trace.emit_all("cond", *operands, branches=branches)


def narrowed_while(node: Narrowing) -> Sequence[Term | None] | None:
    """The while without carries on which no needed result nor the condition depends; those that stay the same are constants."""
    attrs, trace = node.attrs, node.operands[0].trace
    condition, body = (tidy(trace.primitives, g) for g in (attrs.condition, attrs.body))
    cond_consts, body_consts, init = attrs.split(node.operands)
    n, m, outputs = len(cond_consts), len(body_consts), output_values(body)
    tested = values_read(condition.graph, output_values(condition))
    due = [needed or n + k in tested for k, needed in enumerate(node.needed)]

    def read(carry: Sequence[bool]) -> set[int]:
        return values_read(body.graph, [v for v, c in zip(outputs, carry, strict=True) if c])

    carry = needed_carries(due, m, read)
    carried = [k for k, c in enumerate(carry) if c and outputs[k] != m + k]
    varies = varying(body.graph, [m + k for k in carried])
    wanted = [outputs[k] for k in carried]
    before = invariants(body.graph, varies, wanted)
    known = dict(enumerate(body_consts)) | {m + k: t for k, t in enumerate(init) if k not in carried}
    fixed = sorted(values_read(body.graph, wanted, before) & known.keys())
    tests = sorted(k for k in tested if k < len(condition.graph.inputs) and k - n not in carried)
    same = condition is attrs.condition and body is attrs.body and tests == [*range(n)] and fixed == [*range(m)] and not before
    if same and len(carried) == len(init):
        return None
    finals: dict[int, Term] = {k: t for k, t in enumerate(init) if k not in carried}
    if carried:
        of_test = dict(enumerate(cond_consts)) | {n + k: t for k, t in enumerate(init)}
        values = known | dict(zip(before, emitted(trace, body.graph, known, before), strict=True))
        operands = [*[of_test[k] for k in tests], *[values[v] for v in (*fixed, *before)], *[init[k] for k in carried]]
        condition = over(trace.primitives, condition, [*tests, *[n + k for k in carried]], output_values(condition))
        body = over(trace.primitives, body, [*fixed, *before, *[m + k for k in carried]], wanted)
        numbers = {"cond_consts": len(tests), "body_consts": len(fixed) + len(before)}
        results = trace.emit_all("while", *operands, **numbers, condition=condition, body=body)
        finals |= dict(zip(carried, results, strict=True))
    return [finals[k] if needed else None for k, needed in enumerate(node.needed)]


# scan without what nobody needs, and two scans over the same as one.


def narrowed(node: Narrowing) -> Sequence[Term | None] | None:
    """The scan of what is needed: what no needed result depends on goes, and what is the same in all steps is computed before."""
    attrs, trace = node.attrs, node.operands[0].trace
    n, n_carry = attrs.num_consts, attrs.num_carry
    body = tidy(trace.primitives, attrs.body)
    graph, outputs = body.graph, output_values(body)
    first_x, n_inputs = n + n_carry, len(graph.inputs)

    def read(carry: Sequence[bool]) -> set[int]:
        return values_read(graph, [v for v, w in zip(outputs, (*carry, *node.needed[n_carry:]), strict=True) if w])

    carry = needed_carries(node.needed[:n_carry], n, read)
    live = read(carry)
    carried = [k for k in range(n_carry) if carry[k] and outputs[k] != n + k]
    xs = [k for k in range(first_x, n_inputs) if k in live]
    varies = varying(graph, [*[n + k for k in carried], *xs])
    ys = [k for k in range(n_carry, len(outputs)) if node.needed[k]]
    stacked = [k for k in ys if varies[outputs[k]] and not first_x <= outputs[k] < n_inputs]
    wanted = [outputs[k] for k in (*carried, *stacked)]
    before = invariants(graph, varies, wanted)
    known = {k: t for k, t in enumerate(node.operands) if k < first_x and k - n not in carried}
    fixed = sorted(values_read(graph, wanted, before) & known.keys())
    if body is attrs.body and not before and [*fixed, *carried, *xs, *stacked] == _everything(attrs):
        return None
    terms = {k: t for k in range(n_carry) if (t := known.get(n + k)) is not None}
    if carried or stacked:
        inputs = [*fixed, *before, *[n + k for k in carried], *xs]
        values = known | dict(zip(before, emitted(trace, graph, known, before), strict=True)) | dict(enumerate(node.operands))
        numbers = {"length": attrs.length, "num_consts": len(fixed) + len(before), "num_carry": len(carried)}
        changed = over(trace.primitives, body, inputs, wanted)
        results = trace.emit_all("scan", *[values[v] for v in inputs], **numbers, reverse=attrs.reverse, body=changed)
        terms |= dict(zip([*carried, *stacked], results, strict=True))
    for k in ys:
        if k not in terms:  # slices of what is scanned, or the same in all steps
            v = outputs[k]
            terms[k] = node.operands[v] if varies[v] else repeated(emitted(trace, graph, known, [v])[0], attrs.length)
    return [terms[k] if needed else None for k, needed in enumerate(node.needed)]


def _everything(attrs: Any) -> list[int]:
    n, n_carry = attrs.num_consts, attrs.num_carry
    inputs, outputs = len(attrs.body.graph.inputs), len(attrs.body.graph.outputs)
    return [*range(n), *range(n_carry), *range(n + n_carry, inputs), *range(n_carry, outputs)]


def merged(one: Any, other: Any, operands: Sequence[Term]) -> Sequence[Term] | None:
    """One scan for two that carry the same: its slices are those of both."""
    n_carry, trace = one.num_carry, operands[0].trace
    if any(getattr(one, name) != getattr(other, name) for name in ("length", "reverse", "num_consts", "num_carry")):
        return None
    body = both(trace.primitives, one.body, other.body)
    values, n_one = output_values(body), len(one.body.graph.outputs)
    if values[:n_carry] != values[n_one : n_one + n_carry]:
        return None
    union = over(trace.primitives, body, range(len(operands)), [*values[:n_one], *values[n_one + n_carry :]])
    numbers = {"length": one.length, "num_consts": one.num_consts, "num_carry": n_carry, "reverse": one.reverse}
    results = trace.emit_all("scan", *operands, **numbers, body=union)
    return [*results[:n_one], *results[:n_carry], *results[n_one:]]
