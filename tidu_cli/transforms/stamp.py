"""Stamping templates: what a rule emits for a case is written for every node of the case.

Values are passed about as *handles*, and each graph under construction has its own for what its nodes make. While it is written its
arguments are handles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import TypeVar

from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.closed import forwards, mark_dependencies
from tidu_cli.graph.graph import Column, Externals, Graph, Meta, column
from tidu_cli.graph.large import by_columns
from tidu_cli.graph.link import GraphBuilder
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


# Where nodes of derivatives come from: the `source` that the meta of a node has passes on to the nodes that its rule emits.
#
# It says which of a user's lines made the node (`tidu build --source`). All else that stands in meta stays with its owner.


N = TypeVar("N", bound=tuple[object, ...])

SOURCE = "source"


def has_sources(graphs: Iterable[Graph]) -> bool:
    """Whether a node says where it comes from."""
    return any(SOURCE in (meta or ()) for graph in graphs for meta in graph.node_meta.values())


def passed_on(nodes: Iterable[N], graph: Graph, base: int, made: Sequence[tuple[GraphBuilder, dict[int, Meta]]]) -> Iterator[N]:
    """These nodes, as they are; and what is written to the builders while each of them is looked at gets its source as meta.

    The last but one number of a node is its first result, counted from `base` on.
    """
    for node in nodes:
        before = [len(builder.code) for builder, _ in made]
        yield node
        first_result: int = node[-2]  # type: ignore[assignment]
        meta = graph.node_meta.get(graph.producer(first_result - base)[0])
        if meta and SOURCE in meta:
            for (builder, node_meta), first in zip(made, before, strict=True):
                node_meta.update((k, {SOURCE: meta[SOURCE]}) for k in range(first, len(builder.code)))


def kept(before: Graph, after: Graph, new_id: Column[int]) -> Graph:
    """`after` with the meta of those nodes of `before` that it has: they are those whose values have ids of their own."""
    if not before.node_meta:
        return after
    ids, ends = [*new_id, after.n_values], before.firsts
    met = {k: meta for k, meta in before.node_meta.items() if ids[ends[k]] < ids[ends[k + 1]]}
    return replace(after, node_meta={after.producer(ids[ends[k]])[0]: meta for k, meta in met.items()})


# Dropping dead nodes: those that no output depends on.


def drop_dead_nodes(graphs: Sequence[Graph], first_number: int) -> list[Graph]:
    """The last of these graphs without its dead nodes; of the one before it, what the last still reads, or nothing.

    `graphs` are a linear graph, or a residual graph and its linear graph, numbered on from `first_number`. All inputs stay.
    """
    *before, last = graphs
    last, _ = _with_meta(last, column([o.value for o in last.outputs if o.value is not None]))
    if not before:
        return [last]
    residual, new_id = _with_meta(before[0], values_of(last.external, first_number))
    if not residual.n_nodes:
        return [last]
    if new_id is not None:
        values = [new_id[v] if g == first_number else v for g, v in last.external]
        last = replace(last, external=Externals(last.external.graph, column(values)))
    return [residual, last]


def _with_meta(graph: Graph, roots: Column[int]) -> tuple[Graph, Column[int] | None]:
    live, new_id = live_part(graph, roots)
    return live if new_id is None else kept(graph, live, new_id), new_id


@by_columns("tidu_cli.transforms.columns.kept", lambda external, _: len(external))
def values_of(external: Externals, number: int) -> Column[int]:
    """Those of these externals that are values of the graph of this number."""
    return column([v for g, v in external if g == number])


@by_columns("tidu_cli.transforms.columns.kept", lambda graph, _: graph.n_nodes)
def live_part(graph: Graph, roots: Column[int]) -> tuple[Graph, Column[int] | None]:
    """The graph without the nodes that no root depends on, and the new local id of each old one; None where nothing is dead.

    The ids of dead values are those of the live ones after them.
    """
    # If every value is read, or a root, then the last one is a root, and so all are live.
    if {*graph.args, *roots}.issuperset(range(len(graph.inputs), graph.n_values)):
        return graph, None
    live = [0] * (graph.n_values + len(graph.external))
    for root in roots:
        live[root] = 1
    mark_dependencies(graph, live)

    codes, args = column(), column()
    externals, new_external = Externals(), dict[int, int]()
    n_values = len(graph.inputs)
    new_id = column(range(n_values)) + column([0]) * (graph.n_values - n_values)
    for code, arguments, first, end in forwards(graph, graph.args):
        if 1 not in live[first:end]:
            for k in range(first, end):
                new_id[k] = n_values
            continue
        codes.append(code)
        for argument in arguments:
            if argument < 0 and argument not in new_external:
                new_external[argument] = -1 - len(externals)
                externals.graph.append(graph.external.graph[-1 - argument])
                externals.value.append(graph.external.value[-1 - argument])
            args.append(new_external[argument] if argument < 0 else new_id[argument])
        for k in range(first, end):
            new_id[k], n_values = n_values, n_values + 1
    outputs = tuple(o if o.value is None or o.value < 0 else replace(o, value=new_id[o.value]) for o in graph.outputs)
    return replace(graph, code=codes, args=args, external=externals, outputs=outputs), new_id
