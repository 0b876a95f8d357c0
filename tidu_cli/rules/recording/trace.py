"""Recording what a rule emits.

A rule computes with `Term`s; every operation on them is recorded in a `Trace`. A node that reads a tangent (or cotangent) is
linear, with the mask that says which operands do; any other is residual. The recording is a `Template`: stamped out once per
node of the case, with no further call of the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidu_cli.errors import MissingRuleError
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import CaseAttrs, CaseTable
from tidu_cli.graph.literals import filled
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.rules.terms import Number, Term
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
            known = self.emit("constant", value=filled(TensorType(type_.dtype), value))
            if type_.shape:
                known = self.emit("broadcast_in_dim", known, shape=type_.shape, broadcast_dimensions=())
            self._constants[type_, repr(value)] = known
        return known

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
