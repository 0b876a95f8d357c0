"""What a rule emits for steps that are alike: recorded once, and stamped out from then on, within a recording in progress.

A body of a hundred thousand steps has a handful of kinds of them. Transforms stamp out templates node by node in the same way
(`tidu_cli.transforms.stamp`), into graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from tidu_cli.graph.types import Type
from tidu_cli.rules.recording import Emitted, Template, Term, Trace

Rule = Callable[[Trace, Sequence[Term | None]], Sequence[Term | None]]
"""From a recording and sources, in it, to results. Where a source is None, a result may be None."""


@dataclass(frozen=True, slots=True, eq=False)
class _Recorded:
    """The template of a rule, and of each of its results the type, and whether it is linear."""

    template: Template
    results: tuple[tuple[Type | None, bool] | None, ...]


class Stamps:
    """Applies rules in a recording. One kind stands for one rule at sources of the same types."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._known: dict[Hashable, _Recorded] = {}
        self._closed: dict[Template, list[int]] = {}
        self._constants: dict[tuple[int, ...], list[int]] = {}

    def apply(self, rule: Rule, sources: Sequence[Term | None], kind: Hashable | None = None) -> Sequence[Term | None]:
        """What the rule gives for these sources. A kind of None is of one step only, whose rule is just called."""
        if kind is None:
            return rule(self.trace, sources)
        case = kind, tuple([None if s is None else s.linear for s in sources])
        recorded = self._known.get(case)
        if recorded is None:
            recorded = self._known[case] = self._record(rule, sources)
        template = recorded.template
        slots = [-1 if s is None else s.slot for s in sources]
        if template.closed:
            slots += self._closed_slots(template)
        for node in template.nodes:
            slots += self._append(node, slots)
        found: list[Term | None] = []
        for slot, known in zip(template.results, recorded.results, strict=True):
            if slot is None or known is None:
                found.append(None)
            elif slot < template.n_sources:
                found.append(sources[slot])
            else:
                found.append(Term(self.trace, slots[slot], *known))
        return found

    def _record(self, rule: Rule, sources: Sequence[Term | None]) -> _Recorded:
        scratch = Trace(self.trace.primitives, self.trace.cases)
        terms: list[Term | None] = []
        for s in sources:
            term = scratch.source(None if s is None else s.known_type, linear=s is not None and s.linear)
            terms.append(None if s is None else term)
        found = rule(scratch, terms)
        types = tuple(None if t is None else (t.known_type, t.linear) for t in found)
        return _Recorded(scratch.template(len(sources), found), types)

    def _closed_slots(self, template: Template) -> list[int]:
        made = self._closed.get(template)
        if made is None:
            slots = [-1] * template.n_sources
            for node in template.closed:
                constant = (node.code, *(slots[r] for r in node.reads))  # kinds share their constants
                if constant not in self._constants:
                    self._constants[constant] = list(self._append(node, slots))
                slots += self._constants[constant]
            made = self._closed[template] = slots[template.n_sources :]
        return made

    def _append(self, node: Emitted, slots: Sequence[int]) -> range:
        trace = self.trace
        trace.nodes.append(Emitted(node.code, tuple([slots[r] for r in node.reads]), node.linear, node.n_results))
        first = trace.n_slots
        trace.n_slots += node.n_results
        return range(first, trace.n_slots)
