"""Stamping templates out for whole groups of nodes at once: what linearize and transpose of large graphs share.

The plain way (`tidu_cli.transforms.stamp`) walks the nodes and appends what each one's template says. Here all nodes of a template
are a *group*. Templates are of fixed sizes, so that prefix sums over the nodes say where the emission of each begins; then each
node of a template is written for the whole group, to every place where it belongs.

The nodes that emit are numbered as *items*, in the order in which they are walked. A *reference* stands for a value as seen from
the linear graph under construction: a local id of it, or -1-h for what is outside, where h is a flat id, or past the document's
for values of the new residual graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tidu_cli.frozen import Frozen
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.blocks import Indices, Ints, array_of, before_each, blocks, column_of
from tidu_cli.graph.columns.dataflow import number_by_first_use
from tidu_cli.graph.graph import Externals, column
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.limits import require
from tidu_cli.rules.recording.trace import Template
from tidu_cli.transforms.derivative import Derivative
from tidu_cli.watching import watch

Reference = Ints | int
"""Of many items, or the same one of all."""


@dataclass(eq=False)
class Group:
    """The items of one template, in increasing order. `closed` numbers the constants that its closed nodes are.

    `source` gives, for items of the group, the references of one of the template's sources, by its slot.
    """

    template: Template
    items: Ints
    source: Callable[[Ints, int], Reference]
    closed: list[int] = field(default_factory=list)

    @cached_property
    def read(self) -> set[int]:
        """The slots that nodes read."""
        return {slot for node in self.template.nodes for slot in node.reads}


class Places(Frozen, slots=False, eq=False):
    """For each item, where its nodes begin in a graph, and their arguments."""

    node: Ints
    arg: Ints


class _Constant(Frozen):
    """A closed node, which reads other constants by their numbers, and the item right before which it stands."""

    code: int
    reads: tuple[int, ...]
    item: int


def suits(template: Template) -> bool:
    """Whether a template can be stamped out in bulk: it neither makes records nor takes fields, and its nodes have one result."""
    return not (template.made or template.takes) and all(node.n_results == 1 for node in (*template.closed, *template.nodes))


def linear_offset(template: Template, slot: int) -> int | None:
    """The number of linear nodes in a template before that of a slot; None for the slot of a source."""
    node = slot - template.n_sources - len(template.closed)
    return sum(n.linear for n in template.nodes[:node]) if node >= 0 else None


class _Target(Frozen, slots=False, eq=False):
    """A graph that is written to: its columns, and where in them each item's emission begins."""

    code: Ints
    args: Ints
    places: Places


class Stamps:
    """Templates to be stamped for numbered items, into the graphs of a derivative."""

    def __init__(self, derivative: Derivative, n_items: int, groups: list[Group]) -> None:
        self.derivative = derivative
        self.n_items = n_items
        self.groups = groups

    def linear_sizes(self) -> tuple[Ints, Ints]:
        """The number of linear nodes that each item emits, and of their arguments. Raises LimitError if there are too many."""
        require("nodes", sum(len(group.items) * len(group.template.nodes) for group in self.groups), "the derivative")
        return self._sizes(linear=True)

    def write(self, places: Places, stage: str) -> None:
        """Write all groups: the linear nodes to these places of the graph, whose columns are long enough, and the residual graph.

        Arguments -1-h remain, which `refer` makes externals of. `stage` is what listeners are told.
        """
        linear = self.derivative.linear
        code, args = map(array_of, linear.columns())
        into_linear = _Target(code, args, places)
        into_residual, constants = self._begin_residual(self.derivative.residual)
        n_inputs, n_document = len(linear.inputs), self.derivative.logical.n_values
        for group in watch(stage, len(self.groups))(self.groups):
            closed = [constants[number] for number in group.closed]
            for block in blocks(0, len(group.items)):
                _stamp(group, group.items[block], closed, into_linear, into_residual, n_inputs, n_document)
        self.groups.clear()

    def refer(self) -> None:
        """List the externals of both graphs, in the order of first use: once they are written, and what that took is gone."""
        logical, residual = self.derivative.logical, self.derivative.residual
        for builder in (self.derivative.linear, residual):
            builder.n_values = len(builder.inputs) + len(builder.code)
            args = array_of(builder.columns()[1])
            builder.external = _externals(args, logical, self.derivative.n_before, len(residual.code))

    def _begin_residual(self, residual: GraphBuilder) -> tuple[_Target, list[int]]:
        """Columns for the residual graph, in which only the constants have been written yet, and references to these."""
        constants = self._numbered_constants()
        nodes, args = self._sizes(linear=False)
        for constant in constants:
            nodes[constant.item] += 1
            args[constant.item] += len(constant.reads)
        places = Places(before_each(nodes), before_each(args))
        residual.code, residual.args = column([0]) * int(places.node[-1]), column([0]) * int(places.arg[-1])
        target = _Target(array_of(residual.code), array_of(residual.args), places)
        at: list[int] = []
        for constant in constants:  # they stand before the other nodes of their item, which move on
            node, arg, n_reads = int(places.node[constant.item]), int(places.arg[constant.item]), len(constant.reads)
            target.code[node] = constant.code
            target.args[arg : arg + n_reads] = [at[number] for number in constant.reads]
            places.node[constant.item] += 1
            places.arg[constant.item] += n_reads
            at.append(node)
        return target, [-1 - self.derivative.logical.n_values - node for node in at]

    def _numbered_constants(self) -> list[_Constant]:
        """The closed nodes of all templates, each once, in the order of the items that need them first."""
        constants: list[_Constant] = []
        numbers: dict[tuple[int, ...], int] = {}
        for group in sorted(self.groups, key=lambda group: int(group.items[0])):
            for node in group.template.closed:
                reads = tuple(group.closed[slot - group.template.n_sources] for slot in node.reads)
                number = numbers.setdefault((node.code, *reads), len(constants))
                if number == len(constants):
                    constants.append(_Constant(node.code, reads, int(group.items[0])))
                group.closed.append(number)
        return constants

    def _sizes(self, *, linear: bool) -> tuple[Ints, Ints]:
        nodes, args = np.zeros(self.n_items, np.int32), np.zeros(self.n_items, np.int32)
        for group in self.groups:
            emitted = [node for node in group.template.nodes if node.linear == linear]
            if emitted:
                nodes[group.items] = len(emitted)
                args[group.items] = sum(len(node.reads) for node in emitted)
        return nodes, args


def _stamp(
    group: Group, items: Ints, closed: list[int], linear: _Target, residual: _Target, n_inputs: int, n_document: int
) -> None:
    """Write the nodes of a template for some items of its group."""
    sources = [group.source(items, slot) if slot in group.read else 0 for slot in range(group.template.n_sources)]
    environment = [*sources, *closed]
    linear_node, linear_arg = linear.places.node[items], linear.places.arg[items]
    residual_node, residual_arg = residual.places.node[items], residual.places.arg[items]
    for node in group.template.nodes:
        if node.linear:
            for slot in node.reads:
                linear.args[linear_arg] = environment[slot]
                linear_arg += 1
            linear.code[linear_node] = node.code
            environment.append(linear_node + n_inputs)
            linear_node += 1
        else:
            for slot in node.reads:
                residual.args[residual_arg] = _in_residual(environment[slot], n_document)
                residual_arg += 1
            residual.code[residual_node] = node.code
            environment.append(-1 - n_document - residual_node)
            residual_node += 1


def _in_residual(reference: Reference, n_document: int) -> Reference:
    """What is outside of the linear graph as an argument of the residual one; what is of the document stays a reference."""
    own = -1 - n_document - reference
    return np.where(own >= 0, own, reference).astype(np.int32)


def _externals(args: Ints, logical: LogicalGraph, residual_number: int, n_residual: int) -> Externals:
    """The externals of a new graph, whose arguments -1-h become -1-k, where h is entry k of them.

    h is a flat id of the document; or, going on from there, one of `n_residual` values of the new graph `residual_number`.
    """
    handles = number_by_first_use(args, logical.n_values + n_residual)
    base = np.asarray(logical.base)
    graph = (np.searchsorted(base, handles, side="right") - 1).astype(np.int32)
    value = handles - base[graph]
    is_new = handles >= logical.n_values
    graph[graph == len(logical.document.graphs)] = Externals.DETACHED
    graph[is_new] = residual_number
    value[is_new] = handles[is_new] - logical.n_values
    return Externals(column_of(graph), column_of(value))


def follow(found: Ints, aliases: Indices) -> None:
    """Where found[v] is -2-u, which says that v is what u is, enter what u is.

    `aliases` are all such v. Each round doubles how far pointers reach, so that rounds are few for chains of any length.
    """
    while len(aliases):
        found[aliases] = found[-2 - found[aliases]]
        aliases = aliases[found[aliases] < -1]
