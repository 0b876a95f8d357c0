"""linearize of large graphs: the tangents of all values, by groups of nodes that share case and mask.

The plain way (`tidu_cli.transforms.linearize`) learns a node's mask when it comes to it. Here masks come first: what is active
spreads through the graph, and is corrected where a rule gives no tangent. Then every template is stamped out in bulk.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache, partial

import numpy as np

from tidu_cli.errors import TiduError
from tidu_cli.graph.columns.blocks import Bools, Indices, Ints, before_each, column_of
from tidu_cli.graph.columns.dataflow import Flow, peel, readers
from tidu_cli.graph.graph import Column, column
from tidu_cli.graph.link import LogicalGraph
from tidu_cli.rules.recording.templates import jvp_template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.columns.cases import are_few, by_code, by_mask, operands
from tidu_cli.transforms.columns.stamps import Group, Places, Stamps, follow, linear_offset, suits
from tidu_cli.transforms.derivative import Derivative

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
    places = Places(before_each(node_sizes), before_each(arg_sizes))
    del node_sizes, arg_sizes
    linear.code, linear.args = column([0]) * int(places.node[-1]), column([0]) * int(places.arg[-1])
    for flat, handle in seeds.items():
        tangent[flat] = -1 - handle
    _find_tangents(flow, groups, places, len(linear.inputs), tangent)
    stamps.write(places, "linearizing")
    del places
    stamps.refer()
    return column_of(np.where(tangent >= 0, -1 - tangent, 0))


def _groups(
    logical: LogicalGraph,
    flow: Flow,
    by_case: list[tuple[int, Ints]],
    seeds: Mapping[int, int],
    primitives: PrimitiveSet,
    tangent: Ints,
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

    def __init__(self, flow: Flow, seeds: Collection[int]) -> None:
        self.flow = flow
        self._n_active = np.diff(flow.start)
        self._n_active[list(seeds)] = 1
        self._readers: tuple[Ints, Ints] | None = None
        self._spread(np.flatnonzero(self._n_active == 0))

    def silence(self, values: Ints) -> None:
        """These values have none, although operands have; nor then have those that depend on no others."""
        self._n_active[values] = 0
        self._spread(values)

    def _spread(self, values: Indices) -> None:
        if len(values):
            if self._readers is None:
                self._readers = readers(self.flow)
            peel(self._n_active, *self._readers, values)
        self.active: Bools = self._n_active > 0


def _source(flow: Flow, tangent: Ints, arity: int, nodes: Ints, slot: int) -> Ints:
    """The references of a source: an operand, the result, or the tangent of an operand."""
    if slot < arity:
        return ~operands(flow, nodes, slot)
    return ~nodes if slot == arity else tangent[operands(flow, nodes, slot - arity - 1)]


def _find_tangents(flow: Flow, groups: list[Group], places: Places, n_inputs: int, tangent: Ints) -> None:
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
