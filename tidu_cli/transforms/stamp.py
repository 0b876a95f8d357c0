"""Stamping templates: what a rule emits for a case is written for every node of the case.

Values are passed about as *handles*, and each graph under construction has its own for what its nodes make. While it is written its
arguments are handles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.graph import Column, column
from tidu_cli.limits import limits, require
from tidu_cli.rules.recording.trace import Template


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A graph under construction, in which the handle of local value v is `first + step * v`."""

    graph: GraphBuilder
    first: int = 0
    step: int = 1

    def append(self, code: int, reads: Sequence[int]) -> range:
        """Append a node that reads these handles. Gives those of its results."""
        before = self.graph.append(code, reads)
        return range(self.first + self.step * before, self.first + self.step * self.graph.n_values, self.step)


Choice = Callable[[Sequence[int]], Sequence[int]]
"""From an environment to what is in some of its slots."""

_Run = tuple[Target, "Column[int]", Choice, int]
"""Nodes of a template that go to one graph, one after the other: their codes, what they read, and how many results they have."""


@dataclass(frozen=True, slots=True)
class _Stencil:
    """A template as it is written: the handles of its closed nodes, runs of the others, and the results."""

    closed: list[int]
    runs: list[_Run]
    results: Choice
    n_nodes: int


class Stamper:
    """Writes the linear nodes of templates to one graph, and all others to another, or to the same.

    `fields` are, by their handles, the records that are put together in the linear graph: the handles of their fields by name.
    `what` is how messages call what is made.
    """

    def __init__(self, linear: Target, residual: Target, what: str) -> None:
        self.linear = linear
        self.residual = residual
        self.what = what
        self.fields: dict[int, dict[str, int]] = {}
        self._most, self._n_nodes = limits().nodes, 0
        self._stencils: dict[Template, _Stencil] = {}
        self._constants: dict[tuple[int, ...], range] = {}

    @classmethod
    def alone(cls, graph: GraphBuilder) -> Stamper:
        """One that writes to a single graph. Handles are its arguments."""
        target = Target(graph)
        return cls(target, target, "the graph, so far")

    def stamp(self, template: Template, sources: Sequence[int]) -> Sequence[int]:
        """Write the template's nodes for these sources. Gives the handles of its results, 0 for zeros. Raises LimitError."""
        if template.takes is not None and sources[template.takes[0]] in self.fields:
            record, name = template.takes
            return [self.fields[sources[record]].get(name, 0)]
        stencil = self._stencils.get(template) or self._prepared(template)
        environment = [*sources, *stencil.closed]
        for target, codes, read, n_results in stencil.runs:
            graph, step = target.graph, target.step
            first = target.first + step * graph.n_values
            environment += range(first, first + step * n_results, step)
            graph.n_values += n_results
            graph.code.extend(codes)
            graph.args.extend(read(environment))
        self._n_nodes += stencil.n_nodes
        if self._n_nodes > self._most:
            require("nodes", self._n_nodes, self.what)
        for slot, fields in template.made:
            self.fields[environment[slot]] = {name: environment[read] for name, read in fields.items()}
        environment.append(0)
        return stencil.results(environment)

    def _prepared(self, template: Template) -> _Stencil:
        environment = [0] * template.n_sources
        for node in template.closed:
            reads = [environment[slot] for slot in node.reads]
            constant = (node.code, *reads)  # templates of different cases share their constants
            if constant not in self._constants:
                self._constants[constant] = self.residual.append(node.code, reads)
            environment += self._constants[constant]
        runs = []
        for target, same in groupby(template.nodes, lambda node: self.linear if node.linear else self.residual):
            nodes = list(same)
            read = _choice([slot for node in nodes for slot in node.reads])
            runs.append((target, column(node.code for node in nodes), read, sum(node.n_results for node in nodes)))
        results = _choice([-1 if slot is None else slot for slot in template.results])  # the last slot holds the 0 of zeros
        stencil = _Stencil(environment[template.n_sources :], runs, results, len(template.nodes))
        self._stencils[template] = stencil
        return stencil


def _choice(slots: Sequence[int]) -> Choice:
    if len(slots) == 1:
        (slot,) = slots
        return lambda environment: (environment[slot],)
    return itemgetter(*slots) if slots else lambda _: ()
