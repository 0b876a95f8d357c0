"""transpose of large graphs: the cotangents of all values, by groups of nodes of equal case.

The plain way (`tidu_cli.transforms.transpose`) walks the nodes backwards, and adds contributions up as they come. Here it is
settled first what values have a cotangent; then templates get places, contributions are listed and added up, and all is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tidu_cli.errors import TiduError
from tidu_cli.graph import dataflow
from tidu_cli.graph.graph import Case, Column, Graph, column
from tidu_cli.graph.link import GraphBuilder, LogicalGraph
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.rules.recording.functions import reads_few
from tidu_cli.rules.recording.templates import transpose_template
from tidu_cli.rules.recording.trace import Template
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.transforms.columns.kept import are_few, by_code, operands
from tidu_cli.transforms.columns.linearize import Group, Places, Stamps, follow, linear_offset, suits
from tidu_cli.transforms.cotangents import addition
from tidu_cli.transforms.derivative import Derivative

# Contributions to cotangents, in the order in which they arise, and the adds that add them up.
#
# First come those of the head's outputs, the *seeds*; then those of each item, for one operand after the other. The first that a
# value gets is its cotangent so far; each one more makes an add of that and of itself, right after what its item emits. So the
# cotangent is the last add, or the only contribution.


class Contributions:
    """Item i makes the contributions from number `first[i]` to before `first[i + 1]`; before all come seeds.

    Those are given as (input of the new graph, target, type).
    """

    def __init__(self, seeds: Sequence[tuple[int, int, Type]], n_of_item: dataflow.Ints) -> None:
        self.first = dataflow.before_each(n_of_item)
        self.first += len(seeds)
        n = int(self.first[-1])
        self._target = np.empty(n, np.int32)
        self._given = np.empty(n, np.int32)
        self._type = np.empty(n, np.int32)
        self._types: dict[Type, int] = {}
        for k, (given, target, type_) in enumerate(seeds):
            self._given[k], self._target[k], self._type[k] = given, target, self._number(type_)

    def enter(self, items: dataflow.Ints, place: int, targets: dataflow.Ints, type_: Type) -> None:
        """The contribution in this place of each item goes to a target of this type."""
        at = self.first[items] + place
        self._target[at] = targets
        self._type[at] = self._number(type_)

    def give(self, items: dataflow.Ints, place: int, given: dataflow.Ints) -> None:
        """It is a local value of the new graph; or, where it is -2-v, the cotangent of value v."""
        self._given[self.first[items] + place] = given

    def find_adds(self, n_values: int) -> dataflow.Ints:
        """Once all are entered: the number of adds that are made before each item, and in the end the total."""
        target = self._target
        number = np.arange(len(target), dtype=np.int32)
        first_to = np.empty(n_values, np.int32)
        first_to[target[::-1]] = number[::-1]  # the last assignment stays
        is_add = first_to[target] != number
        del first_to, number
        self._adds = np.flatnonzero(is_add).astype(np.int32)
        self._adds_before = dataflow.before_each(is_add)

        is_added_to = np.zeros(n_values, np.bool_)
        is_added_to[target[self._adds]] = True
        several = np.flatnonzero(is_added_to[target]).astype(np.int32)
        previous = np.empty(len(target), np.int32)
        for places in dataflow.in_order(target[several], n_values):
            previous[several[places[1:]]] = several[places[:-1]]
        self._previous = previous[self._adds]  # of each add the contribution before it to the same target
        return self._adds_before[self.first]

    def add_up(self, linear: GraphBuilder, places: Places, add_code: Callable[[Type], int], cotangent: dataflow.Ints) -> None:
        """Once all are given: enter the cotangents of all values, and write the adds into a graph whose columns are long enough.

        `places` are those of all items. The adds between two items stand right before the later one.
        """
        adds, given = self._adds, self._given
        after = dataflow.owners(self.first)[adds] + 1
        after[adds < self.first[0]] = 0  # those of seeds stand before all items
        to_go = self._adds_before[self.first[after]] - self._adds_before[adds]
        node = places.node[after] - to_go
        arg = places.arg[after] - 2 * to_go
        del after, to_go
        right = given[adds]
        given[adds] = node + len(linear.inputs)  # from here on: the sum so far
        cotangent[self._target] = given  # the last assignment stays
        follow(cotangent, np.flatnonzero(cotangent < -1))
        for values in (given, right):
            pointers = np.flatnonzero(values < -1)
            values[pointers] = cotangent[-2 - values[pointers]]

        codes = np.zeros(len(self._types), np.int32)
        present = np.bincount(self._type[adds], minlength=len(codes))
        for type_, number in self._types.items():
            if present[number]:
                codes[number] = add_code(type_)
        code, args = map(dataflow.array_of, linear.columns())
        code[node] = codes[self._type[adds]]
        args[arg] = given[self._previous]
        args[arg + 1] = right

    def _number(self, type_: Type) -> int:
        return self._types.setdefault(type_, len(self._types))


@dataclass(eq=False, kw_only=True)
class _Nodes(Group):
    """Nodes of one case that have a cotangent.

    Items are values counted from the last one down, so that in their order nodes are walked backwards.
    """

    case: Case
    n_values: int

    @property
    def nodes(self) -> dataflow.Ints:
        """The values that the nodes make."""
        return self.n_values - 1 - self.items

    @property
    def targets(self) -> list[tuple[int, int, Type]]:
        """The operands that the rule contributes to, with the slots of the contributions and their types."""
        pairs = zip(self.template.results, self.case.operands, strict=True)
        return [(k, slot, type_) for k, (slot, type_) in enumerate(pairs) if slot is not None and type_ is not None]


def pull_back(derivative: Derivative, head: Graph, primitives: PrimitiveSet) -> Column[int] | None:
    """What the plain way does: the handle of the cotangent of each input.

    None, and nothing done, where only the plain way knows how: several results, records, reads of few elements, more cases than are
    worth the while; and where it says what is wrong: a missing rule, a mask that belies the operands.
    """
    seeds = [(k, o.value, o.type) for k, o in enumerate(head.outputs) if o.value is not None]
    if any(value < 0 for _, value, _ in seeds):
        return None
    code = np.concatenate([np.full(len(head.inputs), -1, np.int32), dataflow.array_of(head.code)])
    if not dataflow.has_single_results(head.cases, code):
        return None
    flow = dataflow.Flow.of(code, dataflow.array_of(head.args), head.cases)
    cotangent, linear = np.full(flow.n_values, -1, np.int32), derivative.linear
    known = _groups(derivative.logical, flow, [value for _, value, _ in seeds], primitives, cotangent)
    if known is None:
        return None

    contributions = _listed(flow, known, seeds)
    adds_before = contributions.find_adds(flow.n_values)
    stamps = Stamps(derivative, flow.n_values, [*known])
    places = Places(*map(dataflow.before_each, stamps.linear_sizes()))
    places.node[:] += adds_before
    places.arg[:] += 2 * adds_before
    del adds_before
    linear.code, linear.args = column([0]) * int(places.node[-1]), column([0]) * int(places.arg[-1])
    _give(contributions, known, places, len(linear.inputs))

    contributions.add_up(linear, places, partial(addition, primitives, head.cases), cotangent)
    del contributions, known
    stamps.write(places, "transposing")
    del places
    stamps.refer()
    return column([-1 - v if v >= 0 else 0 for v in cotangent[: len(head.inputs)].tolist()])


def _listed(flow: dataflow.Flow, known: list[_Nodes], seeds: list[tuple[int, int, Type]]) -> Contributions:
    """What contributes to what."""
    n_of_item = np.zeros(flow.n_values, np.int32)
    for k in known:
        n_of_item[k.items] = len(k.targets)
    contributions = Contributions(seeds, n_of_item)
    for k in known:
        for place, (operand, _, type_) in enumerate(k.targets):
            contributions.enter(k.items, place, operands(flow, k.nodes, operand), type_)
    return contributions


def _give(contributions: Contributions, known: list[_Nodes], places: Places, n_inputs: int) -> None:
    """What the contributions are, once nodes have places."""
    for k in known:
        for place, (_, slot, _) in enumerate(k.targets):
            offset = linear_offset(k.template, slot)
            if offset is None:  # the cotangent of the node itself
                contributions.give(k.items, place, -2 - k.nodes)
            else:
                contributions.give(k.items, place, places.node[k.items] + (n_inputs + offset))


def _groups(
    logical: LogicalGraph, flow: dataflow.Flow, seeds: list[int], primitives: PrimitiveSet, cotangent: dataflow.Ints
) -> list[_Nodes] | None:
    """The nodes whose result has a cotangent, by case; None where templates cannot be told, or do not suit."""
    cases = logical.document.cases
    nodes = _with_cotangent(flow, flow.args >= 0, seeds)
    if not len(nodes) or not are_few(flow.code, nodes):
        return None
    candidates: list[tuple[Case, Template, dataflow.Ints]] = []
    contributes = np.zeros(len(flow.args), np.bool_)
    for code, alike in by_code(flow.code, nodes):
        case = cases[code]
        if case.mask is None or primitives[case.op].domain.takes or reads_few(primitives, case):
            return None
        if not all(isinstance(type_, TensorType) for type_ in case.operands):
            return None
        for k, is_active in enumerate(case.mask):
            if not np.all((operands(flow, alike, k) >= 0) == is_active):
                return None
        try:
            template = transpose_template(primitives, cases, code, (True,))
        except TiduError:
            return None
        if not suits(template):
            return None
        candidates.append((case, template, alike))
        for k, slot in enumerate(template.results):
            if slot is not None:
                contributes[flow.start[alike] + k] = True
    # Where a rule contributes nothing to an operand, that one may have no cotangent after all.
    live = np.zeros(flow.n_values, np.bool_)
    live[_with_cotangent(flow, contributes, seeds)] = True
    groups = []
    for case, template, alike in candidates:
        if len(some := alike[live[alike]][::-1]):
            source = partial(_source, logical, flow, cotangent, template.n_sources - 1)
            groups.append(_Nodes(template, flow.n_values - 1 - some, source, case=case, n_values=flow.n_values))
    return groups


def _with_cotangent(flow: dataflow.Flow, contributes: dataflow.Bools, seeds: list[int]) -> dataflow.Ints:
    """The nodes whose result has a cotangent, if those arguments get contributions that `contributes` says."""
    targets = flow.args[contributes]
    held = dataflow.counts(targets, flow.n_values)
    np.add.at(held, np.array(seeds, np.int64), 1)
    dataflow.peel(held, dataflow.before_each(contributes)[flow.start], targets)
    return np.flatnonzero((held > 0) & (flow.code >= 0)).astype(np.int32)


def _source(
    logical: LogicalGraph, flow: dataflow.Flow, cotangent: dataflow.Ints, arity: int, items: dataflow.Ints, slot: int
) -> dataflow.Ints:
    """The references of a source: an operand, or the cotangent of the result."""
    values = flow.n_values - 1 - items
    if slot == arity:
        return cotangent[values]
    read = operands(flow, values, slot)
    dataflow.to_flat_ids(read, logical.base[-2], logical.outside[-1], len(logical.document.head.inputs))
    return ~read
