"""recompute: a graph that holds less at once, since it computes some values a second time, right before they are needed.

The nodes of a derivative are *early* (the primal ones, and residuals) or *late* (linear ones, and all that depends on one). What
is computed early for a late reader takes memory all the way between. A policy (`checkpoints`) says which early nodes to drop; a
late reader of a dropped value gets a copy of it, placed right before that reader.

A copy must stay another value than its original: equal values are computed once, by materialize and by evaluation. So it computes
from an operand that has gone through the primitive set's barrier, together with what its reader waits for (Griewank and Walther,
"Evaluating Derivatives", ch. 12, on checkpoints; the barrier is that of jax.checkpoint). No value changes by a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tidu_cli.errors import Remedy, TransformError, did_you_mean
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import forwards
from tidu_cli.graph.graph import Document, Graph, column
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.contract import Segmented
from tidu_cli.rules.recording.trace import Trace
from tidu_cli.rules.terms import Term
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.batch import holds_graphs
from tidu_cli.transforms.checkpoints import Cheap, Named, Policy, Schedule, Segments, Sqrt
from tidu_cli.transforms.materialize import materialize, materialize_traced
from tidu_cli.transforms.stamp import Stamper
from tidu_cli.watching import watch

# Loops in segments: one that stores what another reads, step by step, stores the state before some steps only.
#
# The other computes what is missing anew, segment by segment. Values stay what they are, bit for bit.


Steps = Callable[[int], int]
"""From the number of steps of a loop to that of a segment."""


class _Pair(Frozen):
    """A loop, and one that reads what it stores: their nodes, and how they are done in segments."""

    first: int
    second: int
    segmented: Segmented


def in_segments(graph: Graph, primitives: PrimitiveSet, steps: Steps) -> Graph:
    """A self-contained graph with loops in segments of so many steps, where one stores what a linear one reads."""
    pairs = _pairs(graph, primitives, steps)
    if not pairs:
        return graph
    firsts, seconds = {p.first: p for p in pairs}, {p.second: p for p in pairs}
    cases = graph.cases
    builder = GraphBuilder(cases, graph.inputs)
    stamper = Stamper.alone(builder)
    new: list[int] = list(range(len(graph.inputs)))
    stored: dict[int, tuple[list[int], list[Term]]] = {}  # by the first node: the handles of its operands and states, and these

    def stamped(trace: Trace, results: Sequence[Term | None], handles: Sequence[int]) -> Sequence[int]:
        return stamper.stamp(trace.template(len(handles), results), handles)

    for node, (code, args, _, _) in enumerate(forwards(graph, graph.args)):
        reads, trace = [new[a] for a in args], Trace(primitives, cases)
        operands = trace.operands(cases[code])
        if node in firsts:
            results, states = firsts[node].segmented.first(operands)
            values = stamped(trace, [*results, *states], reads)
            new += values[: len(results)]
            stored[node] = [*reads, *values[len(results) :]], [*operands, *states]
        elif node in seconds:
            pair = seconds[node]
            handles, terms = stored[pair.first]
            more = [trace.source(t.value_type, linear=False) for t in terms]
            n = len(cases[graph.code[pair.first]].operands)
            new += stamped(trace, pair.segmented.second(operands, more[:n], more[n:]), [*reads, *handles])
        else:
            builder.keep_meta(graph, node)
            new += stamper.linear.append(code, reads)
    return builder.rebuilt(graph, new)


def _pairs(graph: Graph, primitives: PrimitiveSet, steps: Steps) -> list[_Pair]:
    """Loops of which a linear one reads what they store, each in one pair at most."""
    makes: dict[int, tuple[int, int]] = {}  # of values that loops make: their node, and which result they are
    readers: dict[int, list[int]] = {}
    nodes = list(forwards(graph, graph.args))
    for node, (code, args, first, end) in enumerate(nodes):
        if primitives[graph.cases[code].op].rules.segmented is not None and graph.cases[code].mask is None:
            makes.update((value, (node, value - first)) for value in range(first, end))
        for a in set(args) & makes.keys():
            readers.setdefault(a, []).append(node)
    outputs = {o.value for o in graph.outputs}
    pairs: dict[int, _Pair] = {}
    for node, (code, args, _, _) in enumerate(nodes):
        case = graph.cases[code]
        rule = primitives[case.op].rules.segmented
        if rule is None or case.mask is None:
            continue
        sizes: dict[int, int] = {}
        for a, t in zip(args, case.operands, strict=True):
            if a in makes and graph.cases[nodes[makes[a][0]][0]].op == case.op:
                sizes[makes[a][0]] = sizes.get(makes[a][0], 0) + (t.nbytes if t else 0)
        for one in sorted(sizes.keys() - pairs.keys(), key=lambda one: -sizes[one])[:1]:
            before = graph.cases[nodes[one][0]]
            links = [makes[a][1] if a in makes and makes[a][0] == one else None for a in args]
            results = range(nodes[one][2], nodes[one][3])
            kept = [v - results.start for v in results if v in outputs or readers.get(v, [node]) != [node]]
            segmented = rule(before.attrs, case.attrs, links, kept, steps)
            if segmented is not None:
                pairs[one] = _Pair(one, node, segmented)
    return list(pairs.values())


def recompute(document: Document, policy: Policy, *, outputs: Sequence[Key] | None = None, needed_inputs: bool = False) -> Document:
    """One self-contained graph, as `materialize` gives it, in which late readers read copies of what the policy drops.

    Inputs, outputs and every value are those of the materialized graph. A node has one copy at most (where the policy says that it
    is portable, one in each segment), so that the time taken and the operations stay linear. The graph is the materialized one
    itself where nothing is dropped. Raises what `materialize` raises, and UnknownNameError for what the policy names in vain.
    """
    primitives = vocabulary(document.cases)
    has_loops = isinstance(policy, Sqrt | Segments) and any(map(holds_graphs, document.graphs))
    if isinstance(policy, Sqrt | Segments) and has_loops:
        document = materialize(document, outputs=outputs, needed_inputs=needed_inputs)
        looped = in_segments(document.head, primitives, policy.steps)
        document, outputs = replace(document, graphs=(looped,)), None
    document, trace = materialize_traced(document, outputs=outputs, needed_inputs=needed_inputs)
    schedule = Schedule(document.head, primitives)
    policy.drop(schedule, trace)
    if 1 not in schedule.dropped:
        return materialize(document) if has_loops else document
    # Readers that wait for the same value may have had equal copies made.
    return materialize(replace(document, graphs=(_Rebuilding(schedule, primitives).run(),)))


def _computed_here(schedule: Schedule) -> bytearray:
    """Of each node, whether it is computed where it stands, and not only copied for late readers.

    Backwards from the outputs: a copy needs its operands where the policy keeps them, and copies of them where not.
    """
    graph, dropped, late = schedule.graph, schedule.dropped, schedule.late
    here, copied = bytearray(graph.n_nodes + 1), bytearray(graph.n_nodes + 1)  # the last is INPUT's, and of no account
    for output in graph.outputs:
        if output.value is not None:
            here[schedule.node_of[output.value]] = 1
    for node in range(graph.n_nodes - 1, -1, -1):
        for a in graph.operands(node):
            made_by = schedule.node_of[a]
            if here[node] and not late[node]:
                here[made_by] = 1
            if copied[node] or (here[node] and late[node]):
                (copied if dropped[made_by] else here)[made_by] = 1
    return here


class _Rebuilding:
    """The graph anew, node by node, with copies before their readers."""

    def __init__(self, schedule: Schedule, primitives: PrimitiveSet) -> None:
        self.schedule = schedule
        self.graph: Graph = schedule.graph
        self.primitives = primitives
        self.here = _computed_here(schedule)
        self.builder = GraphBuilder(self.graph.cases, self.graph.inputs)
        self.new = column(range(self.graph.n_values))
        self.segment = 0
        self.copies: dict[tuple[int, int], int] = {}
        """By segment and old value: its copy."""
        self.delayed: dict[int, int] = {}
        """By old operand: what the barrier before the present reader made of it."""

    def run(self) -> Graph:
        """The new graph."""
        graph, late = self.graph, self.schedule.late
        for node in watch("recomputing", graph.n_nodes)(range(graph.n_nodes)):
            if not self.here[node]:
                continue
            operands = graph.operands(node)
            arguments = self._late_arguments(node, operands) if late[node] else [self.new[a] for a in operands]
            self._append(node, arguments)
        return self.builder.rebuilt(graph, self.new)

    def _append(self, node: int, arguments: Sequence[int]) -> None:
        self.builder.keep_meta(self.graph, node)
        first = self.builder.append(self.graph.code[node], arguments)
        for k, value in enumerate(self.schedule.results(node)):
            self.new[value] = first + k

    def _late_arguments(self, reader: int, operands: Sequence[int]) -> list[int]:
        schedule = self.schedule
        self.delayed.clear()
        arguments = []
        for a in operands:
            made_by = schedule.node_of[a]
            if not schedule.dropped[made_by]:
                arguments.append(self.new[a])
                continue
            if not schedule.portable[made_by]:
                self.segment = schedule.segment[made_by]
            if (self.segment, a) not in self.copies:
                self._copy(made_by, self._awaited(reader, operands))
            arguments.append(self.copies[self.segment, a])
        return arguments

    def _awaited(self, reader: int, operands: Sequence[int]) -> int | None:
        """What the reader waits for: an active operand, or else another that is late. None where all that it reads is early."""
        mask = self.graph.case(reader).mask or (False,) * len(operands)
        active = (a for a, is_active in zip(operands, mask, strict=True) if is_active and not self._is_dropped(a))
        late = (a for a in operands if self.schedule.late[self.schedule.node_of[a]])
        return next(active, next(late, None))

    def _is_dropped(self, value: int) -> bool:
        return self.schedule.dropped[self.schedule.node_of[value]] == 1

    def _copy(self, target: int, awaited: int | None) -> None:
        """Copies of the target and of all dropped nodes that it needs and that this segment has no copies of."""
        for node in self._uncopied(target):
            operands = self.graph.operands(node)
            arguments = [self.copies[self.segment, a] if self._is_dropped(a) else self.new[a] for a in operands]
            if (self.here[node] or self.schedule.portable[node]) and not any(map(self._is_dropped, operands)):
                least = min(range(len(operands)), key=lambda k: self.graph.type_of(operands[k]).nbytes)
                arguments[least] = self._delayed(operands[least], awaited)
            if not self.here[node]:
                self.builder.keep_meta(self.graph, node)
            first = self.builder.append(self.graph.code[node], arguments)
            for k, value in enumerate(self.schedule.results(node)):
                self.copies[self.segment, value] = first + k

    def _uncopied(self, target: int) -> Iterator[int]:
        """Those nodes, each after the ones that it reads. Without recursion: chains are long."""
        pending, met = [target], set()
        while pending:
            node = pending[-1]
            if (self.segment, self.schedule.results(node)[0]) in self.copies:
                pending.pop()
            elif node in met:
                pending.pop()
                yield node
            else:
                met.add(node)
                pending += [self.schedule.node_of[a] for a in self.graph.operands(node) if self._is_dropped(a)]

    def _delayed(self, value: int, awaited: int | None) -> int:
        """The value after the barrier: equal, but another one, and not there before what the reader waits for."""
        if value not in self.delayed:
            operands = [value] if awaited is None else [value, awaited]
            barrier = self.primitives.barrier
            case = self.primitives.case(
                barrier, self.primitives.parse_attrs(barrier, {}), None, [self.graph.type_of(a) for a in operands]
            )
            self.delayed[value] = self.builder.append(self.graph.cases.intern(case), [self.new[a] for a in operands])
        return self.delayed[value]


# Policies of what to compute a second time, as users write them: `sqrt`, `100`, `cheap=0.5`, `value=KEY`.


_PLAIN = {policy.__name__.lower(): policy for policy in (Sqrt, Cheap)}
_WAYS = "sqrt, N, cheap, cheap=OPERATIONS, value=KEY, graph=NAME"


def parse_policy(text: str) -> Policy:
    """The policy of a text. Raises TransformError, and KeyTextError for a malformed key."""
    way, given, argument = text.partition("=")
    if text in _PLAIN:
        return _PLAIN[text]()
    if text.isascii() and text.isdecimal() and int(text):
        return Segments(int(text))
    if way == "cheap" and given:
        return Cheap(_per_byte(argument))
    if way == "value" and argument:
        return Named(values=(parse_key(argument),))
    if way == "graph" and argument:
        return Named(graphs=(argument,))
    raise TransformError(f"'{text}' is none of {_WAYS}{did_you_mean(way, [*_PLAIN, 'value', 'graph'])}")


def _per_byte(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise TransformError(f"'cheap={text}' gives no number of operations for each byte; write cheap=0.5, say")
    return number


def joint_policy(policies: Iterable[str | Policy]) -> Policy | None:
    """The one policy that is given, or all that name values and graphs as one; None for none. Raises TransformError."""
    given = [parse_policy(p) if isinstance(p, str) else p for p in policies]
    named = [p for p in given if isinstance(p, Named)]
    if len(given) > max(len(named), 1):
        taken = " takes sqrt alone, cheap alone, or any number of value=KEY and graph=NAME"
        raise TransformError(Remedy("recompute", python="recompute"), taken)
    if named:
        return Named(sum((p.values for p in named), ()), sum((p.graphs for p in named), ()))
    return next(iter(given), None)
