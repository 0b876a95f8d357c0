"""Stamping templates: what a rule emits for a case is written for every node of the case.

Values are passed about as *handles*, and each graph under construction has its own for what its nodes make. While it is written its
arguments are handles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter

from tidu_cli.frozen import Frozen
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.limits import limits, require
from tidu_cli.rules.recording.trace import Emitted, Template


class Target(Frozen, eq=False):
    """A graph under construction, in which the handle of local value v is `first + step * v`."""

    graph: GraphBuilder
    first: int = 0
    step: int = 1

    def append(self, code: int, reads: Sequence[int]) -> range:
        """Append a node that reads these handles. Gives those of its results."""
        before = self.graph.append(code, reads)
        return range(self.first + self.step * before, self.first + self.step * self.graph.n_values, self.step)


Stamp = Callable[[list[int]], Sequence[int]]
"""What writes a template for the handles of its sources, a list that it extends, and gives those of its results, 0 for zeros."""


class Stamper:
    """Writes the linear nodes of templates to one graph, and all others to another, or to the same.

    `fields` are, by their handles, the records that are put together in the linear graph: the handles of their fields by name.
    `what` is how messages call what is made.
    """

    def __init__(self, linear: Target, residual: Target, what: str) -> None:
        self.linear = linear
        self.residual = residual
        self.what = what
        self.most = limits().nodes
        self.fields: dict[int, dict[str, int]] = {}
        self._constants: dict[tuple[int, ...], range] = {}
        self.stamp_of = cache(self._stamp_of)

    @classmethod
    def alone(cls, graph: GraphBuilder) -> Stamper:
        """One that writes to a single graph. Handles are its arguments."""
        target = Target(graph)
        return cls(target, target, "the graph, so far")

    def stamp(self, template: Template, sources: Sequence[int]) -> Sequence[int]:
        """Write the template's nodes for these sources. Gives the handles of its results, 0 for zeros. Raises LimitError."""
        return self.stamp_of(template)([*sources])

    def _stamp_of(self, template: Template) -> Stamp:
        """What writes this template. Its constants are written now, if no template had them before."""
        # In the environment come sources, constants and the 0 of zeros, then what is made: first what linear nodes read.
        constants = [*self._constants_of(template), 0]
        place: dict[int | None, int] = {slot: slot for slot in range(template.n_sources + len(constants) - 1)}
        place[None] = first = len(place)
        made: dict[Target, list[tuple[Emitted, int]]] = {self.residual: [], self.linear: []}
        for node in template.nodes:
            made[self.linear if node.linear else self.residual].append((node, first))
            first += node.n_results
        for node, first in chain.from_iterable(made.values()):
            for slot in range(first, first + node.n_results):
                place[slot] = len(place)
        runs = []
        for target, nodes in made.items():
            if nodes:
                n_results, codes = sum(node.n_results for node, _ in nodes), [node.code for node, _ in nodes]
                read = choice([place[slot] for node, _ in nodes for slot in node.reads])
                runs.append((target.graph, target.first, target.step, n_results, read, codes))
        results, most = choice([place[slot] for slot in template.results]), self.most

        def stamp(environment: list[int]) -> Sequence[int]:
            environment += constants
            for graph, first, step, n_results, read, codes in runs:
                handle = first + step * graph.n_values
                environment.append(handle)
                if n_results > 1:
                    environment += range(handle + step, handle + step * n_results, step)
                graph.n_values = n_values = graph.n_values + n_results
                graph.args += read(environment)
                graph.code += codes
                if n_values > most:
                    require("nodes", len(graph.code), self.what)
            return results(environment)

        return self._with_fields(template, stamp, place) if template.made or template.takes else stamp

    def _with_fields(self, template: Template, stamp: Stamp, place: Mapping[int | None, int]) -> Stamp:
        """The same for a template that puts records together, or takes a field of one, which may be known."""

        def with_fields(environment: list[int]) -> Sequence[int]:
            if template.takes is not None and environment[template.takes[0]] in self.fields:
                record, name = template.takes
                return [self.fields[environment[record]].get(name, 0)]
            results = stamp(environment)
            for slot, fields in template.made:
                self.fields[environment[place[slot]]] = {name: environment[place[read]] for name, read in fields.items()}
            return results

        return with_fields

    def _constants_of(self, template: Template) -> list[int]:
        """The handles of its constants, which templates of different cases share."""
        environment = [0] * template.n_sources
        for node in template.closed:
            reads = [environment[slot] for slot in node.reads]
            constant = (node.code, *reads)
            if constant not in self._constants:
                self._constants[constant] = self.residual.append(node.code, reads)
            environment += self._constants[constant]
        return environment[template.n_sources :]


def choice(slots: Sequence[int]) -> Callable[[list[int]], Sequence[int]]:
    """From an environment to what is in these slots."""
    if len(slots) > 1:
        return itemgetter(*slots)
    return itemgetter(slice(slots[0], slots[0] + 1) if slots else slice(0))
