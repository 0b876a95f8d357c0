"""Recording what a rule emits.

A rule computes with `Term`s; every operation on them is recorded in a `Trace`. A node that reads a tangent (or cotangent) is
linear, with the mask that says which operands do; any other is residual. The recording is a `Template`: stamped out once per
node of the case, with no further call of the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, cast

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import backwards, forwards
from tidu_cli.graph.graph import Case, CaseAttrs, CaseTable, Document, Graph, Input, Output, column
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import filled
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import FLOATS, TensorType, Type
from tidu_cli.rules.terms import Number, Recorder, Term
from tidu_cli.rules.vocabulary import PrimitiveSet


class Emitted(Frozen):
    """One recorded node: case number, the environment slots it reads, and whether it is linear."""

    code: int
    reads: tuple[int, ...]
    linear: bool
    n_results: int


class Template(Frozen, eq=False):
    """What a rule emits for one case. Its environment holds the sources, then the results of all nodes in order.

    `closed` nodes come first: they read no source (constants), so one stamping serves all nodes of the case.
    `results` are the slots of what the rule returned, None for zeros. `made` are the records that linear nodes put together: the
    slot of each, and those of its fields by name. `takes` says that the one result is this field of the record in a slot.
    """

    n_sources: int
    closed: tuple[Emitted, ...]
    nodes: tuple[Emitted, ...]
    results: tuple[int | None, ...]
    made: tuple[tuple[int, Mapping[str, int]], ...] = ()
    takes: tuple[int, str] | None = None

    def renumbered(self, number: Sequence[int]) -> Template:
        """The same over another table of cases, where case k has the number `number[k]`."""
        closed, nodes = (
            tuple([Emitted(number[n.code], n.reads, n.linear, n.n_results) for n in some]) for some in (self.closed, self.nodes)
        )
        return replace(self, closed=closed, nodes=nodes)


class Trace:
    """A recording in progress, over the table of cases that the emitted nodes will go to."""

    def __init__(self, primitives: PrimitiveSet, cases: CaseTable) -> None:
        self.primitives = primitives
        self.cases = cases
        self.nodes: list[Emitted] = []
        self.n_slots = 0
        self._constants: dict[tuple[TensorType, str], Term] = {}

    def source(self, type_: Type | None, *, linear: bool) -> Term:
        """A value that exists before the rule runs."""
        term = Term(self, self.n_slots, type_, linear)
        self.n_slots += 1
        return term

    def operands(self, case: Case) -> list[Term]:
        """Sources for the operands of a case, linear where they are active."""
        mask = case.mask or (False,) * len(case.operands)
        return [self.source(t, linear=linear) for t, linear in zip(case.operands, mask, strict=True)]

    def emit(self, op: str, /, *operands: Term | Number, **attrs: object) -> Term:
        """Record a node and give its first result. Numbers become constants of the type of the last operand that is a Term."""
        return self.emit_all(op, *operands, **attrs)[0]

    def emit_all(self, op: str, /, *operands: Term | Number, **attrs: object) -> tuple[Term, ...]:
        """Likewise, and give all results."""
        given = [t for t in operands if isinstance(t, Term)]
        terms = [t if isinstance(t, Term) else self.full(t, given[-1].type) for t in operands]
        return self.apply(op, self.primitives.parse_attrs(op, attrs), terms)

    def apply(self, op: str, attrs: CaseAttrs, operands: Sequence[Term]) -> tuple[Term, ...]:
        """Likewise, for attrs that are parsed. Raises MissingRuleError for an operand of another recording."""
        if any(t.trace is not self for t in operands):
            raise MissingRuleError("reads a value that is not there")
        linear = any(t.linear for t in operands)
        strong = linear and self.primitives.weak and self.primitives[op].rules.strong
        if strong:
            op, operands = strong(operands) or (op, operands)
        mask = tuple(t.linear for t in operands) if linear else None
        case = self.primitives.case(op, attrs, mask, [t.value_type for t in operands])
        return self.append(self.cases.intern(case), operands)

    def append(self, code: int, operands: Sequence[Term]) -> tuple[Term, ...]:
        """Likewise, for a case of the table, by its number."""
        case = self.cases[code]
        linear, first = case.mask is not None, self.n_slots
        self.nodes.append(Emitted(code, tuple([t.slot for t in operands]), linear, len(case.results)))
        self.n_slots += len(case.results)
        return tuple([Term(self, first + k, type_, linear) for k, type_ in enumerate(case.results)])

    def full(self, value: Number, type_: TensorType) -> Term:
        """A constant array: a scalar constant, broadcast if the type has axes. Recorded once per rule and value."""
        known = self._constants.get((type_, repr(value)))
        if known is None:
            known = self._number(value, type_.dtype)
            if type_.shape:
                known = self.emit("broadcast_in_dim", known, shape=type_.shape, broadcast_dimensions=())
            self._constants[type_, repr(value)] = known
        return known

    def _number(self, value: Number, dtype: str) -> Term:
        if not isinstance(value, OpenSize):
            return self.emit("constant", value=filled(TensorType(dtype), value))
        number: Term = emit_size(self.emit, value, dtype if dtype in FLOATS else "i64")
        return number if dtype == number.type.dtype else self.emit("convert_element_type", number, new_dtype=dtype)

    def template(self, n_sources: int, results: Sequence[Term | None]) -> Template:
        """The finished recording without what no result needs, its closed nodes moved to the front."""
        live, first, slot_after = self.live(results), n_sources, {s: s for s in range(n_sources)}
        closed_slots, closed, others = set[int](), list[tuple[int, Emitted]](), list[tuple[int, Emitted]]()
        for node in self.nodes:
            slots = range(first, first + node.n_results)
            first = slots.stop
            if live.isdisjoint(slots):
                continue
            if node.linear or not closed_slots.issuperset(node.reads):
                others.append((slots.start, node))
            else:
                closed.append((slots.start, node))
                closed_slots.update(slots)
        for old, node in closed + others:
            for slot in range(old, old + node.n_results):
                slot_after[slot] = len(slot_after)

        def renumbered(nodes: list[tuple[int, Emitted]]) -> tuple[Emitted, ...]:
            return tuple(Emitted(n.code, tuple(slot_after[r] for r in n.reads), n.linear, n.n_results) for _, n in nodes)

        results_after = tuple(None if r is None else slot_after[r.slot] for r in results)
        nodes = renumbered(others)
        made = tuple(
            (slot_after[old], fields) for (old, _), node in zip(others, nodes, strict=True) if (fields := self._fields(node))
        )
        return Template(n_sources, renumbered(closed), nodes, results_after, made)

    def _fields(self, node: Emitted) -> dict[str, int]:
        """Of a linear node that puts a record together, what it reads by the names of the fields."""
        case = self.cases[node.code]
        makes = self.primitives[case.op].domain.makes if node.linear else None
        return dict(zip(makes(case.attrs), node.reads, strict=True)) if makes else {}

    def live(self, results: Sequence[Term | None]) -> set[int]:
        """The slots that these results need: rules that take a whole graph (of custom operations) record more."""
        live = {r.slot for r in results if r is not None}
        first = self.n_slots
        for node in reversed(self.nodes):
            first -= node.n_results
            if not live.isdisjoint(range(first, first + node.n_results)):
                live.update(node.reads)
        return live


# Graphs within rules: spliced into the recording of a rule, made of one, and evaluated.
#
# Operations that are defined by graphs are derived by the transforms. What these give is a document, whose nodes a rule emits as
# its own: `spliced` goes over them. The way back, from what a rule emits to a graph, is `recorded`.


def emit_size(emit: Callable[..., Any], size: Any, dtype: str) -> Any:
    """The number that a size is: one node, or, where no file has it as one, sums, differences and products of such."""
    halves = size.halves() if isinstance(size, OpenSize) else None
    if halves is None:
        return emit("size", expression=size, dtype=dtype)
    if dtype in FLOATS:  # which the number is rounded to once
        return emit("convert_element_type", emit_size(emit, size, "i64"), new_dtype=dtype)
    op, a, b = halves
    return emit(op, emit_size(emit, a, dtype), emit_size(emit, b, dtype))


def spliced(trace: Recorder, document: Document, sources: Mapping[Key, Term]) -> list[Term | None]:
    """Emit the nodes of a document's graphs for these sources by input key. Gives the head's outputs, None for zeros.

    Nodes are linear where they depend on a source that is. An input without a source is one whose value is not there: what depends
    on it is left out. Raises MissingRuleError where an output does.
    """
    cases = document.cases
    numbers: dict[tuple[int, ...], int] = {}
    values: list[list[Term | None]] = []
    for graph in document.graphs:
        local: list[Term | None] = [sources.get(i.key) for i in graph.inputs]
        outside = [values[g][v] for g, v in graph.external]
        for code, args, _, _ in forwards(graph, graph.args):
            operands = [local[a] if a >= 0 else outside[~a] for a in args]
            if None in operands:
                local += [None] * cases.n_results[code]
                continue
            terms = cast(list[Term], operands)
            key = (code, *[t.linear for t in terms])
            number = numbers.get(key)
            if number is None:
                mask = tuple([t.linear for t in terms])
                number = numbers[key] = trace.cases.intern(replace(cases[code], mask=mask if any(mask) else None))
            local += trace.append(number, terms)
        values.append(local)
    results: list[Term | None] = []
    for output in document.head.outputs:
        value = output.value
        results.append(None if value is None else local[value] if value >= 0 else outside[~value])
        if value is not None and results[-1] is None:
            raise MissingRuleError(f"its '{output.key}' depends on a value that is not there")
    return results


def stamped(trace: Recorder, cases: CaseTable, template: Template, sources: Sequence[Term | None]) -> list[Term | None]:
    """Emit the nodes of a template, none of them as linear, for these sources; None where it reads none. Gives its results."""
    values = [*sources]
    for node in (*template.closed, *template.nodes):
        number = trace.cases.intern(replace(cases[node.code], mask=None))
        values += trace.append(number, cast(list[Term], [values[slot] for slot in node.reads]))
    return [None if slot is None else values[slot] for slot in template.results]


def emitted(trace: Recorder, graph: Graph, known: Mapping[int, Term], wanted: Sequence[int]) -> list[Term]:
    """Emit those nodes of a closed graph that these values of it need, where some are known. Gives the terms of the values."""
    nodes = nodes_for(graph, known, wanted)
    terms = dict(known)
    for node, (code, args, first, end) in enumerate(forwards(graph, graph.args)):
        if node in nodes:
            case = graph.cases[code]
            results = trace.apply(case.op, case.attrs, [terms[a] for a in args])
            terms.update((v, t) for v, t in zip(range(first, end), results, strict=True) if v not in known)
    return [terms[v] for v in wanted]


def nodes_for(graph: Graph, known: Container[int], wanted: Iterable[int]) -> dict[int, Sequence[int]]:
    """The nodes of a closed graph that these values need where some are known, with what they read."""
    needed = {v for v in wanted if v not in known}
    nodes: dict[int, Sequence[int]] = {}
    node = graph.n_nodes
    for _, args, first, end in backwards(graph, graph.args):
        node -= 1
        if not needed.isdisjoint(range(first, end)):
            nodes[node] = args
            needed.update(a for a in args if a not in known)
    return nodes


def recorded(trace: Trace, name: str, inputs: Sequence[Input], outputs: Sequence[Output]) -> Graph:
    """A recording whose sources are these inputs, as a graph: its values have the numbers of their slots."""
    reads = column(slot for node in trace.nodes for slot in node.reads)
    return Graph(name, tuple(inputs), tuple(outputs), trace.cases, column(node.code for node in trace.nodes), reads)


def as_output(name: str, term: Term) -> Output:
    """A value of a recording as an output of its graph."""
    return Output(Key(name), term.slot, term.value_type)


def expanded(primitives: PrimitiveSet, case: Case) -> Graph:
    """What a case stands for, one level deep: of a custom operation, or of one that has a definition."""
    rule = primitives[case.op].in_terms_of_others
    assert rule is not None
    trace = Trace(primitives, CaseTable())
    inputs = [Input(Key(f"x{k}"), cast(Type, t)) for k, t in enumerate(case.operands)]
    results = rule(case.attrs, [trace.source(i.type, linear=False) for i in inputs])
    return recorded(trace, case.op, inputs, [as_output(f"y{k}", t) for k, t in enumerate(results)])
