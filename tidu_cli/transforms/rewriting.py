"""Simplifying: nodes replaced by simpler ones that give the same bits, and constants computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache

from tidu_cli.errors import MissingRuleError, TypeRuleError, UndecidedSizeError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import ClosedGraph, backwards, closed_graphs, forwards
from tidu_cli.graph.graph import Case, CaseTable, Document, Graph
from tidu_cli.graph.large import no_collection
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.identities.replacement import (
    ROW_MAJOR,
    TELLING,
    Layout,
    folded,
    identities,
    known_result,
    layout,
    looked_at,
    may_change,
    passes_on,
)
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.linearity import is_vector, makes_zeros, zeros_due
from tidu_cli.rules.recording.trace import Template, Trace
from tidu_cli.rules.terms import Identity, Known, Operand, Site, Term
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.materialize import materialize
from tidu_cli.watching import listening, watch

# Sites: nodes of one kind, and what stands for all of them. Rules are asked once for each kind.


class Kind(Frozen):
    """What a rule may ask of a node: its case; of values that it, or the maker of an operand, reads, what is known and a number.

    `makers` are, of each operand, the case that made it, which result it is, and whether nobody else reads it; None where that is
    not looked at. Values are those of the operands, and then what their makers read, in order: those of one number are the same.
    """

    case: Case
    makers: tuple[tuple[Case, int, bool] | None, ...]
    numbers: tuple[int, ...]
    known: tuple[Known | None, ...]


class Replacement(Frozen):
    """What stands for nodes of a kind: a template over the values of the kind; and whether it lies in memory as they did."""

    template: Template
    in_place: bool


def replacement(primitives: PrimitiveSet, cases: CaseTable, kind: Kind, assumptions: frozenset[str]) -> Replacement | None:
    """What stands for nodes of this kind: the first identity of the table that has something, or a constant; None if none has."""
    constant = folded(primitives, kind.case, kind.known[: len(kind.case.operands)])
    if constant is not None:
        trace = Trace(primitives, cases)
        for type_ in _types(kind):
            trace.source(type_, linear=False)
        return Replacement(trace.template(trace.n_slots, [_full(trace, primitives, constant)]), in_place=False)
    for identity in identities(assumptions).get(kind.case.op, ()):
        template = _recorded(primitives, cases, kind, identity)
        if template is not None:
            return Replacement(template, identity.in_place)
    return None


def _full(trace: Trace, primitives: PrimitiveSet, literal: Literal) -> Term:
    """A constant array: of equal elements, one that is repeated."""
    type_ = literal.type
    if type_.rank and literal.data == literal.data[: type_.nbytes // max(type_.size, 1)] * type_.size:
        repeated = trace.full(0, type_)  # as the recording repeats a number
        case = trace.cases[trace.nodes[-1].code]
        element = Literal(TensorType(type_.dtype), literal.data[: type_.nbytes // type_.size])
        return trace.apply(case.op, case.attrs, [_constant(trace, primitives, element)])[0] if case.operands else repeated
    return _constant(trace, primitives, literal)


def _constant(trace: Trace, primitives: PrimitiveSet, literal: Literal) -> Term:
    return trace.emit(primitives.constant, value=literal)


def _types(kind: Kind) -> list[Type | None]:
    makers = [maker[0] for maker in kind.makers if maker is not None]
    return [type_ for case in (kind.case, *makers) for type_ in case.operands]


def _recorded(primitives: PrimitiveSet, cases: CaseTable, kind: Kind, identity: Identity) -> Template | None:
    trace = Trace(primitives, cases)
    site = _site(trace, kind)
    n_sources = trace.n_slots
    try:
        rewritten = identity.rewrite(site)
    except (MissingRuleError, UndecidedSizeError):  # of records, say, or where it depends on what an open size is
        return None
    if rewritten is None:
        return None
    results: Sequence[Term] = [rewritten] if isinstance(rewritten, Term) else rewritten
    if [t.value_type for t in results] != list(kind.case.results):
        return None
    template = trace.template(n_sources, results)
    return template if _is_linear(primitives, cases, kind, template) else None


def _is_linear(primitives: PrimitiveSet, cases: CaseTable, kind: Kind, template: Template) -> bool:
    """Whether linear nodes of a template are linear, provided that zeros are seen to be such."""
    zeros = {slot for slot, k in enumerate(kind.known) if k is not None and k.element is not None and not any(k.element.data)}
    first = template.n_sources
    for node in (*template.closed, *template.nodes):
        case = cases[node.code]
        if node.linear:
            try:
                due = zeros_due(primitives, case)
            except TypeRuleError:
                return False
            if not zeros.issuperset(node.reads[k] for k in due) or not all(map(is_vector, case.results)):
                return False
        if zeros.issuperset(node.reads) and makes_zeros(primitives, case):
            zeros.update(range(first, first + node.n_results))
        first += node.n_results
    return True


def _site(trace: Trace, kind: Kind) -> Site:
    case, rest = kind.case, len(kind.case.operands)
    mask = case.mask or (False,) * rest
    operands = []
    for k, (term, maker) in enumerate(zip(trace.operands(case), kind.makers, strict=True)):
        if maker is None:
            operands.append(Operand(term, kind.numbers[k], kind.known[k]))
            continue
        made_by, slot, alone = maker
        # A tangent that a primary node made, of a constant say, counts as one from its operands on.
        flags = (made_by.mask or (True,) * len(made_by.operands)) if mask[k] else (False,) * len(made_by.operands)
        inner = []
        for j, (t, a) in enumerate(zip(made_by.operands, flags, strict=True)):
            inner.append(Operand(trace.source(t, linear=a), kind.numbers[rest + j], kind.known[rest + j]))
        rest += len(inner)
        operands.append(Operand(term, kind.numbers[k], kind.known[k], made_by.op, made_by.attrs, slot, alone, tuple(inner)))
    return Site(case.op, case.attrs, tuple(operands), case.results)


# Simplifying: nodes give way to what equals them, by the primitives' table of identities.
#
# One walk forwards, in which each node is looked at with what its operands, simplified before, are made of; and so is what stands
# for it. A kind of node is decided upon once. Nodes within loops and branches are simplified by themselves.


Numbers = tuple[int, ...]

DEEP = 32
"""Maximum depth of nested rewrites in one pass."""
WIDE = 64
"""Of the makers of a node's operands so many operands are looked at, in all."""
ROUNDS = 64
"""So many walks are made at most: the second finds what the merging of equal values left, and mostly nothing."""


def simplify(document: Document, assumptions: Collection[str] = ()) -> Document:
    """A materialized document whose nodes are simplified by identities that hold bit for bit, provided what is assumed.

    Inputs, outputs and their types stay. What is simplified so is not changed by doing it again.
    """
    return _simplified(document, frozenset(assumptions), ROW_MAJOR, outputs_tell=False)[0]


def _simplified(
    document: Document, granted: frozenset[str], inputs: Layout, *, outputs_tell: bool
) -> tuple[Document, Sequence[Layout]]:
    """Likewise, and how the outputs lie in memory if all inputs lie as is said. `outputs_tell`: their readers may sum up."""
    for _ in range(ROUNDS):
        run = _Rewriting(document.head, vocabulary(document.cases), granted, inputs)
        with no_collection():
            graph, layouts = run.run(outputs_tell)
        if graph is document.head:
            break
        with listening(None):
            document = materialize(replace(document, graphs=(graph,)))
    return document, layouts


class _Rewriting:
    """A graph anew. Values are known by their numbers in it."""

    def __init__(self, graph: Graph, primitives: PrimitiveSet, assumptions: frozenset[str], inputs: Layout) -> None:
        self.graph, self.primitives, self.assumptions = graph, primitives, assumptions
        self.cases = graph.cases
        self.builder = GraphBuilder(graph.cases, graph.inputs)
        self.maker = [-1] * len(graph.inputs)
        self.known = [0] * len(graph.inputs)
        self.layout = [inputs] * len(graph.inputs)
        self.op = [""] * len(graph.inputs)
        self.uses = [0] * len(graph.inputs)
        """How often values are read, as far as is known yet: by nodes and outputs of the graph that is rewritten."""
        self.firsts: list[int] = []
        self.reads: list[Numbers] = []
        self.first_of: dict[Numbers, int] = {}
        """By case and arguments: the first result of a node."""
        self.replaced: dict[tuple[Numbers, bool], Numbers] = {}
        """By the same, and whether its readers may sum up: what stands for its results."""
        self.decided: dict[Numbers, Replacement | None] = {}
        self.facts: list[Known | None] = [None]
        """What is known of values, by the numbers in `known`."""
        self._number: dict[Known | None, int] = {None: 0}
        self.changed = False
        self.has_rules = cache(lambda code: may_change(self.cases[code].op, assumptions))
        self.looked_at = cache(lambda code: looked_at(self.cases[code].op))
        self.tells = cache(lambda code: self.cases[code].op in TELLING)
        self.layout_of = cache(lambda code, operands: layout(self.cases[code], operands))
        self.known_of = cache(self._known_of)
        self.body_of = cache(self._body_of)
        self.holds_graphs = cache(lambda code: bool(closed_graphs(self.cases[code].attrs)))

    def run(self, outputs_tell: bool) -> tuple[Graph, Sequence[Layout]]:
        """The graph with what stands for its nodes, itself where nothing does; and how its outputs lie in memory."""
        graph = self.graph
        tell, uses = _told(graph, outputs_tell), Counter(graph.args)
        uses.update(o.value for o in graph.outputs if o.value is not None)
        new = [*range(len(graph.inputs))]
        nodes = forwards(graph, graph.args)
        for node, (code, args, first, end) in enumerate(watch("simplifying", graph.n_nodes)(nodes)):
            reads = tuple([new[a] for a in args])
            before = len(self.reads)
            results = self.append(self._with_bodies(code, reads), reads, any(tell[first:end]))
            for old, value in zip(range(first, end), results, strict=True):
                self.uses[value] += uses[old]
            new += results
            if node in graph.node_meta and len(self.reads) > before and self.firsts[-1] in new[first:end]:
                self.builder.node_meta[len(self.reads) - 1] = graph.node_meta[node]
        layouts = [ROW_MAJOR if o.value is None else self.layout[new[o.value]] for o in graph.outputs]
        if not self.changed:
            return graph, layouts
        return self.builder.rebuilt(graph, new), layouts

    def append(self, code: int, args: Numbers, tell: bool, depth: int = 0) -> Sequence[int]:
        """The results of a node of a case that reads these values: of one, or of what stands for it."""
        node = (code, *args)
        first, n = self.first_of.get(node), self.cases.n_results[code]
        if first is not None:
            return range(first, first + n)
        if depth < DEEP and len(args) <= WIDE and self.has_rules(code):
            stand_in = self.replaced.get((node, tell)) or self._stand_in(code, args, tell, depth)
            if stand_in is not None:
                self.replaced[node, tell] = stand_in
                self.changed = True
                return stand_in
        self.first_of[node] = first = self.builder.append(code, args)
        self.maker += [len(self.reads)] * n
        self.op += [self.cases[code].op] * n
        self.uses += [0] * n
        self.firsts.append(first)
        self.reads.append(args)
        known = self.known_of(code, tuple([self.known[a] for a in args])) if self.tells(code) else 0
        self.known += [known] * n
        self.layout += [self._layout(code, args)] * n
        return range(first, first + n)

    def _layout(self, code: int, args: Numbers) -> Layout:
        return self.layout_of(code, tuple([self.layout[a] for a in args]))

    def _stand_in(self, code: int, args: Numbers, tell: bool, depth: int) -> Numbers | None:
        """What stands for the results of a node; None if nothing does, or if readers could tell by how it lies in memory."""
        look, known, op = self.looked_at(code), self.known, self.op
        makers = [self.maker[a] if op[a] in look and len(self.reads[self.maker[a]]) <= WIDE else -1 for a in args]
        if any(known[a] for a in args) or max(makers, default=-1) >= 0 or len({*args}) < len(args):
            kind, sources = self._kind(code, args, makers)
        else:
            kind, sources = (code,), args
        if kind not in self.decided:
            self.decided[kind] = self._decision(code, args, makers, sources)
        decision = self.decided[kind]
        if decision is None:
            return None
        results = self._stamped(decision, sources, tell, depth + 1)
        if tell and not decision.in_place:
            due = self._layout(code, args)
            if not due.dense or any(self.layout[v] != due for v in results):
                return None
        return results

    def _kind(self, code: int, args: Numbers, makers: Sequence[int]) -> tuple[Numbers, Sequence[int]]:
        """What distinguishes a node to identities, as numbers; and the values that it and the makers of its operands read."""
        key, sources = [code], [*args]
        for a, made_by in zip(args, makers, strict=True):
            if made_by < 0:
                key.append(-1)
            else:
                key += self.builder.code[made_by], a - self.firsts[made_by], self.uses[a] <= 1
                sources += self.reads[made_by]
        number: dict[int, int] = {}
        key += [self.known[v] for v in sources]
        key += [number.setdefault(v, len(number)) for v in sources]
        return tuple(key), sources

    def _decision(self, code: int, args: Numbers, makers: Sequence[int], sources: Sequence[int]) -> Replacement | None:
        cases, number = self.cases, dict[int, int]()
        made_by = [
            None if node < 0 else (cases[self.builder.code[node]], a - self.firsts[node], self.uses[a] <= 1)
            for a, node in zip(args, makers, strict=True)
        ]
        numbers = [number.setdefault(v, len(number)) for v in sources]
        known = [self.facts[self.known[v]] for v in sources]
        kind = Kind(cases[code], tuple(made_by), tuple(numbers), tuple(known))
        return replacement(self.primitives, cases, kind, self.assumptions)

    def _stamped(self, decision: Replacement, sources: Sequence[int], tell: bool, depth: int) -> Numbers:
        """The results of a template, each node of which may be stood for in turn. Readers of all but the last may sum up."""
        template, values = decision.template, [*sources]
        nodes = [*template.closed, *template.nodes]
        for k, node in enumerate(nodes):
            last = k == len(nodes) - 1
            values += self.append(node.code, tuple([values[slot] for slot in node.reads]), tell or not last, depth)
        return tuple([values[slot] for slot in template.results if slot is not None])

    def _known_of(self, code: int, operands: Numbers) -> int:
        known = known_result(self.cases[code], [self.facts[k] for k in operands])
        if known not in self._number:
            self._number[known] = len(self.facts)
            self.facts.append(known)
        return self._number[known]

    def _with_bodies(self, code: int, args: Numbers) -> int:
        """The case with the graphs in it simplified."""
        if not self.holds_graphs(code):
            return code
        simplified = self.body_of(code, all(self.layout[a] == ROW_MAJOR for a in args))
        self.changed |= simplified != code
        return simplified

    def _body_of(self, code: int, row_major: bool) -> int:
        case = self.cases[code]
        attrs = case.attrs.with_graphs(lambda graph: self._closed(graph, row_major))  # type: ignore[attr-defined]
        if attrs == case.attrs:
            return code
        simplified = replace(case, attrs=attrs)
        return self.cases.intern(simplified) if case.mask is None or self._is_as_linear(simplified, case) else code

    def _is_as_linear(self, after: Case, before: Case) -> bool:
        """Whether a loop or branch is seen to be linear in what it says, as it was."""
        try:
            return zeros_due(self.primitives, after) == zeros_due(self.primitives, before)
        except TypeRuleError:
            return False

    def _closed(self, graph: ClosedGraph, row_major: bool) -> ClosedGraph:
        """A graph of a node simplified. What it carries lies as its outputs, or its operands, do."""
        inputs = ROW_MAJOR if row_major else Layout()
        with listening(None):
            document, layouts = _simplified(graph.document, self.assumptions, inputs, outputs_tell=True)
            if row_major and any(x != ROW_MAJOR for x in layouts):
                document, _ = _simplified(graph.document, self.assumptions, Layout(), outputs_tell=True)
        unchanged = document.head.code == graph.graph.code and document.head.args == graph.graph.args
        return graph if unchanged else ClosedGraph.of(document.head)


def _told(graph: Graph, outputs_tell: bool) -> bytearray:
    """Of each value whether some reader may round by how it lies in memory."""
    told = bytearray(graph.n_values)
    if outputs_tell:
        for output in graph.outputs:
            if output.value is not None:
                told[output.value] = 1
    passes = cache(lambda code: passes_on(graph.cases[code]))
    for code, args, first, end in backwards(graph, graph.args):
        if not passes(code) or any(told[first:end]):
            for a in args:
                told[a] = 1
    return told
