"""closure: every rule that repeated linearize and transpose can need exists; and for sets of primitives, every batch rule.

What a rule emits for a case is known from its template, so the set of cases that derivatives of any order reach can be walked.
All cases to start from are tried. Those that they lead to are told apart by op, mask and dtypes, of which there are finitely many;
their attrs and shapes are of the first that is met.

Any of n operands may be active, which makes 2**n masks. All are tried where n is at most `_MAX_ACTIVE`. Of more operands each is
tried alone, and all together; of hundreds a part of them alone, the first and last among them. Masks of so many operands that are
emitted are told apart by the first few, and by whether of the others none is active, one, several or all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.errors import TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.closed import cases_within, closed_graphs
from tidu_cli.graph.graph import Case, CaseTable, Document
from tidu_cli.graph.types import INEXACT, TensorType, Type, leaves, moves
from tidu_cli.rules.contract import Primitive
from tidu_cli.rules.recording.templates import batch_template, jvp_template, transpose_template
from tidu_cli.rules.recording.trace import Template
from tidu_cli.rules.vocabulary import PrimitiveSet

_MAX_ACTIVE = 4
"""Of nodes with more operands than this that can be active, or batched, only single ones and all together are tried."""

_TRIED = 10_000
"""Of nodes with n operands (or results) as many single ones are tried as this holds n, and two at least."""

_BATCH = 3
"""The size of the batches that batch rules are tried with."""


@dataclass
class Closure:
    """How many kinds of nodes are reached, and the missing links: what is needed, with the chain of ops that needs it."""

    reached: int = 0
    missing: list[str] = field(default_factory=list)


class Emissions(Frozen, slots=False):
    """The ops that a primitive's rules emit, over all examples, dtypes and active masks."""

    jvp: tuple[str, ...]
    transpose: tuple[str, ...]


def document_closure(document: Document, primitives: PrimitiveSet) -> Closure:
    """The closure of the cases that a document uses."""
    used = sorted({code for graph in document.graphs for code in graph.code})
    return cases_closure((document.cases[code] for code in used), primitives, batch=False)


def cases_closure(cases: Iterable[Case], primitives: PrimitiveSet, *, batch: bool = True) -> Closure:
    """The closure of these cases; with `batch` under batch rules, too."""
    table = CaseTable()
    closure = Closure()
    waiting = deque((case, case.op) for case in dict.fromkeys(cases))
    kinds = {_kind(case) for case, _ in waiting}
    while waiting:
        case, chain = waiting.popleft()
        templates = list(_jvps(table, case, primitives))
        if case.mask is not None:
            templates += _transposes(table, case, primitives)
        if batch:
            # These are not walked any further: each batch adds an axis, and there is no end to that.
            batches = _batches(table, case, primitives)
            closure.missing += [f"{t} ({_described(case)}; reached by {chain})" for t in batches if isinstance(t, TiduError)]
        for template in templates:
            if isinstance(template, TiduError):
                closure.missing.append(f"{template} ({_described(case)}; reached by {chain})")
                continue
            for node in (*template.closed, *template.nodes):
                emitted = table[node.code]
                # What is derived of graphs within nodes, of ever more inputs, is derived of the cases in them.
                for reached in cases_within([emitted]):
                    if not closed_graphs(reached.attrs) and _kind(reached) not in kinds:
                        kinds.add(_kind(reached))
                        waiting.append((reached, chain if emitted.op == case.op else f"{chain} → {emitted.op}"))
    closure.reached = len(kinds)
    closure.missing = list(dict.fromkeys(closure.missing))
    return closure


def examples_closure(chosen: Iterable[Primitive], primitives: PrimitiveSet) -> Closure:
    """The closure of the examples of these primitives of a set: under batch rules, too."""
    return cases_closure((case for primitive in chosen for _, case in example_cases(primitives, primitive)), primitives)


def emissions(primitive: Primitive, primitives: PrimitiveSet) -> Emissions:
    """What a primitive's rules may emit. A mask in which it is not linear counts for nothing."""
    table = CaseTable()
    ops: tuple[set[str], set[str]] = set(), set()
    # What is emitted does not depend on how wide a float is: four dtypes would take four times as long and say the same.
    cases = {
        (case.attrs, _without_widths(case.operands), _without_widths(case.results)): case
        for _, case in example_cases(primitives, primitive)
    }
    for case in cases.values():
        for active in _active_masks(case, primitive):
            linear = Case(case.op, case.attrs, active, case.operands, case.results)
            can_be_linear = all(t is None or t.inexact for t, a in zip(case.operands, active, strict=True) if a)
            transposes = _transposes(table, linear, primitives) if can_be_linear else ()
            for emitted, rules in zip(ops, (_jvps(table, case, primitives), transposes), strict=True):
                for template in rules:
                    if not isinstance(template, TiduError):
                        emitted.update(table[node.code].op for node in (*template.closed, *template.nodes))
    return Emissions(tuple(sorted(ops[0])), tuple(sorted(ops[1])))


def _jvps(table: CaseTable, case: Case, primitives: PrimitiveSet) -> Iterator[Template | TiduError]:
    """The JVP templates of a case, for active masks."""
    return _tried(
        _active_masks(case, primitives[case.op]), lambda active: jvp_template(primitives, table, table.intern(case), active)
    )


def _transposes(table: CaseTable, case: Case, primitives: PrimitiveSet) -> Iterator[Template | TiduError]:
    """The transpose templates of a linear case, for choices of results that have a cotangent."""
    if primitives.is_irreversible([case]):
        return iter(())
    live = _choices(range(len(case.results)), len(case.results))
    return _tried(live, lambda live: transpose_template(primitives, table, table.intern(case), live))


def _batches(table: CaseTable, case: Case, primitives: PrimitiveSet) -> Iterator[Template | TiduError]:
    """The batch templates of a case, for choices of batched operands."""
    batched = _choices(range(len(case.operands)), len(case.operands))
    return _tried(batched, lambda batched: batch_template(primitives, table, table.intern(case), batched, _BATCH))


def _tried(masks: Iterable[tuple[bool, ...]], rule: Callable[[tuple[bool, ...]], Template]) -> Iterator[Template | TiduError]:
    """The template for each mask; where there is none, what the rule lacks or gets wrong."""
    for mask in masks:
        try:
            yield rule(mask)
        except TiduError as error:
            yield error


def _active_masks(case: Case, primitive: Primitive) -> Iterator[tuple[bool, ...]]:
    able = [
        k
        for k, t in enumerate(case.operands)
        if (t is None or moves(t)) and k not in primitive.rules.inert and not primitive.domain.is_index(k)
    ]
    if not any(map(moves, case.results)):
        return
    yield from _choices(able, len(case.operands))


def _choices(able: Sequence[int], n: int) -> Iterator[tuple[bool, ...]]:
    """Of n operands, choices of at least one of those that are able, as masks: all choices of few."""
    if len(able) > _MAX_ACTIVE:
        step = -(-len(able) // max(_TRIED // n, 2))
        chosen: Iterable[Sequence[int]] = [*((k,) for k in able[::step]), able[-1:], able]
    else:
        chosen = [tuple(k for k, on in zip(able, switch, strict=True) if on) for switch in product((True, False), repeat=len(able))]
    for one in dict.fromkeys(map(frozenset, chosen)):
        if one:
            yield tuple(k in one for k in range(n))


def _kind(case: Case) -> tuple[object, ...]:
    mask: object = case.mask
    if case.mask is not None and len(case.mask) > _MAX_ACTIVE:
        rest = case.mask[_MAX_ACTIVE:]
        mask = *case.mask[:_MAX_ACTIVE], min(sum(rest), 2), all(rest)
    return case.op, mask, tuple(t and _dtypes(t) for t in case.operands), tuple(map(_dtypes, case.results))


def _dtypes(type_: Type) -> object:
    """The dtype of an array, or those of a record's arrays and where they are."""
    return type_.dtype if isinstance(type_, TensorType) else tuple((path, leaf.dtype) for path, leaf in leaves(type_))


def _without_widths(types: Iterable[Type | None]) -> tuple[object, ...]:
    """Types, of floats all of one width, and of complex numbers."""
    return tuple((t.shape, t.complex or "real") if isinstance(t, TensorType) and t.dtype in INEXACT else t for t in types)


def _described(case: Case) -> str:
    types = ", ".join("?" if t is None else str(t) for t in case.operands)
    mask = "" if case.mask is None else f" linear in inputs {[k for k, active in enumerate(case.mask) if active]}"
    return f"{case.op}({types}){mask}"
