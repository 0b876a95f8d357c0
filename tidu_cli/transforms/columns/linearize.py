"""linearize of large graphs: the tangents of all values, by groups of nodes that share case and mask.

The plain way (`tidu_cli.transforms.linearize`) learns a node's mask when it comes to it. Here masks come first: what is active
spreads through the graph, and is corrected where a rule gives no tangent. Then every template is stamped out in bulk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial

import numpy as np

from tidu_cli.errors import TiduError
from tidu_cli.frozen import Frozen
from tidu_cli.graph import dataflow
from tidu_cli.graph.graph import Column, Externals, column
from tidu_cli.graph.link import GraphBuilder, LogicalGraph
from tidu_cli.limits import require
from tidu_cli.rules.recording.templates import jvp_template
from tidu_cli.rules.recording.trace import Template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.columns.kept import are_few, by_code, by_mask, operands
from tidu_cli.transforms.derivative import Derivative
from tidu_cli.watching import watch

# Stamping templates out for whole groups of nodes at once: what linearize and transpose of large graphs share.
#
# The plain way (`tidu_cli.transforms.stamp`) walks the nodes and appends what each one's template says. Here all nodes of a
# template are a *group*. Templates are of fixed sizes, so that prefix sums over the nodes say where the emission of each begins;
# then each node of a template is written for the whole group, to every place where it belongs.
#
# The nodes that emit are numbered as *items*, in the order in which they are walked. A *reference* stands for a value as seen from
# the linear graph under construction: a local id of it, or -1-h for what is outside, where h is a flat id, or past the document's
# for values of the new residual graph.


Reference = dataflow.Ints | int
"""Of many items, or the same one of all."""


@dataclass(eq=False)
class Group:
    """The items of one template, in increasing order. `closed` numbers the constants that its closed nodes are.

    `source` gives, for items of the group, the references of one of the template's sources, by its slot.
    """

    template: Template
    items: dataflow.Ints
    source: Callable[[dataflow.Ints, int], Reference]
    closed: list[int] = field(default_factory=list)

    @cached_property
    def read(self) -> set[int]:
        """The slots that nodes read."""
        return {slot for node in self.template.nodes for slot in node.reads}


class Places(Frozen, slots=False, eq=False):
    """For each item, where its nodes begin in a graph, and their arguments."""

    node: dataflow.Ints
    arg: dataflow.Ints


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

    code: dataflow.Ints
    args: dataflow.Ints
    places: Places


class Stamps:
    """Templates to be stamped for numbered items, into the graphs of a derivative."""

    def __init__(self, derivative: Derivative, n_items: int, groups: list[Group]) -> None:
        self.derivative = derivative
        self.n_items = n_items
        self.groups = groups

    def linear_sizes(self) -> tuple[dataflow.Ints, dataflow.Ints]:
        """The number of linear nodes that each item emits, and of their arguments. Raises LimitError if there are too many."""
        require("nodes", sum(len(group.items) * len(group.template.nodes) for group in self.groups), "the derivative")
        return self._sizes(linear=True)

    def write(self, places: Places, stage: str) -> None:
        """Write all groups: the linear nodes to these places of the graph, whose columns are long enough, and the residual graph.

        Arguments -1-h remain, which `refer` makes externals of. `stage` is what listeners are told.
        """
        linear = self.derivative.linear
        code, args = map(dataflow.array_of, linear.columns())
        into_linear = _Target(code, args, places)
        into_residual, constants = self._begin_residual(self.derivative.residual)
        n_inputs, n_document = len(linear.inputs), self.derivative.logical.n_values
        for group in watch(stage, len(self.groups))(self.groups):
            closed = [constants[number] for number in group.closed]
            for block in dataflow.blocks(0, len(group.items)):
                _stamp(group, group.items[block], closed, into_linear, into_residual, n_inputs, n_document)
        self.groups.clear()

    def refer(self) -> None:
        """List the externals of both graphs, in the order of first use: once they are written, and what that took is gone."""
        logical, residual = self.derivative.logical, self.derivative.residual
        for builder in (self.derivative.linear, residual):
            builder.n_values = len(builder.inputs) + len(builder.code)
            args = dataflow.array_of(builder.columns()[1])
            builder.external = _externals(args, logical, self.derivative.n_before, len(residual.code))

    def _begin_residual(self, residual: GraphBuilder) -> tuple[_Target, list[int]]:
        """Columns for the residual graph, in which only the constants have been written yet, and references to these."""
        constants = self._numbered_constants()
        nodes, args = self._sizes(linear=False)
        for constant in constants:
            nodes[constant.item] += 1
            args[constant.item] += len(constant.reads)
        places = Places(dataflow.before_each(nodes), dataflow.before_each(args))
        residual.code, residual.args = column([0]) * int(places.node[-1]), column([0]) * int(places.arg[-1])
        target = _Target(dataflow.array_of(residual.code), dataflow.array_of(residual.args), places)
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

    def _sizes(self, *, linear: bool) -> tuple[dataflow.Ints, dataflow.Ints]:
        nodes, args = np.zeros(self.n_items, np.int32), np.zeros(self.n_items, np.int32)
        for group in self.groups:
            emitted = [node for node in group.template.nodes if node.linear == linear]
            if emitted:
                nodes[group.items] = len(emitted)
                args[group.items] = sum(len(node.reads) for node in emitted)
        return nodes, args


def _stamp(
    group: Group, items: dataflow.Ints, closed: list[int], linear: _Target, residual: _Target, n_inputs: int, n_document: int
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


def _externals(args: dataflow.Ints, logical: LogicalGraph, residual_number: int, n_residual: int) -> Externals:
    """The externals of a new graph, whose arguments -1-h become -1-k, where h is entry k of them.

    h is a flat id of the document; or, going on from there, one of `n_residual` values of the new graph `residual_number`.
    """
    handles = dataflow.number_by_first_use(args, logical.n_values + n_residual)
    base = np.asarray(logical.base)
    graph = (np.searchsorted(base, handles, side="right") - 1).astype(np.int32)
    value = handles - base[graph]
    is_new = handles >= logical.n_values
    graph[graph == len(logical.document.graphs)] = Externals.DETACHED
    graph[is_new] = residual_number
    value[is_new] = handles[is_new] - logical.n_values
    return Externals(dataflow.column_of(graph), dataflow.column_of(value))


def follow(pointers: dataflow.Ints, aliases: dataflow.Indices) -> None:
    """Where pointers[v] is -2-u, which says that v is what u is, enter what u is.

    `aliases` are all such v. Each round doubles how far pointers reach, so that rounds are few for chains of any length.
    """
    while len(aliases):
        pointers[aliases] = pointers[-2 - pointers[aliases]]
        aliases = aliases[pointers[aliases] < -1]


ROUNDS = 8
"""So often masks are corrected. It takes a round for each rule on a path that gives no tangent under a corrected mask only."""


def push_forward(
    derivative: Derivative, seeds: Mapping[int, int], needed: bytearray, primitives: PrimitiveSet
) -> Column[int] | None:
    """What the plain way does: the handle of each flat id's tangent.

    None, and nothing done, where only the plain way knows how: several results, records, converted tangents, more cases than are
    worth the while; and where a rule is missing, perhaps for a mask that no node has in the end.
    """
    logical, linear = derivative.logical, derivative.linear
    flow = logical.flow
    if flow is None or linear.code:
        return None
    nodes = np.flatnonzero(np.frombuffer(needed, np.bool_) & (flow.code >= 0)).astype(np.int32)
    by_case = by_code(flow.code, nodes) if are_few(flow.code, nodes) else []
    tangent = np.full(flow.n_values, -1, np.int32)
    groups = _groups(logical, flow, by_case, seeds, primitives, tangent) if by_case else None
    if groups is None:
        return None

    stamps = Stamps(derivative, flow.n_values, groups)
    node_sizes, arg_sizes = stamps.linear_sizes()
    places = Places(dataflow.before_each(node_sizes), dataflow.before_each(arg_sizes))
    del node_sizes, arg_sizes
    linear.code, linear.args = column([0]) * int(places.node[-1]), column([0]) * int(places.arg[-1])
    for flat, handle in seeds.items():
        tangent[flat] = -1 - handle
    _find_tangents(flow, groups, places, len(linear.inputs), tangent)
    stamps.write(places, "linearizing")
    del places
    stamps.refer()
    return dataflow.column_of(np.where(tangent >= 0, -1 - tangent, 0))


def _groups(
    logical: LogicalGraph,
    flow: dataflow.Flow,
    by_case: list[tuple[int, dataflow.Ints]],
    seeds: Mapping[int, int],
    primitives: PrimitiveSet,
    tangent: dataflow.Ints,
) -> list[Group] | None:
    """The nodes that have an active operand, by case and mask; None where templates cannot be told, or do not suit."""
    cases = logical.document.cases
    template_of = cache(partial(jvp_template, primitives, cases))
    activity = _Activity(flow, seeds)
    for _ in range(ROUNDS):
        groups: list[Group] = []
        silent = [np.empty(0, np.int32)]
        for code, nodes in by_case:
            for mask, alike in by_mask(flow, nodes, cases.arity[code], activity.active):
                if not any(mask):
                    continue
                try:
                    template = template_of(code, mask)
                except TiduError:
                    return None
                if not suits(template):
                    return None
                groups.append(Group(template, alike, partial(_source, flow, tangent, cases.arity[code])))
                are_active = activity.active[alike]
                if template.results[0] is None:
                    silent.append(alike[are_active])
                elif not are_active.all():
                    return None  # a rule gives a tangent since one of its operands has none
        if not any(map(len, silent)):
            return groups
        activity.silence(np.concatenate(silent))
    return None


class _Activity:
    """Which values have a tangent: at first all that depend on a seed."""

    def __init__(self, flow: dataflow.Flow, seeds: Collection[int]) -> None:
        self.flow = flow
        self._n_active = np.diff(flow.start)
        self._n_active[list(seeds)] = 1
        self._readers: tuple[dataflow.Ints, dataflow.Ints] | None = None
        self._spread(np.flatnonzero(self._n_active == 0))

    def silence(self, values: dataflow.Ints) -> None:
        """These values have none, although operands have; nor then have those that depend on no others."""
        self._n_active[values] = 0
        self._spread(values)

    def _spread(self, values: dataflow.Indices) -> None:
        if len(values):
            if self._readers is None:
                self._readers = dataflow.readers(self.flow)
            dataflow.peel(self._n_active, *self._readers, values)
        self.active: dataflow.Bools = self._n_active > 0


def _source(flow: dataflow.Flow, tangent: dataflow.Ints, arity: int, nodes: dataflow.Ints, slot: int) -> dataflow.Ints:
    """The references of a source: an operand, the result, or the tangent of an operand."""
    if slot < arity:
        return ~operands(flow, nodes, slot)
    return ~nodes if slot == arity else tangent[operands(flow, nodes, slot - arity - 1)]


def _find_tangents(flow: dataflow.Flow, groups: list[Group], places: Places, n_inputs: int, tangent: dataflow.Ints) -> None:
    """Enter the local id of each node's tangent; -1 where there is none."""
    aliases = [np.empty(0, np.int32)]
    for group in groups:
        (slot,), nodes = group.template.results, group.items
        if slot is None:
            continue
        offset = linear_offset(group.template, slot)
        if offset is not None:
            tangent[nodes] = places.node[nodes] + (n_inputs + offset)
        else:  # an operand's tangent is the node's as well
            operand = slot - (group.template.n_sources - 1) // 2 - 1
            tangent[nodes] = -2 - operands(flow, nodes, operand)
            aliases.append(nodes)
    follow(tangent, np.concatenate(aliases))
